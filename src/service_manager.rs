//! systemd's protocol sd_notify(3): reports to the service manager when the server is ready,
//! reloads and ends, and that all workers are alive. Without a service manager nothing is sent.

use std::process::Command;
use std::time::Duration;

use bolide_base::Instant;
use bolide_io::Callee;

/// The manager's socket: a path, or `@` and an abstract name.
const SOCKET: &str = "NOTIFY_SOCKET";
/// The watchdog timeout in microseconds.
const WATCHDOG: &str = "WATCHDOG_USEC";
/// The process that the timeout is for.
const WATCHED: &str = "WATCHDOG_PID";

/// Messages per watchdog timeout.
const MESSAGES: u32 = 3;

/// The service manager, and the messages that it expects.
#[derive(Debug, Default)]
pub(crate) struct ServiceManager {
    /// Its address; none if there is no manager, or another process reports to it now.
    socket: Option<Vec<u8>>,
    /// The interval of keep-alive messages.
    pause: Option<Duration>,
    last_ping: Option<Instant>,
}

impl ServiceManager {
    /// The service manager in the environment. The variables are removed: child processes such as
    /// PHP's masters must not use them.
    pub(crate) fn take() -> Self {
        let own = std::process::id().to_string();
        let is_ours = std::env::var(WATCHED).map_or(true, |pid| pid == own);
        let pause = std::env::var(WATCHDOG).ok().and_then(|text| text.parse().ok());
        let pause = pause.filter(|&micros| micros > 0 && is_ours).map(Duration::from_micros);
        let pause = pause.map(|limit| limit / MESSAGES);
        let socket = std::env::var_os(SOCKET).map(|path| path.as_encoded_bytes().to_vec());
        for name in [SOCKET, WATCHDOG, WATCHED] {
            bolide_io::process::remove_environment(name);
        }
        let socket = socket.filter(|path| !path.is_empty()).map(address);
        Self { pause: pause.filter(|_| socket.is_some()), socket, last_ping: None }
    }

    /// Passes it on to a successor, which becomes the main process when this one ends.
    pub(crate) fn introduce(&self, successor: &mut Command) {
        use std::os::unix::ffi::OsStrExt as _;
        let Some(socket) = &self.socket else { return };
        let mut name = socket.clone();
        if name.first() == Some(&0) {
            name[0] = b'@';
        }
        successor.env(SOCKET, std::ffi::OsStr::from_bytes(&name));
        if let Some(pause) = self.pause {
            successor.env(WATCHDOG, (pause * MESSAGES).as_micros().to_string());
        }
    }

    /// The server is ready: after the start, and after each reload with its result.
    pub(crate) fn ready(&self, status: &str) {
        self.send(&format!("READY=1\nSTATUS={}", status.replace('\n', " ")));
    }

    /// A new configuration is read.
    pub(crate) fn reloading(&self, now: Instant) {
        self.send(&format!("RELOADING=1\nMONOTONIC_USEC={}", now.as_nanos() / 1000));
    }

    /// The server is ending.
    pub(crate) fn stopping(&self) {
        self.send("STOPPING=1\nSTATUS=Finishing requests");
    }

    /// This process ends and a successor continues: from now on that process is the service.
    pub(crate) fn hand_over(&mut self, successor: u32) {
        self.send(&format!("MAINPID={successor}"));
        *self = Self::default();
    }

    /// Every worker is alive; reported a few times per timeout.
    pub(crate) fn keep_alive(&mut self, now: Instant) {
        let Some(pause) = self.pause else { return };
        if self.last_ping.is_none_or(|last_ping| now.since(last_ping) >= pause) {
            self.last_ping = Some(now);
            self.send("WATCHDOG=1");
        }
    }

    /// The interval of keep-alive messages, or `usual` if that is shorter.
    pub(crate) fn tick(&self, usual: Duration) -> Duration {
        self.pause.map_or(usual, |pause| pause.min(usual))
    }

    fn send(&self, text: &str) {
        if let Some(socket) = &self.socket {
            // Without a manager the server continues.
            let _ = bolide_io::file::send_datagram(Callee::Unix(socket), text.as_bytes());
        }
    }
}

/// The kernel's form of an abstract name has a zero where the variable has `@`.
fn address(mut name: Vec<u8>) -> Vec<u8> {
    if name.first() == Some(&b'@') {
        name[0] = 0;
    }
    name
}
