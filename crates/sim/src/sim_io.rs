//! The `Io` of one worker on the simulated kernel.

use std::cell::{RefCell, RefMut};
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::rc::Rc;

use bolide_base::errno::{
    EACCES, EAGAIN, EEXIST, EINVAL, EIO, EMFILE, ENFILE, ENOBUFS, ENOENT, ENOMEM, ENOSPC,
};
use bolide_base::{CopyPolicy, FileRef, Instant, Now, Segment, SendChain};
use bolide_io::{
    Accepted, AfterSend, Appended, Callee, ConnectCall, DatagramOut, DatagramsSent, DirChange,
    DirDepth, Entries, Fd, FileFailure, Interest, Io, OpenRequest, OpenedFile, Readiness,
    ReceivedBytes, Reset, Sent, SocketPeer, SocketPeers, Stat, UdpBatch,
};

use crate::kernel::Kernel;
use crate::kernel::dav::is_dav;
use crate::kernel::dearth::DoorCall;
use crate::kernel::disk::{DiskSeen, is_body, is_stored};
use crate::kernel::logs::SYSLOG;

/// The kernel as all workers and clients share it.
pub type SharedKernel = Rc<RefCell<Kernel>>;

/// Descriptors of the real kernel that stand for invented ones: they are never read or written.
#[derive(Clone, Debug)]
pub struct Anchor(Rc<OwnedFd>);

impl Anchor {
    /// Takes one descriptor of the real kernel, to be copied from.
    ///
    /// # Errors
    ///
    /// The real kernel has none left.
    pub fn new() -> std::io::Result<Self> {
        Ok(Self(Rc::new(std::os::unix::net::UnixDatagram::unbound()?.into())))
    }

    /// A descriptor of its own.
    ///
    /// # Errors
    ///
    /// The real kernel has none left.
    pub fn copy(&self) -> std::io::Result<OwnedFd> {
        self.0.as_fd().try_clone_to_owned()
    }
}

/// One worker's door.
#[derive(Debug)]
pub struct SimIo {
    kernel: SharedKernel,
    worker: usize,
    anchor: Anchor,
}

impl SimIo {
    /// The door of `worker`.
    #[must_use]
    pub const fn new(kernel: SharedKernel, worker: usize, anchor: Anchor) -> Self {
        Self { kernel, worker, anchor }
    }

    fn call(&self) -> RefMut<'_, Kernel> {
        let mut kernel = self.kernel.borrow_mut();
        kernel.calls += 1;
        kernel
    }
}

fn failure(errno: i32, call: &'static str) -> FileFailure {
    FileFailure { errno, call }
}

/// How many bytes of a piece the kernel would take at most, and the bytes.
fn piece<'a>(kernel: &Kernel, chain: Option<&'a SendChain>, segment: &'a Segment) -> Piece<'a> {
    match segment {
        Segment::Inline(start, end) => {
            Piece::Here(chain.map_or(&[][..], |chain| chain.inline(*start, *end)))
        }
        Segment::Bytes(bytes) => Piece::Here(bytes),
        Segment::File(range) => match kernel.disk.content(&range.file) {
            Some(content) => {
                let start = (range.offset as usize).min(content.bytes.len());
                let end = content.bytes.len().min(start + range.len as usize);
                Piece::File(content.bytes[start..end].to_vec(), range.len)
            }
            None => Piece::File(Vec::new(), range.len),
        },
    }
}

enum Piece<'a> {
    Here(&'a [u8]),
    /// What the file has, and how much was asked for.
    File(Vec<u8>, u64),
}

impl SimIo {
    /// Whether a call fails for want of something, and with which error number.
    fn strikes(&self, call: DoorCall) -> Option<i32> {
        let mut kernel = self.kernel.borrow_mut();
        let kernel = &mut *kernel;
        let errno = kernel.dearth.strike(call, &mut kernel.chance)?;
        kernel.calls += 1;
        kernel.tell(|| format!("{call:?}: error {errno}"));
        Some(errno)
    }

