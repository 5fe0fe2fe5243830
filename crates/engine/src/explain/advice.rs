//! The decision as a sentence, and what would have to change for a hit.

use bolide_cache::rules::{Bypass, StoreRefusal};
use bolide_cache::{Freshness, ObjectKind};
use bolide_http::cookies::Cookies;

use super::object::Candidate;
use super::ring::Recent;
use super::trace::{family, show, written};
use super::why::Why;
use crate::caching::Caching;
use crate::caching::UpstreamCacheStatus;
use crate::exchange::Exchange;
use crate::route::LocationIndex;
use crate::site::Site;

/// The facts for a sentence.
pub(super) struct AdviceCase<'a> {
    pub(super) exchange: &'a Exchange,
    pub(super) site: &'a Site,
    pub(super) server: u32,
    pub(super) location: LocationIndex,
    pub(super) caching: Option<&'a Caching>,
    pub(super) decision: &'static str,
    pub(super) candidates: &'a [Candidate],
    pub(super) recent: &'a [Recent],
}

/// Why a response was not stored, and the remedy.
const fn help(refusal: StoreRefusal) -> (&'static str, &'static str) {
    match refusal {
        StoreRefusal::Method => ("responses to this method are not cached", "request it with GET"),
        StoreRefusal::Status => (
            "responses with this status are not cached",
            "a zone needs fastcgi_cache_valid for it, the page cache an explicit lifetime",
        ),
        StoreRefusal::Environment => ("a rewrite rule set no-cache", "change that rule"),
        StoreRefusal::Request => {
            ("requests with queries or cookies are not cached here", "send none")
        }
        StoreRefusal::RequestNoStore => ("the request has no-store", "send no Cache-Control"),
        StoreRefusal::NoStore => ("the response has no-store", "the application must not send it"),
        StoreRefusal::NoCache => ("the response has no-cache", "the application must not send it"),
        StoreRefusal::Private => (
            "the response is private",
            "the application must send public, or private with X-LiteSpeed-Cache-Control",
        ),
        StoreRefusal::Authorization => (
            "the request had Authorization, or passed auth_request",
            "the application must send public or s-maxage",
        ),
        StoreRefusal::SetCookie => (
            "the response sets a cookie",
            "the application must not, or must send X-LiteSpeed-Cache-Control: public",
        ),
        StoreRefusal::Vary => {
            ("the response's Vary has too many fields, or *", "it must list fewer")
        }
        StoreRefusal::NoLifetime => (
            "the response has no lifetime",
            "the application must send one (X-LiteSpeed-Cache-Control: public,max-age=600, or \
             Cache-Control: s-maxage=600), or the configuration set one: page_cache on, or \
             fastcgi_cache_valid",
        ),
        StoreRefusal::Stale => ("the response was stale on arrival", "it needs a longer lifetime"),
        StoreRefusal::TooLarge => ("the response is too large", "raise page_cache_max_object"),
        StoreRefusal::Empty => {
            ("the response has no body", "only responses with a body are cached")
        }
        StoreRefusal::NoSession => (
            "the response is private and the request has no session",
            "send the session's cookie, with at least 16 bytes; page_cache_session names the \
             cookies",
        ),
        StoreRefusal::Unassembled => (
            "the response needs ESI, which is off here or impossible",
            "page_cache_esi on, and an application that does not compress",
        ),
        StoreRefusal::Variant => (
            "the response is for another variant than the request asked for",
            "its client asks anew with the X-Magento-Vary or X-Magento-Cache-Id that it got",
        ),
        StoreRefusal::OwnRedirect => (
            "the response redirects to a URL that has the same key, which would be a loop",
            "the application must not redirect to a spelling that page_cache_drop_query makes \
             equal, or the parameter must be part of the key",
        ),
        StoreRefusal::Space => (
            "responses for this space are not cached here",
            "page_cache_private and page_cache_lookup enable them",
        ),
    }
}

