//! The server that `bolide adopt` starts with the duplicated sockets, and its counts of requests.

use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};

use bolide_engine::metrics::EventCount;
use bolide_io::listen::{InheritedSocket, Listener, SocketAddress};
use bolide_io::signal::{self, Signal};

use crate::admin::line_protocol::Words;
use crate::admin::{client, service};
use crate::adopted_sockets::{PID_FILE, SOCKETS};
use crate::invocation::Invocation;
use crate::upgrade::name_of;

/// Variables of service managers that are for the command, not for the server that it starts.
const NOT_PASSED: [&str; 6] = [
    "NOTIFY_SOCKET",
    "WATCHDOG_USEC",
    "WATCHDOG_PID",
    "LISTEN_FDS",
    "LISTEN_PID",
    "LISTEN_FDNAMES",
];

/// A server of ours.
#[derive(Debug)]
pub(super) struct Successor {
    child: Child,
}

/// Its counts of requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Served {
    pub(super) requests: EventCount,
    pub(super) handshakes: EventCount,
}

impl Successor {
    /// Starts it with the options of `invocation`. It writes its pid to `pid_file`.
    ///
    /// # Errors
    ///
    /// The kernel's error.
    pub(super) fn start(
        invocation: &Invocation,
        sockets: &[(SocketAddress, Listener)],
        pid_file: &Path,
    ) -> std::io::Result<Self> {
        use std::os::unix::process::CommandExt as _;
        let mut names = Vec::new();
        for (address, listener) in sockets {
            listener.inherit(InheritedSocket::Yes)?;
            names.push(format!("{}={}", listener.fd().0, name_of(address)));
        }
        let mut command = Command::new(std::env::current_exe()?);
        command.arg("-p").arg(&invocation.prefix).arg("-c").arg(&invocation.conf);
        if !invocation.globals.is_empty() {
            command.arg("-g").arg(&invocation.globals);
        }
        if let Some(log) = &invocation.error_log {
            command.arg("-e").arg(log);
        }
        NOT_PASSED.iter().for_each(|name| {
            command.env_remove(name);
        });
        command.env(SOCKETS, names.join(";")).env(PID_FILE, pid_file);
        // It outlives the command and its terminal.
        command.stdin(Stdio::null()).stdout(Stdio::null()).process_group(0);
        let started = command.spawn();
        for (_, listener) in sockets {
            // No other child process may inherit them.
            let _ = listener.inherit(InheritedSocket::No);
        }
        Ok(Self { child: started? })
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Its exit status, if it has ended.
    pub(super) fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    /// Its counts of requests; none if it does not answer.
    pub(super) fn served(&self) -> Option<Served> {
        let answer = client::ask_process(self.pid(), &Words::new(service::COMMAND)).ok()?;
        parse(&String::from_utf8_lossy(&answer))
    }

    /// Sends it a signal, if it still runs.
    pub(super) fn signal(&mut self, signal: Signal) {
        if self.ended().is_none() {
            let _ = signal::send(self.pid(), signal);
        }
    }
}

fn parse(answer: &str) -> Option<Served> {
    let mut served = Served::default();
    for line in answer.lines() {
        let mut words = line.split(' ');
        let of = match words.next()? {
            "requests" => &mut served.requests,
            "handshakes" => &mut served.handshakes,
            _ => continue,
        };
        let (all, failed) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        *of = EventCount { all, failed };
    }
    Some(served)
}

#[cfg(test)]
mod tests {
    use bolide_engine::metrics::EventCount;

    use super::{Served, parse};

    #[test]
    fn what_a_server_tells_of_its_service_is_read() {
        let served = parse("requests 12 3\nhandshakes 4 0\nothers 1\n").unwrap();
        let requests = EventCount { all: 12, failed: 3 };
        assert_eq!(served, Served { requests, handshakes: EventCount { all: 4, failed: 0 } });
        assert_eq!(parse("requests x 3\n"), None);
        assert_eq!(parse("requests 3\n"), None);
    }
}
