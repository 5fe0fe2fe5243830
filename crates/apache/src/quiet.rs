//! Rules that lead to another path within the server. Without `[PT]` the request keeps its address
//! in Apache, and the sections for that address hold; here those for the new path would.

use crate::access::{condition_reach, decides, has_say, is_about_access, is_location};
use crate::expression::quoted_regex;
use crate::matching::{PathSet, PlacePaths, Reach, paths};
use crate::php;
use crate::proxy;
use crate::redirect::literal_start;
use crate::rules::required;
use crate::server::Server;
use crate::tree::ApacheNode;

/// What has to be asked before such a rule.
#[derive(Debug)]
pub(crate) enum QuietCheck<'a> {
    /// The rule only applies if this holds.
    Unless(String),
    /// Where the rule applies and this holds (none: always), the status is the answer.
    Refuse { node: &'a ApacheNode, test: Option<String>, status: u16 },
}

/// What a section does with the rules of access before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Effect {
    Denies,
    Grants,
    Changes,
}

fn effect(section: &ApacheNode) -> Effect {
    let speaks = |node: &&ApacheNode| {
        is_about_access(&node.lower) || decides(node) || node.is_section() && has_say(node)
    };
    let is_all = |word: &str| {
        section.children.iter().filter(speaks).all(|node| {
            node.lower == "require" && required(node) == ["all".to_owned(), word.to_owned()]
        })
    };
    match (is_all("denied"), is_all("granted")) {
        (true, _) => Effect::Denies,
        (_, true) => Effect::Grants,
        _ => Effect::Changes,
    }
}

/// The paths that begin as `start` does.
fn beginning(start: &str) -> PlacePaths {
    let end = start.rfind('/').map_or(0, |at| at + 1);
    PlacePaths::Below(if end == 0 { "/".to_owned() } else { start[..end].to_owned() })
}

/// What has to be asked before a rule whose pattern is `regex` and which leads to `to`;
/// `is_passed`: with `[PT]`.
pub(crate) fn checks<'a>(
    server: &Server<'a>,
    regex: &str,
    to: &str,
    is_passed: bool,
) -> Vec<QuietCheck<'a>> {
    let from = beginning(&literal_start(regex).0);
    let to = to.split('?').next().unwrap_or_default();
    let to = match to.find(['$', '%']) {
        Some(end) => beginning(&to[..end]),
        None => PlacePaths::One(to.to_owned()),
    };
    let mut all = Vec::new();
    if let Some(node) = proxy::passes(server, &to, is_passed) {
        // Apache has a file there, which no proxy answers for.
        all.push(QuietCheck::Refuse { node, test: None, status: 503 });
    }
    if is_passed {
        return all;
    }
    for node in server.main.iter().chain(server.own) {
        let set = match (is_location(node), &node.lower[..]) {
            (true, _) => paths(node),
            (false, "<if") if has_say(node) && node.rest.contains("REQUEST_URI") => {
                match condition_reach(node) {
                    Reach::Where(regex) => PathSet::Matching(regex),
                    _ => {
                        all.push(QuietCheck::Refuse { node, test: None, status: 503 });
                        continue;
                    }
                }
            }
            _ => continue,
        };
        let Some(own) = set.regex().map(|regex| quoted_regex(&regex)) else { continue };
        let (before, after) = (set.reach(&from), set.reach(&to));
        let handler = node.children.iter().rfind(|child| child.lower == "sethandler");
        let is_answered =
            handler.is_some_and(|it| php::runner(&it.first()).is_none() && it.keyword() != "none");
        if is_answered && node.lower == "<location" {
            // A handler answers there whatever file a rule leads to.
            if before != Reach::Nothing {
                all.push(QuietCheck::Unless(format!("$uri !~ {own}")));
            }
            continue;
        }
        if !has_say(node)
            || before == after && before != Reach::Nothing && !matches!(before, Reach::Where(_))
        {
            continue;
        }
        let effect = effect(node);
        let status = if effect == Effect::Denies { 403 } else { 503 };
        if effect != Effect::Grants && before != Reach::Nothing && after != Reach::All {
            let test = (before != Reach::All).then(|| format!("$uri ~ {own}"));
            all.push(QuietCheck::Refuse { node, test, status });
        }
        if effect != Effect::Denies && before != Reach::All && after != Reach::Nothing {
            let test = (before != Reach::Nothing).then(|| format!("$uri !~ {own}"));
            all.push(QuietCheck::Refuse { node, test, status });
        }
    }
    all
}
