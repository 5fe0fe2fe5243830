//! The rates of injected faults, except those of the UDP network.

/// The rates of faults. A field `…_in` means once in so many times, 0 for never.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FaultRates {
    /// A readiness event is delayed.
    pub late_in: u64,
    /// accept4() fails for lack of a resource.
    pub accept_in: u64,
    /// A new connection cannot be watched.
    pub watch_in: u64,
    /// An open fails.
    pub open_in: u64,
    /// A file is rewritten while it is opened.
    pub race_in: u64,
    /// A read fails.
    pub read_in: u64,
    /// A read is short.
    pub short_read_in: u64,
    /// The network breaks a connection, per round.
    pub cut_in: u64,
    /// A connect to an upstream is refused.
    pub refuse_in: u64,
    /// An application has a fault.
    pub app_fault_in: u64,
    /// A temporary file cannot be created or written.
    pub spool_in: u64,
    /// A log cannot be opened or written.
    pub log_in: u64,
    /// A call for a cache file fails.
    pub store_in: u64,
    /// Bytes of the largest send buffer.
    pub outbound_max: usize,
}
