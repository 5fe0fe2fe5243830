//! Closes the sockets of clients, after the log lines of their requests.
//!
//! Owns the order: no socket is closed while a line is due that can be written. As in nginx, a
//! client that sees the end of its connection finds its requests in the log. Lines are written once
//! per turn, so sockets wait for that; in a turn without lines they are closed at once.

use bolide_engine::Due;
use bolide_io::{AfterSend, Fd, Io, Reset};

use crate::env::WorkerEnv;

/// How a socket ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EndOfSocket {
    /// Our sending side; the client is still read to its end.
    Writing,
    /// Both sides.
    Closed(Reset),
}

/// The end of a client's socket.
#[derive(Debug)]
pub(crate) struct SocketEnd {
    pub(crate) fd: Fd,
    /// The last bytes to send, if any: clients of TLS expect them before the end.
    pub(crate) close_notify: Vec<u8>,
    pub(crate) how: EndOfSocket,
}

impl<I: Io> WorkerEnv<I> {
    /// Closes a socket, after the lines that are due.
    pub(crate) fn end(&mut self, end: SocketEnd) {
        if self.logs.has_due() || !self.endings.is_empty() {
            self.endings.push(end);
        } else {
            self.end_now(end);
        }
    }

    /// Writes the lines that are due, then closes the sockets that waited for them.
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

    /// Closes the waiting sockets early, because descriptors are needed; false if there are none.
    /// Sockets that are closed next need not wait for lines up to now.
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
            // A peer without room for two dozen bytes does not wait for them either.
            let _ = self.io.send_bytes(fd, &close_notify, AfterSend::End);
        }
        match how {
            EndOfSocket::Writing => self.io.shut_write(fd),
            EndOfSocket::Closed(reset) => self.close(fd, reset),
        }
    }
}
