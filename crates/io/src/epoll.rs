//! The `Io` backend over epoll: one instance per worker, connections edge-triggered and registered
//! once.

use std::ffi::OsStr;
use std::net::SocketAddr;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::Path;

use bolide_base::errno::EMFILE;
use bolide_base::{FileRef, Instant, Now, Segment, SendChain, TcpInfo};

use crate::gate::AcceptGate;
use crate::udp::{DatagramOut, DatagramsSent, UdpBatch};
use crate::{
    Accepted, AfterSend, Appended, Callee, ConnectCall, DirChange, DirDepth, Entries, Fd,
    FileFailure, Interest, Io, OpenRequest, OpenedFile, Readiness, ReceivedBytes, Reset, Sent,
    SocketPeer, Stat, sys,
};

/// Pieces of one gathered write. Linux accepts 1024; the server's pieces are few and large.
const PIECES_MAX: usize = 64;

/// One worker's epoll instance.
#[derive(Debug)]
pub struct Epoll {
    epoll: sys::EpollFd,
    events: sys::EpollEvents,
    /// Made with the first watch of a directory.
    inotify: Option<sys::Inotify>,
    gate: AcceptGate,
}

impl Epoll {
    /// A new instance.
    ///
    /// # Errors
    ///
    /// No descriptor is available.
    pub fn new() -> std::io::Result<Self> {
        let events = sys::EpollEvents::with_capacity(bolide_base::limits::READY_PER_TURN);
        let epoll = sys::EpollFd::new()?;
        let gate = AcceptGate::new(epoll.number());
        Ok(Self { epoll, events, inotify: None, gate })
    }
}

impl Io for Epoll {
    fn wait(&mut self, until: Option<Instant>, out: &mut Vec<Readiness>) -> Now {
        let timeout_ms = match until {
            None => -1,
            Some(until) => {
                let nanos = until.as_nanos().saturating_sub(sys::monotonic_nanos());
                // Rounded up, so that the worker does not spin through the last millisecond.
                i32::try_from(nanos.div_ceil(1_000_000)).unwrap_or(i32::MAX)
            }
        };
        self.epoll.wait(&mut self.events, timeout_ms);
        out.extend(self.events.iter());
        sys::now()
    }

    fn watch(&mut self, fd: Fd, token: u64, how: Interest) -> bool {
        self.epoll.add(fd.0, token, how).is_ok()
    }

    fn unwatch(&mut self, fd: Fd) {
        self.epoll.remove(fd.0);
    }

    fn descriptors_max(&self) -> u64 {
        sys::nofile().0
    }

    fn accept(&mut self, listener: Fd, near: Option<&SocketPeer>) -> Accepted {
        if self.gate.is_shut() {
            return Accepted::Failed(EMFILE);
        }
        let accepted = sys::accept(listener.0, near);
        if let Accepted::Client(client) = &accepted {
            self.gate.note(client.fd.0);
        }
        accepted
    }

    fn connect(
        &mut self,
        to: Callee<'_>,
        from: Option<SocketAddr>,
    ) -> Result<ConnectCall, FileFailure> {
        sys::connect(to, from)
    }

    fn connect_result(&mut self, fd: Fd) -> Result<(), i32> {
        sys::socket_error(fd.0).map_err(|error| errno(&error))
    }

    fn tcp_info(&mut self, fd: Fd) -> Option<TcpInfo> {
        sys::tcp_info(fd.0).ok()
    }

    fn real_path(&mut self, path: &[u8]) -> Result<Vec<u8>, i32> {
        let path = Path::new(OsStr::from_bytes(path));
        let real = std::fs::canonicalize(path).map_err(|error| errno(&error))?;
        Ok(real.into_os_string().into_vec())
    }

    fn keep_alive(&mut self, fd: Fd) {
        // Without it a timeout finds a dead peer later.
        let _ = sys::set_option(fd.0, sys::SockOpt::KeepAlive, 1);
    }

    fn receive(&mut self, fd: Fd, into: &mut [u8]) -> ReceivedBytes {
        match sys::receive(fd.0, into) {
            Ok(0) => ReceivedBytes::End,
            Ok(n) => ReceivedBytes::Bytes(n),
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => ReceivedBytes::Blocked,
            Err(_) => ReceivedBytes::Dead,
        }
    }

