//! What is spoken over TCP when servers of one socket do not agree on HTTP/2: the library takes its
//! protocols from the configuration that a connection begins with, so the hello is looked at first.

use std::sync::Arc;

use rustls::ServerConfig;
use rustls::server::Acceptor as HelloReader;

use crate::certs::{CertSet, ServerCerts};

/// Which names belong to servers that differ from the default server.
#[derive(Debug)]
pub struct Odd {
    names: ServerCerts,
    odd: CertSet,
}

impl Odd {
    /// Names of which those in `odd` differ.
    #[must_use]
    pub const fn new(names: ServerCerts, odd: CertSet) -> Self {
        Self { names, odd }
    }

    fn has(&self, name: Option<&str>) -> bool {
        self.names.choose(name) == Some(self.odd)
    }
}

/// The configuration of servers that differ, and which they are.
#[derive(Clone, Debug)]
pub(crate) struct Other {
    pub(crate) odd: Arc<Odd>,
    pub(crate) config: Arc<ServerConfig>,
}

/// With what a connection begins.
#[derive(Debug)]
pub(crate) enum Choice {
    /// The hello is not complete.
    Unknown,
    /// The default server's, also for what is no hello: the library says what is wrong with it.
    Usual,
    /// The other.
    Other(Arc<ServerConfig>),
    /// Nobody's: it is larger than anything that would be read to the end, and what its server
    /// refuses must not pass for what the default server takes.
    Refused,
}

impl Other {
    /// Chooses by the records at the front of a connection.
    pub(crate) fn choose(&self, mut records: &[u8]) -> Choice {
        let mut reader = HelloReader::default();
        while !records.is_empty() {
            if !matches!(reader.read_tls(&mut records), Ok(1..)) {
                return Choice::Refused;
            }
            match reader.accept() {
                Ok(None) => {}
                Ok(Some(accepted)) if self.odd.has(accepted.client_hello().server_name()) => {
                    return Choice::Other(self.config.clone());
                }
                Ok(Some(_)) | Err(_) => return Choice::Usual,
            }
        }
        Choice::Unknown
    }
}
