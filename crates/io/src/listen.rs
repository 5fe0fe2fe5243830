//! Listening sockets: one per address and worker, all in one SO_REUSEPORT group.

use std::net::SocketAddr;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::FileTypeExt as _;

use crate::{Callee, Fd, sys};

/// Where to listen.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum SocketAddress {
    /// TCP.
    Tcp(SocketAddr),
    /// UDP, for QUIC.
    Udp(SocketAddr),
    /// A stream socket in the file system.
    Unix(Vec<u8>),
}

/// Socket options of a `listen` directive; `None` leaves the kernel's default.
#[derive(Clone, Debug, Default)]
pub struct ListenSocketOptions {
    /// Length of the queue of waiting clients.
    pub backlog: Option<u32>,
    /// Receive buffer in bytes.
    pub receive_buffer: Option<usize>,
    /// Send buffer in bytes.
    pub send_buffer: Option<usize>,
    /// Whether an IPv6 wildcard accepts IPv6 only; nginx's default is yes.
    pub ipv6_only: Option<bool>,
    /// TCP_DEFER_ACCEPT.
    pub deferred: bool,
    /// TCP_FASTOPEN queue length.
    pub fast_open: Option<u32>,
    /// TCP keep-alive probes; `None`: the system's default.
    pub keep_alive: Option<SocketKeepAlive>,
}

/// TCP keep-alive probes; absent values are the system's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SocketKeepAlive {
    /// None are sent.
    Off,
    /// They are sent.
    On {
        /// Seconds before the first.
        idle: Option<u32>,
        /// Seconds between two.
        interval: Option<u32>,
        /// How many unanswered ones end the connection.
        count: Option<u32>,
    },
}

/// nginx's backlog on Linux.
const BACKLOG: u32 = 511;
/// The buffer size of a QUIC socket unless configured: the kernel's 208 KiB drops thousands of
/// datagrams under load.
const UDP_BUFFER: usize = 4 << 20;

/// An open listening socket. It closes when dropped.
#[derive(Debug)]
pub struct Listener {
    fd: OwnedFd,
}

/// Whether child processes inherit a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InheritedSocket {
    /// It stays open over exec.
    Yes,
    /// It is closed on exec.
    No,
}

impl Listener {
    /// Takes over a socket that another process opened.
    #[must_use]
    pub const fn adopt(fd: OwnedFd) -> Self {
        Self { fd }
    }

    /// Opens `address`.
    ///
    /// # Errors
    ///
    /// The kernel's error; `AddrInUse` above all.
    pub fn open(address: &SocketAddress, options: &ListenSocketOptions) -> std::io::Result<Self> {
        let fd = match address {
            SocketAddress::Tcp(at) => open_tcp(at, options)?,
            SocketAddress::Udp(at) => open_udp(at, options)?,
            SocketAddress::Unix(path) => open_unix(path, options)?,
        };
        Ok(Self { fd })
    }

    /// Gives an open socket the options of a new configuration, as far as they can be changed; what
    /// it no longer names stays as it is, except the backlog and the deferring of connections.
    ///
    /// # Errors
    ///
    /// The kernel refuses.
    pub fn tune(
        &self,
        address: &SocketAddress,
        options: &ListenSocketOptions,
    ) -> std::io::Result<()> {
        let raw = self.fd.as_raw_fd();
        buffers(raw, options)?;
        match address {
            SocketAddress::Udp(_) => return Ok(()),
            SocketAddress::Unix(_) => {}
            SocketAddress::Tcp(_) => {
                sys::set_option(raw, sys::SockOpt::DeferAccept, i32::from(options.deferred))?;
                if let Some(queue) = options.fast_open {
                    sys::set_option(raw, sys::SockOpt::FastOpen, queue as i32)?;
                }
                keep_alive(raw, options.keep_alive)?;
            }
        }
        sys::listen(raw, options.backlog.unwrap_or(BACKLOG))
    }

