//! TLS over TCP where the servers of one socket offer different settings. The library fixes them
//! with the configuration that a connection begins with, so this module reads the hello first.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use rustls::server::Acceptor as HelloReader;
use rustls::{Error, InvalidMessage, ServerConfig};

use crate::certs::{CertSet, ServerCerts};

/// LIMIT: bytes of a hello that is waited for; the library bounds its messages alike.
const HELLO_MAX: usize = 70_000;
/// The error for a hello that is not read to its end: a default server must not accept what the
/// named server refuses.
const TOO_LARGE: Error = Error::InvalidMessage(InvalidMessage::HandshakePayloadTooLarge);

/// Configurations by the name in the hello.
#[derive(Debug)]
pub(crate) struct ByName {
    /// For all servers that are not in `others`.
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

/// An incomplete hello, in any number of pieces.
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

    /// Takes all bytes that the connection began with, examines the new ones, and returns the
    /// configuration once it is known. The default server's configuration also handles bytes that
    /// are not a hello: the library reports their error.
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
