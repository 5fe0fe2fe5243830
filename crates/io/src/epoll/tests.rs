//! Calls and temporary files against the real kernel.

use std::io::{Read as _, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::UnixListener;

use bolide_base::chain::{CopyPolicy, FileRange, SendChain};
use bolide_testkit::site::TempDir;

use super::Epoll;
use crate::{AfterSend, Callee, Fd, Interest, Io as _, ReceivedBytes, Reset, Sent};

/// Waits until `fd` is reported under `token`.
fn await_report(io: &mut Epoll, fd: Fd, token: u64) {
    assert!(io.watch(fd, token, Interest::Edge));
    let mut ready = Vec::new();
    while !ready.iter().any(|report: &crate::Readiness| report.token == token) {
        io.wait(None, &mut ready);
    }
}

#[test]
fn a_call_to_a_unix_socket_stands_at_once_and_carries_bytes() {
    let dir = TempDir::new();
    let path = dir.join("socket");
    let listener = UnixListener::bind(&path).unwrap();
    let mut io = Epoll::new().unwrap();
    let call = io.connect(Callee::Unix(path.as_os_str().as_bytes()), None).unwrap();
    assert!(call.stands);
    assert_eq!(io.connect_result(call.fd), Ok(()));
    let (mut peer, _) = listener.accept().unwrap();
    peer.write_all(b"hello").unwrap();
    await_report(&mut io, call.fd, 7);
    let mut bytes = [0; 16];
    assert_eq!(io.receive(call.fd, &mut bytes), ReceivedBytes::Bytes(5));
    io.close(call.fd, Reset::No);
    assert_eq!(peer.read(&mut bytes).unwrap(), 0);
}

#[test]
fn what_waits_for_the_end_of_a_side_arrives_with_it() {
    let dir = TempDir::new();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    for ends_all in [false, true] {
        let mut io = Epoll::new().unwrap();
        let call = io.connect(Callee::Inet(listener.local_addr().unwrap()), None).unwrap();
        let (mut peer, _) = listener.accept().unwrap();
        await_report(&mut io, call.fd, 7);
        let mut chain = SendChain::new(CopyPolicy::Contiguous);
        chain.configure(CopyPolicy::Contiguous, true);
        chain.push_slice(b"head, ");
        if ends_all {
            let file = io.create_temp(dir.as_os_str().as_bytes()).unwrap();
            io.write_all_at(&file, &mut 0, b"of a file").unwrap();
            chain.push_file(FileRange { file, offset: 0, len: 9 });
        }
        assert_eq!(io.send(call.fd, &chain, AfterSend::End), Sent::Bytes(chain.len()));
        match ends_all {
            true => io.close(call.fd, Reset::No),
            false => io.shut_write(call.fd),
        }
        let mut text = String::new();
        peer.read_to_string(&mut text).unwrap();
        assert_eq!(text, if ends_all { "head, of a file" } else { "head, " });
    }
}

#[test]
fn a_connect_without_a_listener_returns_the_error_number() {
    let mut io = Epoll::new().unwrap();
    let missing = io.connect(Callee::Unix(b"/nonexistent/bolide.sock"), None);
    assert_eq!(missing.map_err(|failure| failure.errno).map(|call| call.stands), Err(libc::ENOENT));
    // A port that was just released has no listener.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let refused = match io.connect(Callee::Inet(port), None) {
        Err(failure) => Err(failure.errno),
        Ok(call) => {
            await_report(&mut io, call.fd, 1);
            let result = io.connect_result(call.fd);
            io.close(call.fd, Reset::Yes);
            result
        }
    };
    assert_eq!(refused, Err(libc::ECONNREFUSED));
}

#[test]
fn a_temporary_file_has_no_name_and_keeps_what_was_written() {
    let dir = TempDir::new();
    let below = dir.join("made/when/missing");
    let mut io = Epoll::new().unwrap();
    let file = io.create_temp(below.as_os_str().as_bytes()).unwrap();
    assert_eq!(io.write_at(&file, 0, b"0123456789"), Ok(10));
    assert_eq!(io.write_at(&file, 10, b"abc"), Ok(3));
    let mut bytes = [0; 32];
    assert_eq!(io.read(&file, 8, &mut bytes), Ok(5));
    assert_eq!(&bytes[..5], b"89abc");
    assert_eq!(std::fs::read_dir(&below).unwrap().count(), 0);
    assert_eq!(io.stat(&file).unwrap().mode & 0o777, 0o600);
    assert!(io.create_temp(b"/proc/bolide").is_err());
}

#[test]
fn a_call_is_made_by_the_address_that_is_wanted() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let to = Callee::Inet(listener.local_addr().unwrap());
    let mut io = Epoll::new().unwrap();
    let call = io.connect(to, Some("127.0.0.9:0".parse().unwrap())).unwrap();
    let (_peer, from) = listener.accept().unwrap();
    assert_eq!(from.ip().to_string(), "127.0.0.9");
    io.close(call.fd, Reset::No);
    let refused = |io: &mut Epoll, to, from: &str| match io.connect(to, from.parse().ok()) {
        Err(failure) => (failure.call, failure.errno),
        Ok(call) => panic!("{call:?}"),
    };
    assert_eq!(refused(&mut io, to, "192.0.2.1:0"), ("bind", libc::EADDRNOTAVAIL));
    assert_eq!(refused(&mut io, to, "[::1]:0"), ("bind", libc::EAFNOSUPPORT));
    assert_eq!(refused(&mut io, Callee::Unix(b"/x"), "127.0.0.9:0"), ("bind", libc::EINVAL));
}
