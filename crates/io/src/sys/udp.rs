//! recvmmsg and sendmmsg with segmentation offload, packet information and ECN.

use std::io::Result;
use std::mem;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::socket::{SockOpt, from_storage, set_option, to_storage};
use crate::udp::{DatagramIn, DatagramOut, DatagramsSent, UdpBatch};

const BATCH: usize = UdpBatch::CAPACITY;
const SEND_BATCH: usize = 32;
/// A connection mostly sends at most this many datagrams; smaller arrays need less memory cleared.
const SEND_FEW: usize = 2;
/// Room for packet information, traffic class and segment size, with their headers.
const CONTROL_SIZE: usize = 128;

#[repr(C, align(8))]
#[derive(Clone, Copy)]
struct Control([u8; CONTROL_SIZE]);

pub(crate) fn prepare_quic(fd: i32, v6: bool) -> Result<()> {
    if v6 {
        set_option(fd, SockOpt::PacketInfoV6, 1)?;
        set_option(fd, SockOpt::TrafficClassV6, 1)?;
        set_option(fd, SockOpt::DontFragmentV6, libc::IPV6_PMTUDISC_PROBE)?;
    }
    // A dual-stack socket receives IPv4 too; a pure IPv6 one refuses these options, harmlessly.
    let v4 = [
        (SockOpt::PacketInfoV4, 1),
        (SockOpt::TosV4, 1),
        (SockOpt::DontFragmentV4, libc::IP_PMTUDISC_PROBE),
    ];
    for (option, value) in v4 {
        let done = set_option(fd, option, value);
        if !v6 {
            done?;
        }
    }
    // Segmentation affects speed, not function.
    let _ = set_option(fd, SockOpt::UdpGro, 1);
    Ok(())
}

pub(crate) fn receive_datagrams(
    fd: i32,
    buffer: &mut [u8],
    size: usize,
    out: &mut Vec<DatagramIn>,
) {
    // SAFETY: all zeroes is a valid value of each of these types.
    let mut names: [libc::sockaddr_storage; BATCH] = unsafe { mem::zeroed() };
    // SAFETY: as above.
    let mut messages: [libc::mmsghdr; BATCH] = unsafe { mem::zeroed() };
    let mut vectors = [libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 }; BATCH];
    let mut controls = [Control([0; CONTROL_SIZE]); BATCH];
    for (i, chunk) in buffer.chunks_mut(size).take(BATCH).enumerate() {
        vectors[i] = libc::iovec { iov_base: chunk.as_mut_ptr().cast(), iov_len: chunk.len() };
        let header = &mut messages[i].msg_hdr;
        header.msg_name = (&raw mut names[i]).cast();
        header.msg_namelen = size_of::<libc::sockaddr_storage>() as libc::socklen_t;
        header.msg_iov = &raw mut vectors[i];
        header.msg_iovlen = 1;
        header.msg_control = controls[i].0.as_mut_ptr().cast();
        header.msg_controllen = CONTROL_SIZE;
    }
    // SAFETY: every header points to a name, a vector and a control buffer that outlive the call.
    let n =
        unsafe { libc::recvmmsg(fd, messages.as_mut_ptr(), BATCH as u32, 0, std::ptr::null_mut()) };
    for (message, name) in messages.iter().zip(&names).take(usize::try_from(n).unwrap_or(0)) {
        let len = message.msg_len as usize;
        let notes = read_control(&message.msg_hdr);
        // A message without an Internet sender cannot be answered; its slot stays, empty.
        let remote = from_storage(name).unwrap_or_else(|| ([0, 0, 0, 0], 0).into());
        let len = if remote.port() == 0 { 0 } else { len };
        let stride = notes.stride.filter(|&s| s > 0).unwrap_or(len).min(len.max(1));
        out.push(DatagramIn { remote, local: notes.local, ecn: notes.ecn, len, stride });
    }
}

#[derive(Default)]
struct Notes {
    local: Option<IpAddr>,
    ecn: u8,
    stride: Option<usize>,
}

