//! The decision in words, and what would have to change for a hit.

use bolide_cache::rules::{Bypass, StoreRefusal};
use bolide_cache::{Freshness, ObjectKind};
use bolide_http::cookies::Cookies;

use super::object::Candidate;
use super::ring::Recent;
use super::trace::{show, written};
use super::why::Why;
use crate::content::page::UpstreamCacheStatus;
use crate::exchange::Exchange;
use crate::route::LocationIndex;
use crate::site::{Caching, Site};

/// What is known when a decision is to be put into words.
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

/// Why an answer was not kept, and what helps.
const fn help(refusal: StoreRefusal) -> (&'static str, &'static str) {
    match refusal {
        StoreRefusal::Method => ("answers to this method are not kept", "ask with GET"),
        StoreRefusal::Status => (
            "answers of this status are not kept",
            "a zone needs fastcgi_cache_valid for it, the page cache the application's word",
        ),
        StoreRefusal::Environment => ("a rewrite rule said no-cache", "change that rule"),
        StoreRefusal::Request => ("queries or cookies are not cached here", "ask without them"),
        StoreRefusal::RequestNoStore => ("the request said no-store", "ask without Cache-Control"),
        StoreRefusal::NoStore => ("the answer said no-store", "the application must not say so"),
        StoreRefusal::NoCache => ("the answer said no-cache", "the application must not say so"),
        StoreRefusal::Private => (
            "the answer is private",
            "the application must say public, or private with X-LiteSpeed-Cache-Control",
        ),
        StoreRefusal::Authorization => (
            "the request had Authorization, or auth_request let it in",
            "the application must say public or s-maxage",
        ),
        StoreRefusal::SetCookie => (
            "the answer set a cookie",
            "the application must not, or say X-LiteSpeed-Cache-Control: public",
        ),
        StoreRefusal::Vary => ("the answer's Vary names what no key can hold", "it must name less"),
        StoreRefusal::NoLifetime => (
            "the answer did not say how long it may be kept",
            "the application must say so (X-LiteSpeed-Cache-Control: public,max-age=600, or \
             Cache-Control: s-maxage=600), or the configuration: page_cache on, or \
             fastcgi_cache_valid",
        ),
        StoreRefusal::Stale => ("the answer was too old when it came", "it must live longer"),
        StoreRefusal::TooLarge => ("the answer is too large", "raise page_cache_max_object"),
        StoreRefusal::Empty => ("the answer has no body", "only answers with one are kept"),
        StoreRefusal::NoSession => (
            "the answer is private and the request has no session",
            "send the session's cookie, with 16 bytes at least; page_cache_session says which \
             ones are",
        ),
        StoreRefusal::Unassembled => (
            "the answer is to be put together (ESI), which is off here or cannot be done",
            "page_cache_esi on, and an application that does not compress",
        ),
        StoreRefusal::Space => (
            "answers for this space are not kept here",
            "page_cache_private and page_cache_lookup switch them on",
        ),
    }
}

