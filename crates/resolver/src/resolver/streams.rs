//! TCP connections to servers: sent queries, and messages split out of received bytes.

use std::sync::Arc;
use std::time::Duration;

use bolide_base::{Instant, Now};

use super::{NameQuery, Resolver, ResolverEffect, Transport};

/// How long a connection stays open after the last query.
const STREAM_AFTER: Duration = Duration::from_secs(5);

/// Received bytes without a complete message.
#[derive(Debug, Default)]
pub(super) struct DnsStream {
    /// Fewer bytes than a length and a message.
    received: Vec<u8>,
    /// When it is closed; `None` if it is closed already.
    until: Option<Instant>,
}

impl DnsStream {
    pub(super) const fn until(&self) -> Option<Instant> {
        self.until
    }
}

impl Resolver {
    /// Takes bytes from the TCP connection to a server.
    pub fn receive_stream(&mut self, server: usize, bytes: &[u8], now: Now) {
        let Some(stream) = self.streams.get_mut(server) else { return };
        let mut all = std::mem::take(&mut stream.received);
        all.extend_from_slice(bytes);
        let mut rest = &all[..];
        while let Some((message, behind)) = cut(rest) {
            self.receive(server, message, Transport::Stream, now);
            rest = behind;
            // One log line is enough for a server that sends empty messages.
            if message.is_empty() {
                self.handle_closed(server);
                return self.effects.push_back(ResolverEffect::Close(server));
            }
        }
        if let Some(stream) = self.streams.get_mut(server) {
            stream.received = rest.to_vec();
        }
    }

    /// The TCP connection to a server was closed, or could not be opened.
    pub fn handle_closed(&mut self, server: usize) {
        if let Some(stream) = self.streams.get_mut(server) {
            *stream = DnsStream::default();
        }
    }

    /// Bytes of a query were sent to a server over TCP.
    pub fn handle_written(&mut self, server: usize, now: Now) {
        if let Some(stream) = self.streams.get_mut(server) {
            stream.until = Some(now.mono.after(STREAM_AFTER));
        }
    }

    pub(super) fn expire_streams(&mut self, now: Now) {
        for (server, stream) in self.streams.iter_mut().enumerate() {
            if stream.until.is_some_and(|until| until <= now.mono) {
                *stream = DnsStream::default();
                self.effects.push_back(ResolverEffect::Close(server));
            }
        }
    }

    pub(super) fn push_query(
        &mut self,
        name: Arc<[u8]>,
        serial: u64,
        server: usize,
        mut messages: Vec<(Transport, Vec<u8>)>,
    ) {
        for (transport, message) in &mut messages {
            if *transport == Transport::Stream {
                let len = (message.len() as u16).to_be_bytes();
                message.splice(0..0, len);
            }
        }
        if !messages.is_empty() {
            let query = NameQuery { name, serial, server, messages };
            self.effects.push_back(ResolverEffect::Send(query));
        }
    }
}

/// Splits the first message off, with the bytes after it.
fn cut(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (len, behind) = bytes.split_first_chunk::<2>()?;
    behind.split_at_checked(usize::from(u16::from_be_bytes(*len)))
}