    fn fails(&self, call: DoorCall, name: &'static str) -> Result<(), FileFailure> {
        self.strikes(call).map_or(Ok(()), |errno| Err(failure(errno, name)))
    }

    /// What a connection could not do just now is reported again.
    fn report_again(&self, fd: Fd) {
        if let Some(socket) = self.kernel.borrow_mut().sockets.get_mut(fd.0) {
            socket.edge = true;
        }
    }

    /// Sends pieces one after the other until one is not taken whole.
    fn send_all(&self, fd: Fd, chain: Option<&SendChain>, segments: &[Segment]) -> Sent {
        match self.strikes(DoorCall::Send) {
            Some(EAGAIN) => {
                self.report_again(fd);
                return Sent::Bytes(0);
            }
            Some(_) => {
                self.kernel.borrow_mut().cut(fd.0);
                return Sent::Dead;
            }
            None => {}
        }
        let mut kernel = self.call();
        let kernel = &mut *kernel;
        if kernel.is_dead {
            return Sent::Dead;
        }
        let mut total = 0;
        for segment in segments {
            let piece = piece(kernel, chain, segment);
            let (bytes, asked) = match &piece {
                Piece::Here(bytes) => (*bytes, bytes.len() as u64),
                Piece::File(bytes, asked) => (&bytes[..], *asked),
            };
            let is_file = matches!(piece, Piece::File(..));
            if is_file && kernel.chance.one_in(kernel.faults.read_in) {
                if let Segment::File(range) = segment {
                    kernel.disk.note_read_failure(&range.file, kernel.nanos);
                }
                kernel.tell(|| "sendfile: EIO".to_owned());
                return if total > 0 { Sent::Bytes(total) } else { Sent::Dead };
            }
            let Some(socket) = kernel.sockets.get_mut(fd.0) else {
                kernel.offences.push(format!("send on unknown descriptor {}", fd.0));
                return Sent::Dead;
            };
            if socket.closed.is_some() || socket.shut {
                kernel.offences.push(format!("#{} send after close", socket.number));
                return Sent::Dead;
            }
            if socket.dead {
                return Sent::Dead;
            }
            if socket.client_gone {
                // The first bytes to a closed client are taken; its answer is a reset.
                socket.dead = true;
                socket.edge = true;
                total += asked;
                continue;
            }
            if is_file && bytes.is_empty() && asked > 0 {
                return Sent::FileFailed;
            }
            let n = bytes.len().min(socket.room());
            socket.outbound.extend(&bytes[..n]);
            if n > 0 {
                socket.moved = kernel.nanos;
            }
            total += n as u64;
            if n < bytes.len() {
                socket.no_space = true;
            }
            if (n as u64) < asked {
                break;
            }
        }
        let number = kernel.sockets.get(fd.0).map_or(0, |socket| socket.number);
        let offered: u64 = chain.map_or(0, SendChain::len);
        kernel.tell(|| format!("#{number} send {total} of {offered}"));
        Sent::Bytes(total)
    }

    /// Opens a log, or a socket to who keeps one.
    fn open_log_as(&self, name: &str, call: &'static str) -> Result<FileRef, FileFailure> {
        let copy = self.anchor.copy().map_err(|_| failure(EMFILE, "open"))?;
        let mut kernel = self.call();
        kernel.open_log(name).map_err(|errno| failure(errno, call))?;
        let (file, now) = (FileRef::new(copy), kernel.nanos);
        kernel.logs.register(name, file.clone(), now);
        Ok(file)
    }

    /// Errors that come out of nowhere, and changes between two calls.
    fn disturb_open(kernel: &mut Kernel, path: &str) -> Result<(), FileFailure> {
        if is_stored(path) {
            return kernel.disturb_store("look");
        }
        if kernel.chance.one_in(kernel.faults.open_in) {
            let errno = [EACCES, EMFILE, EIO, ENOENT][kernel.chance.index(4)];
            kernel.disk.note_failure(path, errno, kernel.nanos);
            kernel.tell(|| format!("open {path}: error {errno}"));
            return Err(failure(errno, "open"));
        }
        Ok(())
    }
}

