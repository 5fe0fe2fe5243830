//! Which requests a `<Location>` or a `<Proxy>` is about, as Apache compares them, and whether all
//! requests of a place are among them.

use crate::redirect::literal_start;
use crate::tree::ApacheNode;
use crate::words::escaped;

/// The paths that a section is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PathSet {
    Every,
    /// A path and what is below it; one with a final slash is only about what is below.
    Below(String),
    /// What an expression finds.
    Matching(String),
}

/// Requests that are translated at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PlacePaths {
    /// This very path.
    One(String),
    /// All paths that begin with this one, which ends with a slash.
    Below(String),
}

/// Whether a section is about the requests of a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    All,
    Nothing,
    /// About those whose path the expression finds.
    Where(String),
    /// About some of them, and the path does not say which.
    Some,
}

/// Expressions that find every path.
const EVERYTHING: [&str; 12] =
    ["", "^", "/", "^/", ".", ".*", "^.*", "^.*$", "/.*", "^/.*", "^/.*$", "^(.*)$"];

/// The first argument of a section, and whether it is an expression.
fn argument(node: &ApacheNode) -> (String, bool) {
    let mut words = node.words().into_iter();
    let first = words.next().unwrap_or_default();
    match first == "~" {
        true => (words.next().unwrap_or_default(), true),
        false => (first, node.lower.ends_with("match")),
    }
}

/// The paths that a `<Location>` or `<LocationMatch>` is about.
pub(crate) fn paths(node: &ApacheNode) -> PathSet {
    let (text, is_regex) = argument(node);
    if is_regex {
        if EVERYTHING.contains(&&text[..]) {
            return PathSet::Every;
        }
        // What begins with a path up to a slash is what is below that path.
        let (start, is_whole) = literal_start(&text);
        return match is_whole && start.len() > 1 && start.ends_with('/') {
            true => PathSet::Below(start),
            false => PathSet::Matching(text),
        };
    }
    match &text[..] {
        "" | "/" => PathSet::Every,
        glob if has_wildcard(glob) => PathSet::Matching(format!("^{}$", of_glob(glob))),
        _ => PathSet::Below(text),
    }
}

impl PathSet {
    /// The expression that finds them; none where it would find everything.
    pub(crate) fn regex(&self) -> Option<String> {
        match self {
            Self::Every => None,
            Self::Below(path) if path.ends_with('/') => Some(format!("^{}", escaped(path))),
            Self::Below(path) => Some(format!("^{}(?:/|$)", escaped(path))),
            Self::Matching(regex) => Some(regex.clone()),
        }
    }

    /// Whether the requests of a place are among them.
    pub(crate) fn reach(&self, place: &PlacePaths) -> Reach {
        match (self, place) {
            (Self::Every, _) => Reach::All,
            (Self::Below(own), PlacePaths::One(path)) => match is_below(own, path) {
                true => Reach::All,
                false => Reach::Nothing,
            },
            (Self::Below(own), PlacePaths::Below(start)) if is_below(own, start) => Reach::All,
            (Self::Below(own), PlacePaths::Below(start)) if own.starts_with(&start[..]) => {
                self.regex().map_or(Reach::All, Reach::Where)
            }
            (Self::Below(_), PlacePaths::Below(_)) => Reach::Nothing,
            (Self::Matching(regex), _) => {
                let (own, _) = literal_start(regex);
                let may_find = match place {
                    PlacePaths::One(path) => path.starts_with(&own[..]),
                    PlacePaths::Below(start) => {
                        own.starts_with(&start[..]) || start.starts_with(&own[..])
                    }
                };
                if may_find { Reach::Where(regex.clone()) } else { Reach::Nothing }
            }
        }
    }
}

/// Whether `path` is the one that a section names, or below it.
fn is_below(own: &str, path: &str) -> bool {
    path.strip_prefix(own)
        .is_some_and(|rest| own.ends_with('/') || rest.is_empty() || rest.starts_with('/'))
}

/// Whether a `<Proxy>` or `<ProxyMatch>` is about requests that are passed on to addresses that
/// begin with `url`.
pub(crate) fn proxy_reach(node: &ApacheNode, url: &str) -> Reach {
    let (text, is_regex) = argument(node);
    let (start, is_whole) = match is_regex {
        true if ["", "^", ".*", "^.*", "^.*$", "."].contains(&&text[..]) => return Reach::All,
        true => literal_start(&text),
        false => {
            let end = text.find(['*', '?', '[', '\\']).filter(|_| has_wildcard(&text));
            let rest = end.map_or("*", |end| &text[end..]);
            (text[..end.unwrap_or(text.len())].to_owned(), rest == "*")
        }
    };
    match (url.starts_with(&start[..]), start.starts_with(url)) {
        (true, _) if is_whole => Reach::All,
        (false, false) => Reach::Nothing,
        _ => Reach::Some,
    }
}

