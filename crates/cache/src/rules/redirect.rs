//! Redirects that lead back to the key under which they would be stored.
//!
//! An application redirects to another spelling of the same URL, for example without parameters
//! that keys exclude. Stored, such a redirect answers the URL that it leads to: a loop for every
//! client.

use bolide_http::{Name, Scheme};

use super::decide::AnswerFacts;
use super::identity::{Facts, push_target, split_target};
use super::policy::CachePolicy;

/// Whether a response redirects to a URL that has the key of its request. The host and the scheme
/// are compared as the client used them, also behind a proxy that says so.
pub(super) fn leads_to_own_key(
    policy: &CachePolicy,
    facts: &Facts<'_>,
    answer: &AnswerFacts<'_>,
) -> bool {
    if !matches!(answer.status, 301 | 302 | 303 | 307 | 308) {
        return false;
    }
    let Some(location) = answer.fields.get(Name::Location) else { return false };
    if names_other_scheme(location, facts) {
        return false;
    }
    let is_own = |authority: &[u8]| is_same_authority(authority, facts.authority);
    // A location without a path, or with a fragment alone, is the same page.
    let target = match bolide_esi::source::resolve(location, facts.target, is_own) {
        Ok(target) => target,
        Err(bolide_esi::source::SourceError::Empty) => return true,
        Err(bolide_esi::source::SourceError::Foreign) => return false,
    };
    let rules = [&policy.query, &facts.environment.query];
    let (mut own, mut other) = (Vec::new(), Vec::new());
    push_target(&mut own, &without_dots(facts.target), rules);
    push_target(&mut other, &without_dots(&target), rules);
    own == other
}

/// A target without dot segments (RFC 3986 §5.2.4), as a browser requests it; `%2e` is a dot, too.
fn without_dots(target: &[u8]) -> Vec<u8> {
    let (path, query) = split_target(target);
    let mut kept: Vec<&[u8]> = Vec::new();
    let mut segments = path.split(|byte| *byte == b'/').skip(1).peekable();
    while let Some(segment) = segments.next() {
        let text = String::from_utf8_lossy(segment).to_ascii_lowercase().replace("%2e", ".");
        match text.as_str() {
            "." => {}
            ".." => drop(kept.pop()),
            _ => {
                kept.push(segment);
                continue;
            }
        }
        if segments.peek().is_none() {
            kept.push(b"");
        }
    }
    let query = query.map(|query| [b"?", query].concat()).unwrap_or_default();
    [b"/", &*kept.join(&b'/'), &query].concat()
}

/// Whether an absolute URL has another scheme than the one by which the client came.
fn names_other_scheme(location: &[u8], facts: &Facts<'_>) -> bool {
    let Some(colon) = memchr::memchr(b':', location) else { return false };
    let is_secure = match facts.fields.get(Name::XForwardedProto) {
        Some(said) => said.eq_ignore_ascii_case(b"https"),
        None => facts.scheme == Scheme::Https,
    };
    match &location[..colon] {
        scheme if scheme.eq_ignore_ascii_case(b"http") => is_secure,
        scheme if scheme.eq_ignore_ascii_case(b"https") => !is_secure,
        _ => false,
    }
}

/// Whether two authorities are equal but for a port that needs not be written.
fn is_same_authority(one: &[u8], other: &[u8]) -> bool {
    without_usual_port(one).eq_ignore_ascii_case(without_usual_port(other))
}

fn without_usual_port(authority: &[u8]) -> &[u8] {
    [&b":80"[..], b":443", b":"]
        .into_iter()
        .find_map(|port| authority.strip_suffix(port))
        .unwrap_or(authority)
}