impl Kernel {
    /// Whether opening a log fails.
    fn open_log(&mut self, name: &str) -> Result<(), i32> {
        match self.logs.refuse(name, self.faults.log_in, &mut self.chance) {
            Some(errno) => {
                self.tell(|| format!("open of log {name}: error {errno}"));
                Err(errno)
            }
            None => Ok(()),
        }
    }

    /// Writes to a log that is known; nothing if it is none.
    fn append_log(&mut self, file: &FileRef, bytes: &[u8]) -> Option<Appended> {
        let (name, problem) = self.logs.find(file, self.nanos)?;
        self.offences.extend(problem.map(|problem| format!("{name} {problem}")));
        let done = self.logs.write(&name, bytes, self.faults.log_in, &mut self.chance);
        let (taken, len) = (done.bytes, bytes.len());
        self.tell(|| format!("log {name}: {taken} of {len}, error {:?}", done.errno));
        Some(done)
    }
}

impl Io for SimIo {
    fn wait(&mut self, until: Option<Instant>, out: &mut Vec<Readiness>) -> Now {
        let mut kernel = self.kernel.borrow_mut();
        kernel.wait(self.worker, until, out);
        kernel.now()
    }

    fn watch(&mut self, fd: Fd, token: u64, _how: Interest) -> bool {
        if self.strikes(DoorCall::Watch).is_some() {
            let mut kernel = self.kernel.borrow_mut();
            if let Some(socket) = kernel.sockets.get_mut(fd.0) {
                socket.killed = true;
            }
            return false;
        }
        let mut kernel = self.call();
        let kernel = &mut *kernel;
        if let Some(socket) = kernel.sockets.get_mut(fd.0)
            && kernel.chance.one_in(kernel.faults.watch_in)
        {
            let is_call = u64::from(socket.port == 0);
            kernel.deeds.refusals += is_call;
            kernel.deeds.hindrances += is_call;
            socket.killed = true;
            return false;
        }
        kernel.watch(self.worker, fd.0, token);
        true
    }

    fn unwatch(&mut self, fd: Fd) {
        self.call().unwatch(self.worker, fd.0);
    }

    fn descriptors_max(&self) -> u64 {
        u64::MAX
    }

    fn accept(&mut self, listener: Fd, _near: Option<&SocketPeer>) -> Accepted {
        if let Some(errno) = self.strikes(DoorCall::Accept) {
            self.kernel.borrow_mut().is_shedding = true;
            return Accepted::Failed(errno);
        }
        let mut kernel = self.call();
        let fd = match kernel.accept(listener) {
            Ok(Some(fd)) => fd,
            Ok(None) => return Accepted::QueueEmpty,
            Err(errno) => return Accepted::Failed(errno),
        };
        let Some(socket) = kernel.sockets.get(fd) else { return Accepted::Gone };
        let (number, port) = (socket.number, socket.port);
        kernel.tell(|| format!("#{number} accepted"));
        let remote = SocketAddr::from(([192, 0, 2, 1], 1024 + (number % 60_000) as u16));
        let local = SocketAddr::from(([198, 51, 100, 1], port));
        let (remote, local) = (SocketPeer::Inet(remote), SocketPeer::Inet(local));
        Accepted::Client(SocketPeers { fd: Fd(fd), remote, local })
    }

    fn connect(
        &mut self,
        to: Callee<'_>,
        _: Option<SocketAddr>,
    ) -> Result<ConnectCall, FileFailure> {
        if let Some(errno) = self.strikes(DoorCall::Connect) {
            let is_dearth = matches!(errno, ENOMEM | ENFILE | EMFILE | ENOBUFS);
            return Err(failure(errno, if is_dearth { "socket" } else { "connect" }));
        }
        let to = match to {
            Callee::Inet(at) => at.to_string(),
            Callee::Unix(path) => String::from_utf8_lossy(path).into_owned(),
        };
        self.call().call(&to).map_err(|errno| failure(errno, "connect"))
    }