    /// Whether `address` can be bound at all. Joining a group of our own sockets would succeed even
    /// though another server has the port.
    ///
    /// # Errors
    ///
    /// The kernel's error; `AddrInUse` above all.
    pub fn probe(address: &SocketAddress, options: &ListenSocketOptions) -> std::io::Result<()> {
        let (at, fd) = match address {
            SocketAddress::Tcp(at) => (at, sys::stream_socket(at.is_ipv6())?),
            SocketAddress::Udp(at) => (at, sys::datagram_socket(at.is_ipv6())?),
            SocketAddress::Unix(path) => return probe_unix(path),
        };
        if at.port() == 0 {
            return Ok(());
        }
        let raw = fd.as_raw_fd();
        if matches!(address, SocketAddress::Tcp(_)) {
            sys::set_option(raw, sys::SockOpt::ReuseAddr, 1)?;
        }
        common(
            raw,
            at,
            &ListenSocketOptions { ipv6_only: options.ipv6_only, ..ListenSocketOptions::default() },
        )?;
        sys::bind(raw, at)
    }

    /// Takes over an inherited descriptor; `None` if it is not a socket that listens or receives
    /// datagrams.
    #[must_use]
    pub fn inherited(fd: i32) -> Option<Self> {
        sys::take_inherited(fd).map(Self::adopt)
    }

    /// Takes over a listening stream socket that a service manager passed as descriptor `fd`, with
    /// its address; `None` if it is not one. The socket gets the server's options: calls on it do
    /// not block, and accepted sockets send at once.
    #[must_use]
    pub fn given(fd: i32) -> Option<(SocketAddress, Self)> {
        let listener = sys::accepts(fd).then(|| Self::inherited(fd))??;
        sys::set_unblocking(fd).ok()?;
        let address = match sys::local_address(fd) {
            Ok(at) => {
                sys::set_option(fd, sys::SockOpt::NoDelay, 1).ok()?;
                SocketAddress::Tcp(at)
            }
            Err(_) => SocketAddress::Unix(sys::local_path(fd)?),
        };
        Some((address, listener))
    }

    /// A socket of another program, with its address; `None` if it neither listens for streams nor
    /// receives datagrams at an Internet address. Nothing about it is changed.
    pub(crate) fn foreign(fd: OwnedFd) -> Option<(SocketAddress, Self)> {
        let raw = fd.as_raw_fd();
        let address = match (sys::accepts(raw), sys::local_address(raw)) {
            (true, Ok(at)) => SocketAddress::Tcp(at),
            (true, Err(_)) => SocketAddress::Unix(sys::local_path(raw)?),
            (false, Ok(at)) if sys::is_datagram(raw) && at.port() != 0 => SocketAddress::Udp(at),
            (false, _) => return None,
        };
        Some((address, Self::adopt(fd)))
    }

    /// The descriptor to watch.
    #[must_use]
    pub fn fd(&self) -> Fd {
        Fd(self.fd.as_raw_fd())
    }

    /// The local address; shows the port chosen for port 0.
    ///
    /// # Errors
    ///
    /// It is not an Internet socket.
    pub fn local(&self) -> std::io::Result<SocketAddr> {
        sys::local_address(self.fd.as_raw_fd())
    }

    /// Makes the kernel select among the sockets of this port with this classic BPF program, given
    /// as `(code, jt, jf, k)`.
    ///
    /// # Errors
    ///
    /// The kernel refuses; it then distributes datagrams by address.
    pub fn steer(&self, program: &[(u16, u8, u8, u32)]) -> std::io::Result<()> {
        sys::attach_reuseport_filter(self.fd.as_raw_fd(), program)
    }

    /// Sets whether a successor inherits the socket over exec.
    ///
    /// # Errors
    ///
    /// The kernel refuses.
    pub fn inherit(&self, inherit: InheritedSocket) -> std::io::Result<()> {
        sys::set_inheritable(self.fd.as_raw_fd(), inherit == InheritedSocket::Yes)
    }
}

/// A unix socket exists once bound, so the name is removed again.
fn probe_unix(path: &[u8]) -> std::io::Result<()> {
    let fd = sys::unix_socket()?;
    let name = std::ffi::OsStr::from_bytes(path);
    match sys::bind_unix(fd.as_raw_fd(), path) {
        Err(error) if error.kind() == std::io::ErrorKind::AddrInUse && is_abandoned(path) => {
            std::fs::remove_file(name)?;
            sys::bind_unix(fd.as_raw_fd(), path)?;
        }
        bound => bound?,
    }
    std::fs::remove_file(name)
}

