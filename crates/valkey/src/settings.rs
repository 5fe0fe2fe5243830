//! Where servers are, and how they are spoken to.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// Where one server listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ValkeyPlace {
    /// A socket of this machine.
    Unix(PathBuf),
    /// A name or an address, without the brackets of IPv6, and a port.
    Tcp(String, u16),
}

impl fmt::Display for ValkeyPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
            Self::Tcp(host, port) if host.contains(':') => write!(f, "[{host}]:{port}"),
            Self::Tcp(host, port) => write!(f, "{host}:{port}"),
        }
    }
}

/// How a server is found and spoken to.
#[derive(Clone, PartialEq, Eq)]
pub struct ValkeySettings {
    /// Servers, or their sentinels, in the order in which they are tried.
    pub places: Vec<ValkeyPlace>,
    /// The name by which sentinels know the server; without one, `places` are servers.
    pub master: Option<String>,
    /// Authorities in PEM, if TLS is spoken.
    pub authorities: Option<Vec<u8>>,
    /// The user of an ACL.
    pub user: Option<String>,
    /// Its password, or that of the server.
    pub password: Option<String>,
    /// How long a server may take to connect, and for each reply.
    pub timeout: Duration,
    /// The name that all keys have.
    pub namespace: String,
}

impl fmt::Debug for ValkeySettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A password is shown nowhere.
        f.debug_struct("ValkeySettings")
            .field("places", &self.places)
            .field("master", &self.master)
            .field("namespace", &self.namespace)
            .finish_non_exhaustive()
    }
}
