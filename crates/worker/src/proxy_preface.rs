//! What comes before the client's own bytes: the PROXY protocol's header, and the first byte.
//!
//! Owns what a connection is told of its client, once, before TLS or HTTP see anything.

use bolide_base::SlabKey;
use bolide_conf::model::LogLevel;
use bolide_io::{Io, Reset};

use crate::tcp::TcpConn;
use crate::worker::Worker;

/// How far a connection has come before its client speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Opening {
    /// A header of the PROXY protocol is due.
    Proxy,
    /// No byte of the client itself was seen.
    First,
    /// The client has spoken.
    Over,
}

impl<I: Io> Worker<I> {
    /// Takes the PROXY protocol's header off the first `len` bytes that were received; how many
    /// are left then. Nothing if they are to wait, or the connection is gone.
    pub(crate) fn take_proxy(&mut self, key: SlabKey<TcpConn>, len: usize) -> Option<usize> {
        let conn = self.conns.get_mut(key)?;
        let received = &mut self.env.scratch.received;
        match bolide_wire::proxy::read(&received[..len]) {
            Ok(bolide_wire::proxy::ProxyRead::Header(header, used)) => {
                conn.info.proxy = header.map(|header| Box::new(facts(*header)));
                conn.opening = Opening::First;
                received.copy_within(used..len, 0);
                if used == len {
                    self.after_input(key);
                    return None;
                }
                Some(len - used)
            }
            Ok(bolide_wire::proxy::ProxyRead::More) => {
                let begun = received[..len].to_vec();
                match &conn.session {
                    Some(_) => conn.cipher = begun,
                    None => conn.input = begun,
                }
                self.after_input(key);
                None
            }
            Err(broken) => {
                let (subject, text) = (conn.subject(), broken.message(&received[..len]));
                if let Some(text) = text {
                    self.env.log_conn(LogLevel::Error, &subject, &text);
                }
                self.close(key, Reset::No);
                None
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
