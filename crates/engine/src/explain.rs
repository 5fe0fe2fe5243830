//! Why a request is answered as it is: a trial run of the real machine, and what it tells.
//!
//! Owns the trial: an exchange that is stepped as a worker would, with a table of its own and a
//! store that only looks, so that what is said here cannot differ from what is done. It sends
//! nothing and changes nothing. Easiest to break: what an exchange does to shared things, it must
//! not do when `Request::is_dry` says so.

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

use crate::site::Site;

pub use asked::ExplainUrl;
pub use json::Json;
pub(crate) use notes::Trace;
pub use notes::TraceStep;
pub use object::Candidate;
pub use ring::Recent;
pub(crate) use trial::{ExplainTrial, TrialProgress};
pub use trial::{TrialLook, TrialSeen, explain};
pub use url::Url;
pub use why::Why;

/// A request that no client sent.
#[derive(Clone, Debug)]
pub struct ExplainRequest {
    /// The method.
    pub method: Vec<u8>,
    /// How it would come.
    pub scheme: Scheme,
    /// Host and port as in `Host`.
    pub authority: Vec<u8>,
    /// Path and query, encoded.
    pub target: Vec<u8>,
    /// Further fields.
    pub fields: Vec<(Vec<u8>, Vec<u8>)>,
    /// Which of the site's listens it would reach, and its address.
    pub listen: usize,
    /// That address.
    pub local: SocketAddr,
    /// Who asks.
    pub remote: IpAddr,
}

/// A block of the configuration that was chosen.
#[derive(Clone, Debug)]
pub struct Chosen {
    /// How it is called.
    pub name: String,
    /// Why it was chosen.
    pub why: String,
    /// Where it stands.
    pub place: SourcePlace,
}

/// Which cache has a say.
#[derive(Clone, Debug)]
pub struct Switch {
    /// What was written: `page_cache auto`, `fastcgi_cache one`.
    pub text: String,
    /// Where, if it was.
    pub place: Option<SourcePlace>,
    /// The part of the store; none where nothing is cached.
    pub space: Option<String>,
}

/// What the request is known by in the store.
#[derive(Clone, Debug)]
pub struct KeyParts {
    /// The part that all copies of a page share.
    pub url: Vec<u8>,
    /// What tells copies apart, in order.
    pub vary: Vec<Vec<u8>>,
    /// The client's session, if it has one.
    pub session: Option<Vec<u8>>,
    /// The hash of the public key.
    pub hash: u128,
}

/// What would happen at the end.
#[derive(Clone, Debug)]
pub enum PhaseOutcome {
    /// An answer of this status, made here.
    Answers(u16),
    /// This origin is asked.
    Asks(String),
    /// Another exchange's fetch is waited for (coalescing).
    Joins,
    /// The connection is closed without an answer.
    Closes,
    /// The page is there, and is put together from parts, which are asked for.
    Assembles,
    /// Something that a trial does not have is waited for.
    Waits,
}

/// The whole story of a request.
#[derive(Clone, Debug)]
pub struct Explanation {
    /// Method and URL.
    pub request: String,
    /// The address that it reaches.
    pub listen: String,
    /// The server block.
    pub server: Chosen,
    /// The way, step by step.
    pub steps: Vec<TraceStep>,
    /// The location in the end.
    pub location: Option<Chosen>,
    /// What switched the cache on, or did not.
    pub switch: Switch,
    /// The part of the store that has a say, if one has.
    pub space: Option<NamespaceId>,
    /// The key, if it came to one.
    pub key: Option<KeyParts>,
    /// What the store has of this URL.
    pub candidates: Vec<Candidate>,
    /// What was decided lately for the same key, the newest first.
    pub recent: Vec<Recent>,
    /// The decision in a word: `HIT`, `STALE`, `UPDATING`, `MISS`, `EXPIRED`, `JOIN`, `BYPASS`,
    /// `PASS`, `PURGE`, or `NONE` where no cache has a part.
    pub decision: &'static str,
    /// `$upstream_cache_status`; empty if it is.
    pub cached: &'static str,
    /// Why, for machines.
    pub why: &'static str,
    /// Why, for people.
    pub reason: String,
    /// What happens then.
    pub outcome: PhaseOutcome,
    /// What would have to change for a hit; nothing if it is one.
    pub advice: Vec<String>,
}

/// A part of the store by the name that people know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExplainSpace {
    /// Whether it is a `fastcgi_cache_path`; else it is a server's.
    pub is_zone: bool,
    /// The zone's name, or the first name of the server.
    pub name: String,
    /// Its number in the store.
    pub id: NamespaceId,
}

impl Site {
    /// The parts of the store that this configuration names.
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

/// What the workers have decided lately, the newest first.
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

/// The listen that a request for this scheme and port reaches, the one that knows `host` first;
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