/// Whether a path has wildcards, as Apache looks for them.
fn has_wildcard(text: &str) -> bool {
    let mut opens = false;
    let mut all = text.chars();
    while let Some(one) = all.next() {
        match one {
            '*' | '?' => return true,
            '\\' => drop(all.next()),
            '[' => opens = true,
            ']' if opens => return true,
            _ => {}
        }
    }
    false
}

/// Wildcards as an expression: none of them is a slash.
fn of_glob(glob: &str) -> String {
    let mut out = String::new();
    let mut all = glob.chars().peekable();
    while let Some(one) = all.next() {
        match one {
            '*' => out.push_str("[^/]*"),
            '?' => out.push_str("[^/]"),
            '\\' => out.push_str(&escaped(&all.next().unwrap_or('\\').to_string())),
            '[' => {
                let is_not = all.next_if(|next| matches!(next, '!' | '^')).is_some();
                out.push_str(if is_not { "(?!/)[^" } else { "(?!/)[" });
                let mut is_first = true;
                for inner in all.by_ref() {
                    match inner {
                        ']' if !is_first => break,
                        '-' => out.push('-'),
                        other if other.is_alphanumeric() => out.push(other),
                        other => out.extend(['\\', other]),
                    }
                    is_first = false;
                }
                out.push(']');
            }
            other => out.push_str(&escaped(&other.to_string())),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::{PathSet, PlacePaths, Reach, has_wildcard, of_glob, paths, proxy_reach};
    use crate::tree::ApacheNode;

    fn node(name: &str, rest: &str) -> ApacheNode {
        ApacheNode {
            place: crate::ConfPlace { file: "x".into(), line: 1 },
            name: name.to_owned(),
            lower: name.to_ascii_lowercase(),
            rest: rest.to_owned(),
            children: Vec::new(),
        }
    }

    #[test]
    fn paths_are_compared_as_apache_does() {
        let one = |path: &str| PlacePaths::One(path.to_owned());
        let below = |path: &str| PlacePaths::Below(path.to_owned());
        let rows = [
            ("<Location", "/", one("/a"), Reach::All),
            ("<Location", "/a", one("/a"), Reach::All),
            ("<Location", "/a", one("/ab"), Reach::Nothing),
            ("<Location", "/a", below("/a/"), Reach::All),
            ("<Location", "/a/", one("/a"), Reach::Nothing),
            ("<Location", "/a/", below("/a/b/"), Reach::All),
            ("<Location", "/a/x", below("/a/"), Reach::Where("^/a/x(?:/|$)".to_owned())),
            ("<Location", "/b", below("/a/"), Reach::Nothing),
            ("<Location", "/a/*.css", below("/a/"), Reach::Where(r"^/a/[^/]*\.css$".to_owned())),
            ("<Location", "/b/*.css", below("/a/"), Reach::Nothing),
            ("<LocationMatch", r"\.env$", below("/a/"), Reach::Where(r"\.env$".to_owned())),
            ("<LocationMatch", "^/other", below("/a/"), Reach::Nothing),
            ("<LocationMatch", "^/a/x|^/b", below("/b/"), Reach::Where("^/a/x|^/b".to_owned())),
            ("<LocationMatch", ".*", below("/a/"), Reach::All),
            ("<LocationMatch", r"^/\.a/", one("/.a/b"), Reach::All),
        ];
        for (name, rest, place, wanted) in rows {
            assert_eq!(paths(&node(name, rest)).reach(&place), wanted, "{rest} {place:?}");
        }
        let tilde = node("<Location", "~ \"/x\"");
        assert_eq!(paths(&tilde), PathSet::Matching("/x".to_owned()));
    }

    #[test]
    fn addresses_of_a_proxy_are_compared_as_apache_does() {
        let rows = [
            ("<Proxy", "*", Reach::All),
            ("<Proxy", "http://b/", Reach::All),
            ("<Proxy", "http://b:8*", Reach::Nothing),
            ("<Proxy", "http://b/a/x", Reach::Some),
            ("<Proxy", "http://b/*/x", Reach::Some),
            ("<Proxy", "http://other/", Reach::Nothing),
            ("<ProxyMatch", "^http://other/", Reach::Nothing),
            ("<ProxyMatch", "^http://b/", Reach::All),
            ("<ProxyMatch", "adm", Reach::Some),
        ];
        for (name, rest, wanted) in rows {
            assert_eq!(proxy_reach(&node(name, rest), "http://b/a/"), wanted, "{rest}");
        }
    }

    #[test]
    fn wildcards_are_expressions() {
        assert_eq!(of_glob("/pri*/[!a-c].x?"), r"/pri[^/]*/(?!/)[^a-c]\.x[^/]");
        assert!(has_wildcard("/a[b]") && !has_wildcard("/a[b") && !has_wildcard(r"/a\*"));
    }
}
