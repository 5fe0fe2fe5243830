//! The start of a connection: the PROXY protocol's header, and the first byte of the client.
//!
//! Owns the client's address from the header, before TLS or HTTP see a byte.

use bolide_conf::model::LogLevel;
use bolide_engine::ConnRelay;
use bolide_io::Io;

use crate::env::WorkerEnv;
use crate::tcp::{Opening, TcpConn};

impl TcpConn {
    /// Removes the PROXY protocol's header from the first `len` received bytes; returns how many
    /// are left. None if they are incomplete.
    ///
    /// # Errors
    ///
    /// The header is invalid; that was logged.
    pub(crate) fn take_proxy<I: Io>(
        &mut self,
        len: usize,
        env: &mut WorkerEnv<I>,
    ) -> Result<Option<usize>, ()> {
        debug_assert!(self.opening == Opening::Proxy, "a header comes once");
        let received = &mut env.scratch.received;
        match bolide_wire::proxy::read(&received[..len]) {
            Ok(bolide_wire::proxy::ProxyRead::Header(header, used)) => {
                debug_assert!(used <= len, "a header lies in what was read");
                self.info.relay = match header {
                    Some(header) => ConnRelay::Named(Box::new(facts(*header))),
                    None => ConnRelay::Unnamed,
                };
                self.opening = Opening::First;
                received.copy_within(used..len, 0);
                Ok((used < len).then(|| len - used))
            }
            Ok(bolide_wire::proxy::ProxyRead::More) => {
                let begun = received[..len].to_vec();
                match &self.session {
                    Some(_) => self.cipher = begun,
                    None => self.input = begun,
                }
                Ok(None)
            }
            Err(broken) => {
                let (subject, text) = (self.subject(), broken.message(&received[..len]));
                if let Some(text) = text {
                    env.log_conn(LogLevel::Error, &subject, &text);
                }
                Err(())
            }
        }
    }
}

fn facts(header: bolide_wire::proxy::ProxyHeader) -> bolide_engine::ProxyFacts {
    bolide_engine::ProxyFacts {
        source: header.source,
        source_port: header.source_port,
        target: header.target,
        target_port: header.target_port,
        fields: header.fields,
    }
}