/// Whether a name is that of a socket on which no process listens: its server was killed.
fn is_abandoned(path: &[u8]) -> bool {
    let file = std::fs::symlink_metadata(std::ffi::OsStr::from_bytes(path));
    let called = || sys::connect(Callee::Unix(path), None);
    file.is_ok_and(|file| file.file_type().is_socket())
        && called().is_err_and(|failure| failure.errno == bolide_base::errno::ECONNREFUSED)
}

fn open_tcp(at: &SocketAddr, options: &ListenSocketOptions) -> std::io::Result<OwnedFd> {
    let fd = sys::stream_socket(at.is_ipv6())?;
    let raw = fd.as_raw_fd();
    sys::set_reuse(raw)?;
    common(raw, at, options)?;
    if options.deferred {
        sys::set_option(raw, sys::SockOpt::DeferAccept, 1)?;
    }
    if let Some(queue) = options.fast_open {
        sys::set_option(raw, sys::SockOpt::FastOpen, queue as i32)?;
    }
    keep_alive(raw, options.keep_alive)?;
    // Inherited by accepted sockets, which saves a call per connection.
    sys::set_option(raw, sys::SockOpt::NoDelay, 1)?;
    sys::bind(raw, at)?;
    sys::listen(raw, options.backlog.unwrap_or(BACKLOG))?;
    Ok(fd)
}

/// Accepted sockets inherit all of it.
fn keep_alive(raw: i32, probes: Option<SocketKeepAlive>) -> std::io::Result<()> {
    let (idle, interval, count) = match probes {
        None => return Ok(()),
        Some(SocketKeepAlive::Off) => return sys::set_option(raw, sys::SockOpt::KeepAlive, 0),
        Some(SocketKeepAlive::On { idle, interval, count }) => (idle, interval, count),
    };
    sys::set_option(raw, sys::SockOpt::KeepAlive, 1)?;
    let figures = [
        (sys::SockOpt::KeepIdle, idle),
        (sys::SockOpt::KeepInterval, interval),
        (sys::SockOpt::KeepCount, count),
    ];
    for (option, value) in figures {
        if let Some(value) = value {
            sys::set_option(raw, option, i32::try_from(value).unwrap_or(i32::MAX))?;
        }
    }
    Ok(())
}

fn open_udp(at: &SocketAddr, options: &ListenSocketOptions) -> std::io::Result<OwnedFd> {
    let fd = sys::datagram_socket(at.is_ipv6())?;
    let raw = fd.as_raw_fd();
    sys::set_reuse(raw)?;
    let buffered = ListenSocketOptions {
        receive_buffer: options.receive_buffer.or(Some(UDP_BUFFER)),
        send_buffer: options.send_buffer.or(Some(UDP_BUFFER)),
        ..options.clone()
    };
    common(raw, at, &buffered)?;
    sys::prepare_quic(raw, at.is_ipv6())?;
    sys::bind(raw, at)?;
    Ok(fd)
}

fn open_unix(path: &[u8], options: &ListenSocketOptions) -> std::io::Result<OwnedFd> {
    let fd = sys::unix_socket()?;
    sys::bind_unix(fd.as_raw_fd(), path)?;
    sys::listen(fd.as_raw_fd(), options.backlog.unwrap_or(BACKLOG))?;
    Ok(fd)
}

fn common(raw: i32, at: &SocketAddr, options: &ListenSocketOptions) -> std::io::Result<()> {
    buffers(raw, options)?;
    if at.is_ipv6() {
        sys::set_option(raw, sys::SockOpt::V6Only, i32::from(options.ipv6_only != Some(false)))?;
    }
    Ok(())
}

fn buffers(raw: i32, options: &ListenSocketOptions) -> std::io::Result<()> {
    if let Some(bytes) = options.receive_buffer {
        sys::set_buffer(raw, sys::SockOpt::ReceiveBuffer, bytes)?;
    }
    if let Some(bytes) = options.send_buffer {
        sys::set_buffer(raw, sys::SockOpt::SendBuffer, bytes)?;
    }
    Ok(())
}
