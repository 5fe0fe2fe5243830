//! Stream sockets and the common part of all sockets.

use std::io::{Error, Result};
use std::mem;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};
use std::os::fd::{AsRawFd, FromRawFd, IntoRawFd, OwnedFd};

use bolide_base::{FileRef, TcpInfo};
use libc::c_long;

use super::{check, check_size};
use crate::{Accepted, Callee, ConnectCall, Fd, FileFailure, SocketPeer, SocketPeers};

/// Whether more pieces follow at once, so that the kernel waits to fill a segment.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum MoreToRead {
    No,
    Yes,
}

/// Socket options that take an integer.
#[derive(Clone, Copy)]
pub(crate) enum SockOpt {
    NoDelay,
    Cork,
    BindNoPort,
    DeferAccept,
    FastOpen,
    KeepAlive,
    KeepIdle,
    KeepInterval,
    KeepCount,
    V6Only,
    ReceiveBuffer,
    SendBuffer,
    ReceiveBufferForce,
    SendBufferForce,
    ReuseAddr,
    ReusePort,
    UdpGro,
    PacketInfoV4,
    PacketInfoV6,
    TosV4,
    TrafficClassV6,
    DontFragmentV4,
    DontFragmentV6,
}

impl SockOpt {
    const fn pair(self) -> (i32, i32) {
        match self {
            Self::NoDelay => (libc::IPPROTO_TCP, libc::TCP_NODELAY),
            Self::Cork => (libc::IPPROTO_TCP, libc::TCP_CORK),
            Self::BindNoPort => (libc::IPPROTO_IP, libc::IP_BIND_ADDRESS_NO_PORT),
            Self::DeferAccept => (libc::IPPROTO_TCP, libc::TCP_DEFER_ACCEPT),
            Self::FastOpen => (libc::IPPROTO_TCP, libc::TCP_FASTOPEN),
            Self::KeepAlive => (libc::SOL_SOCKET, libc::SO_KEEPALIVE),
            Self::KeepIdle => (libc::IPPROTO_TCP, libc::TCP_KEEPIDLE),
            Self::KeepInterval => (libc::IPPROTO_TCP, libc::TCP_KEEPINTVL),
            Self::KeepCount => (libc::IPPROTO_TCP, libc::TCP_KEEPCNT),
            Self::V6Only => (libc::IPPROTO_IPV6, libc::IPV6_V6ONLY),
            Self::ReceiveBuffer => (libc::SOL_SOCKET, libc::SO_RCVBUF),
            Self::SendBuffer => (libc::SOL_SOCKET, libc::SO_SNDBUF),
            Self::ReceiveBufferForce => (libc::SOL_SOCKET, libc::SO_RCVBUFFORCE),
            Self::SendBufferForce => (libc::SOL_SOCKET, libc::SO_SNDBUFFORCE),
            Self::ReuseAddr => (libc::SOL_SOCKET, libc::SO_REUSEADDR),
            Self::ReusePort => (libc::SOL_SOCKET, libc::SO_REUSEPORT),
            Self::UdpGro => (libc::SOL_UDP, libc::UDP_GRO),
            Self::PacketInfoV4 => (libc::IPPROTO_IP, libc::IP_PKTINFO),
            Self::PacketInfoV6 => (libc::IPPROTO_IPV6, libc::IPV6_RECVPKTINFO),
            Self::TosV4 => (libc::IPPROTO_IP, libc::IP_RECVTOS),
            Self::TrafficClassV6 => (libc::IPPROTO_IPV6, libc::IPV6_RECVTCLASS),
            Self::DontFragmentV4 => (libc::IPPROTO_IP, libc::IP_MTU_DISCOVER),
            Self::DontFragmentV6 => (libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER),
        }
    }
}

pub(crate) fn set_option(fd: i32, option: SockOpt, value: i32) -> Result<()> {
    let (level, name) = option.pair();
    let size = size_of::<i32>() as libc::socklen_t;
    // SAFETY: the value is read during the call, with its right size.
    let done = unsafe { libc::setsockopt(fd, level, name, (&raw const value).cast(), size) };
    check(done).map(drop)
}

pub(crate) fn set_reuse(fd: i32) -> Result<()> {
    set_option(fd, SockOpt::ReuseAddr, 1)?;
    set_option(fd, SockOpt::ReusePort, 1)
}

