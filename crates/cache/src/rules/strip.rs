//! Fields that go: from what is kept, from what a client is sent, from what an origin is asked.

use bolide_http::{FieldMap, Hops, Name};

use crate::rules::claims;
use crate::rules::policy::Mode;

/// Of one connection, not of a message (RFC 9110 §7.6.1, RFC 9111 §3.1).
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
/// What applications tell the cache and nobody else.
const CONTROLS: &[&[u8]] = &[
    b"X-LiteSpeed-Cache-Control",
    b"X-LiteSpeed-Tag",
    b"X-LiteSpeed-Purge",
    b"X-LiteSpeed-Purge2",
    b"X-LiteSpeed-Vary",
    b"LSC-Cookie",
    b"Bolide-Cache-Control",
    b"Surrogate-Control",
    b"Surrogate-Key",
    b"xkey",
    b"Edge-Cache-Tag",
    b"X-Cache-Tags",
    b"X-Magento-Tags",
];
/// What only a cache in front of this server may say, and every name that begins so.
const FORGERIES: &[&[u8]] =
    &[b"X-LSCACHE", b"X-LiteMage", b"X-LiteSpeed-", b"ESI-Referer", b"ESI-Content-Type"];
/// What a trusted cache in front is told of a kept answer.
const SHARED: &[&[u8]] = &[b"X-LiteSpeed-Cache-Control", b"X-LiteSpeed-Tag", b"X-LiteSpeed-Vary"];

/// Removes what is not kept of an answer. Its `ETag` and `Last-Modified` are to be noted before;
/// the age it came with is in the decision.
pub fn for_store(answer: &mut FieldMap, mode: Mode) {
    Hops::of(answer).remove_named(answer);
    for &name in OF_CONNECTIONS {
        answer.remove(name);
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

/// Adds to what is kept of `answer` that which a cache in front is told with each delivery;
/// [`for_client`] removes it again for others. What is to be purged is said only once.
pub fn for_front(answer: &FieldMap, kept: &mut FieldMap) {
    for name in SHARED {
        for value in answer.all_text(name) {
            kept.push_text(name, value);
        }
    }
}

/// Removes what a client is not told, kept or not, in locations with a page cache; a trusted cache
/// in front is told everything. `CDN-Cache-Control` and `Cache-Groups` are for all caches and stay.
pub fn for_client(answer: &mut FieldMap) {
    answer.remove_text(b"X-LiteSpeed-Cache");
    for name in CONTROLS {
        answer.remove_text(name);
    }
}

/// Whether a client may not say this to the application, unless it is a trusted cache in front;
/// `_` is taken for `-`, because applications do not see the difference.
#[must_use]
pub fn is_forged(name: &[u8]) -> bool {
    FORGERIES.iter().any(|known| claims::begins_as(name, known))
}
