//! What clients see of Magento's responses: nothing that lets them or proxies keep a page.
//!
//! Owns the fields that are cut and those that take their place; they are edited before what the
//! configuration adds.

use bolide_http::{FieldMap, Name};

use super::is_published;

/// Fields between the application and its cache.
const INTERNAL: [&[u8]; 4] = [b"X-Magento-Debug", b"X-Magento-Tags", b"X-Powered-By", b"X-Varnish"];

/// What clients get instead of a page's own words.
pub(super) const NO_STORE: &[u8] = b"no-store, no-cache, must-revalidate, max-age=0";

/// Where a response comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MagentoLook {
    /// The store, or a fetch that is stored: it is for every client of its variant.
    Shared,
    /// The upstream, for one client.
    Passed,
}

/// How a response is delivered.
#[derive(Clone, Copy, Debug)]
pub struct MagentoDelivery<'a> {
    /// Path and query of the request.
    pub target: &'a [u8],
    /// Where it comes from.
    pub look: MagentoLook,
    /// `magento_cache_hide`
    pub hides: bool,
}

/// Makes the fields of a response those that a client gets.
pub fn deliver(fields: &mut FieldMap, delivery: &MagentoDelivery<'_>) {
    let is_debugged = fields.get_text(b"X-Magento-Debug").is_some();
    for name in INTERNAL {
        fields.remove_text(name);
    }
    if delivery.look == MagentoLook::Shared {
        fields.remove(Name::SetCookie);
    }
    if delivery.hides {
        for name in [&b"Server"[..], b"Via", b"Link"] {
            fields.remove_text(name);
        }
    }
    if is_debugged {
        let said: Vec<Vec<u8>> = fields.all(Name::CacheControl).map(<[u8]>::to_vec).collect();
        fields.push_text(b"X-Magento-Cache-Control", &said.join(&b", "[..]));
    } else {
        fields.remove(Name::Age);
    }
    let is_private =
        fields.all(Name::CacheControl).any(|line| memchr::memmem::find(line, b"private").is_some());
    if is_private || is_published(delivery.target) {
        return;
    }
    for name in [&b"Pragma"[..], b"Expires", b"Cache-Control"] {
        fields.remove_text(name);
    }
    debug_assert!(fields.get(Name::CacheControl).is_none(), "one field says what may be kept");
    fields.push_text(b"Pragma", b"no-cache");
    fields.push_text(b"Expires", b"-1");
    fields.push_text(b"Cache-Control", NO_STORE);
}