/// Sets a buffer size beyond the system's limit if this process may, else up to the limit.
pub(crate) fn set_buffer(fd: i32, option: SockOpt, bytes: usize) -> Result<()> {
    let value = i32::try_from(bytes).unwrap_or(i32::MAX);
    let force = match option {
        SockOpt::SendBuffer => SockOpt::SendBufferForce,
        _ => SockOpt::ReceiveBufferForce,
    };
    set_option(fd, force, value).or_else(|_| set_option(fd, option, value))
}

pub(crate) fn stream_socket(v6: bool) -> Result<OwnedFd> {
    socket(if v6 { libc::AF_INET6 } else { libc::AF_INET }, libc::SOCK_STREAM)
}

pub(crate) fn datagram_socket(v6: bool) -> Result<OwnedFd> {
    socket(if v6 { libc::AF_INET6 } else { libc::AF_INET }, libc::SOCK_DGRAM)
}

pub(crate) fn unix_socket() -> Result<OwnedFd> {
    socket(libc::AF_UNIX, libc::SOCK_STREAM)
}

fn socket(family: i32, kind: i32) -> Result<OwnedFd> {
    let kind = kind | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    // SAFETY: no pointers are involved.
    let fd = check(unsafe { libc::socket(family, kind, 0) })?;
    // SAFETY: the descriptor is new and has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

pub(crate) fn bind(fd: i32, at: &SocketAddr) -> Result<()> {
    let (storage, len) = to_storage(at);
    // SAFETY: the storage is initialised for `len` bytes and outlives the call.
    check(unsafe { libc::bind(fd, (&raw const storage).cast(), len) }).map(drop)
}

/// The address of a path, with its size. A first byte of zero means Linux's abstract names, which
/// end with the address.
fn unix_address(path: &[u8]) -> Result<(libc::sockaddr_un, libc::socklen_t)> {
    // SAFETY: all zeroes is a valid address.
    let mut at: libc::sockaddr_un = unsafe { mem::zeroed() };
    at.sun_family = libc::AF_UNIX as libc::sa_family_t;
    if path.len() >= at.sun_path.len() {
        return Err(Error::from_raw_os_error(libc::ENAMETOOLONG));
    }
    for (to, from) in at.sun_path.iter_mut().zip(path) {
        *to = *from as libc::c_char;
    }
    let size = match path.first() {
        Some(0) => mem::offset_of!(libc::sockaddr_un, sun_path) + path.len(),
        _ => size_of_val(&at),
    };
    Ok((at, size as libc::socklen_t))
}

/// Starts to connect; the caller closes the descriptor.
pub(crate) fn connect(
    to: Callee<'_>,
    from: Option<SocketAddr>,
) -> std::result::Result<ConnectCall, FileFailure> {
    let bound = |socket: OwnedFd| match from {
        Some(at) => {
            if at.port() == 0 {
                // The port is chosen together with the remote address, so that more ports are
                // usable.
                let _ = set_option(socket.as_raw_fd(), SockOpt::BindNoPort, 1);
            }
            bind(socket.as_raw_fd(), &at).map(|()| socket).map_err(failed("bind"))
        }
        None => Ok(socket),
    };
    let (socket, done) = match to {
        Callee::Inet(at) => {
            let socket = bound(stream_socket(at.is_ipv6()).map_err(failed("socket"))?)?;
            // Low latency matters more than full segments; without the option responses are merely
            // late.
            let _ = set_option(socket.as_raw_fd(), SockOpt::NoDelay, 1);
            let (storage, len) = to_storage(&at);
            let fd = socket.as_raw_fd();
            // SAFETY: the storage is initialised for `len` bytes and outlives the call.
            (socket, check(unsafe { libc::connect(fd, (&raw const storage).cast(), len) }))
        }
        Callee::Unix(path) => {
            let socket = bound(unix_socket().map_err(failed("socket"))?)?;
            let (at, len) = unix_address(path).map_err(failed("connect"))?;
            let fd = socket.as_raw_fd();
            // SAFETY: the address is initialised and NUL-terminated, and outlives the call.
            (socket, check(unsafe { libc::connect(fd, (&raw const at).cast(), len) }))
        }
    };
    let stands = match done {
        Ok(_) => true,
        Err(error) if error.raw_os_error() == Some(libc::EINPROGRESS) => false,
        Err(error) => return Err(failed("connect")(error)),
    };
    Ok(ConnectCall { fd: Fd(socket.into_raw_fd()), stands })
}

/// The error of `call`, for a caller that needs more calls than this one.
fn failed(call: &'static str) -> impl Fn(Error) -> FileFailure {
    move |error| FileFailure { errno: error.raw_os_error().unwrap_or_default(), call }
}

/// A socket whose datagrams go to one address and come from it; its holder closes it.
pub(crate) fn call_datagrams(to: SocketAddr) -> std::result::Result<Fd, FileFailure> {
    let socket = datagram_socket(to.is_ipv6()).map_err(failed("socket"))?;
    let (storage, len) = to_storage(&to);
    let fd = socket.as_raw_fd();
    // SAFETY: the storage is initialised for `len` bytes and outlives the call.
    check(unsafe { libc::connect(fd, (&raw const storage).cast(), len) })
        .map_err(failed("connect"))?;
    Ok(Fd(socket.into_raw_fd()))
}

/// A socket whose datagrams go to one address.
pub(crate) fn connect_datagrams(to: Callee<'_>) -> std::result::Result<FileRef, FileFailure> {
    let (socket, done) = match to {
        Callee::Inet(at) => {
            let socket = datagram_socket(at.is_ipv6()).map_err(failed("socket"))?;
            let (storage, len) = to_storage(&at);
            let fd = socket.as_raw_fd();
            // SAFETY: the storage is initialised for `len` bytes and outlives the call.
            (socket, check(unsafe { libc::connect(fd, (&raw const storage).cast(), len) }))
        }
        Callee::Unix(path) => {
            let socket = socket(libc::AF_UNIX, libc::SOCK_DGRAM).map_err(failed("socket"))?;
            let (at, len) = unix_address(path).map_err(failed("connect"))?;
            let fd = socket.as_raw_fd();
            // SAFETY: the address is initialised and NUL-terminated, and outlives the call.
            (socket, check(unsafe { libc::connect(fd, (&raw const at).cast(), len) }))
        }
    };
    done.map_err(failed("connect"))?;
    Ok(FileRef::new(socket))
}

/// The error that a socket holds; clears it.
pub(crate) fn socket_error(fd: i32) -> Result<()> {
    let mut error: i32 = 0;
    let mut size = size_of::<i32>() as libc::socklen_t;
    let value = (&raw mut error).cast();
    // SAFETY: value and size outlive the call and belong together.
    let done =
        unsafe { libc::getsockopt(fd, libc::SOL_SOCKET, libc::SO_ERROR, value, &raw mut size) };
    check(done)?;
    if error == 0 { Ok(()) } else { Err(Error::from_raw_os_error(error)) }
}

/// The kernel's figures for a TCP connection.
pub(crate) fn tcp_info(fd: i32) -> Result<TcpInfo> {
    // SAFETY: all bytes being zero is a value of this plain structure.
    let mut info: libc::tcp_info = unsafe { mem::zeroed() };
    let mut size = size_of::<libc::tcp_info>() as libc::socklen_t;
    let value = (&raw mut info).cast();
    // SAFETY: value and size outlive the call and belong together.
    check(unsafe {
        libc::getsockopt(fd, libc::IPPROTO_TCP, libc::TCP_INFO, value, &raw mut size)
    })?;
    Ok(TcpInfo {
        rtt: info.tcpi_rtt,
        rttvar: info.tcpi_rttvar,
        snd_cwnd: info.tcpi_snd_cwnd,
        rcv_space: info.tcpi_rcv_space,
    })
}

pub(crate) fn bind_unix(fd: i32, path: &[u8]) -> Result<()> {
    let (at, len) = unix_address(path)?;
    // SAFETY: the address is initialised and NUL-terminated, and outlives the call.
    check(unsafe { libc::bind(fd, (&raw const at).cast(), len) })?;
    // Clients of other users connect too, as they do to nginx's sockets.
    super::trusted::open_socket_to_all(path)
}

pub(crate) fn listen(fd: i32, backlog: u32) -> Result<()> {
    // SAFETY: no pointers are involved.
    check(unsafe { libc::listen(fd, i32::try_from(backlog).unwrap_or(i32::MAX)) }).map(drop)
}

pub(crate) fn local_address(fd: i32) -> Result<SocketAddr> {
    // SAFETY: all zeroes is a valid storage.
    let mut storage: libc::sockaddr_storage = unsafe { mem::zeroed() };
    let mut len = size_of_val(&storage) as libc::socklen_t;
    // SAFETY: storage and length outlive the call and belong together.
    let done = unsafe { libc::getsockname(fd, (&raw mut storage).cast(), &raw mut len) };
    check(done)?;
    from_storage(&storage).ok_or_else(|| Error::from_raw_os_error(libc::EAFNOSUPPORT))
}

pub(crate) fn accept(listener: i32, near: Option<&SocketPeer>) -> Accepted {
    // SAFETY: all zeroes is a valid storage.
    let mut storage: libc::sockaddr_storage = unsafe { mem::zeroed() };
    let mut len = size_of_val(&storage) as libc::socklen_t;
    let flags = libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
    // SAFETY: storage and length outlive the call and belong together.
    let fd = unsafe { libc::accept4(listener, (&raw mut storage).cast(), &raw mut len, flags) };
    if fd < 0 {
        return not_accepted(Error::last_os_error().raw_os_error().unwrap_or_default());
    }
    let remote = from_storage(&storage).map_or(SocketPeer::Unix, SocketPeer::Inet);
    let local = || local_address(fd).map_or(SocketPeer::Unix, SocketPeer::Inet);
    let local = near.cloned().unwrap_or_else(local);
    Accepted::Client(SocketPeers { fd: Fd(fd), remote, local })
}

/// The meaning of an errno of `accept4`. Linux passes pending network errors of the new connection
/// on; accept(2) says to treat those as EAGAIN.
const fn not_accepted(errno: i32) -> Accepted {
    match errno {
        libc::EAGAIN => Accepted::QueueEmpty,
        libc::EINTR | libc::ECONNABORTED | libc::EPROTO | libc::EPERM | libc::ETIMEDOUT => {
            Accepted::Gone
        }
        libc::ENETDOWN | libc::ENOPROTOOPT | libc::EHOSTDOWN | libc::ENONET => Accepted::Gone,
        libc::EHOSTUNREACH | libc::ENETUNREACH => Accepted::Gone,
        _ => Accepted::Failed(errno),
    }
}

pub(crate) fn receive(fd: i32, into: &mut [u8]) -> Result<usize> {
    // SAFETY: the buffer is valid for its length.
    unsafe { transfer(libc::SYS_recvfrom, fd, into.as_mut_ptr() as usize, into.len(), 0) }
}

/// `recvfrom` or `sendto` without an address.
///
/// PERF: libc's functions of these names are cancellation points, which costs two atomic operations
/// in a process with threads; the bare system call is not.
///
/// # Safety
///
/// `len` bytes at `at` are valid for the access that the call makes.
unsafe fn transfer(call: c_long, fd: i32, at: usize, len: usize, flags: i32) -> Result<usize> {
    let (fd, flags) = (c_long::from(fd), c_long::from(flags));
    // SAFETY: the caller's promise; null pointers in place of an address and its length.
    check_size(unsafe { libc::syscall(call, fd, at, len, flags, 0_usize, 0_usize) } as isize)
}

const fn flags(more: MoreToRead) -> i32 {
    match more {
        MoreToRead::No => libc::MSG_NOSIGNAL,
        MoreToRead::Yes => libc::MSG_NOSIGNAL | libc::MSG_MORE,
    }
}

pub(crate) fn send(fd: i32, bytes: &[u8], more: MoreToRead) -> Result<usize> {
    // SAFETY: the buffer is valid for its length.
    unsafe { transfer(libc::SYS_sendto, fd, bytes.as_ptr() as usize, bytes.len(), flags(more)) }
}

pub(crate) fn send_pieces(fd: i32, pieces: &[&[u8]], more: MoreToRead) -> Result<usize> {
    // SAFETY: a slice reference and an iovec have the same layout on Linux (pointer, length), as
    // `std::io::IoSlice` relies on; the slices outlive the call.
    let mut message: libc::msghdr = unsafe { mem::zeroed() };
    let mut vectors = [libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 }; 64];
    let count = pieces.len().min(vectors.len());
    for (vector, piece) in vectors.iter_mut().zip(pieces) {
        *vector = libc::iovec { iov_base: piece.as_ptr().cast_mut().cast(), iov_len: piece.len() };
    }
    message.msg_iov = vectors.as_mut_ptr();
    message.msg_iovlen = count;
    // SAFETY: the message points to `count` vectors over slices that outlive the call.
    check_size(unsafe { libc::sendmsg(fd, &raw const message, flags(more)) })
}

