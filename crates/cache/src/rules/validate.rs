//! Revalidation of stored responses, and invalidation by other responses.

use bolide_http::conditional::{Comparison, matches};
use bolide_http::lscache;
use bolide_http::message::Scheme;
use bolide_http::vary::VaryField;
use bolide_http::{FieldMap, Name, date};

use crate::rules::decide::AnswerFacts;
use crate::rules::identity::Facts;

const LS_VARY: &[u8] = b"X-LiteSpeed-Vary";

/// Adds the conditions that let an upstream validate a stored response (RFC 9111 §4.3.1). Returns
/// whether there are any.
pub fn conditions(etag: Option<&[u8]>, modified: Option<&[u8]>, request: &mut FieldMap) -> bool {
    for name in [
        Name::IfNoneMatch,
        Name::IfModifiedSince,
        Name::IfMatch,
        Name::IfUnmodifiedSince,
        Name::IfRange,
        Name::Range,
    ] {
        request.remove(name);
    }
    if let Some(etag) = etag {
        request.push(Name::IfNoneMatch, etag);
    }
    if let Some(modified) = modified {
        request.push(Name::IfModifiedSince, modified);
    }
    etag.is_some() || modified.is_some()
}

/// Whether a 304 validates the stored response with these validators (RFC 9111 §4.3.4): its
/// validators are equal, or it has none.
#[must_use]
pub fn is_same(etag: Option<&[u8]>, modified: Option<u64>, confirmation: &FieldMap) -> bool {
    if let Some(new) = confirmation.get(Name::Etag) {
        // A strong validator validates only by strong comparison.
        let how = if new.starts_with(b"W/") { Comparison::Weak } else { Comparison::Strong };
        return match etag {
            Some(old) => matches(new, Some(old), how),
            None => false,
        };
    }
    match (confirmation.get(Name::LastModified), modified) {
        // Dates have several forms (RFC 9110 §5.6.7).
        (Some(new), Some(old)) => date::parse(new) == Some(old),
        (Some(_), None) | (None, _) => true,
    }
}

/// Whether `confirmation` names request fields that did not select the stored response with the
/// fields `kept` (RFC 9111 §4.1); it would serve requests that differ in them.
#[must_use]
pub fn varies_by_more(kept: &FieldMap, confirmation: &FieldMap) -> bool {
    // Without a coding it is for all who accept codings, too.
    let is_coded = kept.get(Name::ContentEncoding).is_some();
    let known = VaryField::of(kept);
    let vary = VaryField::of(confirmation);
    // RFC 9110 §12.5.5: more than names of fields decides.
    if vary == VaryField::Anything {
        return true;
    }
    let is_new = |name: &[u8]| !known.names().iter().any(|known| **known == *name);
    vary.names().iter().any(|name| is_new(name) && (is_coded || **name != *b"accept-encoding"))
}

/// As [`varies_by_more`], by `X-LiteSpeed-Vary`.
#[must_use]
pub fn is_keyed_by_more(kept: &FieldMap, confirmation: &FieldMap) -> bool {
    let known = || kept.all_text(LS_VARY).flat_map(lscache::varies);
    let mut new = confirmation.all_text(LS_VARY).flat_map(lscache::varies);
    new.any(|word| known().all(|known| known != word))
}

/// Updates the fields of a stored response from the 304 that validated it (RFC 9111 §3.2). Fields
/// that describe the stored body stay.
pub fn freshen(kept: &mut FieldMap, confirmation: &FieldMap) {
    let stays = |name: Name| {
        matches!(
            name,
            Name::ContentEncoding
                | Name::ContentLength
                | Name::ContentRange
                | Name::ContentType
                | Name::TransferEncoding
                | Name::Connection
                | Name::KeepAlive
                | Name::SetCookie
                | Name::Trailer
                | Name::Upgrade
        )
    };
    for field in confirmation.iter().filter(|field| !stays(field.name)) {
        kept.remove_text(field.text);
    }
    for field in confirmation.iter().filter(|field| !stays(field.name)) {
        kept.push_parsed(field.name, field.text, field.value);
    }
}

/// The paths with queries that a response to an unsafe request invalidates (RFC 9111 §4.4): the
/// target, and `Location` and `Content-Location` on the same origin.
#[must_use]
pub fn invalidated(facts: &Facts<'_>, answer: &AnswerFacts<'_>) -> Vec<Vec<u8>> {
    let mut targets = Vec::new();
    if facts.method.is_safe()
        || facts.method == bolide_http::Method::Purge
        || !(200..400).contains(&answer.status)
    {
        return targets;
    }
    targets.push(facts.target.to_vec());
    for name in [Name::Location, Name::ContentLocation] {
        let Some(text) = answer.fields.get(name) else { continue };
        if let Some(path) = own_path(facts, text)
            && !targets.contains(&path)
        {
            targets.push(path);
        }
    }
    targets
}