    fn send(&mut self, fd: Fd, chain: &SendChain, then: AfterSend) -> Sent {
        if let Some(bytes) = chain.contiguous() {
            return self.send_bytes(fd, bytes, then);
        }
        let mut total = 0;
        let mut segments = chain.segments();
        if then == AfterSend::End && matches!(segments.last(), Some(Segment::File(_))) {
            // sendfile has no flag that holds its last bytes back. Without the option they leave at
            // once.
            let _ = sys::set_option(fd.0, sys::SockOpt::Cork, 1);
        }
        while let Some(first) = segments.first() {
            if let Segment::File(range) = first {
                match send_file(fd, range) {
                    Sent::Bytes(n) if n == range.len => total += n,
                    Sent::Bytes(n) => return Sent::Bytes(total + n),
                    failed => return failed,
                }
                segments = &segments[1..];
                continue;
            }
            let run = segments.iter().take_while(|s| !matches!(s, Segment::File(_))).count();
            let (now, later) = segments.split_at(run.min(PIECES_MAX));
            let is_last = later.is_empty() && then == AfterSend::Nothing;
            let more = if is_last { sys::MoreToRead::No } else { sys::MoreToRead::Yes };
            let mut pieces: [&[u8]; PIECES_MAX] = [&[]; PIECES_MAX];
            let mut offered = 0;
            for (piece, segment) in pieces.iter_mut().zip(now) {
                *piece = match segment {
                    Segment::Inline(start, end) => chain.inline(*start, *end),
                    Segment::Bytes(bytes) => bytes,
                    Segment::File(_) => &[],
                };
                offered += piece.len() as u64;
            }
            match sent(sys::send_pieces(fd.0, &pieces[..now.len()], more)) {
                Sent::Bytes(n) if n == offered => total += n,
                Sent::Bytes(n) => return Sent::Bytes(total + n),
                failed => return failed,
            }
            segments = later;
        }
        Sent::Bytes(total)
    }

    fn send_bytes(&mut self, fd: Fd, bytes: &[u8], then: AfterSend) -> Sent {
        let more = match then {
            AfterSend::Nothing => sys::MoreToRead::No,
            AfterSend::End => sys::MoreToRead::Yes,
        };
        sent(sys::send(fd.0, bytes, more))
    }

    fn send_segment(&mut self, fd: Fd, segment: &Segment) -> Sent {
        match segment {
            Segment::Bytes(bytes) => sent(sys::send(fd.0, bytes, sys::MoreToRead::No)),
            Segment::File(range) => send_file(fd, range),
            Segment::Inline(..) => {
                debug_assert!(false, "an inline piece belongs to its chain");
                Sent::Dead
            }
        }
    }

    fn shut_write(&mut self, fd: Fd) {
        sys::shut_write(fd.0);
    }

    fn close(&mut self, fd: Fd, reset: Reset) {
        if reset == Reset::Yes {
            sys::set_linger_zero(fd.0);
        }
        sys::close(fd.0);
    }

    fn receive_datagrams(&mut self, fd: Fd, batch: &mut UdpBatch) -> usize {
        batch.receive(fd.0)
    }