pub(crate) fn shut_write(fd: i32) {
    // SAFETY: no pointers are involved.
    let _ = unsafe { libc::shutdown(fd, libc::SHUT_WR) };
}

pub(crate) fn set_linger_zero(fd: i32) {
    let linger = libc::linger { l_onoff: 1, l_linger: 0 };
    let size = size_of_val(&linger) as libc::socklen_t;
    // SAFETY: the value is read during the call, with its right size.
    let _ = unsafe {
        libc::setsockopt(fd, libc::SOL_SOCKET, libc::SO_LINGER, (&raw const linger).cast(), size)
    };
}

pub(crate) fn close(fd: i32) {
    // SAFETY: the caller owns the descriptor and forgets it now.
    let _ = unsafe { libc::close(fd) };
}

pub(crate) fn set_inheritable(fd: i32, inherit: bool) -> Result<()> {
    let flags = if inherit { 0 } else { libc::FD_CLOEXEC };
    // SAFETY: no pointers are involved.
    check(unsafe { libc::fcntl(fd, libc::F_SETFD, flags) }).map(drop)
}

/// The path that a unix socket is bound to; `None` for other sockets and names that are no path.
pub(crate) fn local_path(fd: i32) -> Option<Vec<u8>> {
    // SAFETY: all zeroes is a valid address.
    let mut at: libc::sockaddr_un = unsafe { mem::zeroed() };
    let mut len = size_of_val(&at) as libc::socklen_t;
    // SAFETY: address and length outlive the call and belong together.
    let done = unsafe { libc::getsockname(fd, (&raw mut at).cast(), &raw mut len) };
    if done < 0 || i32::from(at.sun_family) != libc::AF_UNIX {
        return None;
    }
    let path: Vec<u8> =
        at.sun_path.iter().map(|&byte| byte as u8).take_while(|&b| b != 0).collect();
    (!path.is_empty()).then_some(path)
}

