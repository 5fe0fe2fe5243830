//! Which stored pages a purge of a URL strikes, whichever way the purge is said.
//!
//! A page is found by the URL part of its key: for every origin of its site, in both spellings, and
//! without the arguments that any location of the site leaves out. Where the key says less than the
//! URL, the page has a tag: of its URL with `page_cache_key`, of its path with `No-Vary-Search`.
//! Easiest to break: the request that purges comes in another way and to another location than the
//! one that stored the page, so nothing here may depend on its directives.

use std::collections::HashMap;

use bolide_cache::rules::{self, CachePolicy, Facts, QueryRules};
use bolide_cache::{CacheKey, NamespaceId, Tags};
use bolide_conf::model::{Http, LocationId, PageCache};

use crate::caching::server_addresses::UrlOrigin;

/// What the URLs in the keys of a site's pages depend on.
#[derive(Debug)]
pub(crate) struct SiteReach {
    /// All ways to reach its pages, whichever way a purge comes: HTTP and HTTPS are one site.
    pub(super) origins: Vec<UrlOrigin>,
    /// The arguments that its locations leave out of keys.
    queries: Vec<QueryRules>,
}

impl SiteReach {
    /// That of no site.
    pub(super) const fn none() -> Self {
        Self { origins: Vec::new(), queries: Vec::new() }
    }

    /// That of each namespace.
    pub(super) fn of_all(
        http: &Http,
        namespaces: &[NamespaceId],
        origins: HashMap<NamespaceId, Vec<UrlOrigin>>,
    ) -> HashMap<NamespaceId, Self> {
        let mut all: HashMap<NamespaceId, Self> = HashMap::new();
        for (id, origins) in origins {
            all.entry(id).or_insert(Self::none()).origins = origins;
        }
        for (server, id) in http.servers.iter().zip(namespaces) {
            query_rules(http, server.root, &mut all.entry(*id).or_insert(Self::none()).queries);
        }
        all
    }

    /// A text that is the same as long as purges of URLs reach the same pages, whatever the order
    /// of blocks and directives.
    pub(super) fn text(&self) -> Vec<u8> {
        let origins = self.origins.iter().map(|origin| format!("{origin:?}\n"));
        let queries = self.queries.iter().map(|query| format!("{query:?}\n"));
        let mut all: Vec<String> = origins.chain(queries).collect();
        all.sort_unstable();
        all.concat().into_bytes()
    }
}

/// The arguments that keys of a location leave out.
pub(super) fn query_rules_of(page: &PageCache) -> QueryRules {
    let mut query = QueryRules::default();
    for name in &page.drop_query.names {
        let mut word = b"-qs:".to_vec();
        word.extend_from_slice(&name.text);
        if name.is_prefix {
            word.push(b'*');
        }
        let _is_known = query.add(&word);
    }
    query
}

/// Adds the arguments that keys of a location leave out, and of those nested in it.
fn query_rules(http: &Http, id: LocationId, all: &mut Vec<QueryRules>) {
    let location = http.location(id);
    let own = query_rules_of(&location.settings.cache.page);
    if !own.is_empty() && !all.contains(&own) {
        all.push(own);
    }
    location.nested.iter().for_each(|inner| query_rules(http, *inner, all));
}

/// The pages that a purge of one URL strikes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UrlReach {
    /// The URL parts of their keys.
    pub urls: Vec<Vec<u8>>,
    /// The tags of those that are stored under other keys.
    pub tags: Vec<Vec<u8>>,
}

