//! The addresses of servers, and how to connect to them.

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

/// How to find a server and connect to it.
#[derive(Clone, PartialEq, Eq)]
pub struct ValkeySettings {
    /// Servers, or their sentinels, in the order in which they are tried.
    pub places: Vec<ValkeyPlace>,
    /// The name by which sentinels know the server; without one, `places` are servers.
    pub master: Option<String>,
    /// Trusted certificates in PEM; `None` without TLS.
    pub authorities: Option<Vec<u8>>,
    /// The user of an ACL.
    pub user: Option<String>,
    /// Its password, or that of the server.
    pub password: Option<String>,
    /// The timeout of a connect, and of each reply.
    pub timeout: Duration,
    /// The common prefix of all keys.
    pub namespace: String,
}

impl fmt::Debug for ValkeySettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Passwords are never shown.
        f.debug_struct("ValkeySettings")
            .field("places", &self.places)
            .field("master", &self.master)
            .field("namespace", &self.namespace)
            .finish_non_exhaustive()
    }
}
