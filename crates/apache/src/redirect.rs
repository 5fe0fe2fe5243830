//! `Redirect` and its kin outside of sections, as `rewrite`, which comes before everything else.

use crate::expression::quoted_regex;
use crate::out::ConfText;
use crate::tree::ApacheNode;
use crate::words::{escaped, has_variable, quoted};

/// How it is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RedirectStatus {
    Permanent,
    Temporary,
    /// Another redirect, or an error.
    Other(u16),
}

/// A `Redirect` in its parts.
#[derive(Debug)]
struct Parts {
    status: RedirectStatus,
    from: String,
    to: Option<String>,
}

/// Writes one. `before` are paths that are proxied, which come first in Apache.
pub(crate) fn write(node: &ApacheNode, before: &[String], out: &mut ConfText) {
    let Some(parts) = parts(node) else { return closed(node, "not understood", out) };
    let is_match = node.lower == "redirectmatch";
    let from = &parts.from;
    if !is_match && before.iter().any(|path| covers(path, from)) {
        out.note(&node.place, format!("{} {}: the proxy answers there", node.name, node.rest));
        return;
    }
    let skips: Vec<_> = before
        .iter()
        .filter(|path| is_match || covers(from, path))
        .map(|path| format!("{}(?:/|$)", escaped(path.trim_end_matches('/'))))
        .collect();
    let skip = match skips.is_empty() {
        true => String::new(),
        false => format!("(?!(?:{}))", skips.join("|")),
    };
    let (regex, to) = match (is_match, &parts.to) {
        (true, to) => (guarded(from, &skip), to.clone()),
        (false, to) => {
            let bare = from.trim_end_matches('/');
            let closed = from.ends_with('/');
            let rest = if closed { "/(.*)$" } else { "(|/.*)$" };
            let regex = format!("^{skip}{}{rest}", escaped(bare));
            (regex, to.as_ref().map(|to| format!("{to}$1")))
        }
    };
    let Some(to) = to else {
        let RedirectStatus::Other(status) = parts.status else {
            return closed(node, "without an address", out);
        };
        let uri = quoted_regex(&regex);
        return out.put(&node.place, format!("if ($uri ~ {uri}) {{ return {status}; }}"));
    };
    // Apache sends none of these characters as a variable.
    let literal = to.replace("$1", "").replace(|one: char| one.is_ascii_digit(), "");
    let literal = if is_match { literal.replace('$', "") } else { literal };
    if has_variable(&literal) || to.contains('\\') {
        return closed(node, "an address with a $", out);
    }
    let kind = match parts.status {
        RedirectStatus::Permanent => "permanent",
        RedirectStatus::Temporary => "redirect",
        RedirectStatus::Other(status) => return other(node, status, &parts, &regex, out),
    };
    out.put(&node.place, format!("rewrite {} {} {kind};", quoted_regex(&regex), quoted(&to)));
}

/// A status that `rewrite` has not.
fn other(node: &ApacheNode, status: u16, parts: &Parts, regex: &str, out: &mut ConfText) {
    let to = parts.to.as_deref().unwrap_or_default();
    let uri = quoted_regex(regex);
    if node.lower != "redirectmatch" && parts.from == "/" && to.ends_with('/') {
        let to = quoted(&format!("{}$request_uri", to.trim_end_matches('/')));
        return out.put(&node.place, format!("if ($uri ~ {uri}) {{ return {status} {to}; }}"));
    }
    if !to.contains('$') && node.lower == "redirectmatch" {
        let to = quoted(&format!("{to}$is_args$args"));
        return out.put(&node.place, format!("if ($uri ~ {uri}) {{ return {status} {to}; }}"));
    }
    out.comment_closed(&node.place, format_args!("{} {}", node.name, node.rest));
    out.own(format!("if ($uri ~ {uri}) {{ return 503; }}"));
}

fn closed(node: &ApacheNode, why: &str, out: &mut ConfText) {
    out.comment_closed(&node.place, format_args!("{} {}: {why}", node.name, node.rest));
    out.own("return 503;");
}

/// Whether `prefix` is that of `path`, part by part.
pub(crate) fn covers(prefix: &str, path: &str) -> bool {
    let bare = prefix.trim_end_matches('/');
    path.strip_prefix(bare).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// The text with which all that an expression finds begins, and whether it says nothing else.
pub(crate) fn literal_start(regex: &str) -> (String, bool) {
    let Some(rest) = regex.strip_prefix('^').filter(|rest| !rest.contains('|')) else {
        return (String::new(), false);
    };
    let rest = rest.strip_suffix(".*").or(rest.strip_suffix("(.*)")).unwrap_or(rest);
    let mut text = String::new();
    let mut all = rest.chars().peekable();
    while let Some(one) = all.next() {
        let literal = match one {
            '\\' => all.next().filter(char::is_ascii_punctuation),
            '.' | '*' | '+' | '?' | '^' | '$' | '(' | ')' | '[' | ']' | '{' | '}' => None,
            other => Some(other),
        };
        // What may be there any number of times may be missing.
        match literal.filter(|_| !matches!(all.peek(), Some('*' | '?' | '{'))) {
            Some(literal) => text.push(literal),
            None => return (text, false),
        }
    }
    (text, true)
}

fn guarded(regex: &str, skip: &str) -> String {
    match (skip.is_empty(), regex.strip_prefix('^')) {
        (true, _) => regex.to_owned(),
        (false, Some(rest)) if !regex.contains('|') => format!("^{skip}{rest}"),
        (false, _) => format!("^{skip}(?=.*(?:{regex}))"),
    }
}

fn parts(node: &ApacheNode) -> Option<Parts> {
    let mut words = node.words();
    let mut status = match &node.lower[..] {
        "redirectpermanent" => RedirectStatus::Permanent,
        _ => RedirectStatus::Temporary,
    };
    if matches!(&node.lower[..], "redirect" | "redirectmatch") && words.len() >= 2 {
        let named = match &words[0].to_ascii_lowercase()[..] {
            "permanent" | "301" => Some(RedirectStatus::Permanent),
            "temp" | "302" => Some(RedirectStatus::Temporary),
            "seeother" => Some(RedirectStatus::Other(303)),
            "gone" => Some(RedirectStatus::Other(410)),
            word => word.parse().ok().map(RedirectStatus::Other),
        };
        if let Some(named) = named {
            status = named;
            words.remove(0);
        }
    }
    let mut words = words.into_iter();
    let (from, to) = (words.next()?, words.next());
    let is_path = from.starts_with('/') || node.lower == "redirectmatch";
    let is_status = match status {
        RedirectStatus::Other(status) => (300..600).contains(&status),
        _ => true,
    };
    (is_path && is_status && words.next().is_none()).then_some(Parts { status, from, to })
}