/// A socket option of any descriptor; `None` if it is not a socket.
fn own_option(fd: i32, name: i32) -> Option<i32> {
    let mut value: i32 = 0;
    let (mut size, level) = (size_of::<i32>() as libc::socklen_t, libc::SOL_SOCKET);
    // SAFETY: value and size outlive the call and belong together.
    let known =
        unsafe { libc::getsockopt(fd, level, name, (&raw mut value).cast(), &raw mut size) };
    (known == 0).then_some(value)
}

/// Whether a socket listens for streams.
pub(crate) fn accepts(fd: i32) -> bool {
    own_option(fd, libc::SO_ACCEPTCONN).is_some_and(|value| value != 0)
}

/// Whether a socket carries datagrams.
pub(crate) fn is_datagram(fd: i32) -> bool {
    own_option(fd, libc::SO_TYPE) == Some(libc::SOCK_DGRAM)
}

/// Makes calls on a descriptor non-blocking.
pub(crate) fn set_unblocking(fd: i32) -> Result<()> {
    // SAFETY: no pointers are involved.
    let flags = check(unsafe { libc::fcntl(fd, libc::F_GETFL) })?;
    // SAFETY: no pointers are involved.
    check(unsafe { libc::fcntl(fd, libc::F_SETFL, flags | libc::O_NONBLOCK) }).map(drop)
}