impl AdviceCase<'_> {
    /// A text about the cache directives of nginx, for the upstream of this location.
    fn own(&self, text: &str) -> String {
        text.replace("fastcgi_", family(self.site, self.location))
    }

    /// As [`Self::at`], for a cache directive of nginx.
    fn own_at(&self, name: &str) -> String {
        self.at(&[&self.own(name)])
    }

    /// The place of the innermost of these directives: ` (file:line)`.
    fn at(&self, names: &[&str]) -> String {
        match written(self.site, self.server, self.location, names) {
            Some(one) => format!("{} ({}:{})", one.name, one.place.file, one.place.line),
            None => names.first().copied().unwrap_or_default().to_owned(),
        }
    }

    fn is_page(&self) -> bool {
        self.caching.is_some_and(Caching::is_page)
    }

    /// The reason as a sentence.
    pub(super) fn reason(&self) -> String {
        match self.decision {
            "NONE" => return self.no_cache(),
            "JOIN" => return "another request is fetching it, and this one waits".to_owned(),
            _ => {}
        }
        match self.exchange.cache.why {
            Why::Asked => self.found(),
            Why::Rule(bypass) => rule(bypass).0.to_owned(),
            Why::Preset => format!("{} never caches it: {}", self.preset(), self.named()),
            Why::Condition => format!("a text of {} is true", self.condition()),
            Why::Purge => "the request is a purge".to_owned(),
            Why::LongKey => "its key is too long".to_owned(),
            Why::NoZone => self.own("fastcgi_cache names an unknown zone"),
            Why::NotPublic => "public objects are not looked up here, and its session has no \
                               private ones"
                .to_owned(),
            Why::Remembered => {
                "responses for this key were uncacheable a short while ago (hit-for-pass)"
                    .to_owned()
            }
            Why::Busy => "another request is fetching it, and requests do not wait here".to_owned(),
            Why::Tired => "it has waited for other requests often enough".to_owned(),
            Why::Anew => "the request's Cache-Control requires a newer response".to_owned(),
            Why::Body => "the request has a body, which is not part of the key".to_owned(),
            Why::StandsIn => {
                "a replacement for an error is not cached under the URL of the error".to_owned()
            }
            Why::Refused => "the response to a refused request is not cached".to_owned(),
        }
    }

    fn no_cache(&self) -> String {
        let location = self.site.location(self.location);
        match (self.caching, &location.pass) {
            (None, None) => {
                "files are served here, without an upstream whose responses could be cached"
            }
            (None, Some(_)) => "no cache is enabled in this location",
            (Some(_), _) => "it was answered before the cache lookup",
        }
        .to_owned()
    }

    fn found(&self) -> String {
        match self.exchange.answer.cached {
            UpstreamCacheStatus::Hit => "a fresh response is stored under this key",
            UpstreamCacheStatus::Stale => {
                "a stale response is served, and a new one is fetched in the background"
            }
            UpstreamCacheStatus::Updating => {
                "a stale response is served while another request fetches a new one"
            }
            UpstreamCacheStatus::Expired => "the stored response is stale",
            UpstreamCacheStatus::Revalidated => "the stored response was revalidated",
            UpstreamCacheStatus::Bypass => "the cache is bypassed",
            UpstreamCacheStatus::Miss if self.was_purged() => "the stored response was purged",
            UpstreamCacheStatus::Miss | UpstreamCacheStatus::No => {
                "nothing is stored under this key"
            }
        }
        .to_owned()
    }

    fn was_purged(&self) -> bool {
        let is_gone = |one: &&Candidate| one.is_own && one.freshness == Freshness::Gone;
        self.candidates.iter().any(|one| is_gone(&one))
    }

    fn preset(&self) -> String {
        self.at(&["page_cache_preset"])
    }

    fn condition(&self) -> String {
        match self.is_page() {
            true => self.at(&["page_cache_bypass"]),
            false => self.own_at("fastcgi_cache_bypass"),
        }
    }

    /// What the preset matched.
    fn named(&self) -> String {
        let Some(never) = self.caching.and_then(|caching| caching.conf.page.never.as_ref()) else {
            return String::new();
        };
        let head = self.exchange.request.head();
        let (path, query) = match memchr::memchr(b'?', &head.target) {
            Some(at) => (&head.target[..at], &head.target[at + 1..]),
            None => (&head.target[..], &b""[..]),
        };
        if never.covers_path(path) {
            return format!("the path {}", show(path));
        }
        let cookies = Cookies::of(&head.fields);
        if let Some((name, _)) = cookies.iter().find(|pair| never.covers_cookie(pair.0)) {
            return format!("the cookie {}", show(name));
        }
        let names = query.split(|byte| *byte == b'&');
        let mut names = names.map(|arg| arg.split(|byte| *byte == b'=').next().unwrap_or_default());
        let name = names.find(|name| never.covers_arg(name)).unwrap_or_default();
        format!("the argument {}", show(name))
    }

    /// What would have to change for a hit.
    pub(super) fn advice(&self) -> Vec<String> {
        match self.decision {
            "HIT" => return Vec::new(),
            "JOIN" => return vec!["nothing: repeat it when the fetch is over".to_owned()],
            "NONE" => return self.switch_on(),
            _ => {}
        }
        let mut all = Vec::new();
        match self.exchange.cache.why {
            Why::Asked => self.fill(&mut all),
            Why::Rule(bypass) => all.push(rule(bypass).1.to_owned()),
            Why::Preset => {
                all.push(format!("send it without {}, or change {}", self.named(), self.preset()));
            }
            Why::Condition => {
                all.push(format!("the texts of {} must be empty or 0", self.condition()));
            }
            Why::Purge => all.push("request it with GET".to_owned()),
            Why::Body => all.push("send no body".to_owned()),
            Why::StandsIn => all.push("the upstream that failed must respond".to_owned()),
            Why::Refused => all.push("access must be granted".to_owned()),
            Why::LongKey => all.push("a shorter URL, or fewer and shorter cookies".to_owned()),
            Why::NoZone => all.push(format!(
                "{} must give the name of a {}",
                self.own_at("fastcgi_cache"),
                self.own("fastcgi_cache_path")
            )),
            Why::NotPublic => all.push(format!(
                "{} must allow the lookup",
                self.at(&["page_cache_lookup", "CacheLookup", "CacheDisable"])
            )),
            Why::Remembered => {
                all.push("wait two seconds: then the next response is considered again".to_owned());
                self.last_refusal(&mut all);
            }
            Why::Busy => {
                all.push(self.own("with fastcgi_cache_lock on it would wait for the fetch"));
            }
            Why::Tired => all.push("repeat it".to_owned()),
            Why::Anew => all.push(format!(
                "send no Cache-Control and Pragma, or set {} off",
                self.at(&["page_cache_respect_request", "CacheIgnoreCacheControl"])
            )),
        }
        all
    }

    fn switch_on(&self) -> Vec<String> {
        let location = self.site.location(self.location);
        let text = match (self.caching, &location.pass) {
            (None, Some(pass)) if !pass.conf.protocol.has_caches() => {
                "nothing: responses of such an upstream are not kept in a cache"
            }
            (None, Some(_)) => {
                "page_cache auto in its server block would let the application decide"
            }
            (None, None) => "files are not cached in the store: they are fast without it",
            (Some(_), _) => "it must reach the upstream of this location",
        };
        vec![text.to_owned()]
    }

    /// What would store a response under the key.
    fn fill(&self, all: &mut Vec<String>) {
        match self.exchange.answer.cached {
            UpstreamCacheStatus::Hit => {}
            UpstreamCacheStatus::Stale | UpstreamCacheStatus::Updating => {
                all.push("nothing: the fetch in the background makes it fresh".to_owned());
            }
            _ if self.exchange.method() == bolide_http::Method::Head => {
                all.push("HEAD stores nothing: request it with GET".to_owned());
            }
            _ => {
                self.last_refusal(all);
                let more = self.uses_missing();
                if all.is_empty() && more {
                    let which = self.own_at("fastcgi_cache_min_uses");
                    all.push(format!("it needs more requests: {which}"));
                } else if all.is_empty() {
                    all.push(
                        "nothing: this request would store it, if its response is cacheable".into(),
                    );
                }
            }
        }
        let others = self.candidates.iter().filter(|one| {
            !one.is_own && one.kind == ObjectKind::Content && one.freshness == Freshness::Fresh
        });
        let count = others.count();
        if count > 0 {
            all.push(format!("{count} fresh copies of this URL are stored for other vary parts"));
        }
    }

    fn uses_missing(&self) -> bool {
        self.caching.is_some_and(|caching| !caching.would_keep(self.exchange.cache.hash))
    }

    /// Why the last response for this key was not stored.
    fn last_refusal(&self, all: &mut Vec<String>) {
        let last = self.recent.iter().find(|one| {
            let has_asked = !matches!(one.decision, "HIT" | "STALE" | "UPDATING" | "PURGE");
            has_asked && (one.is_kept || one.refusal.is_some() || self.is_zone_with_no_cache())
        });
        match last {
            Some(last) if last.is_kept => {}
            Some(Recent { refusal: Some(refusal), .. }) => {
                let (why, what) = help(*refusal);
                let what = self.own(what);
                all.push(format!("the last response was not stored, because {why}: {what}"));
            }
            Some(_) => {
                let which = self.own_at("fastcgi_no_cache");
                all.push(format!("the last response was not stored: see {which}"));
            }
            None => {}
        }
    }

    fn is_zone_with_no_cache(&self) -> bool {
        self.caching.is_some_and(|caching| !caching.is_page() && !caching.conf.no_cache.is_empty())
    }
}

/// The reason of a rule, and the remedy.
const fn rule(bypass: Bypass) -> (&'static str, &'static str) {
    match bypass {
        Bypass::Off => ("the cache is off here", "page_cache enables it"),
        Bypass::Method => {
            ("responses to this method are not cached", "request it with GET or HEAD")
        }
        Bypass::Query => ("requests with a query are not cached here", "send none"),
        Bypass::Cookies => ("requests with cookies are not cached here", "send none"),
        Bypass::Environment => ("page_cache_control set no-cache", "change that text"),
        Bypass::NoStore => {
            ("the request has no-store, which applies here", "send no Cache-Control")
        }
        Bypass::Unkeyed => (
            "it has too many cookies for a key, or overrides its method",
            "send fewer cookies and no X-HTTP-Method-Override",
        ),
        Bypass::Magento => (
            "magento_cache lets customer, checkout, media and tokens pass",
            "nothing: what they ask for is one visitor's own",
        ),
        Bypass::NoSpace => (
            "neither public nor private objects are looked up",
            "page_cache_lookup and page_cache_private enable that",
        ),
    }
}
