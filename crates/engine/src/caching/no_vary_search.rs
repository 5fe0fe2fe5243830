//! `No-Vary-Search`: query parameters that do not affect the response.
//!
//! Owns where the store remembers it: under the URL without its query, as a vary marker. Not for
//! keys of the configuration, nor for private pages.

use std::sync::Arc;

use bolide_cache::{AskedBy, KeyBuilder, NamespaceId, Store};
use bolide_http::FieldMap;
use bolide_http::no_vary_search::NoVarySearch;

/// The field.
const FIELD: &[u8] = b"No-Vary-Search";

/// The URL part of the key under which the value for `url` is remembered; no URL has a line feed.
fn place(url: &[u8]) -> Vec<u8> {
    debug_assert!(!url.contains(&b'\n'), "no URL has a line feed");
    let path = url.split(|byte| *byte == b'?').next().unwrap_or_default();
    [path, b"\n"].concat()
}

/// The URL part of a key without the irrelevant parameters.
fn narrowed(url: &[u8], search: &NoVarySearch) -> Vec<u8> {
    let mut parts = url.splitn(2, |byte| *byte == b'?');
    let mut out = parts.next().unwrap_or_default().to_vec();
    let end = out.len();
    out.push(b'?');
    search.push(&mut out, parts.next().unwrap_or_default());
    if out.len() == end + 1 {
        out.truncate(end);
    }
    out
}

/// A value in the form in which it is remembered.
fn canonical<'a>(parts: impl Iterator<Item = &'a [u8]>) -> Vec<u8> {
    let parts = parts.flat_map(|part| part.split(|byte| *byte == b','));
    let parts: Vec<&[u8]> = parts.filter(|part| !part.is_empty()).collect();
    parts.join(&b","[..])
}

fn read(rule: &[u8]) -> Option<NoVarySearch> {
    let mut fields = FieldMap::new();
    fields.push_text(FIELD, rule);
    NoVarySearch::of(&fields)
}

/// Whether a value was remembered in this namespace.
pub(crate) fn may_have(store: &Arc<Store>, namespace: NamespaceId) -> bool {
    store.namespaces().has_search(namespace)
}

/// The URL part of a key without the irrelevant parameters, and the value that says so: a page is
/// found there only as long as its path has this value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NarrowUrl {
    pub(crate) url: Vec<u8>,
    pub(crate) rule: Vec<u8>,
}

/// Remembers the value of a response to `url`, and returns the URL of its key; none if it cannot be
/// remembered.
pub(crate) fn remember(
    store: &Arc<Store>,
    namespace: NamespaceId,
    url: &[u8],
    search: &NoVarySearch,
    answer: &FieldMap,
) -> Option<NarrowUrl> {
    let rule = canonical(answer.all_text(FIELD));
    // What is remembered must say the same.
    let search = read(&rule).filter(|read| read == search)?;
    debug_assert!(!rule.contains(&b'\n'), "no field has a line feed");
    store.namespaces().mark_search(namespace);
    let mut keys = KeyBuilder::default();
    keys.start(namespace);
    keys.push_url(&place(url));
    let known = store.find_known(&keys.public(), 0);
    let is_known = known.is_some_and(|known| canonical(known.vary_names()) == rule);
    (is_known || store.remember_vary(&keys.public(), &[&rule], AskedBy::NoNode))
        .then(|| NarrowUrl { url: narrowed(url, &search), rule })
}

/// The URL of the key of a response for `url`, if a value is remembered for its path.
pub(crate) fn kept_url(
    store: &Arc<Store>,
    namespace: NamespaceId,
    url: &[u8],
) -> Option<NarrowUrl> {
    let mut keys = KeyBuilder::default();
    keys.start(namespace);
    keys.push_url(&place(url));
    let rule = canonical(store.find_known(&keys.public(), 0)?.vary_names());
    let search = read(&rule)?;
    Some(NarrowUrl { url: narrowed(url, &search), rule })
}

#[cfg(test)]
mod tests {
    use bolide_http::FieldMap;
    use bolide_http::no_vary_search::NoVarySearch;

    use super::{narrowed, place};

    #[test]
    fn a_url_loses_its_arguments_and_no_url_is_where_they_are_remembered() {
        let mut fields = FieldMap::new();
        fields.push_text(super::FIELD, b"key-order, params=(\"x\")");
        let search = NoVarySearch::of(&fields).unwrap();
        for (url, kept) in [
            ("http://a:80/p?b&x=1&a", "http://a:80/p?a&b"),
            ("http://a:80/p?x", "http://a:80/p"),
            ("http://a:80/p?", "http://a:80/p"),
            ("http://a:80/p", "http://a:80/p"),
            ("http://a:80/p?a=?x", "http://a:80/p?a=?x"),
        ] {
            let found = narrowed(url.as_bytes(), &search);
            assert_eq!(String::from_utf8_lossy(&found), kept, "{url}");
            assert_eq!(narrowed(&found, &search), found, "{url}");
            assert!(place(url.as_bytes()).ends_with(b"/p\n"), "{url}");
        }
    }
}
