//! What is spoken over TCP where the servers of one socket do not all offer the same: the library
//! takes that from the configuration that a connection begins with, so the hello is looked at
//! first.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use rustls::server::Acceptor as HelloReader;
use rustls::{Error, InvalidMessage, ServerConfig};

use crate::certs::{CertSet, ServerCerts};

/// LIMIT: bytes of a hello that is waited for; the library bounds its messages alike.
const HELLO_MAX: usize = 70_000;
/// What is said of a hello that nobody reads to its end: what its server refuses must not pass for
/// what the default server takes.
const TOO_LARGE: Error = Error::InvalidMessage(InvalidMessage::HandshakePayloadTooLarge);

/// Configurations by the name in the hello.
#[derive(Debug)]
pub(crate) struct ByName {
    /// For everybody who is not in `others`.
    pub(crate) usual: Arc<ServerConfig>,
    pub(crate) names: ServerCerts,
    pub(crate) others: HashMap<CertSet, Arc<ServerConfig>>,
}

impl ByName {
    fn choose(&self, name: Option<&str>) -> Arc<ServerConfig> {
        let other = self.names.choose(name).and_then(|set| self.others.get(&set));
        Arc::clone(other.unwrap_or(&self.usual))
    }
}

/// A hello on its way in, in however many pieces.
pub(crate) struct Hello {
    by_name: Arc<ByName>,
    reader: HelloReader,
    /// Bytes at the front of the connection that the reader has.
    seen: usize,
}

impl Hello {
    pub(crate) fn new(by_name: &Arc<ByName>) -> Self {
        Self { by_name: Arc::clone(by_name), reader: HelloReader::default(), seen: 0 }
    }

    /// Takes all bytes that the connection began with, of which only new ones are looked at, and
    /// tells with what it goes on once that is known. The default server's also answers what is no
    /// hello: the library says what is wrong with it.
    pub(crate) fn receive(&mut self, bytes: &[u8]) -> Result<Option<Arc<ServerConfig>>, Error> {
        while let Some(mut fresh @ [_, ..]) = bytes.get(self.seen..) {
            let Ok(taken @ 1..) = self.reader.read_tls(&mut fresh) else { return Err(TOO_LARGE) };
            self.seen += taken;
            match self.reader.accept() {
                Ok(None) => {}
                Ok(Some(hello)) => {
                    return Ok(Some(self.by_name.choose(hello.client_hello().server_name())));
                }
                Err(_) => return Ok(Some(Arc::clone(&self.by_name.usual))),
            }
        }
        if bytes.len() > HELLO_MAX { Err(TOO_LARGE) } else { Ok(None) }
    }
}

impl fmt::Debug for Hello {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hello").field("seen", &self.seen).finish_non_exhaustive()
    }
}