/// The path and query of a reference to a URL on the same origin, relative to the request's target
/// (RFC 3986 §5.2.2).
fn own_path(facts: &Facts<'_>, reference: &[u8]) -> Option<Vec<u8>> {
    let text = reference.split(|&byte| byte == b'#').next().unwrap_or_default();
    let text = match scheme_of(text) {
        Some(scheme) => {
            let own: &[u8] = match facts.scheme {
                Scheme::Http => b"http",
                Scheme::Https => b"https",
            };
            let rest = &text[scheme.len() + 1..];
            if !scheme.eq_ignore_ascii_case(own) || !rest.starts_with(b"//") {
                return None;
            }
            rest
        }
        None => text,
    };
    if let Some(rest) = text.strip_prefix(b"//") {
        let end = rest.iter().position(|byte| b"/?".contains(byte)).unwrap_or(rest.len());
        let (authority, rest) = rest.split_at(end);
        let (path, query) = split_query(rest);
        return is_own(facts, authority).then(|| joined(path, query));
    }
    let (path, query) = split_query(text);
    let (base, base_query) = split_query(facts.target);
    match path {
        [] if query.is_empty() => Some(joined(base, base_query)),
        [] => Some(joined(base, query)),
        [b'/', ..] => Some(joined(path, query)),
        _ => {
            let directory = base.iter().rposition(|&byte| byte == b'/').map_or(0, |at| at + 1);
            Some(joined(&[&base[..directory], path].concat(), query))
        }
    }
}

/// The scheme of a reference that has one.
fn scheme_of(text: &[u8]) -> Option<&[u8]> {
    let end = text.iter().position(|byte| b":/?".contains(byte))?;
    let is_scheme = |byte: &u8| byte.is_ascii_alphanumeric() || b"+-.".contains(byte);
    let scheme = &text[..end];
    let is_one = scheme.first().is_some_and(u8::is_ascii_alphabetic);
    (text[end] == b':' && is_one && scheme.iter().all(is_scheme)).then_some(scheme)
}

/// Path and query, which begins with `?`.
fn split_query(text: &[u8]) -> (&[u8], &[u8]) {
    text.split_at(memchr::memchr(b'?', text).unwrap_or(text.len()))
}

/// A path without dot segments (RFC 3986 §5.2.4), and a query.
fn joined(path: &[u8], query: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(path.len() + query.len() + 1);
    let path = path.strip_prefix(b"/").unwrap_or(path);
    let mut segments = path.split(|&byte| byte == b'/').peekable();
    while let Some(segment) = segments.next() {
        match segment {
            b"." => {}
            b".." => out.truncate(memchr::memrchr(b'/', &out).unwrap_or(0)),
            other => {
                out.push(b'/');
                out.extend_from_slice(other);
                continue;
            }
        }
        if segments.peek().is_none() {
            out.push(b'/');
        }
    }
    debug_assert!(out.starts_with(b"/"), "a target is an absolute path");
    out.extend_from_slice(query);
    out
}

/// Whether an authority is that of the request's origin.
fn is_own(facts: &Facts<'_>, authority: &[u8]) -> bool {
    let default_port = match facts.scheme {
        Scheme::Http => 80,
        Scheme::Https => 443,
    };
    let (host, port) = match memchr::memrchr(b':', authority) {
        Some(at) if !authority.ends_with(b"]") => {
            let port = std::str::from_utf8(&authority[at + 1..]);
            match port.ok().filter(|port| !port.is_empty()).map(str::parse) {
                Some(Ok(port)) => (&authority[..at], port),
                Some(Err(_)) => return false,
                None => (&authority[..at], default_port),
            }
        }
        _ => (authority, default_port),
    };
    host.eq_ignore_ascii_case(facts.host) && port == facts.port
}

#[cfg(test)]
mod tests {
    use bolide_http::FieldMap;

    use super::own_path;
    use crate::rules::{Environment, tests::facts};

    #[test]
    fn references_are_resolved_on_the_origin_of_the_request() {
        let (fields, environment) = (FieldMap::new(), Environment::default());
        let facts = facts(&fields, "/b/c/d?q", &environment);
        for (reference, path) in [
            // RFC 3986 §5.4, as far as it concerns HTTP.
            ("g", "/b/c/g"),
            ("./g", "/b/c/g"),
            ("g/", "/b/c/g/"),
            ("/g", "/g"),
            ("//a.test/g", "/g"),
            ("?y", "/b/c/d?y"),
            ("g?y", "/b/c/g?y"),
            ("#s", "/b/c/d?q"),
            ("g#s", "/b/c/g"),
            ("g?y#s", "/b/c/g?y"),
            (";x", "/b/c/;x"),
            ("", "/b/c/d?q"),
            (".", "/b/c/"),
            ("./", "/b/c/"),
            ("..", "/b/"),
            ("../", "/b/"),
            ("../g", "/b/g"),
            ("../..", "/"),
            ("../../../g", "/g"),
            ("/./g", "/g"),
            ("/../g", "/g"),
            ("g.", "/b/c/g."),
            ("..g", "/b/c/..g"),
            ("./g/.", "/b/c/g/"),
            ("g/./h", "/b/c/g/h"),
            ("g/../h", "/b/c/h"),
            ("g;x=1/../y", "/b/c/y"),
            ("g?y/../x", "/b/c/g?y/../x"),
            ("a:8", ""),
            ("./a:8", "/b/c/a:8"),
            ("HTTPS://A.TEST/g", "/g"),
            ("https://a.test:443/g?x#y", "/g?x"),
            ("https://a.test:/g", "/g"),
            ("https://a.test", "/"),
            ("https://a.test?x", "/?x"),
            ("//a.test:8443/g", ""),
            ("//b.test/g", ""),
            ("http://a.test/g", ""),
            ("https:g", ""),
            ("https:///g", ""),
            ("https://a.test:x/g", ""),
        ] {
            let found = own_path(&facts, reference.as_bytes()).unwrap_or_default();
            assert_eq!(String::from_utf8_lossy(&found), path, "{reference}");
        }
    }
}