fn read_control(header: &libc::msghdr) -> Notes {
    let mut notes = Notes::default();
    // SAFETY: the kernel has filled the control buffer that the header points to.
    let mut at = unsafe { libc::CMSG_FIRSTHDR(header) };
    while !at.is_null() {
        // SAFETY: a non-null pointer is a complete control header inside the buffer.
        let control = unsafe { at.read_unaligned() };
        // SAFETY: the data follows the header inside the buffer.
        let data = unsafe { libc::CMSG_DATA(at) };
        match (control.cmsg_level, control.cmsg_type) {
            (libc::IPPROTO_IP, libc::IP_PKTINFO) => {
                // SAFETY: level and type determine the data.
                let info = unsafe { data.cast::<libc::in_pktinfo>().read_unaligned() };
                notes.local = Some(Ipv4Addr::from(info.ipi_addr.s_addr.to_ne_bytes()).into());
            }
            (libc::IPPROTO_IPV6, libc::IPV6_PKTINFO) => {
                // SAFETY: level and type determine the data.
                let info = unsafe { data.cast::<libc::in6_pktinfo>().read_unaligned() };
                notes.local = Some(Ipv6Addr::from(info.ipi6_addr.s6_addr).into());
            }
            (libc::IPPROTO_IP, libc::IP_TOS) => {
                // SAFETY: level and type determine the data.
                notes.ecn = unsafe { data.read() } & 3;
            }
            (libc::IPPROTO_IPV6, libc::IPV6_TCLASS) => {
                // SAFETY: level and type determine the data.
                notes.ecn = (unsafe { data.cast::<i32>().read_unaligned() } & 3) as u8;
            }
            (libc::SOL_UDP, libc::UDP_GRO) => {
                // SAFETY: level and type determine the data.
                let stride = unsafe { data.cast::<i32>().read_unaligned() };
                notes.stride = usize::try_from(stride).ok();
            }
            _ => {}
        }
        // SAFETY: `at` is a control header of this message.
        at = unsafe { libc::CMSG_NXTHDR(header, at) };
    }
    notes
}

/// Appends control messages to a buffer.
struct ControlWriter<'a> {
    buffer: &'a mut Control,
    len: usize,
}

impl ControlWriter<'_> {
    fn push<T: Copy>(&mut self, level: i32, kind: i32, value: T) {
        // SAFETY: pure arithmetic.
        let space = unsafe { libc::CMSG_SPACE(size_of::<T>() as u32) } as usize;
        if self.len + space > CONTROL_SIZE {
            debug_assert!(false, "the control buffer is too small");
            return;
        }
        // SAFETY: pure arithmetic.
        let header_len = unsafe { libc::CMSG_LEN(size_of::<T>() as u32) } as usize;
        // SAFETY: all zeroes is a valid header.
        let mut header: libc::cmsghdr = unsafe { mem::zeroed() };
        header.cmsg_level = level;
        header.cmsg_type = kind;
        header.cmsg_len = header_len;
        let start = self.buffer.0[self.len..].as_mut_ptr().cast::<libc::cmsghdr>();
        // SAFETY: `space` bytes are free at `start`, which is aligned to 8.
        unsafe { start.write(header) };
        // SAFETY: the header was written there.
        let data = unsafe { libc::CMSG_DATA(start) };
        // SAFETY: the data fits in `space`.
        unsafe { data.cast::<T>().write_unaligned(value) };
        self.len += space;
    }
}

