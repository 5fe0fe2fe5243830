//! `valid_referers`: allowed values of the `Referer` field.

use std::sync::Arc;

use crate::ast::Node;
use crate::diagnostic::Diagnostic;
use crate::directive::{Args, Contexts, DirectiveForm, DirectiveSpec, accepted, list};
use crate::model::{LogLevel, Referers};
use crate::reader::{BlockScope, ConfReader, ReadFault, ReadResult};
use crate::regex::LetterCase;

const SL: Contexts = Contexts::SL;

pub(super) const TABLE: &[DirectiveSpec] = &[
    list("valid_referers", SL, Args::at_least(1), valid_referers)
        .doc(
            "The `Referer` fields for which `$invalid_referer` is empty.",
            "valid_referers none blocked server_names *.example.com;",
        )
        .takes("none | blocked | server_names | NAME | ~REGEX…")
        .without("none"),
    accepted("referer_hash_max_size", SL, Args::ONE, DirectiveForm::Number)
        .doc("Without effect: the table sizes itself.", "referer_hash_max_size 2048;"),
    accepted("referer_hash_bucket_size", SL, Args::ONE, DirectiveForm::Number)
        .doc("Without effect: the table sizes itself.", "referer_hash_bucket_size 64;"),
];

fn valid_referers(r: &mut ConfReader, node: &Node) -> ReadResult {
    let mut referers = match (&r.scope.settings.referers, r.again) {
        (Some(before), true) => Referers::clone(before),
        // Expressions are inherited separately, as in nginx.
        (before, _) => Referers {
            regexes: before.as_ref().map_or_else(Vec::new, |before| before.regexes.clone()),
            ..Referers::default()
        },
    };
    for word in node.args() {
        match word {
            b"none" => referers.none = true,
            b"blocked" => referers.blocked = true,
            b"server_names" => referers.server_names = true,
            b"" => {
                return Err(ReadFault::Text("invalid referer \"\"".to_owned()));
            }
            b"~" => return Err(ReadFault::Text("empty regex in \"~\"".to_owned())),
            [b'~', regex @ ..] => {
                let regex = r.regex(regex, LetterCase::Insensitive)?;
                if !std::mem::replace(&mut r.scope.has_referer_regexes, true) {
                    referers.regexes.clear();
                }
                referers.regexes.push(regex);
            }
            text => {
                let slash = text.iter().position(|byte| *byte == b'/').unwrap_or(text.len());
                let (host, path) = text.split_at(slash);
                referers.hosts.push((r.scope.referers.read(host, true)?, path.into()));
            }
        }
    }
    r.scope.has_referers = true;
    r.settings().referers = Some(Arc::new(referers));
    Ok(())
}

/// Refuses a list that allows only requests without a host; `scope` is a complete block.
pub(super) fn check(r: &mut ConfReader, scope: &BlockScope) {
    let Some(referers) = scope.settings.referers.as_ref().filter(|_| scope.has_referers) else {
        return;
    };
    let is_lone = referers.hosts.is_empty() && !referers.server_names;
    if is_lone && (referers.none || referers.blocked) {
        let message = "the \"none\" or \"blocked\" referers are specified in the \
                       \"valid_referers\" directive without any valid referer";
        r.note(r.http.closed, Diagnostic::new(LogLevel::Emerg, message, None));
    }
}