impl AdviceCase<'_> {
    /// Where the innermost of these directives stands: ` (file:line)`.
    fn at(&self, names: &[&str]) -> String {
        match written(self.site, self.server, self.location, names) {
            Some(one) => format!("{} ({}:{})", one.name, one.place.file, one.place.line),
            None => names.first().copied().unwrap_or_default().to_owned(),
        }
    }

    fn is_page(&self) -> bool {
        self.caching.is_some_and(Caching::is_page)
    }

    /// Why it was decided so.
    pub(super) fn reason(&self) -> String {
        match self.decision {
            "NONE" => return self.no_cache(),
            "JOIN" => return "somebody is fetching it, and it is waited for".to_owned(),
            _ => {}
        }
        match self.exchange.page.why {
            Why::Asked => self.found(),
            Why::Rule(bypass) => rule(bypass).0.to_owned(),
            Why::Preset => format!("{} never caches it: {}", self.preset(), self.named()),
            Why::Condition => format!("a text of {} is true", self.condition()),
            Why::Purge => "the request is an order to purge".to_owned(),
            Why::LongKey => "its key is too long".to_owned(),
            Why::NoZone => "fastcgi_cache names no zone that there is".to_owned(),
            Why::NotPublic => "nothing for everybody is looked up here, and its session has \
                               nothing of its own"
                .to_owned(),
            Why::Remembered => {
                "answers under this key were not to be kept, a short while ago".to_owned()
            }
            Why::Busy => "somebody is fetching it, and nobody waits for that here".to_owned(),
            Why::Tired => "it has waited for others often enough".to_owned(),
            Why::Anew => "the request's Cache-Control wants something newer".to_owned(),
            Why::Body => "what comes for a body is not what comes for an address".to_owned(),
            Why::StandsIn => {
                "what comes instead of a failure is not kept for its address".to_owned()
            }
            Why::Refused => "what a refusal leads to has no part in the cache".to_owned(),
        }
    }

    fn no_cache(&self) -> String {
        let location = self.site.location(self.location);
        match (self.caching, &location.pass) {
            (None, None) => "files answer here, and no origin whose answers could be kept",
            (None, Some(_)) => "no cache is on in this location",
            (Some(_), _) => "it was answered before the cache had its turn",
        }
        .to_owned()
    }

    fn found(&self) -> String {
        match self.exchange.answer.cached {
            UpstreamCacheStatus::Hit => "a fresh answer is kept under this key",
            UpstreamCacheStatus::Stale => {
                "an old answer serves, and a new one is fetched in the background"
            }
            UpstreamCacheStatus::Updating => {
                "an old answer serves while somebody fetches a new one"
            }
            UpstreamCacheStatus::Expired => "what is kept is too old",
            UpstreamCacheStatus::Revalidated => "what is kept was confirmed",
            UpstreamCacheStatus::Bypass => "the cache was told not to answer",
            UpstreamCacheStatus::Miss if self.was_purged() => "what was kept was purged",
            UpstreamCacheStatus::Miss | UpstreamCacheStatus::No => "nothing is kept under this key",
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
            false => self.at(&["fastcgi_cache_bypass"]),
        }
    }

    /// What the preset has found.
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
            "JOIN" => return vec!["nothing: ask again when the fetch is over".to_owned()],
            "NONE" => return self.switch_on(),
            _ => {}
        }
        let mut all = Vec::new();
        match self.exchange.page.why {
            Why::Asked => self.fill(&mut all),
            Why::Rule(bypass) => all.push(rule(bypass).1.to_owned()),
            Why::Preset => {
                all.push(format!("ask without {}, or change {}", self.named(), self.preset()));
            }
            Why::Condition => {
                all.push(format!("the texts of {} must be empty or 0", self.condition()));
            }
            Why::Purge => all.push("ask with GET".to_owned()),
            Why::Body => all.push("ask without a body".to_owned()),
            Why::StandsIn => all.push("the origin that failed must answer".to_owned()),
            Why::Refused => all.push("access must be granted on the way to the answer".to_owned()),
            Why::LongKey => all.push("a shorter URL, or fewer and shorter cookies".to_owned()),
            Why::NoZone => all.push(format!(
                "{} must give the name of a fastcgi_cache_path",
                self.at(&["fastcgi_cache"])
            )),
            Why::NotPublic => all.push(format!(
                "{} must let it be looked up",
                self.at(&["page_cache_lookup", "CacheLookup", "CacheDisable"])
            )),
            Why::Remembered => {
                all.push("wait two seconds: then the next answer is looked at again".to_owned());
                self.last_refusal(&mut all);
            }
            Why::Busy => {
                all.push("fastcgi_cache_lock on would wait for the fetch".to_owned());
            }
            Why::Tired => all.push("ask again".to_owned()),
            Why::Anew => all.push(format!(
                "ask without Cache-Control and Pragma, or set {} off",
                self.at(&["page_cache_respect_request", "CacheIgnoreCacheControl"])
            )),
        }
        all
    }

    fn switch_on(&self) -> Vec<String> {
        let location = self.site.location(self.location);
        let text = match (self.caching, &location.pass) {
            (None, Some(_)) => {
                "page_cache auto in its server block would let the application decide"
            }
            (None, None) => "files are not kept in the store: they are fast without it",
            (Some(_), _) => "it must come as far as the origin of this location",
        };
        vec![text.to_owned()]
    }

    /// What fills the key.
    fn fill(&self, all: &mut Vec<String>) {
        match self.exchange.answer.cached {
            UpstreamCacheStatus::Hit => {}
            UpstreamCacheStatus::Stale | UpstreamCacheStatus::Updating => {
                all.push("nothing: the fetch in the background makes it fresh".to_owned());
            }
            _ if self.exchange.method() == bolide_http::Method::Head => {
                all.push("HEAD fills nothing: ask with GET".to_owned());
            }
            _ => {
                self.last_refusal(all);
                let more = self.uses_missing();
                if all.is_empty() && more {
                    let which = self.at(&["fastcgi_cache_min_uses"]);
                    all.push(format!("it must be asked for more often: {which}"));
                } else if all.is_empty() {
                    all.push(
                        "nothing: this request would fill it, if its answer may be kept".into(),
                    );
                }
            }
        }
        let others = self.candidates.iter().filter(|one| {
            !one.is_own && one.kind == ObjectKind::Content && one.freshness == Freshness::Fresh
        });
        let count = others.count();
        if count > 0 {
            all.push(format!("{count} fresh copies of this URL are kept for other vary parts"));
        }
    }

    fn uses_missing(&self) -> bool {
        self.caching.is_some_and(|caching| !caching.would_keep(self.exchange.page.hash))
    }

    /// Why the last answer to this key was not kept.
    fn last_refusal(&self, all: &mut Vec<String>) {
        let last = self.recent.iter().find(|one| {
            let has_asked = !matches!(one.decision, "HIT" | "STALE" | "UPDATING" | "PURGE");
            has_asked && (one.is_kept || one.refusal.is_some() || self.is_zone_with_no_cache())
        });
        match last {
            Some(last) if last.is_kept => {}
            Some(Recent { refusal: Some(refusal), .. }) => {
                let (why, what) = help(*refusal);
                all.push(format!("the last answer was not kept, because {why}: {what}"));
            }
            Some(_) => {
                let which = self.at(&["fastcgi_no_cache"]);
                all.push(format!("the last answer was not kept: see {which}"));
            }
            None => {}
        }
    }

    fn is_zone_with_no_cache(&self) -> bool {
        self.caching.is_some_and(|caching| !caching.is_page() && !caching.conf.no_cache.is_empty())
    }
}

/// What a rule says, and what helps.
const fn rule(bypass: Bypass) -> (&'static str, &'static str) {
    match bypass {
        Bypass::Off => ("the cache is switched off here", "page_cache switches it on"),
        Bypass::Method => ("answers to this method are not kept", "ask with GET or HEAD"),
        Bypass::Query => ("requests with a query are not cached here", "ask without one"),
        Bypass::Cookies => ("requests with cookies are not cached here", "ask without them"),
        Bypass::Environment => ("page_cache_control said no-cache", "change that text"),
        Bypass::NoStore => {
            ("the request said no-store, which counts here", "ask without Cache-Control")
        }
        Bypass::Unkeyed => (
            "it has more cookies than are told apart, or wants to be of another method",
            "ask with fewer cookies and without X-HTTP-Method-Override",
        ),
        Bypass::NoSpace => (
            "neither what is for everybody nor what is for its session is looked up",
            "page_cache_lookup and page_cache_private switch that on",
        ),
    }
}
