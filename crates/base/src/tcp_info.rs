//! The kernel's figures for one TCP connection.

/// The figures behind `$tcpinfo_*`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpInfo {
    /// Smoothed round trip in microseconds.
    pub rtt: u32,
    /// How much it varies, in microseconds.
    pub rttvar: u32,
    /// Congestion window in segments.
    pub snd_cwnd: u32,
    /// Receive window in bytes.
    pub rcv_space: u32,
}
