//! `valid_referers`: from where links may lead here.

use std::sync::Arc;

use crate::ast::Node;
use crate::directive::{Args, Contexts, Directive, Form, accepted, list};
use crate::model::Referers;
use crate::reader::{Fault, Parsed, Reader};
use crate::regex::Case;

const SL: Contexts = Contexts::SL;

pub(super) const TABLE: &[Directive] = &[
    list("valid_referers", SL, Args::at_least(1), valid_referers).doc(
        "Which `Referer` fields leave `$invalid_referer` empty.",
        "valid_referers none blocked server_names *.example.com;",
    ),
    accepted("referer_hash_max_size", SL, Args::ONE, Form::Number)
        .doc("Sized a table that sizes itself.", "referer_hash_max_size 2048;"),
    accepted("referer_hash_bucket_size", SL, Args::ONE, Form::Number)
        .doc("Sized a table that sizes itself.", "referer_hash_bucket_size 64;"),
];

fn valid_referers(r: &mut Reader, node: &Node) -> Parsed {
    let mut referers = match (&r.scope.settings.referers, r.again) {
        (Some(before), true) => Referers::clone(before),
        _ => Referers::default(),
    };
    let mut keys = super::map::Keys::default();
    for word in node.args() {
        match word {
            b"none" => referers.none = true,
            b"blocked" => referers.blocked = true,
            b"server_names" => referers.server_names = true,
            b"" => {
                return Err(Fault::Text("invalid referer \"\"".to_owned()));
            }
            b"~" => return Err(Fault::Text("empty regex in \"~\"".to_owned())),
            [b'~', regex @ ..] => referers.regexes.push(r.regex(regex, Case::Insensitive)?),
            text => {
                let slash = text.iter().position(|byte| *byte == b'/').unwrap_or(text.len());
                let (host, path) = text.split_at(slash);
                referers.hosts.push((keys.read(host, true)?, path.into()));
            }
        }
    }
    r.settings().referers = Some(Arc::new(referers));
    Ok(())
}
