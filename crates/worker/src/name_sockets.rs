//! Sockets to name servers: UDP, and TCP for messages that do not fit a datagram.
//!
//! Owns the descriptors and unsent bytes; the resolver's state machine owns the messages.

use std::collections::VecDeque;
use std::net::SocketAddr;

use bolide_base::Segment;
use bolide_io::{Callee, ConnectCall, Fd, Interest, Io, Readiness, ReceivedBytes, Reset, Sent};
use bolide_resolver::Transport;
use bytes::Bytes;

/// LIMIT: bytes of questions that wait for a stream.
const UNSENT_MAX: usize = 8192;
/// LIMIT: datagrams of one server in one turn.
pub(crate) const DATAGRAMS_PER_TURN: usize = 16;
/// LIMIT: reads of a stream for one report; a server that sends more has its stream closed.
const READS_PER_REPORT: usize = 16;
/// Bytes of a datagram that are looked at.
pub(crate) const DATAGRAM_SIZE: usize = 4096;
/// Bytes of a stream that are read at once.
const READ_SIZE: usize = 16 * 1024;

/// A name server.
#[derive(Debug)]
pub(crate) struct NameServer {
    pub(crate) at: SocketAddr,
    pub(crate) datagrams: Option<Fd>,
    pub(crate) stream: Option<NameStream>,
}

/// A stream to a name server.
#[derive(Debug)]
pub(crate) struct NameStream {
    fd: Fd,
    /// Whether it is connected.
    stands: bool,
    unsent: VecDeque<Bytes>,
}

/// The events of a TCP connection.
#[derive(Debug, Default)]
pub(crate) struct StreamNews {
    /// Received bytes.
    pub(crate) received: Vec<u8>,
    /// Whether some of the queries were sent.
    pub(crate) wrote: bool,
    /// It is closed.
    pub(crate) is_over: bool,
    /// The errno of a failed connect.
    pub(crate) refused: Option<i32>,
}

/// A socket of a resolver, for its token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NameSocket {
    pub(crate) resolver: u32,
    pub(crate) server: u32,
    pub(crate) transport: Transport,
}

impl NameSocket {
    /// In one word of 56 bits.
    pub(crate) const fn to_bits(self) -> u64 {
        let stream = matches!(self.transport, Transport::Stream) as u64;
        (self.resolver as u64) << 32 | (self.server as u64) << 1 | stream
    }

    pub(crate) const fn from_bits(bits: u64) -> Self {
        let transport = if bits & 1 == 1 { Transport::Stream } else { Transport::Datagram };
        Self { resolver: (bits >> 32) as u32, server: (bits as u32) >> 1, transport }
    }
}

impl NameServer {
    pub(crate) const fn new(at: SocketAddr) -> Self {
        Self { at, datagrams: None, stream: None }
    }

    /// Sends one datagram over a socket, which is opened if necessary.
    ///
    /// # Errors
    ///
    /// The failure, for the log; the socket is closed.
    pub(crate) fn send_datagram(
        &mut self,
        io: &mut impl Io,
        token: u64,
        bytes: &[u8],
    ) -> Result<(), String> {
        let fd = match self.datagrams {
            Some(fd) => fd,
            None => self.open_datagrams(io, token)?,
        };
        io.send_datagram(fd, bytes).map_err(|errno| {
            self.close_datagrams(io);
            failed("send", errno)
        })
    }

    fn open_datagrams(&mut self, io: &mut impl Io, token: u64) -> Result<Fd, String> {
        let fd =
            io.call_datagrams(self.at).map_err(|failure| failed(failure.call, failure.errno))?;
        if !io.watch(fd, token, Interest::Level) {
            io.close(fd, Reset::No);
            return Err("epoll_ctl() failed".to_owned());
        }
        debug_assert!(self.datagrams.is_none(), "a server has one socket");
        self.datagrams = Some(fd);
        Ok(fd)
    }

    pub(crate) fn close_datagrams(&mut self, io: &mut impl Io) {
        if let Some(fd) = self.datagrams.take() {
            io.close(fd, Reset::No);
        }
    }