pub(crate) fn take_inherited(fd: i32) -> Option<OwnedFd> {
    if !accepts(fd) && !is_datagram(fd) {
        return None;
    }
    // SAFETY: no pointers are involved.
    let _ = unsafe { libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC) };
    // SAFETY: the predecessor left the descriptor to us, and it is adopted only once.
    Some(unsafe { OwnedFd::from_raw_fd(fd) })
}

pub(crate) fn attach_reuseport_filter(fd: i32, program: &[(u16, u8, u8, u32)]) -> Result<()> {
    let mut code: Vec<libc::sock_filter> =
        program.iter().map(|&(code, jt, jf, k)| libc::sock_filter { code, jt, jf, k }).collect();
    let len = u16::try_from(code.len()).map_err(|_| Error::from_raw_os_error(libc::EINVAL))?;
    let filter = libc::sock_fprog { len, filter: code.as_mut_ptr() };
    let size = size_of_val(&filter) as libc::socklen_t;
    let option = libc::SO_ATTACH_REUSEPORT_CBPF;
    // SAFETY: the program is copied during the call.
    let done =
        unsafe { libc::setsockopt(fd, libc::SOL_SOCKET, option, (&raw const filter).cast(), size) };
    check(done).map(drop)
}

pub(super) fn to_storage(at: &SocketAddr) -> (libc::sockaddr_storage, libc::socklen_t) {
    // SAFETY: all zeroes is a valid storage.
    let mut storage: libc::sockaddr_storage = unsafe { mem::zeroed() };
    let pointer = &raw mut storage;
    let len = match at {
        SocketAddr::V4(v4) => {
            let address = libc::sockaddr_in {
                sin_family: libc::AF_INET as libc::sa_family_t,
                sin_port: v4.port().to_be(),
                sin_addr: libc::in_addr { s_addr: u32::from_ne_bytes(v4.ip().octets()) },
                sin_zero: [0; 8],
            };
            // SAFETY: a storage is large enough and aligned for every address type.
            unsafe { pointer.cast::<libc::sockaddr_in>().write(address) };
            size_of::<libc::sockaddr_in>()
        }
        SocketAddr::V6(v6) => {
            let address = libc::sockaddr_in6 {
                sin6_family: libc::AF_INET6 as libc::sa_family_t,
                sin6_port: v6.port().to_be(),
                sin6_flowinfo: v6.flowinfo(),
                sin6_addr: libc::in6_addr { s6_addr: v6.ip().octets() },
                sin6_scope_id: v6.scope_id(),
            };
            // SAFETY: a storage is large enough and aligned for every address type.
            unsafe { pointer.cast::<libc::sockaddr_in6>().write(address) };
            size_of::<libc::sockaddr_in6>()
        }
    };
    (storage, len as libc::socklen_t)
}