    fn send_datagrams(&mut self, fd: Fd, out: &[DatagramOut<'_>]) -> DatagramsSent {
        sys::send_datagrams(fd.0, out)
    }

    fn open(&mut self, request: &OpenRequest<'_>) -> Result<OpenedFile, FileFailure> {
        sys::open(request)
    }

    fn list(&mut self, path: &[u8]) -> Result<Entries, FileFailure> {
        sys::list(path).map(Entries::shown)
    }

    fn read(&mut self, file: &FileRef, offset: u64, into: &mut [u8]) -> Result<usize, FileFailure> {
        sys::read_at(file.raw(), offset, into)
    }

    fn create_temp(&mut self, dir: &[u8]) -> Result<FileRef, FileFailure> {
        sys::create_temp(dir)
    }

    fn write_at(
        &mut self,
        file: &FileRef,
        offset: u64,
        bytes: &[u8],
    ) -> Result<usize, FileFailure> {
        sys::write_at(file.raw(), offset, bytes)
    }

    fn create(&mut self, path: &[u8], mode: u32) -> Result<FileRef, FileFailure> {
        sys::create(path, mode)
    }

    fn make_directory(&mut self, path: &[u8], mode: u32) -> Result<(), FileFailure> {
        sys::make_directory(path, mode)
    }

    fn stat_link(&mut self, path: &[u8]) -> Result<Stat, FileFailure> {
        sys::stat_link(path)
    }

    fn remove_directory(&mut self, path: &[u8]) -> Result<(), FileFailure> {
        sys::remove_directory(path)
    }

    fn set_access(&mut self, file: &FileRef, mode: u32) -> Result<(), FileFailure> {
        sys::set_access(file.raw(), mode)
    }

    fn set_modified(&mut self, path: &[u8], seconds: i64) -> Result<(), FileFailure> {
        sys::set_modified(path, seconds)
    }

    fn rename(&mut self, from: &[u8], to: &[u8]) -> Result<(), FileFailure> {
        sys::rename(from, to)
    }

    fn unlink(&mut self, path: &[u8]) -> Result<(), FileFailure> {
        sys::unlink(path)
    }

    fn name_of(&mut self, file: &FileRef) -> Option<Vec<u8>> {
        sys::name_of(file.raw())
    }

    fn entries(&mut self, path: &[u8]) -> Result<Entries, FileFailure> {
        sys::entries(path)
    }

    fn open_journal(&mut self, path: &[u8]) -> Result<FileRef, FileFailure> {
        sys::open_journal(path)
    }

    fn append_journal(&mut self, file: &FileRef, bytes: &[u8]) -> Result<usize, FileFailure> {
        sys::append_journal(file.raw(), bytes)
    }

    fn sync(&mut self, file: &FileRef) -> Result<(), FileFailure> {
        sys::sync(file.raw())
    }

    fn lock_shared(&mut self, file: &FileRef) -> Result<(), FileFailure> {
        sys::lock_shared(file.raw())
    }

    fn lock_exclusive(&mut self, file: &FileRef) -> bool {
        sys::lock_exclusive(file.raw())
    }

    fn free_bytes(&mut self, path: &[u8]) -> Result<u64, FileFailure> {
        sys::free_bytes(path)
    }

    fn stat(&mut self, file: &FileRef) -> Result<Stat, FileFailure> {
        sys::stat_fd(file.raw())
    }

    fn open_log(&mut self, path: &[u8]) -> Result<FileRef, FileFailure> {
        sys::open_append(path).map_err(|error| FileFailure { errno: errno(&error), call: "open" })
    }

    fn open_datagrams(&mut self, to: Callee<'_>) -> Result<FileRef, FileFailure> {
        sys::connect_datagrams(to)
    }

    fn call_datagrams(&mut self, to: SocketAddr) -> Result<Fd, FileFailure> {
        sys::call_datagrams(to)
    }

    fn receive_datagram(&mut self, fd: Fd, into: &mut [u8]) -> Result<Option<usize>, i32> {
        match sys::receive(fd.0, into) {
            Ok(n) => Ok(Some(n)),
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(errno(&error)),
        }
    }

    fn send_datagram(&mut self, fd: Fd, bytes: &[u8]) -> Result<(), i32> {
        sys::send(fd.0, bytes, sys::MoreToRead::No).map(|_| ()).map_err(|error| errno(&error))
    }

    fn append(&mut self, log: &FileRef, bytes: &[u8]) -> Appended {
        crate::file::append(log, bytes)
    }

    fn append_shared(&mut self, log: &FileRef, bytes: &[u8]) -> Appended {
        crate::file::append_shared(log, bytes)
    }

    fn read_link(&mut self, path: &[u8]) -> Result<Vec<u8>, i32> {
        let path = Path::new(OsStr::from_bytes(path));
        let target = std::fs::read_link(path).map_err(|error| errno(&error))?;
        Ok(target.into_os_string().into_vec())
    }

    fn watch_directory(&mut self, path: &[u8], depth: DirDepth, token: u64) -> Result<u32, i32> {
        let inotify = match &mut self.inotify {
            Some(inotify) => inotify,
            none => {
                let fresh = sys::Inotify::new().map_err(|error| errno(&error))?;
                self.epoll
                    .add(fresh.fd(), token, Interest::Level)
                    .map_err(|error| errno(&error))?;
                none.insert(fresh)
            }
        };
        inotify.add(path, depth).map_err(|error| errno(&error))
    }

    fn unwatch_directory(&mut self, watch: u32) {
        if let Some(inotify) = &self.inotify {
            inotify.remove(watch);
        }
    }

    fn take_changes(&mut self, out: &mut Vec<DirChange>) {
        if let Some(inotify) = &self.inotify {
            inotify.read(out);
        }
    }

    fn drain(&mut self, fd: Fd) {
        let mut counter = [0; 8];
        let _ = sys::read(fd.0, &mut counter);
    }
}

fn errno(error: &std::io::Error) -> i32 {
    error.raw_os_error().unwrap_or_default()
}

fn sent(result: std::io::Result<usize>) -> Sent {
    match result {
        Ok(n) => Sent::Bytes(n as u64),
        Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => Sent::Bytes(0),
        Err(_) => Sent::Dead,
    }
}

fn send_file(fd: Fd, range: &bolide_base::FileRange) -> Sent {
    match sys::send_file(fd.0, range) {
        Ok(0) if range.len > 0 => Sent::FileFailed,
        other => sent(other),
    }
}

#[cfg(test)]
mod tests;
