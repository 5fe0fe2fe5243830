//! Name servers: `resolver` and its parameters.

use std::net::SocketAddr;

/// A `resolver` directive. Blocks that inherit it share it, and so what it learned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameServers {
    /// The servers, at least one, in the order in which they are asked.
    pub servers: Vec<SocketAddr>,
    /// `valid`: seconds that answers are good; `None` for their TTL.
    pub valid: Option<u64>,
    /// `ipv4`: whether A records are asked for.
    pub ipv4: bool,
    /// `ipv6`: whether AAAA records are asked for.
    pub ipv6: bool,
}
