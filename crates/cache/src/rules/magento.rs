//! The rules of Magento 2 behind Varnish (`magento_cache`): which requests are looked up, what
//! tells their responses apart, which responses are stored, what clients see of them.
//!
//! All are pure functions, as those of the other modes. INVARIANT: a response that gives its client
//! another `X-Magento-Vary` than its request had belongs to neither variant and is not stored.

mod delivery;
mod purge;
mod query;
mod store;

use bolide_http::cookies::Cookies;
use bolide_http::{FieldMap, Name};

use crate::rules::gate::Bypass;
use crate::rules::identity::{Facts, KeyPiece, split_target};

pub use delivery::{MagentoDelivery, MagentoLook, deliver};
pub use purge::{MagentoOrder, MagentoPurge, magento_purge};
pub use query::clean_query;
pub use store::{ERROR_SECONDS, STALE_SECONDS};
pub(super) use store::{decide, is_markup};

/// The cookie that names the variant of a visitor: customer group, store, currency.
const VARY: &[u8] = b"X-Magento-Vary";
/// The field that names the variant of a GraphQL response.
const CACHE_ID: &[u8] = b"X-Magento-Cache-Id";

/// The field with the tags of a response; stored objects have it, clients do not.
pub const TAGS: &[u8] = b"X-Magento-Tags";

/// Whether the address of a request is one of GraphQL.
fn is_graphql(target: &[u8]) -> bool {
    has_part(target, &[b"/graphql"])
}

/// Whether `target` has one of these parts; however its path is spelled, the application
/// understands it.
fn has_part(target: &[u8], parts: &[&[u8]]) -> bool {
    if parts.iter().any(|part| contains(target, part)) {
        return true;
    }
    let path = split_target(target).0;
    let at = memchr::memchr_iter(b'/', path).chain(memchr::memchr_iter(b'%', path));
    let mut starts = at.map(|at| decoded(&path[at..]));
    memchr::memchr(b'%', path).is_some()
        && starts.any(|rest| parts.iter().any(|part| begins(rest.clone(), part)))
}

fn begins(rest: impl Iterator<Item = u8>, part: &[u8]) -> bool {
    rest.take(part.len()).eq(part.iter().copied())
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    memchr::memmem::find(text, part).is_some()
}

/// Whether a request has a token of a customer.
fn has_bearer(fields: &FieldMap) -> bool {
    let token = fields.get(Name::Authorization).and_then(|value| value.get(..6));
    token.is_some_and(|scheme| scheme.eq_ignore_ascii_case(b"Bearer"))
}

/// The path of `target` below `/` or `/pub/`.
fn path_below(target: &[u8]) -> &[u8] {
    let path = split_target(target).0;
    path.strip_prefix(b"/pub/").or_else(|| path.strip_prefix(b"/")).unwrap_or(path)
}

/// Whether `target` is one of files that Magento publishes, which pass.
#[must_use]
pub fn is_published(target: &[u8]) -> bool {
    let path = path_below(target);
    [&b"media/"[..], b"static/"].iter().any(|part| begins(decoded(path), part))
}

/// Whether a request passes before its query is cleaned: what it asks for is one visitor's own.
#[must_use]
pub fn is_own(target: &[u8]) -> bool {
    has_part(target, &[b"/customer", b"/checkout"]) || path_below(target) == b"health_check.php"
}

/// The bytes of a path, its escapes decoded.
fn decoded(path: &[u8]) -> impl Iterator<Item = u8> + Clone {
    let mut rest = path;
    std::iter::from_fn(move || {
        let digit = |at: usize| rest.get(at).and_then(|byte| char::from(*byte).to_digit(16));
        let (byte, len) = match (rest.first()?, digit(1), digit(2)) {
            (b'%', Some(high), Some(low)) => ((high << 4 | low) as u8, 3),
            (byte, _, _) => (*byte, 1),
        };
        rest = &rest[len..];
        Some(byte)
    })
}

/// Why a GET or HEAD is not looked up, if it is not.
pub(super) fn passes(facts: &Facts<'_>) -> Option<Bypass> {
    let is_token = || {
        is_graphql(facts.target)
            && facts.fields.get_text(CACHE_ID).is_none()
            && has_bearer(facts.fields)
    };
    (is_own(facts.target) || is_published(facts.target) || is_token()).then_some(Bypass::Magento)
}

/// Calls `take` with what tells the responses of an address apart: the visitor's variant, and of
/// GraphQL what its clients say instead.
pub fn variant<'a>(facts: &Facts<'a>, cookies: &Cookies<'a>, mut take: impl FnMut(KeyPiece<'a>)) {
    let is_graphql = is_graphql(facts.target);
    let id = facts.fields.get_text(CACHE_ID).filter(|_| is_graphql);
    if id.is_none() {
        for (sent, value) in cookies.read_as(VARY) {
            take(KeyPiece::MagentoVary(sent, value));
        }
    }
    if !is_graphql {
        return;
    }
    debug_assert!(id.is_none_or(|id| !id.contains(&b'\n')), "a field has one line");
    let is_authorized = id.is_some() && has_bearer(facts.fields);
    take(KeyPiece::GraphQl(b"authorized", is_authorized.then_some(&b"1"[..])));
    for name in [CACHE_ID, b"Store", b"Content-Currency"] {
        let mut lines = facts.fields.all_text(name).peekable();
        if lines.peek().is_none() {
            take(KeyPiece::GraphQl(name, None));
        }
        lines.for_each(|line| take(KeyPiece::GraphQl(name, Some(line))));
    }
}

#[cfg(test)]
mod tests;
