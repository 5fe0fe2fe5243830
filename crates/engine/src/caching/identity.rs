//! The cache identity: what a request is known by in the store. The keys of answers are made here.
//!
//! A key is the address that the client asked for (site, scheme, host, port, path and query) and
//! pieces that tell its requests apart: how applications may read the address, how the request
//! arrived where it is answered, what visitors bring; and the session, for what is private. Easiest
//! to break: a key is made only after access was granted in the location that answers, and that of
//! a page never for a request that was refused on its way there.

use bolide_cache::rules::{self, Environment, Facts, KeyPiece};
use bolide_cache::{KeyBuilder, NamespaceId, SessionKey};
use bolide_conf::model::{QueryPattern, VaryBy};
use bolide_http::FieldMap;
use bolide_http::cookies::Cookies;

use crate::caching::Caching;
use crate::caching::arrival::varying_origin;
use crate::vars::VariableScope;

/// Makes `keys` that of a page at `url`, with what tells requests apart before an answer is there;
/// `value` stands in place of the vary value of rewrite rules.
pub(crate) fn page_key(
    keys: &mut KeyBuilder,
    (space, url): (NamespaceId, &[u8]),
    facts: &Facts<'_>,
    caching: &Caching,
    cookies: &Cookies<'_>,
    value: Option<&[u8]>,
) {
    let environment = facts.environment;
    if environment.control.no_vary {
        return unvaried_key(keys, (space, url), facts);
    }
    keys.start(space);
    keys.push_url(url);
    let mut push = |piece: KeyPiece<'_>| keys.push_vary_writing(|out| piece.push(out));
    rules::of_address(facts, &mut push);
    rules::vary_base(&caching.policy, environment, cookies, value, &mut push);
    if caching.is_magento() {
        rules::magento::variant(facts, cookies, &mut push);
    }
    for by in caching.conf.page.vary.iter() {
        if let VaryBy::Header(name) = by {
            push_named(keys, [&**name], facts.fields, cookies);
        }
    }
}

/// Makes `keys` that of the one copy of a page that says `no-vary`.
pub(crate) fn unvaried_key(
    keys: &mut KeyBuilder,
    (space, url): (NamespaceId, &[u8]),
    facts: &Facts<'_>,
) {
    keys.start(space);
    keys.push_url(url);
    let mut push = |piece: KeyPiece<'_>| keys.push_vary_writing(|out| piece.push(out));
    rules::of_address(facts, &mut push);
    push(KeyPiece::Unvaried);
}

/// Makes `keys` that of a zone's answer, for which the configuration made `text`.
pub(crate) fn zone_key(keys: &mut KeyBuilder, (space, text): (NamespaceId, &[u8]), arrival: &[u8]) {
    keys.start(space);
    keys.push_url(text);
    if !arrival.is_empty() {
        push_piece(keys, KeyPiece::Arrival(arrival));
    }
}

/// What an inline of ESI is known by: its place is in the page, not where a request would arrive.
pub(crate) const fn for_inlines<'a>(facts: &Facts<'a>) -> Facts<'a> {
    Facts { arrival: b"", ..*facts }
}

/// Adds what an inline has for its page: what the answer of `by` brought for a fragment is for
/// includes of that fragment alone, in pages that have `by` asked, too. So who can have a page name
/// an address of his choice reaches no other page.
pub(crate) fn push_combined(keys: &mut KeyBuilder, by: &[u8]) {
    // No address begins like that.
    push_piece(keys, KeyPiece::Inline(&[b"\x01", by].concat()));
}

/// Makes `keys` that by which includes of a site find what names these tags, whatever its address.
pub(crate) fn shared_key(
    keys: &mut KeyBuilder,
    space: NamespaceId,
    (facts, cookies): (&Facts<'_>, &Cookies<'_>),
    caching: &Caching,
    (tags, varies): (&[u8], bool),
) {
    let (mut url, facts) = (Vec::new(), for_inlines(facts));
    rules::url_of(&mut url, &facts, b"/", &caching.policy);
    match varies {
        true => page_key(keys, (space, &url), &facts, caching, cookies, None),
        false => unvaried_key(keys, (space, &url), &facts),
    }
    // No address begins like that.
    push_piece(keys, KeyPiece::Inline(&[b"\0", tags].concat()));
}

/// Adds one more piece to a key.
pub(crate) fn push_piece(keys: &mut KeyBuilder, piece: KeyPiece<'_>) {
    keys.push_vary_writing(|out| piece.push(out));
}

/// Adds what tells requests apart by the names that answers gave.
pub(crate) fn push_named<'a>(
    keys: &mut KeyBuilder,
    names: impl IntoIterator<Item = &'a [u8]>,
    fields: &FieldMap,
    cookies: &Cookies<'_>,
) {
    for name in names {
        keys.push_vary_writing(|out| rules::named(out, name, fields, cookies));
    }
}

/// Appends what the session of a request is known by; nothing if it has none.
pub(crate) fn push_session(out: &mut Vec<u8>, cookies: &Cookies<'_>, patterns: &[QueryPattern]) {
    let is_session = |name: &[u8]| patterns.iter().any(|one| one.matches_in_any_case(name));
    rules::session(out, cookies, is_session);
}

/// The public key or that of a session.
pub(crate) fn key_of<'a>(
    keys: &'a KeyBuilder,
    session: Option<SessionKey<'a>>,
) -> bolide_cache::CacheKey<'a> {
    match session {
        Some(session) => keys.private(session),
        None => keys.public(),
    }
}

/// Writes how the request arrived, for the key of its answer; to be called where that depended
/// on more than the address. In zones, whose keys the configuration makes, only turns count. What
/// keys leave out of the query, they leave out of the one that it came with.
pub(crate) fn write_arrival(
    scope: &VariableScope<'_>,
    caching: &Caching,
    environment: &Environment,
    out: &mut Vec<u8>,
) {
    out.clear();
    let request = scope.request;
    let arrival = &request.arrival;
    let location = scope.location();
    if !caching.is_page() && arrival.turns.is_empty() {
        return;
    }
    out.extend_from_slice(&arrival.turns);
    out.push(b'\0');
    out.extend_from_slice(&location.key_name);
    out.push(b'\0');
    out.extend_from_slice(&request.uri);
    out.push(b'?');
    rules::query_of(out, request.args(), &caching.policy, environment);
    if location.fixed_root.is_none() {
        out.push(b'\0');
        scope.push_root(location, out);
    }
    let origin = location.pass.as_ref().map(|pass| &pass.conf.to);
    if let Some(template) = origin.and_then(varying_origin) {
        out.push(b'\0');
        scope.expand(template, out);
    }
}
