//! `bolide explain`: a trial run that shows why a request gets the response that it gets.
//!
//! Owns the trial: a real exchange, stepped as by a worker, with a table of open files of its own
//! and a store that grants read-only lookups, so that the explanation cannot differ from reality.
//! It sends and changes nothing. Easiest to break: an exchange must not touch shared state when
//! `Request::is_dry` is true.

mod advice;
mod asked;
mod json;
pub mod machine;
mod notes;
mod object;
pub(crate) mod ring;
pub(crate) mod trace;
mod trial;
mod url;
pub(crate) mod why;

use std::net::{IpAddr, SocketAddr};

use bolide_cache::{NamespaceId, Store};
use bolide_conf::SourcePlace;
use bolide_http::Scheme;

pub use crate::caching::reach::{UrlReach, tags_from};
use crate::site::Site;

pub use asked::ExplainUrl;
pub use json::Json;
pub(crate) use notes::Trace;
pub use notes::TraceStep;
pub use object::{Candidate, StaleSeconds};
pub use ring::Recent;
pub(crate) use trial::{ExplainTrial, TrialProgress};
pub use trial::{TrialLook, TrialSeen, explain};
pub use url::Url;
pub use why::Why;

/// A hypothetical request.
#[derive(Clone, Debug)]
pub struct ExplainRequest {
    /// The method.
    pub method: Vec<u8>,
    /// The scheme.
    pub scheme: Scheme,
    /// Host and port, as in `Host`.
    pub authority: Vec<u8>,
    /// Path and query, encoded.
    pub target: Vec<u8>,
    /// Further fields.
    pub fields: Vec<(Vec<u8>, Vec<u8>)>,
    /// The index of the listen that it would reach.
    pub listen: usize,
    /// The address of that listen.
    pub local: SocketAddr,
    /// The client's address.
    pub remote: IpAddr,
}

/// A selected block of the configuration.
#[derive(Clone, Debug)]
pub struct Chosen {
    /// Its name.
    pub name: String,
    /// Why it was selected.
    pub why: String,
    /// Its place in the files.
    pub place: SourcePlace,
}

/// Which cache directive applies.
#[derive(Clone, Debug)]
pub struct Switch {
    /// The directive as written: `page_cache auto`, `proxy_cache one`.
    pub text: String,
    /// Its place, if it was written.
    pub place: Option<SourcePlace>,
    /// The namespace of the store; none where nothing is cached.
    pub space: Option<String>,
}

/// The parts of the cache key.
#[derive(Clone, Debug)]
pub struct KeyParts {
    /// The URL part, which all variants of a page share.
    pub url: Vec<u8>,
    /// The vary values, in order.
    pub vary: Vec<Vec<u8>>,
    /// The client's session, if it has one.
    pub session: Option<Vec<u8>>,
    /// The hash of the public key.
    pub hash: u128,
}

/// The final result of a trial.
#[derive(Clone, Debug)]
pub enum PhaseOutcome {
    /// A response with this status from this server itself.
    Answers(u16),
    /// A request to this upstream.
    Asks(String),
    /// It waits for the fetch of another exchange (coalescing).
    Joins,
    /// The connection is closed without an answer.
    Closes,
    /// The page is cached and is assembled from fragments, which are requested.
    Assembles,
    /// It waits for something that a trial does not have.
    Waits,
}

/// The complete explanation of a request.
#[derive(Clone, Debug)]
pub struct Explanation {
    /// Method and URL.
    pub request: String,
    /// The address of the listen.
    pub listen: String,
    /// The server block.
    pub server: Chosen,
    /// The steps of its processing.
    pub steps: Vec<TraceStep>,
    /// The final location.
    pub location: Option<Chosen>,
    /// The cache directive that applies.
    pub switch: Switch,
    /// The namespace of the store that applies, if there is one.
    pub space: Option<NamespaceId>,
    /// The cache key, if one was built.
    pub key: Option<KeyParts>,
    /// The pages that a purge of its URL strikes.
    pub reach: UrlReach,
    /// The objects in the store for this URL.
    pub candidates: Vec<Candidate>,
    /// Recent decisions for the same key, newest first.
    pub recent: Vec<Recent>,
    /// The decision: `HIT`, `STALE`, `UPDATING`, `MISS`, `EXPIRED`, `JOIN`, `BYPASS`, `PASS`,
    /// `PURGE`, or `NONE` where nothing is cached.
    pub decision: &'static str,
    /// `$upstream_cache_status`; may be empty.
    pub cached: &'static str,
    /// The reason as a fixed word, for programs.
    pub why: &'static str,
    /// The reason as a sentence.
    pub reason: String,
    /// The final result.
    pub outcome: PhaseOutcome,
    /// What would have to change for a hit; empty if it is one.
    pub advice: Vec<String>,
}

/// A namespace of the store by its name for users.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExplainSpace {
    /// Whether it belongs to a `fastcgi_cache_path` or its kin; else to a server.
    pub is_zone: bool,
    /// The zone's name, or the first name of the server.
    pub name: String,
    /// Its number in the store.
    pub id: NamespaceId,
}

impl Site {
    /// The namespaces that this configuration names.
    #[must_use]
    pub fn spaces(&self) -> Vec<ExplainSpace> {
        let (Some(kept), Some(http)) = (self.kept(), self.http()) else { return Vec::new() };
        let zones = http.cache_zones.iter().zip(&kept.zones);
        let zones = zones.map(|(zone, id)| ExplainSpace {
            is_zone: true,
            name: zone.name.to_string(),
            id: *id,
        });
        let servers = http.servers.iter().zip(&kept.pages);
        let servers = servers.map(|(server, id)| ExplainSpace {
            is_zone: false,
            name: server.primary_name.to_string(),
            id: *id,
        });
        zones.chain(servers).collect()
    }
}

/// The recent decisions of all workers, newest first.
#[must_use]
pub fn recent(store: &Store, mut wanted: impl FnMut(&Recent) -> bool) -> Vec<Recent> {
    let mut all = Vec::new();
    store.decisions(|noted| {
        let recent = Recent::new(noted);
        if wanted(&recent) {
            all.push(recent);
        }
    });
    all.sort_by_key(|recent| std::cmp::Reverse(recent.at_ms));
    all
}

/// The listen that a request for this scheme and port reaches, preferably one that knows `host`;
/// none if no socket listens there.
#[must_use]
pub fn listen_of(site: &Site, scheme: Scheme, port: u16, host: &[u8]) -> Option<usize> {
    let mut captures = bolide_patterns::Captures::default();
    let fits = |index: &usize| {
        let listen = &site.listens()[*index];
        let is_tls = scheme == Scheme::Https;
        listen.transport == bolide_conf::model::ListenTransport::Tcp
            && listen.tls == is_tls
            && listen.address.port() == port
            && port != 0
    };
    let all: Vec<usize> = (0..site.listens().len()).filter(fits).collect();
    let knows = |index: &usize| {
        site.server_of_host(*index, host, &mut captures) != site.default_server(*index)
    };
    all.iter().copied().find(knows).or_else(|| all.first().copied())
}
