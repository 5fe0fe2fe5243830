//! How fast an answer may leave.

/// `limit_rate` and `limit_rate_after`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rate {
    /// When the request came.
    pub since: bolide_base::Instant,
    /// Bytes per second; 0 is no limit.
    pub per_second: u64,
    /// Bytes that leave before the limit holds.
    pub after: u64,
}
