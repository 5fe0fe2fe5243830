//! The rate limit of a response.

/// `limit_rate` and `limit_rate_after`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rate {
    /// When the request began.
    pub since: bolide_base::Instant,
    /// Bytes per second; 0 is no limit.
    pub per_second: u64,
    /// Bytes that are sent before the limit applies.
    pub after: u64,
}
