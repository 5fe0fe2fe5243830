//! Revalidation of stored responses, and invalidation by other responses.

use bolide_http::conditional::{Comparison, matches};
use bolide_http::message::Scheme;
use bolide_http::vary::VaryField;
use bolide_http::{FieldMap, Name, date};

use crate::rules::decide::AnswerFacts;
use crate::rules::identity::Facts;

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
        let text = text.split(|&byte| byte == b'#').next().unwrap_or_default();
        if let Some(path) = own_path(facts, text)
            && !targets.iter().any(|known| known == path)
        {
            targets.push(path.to_vec());
        }
    }
    targets
}

/// The path and query of a URL on the same origin.
fn own_path<'a>(facts: &Facts<'_>, text: &'a [u8]) -> Option<&'a [u8]> {
    if text.starts_with(b"/") && !text.starts_with(b"//") {
        return Some(text);
    }
    let (scheme, default_port) = match facts.scheme {
        Scheme::Http => (&b"http://"[..], 80),
        Scheme::Https => (&b"https://"[..], 443),
    };
    let (start, rest) = text.split_at_checked(scheme.len())?;
    let slash = memchr::memchr(b'/', rest)?;
    let (authority, path) = rest.split_at(slash);
    let (host, port) = match memchr::memrchr(b':', authority) {
        Some(at) if !authority.ends_with(b"]") => {
            let port = std::str::from_utf8(&authority[at + 1..]).ok()?;
            (&authority[..at], port.parse().ok()?)
        }
        _ => (authority, default_port),
    };
    let is_same = start.eq_ignore_ascii_case(scheme)
        && host.eq_ignore_ascii_case(facts.host)
        && port == facts.port;
    is_same.then_some(path)
}
