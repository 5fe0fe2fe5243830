//! What servers of a cluster share, and where.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use super::SourcePlace;

/// A `cluster` block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterConf {
    /// Where Valkey is.
    pub address: ClusterAddress,
    /// `namespace`
    pub namespace: String,
    /// `node`; without one, the name of the machine.
    pub node: Option<String>,
    /// `user`
    pub user: Option<String>,
    /// `password`
    pub password: Option<Secret>,
    /// `password_file`
    pub password_file: Option<PathBuf>,
    /// `trusted_certificate`
    pub trusted_certificate: Option<PathBuf>,
    /// `reply_timeout`
    pub reply_timeout: Duration,
    /// `purge_keep_time`
    pub purge_keep_time: Duration,
    /// `purge_keep_count`
    pub purge_keep_count: u32,
    /// `purge_queue`
    pub purge_queue: u32,
    /// `objects`
    pub objects: SharedObjects,
    /// `objects_timeout`
    pub objects_timeout: Duration,
    /// `objects_lease_time`
    pub objects_lease_time: Duration,
    /// `objects_max_size`
    pub objects_max_size: u64,
    /// `objects_min_uses`
    pub objects_min_uses: u32,
    /// `secrets_key`: files, the first one seals; and where they are named.
    pub secrets_keys: Vec<(PathBuf, SourcePlace)>,
}

/// Which objects are shared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SharedObjects {
    /// None.
    Off,
    /// Those that are for all visitors.
    Public,
}

/// Where Valkey is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClusterAddress {
    /// A socket of this machine.
    Unix(PathBuf),
    /// Servers, or sentinels.
    Tcp {
        /// Names or addresses, without the brackets of IPv6, and ports, in the order in which they
        /// are tried.
        hosts: Vec<(String, u16)>,
        /// Whether over TLS.
        is_secure: bool,
        /// The name that sentinels know the server by.
        master: Option<String>,
    },
}

impl ClusterAddress {
    /// Whether TLS is spoken.
    #[must_use]
    pub const fn is_secure(&self) -> bool {
        matches!(self, Self::Tcp { is_secure: true, .. })
    }
}

/// A text that is shown nowhere.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(pub String);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}
