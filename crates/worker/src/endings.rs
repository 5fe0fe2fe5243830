//! How sockets of clients end: behind the log lines of what they asked.
//!
//! Owns the order of the two, and refuses to end a socket while a line is due that can be written.
//! As in nginx, a client that sees the end of its connection finds its requests in the log. Lines
//! leave once per turn, and so the ends wait for them; a turn without lines ends sockets at once.

use bolide_engine::Due;
use bolide_io::{AfterSend, Fd, Io, Reset};

use crate::env::WorkerEnv;

/// What of a socket ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EndOfSocket {
    /// Our side: the client is read to its own end.
    Writing,
    /// All of it.
    Closed(Reset),
}

/// The end of a client's socket.
#[derive(Debug)]
pub(crate) struct SocketEnd {
    pub(crate) fd: Fd,
    /// The last bytes to send, if there are any: a client of TLS takes them for the end.
    pub(crate) close_notify: Vec<u8>,
    pub(crate) how: EndOfSocket,
}

impl<I: Io> WorkerEnv<I> {
    /// Ends a socket, behind the lines that are due.
    pub(crate) fn end(&mut self, end: SocketEnd) {
        if self.logs.has_due() || !self.endings.is_empty() {
            self.endings.push(end);
        } else {
            self.end_now(end);
        }
    }

    /// Writes the lines that are due, then ends the sockets that waited for them.
    #[inline]
    pub(crate) fn write_logs_and_end(&mut self) {
        self.write_logs(Due::Only);
        if !self.endings.is_empty() {
            self.end_all();
        }
    }

    fn end_all(&mut self) {
        let mut endings = std::mem::take(&mut self.endings);
        for end in endings.drain(..) {
            self.end_now(end);
        }
        debug_assert!(self.endings.is_empty(), "a socket that ends ends no other");
        self.endings = endings;
    }

    /// Ends the sockets that wait for the lines of this turn, as their descriptors are needed now;
    /// false if there are none. One that ends next need not wait for what is logged so far.
    pub(crate) fn end_waiting(&mut self) -> bool {
        let were_some = !self.endings.is_empty();
        self.write_logs_and_end();
        were_some
    }

    fn end_now(&mut self, end: SocketEnd) {
        let SocketEnd { fd, close_notify, how } = end;
        debug_assert!(
            close_notify.is_empty() || how != EndOfSocket::Closed(Reset::Yes),
            "a connection that is reset says nothing"
        );
        if !close_notify.is_empty() {
            // A peer that has no room for two dozen bytes does not wait for them either.
            let _ = self.io.send_bytes(fd, &close_notify, AfterSend::End);
        }
        match how {
            EndOfSocket::Writing => self.io.shut_write(fd),
            EndOfSocket::Closed(reset) => self.close(fd, reset),
        }
    }
}
