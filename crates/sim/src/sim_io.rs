//! The `Io` of one worker on the simulated kernel.

mod files;
mod logs;
mod send;

use std::cell::{RefCell, RefMut};
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::rc::Rc;

use bolide_base::errno::{EAGAIN, EINVAL, EIO, EMFILE, ENFILE, ENOBUFS, ENOENT, ENOMEM};
use bolide_base::{CopyPolicy, FileRef, Instant, Now, Segment, SendChain};
use bolide_io::{
    Accepted, AfterSend, Appended, Callee, ConnectCall, DatagramOut, DatagramsSent, DirChange,
    DirDepth, Entries, Fd, FileFailure, Interest, Io, OpenRequest, OpenedFile, Readiness,
    ReceivedBytes, Reset, Sent, SocketPeer, SocketPeers, Stat, UdpBatch,
};

use crate::kernel::Kernel;
use crate::kernel::file_system::is_dav;
use crate::kernel::logs::SYSLOG;
use crate::kernel::syscall_faults::IoCall;

/// The kernel, shared by all workers and clients.
pub type SharedKernel = Rc<RefCell<Kernel>>;

/// A source of real descriptors that stand for simulated files; they are never read or written.
#[derive(Clone, Debug)]
pub struct DescriptorSource(Rc<OwnedFd>);

impl DescriptorSource {
    /// Opens the descriptor that is duplicated.
    ///
    /// # Errors
    ///
    /// The real kernel has no descriptor left.
    pub fn new() -> std::io::Result<Self> {
        Ok(Self(Rc::new(std::os::unix::net::UnixDatagram::unbound()?.into())))
    }

    /// Duplicates the descriptor.
    ///
    /// # Errors
    ///
    /// The real kernel has no descriptor left.
    pub fn copy(&self) -> std::io::Result<OwnedFd> {
        self.0.as_fd().try_clone_to_owned()
    }
}

/// The `Io` of one worker.
#[derive(Debug)]
pub struct SimIo {
    kernel: SharedKernel,
    worker: usize,
    descriptors: DescriptorSource,
}