    fn connect_result(&mut self, fd: Fd) -> Result<(), i32> {
        if let Some(errno) = self.strikes(DoorCall::ConnectResult) {
            return Err(errno);
        }
        let kernel = self.call();
        kernel.sockets.get(fd.0).map_or(Err(EIO), |socket| socket.refused.map_or(Ok(()), Err))
    }

    fn keep_alive(&mut self, _fd: Fd) {}

    fn receive(&mut self, fd: Fd, into: &mut [u8]) -> ReceivedBytes {
        match self.strikes(DoorCall::Receive) {
            Some(EAGAIN) => {
                self.report_again(fd);
                return ReceivedBytes::Blocked;
            }
            Some(_) => {
                self.kernel.borrow_mut().cut(fd.0);
                return ReceivedBytes::Dead;
            }
            None => {}
        }
        let mut kernel = self.call();
        let nanos = kernel.nanos;
        let Some(socket) = kernel.sockets.get_mut(fd.0).filter(|s| s.closed.is_none()) else {
            kernel.offences.push("receive on a closed descriptor".to_owned());
            return ReceivedBytes::Dead;
        };
        let number = socket.number;
        let received = match socket.take(into) {
            0 if socket.dead => ReceivedBytes::Dead,
            0 if socket.fin => ReceivedBytes::End,
            0 => ReceivedBytes::Blocked,
            n => {
                socket.moved = nanos;
                ReceivedBytes::Bytes(n)
            }
        };
        kernel.tell(|| format!("#{number} receive {received:?}"));
        received
    }

    fn send(&mut self, fd: Fd, chain: &SendChain, then: AfterSend) -> Sent {
        let sent = self.send_all(fd, Some(chain), chain.segments());
        if then == AfterSend::End && sent == Sent::Bytes(chain.len()) {
            self.kernel.borrow_mut().expect_end(fd.0);
        }
        sent
    }

    fn send_bytes(&mut self, fd: Fd, bytes: &[u8], then: AfterSend) -> Sent {
        let mut chain = SendChain::new(CopyPolicy::Contiguous);
        chain.push_slice(bytes);
        self.send(fd, &chain, then)
    }

    fn send_segment(&mut self, fd: Fd, segment: &Segment) -> Sent {
        self.send_all(fd, None, std::slice::from_ref(segment))
    }

    fn shut_write(&mut self, fd: Fd) {
        let mut kernel = self.call();
        if kernel.is_dead {
            return;
        }
        if let Some(socket) = kernel.sockets.get_mut(fd.0) {
            socket.shut = true;
            let number = socket.number;
            kernel.tell(|| format!("#{number} shut"));
        }
    }

    fn close(&mut self, fd: Fd, reset: Reset) {
        let mut kernel = self.call();
        if kernel.is_dead {
            return;
        }
        if kernel.names.close(fd.0) {
            return;
        }
        let (sheds, nanos) = (std::mem::take(&mut kernel.is_shedding), kernel.nanos);
        let Some(socket) = kernel.sockets.get_mut(fd.0) else { return };
        let number = socket.number;
        socket.killed |= sheds;
        if socket.closed.is_some() {
            kernel.offences.push(format!("#{number} closed twice"));
            return;
        }
        if socket.awaits_end && !socket.shut && reset == Reset::Yes {
            kernel.offences.push(format!("#{number} loses what waited for its end"));
            return;
        }
        let unread = socket.inbound.len();
        socket.idled = nanos - socket.moved;
        socket.close(reset);
        kernel.tell(|| format!("#{number} close, reset {reset:?}, {unread} unread"));
    }

    fn receive_datagrams(&mut self, fd: Fd, batch: &mut UdpBatch) -> usize {
        self.call().receive_datagrams(fd, batch)
    }