impl UrlReach {
    /// For `target` on the host of a request.
    pub(crate) fn of(target: &[u8], site: &SiteReach, facts: &Facts<'_>) -> Self {
        let targets = targets(target, site, facts);
        let others = site.origins.iter().map(|origin| Facts {
            scheme: origin.scheme,
            port: origin.port,
            server: origin.server.as_bytes(),
            ..*facts
        });
        let mut reach = Self::default();
        for facts in std::iter::once(*facts).chain(others) {
            let mut origin = Vec::new();
            rules::push_origin(&mut origin, &facts);
            for target in &targets {
                push_new(&mut reach.urls, [&*origin, target].concat());
            }
        }
        for target in &targets {
            push_new(&mut reach.tags, tag(target, facts.host));
        }
        push_new(&mut reach.tags, path_tag(target, facts.host));
        debug_assert!(reach.tags.len() > 1, "a URL has a tag, and its path another one");
        reach
    }

    /// Adds the URL part of a key that is known otherwise.
    pub(super) fn add(&mut self, url: &[u8]) {
        push_new(&mut self.urls, url.to_vec());
    }

    /// The tags by which a purge that knows no sessions finds private pages.
    pub fn private_tags(&self) -> impl Iterator<Item = Vec<u8>> {
        self.tags.iter().map(|tag| of_private(tag))
    }
}

/// The prefixes of the tags of all URLs whose path and query begin with `target`.
#[must_use]
pub fn tags_from(target: &[u8]) -> Vec<Vec<u8>> {
    let mut all = vec![begin(target)];
    if target.contains(&b'?') {
        all.push(begin(&path_of(target)));
    }
    all
}

/// What the key of a page says about its URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct KeyText {
    /// It is the text of a `page_cache_key`, or a purge of the URL may have come before the fill
    /// had its key.
    pub(super) needs_url_tag: bool,
    /// It was without parameters for the sake of a `No-Vary-Search` before the response came.
    pub(super) was_narrow: bool,
}

/// Tags a page with what purges of its URL look for, if its key says less than that.
pub(super) fn tag_page(
    tags: &mut Tags,
    facts: &Facts<'_>,
    key: &CacheKey<'_>,
    text: KeyText,
    policy: &CachePolicy,
) {
    if text.needs_url_tag {
        tag_with(tags, &target_in_key(facts, policy), facts.host, key.session().is_some());
    }
    if text.was_narrow || rules::is_narrowed(key.vary()) {
        tags.push(&path_tag(facts.target, facts.host));
    }
}

/// Tags a page or a part of one with its URL.
pub(super) fn tag_with(tags: &mut Tags, target: &[u8], host: &[u8], is_private: bool) {
    let own = tag(target, host);
    if is_private {
        tags.push_public(&of_private(&own));
    }
    tags.push(&own);
}

/// Has public purges of a URL reach what is for all, but stored for a session.
pub(super) fn tag_for_all(tags: &mut Tags, target: &[u8], host: &[u8]) {
    tags.push_public(&tag(target, host));
}

fn target_in_key(facts: &Facts<'_>, policy: &CachePolicy) -> Vec<u8> {
    let mut target = Vec::new();
    rules::push_target(&mut target, facts.target, [&policy.query, &facts.environment.query]);
    target
}

/// The forms that `target` may have in keys of the site.
fn targets(target: &[u8], site: &SiteReach, facts: &Facts<'_>) -> Vec<Vec<u8>> {
    let all = QueryRules::default();
    let mut found = Vec::new();
    for location in std::iter::once(&all).chain(&site.queries) {
        for request in [&all, &facts.environment.query] {
            let mut one = Vec::new();
            rules::push_target(&mut one, target, [location, request]);
            spellings(one).into_iter().for_each(|one| push_new(&mut found, one));
        }
    }
    found
}

fn push_new(all: &mut Vec<Vec<u8>>, one: Vec<u8>) {
    if !all.contains(&one) {
        all.push(one);
    }
}

/// A URL in both common spellings: browsers write `%C3`, some applications `%c3`.
fn spellings(url: Vec<u8>) -> Vec<Vec<u8>> {
    let others = [u8::make_ascii_lowercase, u8::make_ascii_uppercase];
    let others = others.map(|change: fn(&mut u8)| with_case(&url, change));
    let mut all = vec![url];
    others.into_iter().for_each(|other| push_new(&mut all, other));
    all
}

