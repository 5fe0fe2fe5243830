//! The ports and paths that sockets of this network namespace listen on or are bound to. Ports are
//! read by `NETLINK_SOCK_DIAG` (sock_diag(7)), which requests listening sockets only:
//! `/proc/net/tcp` lists all connections, including the thousands in TIME-WAIT that other tests
//! leave.

use std::collections::HashSet;
use std::io::{Read, Write};

use socket2::{Domain, Protocol, Socket, Type};

const AF_NETLINK: i32 = 16;
const NETLINK_SOCK_DIAG: i32 = 4;
const SOCK_DIAG_BY_FAMILY: u16 = 20;
const NLMSG_DONE: u16 = 3;
/// `NLM_F_REQUEST | NLM_F_DUMP`.
const DUMP: u16 = 0x301;
/// Of `nlmsghdr` and `inet_diag_req_v2`.
const REQUEST_LEN: u32 = 72;
const HEADER_LEN: usize = 16;
/// `idiag_family` to `idiag_retrans`, before the local port.
const PORT_AT: usize = HEADER_LEN + 4;
/// A set of states by number, `TCP_LISTEN` only.
const LISTEN: u32 = 1 << 10;
/// `__SO_ACCEPTCON` among the flags of a Unix socket.
const ACCEPTS: u32 = 1 << 16;

/// The ports that TCP sockets listen on, IPv4's and IPv6's.
#[must_use]
pub(crate) fn listening() -> HashSet<u16> {
    ports(6, LISTEN)
}

/// The paths that Unix sockets listen on (proc_net(5), `/proc/net/unix`).
#[must_use]
pub(crate) fn listening_paths() -> HashSet<String> {
    let table = std::fs::read_to_string("/proc/net/unix").unwrap();
    let listens = |flags: &str| u32::from_str_radix(flags, 16).is_ok_and(|f| f & ACCEPTS != 0);
    let lines = table.lines().skip(1).map(|line| line.split_whitespace().collect::<Vec<_>>());
    lines.filter(|l| l.len() == 8 && listens(l[3])).map(|l| l[7].to_owned()).collect()
}

/// The ports that UDP sockets are bound to, IPv4's and IPv6's.
#[must_use]
pub(crate) fn bound_udp() -> HashSet<u16> {
    ports(17, u32::MAX)
}

fn ports(protocol: u8, states: u32) -> HashSet<u16> {
    const AF_INET: u8 = 2;
    const AF_INET6: u8 = 10;
    [AF_INET, AF_INET6].into_iter().flat_map(|family| dump(family, protocol, states)).collect()
}

/// The local ports of sockets of `protocol` in one of `states`.
fn dump(family: u8, protocol: u8, states: u32) -> Vec<u16> {
    let netlink = Some(Protocol::from(NETLINK_SOCK_DIAG));
    let mut socket = Socket::new(Domain::from(AF_NETLINK), Type::DGRAM, netlink).unwrap();
    let mut request = Vec::from(REQUEST_LEN.to_ne_bytes());
    request.extend(SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    request.extend(DUMP.to_ne_bytes());
    // The sequence number and the sender; then the request.
    request.extend([0; 8]);
    request.extend([family, protocol, 0, 0]);
    request.extend(states.to_ne_bytes());
    request.resize(REQUEST_LEN as usize, 0);
    socket.write_all(&request).unwrap();
    let (mut found, mut datagram) = (Vec::new(), vec![0; 1 << 16]);
    loop {
        let len = socket.read(&mut datagram).unwrap();
        let mut rest = &datagram[..len];
        while let Some(header) = rest.first_chunk::<HEADER_LEN>() {
            let len = u32::from_ne_bytes(*header.first_chunk().unwrap()) as usize;
            assert!(len >= HEADER_LEN, "each message is read once");
            match u16::from_ne_bytes([header[4], header[5]]) {
                NLMSG_DONE => return found,
                SOCK_DIAG_BY_FAMILY => {
                    found.push(u16::from_be_bytes([rest[PORT_AT], rest[PORT_AT + 1]]));
                }
                other => panic!("the kernel has no sock_diag: message {other}"),
            }
            rest = rest.get(len.next_multiple_of(4)..).unwrap_or_default();
        }
    }
}
