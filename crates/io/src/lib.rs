//! The only door to the kernel: readiness comes out, bounded non-blocking calls go in.
//!
//! Everything above is generic over [`Io`], so that a simulator can stand in for the kernel.
//! All `unsafe` of the project lives in `sys`, one thin safe wrapper per system call.

pub mod child;
pub mod epoll;
pub mod file;
pub mod listen;
pub mod process;
pub mod signal;
#[expect(unsafe_code, reason = "the wrappers around system calls")]
mod sys;
pub mod udp;
pub mod wake;

use std::net::SocketAddr;

use bolide_base::{FileRef, Instant, Now, Segment, SendChain, TcpInfo};

pub use file::{Entries, FileFailure, OpenRequest, Opened, Stat, SymlinkRule};
pub use udp::{DatagramIn, DatagramOut, UdpBatch};

/// A descriptor that a backend watches or works on. Whoever holds it closes it through the door.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Fd(pub i32);

/// Something that became possible since it was last impossible (edge-triggered, except listeners).
#[derive(Clone, Copy, Debug)]
pub struct Readiness {
    /// As given to [`Io::watch`].
    pub token: u64,
    /// There are bytes, datagrams or clients to take.
    pub readable: bool,
    /// A blocked send may be tried again.
    pub writable: bool,
    /// The peer closed its side, or the connection died; a receive will say which.
    pub hangup: bool,
}

/// What came of a receive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReceivedBytes {
    /// This many bytes; fewer than asked for means that no more are waiting.
    Bytes(usize),
    /// The peer will send no more.
    End,
    /// Nothing now; a readiness report follows.
    Blocked,
    /// The connection is dead.
    Dead,
}

/// What came of a send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent {
    /// This many bytes were taken; fewer than offered means that a readiness report follows.
    Bytes(u64),
    /// The connection is dead.
    Dead,
    /// A file that was to be sent ended early or could not be read.
    FileFailed,
}

/// An address as sockets have them.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum SocketPeer {
    /// An Internet address.
    Inet(SocketAddr),
    /// A unix socket.
    Unix,
}

/// Whom to connect to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Callee<'a> {
    /// An Internet address.
    Inet(SocketAddr),
    /// A unix socket, by its path.
    Unix(&'a [u8]),
}

/// A connection of ours in the making.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectCall {
    /// Its socket, non-blocking, with Nagle's algorithm off.
    pub fd: Fd,
    /// Whether it stands already; else a readiness report follows, and [`Io::connect_result`].
    pub stands: bool,
}

/// A new client.
#[derive(Clone, Debug)]
pub struct SocketPeers {
    /// Its socket, non-blocking, with Nagle's algorithm off.
    pub fd: Fd,
    /// The far end.
    pub remote: SocketPeer,
    /// The near end.
    pub local: SocketPeer,
}

/// What came of taking a client.
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

