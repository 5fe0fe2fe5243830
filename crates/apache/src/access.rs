//! Who may come in to what has no files (`proxy_pass`, a status page): `Require` and its kin in
//! nginx's words. The sections that are about such a place are merged as Apache does it. Where that
//! cannot be done or said, the place is closed: all of it, or the paths that a section finds.

use crate::body::SectionKind;
use crate::expression::quoted_regex;
use crate::matching::{PathSet, PlacePaths, Reach, paths, proxy_reach};
use crate::names;
use crate::out::ConfText;
use crate::rules::{Admittance, Rules, Unsaid};
use crate::server::Server;
use crate::tree::ApacheNode;

/// LIMIT: sections about some paths of a place whose combinations are tried.
const COMBINED_MAX: usize = 6;

/// A section about at least some requests of a place.
#[derive(Clone, Debug)]
pub(crate) struct PlaceSection<'a> {
    pub(crate) node: &'a ApacheNode,
    pub(crate) reach: Reach,
}

/// Directives about access in a section, flat.
pub(crate) fn is_about_access(lower: &str) -> bool {
    ["auth", "require", "<require", "allow", "deny", "order", "satisfy", "sslrequire", "<limit"]
        .iter()
        .any(|start| lower.starts_with(start))
        && !matches!(lower, "allowoverride" | "allowencodedslashes")
}

/// Whether a directive decides what is answered, other than by rules of access.
pub(crate) fn decides(node: &ApacheNode) -> bool {
    let lower = &node.lower[..];
    lower == "rewriterule"
        || lower.starts_with("redirect")
        || names::guards(lower) && !lower.starts_with("<proxy")
}

/// Whether a section keeps clients out, or lets them in, at any depth.
pub(crate) fn has_say(node: &ApacheNode) -> bool {
    let mut found = false;
    for child in &node.children {
        child.each(&mut |one| found |= is_about_access(&one.lower) || decides(one));
    }
    found
}

/// The sections about a place without files, in Apache's order: `<Proxy>` by the address that
/// requests are passed on to, then `<Location>`, then `<If>`.
pub(crate) fn sections<'a>(
    server: &Server<'a>,
    place: &PlacePaths,
    url: Option<&str>,
    apart: &[String],
) -> Vec<PlaceSection<'a>> {
    let nodes = || server.main.iter().chain(server.own);
    let mut all = Vec::new();
    let mut add = |node: &'a ApacheNode, reach| {
        if reach != Reach::Nothing {
            all.push(PlaceSection { node, reach });
        }
    };
    for node in nodes().filter(|node| matches!(&node.lower[..], "<proxy" | "<proxymatch")) {
        add(node, url.map_or(Reach::Nothing, |url| proxy_reach(node, url)));
    }
    for node in nodes().filter(|node| is_location(node)) {
        let set = paths(node);
        // What has locations of its own is not a part of this place.
        let is_apart = matches!(&set, PathSet::Below(path) if apart.contains(&bare(path)));
        match set.reach(place) {
            Reach::Where(_) if is_apart => {}
            reach => add(node, reach),
        }
    }
    for node in nodes().filter(|node| is_condition(node) && has_say(node)) {
        add(node, condition_reach(node));
    }
    all
}

/// A path without its final slash.
pub(crate) fn bare(path: &str) -> String {
    path.trim_end_matches('/').to_owned()
}

fn is_condition(node: &ApacheNode) -> bool {
    matches!(&node.lower[..], "<if" | "<elseif" | "<else")
}

/// Which paths a condition finds, if it asks about nothing else.
pub(crate) fn condition_reach(node: &ApacheNode) -> Reach {
    let words = node.words();
    let text = match &words[..] {
        [only] if node.lower == "<if" => only,
        _ => return Reach::Some,
    };
    let rest = text.strip_prefix("%{REQUEST_URI}").map(str::trim_start);
    let rest = rest.and_then(|rest| rest.strip_prefix("=~")).map(str::trim);
    let rest = rest.map(|rest| rest.strip_prefix('m').unwrap_or(rest));
    let mark = rest.and_then(|rest| rest.chars().next()).filter(char::is_ascii_punctuation);
    let regex = mark.zip(rest).and_then(|(mark, rest)| {
        let inner = rest.strip_prefix(mark)?.strip_suffix(mark)?;
        (!inner.contains(mark) && !inner.is_empty()).then(|| inner.to_owned())
    });
    regex.map_or(Reach::Some, Reach::Where)
}

