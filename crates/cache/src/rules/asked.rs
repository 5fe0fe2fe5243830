//! Parses the fields of a `PURGE` request, and refuses those that it does not support.

use bolide_http::cache_groups::{self, Separator};
use bolide_http::lscache::{CacheScope, PurgeEffect};
use bolide_http::{FieldMap, forwarded_by};

use crate::bans::BanKind;
use crate::rules::line_protocol::{LISTS, ORDERS_MAX, PurgeOrder, PurgeTarget};

/// The targets of a `PURGE` request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PurgeRequest {
    /// Its own URL.
    Url,
    /// The URLs of its host that its target matches as a regular expression.
    UrlsMatching,
    /// The objects with one of these tags.
    Tags(Vec<PurgeOrder>),
    /// The objects that this text bans.
    Matching(BanKind, Vec<u8>),
    /// Not supported; the reason is for the client.
    Unclear(Vec<u8>),
}

/// Request fields with tags, as other caches have them, besides the response fields.
const HARD: (&[u8], Separator) = (b"xkey-purge", Separator::Blank);
const SOFT: (&[u8], Separator) = (b"xkey-softpurge", Separator::Blank);
/// Words in the names of fields that select targets.
const WORDS: [&[u8]; 5] = [b"ban", b"purge", b"tag", b"tags", b"pattern"];
/// The field by which Varnish plugins choose how to match the URL.
const METHOD: &[u8] = b"X-Purge-Method";

/// Returns the targets of a `PURGE` request.
#[must_use]
pub fn asked_purges(request: &FieldMap) -> PurgeRequest {
    if let Some(unknown) = request.iter().find(|field| !is_clear(field.text, field.value)) {
        return unclear(&[b"the field \"", unknown.text, b"\" is not understood"]);
    }
    let mut orders = None;
    for (field, separator) in LISTS.into_iter().chain([HARD, SOFT]) {
        if request.get_text(field).is_none() {
            continue;
        }
        let orders: &mut Vec<PurgeOrder> = orders.get_or_insert_default();
        let effect = if field == SOFT.0 { PurgeEffect::Stale } else { PurgeEffect::Dead };
        let order = |name: &[u8]| {
            let target = PurgeTarget::Tag(name.into());
            PurgeOrder { scope: CacheScope::Public, effect, target }
        };
        let room = ORDERS_MAX + 1 - orders.len();
        orders.extend(cache_groups::names(request, field, separator).take(room).map(order));
        if orders.len() > ORDERS_MAX {
            return unclear(&[b"too many tags"]);
        }
    }
    let is_regex = |method: &[u8]| method.eq_ignore_ascii_case(b"regex");
    let of_url = match request.get_text(METHOD).is_some_and(is_regex) {
        true => PurgeRequest::UrlsMatching,
        false => PurgeRequest::Url,
    };
    orders.map_or(of_url, PurgeRequest::Tags)
}

/// A request that purges nothing, and why.
pub(super) fn unclear(why: &[&[u8]]) -> PurgeRequest {
    PurgeRequest::Unclear([b"Nothing is purged: ", &why.concat()[..], b"\n"].concat())
}

/// Whether a field of a `PURGE` selects nothing, or something that is supported.
fn is_clear(name: &[u8], value: &[u8]) -> bool {
    if name.eq_ignore_ascii_case(METHOD) {
        let known = [&b"default"[..], b"exact", b"regex"];
        return known.iter().any(|known| value.eq_ignore_ascii_case(known));
    }
    LISTS.iter().chain([&HARD, &SOFT]).any(|(known, _)| name.eq_ignore_ascii_case(known))
        || select_nothing(name, value)
}

/// Whether a field selects nothing. A client whose field was ignored would assume that its purge
/// was done.
pub(super) fn select_nothing(name: &[u8], value: &[u8]) -> bool {
    let is = |known: &[u8]| name.eq_ignore_ascii_case(known);
    let begins = |known: &[u8]| {
        name.get(..known.len()).is_some_and(|start| start.eq_ignore_ascii_case(known))
    };
    let has_word = || {
        let mut words = name.split(|byte| matches!(byte, b'-' | b'_'));
        words.any(|word| WORDS.iter().any(|known| word.eq_ignore_ascii_case(known)))
    };
    if !begins(b"X-") && !begins(b"xkey") && !has_word() {
        return true;
    }
    if is(METHOD) {
        return value.eq_ignore_ascii_case(b"default");
    }
    forwarded_by::says_so(name) || begins(b"X-Request") || is(b"X-LSCACHE")
}

#[cfg(test)]
mod tests {
    use bolide_http::FieldMap;

    use super::{PurgeRequest, asked_purges};

    fn asked(name: &str, value: &str) -> PurgeRequest {
        let mut fields = FieldMap::new();
        fields.push_text(b"Host", b"a.test");
        fields.push_text(name.as_bytes(), value.as_bytes());
        asked_purges(&fields)
    }

    #[test]
    fn fields_that_select_nothing_leave_the_url() {
        for name in [
            "User-Agent",
            "Accept",
            "Cookie",
            "Authorization",
            "Cache-Control",
            "X-Forwarded-Proto",
            "X-Real-IP",
            "X-Request-ID",
            "X-Requested-With",
            "X-LSCACHE",
            "Via",
            "Stage",
        ] {
            assert_eq!(asked(name, "x"), PurgeRequest::Url, "{name}");
        }
        assert_eq!(asked("X-Purge-Method", "default"), PurgeRequest::Url);
        assert_eq!(asked("X-Purge-Method", "Regex"), PurgeRequest::UrlsMatching);
    }

    #[test]
    fn fields_that_would_select_something_else_are_not_passed_over() {
        for (name, value) in [
            ("X-Magento-Tags-Pattern", "((^|,)cat_p_1(,|$))"),
            ("X-Pool", "cat"),
            ("X-Ban-Url", "/a/.*"),
            ("x-ban-host", "a.test"),
            ("X-Url", "/a"),
            ("X-Magento-Purge-Soft", "1"),
            ("xkey-purge-all", "1"),
            ("Fastly-Soft-Purge", "1"),
            ("Purge-Cache-Tags", "a"),
            ("Ban", "a"),
        ] {
            let PurgeRequest::Unclear(reason) = asked(name, value) else { panic!("{name}") };
            let reason = String::from_utf8(reason).unwrap();
            assert!(reason.contains(&format!("\"{name}\"")), "{reason}");
        }
    }

    #[test]
    fn tags_are_all_carried_out_or_none() {
        let PurgeRequest::Tags(orders) = asked("xkey", "a b") else { panic!("two tags") };
        assert_eq!(orders.len(), 2);
        let many = "t ".repeat(super::ORDERS_MAX + 1);
        assert!(matches!(asked("xkey", &many), PurgeRequest::Unclear(_)));
    }
}