    fn send_datagrams(&mut self, fd: Fd, out: &[DatagramOut<'_>]) -> DatagramsSent {
        self.call().send_datagrams(fd, out)
    }

    fn tcp_info(&mut self, _: Fd) -> Option<bolide_base::TcpInfo> {
        if self.strikes(DoorCall::TcpInfo).is_some() {
            return None;
        }
        Some(bolide_base::TcpInfo { rtt: 1000, rttvar: 100, snd_cwnd: 10, rcv_space: 65_536 })
    }

    fn real_path(&mut self, path: &[u8]) -> Result<Vec<u8>, i32> {
        self.strikes(DoorCall::RealPath).map_or(Ok(()), Err)?;
        Ok(path.to_vec())
    }

    fn open(&mut self, request: &OpenRequest<'_>) -> Result<OpenedFile, FileFailure> {
        self.fails(DoorCall::Open, "open")?;
        let copy = self.anchor.copy().map_err(|_| failure(EMFILE, "open"))?;
        let mut kernel = self.call();
        let kernel = &mut *kernel;
        let path = String::from_utf8_lossy(request.path);
        let path = if request.stat_only { path.trim_end_matches('/') } else { &*path }.to_owned();
        Self::disturb_open(kernel, &path)?;
        if let Some(stat) = kernel.logs.stat(&path) {
            return Ok(OpenedFile { file: None, stat, content: None });
        }
        let stat = kernel.disk.stat(&path).ok_or(failure(ENOENT, "open"))?;
        if request.stat_only || stat.is_dir {
            kernel.tell(|| format!("stat {path}: {} bytes", stat.size));
            return Ok(OpenedFile { file: None, stat, content: None });
        }
        let file = kernel.disk.open(&path, FileRef::new(copy));
        if kernel.chance.one_in(kernel.faults.race_in) {
            // Rewritten between the look at the attributes and the read.
            let bytes = crate::site_files::content(&path, &mut kernel.chance);
            kernel.disk.rewrite(&path, bytes, kernel.nanos);
            kernel.tell(|| format!("open {path}: rewritten meanwhile"));
            return Ok(OpenedFile { file, stat, content: None });
        }
        let DiskSeen::File(content) = kernel.disk.look(&path) else {
            return Err(failure(ENOENT, "open"));
        };
        let fits = request.content_max > 0 && stat.size <= request.content_max;
        // As if it were too large: read piece by piece as it leaves.
        let fits = fits && !(is_stored(&path) && kernel.chance.one_in(3));
        kernel.tell(|| format!("open {path}: {} bytes", stat.size));
        Ok(OpenedFile { file, stat, content: fits.then(|| content.bytes.to_vec()) })
    }

    fn list(&mut self, path: &[u8]) -> Result<Entries, FileFailure> {
        self.fails(DoorCall::List, "opendir")?;
        let kernel = self.call();
        let path = String::from_utf8_lossy(path);
        let path = path.trim_end_matches('/');
        let names = kernel.disk.list(path).into_iter();
        let found = names.filter_map(|name| {
            let stat = kernel.disk.stat(&format!("{path}/{name}"))?;
            Some((name.into_bytes(), stat))
        });
        Ok(Entries::known(found.collect(), None))
    }

    fn read(&mut self, file: &FileRef, offset: u64, into: &mut [u8]) -> Result<usize, FileFailure> {
        self.fails(DoorCall::Read, "read")?;
        let mut kernel = self.call();
        let kernel = &mut *kernel;
        if is_stored(kernel.disk.path_of(file)) {
            let disturbed = kernel.disturb_store("read");
            kernel.deeds.broken_files += u64::from(disturbed.is_err());
            disturbed?;
        } else if kernel.chance.one_in(kernel.faults.read_in) {
            kernel.disk.note_read_failure(file, kernel.nanos);
            kernel.deeds.full_disks += 1;
            kernel.tell(|| "read: EIO".to_owned());
            return Err(failure(EIO, "read"));
        }
        let content = kernel.disk.content(file).ok_or(failure(EIO, "read"))?;
        let rest = content.bytes.get(offset as usize..).unwrap_or_default();
        let mut n = rest.len().min(into.len());
        if n > 1 && kernel.chance.one_in(kernel.faults.short_read_in) {
            n = 1 + kernel.chance.index(n - 1);
        }
        into[..n].copy_from_slice(&rest[..n]);
        Ok(n)
    }

    fn create_temp(&mut self, dir: &[u8]) -> Result<FileRef, FileFailure> {
        self.fails(DoorCall::CreateTemp, "open")?;
        let copy = self.anchor.copy().map_err(|_| failure(EMFILE, "open"))?;
        let mut kernel = self.call();
        let kernel = &mut *kernel;
        if kernel.chance.one_in(kernel.faults.spool_in) {
            kernel.deeds.full_disks += 1;
            kernel.tell(|| "temporary file: ENOSPC".to_owned());
            return Err(failure(ENOSPC, "open"));
        }
        kernel.tell(|| format!("temporary file below {}", String::from_utf8_lossy(dir)));
        Ok(kernel.disk.create_temp(FileRef::new(copy)))
    }

    fn write_at(
        &mut self,
        file: &FileRef,
        offset: u64,
        bytes: &[u8],
    ) -> Result<usize, FileFailure> {
        self.fails(DoorCall::WriteAt, "pwrite")?;
        let mut kernel = self.call();
        let kernel = &mut *kernel;
        if is_stored(kernel.disk.path_of(file)) {
            kernel.disturb_store("pwrite")?;
        } else if kernel.chance.one_in(kernel.faults.spool_in) {
            kernel.deeds.full_disks += 1;
            kernel.tell(|| "pwrite: ENOSPC".to_owned());
            return Err(failure(ENOSPC, "pwrite"));
        }
        let n = kernel.chance.size(bytes.len());
        let n = if kernel.chance.one_in(kernel.faults.short_read_in) { n } else { bytes.len() };
        if !kernel.disk.write_temp(file, offset, &bytes[..n])
            && !kernel.disk.write(file, Some(offset), &bytes[..n])
        {
            kernel.offences.push("a write into a file that is no temporary one".to_owned());
        }
        Ok(n)
    }

    fn create(&mut self, path: &[u8], _mode: u32) -> Result<FileRef, FileFailure> {
        self.fails(DoorCall::Create, "open")?;
        let copy = self.anchor.copy().map_err(|_| failure(EMFILE, "open"))?;
        let mut kernel = self.call();
        let kernel = &mut *kernel;
        let path = String::from_utf8_lossy(path);
        if is_body(&path) || is_dav(&path) {
            kernel.disturb_body("open")?;
        } else {
            kernel.disturb_store("open")?;
        }
        let directory = path.rsplit_once('/').map_or("", |(directory, _)| directory);
        if !kernel.disk.has_directory(directory) {
            return Err(failure(ENOENT, "open"));
        }
        kernel.tell(|| format!("create {path}"));
        let nanos = kernel.nanos;
        kernel.disk.create(&path, FileRef::new(copy), nanos).ok_or(failure(EEXIST, "open"))
    }

    fn make_directory(&mut self, path: &[u8], _mode: u32) -> Result<(), FileFailure> {
        self.fails(DoorCall::MakeDirectory, "mkdir")?;
        let mut kernel = self.call();
        let path = String::from_utf8_lossy(path);
        if is_dav(&path) {
            kernel.tell(|| format!("mkdir {path}"));
            return kernel.call_dav("mkdir", |disk, now| disk.make_inside(&path, now));
        }
        if is_body(&path) {
            kernel.disturb_body("mkdir")?;
        } else {
            kernel.disturb_store("mkdir")?;
        }
        if kernel.disk.has_directory(&path) {
            return Err(failure(EEXIST, "mkdir"));
        }
        kernel.disk.make_directory(&path);
        Ok(())
    }

    fn stat_link(&mut self, path: &[u8]) -> Result<Stat, FileFailure> {
        let kernel = self.call();
        let named = String::from_utf8_lossy(path);
        let path = named.trim_end_matches('/');
        if is_dav(path) {
            let found = kernel.disk.check_way(&named);
            found.map_err(|errno| failure(errno, "lstat"))?;
        }
        kernel.disk.stat(path).ok_or(failure(ENOENT, "lstat"))
    }

    fn remove_directory(&mut self, path: &[u8]) -> Result<(), FileFailure> {
        let mut kernel = self.call();
        let path = String::from_utf8_lossy(path);
        kernel.tell(|| format!("rmdir {path}"));
        if is_dav(&path) {
            return kernel.call_dav("rmdir", |disk, now| {
                disk.remove_inside(path.trim_end_matches('/'), now)
            });
        }
        if kernel.disk.remove_directory(&path) { Ok(()) } else { Err(failure(ENOENT, "rmdir")) }
    }

    fn set_access(&mut self, _file: &FileRef, _mode: u32) -> Result<(), FileFailure> {
        self.call().disturb_body("fchmod")
    }

    fn set_modified(&mut self, path: &[u8], seconds: i64) -> Result<(), FileFailure> {
        let mut kernel = self.call();
        kernel.disturb_body("utimensat")?;
        kernel.disk.touch_inside(&String::from_utf8_lossy(path), seconds);
        Ok(())
    }

    fn rename(&mut self, from: &[u8], to: &[u8]) -> Result<(), FileFailure> {
        let mut kernel = self.call();
        kernel.disturb_store("rename")?;
        let (from, to) = (String::from_utf8_lossy(from), String::from_utf8_lossy(to));
        kernel.tell(|| format!("rename {from} to {to}"));
        if is_dav(&to) {
            return kernel.call_dav("rename", |disk, now| disk.move_inside(&from, &to, now));
        }
        if kernel.disk.rename(&from, &to) { Ok(()) } else { Err(failure(ENOENT, "rename")) }
    }

    fn unlink(&mut self, path: &[u8]) -> Result<(), FileFailure> {
        self.fails(DoorCall::Unlink, "unlink")?;
        let mut kernel = self.call();
        kernel.disturb_store("unlink")?;
        let path = String::from_utf8_lossy(path);
        kernel.tell(|| format!("unlink {path}"));
        if is_dav(&path) {
            return kernel.call_dav("unlink", |disk, now| disk.unlink_inside(&path, now));
        }
        if kernel.disk.unlink(&path) { Ok(()) } else { Err(failure(ENOENT, "unlink")) }
    }

    fn name_of(&mut self, file: &FileRef) -> Option<Vec<u8>> {
        Some(self.call().disk.path_of(file).as_bytes().to_vec())
    }

    fn entries(&mut self, path: &[u8]) -> Result<Entries, FileFailure> {
        let mut kernel = self.call();
        let path = String::from_utf8_lossy(path);
        let path = path.trim_end_matches('/');
        let mut failure = None;
        if is_dav(path) {
            kernel.call_dav("opendir", |disk, _| disk.check_directory(path))?;
            failure = kernel.call_dav("readdir", |_, _| Ok(())).err();
        }
        let names = kernel.disk.entries(path).into_iter();
        let found = names.filter_map(|(name, _)| {
            let stat = kernel.disk.stat(&format!("{path}/{name}"))?;
            Some((name.into_bytes(), stat))
        });
        let mut found: Vec<_> = found.collect();
        if failure.is_some() {
            found.truncate(found.len() / 2);
        }
        Ok(Entries::known(found, failure))
    }

    fn open_journal(&mut self, path: &[u8]) -> Result<FileRef, FileFailure> {
        let copy = self.anchor.copy().map_err(|_| failure(EMFILE, "open"))?;
        let mut kernel = self.call();
        let kernel = &mut *kernel;
        kernel.disturb_store("open")?;
        let path = String::from_utf8_lossy(path);
        let nanos = kernel.nanos;
        let file = FileRef::new(copy);
        match kernel.disk.open(&path, file.clone()) {
            Some(file) => Ok(file),
            None => kernel.disk.create(&path, file, nanos).ok_or(failure(EIO, "open")),
        }
    }

    fn append_journal(&mut self, file: &FileRef, bytes: &[u8]) -> Result<usize, FileFailure> {
        let mut kernel = self.call();
        let kernel = &mut *kernel;
        kernel.disturb_store("write")?;
        let n = kernel.chance.size(bytes.len());
        let n = if kernel.chance.one_in(kernel.faults.short_read_in) { n } else { bytes.len() };
        if !kernel.disk.write(file, None, &bytes[..n]) {
            kernel.offences.push("a write into a file that is no journal".to_owned());
        }
        Ok(n)
    }

    fn sync(&mut self, file: &FileRef) -> Result<(), FileFailure> {
        let mut kernel = self.call();
        kernel.disturb_store("fsync")?;
        kernel.tell(|| "fsync".to_owned());
        kernel.disk.sync(file);
        Ok(())
    }

    fn lock_shared(&mut self, _file: &FileRef) -> Result<(), FileFailure> {
        Ok(())
    }

    fn lock_exclusive(&mut self, _file: &FileRef) -> bool {
        true
    }

    fn free_bytes(&mut self, _path: &[u8]) -> Result<u64, FileFailure> {
        Ok(u64::MAX)
    }

    fn stat(&mut self, file: &FileRef) -> Result<Stat, FileFailure> {
        self.fails(DoorCall::Stat, "fstat")?;
        let kernel = self.call();
        if let Some(stat) = kernel.logs.stat_open(file) {
            return Ok(stat);
        }
        let stat = kernel.disk.stat_open(file).ok_or(failure(EIO, "fstat"))?;
        Ok(Stat { links: kernel.disk.links(file), ..stat })
    }

    fn open_log(&mut self, path: &[u8]) -> Result<FileRef, FileFailure> {
        self.fails(DoorCall::OpenLog, "open")?;
        let name = String::from_utf8_lossy(path).into_owned();
        self.open_log_as(&name, "open")
    }

    fn open_datagrams(&mut self, _to: Callee<'_>) -> Result<FileRef, FileFailure> {
        self.fails(DoorCall::OpenDatagrams, "socket")?;
        self.open_log_as(SYSLOG, "connect")
    }

    fn call_datagrams(&mut self, to: SocketAddr) -> Result<Fd, FileFailure> {
        let worker = self.worker;
        self.call().call_names(worker, to).map_err(|errno| failure(errno, "connect"))
    }

    fn receive_datagram(&mut self, fd: Fd, into: &mut [u8]) -> Result<Option<usize>, i32> {
        self.call().names.receive(fd.0, into)
    }

    fn send_datagram(&mut self, fd: Fd, bytes: &[u8]) -> Result<(), i32> {
        self.call().ask_names(fd.0, bytes)
    }

    fn append_shared(&mut self, log: &FileRef, bytes: &[u8]) -> Appended {
        self.append(log, bytes)
    }

    fn append(&mut self, log: &FileRef, bytes: &[u8]) -> Appended {
        if let Some(errno) = self.strikes(DoorCall::Append) {
            return Appended { bytes: 0, errno: Some(errno) };
        }
        let all = Appended { bytes: bytes.len(), errno: None };
        let mut kernel = self.call();
        if kernel.is_dead {
            return all;
        }
        if let Some(done) = kernel.append_log(log, bytes) {
            return done;
        }
        kernel.access_log.extend_from_slice(bytes);
        let lines = String::from_utf8_lossy(bytes);
        kernel.tell(|| format!("log {}", lines.trim_end().replace('\n', "\n            log ")));
        all
    }

    fn read_link(&mut self, _path: &[u8]) -> Result<Vec<u8>, i32> {
        Err(EINVAL)
    }

    fn watch_directory(&mut self, path: &[u8], _: DirDepth, token: u64) -> Result<u32, i32> {
        let worker = self.worker;
        let mut kernel = self.call();
        let path = String::from_utf8_lossy(path);
        let is_there = &*path == "/" || kernel.disk.has_directory(&path);
        kernel.disk.watches.add(worker, (&path, is_there), token)
    }

    fn unwatch_directory(&mut self, watch: u32) {
        let worker = self.worker;
        self.call().disk.watches.end(worker, watch);
    }

    fn take_changes(&mut self, out: &mut Vec<DirChange>) {
        let worker = self.worker;
        self.call().disk.watches.take(worker, out);
    }

    fn drain(&mut self, _fd: Fd) {
        let worker = self.worker;
        self.call().silence(worker);
    }
}
