//! The types of the interface: descriptors, readiness events, and results of calls.

use std::net::SocketAddr;

/// A descriptor that a backend watches or works on. Its holder closes it through the backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Fd(pub i32);

/// A readiness event: an operation that has become possible (edge-triggered, except listeners).
#[derive(Clone, Copy, Debug)]
pub struct Readiness {
    /// The token given to [`crate::Io::watch`].
    pub token: u64,
    /// Bytes, datagrams or clients are waiting.
    pub readable: bool,
    /// A blocked send may be tried again.
    pub writable: bool,
    /// The peer closed its side, or the connection died; a receive will tell which.
    pub hangup: bool,
}

/// The result of a receive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReceivedBytes {
    /// This many bytes; fewer than requested mean that no more are waiting.
    Bytes(usize),
    /// The peer will send no more.
    End,
    /// No bytes now; a readiness event follows.
    Blocked,
    /// The connection is dead.
    Dead,
}

/// The result of a send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent {
    /// This many bytes were accepted; fewer than offered mean that a readiness event follows.
    Bytes(u64),
    /// The connection is dead.
    Dead,
    /// A file to send ended early or could not be read.
    FileFailed,
}

/// What follows the bytes of a send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfterSend {
    /// Unknown: the bytes leave at once.
    Nothing,
    /// If all of them are accepted, the end of the sending side, in the same turn: the last ones
    /// may wait for it and leave in one packet with the FIN.
    End,
}

/// A socket address.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum SocketPeer {
    /// An Internet address.
    Inet(SocketAddr),
    /// A unix socket.
    Unix,
}

/// The peer to connect to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Callee<'a> {
    /// An Internet address.
    Inet(SocketAddr),
    /// A unix socket, by its path.
    Unix(&'a [u8]),
}

/// An outgoing connection in progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectCall {
    /// Its socket, non-blocking, with Nagle's algorithm off.
    pub fd: Fd,
    /// Whether it is established already; else a readiness event follows, and
    /// [`crate::Io::connect_result`].
    pub stands: bool,
}

/// An accepted client.
#[derive(Clone, Debug)]
pub struct SocketPeers {
    /// Its socket, non-blocking, with Nagle's algorithm off.
    pub fd: Fd,
    /// The remote address.
    pub remote: SocketPeer,
    /// The local address.
    pub local: SocketPeer,
}

/// The result of an accept.
#[derive(Clone, Debug)]
pub enum Accepted {
    /// A connection from the accept queue.
    Client(SocketPeers),
    /// The accept queue is empty; epoll reports the next connection.
    QueueEmpty,
    /// The client closed the connection before it was accepted; others may be queued.
    Gone,
    /// accept4() failed, mostly out of descriptors or memory: its errno. The connection stays
    /// queued, so a level-triggered listener is reported again at once.
    Failed(i32),
}

/// Whether a watched descriptor reports each change once, or as long as it lasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interest {
    /// Level-triggered, reading only: listeners, wake-ups, datagram sockets.
    Level,
    /// Edge-triggered, both ways: connections.
    Edge,
}

/// The result of an append.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Appended {
    /// Bytes written. Fewer than all without an error: there is no room now.
    pub bytes: usize,
    /// The error number that ended it.
    pub errno: Option<i32>,
}

/// How a connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reset {
    /// In order: all bytes sent arrive.
    No,
    /// At once, with an error for the peer.
    Yes,
}