fn with_case(url: &[u8], change: fn(&mut u8)) -> Vec<u8> {
    let mut other = url.to_vec();
    for at in memchr::memchr_iter(b'%', url) {
        other.iter_mut().skip(at + 1).take(2).for_each(change);
    }
    other
}

/// What the tags of URLs begin with whose path and query begin with `target`. No application's tag
/// begins so.
fn begin(target: &[u8]) -> Vec<u8> {
    [b"\0", &*with_case(target, u8::make_ascii_uppercase)].concat()
}

/// The tag of a URL, whatever the scheme and the port.
fn tag(target: &[u8], host: &[u8]) -> Vec<u8> {
    [&*begin(target), b"\0", host].concat()
}

/// The path of `target`, as no URL ends.
fn path_of(target: &[u8]) -> Vec<u8> {
    let path = target.split(|byte| *byte == b'?').next().unwrap_or_default();
    [path, b"\n"].concat()
}

/// The tag of all pages at a path that leave arguments out for the sake of a response.
fn path_tag(target: &[u8], host: &[u8]) -> Vec<u8> {
    tag(&path_of(target), host)
}

/// The tag that private pages have beside `tag`, of which only their session knows.
fn of_private(tag: &[u8]) -> Vec<u8> {
    [tag, b"\0"].concat()
}

#[cfg(test)]
mod tests {
    use bolide_cache::rules::{Environment, Facts, QueryRules};
    use bolide_http::message::Scheme;
    use bolide_http::{FieldMap, Method};

    use super::{SiteReach, UrlOrigin, UrlReach, tags_from};

    #[test]
    fn a_purge_strikes_every_origin_and_every_form_of_its_url() {
        let mut query = QueryRules::default();
        assert!(query.add(b"-qs:utm"));
        let origin = |scheme, port| UrlOrigin { scheme, port, server: "a.test".into() };
        let origins = vec![origin(Scheme::Http, 80), origin(Scheme::Https, 443)];
        let site = SiteReach { origins, queries: vec![query] };
        let (fields, environment) = (FieldMap::new(), Environment::default());
        let facts = Facts {
            method: Method::Get,
            fields: &fields,
            scheme: Scheme::Http,
            host: b"a.test",
            port: 80,
            server: b"a.test",
            target: b"/",
            authority: b"a.test",
            arrival: b"",
            environment: &environment,
        };
        let reach = UrlReach::of(b"/%c3?utm=1&a", &site, &facts);
        for origin in ["http://a.test:80", "https://a.test:443"] {
            for target in ["/%c3?utm=1&a", "/%C3?utm=1&a", "/%c3?a", "/%C3?a"] {
                let url = format!("{origin}{target}").into_bytes();
                assert!(reach.urls.contains(&url), "{origin} {target}");
            }
        }
        assert_eq!(reach.urls.len(), 8);
        let tags = ["/%C3?utm=1&a", "/%C3?a", "/%C3\n"];
        assert_eq!(reach.tags, tags.map(|text| format!("\0{text}\0a.test").into_bytes()));
        for (start, hits) in [("/%c3", 3), ("/%c3?a", 2), ("/x", 0), ("/%c3?z", 1)] {
            let starts = tags_from(start.as_bytes());
            let is_hit = |tag: &&Vec<u8>| starts.iter().any(|start| tag.starts_with(start));
            assert_eq!(reach.tags.iter().filter(is_hit).count(), hits, "{start}");
        }
    }

    #[test]
    fn the_order_of_origins_changes_no_reach() {
        let origin = |port| UrlOrigin { scheme: Scheme::Http, port, server: "a".into() };
        let site = |ports: &[u16]| SiteReach {
            origins: ports.iter().map(|port| origin(*port)).collect(),
            queries: Vec::new(),
        };
        assert_eq!(site(&[1, 2]).text(), site(&[2, 1]).text());
        assert_ne!(site(&[1]).text(), site(&[2, 1]).text());
    }
}