/// The kernel, or what plays its part.
pub trait Io {
    /// Appends what became possible to `out`, sleeping until `until` at the latest; tells the time.
    fn wait(&mut self, until: Option<Instant>, out: &mut Vec<Readiness>) -> Now;
    /// Starts to report readiness of `fd` under `token`; false when the kernel refuses.
    fn watch(&mut self, fd: Fd, token: u64, how: Interest) -> bool;
    /// Stops reporting `fd`, which others may hold open.
    fn unwatch(&mut self, fd: Fd);
    /// Takes one waiting client.
    fn accept(&mut self, listener: Fd) -> Accepted;
    /// Calls somebody, without waiting for the answer; `from` is the address of ours by which, of
    /// which port 0 means any.
    ///
    /// # Errors
    ///
    /// The kernel's error; `bind` where we cannot have that address.
    fn connect(
        &mut self,
        to: Callee<'_>,
        from: Option<SocketAddr>,
    ) -> Result<ConnectCall, FileFailure>;
    /// What became of a call that was reported ready.
    ///
    /// # Errors
    ///
    /// The error number of the system: nobody answers there.
    fn connect_result(&mut self, fd: Fd) -> Result<(), i32>;
    /// What the kernel says of a TCP connection, if it is one.
    fn tcp_info(&mut self, fd: Fd) -> Option<TcpInfo>;
    /// Where a path leads through symbolic links.
    ///
    /// # Errors
    ///
    /// The error number of the system.
    fn real_path(&mut self, path: &[u8]) -> Result<Vec<u8>, i32>;
    /// Lets the kernel probe whether the peer of an idle connection still lives.
    fn keep_alive(&mut self, fd: Fd);
    /// Takes bytes of a connection.
    fn receive(&mut self, fd: Fd, into: &mut [u8]) -> ReceivedBytes;
    /// Sends the chain from its first byte on.
    fn send(&mut self, fd: Fd, chain: &SendChain) -> Sent;
    /// Sends one owned piece: what an earlier send left over.
    fn send_segment(&mut self, fd: Fd, segment: &Segment) -> Sent;
    /// Tells the peer that no more bytes follow.
    fn shut_write(&mut self, fd: Fd);
    /// Closes for good. `reset` makes the peer see an error instead of an orderly end.
    fn close(&mut self, fd: Fd, reset: Reset);
    /// Takes waiting datagrams.
    fn receive_datagrams(&mut self, fd: Fd, batch: &mut UdpBatch) -> usize;
    /// Sends datagrams in order; returns how many entries were taken before the socket blocked.
    fn send_datagrams(&mut self, fd: Fd, out: &[DatagramOut<'_>]) -> usize;
    /// Opens and examines a path.
    ///
    /// # Errors
    ///
    /// What the kernel said, for the log and for the choice of an answer.
    fn open(&mut self, request: &OpenRequest<'_>) -> Result<Opened, FileFailure>;
    /// Names and attributes of a directory's entries, hidden ones left out.
    ///
    /// # Errors
    ///
    /// The directory cannot be read.
    fn list(&mut self, path: &[u8]) -> Result<Vec<(Vec<u8>, Stat)>, FileFailure>;
    /// Reads at `offset`; 0 at the end.
    ///
    /// # Errors
    ///
    /// The kernel's error.
    fn read(&mut self, file: &FileRef, offset: u64, into: &mut [u8]) -> Result<usize, FileFailure>;
    /// A new file without a name below `dir`, readable by nobody else; it goes with its last copy.
    /// The directory is made if it is missing.
    ///
    /// # Errors
    ///
    /// The kernel's error.
    fn create_temp(&mut self, dir: &[u8]) -> Result<FileRef, FileFailure>;
    /// Writes at `offset`; how many bytes, at least one.
    ///
    /// # Errors
    ///
    /// The kernel's error.
    fn write_at(&mut self, file: &FileRef, offset: u64, bytes: &[u8])
    -> Result<usize, FileFailure>;
    /// A new file under a name that nobody has, to be read and written by its owner alone.
    ///
    /// # Errors
    ///
    /// The kernel's error.
    fn create(&mut self, path: &[u8]) -> Result<FileRef, FileFailure>;
    /// A new directory for its owner alone; its parent must be there.
    ///
    /// # Errors
    ///
    /// The kernel's error.
    fn make_directory(&mut self, path: &[u8]) -> Result<(), FileFailure>;
    /// Gives a file another name in one step; what had that name loses it.
    ///
    /// # Errors
    ///
    /// The kernel's error.
    fn rename(&mut self, from: &[u8], to: &[u8]) -> Result<(), FileFailure>;
    /// Takes a file's name away.
    ///
    /// # Errors
    ///
    /// The kernel's error.
    fn unlink(&mut self, path: &[u8]) -> Result<(), FileFailure>;
    /// The entries of a directory, hidden ones included, to be taken a few at a time.
    ///
    /// # Errors
    ///
    /// The directory cannot be read.
    fn entries(&mut self, path: &[u8]) -> Result<Entries, FileFailure>;
    /// Opens a file that is only appended to, made where it is missing, for its owner alone.
    ///
    /// # Errors
    ///
    /// The kernel's error.
    fn open_journal(&mut self, path: &[u8]) -> Result<FileRef, FileFailure>;
    /// Appends to a file opened by [`Self::open_journal`]; how many bytes, at least one.
    ///
    /// # Errors
    ///
    /// The kernel's error.
    fn append_journal(&mut self, file: &FileRef, bytes: &[u8]) -> Result<usize, FileFailure>;
    /// Waits until what was written to a file is on the medium. Not for a turn.
    ///
    /// # Errors
    ///
    /// The kernel's error: what was written may be lost.
    fn sync(&mut self, file: &FileRef) -> Result<(), FileFailure>;
    /// Locks a file together with others, waiting for who has it alone. The lock goes with the
    /// file.
    ///
    /// # Errors
    ///
    /// The kernel's error.
    fn lock_shared(&mut self, file: &FileRef) -> Result<(), FileFailure>;
    /// Whether a file could be locked alone; if not, it is as before, or not locked at all.
    fn lock_exclusive(&mut self, file: &FileRef) -> bool;
    /// Bytes that may still be written to the file system of a path.
    ///
    /// # Errors
    ///
    /// The kernel's error.
    fn free_bytes(&mut self, path: &[u8]) -> Result<u64, FileFailure>;
    /// Attributes of an open file as they are now.
    ///
    /// # Errors
    ///
    /// The kernel's error.
    fn stat(&mut self, file: &FileRef) -> Result<Stat, FileFailure>;
    /// Opens a log for appending, and makes it where it is missing; never waits for a reader.
    ///
    /// # Errors
    ///
    /// The kernel's error.
    fn open_log(&mut self, path: &[u8]) -> Result<FileRef, FileFailure>;
    /// A socket whose datagrams go to one address.
    ///
    /// # Errors
    ///
    /// The kernel's error; `connect` where nobody has the address.
    fn open_datagrams(&mut self, to: Callee<'_>) -> Result<FileRef, FileFailure>;
    /// Writes to a log, or one datagram, as far as that is possible without waiting.
    fn append(&mut self, log: &FileRef, bytes: &[u8]) -> Appended;
    /// As [`Self::append`], in small pieces for a file that other processes write to as well, and
    /// that would make a write wait.
    fn append_shared(&mut self, log: &FileRef, bytes: &[u8]) -> Appended;
    /// Empties a wake-up descriptor.
    fn drain(&mut self, fd: Fd);
}

/// What became of an append.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Appended {
    /// Bytes that were taken. Less than all without an error: there is no room now.
    pub bytes: usize,
    /// The error number that ended it.
    pub errno: Option<i32>,
}

/// How a connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reset {
    /// In order: what was sent arrives.
    No,
    /// At once, with an error for the peer.
    Yes,
}
