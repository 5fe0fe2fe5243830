//! `location`, and the directives of a single location: `try_files`, `internal`.

use std::sync::Arc;

use crate::ast::Node;
use crate::directive::{Args, Contexts, DirectiveSpec, block, own};
use crate::model::location::TryFile;
use crate::model::{Fallback, Handler, Matcher, TryFiles};
use crate::reader::{ConfReader, DUPLICATE, ReadFault, ReadResult, show};
use crate::regex::LetterCase;
use crate::value as values;

pub(super) const TABLE: &[DirectiveSpec] = &[
    block("location", Contexts::SL, Args::between(1, 2), location)
        .doc("The settings for a part of the URI space.", "location ^~ /static/ { expires 1d; }")
        .takes("[= | ~ | ~* | ^~] URI | @NAME"),
    own("try_files", Contexts::SL, Args::at_least(2), try_files)
        .doc(
            "Tries files in order; the last parameter is the fallback.",
            "try_files $uri $uri/ =404;",
        )
        .takes("FILE… URI | =CODE")
        .without("none"),
    own("internal", Contexts::LOCATION, Args::NONE, internal)
        .doc("Restricts a location to internal requests.", "internal;"),
    own("bolide_admin", Contexts::LOCATION, Args::NONE, |r, _| {
        r.scope.handler = Handler::Admin;
        Ok(())
    })
    .doc(
        "Serves the state of the cache as JSON, to clients that an `allow` names.",
        "bolide_admin;",
    ),
    own("empty_gif", Contexts::LOCATION, Args::NONE, |r, _| {
        r.scope.handler = Handler::EmptyGif;
        Ok(())
    })
    .doc("Serves a transparent GIF of one pixel.", "empty_gif;"),
    own("flv", Contexts::LOCATION, Args::NONE, |r, _| {
        r.scope.handler = Handler::Flv;
        Ok(())
    })
    .doc("Serves files from the byte on that the argument `start` names, as Flash Videos.", "flv;"),
    own("stub_status", Contexts::SL, Args::between(0, 1), |r, _| {
        r.scope.handler = Handler::StubStatus;
        Ok(())
    })
    .doc("Serves the numbers of connections and requests.", "stub_status;")
    .takes("[on]")
    .without("none"),
];

fn location(r: &mut ConfReader, node: &mut Node) -> ReadResult {
    let (matcher, name) = matcher(r, node)?;
    check_nesting(r, &matcher, &name)?;
    let mut scope = r.inner_scope(Contexts::LOCATION);
    scope.matcher = matcher;
    scope.name = name;
    let id = super::server::reserve(r, node, &scope);
    let mut scope = r.read_inner(node, scope);
    super::referer::check(r, &scope);
    r.share_origin(&mut scope);
    super::server::fill(&mut r.http.locations[id.index()], &mut scope);
    r.scope.nested.push(id);
    Ok(())
}

/// When a location applies, and its name in messages.
fn matcher(r: &mut ConfReader, node: &Node) -> Result<(Matcher, Arc<[u8]>), ReadFault> {
    let named = |text: &[u8]| Arc::<[u8]>::from(text);
    let prefix = |path: Arc<[u8]>, no_regex| Matcher::Prefix { path, no_regex };
    if node.args_count() == 2 {
        let name = named(node.arg(1));
        let matcher = match node.arg(0) {
            b"=" => Matcher::Exact(Arc::clone(&name)),
            b"^~" => prefix(Arc::clone(&name), true),
            b"~" => Matcher::Regex(r.regex(&name, LetterCase::Sensitive)?),
            b"~*" => Matcher::Regex(r.regex(&name, LetterCase::Insensitive)?),
            other => {
                let shown = show(other);
                return Err(ReadFault::Text(format!("invalid location modifier \"{shown}\"")));
            }
        };
        return Ok((matcher, name));
    }
    let (matcher, name) = match node.arg(0) {
        [b'=', rest @ ..] => (Matcher::Exact(named(rest)), named(rest)),
        [b'^', b'~', rest @ ..] => (prefix(named(rest), true), named(rest)),
        [b'~', b'*', rest @ ..] => {
            (Matcher::Regex(r.regex(rest, LetterCase::Insensitive)?), named(rest))
        }
        [b'~', rest @ ..] => (Matcher::Regex(r.regex(rest, LetterCase::Sensitive)?), named(rest)),
        text @ [b'@', ..] => (Matcher::Named(named(text)), named(text)),
        text => (prefix(named(text), false), named(text)),
    };
    Ok((matcher, name))
}

fn check_nesting(r: &ConfReader, matcher: &Matcher, name: &[u8]) -> ReadResult {
    if r.scope.context != Contexts::LOCATION {
        return Ok(());
    }
    let (inner, outer) = (show(name), show(&r.scope.name));
    let fault = |text: String| Err(ReadFault::Text(text));
    match r.scope.matcher {
        Matcher::Exact(_) => {
            return fault(format!(
                "location \"{inner}\" cannot be inside the exact location \"{outer}\""
            ));
        }
        Matcher::Named(_) => {
            return fault(format!(
                "location \"{inner}\" cannot be inside the named location \"{outer}\""
            ));
        }
        Matcher::Root | Matcher::If | Matcher::Prefix { .. } | Matcher::Regex(_) => {}
    }
    match matcher {
        Matcher::Named(_) => {
            fault(format!("named location \"{inner}\" can be on the server level only"))
        }
        Matcher::Regex(_) | Matcher::Root | Matcher::If => Ok(()),
        Matcher::Exact(_) | Matcher::Prefix { .. } if name.starts_with(&r.scope.name) => Ok(()),
        Matcher::Exact(_) | Matcher::Prefix { .. } => {
            fault(format!("location \"{inner}\" is outside location \"{outer}\""))
        }
    }
}

fn try_files(r: &mut ConfReader, node: &Node) -> ReadResult {
    if r.scope.try_files.is_some() {
        return Err(DUPLICATE);
    }
    let last = node.args_count() - 1;
    let mut files = Vec::with_capacity(last);
    for word in node.args().take(last) {
        let (path, directory) = match word {
            [path @ .., b'/'] => (path, true),
            path => (path, false),
        };
        files.push(TryFile { path: r.template(path)?, directory });
    }
    let word = node.arg(last);
    let fallback = match word {
        [b'=', digits @ ..] => match values::final_status(digits) {
            Some(status) => Fallback::Status(status),
            None => return Err(ReadFault::Text(format!("invalid code \"{}\"", show(word)))),
        },
        [b'@', ..] => Fallback::Named(Arc::from(word)),
        _ => Fallback::Uri(r.template(word)?),
    };
    r.scope.try_files = Some(Arc::new(TryFiles { files, fallback }));
    Ok(())
}

fn internal(r: &mut ConfReader, _: &Node) -> ReadResult {
    if r.again {
        return Err(DUPLICATE);
    }
    r.scope.internal = true;
    Ok(())
}
