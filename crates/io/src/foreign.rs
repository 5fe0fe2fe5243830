//! The process of another server: duplicates of its listening sockets, signals to it, its children.
//! The process keeps everything it has.

use std::os::fd::OwnedFd;

use crate::listen::{Listener, SocketAddress};
use crate::signal::Signal;
use crate::sys;

/// LIMIT: descriptors of the process that are looked at.
const DESCRIPTORS_MAX: usize = 65_536;

/// A process of another program.
#[derive(Debug)]
pub struct ForeignProcess {
    pid: u32,
    handle: OwnedFd,
}

impl ForeignProcess {
    /// The process that has this number now.
    ///
    /// # Errors
    ///
    /// There is none.
    pub fn open(pid: u32) -> std::io::Result<Self> {
        Ok(Self { pid, handle: sys::open_process(pid)? })
    }

    /// Its number.
    #[must_use]
    pub const fn pid(&self) -> u32 {
        self.pid
    }

    /// Duplicates of its sockets that listen for streams or receive datagrams at an address.
    ///
    /// # Errors
    ///
    /// The kernel refuses: the process belongs to another account, or may not be inspected.
    pub fn listeners(&self) -> std::io::Result<Vec<(SocketAddress, Listener)>> {
        drop(std::fs::read_dir(format!("/proc/{}/fd", self.pid))?);
        let mut found = Vec::new();
        for (number, _) in open_sockets(self.pid) {
            found.extend(Listener::foreign(sys::duplicate_of(&self.handle, number)?));
        }
        Ok(found)
    }

    /// Sends it a signal.
    ///
    /// # Errors
    ///
    /// It has ended, or no permission.
    pub fn signal(&self, signal: Signal) -> std::io::Result<()> {
        sys::signal_process(&self.handle, signal.number())
    }

    /// Whether it still runs.
    #[must_use]
    pub fn is_running(&self) -> bool {
        sys::signal_process(&self.handle, 0).is_ok() && crate::process::is_running(self.pid)
    }

    /// How many of its children have one of these sockets open.
    ///
    /// # Errors
    ///
    /// `/proc` cannot be read, as without descriptors.
    pub fn holders(&self, sockets: &[SocketId]) -> std::io::Result<usize> {
        let all = std::fs::read_dir("/proc")?;
        let pids = all.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        let holds = |pid: &u32| open_sockets(*pid).any(|(_, id)| sockets.contains(&id));
        Ok(pids.filter(|pid| parent_of(*pid) == Some(self.pid)).filter(holds).count())
    }
}

/// A socket, independent of the descriptors and processes that have it open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SocketId(std::path::PathBuf);

impl SocketId {
    /// The identity of one of this process's sockets.
    #[must_use]
    pub fn of(listener: &Listener) -> Option<Self> {
        std::fs::read_link(format!("/proc/self/fd/{}", listener.fd().0)).ok().map(Self)
    }
}

/// The sockets that a process has open, by descriptor; none if the process may not be inspected.
fn open_sockets(pid: u32) -> impl Iterator<Item = (i32, SocketId)> {
    let all = std::fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten();
    all.take(DESCRIPTORS_MAX).flatten().filter_map(|entry| {
        let number = entry.file_name().to_str()?.parse().ok()?;
        // A descriptor that was closed meanwhile is skipped.
        let target = std::fs::read_link(entry.path()).ok()?;
        let is_socket = target.to_str().is_some_and(|name| name.starts_with("socket:"));
        is_socket.then_some((number, SocketId(target)))
    })
}

fn parent_of(pid: u32) -> Option<u32> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name before the state may contain anything, parentheses included.
    stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}

/// The command line of a process; none if it has ended.
#[must_use]
pub fn command_line(pid: u32) -> Option<String> {
    let words = std::fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    let text = String::from_utf8_lossy(&words).replace('\0', " ");
    Some(text.trim().to_owned()).filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, UdpSocket};
    use std::os::fd::AsRawFd as _;

    use super::{ForeignProcess, SocketId, command_line};
    use crate::listen::{InheritedSocket, ListenSocketOptions, Listener, SocketAddress};

    #[test]
    fn sockets_of_a_process_are_found_by_their_addresses_and_duplicated() {
        let stream = TcpListener::bind("127.0.0.1:0").unwrap();
        let datagrams = UdpSocket::bind("127.0.0.1:0").unwrap();
        let us = ForeignProcess::open(std::process::id()).unwrap();
        let found = us.listeners().unwrap();
        for address in [
            SocketAddress::Tcp(stream.local_addr().unwrap()),
            SocketAddress::Udp(datagrams.local_addr().unwrap()),
        ] {
            let mut of_it = found.iter().filter(|(at, _)| *at == address);
            let (_, listener) = of_it.next().expect("a duplicate");
            assert!(of_it.next().is_none());
            assert_ne!(listener.fd().0, stream.as_raw_fd());
            assert!(SocketId::of(listener).is_some());
        }
        assert!(us.is_running() && command_line(us.pid()).is_some());
    }

    #[test]
    fn children_with_a_socket_are_counted() {
        let us = ForeignProcess::open(std::process::id()).unwrap();
        let listener = Listener::open(
            &SocketAddress::Tcp("127.0.0.1:0".parse().unwrap()),
            &ListenSocketOptions::default(),
        );
        let listener = listener.unwrap();
        let id = SocketId::of(&listener).unwrap();
        let start = || std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let mut without = start();
        assert_eq!(us.holders(std::slice::from_ref(&id)).unwrap(), 0);
        listener.inherit(InheritedSocket::Yes).unwrap();
        let mut with = start();
        listener.inherit(InheritedSocket::No).unwrap();
        // Other tests may start children meanwhile.
        assert!(us.holders(&[id]).unwrap() > 0);
        for child in [&mut without, &mut with] {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    #[test]
    fn an_ended_process_is_none() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let process = ForeignProcess::open(child.id()).unwrap();
        assert!(process.is_running());
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!process.is_running());
        assert!(ForeignProcess::open(child.id()).is_err());
    }
}