    /// Sends a query over TCP; connects if necessary.
    ///
    /// # Errors
    ///
    /// The failure, for the log; the connection is closed.
    pub(crate) fn send_stream(
        &mut self,
        io: &mut impl Io,
        token: u64,
        bytes: Vec<u8>,
    ) -> Result<(), String> {
        if self.stream.is_none() {
            self.stream = Some(open_stream(io, self.at, token)?);
        }
        debug_assert!(bytes.len() > 2, "a question stands behind its length");
        let Some(stream) = &mut self.stream else { return Ok(()) };
        let waiting: usize = stream.unsent.iter().map(Bytes::len).sum();
        if waiting + bytes.len() > UNSENT_MAX {
            return Err("too many questions wait for a stream".to_owned());
        }
        stream.unsent.push_back(bytes.into());
        if stream.stands && stream.flush(io).is_err() {
            self.close_stream(io);
            return Err("send() failed".to_owned());
        }
        Ok(())
    }

    pub(crate) fn close_stream(&mut self, io: &mut impl Io) {
        if let Some(stream) = self.stream.take() {
            io.close(stream.fd, Reset::No);
        }
    }

    /// Handles a readiness report.
    pub(crate) fn wake_stream(&mut self, io: &mut impl Io, report: Readiness) -> StreamNews {
        let mut news = StreamNews::default();
        let Some(stream) = &mut self.stream else { return news };
        if !stream.stands {
            news.refused = io.connect_result(stream.fd).err();
            stream.stands = news.refused.is_none();
        }
        news.is_over = news.refused.is_some();
        if stream.stands {
            match stream.flush(io) {
                Ok(wrote) => news.wrote = wrote,
                Err(()) => news.is_over = true,
            }
        }
        if stream.stands && (report.readable || report.hangup) {
            news.is_over |= stream.read(io, &mut news.received);
        }
        if news.is_over {
            self.close_stream(io);
        }
        news
    }

    pub(crate) fn close(&mut self, io: &mut impl Io) {
        self.close_datagrams(io);
        self.close_stream(io);
    }
}

impl NameStream {
    /// Sends queued bytes as far as possible; returns whether any were sent.
    fn flush(&mut self, io: &mut impl Io) -> Result<bool, ()> {
        let mut wrote = false;
        while let Some(first) = self.unsent.front_mut() {
            match io.send_segment(self.fd, &Segment::Bytes(first.clone())) {
                Sent::Bytes(0) => break,
                Sent::Bytes(n) => {
                    wrote = true;
                    let _ = first.split_to((n as usize).min(first.len()));
                    if !first.is_empty() {
                        break;
                    }
                    self.unsent.pop_front();
                }
                Sent::Dead | Sent::FileFailed => return Err(()),
            }
        }
        Ok(wrote)
    }

    /// Reads until there is no more; returns whether that was the end.
    fn read(&self, io: &mut impl Io, into: &mut Vec<u8>) -> bool {
        for _ in 0..READS_PER_REPORT {
            let start = into.len();
            into.resize(start + READ_SIZE, 0);
            let got = io.receive(self.fd, &mut into[start..]);
            into.truncate(start + if let ReceivedBytes::Bytes(n) = got { n } else { 0 });
            match got {
                ReceivedBytes::Bytes(_) => {}
                ReceivedBytes::Blocked => return false,
                ReceivedBytes::End | ReceivedBytes::Dead => return true,
            }
        }
        true
    }
}

fn open_stream(io: &mut impl Io, at: SocketAddr, token: u64) -> Result<NameStream, String> {
    let ConnectCall { fd, stands } = io
        .connect(Callee::Inet(at), None)
        .map_err(|failure| failed(failure.call, failure.errno))?;
    if !io.watch(fd, token, Interest::Edge) {
        io.close(fd, Reset::No);
        return Err("epoll_ctl() failed".to_owned());
    }
    Ok(NameStream { fd, stands, unsent: VecDeque::new() })
}

/// The message for a failed system call, in nginx's words.
pub(crate) fn failed(call: &str, errno: i32) -> String {
    format!("{call}() failed ({})", bolide_base::errno::reason(errno))
}

#[cfg(test)]
mod tests {
    use super::{NameSocket, Transport};

    #[test]
    fn a_socket_survives_its_token() {
        for transport in [Transport::Datagram, Transport::Stream] {
            let socket = NameSocket { resolver: 0x3fff, server: 0x7fff, transport };
            assert_eq!(NameSocket::from_bits(socket.to_bits()), socket);
            assert!(socket.to_bits() < 1 << 56);
        }
    }
}