impl SimIo {
    /// The `Io` of `worker`.
    #[must_use]
    pub const fn new(kernel: SharedKernel, worker: usize, descriptors: DescriptorSource) -> Self {
        Self { kernel, worker, descriptors }
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

impl SimIo {
    /// Draws whether a call fails, and its error number.
    fn draw_errno(&self, call: IoCall) -> Option<i32> {
        let mut kernel = self.kernel.borrow_mut();
        let kernel = &mut *kernel;
        let errno = kernel.syscall_faults.draw(call, &mut kernel.chance)?;
        kernel.calls += 1;
        kernel.trace(|| format!("{call:?}: error {errno}"));
        Some(errno)
    }

    fn check_fault(&self, call: IoCall, name: &'static str) -> Result<(), FileFailure> {
        self.draw_errno(call).map_or(Ok(()), |errno| Err(failure(errno, name)))
    }

    /// Queues an event for a connection that blocked by an injected EAGAIN.
    fn report_again(&self, fd: Fd) {
        if let Some(socket) = self.kernel.borrow_mut().sockets.get_mut(fd.0) {
            socket.edge = true;
        }
    }
}

impl Io for SimIo {
    fn wait(&mut self, until: Option<Instant>, out: &mut Vec<Readiness>) -> Now {
        let mut kernel = self.kernel.borrow_mut();
        kernel.wait(self.worker, until, out);
        kernel.now()
    }

    fn watch(&mut self, fd: Fd, token: u64, _how: Interest) -> bool {
        if self.draw_errno(IoCall::Watch).is_some() {
            let mut kernel = self.kernel.borrow_mut();
            if let Some(socket) = kernel.sockets.get_mut(fd.0) {
                socket.killed = true;
            }
            return false;
        }
        let mut kernel = self.call();
        let kernel = &mut *kernel;
        if let Some(socket) = kernel.sockets.get_mut(fd.0)
            && kernel.chance.one_in(kernel.fault_rates.watch_in)
        {
            let is_call = u64::from(socket.port == 0);
            kernel.fault_record.refused_connects += is_call;
            kernel.fault_record.local_connect_errors += is_call;
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
        if let Some(errno) = self.draw_errno(IoCall::Accept) {
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
        kernel.trace(|| format!("#{number} accepted"));
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
        if let Some(errno) = self.draw_errno(IoCall::Connect) {
            let is_local = matches!(errno, ENOMEM | ENFILE | EMFILE | ENOBUFS);
            return Err(failure(errno, if is_local { "socket" } else { "connect" }));
        }
        let to = match to {
            Callee::Inet(at) => at.to_string(),
            Callee::Unix(path) => String::from_utf8_lossy(path).into_owned(),
        };
        self.call().connect_upstream(&to).map_err(|errno| failure(errno, "connect"))
    }

    fn connect_result(&mut self, fd: Fd) -> Result<(), i32> {
        if let Some(errno) = self.draw_errno(IoCall::ConnectResult) {
            return Err(errno);
        }
        let kernel = self.call();
        kernel.sockets.get(fd.0).map_or(Err(EIO), |socket| socket.refused.map_or(Ok(()), Err))
    }

    fn keep_alive(&mut self, _fd: Fd) {}

    fn receive(&mut self, fd: Fd, into: &mut [u8]) -> ReceivedBytes {
        match self.draw_errno(IoCall::Receive) {
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
            kernel.violations.push("receive on a closed descriptor".to_owned());
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
        kernel.trace(|| format!("#{number} receive {received:?}"));
        received
    }

    fn send(&mut self, fd: Fd, chain: &SendChain, then: AfterSend) -> Sent {
        let sent = self.send_all(fd, Some(chain), chain.segments());
        if then == AfterSend::End {
            let mut kernel = self.kernel.borrow_mut();
            match sent == Sent::Bytes(chain.len()) {
                true => kernel.expect_end(fd.0),
                false => kernel.refuse_end(fd.0),
            }
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
            kernel.trace(|| format!("#{number} shut"));
        }
    }

    fn close(&mut self, fd: Fd, reset: Reset) {
        let mut kernel = self.call();
        if kernel.is_dead {
            return;
        }
        if kernel.dns.close(fd.0) {
            return;
        }
        let (sheds, nanos) = (std::mem::take(&mut kernel.is_shedding), kernel.nanos);
        let Some(socket) = kernel.sockets.get_mut(fd.0) else { return };
        let number = socket.number;
        socket.killed |= sheds;
        if socket.closed.is_some() {
            kernel.violations.push(format!("#{number} closed twice"));
            return;
        }
        if socket.awaits_end && !socket.shut && reset == Reset::Yes {
            kernel.violations.push(format!("#{number} loses what waited for its end"));
            return;
        }
        let unread = socket.inbound.len();
        socket.idled = nanos - socket.moved;
        socket.close(reset);
        kernel.trace(|| format!("#{number} close, reset {reset:?}, {unread} unread"));
    }

    fn receive_datagrams(&mut self, fd: Fd, batch: &mut UdpBatch) -> usize {
        self.call().receive_datagrams(fd, batch)
    }

    fn send_datagrams(&mut self, fd: Fd, out: &[DatagramOut<'_>]) -> DatagramsSent {
        self.call().send_datagrams(fd, out)
    }

    fn tcp_info(&mut self, _: Fd) -> Option<bolide_base::TcpInfo> {
        if self.draw_errno(IoCall::TcpInfo).is_some() {
            return None;
        }
        Some(bolide_base::TcpInfo { rtt: 1000, rttvar: 100, snd_cwnd: 10, rcv_space: 65_536 })
    }

    fn real_path(&mut self, path: &[u8]) -> Result<Vec<u8>, i32> {
        self.draw_errno(IoCall::RealPath).map_or(Ok(()), Err)?;
        Ok(path.to_vec())
    }

    fn open(&mut self, request: &OpenRequest<'_>) -> Result<OpenedFile, FileFailure> {
        self.open_file(request)
    }

    fn list(&mut self, path: &[u8]) -> Result<Entries, FileFailure> {
        self.list_directory(path)
    }

    fn read(&mut self, file: &FileRef, offset: u64, into: &mut [u8]) -> Result<usize, FileFailure> {
        self.read_file(file, offset, into)
    }

    fn create_temp(&mut self, dir: &[u8]) -> Result<FileRef, FileFailure> {
        self.create_temp_file(dir)
    }

    fn write_at(
        &mut self,
        file: &FileRef,
        offset: u64,
        bytes: &[u8],
    ) -> Result<usize, FileFailure> {
        self.write_file(file, offset, bytes)
    }

    fn create(&mut self, path: &[u8], _mode: u32) -> Result<FileRef, FileFailure> {
        self.create_file(path)
    }

    fn make_directory(&mut self, path: &[u8], _mode: u32) -> Result<(), FileFailure> {
        self.create_directory(path)
    }

    fn stat_link(&mut self, path: &[u8]) -> Result<Stat, FileFailure> {
        let kernel = self.call();
        let named = String::from_utf8_lossy(path);
        let path = named.trim_end_matches('/');
        if is_dav(path) {
            let found = kernel.disk.check_parents(&named);
            found.map_err(|errno| failure(errno, "lstat"))?;
        }
        kernel.disk.stat(path).ok_or(failure(ENOENT, "lstat"))
    }

    fn remove_directory(&mut self, path: &[u8]) -> Result<(), FileFailure> {
        let mut kernel = self.call();
        let path = String::from_utf8_lossy(path);
        kernel.trace(|| format!("rmdir {path}"));
        if is_dav(&path) {
            return kernel
                .call_dav("rmdir", |disk, now| disk.dav_rmdir(path.trim_end_matches('/'), now));
        }
        if kernel.disk.remove_directory(&path) { Ok(()) } else { Err(failure(ENOENT, "rmdir")) }
    }

    fn set_access(&mut self, _file: &FileRef, _mode: u32) -> Result<(), FileFailure> {
        self.call().body_fault("fchmod")
    }

    fn set_modified(&mut self, path: &[u8], seconds: i64) -> Result<(), FileFailure> {
        let mut kernel = self.call();
        kernel.body_fault("utimensat")?;
        kernel.disk.dav_touch(&String::from_utf8_lossy(path), seconds);
        Ok(())
    }

    fn rename(&mut self, from: &[u8], to: &[u8]) -> Result<(), FileFailure> {
        let mut kernel = self.call();
        kernel.store_fault("rename")?;
        let (from, to) = (String::from_utf8_lossy(from), String::from_utf8_lossy(to));
        kernel.trace(|| format!("rename {from} to {to}"));
        if is_dav(&to) {
            return kernel.call_dav("rename", |disk, now| disk.dav_rename(&from, &to, now));
        }
        if kernel.disk.rename(&from, &to) { Ok(()) } else { Err(failure(ENOENT, "rename")) }
    }

    fn unlink(&mut self, path: &[u8]) -> Result<(), FileFailure> {
        self.check_fault(IoCall::Unlink, "unlink")?;
        let mut kernel = self.call();
        kernel.store_fault("unlink")?;
        let path = String::from_utf8_lossy(path);
        kernel.trace(|| format!("unlink {path}"));
        if is_dav(&path) {
            return kernel.call_dav("unlink", |disk, now| disk.dav_unlink(&path, now));
        }
        if kernel.disk.unlink(&path) { Ok(()) } else { Err(failure(ENOENT, "unlink")) }
    }

    fn name_of(&mut self, file: &FileRef) -> Option<Vec<u8>> {
        Some(self.call().disk.path_of(file).as_bytes().to_vec())
    }

    fn entries(&mut self, path: &[u8]) -> Result<Entries, FileFailure> {
        self.directory_entries(path)
    }

    fn open_journal(&mut self, path: &[u8]) -> Result<FileRef, FileFailure> {
        self.open_journal_file(path)
    }

    fn append_journal(&mut self, file: &FileRef, bytes: &[u8]) -> Result<usize, FileFailure> {
        self.append_journal_bytes(file, bytes)
    }

    fn sync(&mut self, file: &FileRef) -> Result<(), FileFailure> {
        let mut kernel = self.call();
        kernel.store_fault("fsync")?;
        kernel.trace(|| "fsync".to_owned());
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
        self.check_fault(IoCall::Stat, "fstat")?;
        let kernel = self.call();
        if let Some(stat) = kernel.logs.stat_open(file) {
            return Ok(stat);
        }
        let stat = kernel.disk.stat_open(file).ok_or(failure(EIO, "fstat"))?;
        Ok(Stat { links: kernel.disk.links(file), ..stat })
    }

    fn open_log(&mut self, path: &[u8]) -> Result<FileRef, FileFailure> {
        self.check_fault(IoCall::OpenLog, "open")?;
        let name = String::from_utf8_lossy(path).into_owned();
        self.open_log_as(&name, "open")
    }

    fn open_datagrams(&mut self, _to: Callee<'_>) -> Result<FileRef, FileFailure> {
        self.check_fault(IoCall::OpenDatagrams, "socket")?;
        self.open_log_as(SYSLOG, "connect")
    }

    fn call_datagrams(&mut self, to: SocketAddr) -> Result<Fd, FileFailure> {
        let worker = self.worker;
        self.call().open_dns_socket(worker, to).map_err(|errno| failure(errno, "connect"))
    }

    fn receive_datagram(&mut self, fd: Fd, into: &mut [u8]) -> Result<Option<usize>, i32> {
        self.call().dns.receive(fd.0, into)
    }

    fn send_datagram(&mut self, fd: Fd, bytes: &[u8]) -> Result<(), i32> {
        self.call().send_dns_query(fd.0, bytes)
    }

    fn append_shared(&mut self, log: &FileRef, bytes: &[u8]) -> Appended {
        self.append(log, bytes)
    }

    fn append(&mut self, log: &FileRef, bytes: &[u8]) -> Appended {
        self.append_log(log, bytes)
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
        self.call().clear_wake(worker);
    }
}
