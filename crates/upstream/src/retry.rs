//! Why an attempt failed, and whether another server is tried.
//!
//! Owns nginx's rules of `…_next_upstream`; the caller checks whether the body can be sent again.

use bolide_conf::model::NextUpstream;

use crate::request::Cause;

/// Why an attempt failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UpstreamFault {
    /// No connection, or a lost one.
    Error,
    /// A time limit.
    Timeout,
    /// A malformed head.
    InvalidHead,
    /// A status for which another server is tried.
    Status(u16),
    /// A request that no server could be sent.
    Unsendable,
}

impl UpstreamFault {
    /// The client's status when no other server is tried.
    pub(crate) const fn status(self) -> u16 {
        match self {
            Self::Error | Self::InvalidHead | Self::Unsendable => 502,
            Self::Timeout => 504,
            Self::Status(status) => status,
        }
    }

    /// The same for the decision about a stale response.
    pub(crate) const fn cause(self) -> Cause {
        match self {
            Self::Error | Self::Status(_) | Self::Unsendable => Cause::Error,
            Self::InvalidHead => Cause::InvalidHead,
            Self::Timeout => Cause::Timeout,
        }
    }

    /// Whether the failure counts against the server.
    pub(crate) const fn is_blame(self) -> bool {
        !matches!(self, Self::Status(403 | 404) | Self::Unsendable)
    }

    /// Whether another server may be tried after it.
    pub(crate) const fn is_retried(self, rule: NextUpstream) -> bool {
        match self {
            Self::Error => rule.error,
            Self::Timeout => rule.timeout,
            Self::InvalidHead => rule.invalid_header,
            Self::Status(500) => rule.http_500,
            Self::Status(502) => rule.http_502,
            Self::Status(503) => rule.http_503,
            Self::Status(504) => rule.http_504,
            Self::Status(403) => rule.http_403,
            Self::Status(404) => rule.http_404,
            Self::Status(429) => rule.http_429,
            Self::Status(_) | Self::Unsendable => false,
        }
    }
}