fn write_control(out: &DatagramOut<'_>, buffer: &mut Control) -> usize {
    let mut writer = ControlWriter { buffer, len: 0 };
    if out.ecn != 0 {
        if out.remote.is_ipv4() {
            writer.push(libc::IPPROTO_IP, libc::IP_TOS, i32::from(out.ecn));
        } else {
            writer.push(libc::IPPROTO_IPV6, libc::IPV6_TCLASS, i32::from(out.ecn));
        }
    }
    if out.segment < out.bytes.len() {
        let segment = u16::try_from(out.segment).unwrap_or(u16::MAX);
        writer.push(libc::SOL_UDP, libc::UDP_SEGMENT, segment);
    }
    match out.local {
        Some(IpAddr::V4(ip)) => {
            let address = libc::in_addr { s_addr: u32::from_ne_bytes(ip.octets()) };
            let info = libc::in_pktinfo {
                ipi_ifindex: 0,
                ipi_spec_dst: address,
                ipi_addr: libc::in_addr { s_addr: 0 },
            };
            writer.push(libc::IPPROTO_IP, libc::IP_PKTINFO, info);
        }
        Some(IpAddr::V6(ip)) => {
            let address = libc::in6_addr { s6_addr: ip.octets() };
            let info = libc::in6_pktinfo { ipi6_addr: address, ipi6_ifindex: 0 };
            writer.push(libc::IPPROTO_IPV6, libc::IPV6_PKTINFO, info);
        }
        None => {}
    }
    writer.len
}

pub(crate) fn send_datagrams(fd: i32, out: &[DatagramOut<'_>]) -> DatagramsSent {
    if out.len() <= SEND_FEW {
        return send_batch::<SEND_FEW>(fd, out).datagrams;
    }
    let mut all = DatagramsSent::default();
    for batch in out.chunks(SEND_BATCH) {
        let sent = send_batch::<SEND_BATCH>(fd, batch).datagrams;
        all.taken += sent.taken;
        all.refused_to_cut |= sent.refused_to_cut;
        if sent.taken < batch.len() {
            break;
        }
    }
    all
}

/// What to do with a message that the kernel refuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Untaken {
    /// Stop sending for now.
    Blocked,
    /// Send it again.
    Again,
    /// Send its datagrams one by one.
    Uncut,
    /// Drop it, as the network may drop any datagram: too large, unreachable.
    Lost,
}

impl Untaken {
    /// For an error number. EIO comes from a device without checksum offload, and from IPsec;
    /// EINVAL from a kernel without GSO, and from a path that is too narrow for the segments.
    const fn by(errno: i32, is_train: bool) -> Self {
        match errno {
            libc::EAGAIN => Self::Blocked,
            libc::EINTR => Self::Again,
            libc::EIO | libc::EINVAL if is_train => Self::Uncut,
            _ => Self::Lost,
        }
    }
}

/// The result of one batch.
#[derive(Clone, Copy, Debug, Default)]
struct BatchSent {
    datagrams: DatagramsSent,
    /// Entries that the kernel accepted; the others are dropped.
    left: usize,
}

/// Sends the datagrams of a refused GSO batch one by one; returns whether the kernel accepted any.
/// A datagram that it refuses both ways is too large, which says nothing about the others.
#[cold]
fn send_singly(fd: i32, train: &DatagramOut<'_>) -> bool {
    let mut is_taken = false;
    for bytes in train.bytes.chunks(train.segment.max(1)) {
        let single = DatagramOut { bytes, segment: bytes.len(), ..*train };
        is_taken |= send_batch::<1>(fd, &[single]).left > 0;
    }
    is_taken
}

