//! The only interface to the kernel: readiness events come out, bounded non-blocking calls go in.
//!
//! Everything above is generic over [`Io`], so that a simulator can replace the kernel. All
//! `unsafe` of the project lives in `sys`, one thin safe wrapper per system call.

mod changes;
pub mod child;
pub mod epoll;
pub mod file;
pub mod foreign;
mod gate;
pub mod listen;
pub mod process;
pub mod signal;
#[expect(unsafe_code, reason = "the wrappers around system calls")]
mod sys;
pub mod udp;
pub mod wake;
mod words;

use std::net::SocketAddr;

use bolide_base::{FileRef, Instant, Now, Segment, SendChain, TcpInfo};

pub use changes::{DirChange, DirDepth};
pub use file::{Entries, FileFailure, OpenRequest, OpenedFile, Stat, SymlinkRule};
pub use udp::{DatagramIn, DatagramOut, DatagramsSent, UdpBatch};
pub use words::{
    Accepted, AfterSend, Appended, Callee, ConnectCall, Fd, Interest, Readiness, ReceivedBytes,
    Reset, Sent, SocketPeer, SocketPeers,
};

/// The kernel, or its replacement in tests.
pub trait Io {
    /// Appends the readiness events to `out`, sleeping until `until` at the latest; returns the
    /// time.
    fn wait(&mut self, until: Option<Instant>, out: &mut Vec<Readiness>) -> Now;
    /// Starts to report readiness of `fd` under `token`; false when the kernel refuses.
    fn watch(&mut self, fd: Fd, token: u64, how: Interest) -> bool;
    /// Stops reporting `fd`, which other holders may keep open.
    fn unwatch(&mut self, fd: Fd);
    /// How many descriptors the process may have.
    fn descriptors_max(&self) -> u64;
    /// Accepts one client. `near` is the local address; if it is unknown, the kernel is asked.
    fn accept(&mut self, listener: Fd, near: Option<&SocketPeer>) -> Accepted;
    /// Starts to connect, without waiting for the result. `from` is the local address; its port 0
    /// means any.
    ///
    /// # Errors
    ///
    /// The kernel's error; `bind` if the local address is unavailable.
    fn connect(
        &mut self,
        to: Callee<'_>,
        from: Option<SocketAddr>,
    ) -> Result<ConnectCall, FileFailure>;
    /// The result of a connect whose descriptor was reported ready.
    ///
    /// # Errors
    ///
    /// The error number of the system: the connect failed.
    fn connect_result(&mut self, fd: Fd) -> Result<(), i32>;
    /// The kernel's figures for a TCP connection; `None` for other sockets.
    fn tcp_info(&mut self, fd: Fd) -> Option<TcpInfo>;
    /// The real path of a path with symbolic links.
    ///
    /// # Errors
    ///
    /// The error number of the system.
    fn real_path(&mut self, path: &[u8]) -> Result<Vec<u8>, i32>;
    /// Enables probes of an idle connection's peer.
    fn keep_alive(&mut self, fd: Fd);
    /// Receives bytes of a connection.
    fn receive(&mut self, fd: Fd, into: &mut [u8]) -> ReceivedBytes;
    /// Sends the chain from its first byte on.
    fn send(&mut self, fd: Fd, chain: &SendChain, then: AfterSend) -> Sent;
    /// Sends bytes that the caller continues to own.
    fn send_bytes(&mut self, fd: Fd, bytes: &[u8], then: AfterSend) -> Sent;
    /// Sends one owned piece: the remainder of an earlier send.
    fn send_segment(&mut self, fd: Fd, segment: &Segment) -> Sent;
    /// Ends the sending side: no more bytes follow.
    fn shut_write(&mut self, fd: Fd);
    /// Closes for good. With `reset` the peer sees an error instead of an orderly end.
    fn close(&mut self, fd: Fd, reset: Reset);
    /// Receives waiting datagrams.
    fn receive_datagrams(&mut self, fd: Fd, batch: &mut UdpBatch) -> usize;
    /// Sends datagrams in order, until the socket blocks. If the kernel refuses segmentation (GSO),
    /// they are sent one by one.
    fn send_datagrams(&mut self, fd: Fd, out: &[DatagramOut<'_>]) -> DatagramsSent;
    /// Opens and examines a path.
    ///
    /// # Errors
    ///
    /// The kernel's error, for the log and the status.
    fn open(&mut self, request: &OpenRequest<'_>) -> Result<OpenedFile, FileFailure>;
    /// The entries of a directory for a listing, a few at a time: without hidden ones, and with the
    /// attributes of link targets.
    ///
    /// # Errors
    ///
    /// The directory cannot be read.
    fn list(&mut self, path: &[u8]) -> Result<Entries, FileFailure>;
    /// Reads at `offset`; 0 at the end.
    ///
    /// # Errors
    ///
    /// The kernel's error.
    fn read(&mut self, file: &FileRef, offset: u64, into: &mut [u8]) -> Result<usize, FileFailure>;
    /// A new file without a name below `dir`, with access for its owner only; it vanishes with its
    /// last copy. The directory is made if it is missing.
    ///
    /// # Errors
    ///
    /// The kernel's error.
    fn create_temp(&mut self, dir: &[u8]) -> Result<FileRef, FileFailure>;
    /// Writes at `offset`; returns how many bytes, at least one.
    ///
    /// # Errors
    ///
    /// The kernel's error.
    fn write_at(&mut self, file: &FileRef, offset: u64, bytes: &[u8])
    -> Result<usize, FileFailure>;
    /// Writes all of `bytes` from `at` on, and advances `at` past them.
    ///
    /// # Errors
    ///
    /// The kernel's error.
    fn write_all_at(
        &mut self,
        file: &FileRef,
        at: &mut u64,
        mut bytes: &[u8],
    ) -> Result<(), FileFailure> {
        while !bytes.is_empty() {
            let written = self.write_at(file, *at, bytes)?;
            assert!((1..=bytes.len()).contains(&written), "a write takes a byte at least");
            *at += written as u64;
            bytes = &bytes[written..];
        }
        Ok(())
    }
    /// A new file under an unused name, with these permission bits as far as the process's mask
    /// allows.
    ///
    /// # Errors
    ///
    /// The kernel's error.
    fn create(&mut self, path: &[u8], mode: u32) -> Result<FileRef, FileFailure>;
    /// A new directory with such permission bits; its parent must exist.
    ///
    /// # Errors
    ///
    /// The kernel's error.
    fn make_directory(&mut self, path: &[u8], mode: u32) -> Result<(), FileFailure>;
    /// The attributes of a path; a symbolic link is not followed.
    ///
    /// # Errors
    ///
    /// The kernel's error.
    fn stat_link(&mut self, path: &[u8]) -> Result<Stat, FileFailure>;
    /// Removes an empty directory.
    ///
    /// # Errors
    ///
    /// The kernel's error.
    fn remove_directory(&mut self, path: &[u8]) -> Result<(), FileFailure>;
    /// Sets the permission bits of an open file.
    ///
    /// # Errors
    ///
    /// The kernel's error.
    fn set_access(&mut self, file: &FileRef, mode: u32) -> Result<(), FileFailure>;
    /// Sets the modification time, seconds since 1970; a symbolic link is not followed.
    ///
    /// # Errors
    ///
    /// The kernel's error.
    fn set_modified(&mut self, path: &[u8], seconds: i64) -> Result<(), FileFailure>;
    /// Renames a file in one step; an existing file of the new name is replaced.
    ///
    /// # Errors
    ///
    /// The kernel's error.
    fn rename(&mut self, from: &[u8], to: &[u8]) -> Result<(), FileFailure>;
    /// Removes a file.
    ///
    /// # Errors
    ///
    /// The kernel's error.
    fn unlink(&mut self, path: &[u8]) -> Result<(), FileFailure>;
    /// The current name of an open file, even if a parent directory was renamed; `None` if it is
    /// unknown. The name may refer to another file by the time it is used.
    fn name_of(&mut self, file: &FileRef) -> Option<Vec<u8>>;
    /// The entries of a directory, a few at a time: with hidden ones, and with the attributes of
    /// links themselves.
    ///
    /// # Errors
    ///
    /// The directory cannot be read.
    fn entries(&mut self, path: &[u8]) -> Result<Entries, FileFailure>;
    /// Opens a file for appending. It never creates one: a look must not put a file in a directory
    /// that others are removing.
    ///
    /// # Errors
    ///
    /// The kernel's error.
    fn open_journal(&mut self, path: &[u8]) -> Result<FileRef, FileFailure>;
    /// Appends to a file opened by [`Self::open_journal`]; returns how many bytes, at least one.
    ///
    /// # Errors
    ///
    /// The kernel's error.
    fn append_journal(&mut self, file: &FileRef, bytes: &[u8]) -> Result<usize, FileFailure>;
    /// Waits until the writes to a file have reached the medium. Never inside a turn.
    ///
    /// # Errors
    ///
    /// The kernel's error: the writes may be lost.
    fn sync(&mut self, file: &FileRef) -> Result<(), FileFailure>;
    /// Takes a shared lock on a file, waiting for the holder of an exclusive one. The lock ends
    /// with the file.
    ///
    /// # Errors
    ///
    /// The kernel's error.
    fn lock_shared(&mut self, file: &FileRef) -> Result<(), FileFailure>;
    /// Takes an exclusive lock if it is free; otherwise the lock is unchanged, or lost.
    fn lock_exclusive(&mut self, file: &FileRef) -> bool;
    /// Free bytes of the file system of a path.
    ///
    /// # Errors
    ///
    /// The kernel's error.
    fn free_bytes(&mut self, path: &[u8]) -> Result<u64, FileFailure>;
    /// Current attributes of an open file.
    ///
    /// # Errors
    ///
    /// The kernel's error.
    fn stat(&mut self, file: &FileRef) -> Result<Stat, FileFailure>;
    /// Opens a log for appending, and creates a missing one; never waits for a reader.
    ///
    /// # Errors
    ///
    /// The kernel's error.
    fn open_log(&mut self, path: &[u8]) -> Result<FileRef, FileFailure>;
    /// A socket whose datagrams go to one address.
    ///
    /// # Errors
    ///
    /// The kernel's error; `connect` if the address has no listener.
    fn open_datagrams(&mut self, to: Callee<'_>) -> Result<FileRef, FileFailure>;
    /// A socket whose datagrams go to one address and come from it. It is watched by level.
    ///
    /// # Errors
    ///
    /// The kernel's error.
    fn call_datagrams(&mut self, to: SocketAddr) -> Result<Fd, FileFailure>;
    /// Receives one datagram, as much of it as there is room for; `None` if none is waiting.
    ///
    /// # Errors
    ///
    /// The error number of the system, such as that of an earlier datagram that was refused.
    fn receive_datagram(&mut self, fd: Fd, into: &mut [u8]) -> Result<Option<usize>, i32>;
    /// Sends one datagram.
    ///
    /// # Errors
    ///
    /// The error number of the system; also if there is no room now.
    fn send_datagram(&mut self, fd: Fd, bytes: &[u8]) -> Result<(), i32>;
    /// Writes to a log, or one datagram, as far as that is possible without waiting.
    fn append(&mut self, log: &FileRef, bytes: &[u8]) -> Appended;
    /// As [`Self::append`], in small pieces, for a file that other processes write to as well and
    /// whose writes may block.
    fn append_shared(&mut self, log: &FileRef, bytes: &[u8]) -> Appended;
    /// The target of a symbolic link.
    ///
    /// # Errors
    ///
    /// The error number of the system; EINVAL if the path is no symbolic link.
    fn read_link(&mut self, path: &[u8]) -> Result<Vec<u8>, i32>;
    /// Watches a directory for changes, which are reported under `token`. A second watch of the
    /// same directory adds to the first and has the same number.
    ///
    /// # Errors
    ///
    /// The error number of the system: the directory cannot be read, there are too many watches, or
    /// the file system does not report all changes.
    fn watch_directory(&mut self, path: &[u8], depth: DirDepth, token: u64) -> Result<u32, i32>;
    /// Ends a watch.
    fn unwatch_directory(&mut self, watch: u32);
    /// Takes the changes so far, in their order.
    fn take_changes(&mut self, out: &mut Vec<DirChange>);
    /// Empties a wake-up descriptor.
    fn drain(&mut self, fd: Fd);
}
