//! Cache keys: all keys of responses are built here.
//!
//! A key has the URL as the client requested it (site, scheme, host, port, path and query), and
//! vary values: how applications may read the URL, how the request arrived at its location, cookies
//! and fields of visitors; and the session, if the response is private. Easiest to break: a key is
//! built only after access was granted in the location, and the key of a page never for a request
//! that was refused before.

use bolide_cache::rules::{self, Environment, Facts, KeyPiece};
use bolide_cache::{KeyBuilder, NamespaceId, SessionKey};
use bolide_conf::model::{QueryPattern, VaryBy};
use bolide_http::FieldMap;
use bolide_http::cookies::Cookies;

use crate::caching::Caching;
use crate::caching::arrival::varying_origin;
use crate::vars::VariableScope;
use crate::vars::preview::preview;

/// Sets `keys` to the key of a page at `url`, with the vary values that are known before the
/// response; `value` replaces the vary value of rewrite rules.
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

/// Sets `keys` to the key of a page with `no-vary`.
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

/// Sets `keys` to the key of a zone, whose text the configuration made.
pub(crate) fn zone_key(keys: &mut KeyBuilder, (space, text): (NamespaceId, &[u8]), arrival: &[u8]) {
    keys.start(space);
    keys.push_url(text);
    if !arrival.is_empty() {
        push_piece(keys, KeyPiece::Arrival(arrival));
    }
}

/// The id of an ESI page in the keys of its inlines: of this very response, so that what came with
/// one variant, or before a change, is used with no other.
pub(crate) fn page_id(id: [u64; 2]) -> [u8; 16] {
    let [high, low] = id.map(u64::to_be_bytes);
    let mut out = [0; 16];
    out[..8].copy_from_slice(&high);
    out[8..].copy_from_slice(&low);
    out
}

/// The facts for the key of an ESI inline: it belongs to the page, so arrival does not count.
pub(crate) const fn for_inlines<'a>(facts: &Facts<'a>) -> Facts<'a> {
    Facts { arrival: b"", ..*facts }
}

/// Adds the vary value of an inline for its page: what the response of `by` contains for a fragment
/// is used only for includes of that fragment in pages that use `by` as well. So a
/// client that makes a page name a URL of its choice affects no other page.
pub(crate) fn push_combined(keys: &mut KeyBuilder, by: &[u8]) {
    // No URL begins like that.
    push_piece(keys, KeyPiece::Inline(&[b"\x01", by].concat()));
}

/// Sets `keys` to the key by which includes of a site find private objects with these tags,
/// whatever their URL.
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
    // No URL begins like that.
    push_piece(keys, KeyPiece::Inline(&[b"\0", tags].concat()));
}

/// Adds one vary value to a key.
pub(crate) fn push_piece(keys: &mut KeyBuilder, piece: KeyPiece<'_>) {
    keys.push_vary_writing(|out| piece.push(out));
}

/// Adds the vary values for the names that responses gave.
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

/// Appends the session of a request for its key; nothing if it has none.
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

/// Writes the arrival of a request for its key; to be called where it depended on more than the
/// URL. In zones, whose keys the configuration makes, only internal redirects count. Parameters
/// that keys omit from the query are omitted here as well.
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
    let origin = location.pass.as_ref().map(|pass| &pass.conf.to).and_then(varying_origin);
    let sent = caching.is_page().then_some(&location.sent).filter(|sent| !sent.is_empty());
    if location.fixed_root.is_some() && origin.is_none() && sent.is_none() {
        return;
    }
    preview(scope, |scope| {
        if location.fixed_root.is_none() {
            out.push(b'\0');
            scope.push_root(location, out);
        }
        if let Some(template) = origin {
            let start = out.len();
            scope.expand(template, out);
            let len = (out.len() - start) as u64;
            out.extend_from_slice(&len.to_be_bytes());
        }
        if let Some(sent) = sent {
            sent.push(scope, out);
        }
    });
}
