//! `limit_req*`, `limit_conn*`: shared zones, and their use by locations.

use super::LogLevel;
use crate::vars::Template;

/// An index into [`super::Http::limit_zones`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LimitZoneId(pub u32);

impl LimitZoneId {
    /// The position in the list.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// A `limit_req_zone` or `limit_conn_zone`.
#[derive(Clone, Debug, PartialEq)]
pub struct LimitZone {
    /// Its name.
    pub name: Box<[u8]>,
    /// Bytes of memory, counted as in nginx.
    pub size: u64,
    /// The key to count by; an empty value is not counted.
    pub key: Template,
    /// The key as written.
    pub key_text: Box<[u8]>,
    /// How it is counted.
    pub kind: LimitKind,
    /// Whether the servers of a cluster count together.
    pub shared: bool,
}

/// The unit that a zone counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LimitKind {
    /// Requests over time.
    Requests {
        /// Thousandths of a request per second.
        rate: u64,
    },
    /// Requests at a time.
    Connections,
}

/// `limit_req` and `limit_conn` of a location.
#[derive(Clone, Debug, PartialEq)]
pub struct LimitRules {
    /// `limit_req`, in file order.
    pub requests: Vec<RequestLimit>,
    /// `limit_req_status`, `limit_req_log_level`, `limit_req_dry_run`
    pub requests_terms: LimitTerms,
    /// `limit_conn`, in file order.
    pub connections: Vec<ConnLimit>,
    /// `limit_conn_status`, `limit_conn_log_level`, `limit_conn_dry_run`
    pub connections_terms: LimitTerms,
}

impl LimitRules {
    /// Whether there is no limit.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.requests.is_empty() && self.connections.is_empty()
    }
}

/// The treatment of a request beyond a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LimitTerms {
    /// The status that it gets.
    pub status: u16,
    /// The log level of that; a delay is logged one level below.
    pub level: LogLevel,
    /// Whether it is only logged.
    pub dry_run: bool,
}

impl LimitTerms {
    /// The default terms.
    pub const DEFAULT: Self = Self { status: 503, level: LogLevel::Error, dry_run: false };
}

/// One `limit_req`. Requests are counted in thousandths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestLimit {
    /// Where they are counted.
    pub zone: LimitZoneId,
    /// How many may exceed the rate.
    pub burst: u64,
    /// How many of those are not delayed.
    pub delay: u64,
}

/// One `limit_conn`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnLimit {
    /// Where they are counted.
    pub zone: LimitZoneId,
    /// How many there may be at the same time.
    pub most: u32,
}