pub(super) fn from_storage(storage: &libc::sockaddr_storage) -> Option<SocketAddr> {
    let pointer = &raw const *storage;
    match i32::from(storage.ss_family) {
        libc::AF_INET => {
            // SAFETY: the family says which type the storage holds.
            let at = unsafe { pointer.cast::<libc::sockaddr_in>().read() };
            let ip = Ipv4Addr::from(at.sin_addr.s_addr.to_ne_bytes());
            Some(SocketAddr::V4(SocketAddrV4::new(ip, u16::from_be(at.sin_port))))
        }
        libc::AF_INET6 => {
            // SAFETY: the family says which type the storage holds.
            let at = unsafe { pointer.cast::<libc::sockaddr_in6>().read() };
            let ip = Ipv6Addr::from(at.sin6_addr.s6_addr);
            let port = u16::from_be(at.sin6_port);
            Some(SocketAddr::V6(SocketAddrV6::new(ip, port, at.sin6_flowinfo, at.sin6_scope_id)))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::{SockOpt, from_storage, to_storage};
    use crate::listen::{ListenSocketOptions, Listener, SocketAddress, SocketKeepAlive};

    fn value(fd: i32, option: SockOpt) -> i32 {
        let (level, name) = option.pair();
        let (mut value, mut size) = (0, size_of::<i32>() as libc::socklen_t);
        // SAFETY: value and size outlive the call and belong together.
        let done =
            unsafe { libc::getsockopt(fd, level, name, (&raw mut value).cast(), &raw mut size) };
        assert_eq!(done, 0);
        value
    }

    #[test]
    fn probes_are_sent_as_a_listener_says() {
        let open = |keep_alive| {
            let options = ListenSocketOptions { keep_alive, ..ListenSocketOptions::default() };
            Listener::open(&SocketAddress::Tcp(([127, 0, 0, 1], 0).into()), &options).unwrap()
        };
        let on =
            open(Some(SocketKeepAlive::On { idle: Some(1800), interval: None, count: Some(10) }));
        let fd = on.fd().0;
        assert_eq!(value(fd, SockOpt::KeepAlive), 1);
        assert_eq!((value(fd, SockOpt::KeepIdle), value(fd, SockOpt::KeepCount)), (1800, 10));
        let usual = open(None);
        assert_eq!(value(fd, SockOpt::KeepInterval), value(usual.fd().0, SockOpt::KeepInterval));
        for off in [usual, open(Some(SocketKeepAlive::Off))] {
            assert_eq!(value(off.fd().0, SockOpt::KeepAlive), 0);
        }
    }

    #[test]
    fn addresses_survive_the_kernels_form() {
        for text in ["127.0.0.1:80", "[::1]:443", "[fe80::1%3]:9"] {
            let at = text.parse().unwrap();
            assert_eq!(from_storage(&to_storage(&at).0), Some(at));
        }
    }
}