/// The sections about a place that have a say, merged.
struct Merging<'a, 's> {
    all: Vec<&'s PlaceSection<'a>>,
    /// Those about some requests of the place.
    partial: Vec<usize>,
}

impl<'a, 's> Merging<'a, 's> {
    fn new(sections: &'s [PlaceSection<'a>]) -> Self {
        let all: Vec<_> = sections.iter().filter(|section| has_say(section.node)).collect();
        let partial = (0..all.len()).filter(|at| all[*at].reach != Reach::All).collect();
        Self { all, partial }
    }

    /// What holds where those of the partial sections apply whose bits are set.
    fn verdict(&self, set: usize) -> Result<Admittance, Unsaid> {
        let mut rules = Rules::default();
        for (at, section) in self.all.iter().enumerate() {
            let bit = self.partial.iter().position(|one| *one == at);
            if bit.is_none_or(|bit| set >> bit & 1 == 1) {
                rules.merge(section.node)?;
            }
        }
        rules.verdict()
    }

    /// Whether a partial section changes who comes in, whichever others apply with it, and whether
    /// none comes in where it applies.
    fn weight(&self, bit: usize) -> (bool, bool) {
        if self.partial.len() > COMBINED_MAX {
            return (true, false);
        }
        let (mut matters, mut always_denies) = (false, true);
        for set in (0..1_usize << self.partial.len()).filter(|set| set >> bit & 1 == 1) {
            let (with, without) = (self.verdict(set), self.verdict(set & !(1 << bit)));
            always_denies &= with.as_ref().is_ok_and(|it| *it == Admittance::Denied);
            matters |= match (&with, &without) {
                (Ok(with), Ok(without)) => with != without,
                _ => true,
            };
        }
        (matters, always_denies)
    }
}

/// Writes what sections say about a place without files.
pub(crate) fn write(sections: &[PlaceSection<'_>], out: &mut ConfText) {
    notes(sections, out);
    let merging = Merging::new(sections);
    let usual = match merging.verdict(0) {
        Ok(usual) => usual,
        Err((place, why)) => {
            out.comment_closed(&place, why);
            return out.own("return 503;");
        }
    };
    for (bit, at) in merging.partial.iter().enumerate() {
        let PlaceSection { node, reach } = merging.all[*at];
        let (matters, always_denies) = merging.weight(bit);
        if !matters {
            continue;
        }
        let status = if always_denies { 403 } else { 503 };
        let what = format!("{} {}>: how it merges cannot be said", node.name, node.rest);
        match reach {
            Reach::Where(regex) => {
                if !always_denies {
                    out.comment_closed(&node.place, what);
                }
                let text = format!("if ($uri ~ {}) {{ return {status}; }}", quoted_regex(regex));
                out.put(&node.place, text);
            }
            _ => {
                out.comment_closed(&node.place, what);
                return out.own("return 503;");
            }
        }
    }
    let whole = merging.all.iter().rfind(|section| section.reach == Reach::All);
    if let Some(section) = whole {
        for (place, line) in usual.lines(&section.node.place) {
            out.put(place, line);
        }
    }
}

/// Tells of directives in sections that have no effect for what has no files.
fn notes(sections: &[PlaceSection<'_>], out: &mut ConfText) {
    for node in sections.iter().flat_map(|section| &section.node.children) {
        let lower = &node.lower[..];
        let is_imported = is_about_access(lower)
            || decides(node)
            || node.is_section() && has_say(node)
            || matches!(lower, "sethandler" | "options" | "allowoverride" | "balancermember")
            || ["proxy", "sslproxy", "header", "requestheader"]
                .iter()
                .any(|start| lower.starts_with(start));
        if !is_imported {
            out.note(&node.place, format!("{} {}: without effect here", node.name, node.rest));
        }
    }
}

/// Whether a section of this kind has a say about paths of requests.
pub(crate) fn is_location(node: &ApacheNode) -> bool {
    matches!(&node.lower[..], "<location" | "<locationmatch")
}

/// The kind of a section.
pub(crate) fn kind(node: &ApacheNode) -> SectionKind {
    match &node.lower[..] {
        "<directory" | "<directorymatch" => SectionKind::Directory,
        _ => SectionKind::Other,
    }
}