/// Sends up to `N` datagrams by one call.
fn send_batch<const N: usize>(fd: i32, out: &[DatagramOut<'_>]) -> BatchSent {
    debug_assert!(out.len() <= N, "the caller cuts batches");
    // SAFETY: all zeroes is a valid value of this type.
    let mut messages: [libc::mmsghdr; N] = unsafe { mem::zeroed() };
    // SAFETY: all zeroes is a valid value of this type.
    let mut names: [libc::sockaddr_storage; N] = unsafe { mem::zeroed() };
    let mut vectors = [libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 }; N];
    let mut controls = [Control([0; CONTROL_SIZE]); N];
    for (i, datagram) in out.iter().enumerate() {
        let (name, name_len) = to_storage(&datagram.remote);
        names[i] = name;
        let base = datagram.bytes.as_ptr().cast_mut().cast();
        vectors[i] = libc::iovec { iov_base: base, iov_len: datagram.bytes.len() };
        let control_len = write_control(datagram, &mut controls[i]);
        let header = &mut messages[i].msg_hdr;
        header.msg_name = (&raw mut names[i]).cast();
        header.msg_namelen = name_len;
        header.msg_iov = &raw mut vectors[i];
        header.msg_iovlen = 1;
        if control_len > 0 {
            header.msg_control = controls[i].0.as_mut_ptr().cast();
            header.msg_controllen = control_len;
        }
    }
    let mut sent = BatchSent::default();
    while sent.datagrams.taken < out.len() {
        let rest = &mut messages[sent.datagrams.taken..out.len()];
        // SAFETY: the headers point to names, vectors and controls that outlive the call.
        let n = unsafe { libc::sendmmsg(fd, rest.as_mut_ptr(), rest.len() as u32, 0) };
        if let Ok(n) = usize::try_from(n) {
            sent.datagrams.taken += n;
            sent.left += n;
            continue;
        }
        let first = &out[sent.datagrams.taken];
        let errno = std::io::Error::last_os_error().raw_os_error().unwrap_or_default();
        match Untaken::by(errno, first.segment < first.bytes.len()) {
            Untaken::Blocked => break,
            Untaken::Again => {}
            Untaken::Uncut => {
                sent.datagrams.refused_to_cut |= send_singly(fd, first);
                sent.datagrams.taken += 1;
            }
            Untaken::Lost => sent.datagrams.taken += 1,
        }
    }
    sent
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;
    use std::os::fd::AsRawFd as _;
    use std::time::Duration;

    use super::{Untaken, send_datagrams};
    use crate::udp::{DatagramOut, DatagramsSent};

    /// Sends GSO batches of 100-byte datagrams from one socket; returns the results in order.
    fn deliver(from: &UdpSocket, trains: usize) -> (DatagramsSent, Vec<Vec<u8>>) {
        let to = UdpSocket::bind("127.0.0.1:0").unwrap();
        to.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        let bytes: Vec<u8> = (0..250_u8).collect();
        let remote = to.local_addr().unwrap();
        let train = DatagramOut { bytes: &bytes, segment: 100, remote, local: None, ecn: 0 };
        let sent = send_datagrams(from.as_raw_fd(), &vec![train; trains]);
        let mut buffer = [0; 1000];
        let mut one = |_| {
            let len = to.recv(&mut buffer).unwrap();
            buffer[..len].to_vec()
        };
        (sent, (0..trains * 3).map(&mut one).collect())
    }

    #[test]
    fn a_train_arrives_whether_the_kernel_cuts_it_or_not() {
        let from = UdpSocket::bind("127.0.0.1:0").unwrap();
        let (sent, whole) = deliver(&from, 3);
        assert_eq!(sent, DatagramsSent { taken: 3, refused_to_cut: false });
        // Without checksums there is no segmentation: EINVAL, as from a kernel without GSO.
        let (name, value) = (libc::SO_NO_CHECK, 1_i32);
        let size = size_of::<i32>() as libc::socklen_t;
        let fd = from.as_raw_fd();
        // SAFETY: the value is read during the call, with its right size.
        let done = unsafe {
            libc::setsockopt(fd, libc::SOL_SOCKET, name, (&raw const value).cast(), size)
        };
        assert_eq!(done, 0);
        let (sent, singles) = deliver(&from, 3);
        assert_eq!(sent, DatagramsSent { taken: 3, refused_to_cut: true });
        assert_eq!(singles, whole);
    }

    #[test]
    fn errors_have_their_consequences() {
        let cases = [
            (libc::EAGAIN, Untaken::Blocked, Untaken::Blocked),
            (libc::EINTR, Untaken::Again, Untaken::Again),
            (libc::EIO, Untaken::Uncut, Untaken::Lost),
            (libc::EINVAL, Untaken::Uncut, Untaken::Lost),
            (libc::EMSGSIZE, Untaken::Lost, Untaken::Lost),
            (libc::ENETUNREACH, Untaken::Lost, Untaken::Lost),
        ];
        for (errno, of_train, of_single) in cases {
            assert_eq!(Untaken::by(errno, true), of_train, "{errno}");
            assert_eq!(Untaken::by(errno, false), of_single, "{errno}");
        }
    }
}
