//! The kernel's figures for one TCP connection.

/// The figures of `$tcpinfo_*`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpInfo {
    /// Smoothed round-trip time in microseconds.
    pub rtt: u32,
    /// Its variance, in microseconds.
    pub rttvar: u32,
    /// Congestion window in segments.
    pub snd_cwnd: u32,
    /// Receive window in bytes.
    pub rcv_space: u32,
}
