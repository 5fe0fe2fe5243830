//! Cached pages: what each application sent when, for which audience, and what was purged.
//!
//! Every response of the application is a version of its own: it has a number, names its inputs and
//! its audience, and determines its bytes. So a reader of a body knows which version it is, whether
//! it is complete, whether the client may see it, and whether a purge came in between.
//!
//! The main rule: a version that was made before a purge began must not be sent for a request that
//! began after the purge was acknowledged.

mod check;
pub mod esi;
mod location;
mod purge;
mod version;

use std::collections::BTreeMap;

use crate::request::{RequestKind, SimRequest};
use crate::response::SimResponse;
pub use location::{LOCATIONS, PageLocation, SIZES};
pub use purge::{PURGE_KINDS, PurgeScope, purge_header};
pub use version::{PageAudience, PageVersion};

#[derive(Debug)]
struct PurgeRecord {
    scope: PurgeScope,
    /// Objects in the scope must have been made after this time…
    since: u64,
    /// …for requests that began after this time.
    acked: u64,
}

#[derive(Debug)]
struct FetchRecord {
    target: String,
    fd: i32,
    since: u64,
}

/// Nanoseconds from a lookup until the application gets the request, at most.
const FETCH_START_MAX: u64 = 5_000_000_000;

/// Nanoseconds for which the requests for a page fetch for themselves, after its fetch has failed.
const UNCOALESCED_FOR: u64 = 1_000_000_000;

/// Nanoseconds after which a purge survives a power loss: one second, and the time until the disk
/// writer's turn.
const FLUSHED_WITHIN: u64 = 1_500_000_000;

/// The history of versions and purges of a run.
#[derive(Debug, Default)]
pub struct PageModel {
    versions: BTreeMap<u64, PageVersion>,
    purges: Vec<PurgeRecord>,
    fetches: Vec<FetchRecord>,
    /// When a fetch of a target was found to have ended before its response did.
    broken: BTreeMap<String, u64>,
    /// The store's generation of purges.
    generation: Option<u64>,
    /// When the last purge happened.
    purged: Option<u64>,
}

impl PageModel {
    /// Adds a version.
    pub fn issue(
        &mut self,
        place: PageLocation,
        page: usize,
        lang: Option<String>,
        audience: PageAudience,
        created: u64,
    ) -> PageVersion {
        let number = self.versions.len() as u64 + 1;
        let version =
            PageVersion { number, place, page, lang, audience, created, revalidated_at: created };
        self.versions.insert(number, version.clone());
        version
    }

    /// The version with this entity tag.
    #[must_use]
    pub fn by_etag(&self, etag: &str) -> Option<&PageVersion> {
        let number = etag.trim_start_matches("W/").strip_prefix("\"v")?.strip_suffix('"')?;
        self.versions.get(&number.parse().ok()?)
    }

    /// The application revalidates the version with this entity tag at `now`.
    pub fn revalidate(&mut self, etag: &str, now: u64) {
        let number = self.by_etag(etag).map(|version| version.number);
        if let Some(version) = number.and_then(|number| self.versions.get_mut(&number)) {
            version.revalidated_at = now;
        }
    }

    /// Records the store's generation of purges.
    pub fn record_generation(&mut self, generation: u64, now: u64) {
        let before = self.generation.replace(generation);
        if before.is_some_and(|before| before != generation) {
            self.purged = Some(now);
        }
    }

    /// Records a fetch over `fd`. Returns whether it violates coalescing: another fetch for the
    /// same target is in progress over a connection that `is_open`, and none failed just before.
    pub fn begin_fetch(
        &mut self,
        (place, page): (PageLocation, usize),
        target: &str,
        fd: i32,
        now: u64,
        is_open: impl Fn(i32) -> bool,
    ) -> bool {
        for fetch in self.fetches.extract_if(.., |fetch| fetch.fd == fd || !is_open(fetch.fd)) {
            self.broken.insert(fetch.target, now);
        }
        let was_broken = self.broken.get(target).is_some_and(|at| now <= at + UNCOALESCED_FOR);
        let others = self.fetches.iter().filter(|fetch| fetch.target == target);
        let counts =
            |other: &FetchRecord| self.purged.is_none_or(|at| at + FETCH_START_MAX < other.since);
        let twice = place.coalesces(page) && !was_broken && others.into_iter().any(counts);
        self.fetches.push(FetchRecord { target: target.to_owned(), fd, since: now });
        twice
    }

    /// The fetch over `fd` is complete.
    pub fn end_fetch(&mut self, fd: i32) {
        self.fetches.retain(|fetch| fetch.fd != fd);
    }

    /// Records that a purge which began at `since` was acknowledged.
    fn acknowledge(&mut self, scope: PurgeScope, since: u64, acked: u64) {
        self.purges.push(PurgeRecord { scope, since, acked });
    }

    /// Power was lost at `now`: purges acknowledged just before may be lost.
    pub fn lose_power(&mut self, now: u64) {
        self.purges.retain(|floor| floor.acked + FLUSHED_WITHIN <= now);
    }

    /// Records the effects of a correct response that was complete at `now`.
    pub fn record_effects(&mut self, request: &SimRequest, response: &SimResponse, now: u64) {
        let session = request.session();
        match request.what {
            RequestKind::Purge(place, page) if place.is_zone() => {
                self.acknowledge(PurgeScope::Key(place, page), request.since, now);
            }
            RequestKind::Purge(place, page) if response.status == 200 => {
                self.acknowledge(
                    PurgeScope::Url(place, page, request.port, session),
                    request.since,
                    now,
                );
            }
            RequestKind::Edit(number, page) if response.status == 200 => {
                if let Some(session) = session.clone() {
                    self.acknowledge(PurgeScope::Session(session), request.since, now);
                }
                let edited = String::from_utf8_lossy(&response.body);
                let at = edited.strip_prefix("edited at ").and_then(|at| at.parse().ok());
                let (_, scope) = purge_header(number, page, session.as_deref());
                if let Some((at, scope)) = at.zip(scope) {
                    self.acknowledge(scope, at, now);
                }
            }
            _ => {}
        }
    }
}
