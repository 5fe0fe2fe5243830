//! Removes fields: from stored responses, from responses to clients, and from upstream requests.

use bolide_http::{FieldMap, Hops, Name};

use crate::rules::claims;
use crate::rules::controls::{CONTROLS, is_for_cache_alone};
use crate::rules::policy::Mode;

/// Fields of a connection, not of a message (RFC 9110 §7.6.1, RFC 9111 §3.1).
const OF_CONNECTIONS: &[Name] = &[
    Name::Connection,
    Name::KeepAlive,
    Name::ProxyAuthenticate,
    Name::ProxyConnection,
    Name::Te,
    Name::Trailer,
    Name::TransferEncoding,
    Name::Upgrade,
];
/// Fields and prefixes that only a trusted cache in front may send.
const FORGERIES: &[&[u8]] =
    &[b"X-LSCACHE", b"X-LiteMage", b"X-LiteSpeed-", b"ESI-Referer", b"ESI-Content-Type"];
/// Fields of stored responses for a trusted cache in front.
const SHARED: &[&[u8]] = &[b"X-LiteSpeed-Cache-Control", b"X-LiteSpeed-Tag", b"X-LiteSpeed-Vary"];

/// Removes the fields that are not stored. Read `ETag` and `Last-Modified` before; the age is in
/// the decision.
pub fn for_store(answer: &mut FieldMap, mode: Mode) {
    Hops::of(answer).remove_named(answer);
    for &name in OF_CONNECTIONS {
        // As in nginx, it is told from a zone, too.
        if !(mode == Mode::Zone && name == Name::Upgrade) {
            answer.remove(name);
        }
    }
    answer.remove(Name::ContentLength);
    answer.remove(Name::Age);
    answer.remove_text(b"Proxy-Authentication-Info");
    if mode == Mode::Zone {
        return;
    }
    for name in [Name::Date, Name::Etag, Name::LastModified, Name::SetCookie] {
        answer.remove(name);
    }
    for_client(answer);
}

/// Copies the fields of `answer` that its application sends to the cache alone and that a 304 may
/// update: without purges, which are carried out once.
#[must_use]
pub fn controls(answer: &FieldMap) -> FieldMap {
    let mut kept = FieldMap::new();
    for field in answer.iter() {
        if is_for_cache_alone(field.text) && !claims::begins_as(field.text, b"X-LiteSpeed-Purge") {
            kept.push_text(field.text, field.value);
        }
    }
    kept
}

/// Adds the fields of `answer` that a cache in front gets with each hit; [`for_client`] removes
/// them for other clients. Purges are sent only once.
pub fn for_front(answer: &FieldMap, kept: &mut FieldMap) {
    for name in SHARED {
        for value in answer.all_text(name) {
            kept.push_text(name, value);
        }
    }
}

/// Removes the fields that clients do not get in locations with a page cache; a trusted cache in
/// front gets them. `CDN-Cache-Control` and `Cache-Groups` are for all caches and stay.
pub fn for_client(answer: &mut FieldMap) {
    answer.remove_text(b"X-LiteSpeed-Cache");
    for name in CONTROLS {
        answer.remove_text(name);
    }
}

/// Whether a client must not send this field to the application, unless it is a trusted cache in
/// front. `_` counts as `-`, because applications cannot distinguish them.
#[must_use]
pub fn is_forged(name: &[u8]) -> bool {
    FORGERIES.iter().any(|known| claims::begins_as(name, known))
}
