//! `bolide adopt`: takes over from a running nginx without losing a connection, and goes back if
//! too many requests fail.
//!
//! ```text
//!   check ──▶ duplicates of nginx's sockets ──▶ a server of ours accepts beside nginx's workers
//!         ──▶ WINCH: its workers end ──▶ watch ──▶ QUIT: nginx ends
//!                                   └─ more failures ──▶ HUP: its workers are back; ours ends
//! ```
//!
//! Easiest to break: until nginx gets QUIT, its master holds every socket and can go back.

mod nginx;
mod plan;
mod successor;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use bolide_base::Instant;
use bolide_base::errno::describe;
use bolide_engine::metrics::EventCount;
use bolide_io::Io as _;
use bolide_io::epoll::Epoll;
use bolide_io::listen::{Listener, SocketAddress};
use bolide_io::signal::{self, Signal, Signals};

use crate::control::is_worse;
use crate::invocation::{AdoptOptions, AdoptPurpose, Invocation};
use crate::messages::{err, out};
use crate::sockets::bind_of;
use crate::{check, reading};
use nginx::Nginx;
use plan::shown;
use successor::{Served, Successor};

/// The timeout for the start of our server.
const START_MAX: Duration = Duration::from_mins(1);
/// The timeout for nginx's workers to react to a signal.
const HEED_MAX: Duration = Duration::from_secs(15);
/// The interval of checks.
const PAUSE: Duration = Duration::from_millis(200);

/// LIMIT: consecutive checks that our server does not answer.
const SILENCES_MAX: u32 = 10;

/// The reason for going back after a signal.
const INTERRUPTED: &str = "the command was told to stop";

/// Runs the command; returns 1 if nginx stays in service.
pub(crate) fn run(invocation: &Invocation, options: &AdoptOptions) -> ExitCode {
    match adopt(invocation, options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(texts) => {
            texts.iter().for_each(|text| err(&format!("bolide: {text}")));
            ExitCode::FAILURE
        }
    }
}

fn adopt(invocation: &Invocation, options: &AdoptOptions) -> Result<(), Vec<String>> {
    if !check::report_differences(invocation) {
        return Err(vec!["nothing was changed: nginx serves on".to_owned()]);
    }
    let config = reading::of_file(invocation)?.config;
    let one = |text: String| vec![text];
    let mut nginx = Nginx::find(options.nginx_pid.as_deref(), &config.main.pid).map_err(one)?;
    let mut sockets = nginx.listeners().map_err(one)?;
    let found: Vec<SocketAddress> = sockets.iter().map(|(address, _)| address.clone()).collect();
    let wants: Vec<SocketAddress> =
        config.http.iter().flat_map(|http| &http.listens).map(bind_of).collect();
    let plan = plan::settle(&wants, &found)?;
    sockets.retain(|(address, _)| plan.taken.contains(address));
    let list = |all: &[SocketAddress]| all.iter().map(shown).collect::<Vec<_>>().join(", ");
    print_line(&format!(
        "nginx is process {}; taken over from it: {}",
        nginx.pid(),
        list(&plan.taken)
    ));
    if !plan.opened.is_empty() {
        print_line(&format!("opened: {}", list(&plan.opened)));
    }
    if plan.has_datagrams() {
        print_line("connections over HTTP/3 that nginx has may break; clients open new ones");
    }
    if options.purpose == AdoptPurpose::Preview {
        return Ok(());
    }
    let pid_file = pid_file_beside(&config.main.pid, &nginx.pid_file);
    drop(config);
    let handover = Handover::begin(invocation, nginx, sockets, &pid_file)?;
    handover.finish(options.watch, &pid_file)
}

/// The pid file of our server: the configured one, unless nginx uses it. nginx removes its file
/// when it ends, and its service manager may signal the pid in that file.
fn pid_file_beside(configured: &Path, of_nginx: &Path) -> PathBuf {
    let real = |path: &Path| std::fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
    match real(configured) == real(of_nginx) {
        true => configured.with_file_name("bolide.pid"),
        false => configured.to_path_buf(),
    }
}

fn print_line(text: &str) {
    out(format!("{text}\n").as_bytes());
}

/// Both servers, and the signals of the command.
#[derive(Debug)]
struct Handover {
    nginx: Nginx,
    ours: Successor,
    door: Epoll,
    signals: Signals,
    /// Consecutive checks without an answer of our server.
    silences: u32,
}

/// The result of a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Waited {
    /// The condition holds.
    There,
    /// The time is over.
    Late,
    /// The command got a signal.
    Interrupted,
}

impl Handover {
    /// Lets our server accept connections, and stops nginx's workers.
    fn begin(
        invocation: &Invocation,
        nginx: Nginx,
        sockets: Vec<(SocketAddress, Listener)>,
        pid_file: &Path,
    ) -> Result<Self, Vec<String>> {
        let failed = |what: &str, error: &std::io::Error| {
            vec![format!("{what} failed ({}); nginx serves on", describe(error))]
        };
        let accepting = nginx.accepting().map_err(|error| failed("reading /proc", &error))?;
        if accepting == 0 {
            let pid = nginx.pid();
            let what = "has no workers that accept connections: it is no master of nginx";
            return Err(vec![format!("process {pid} {what}; nothing was changed")]);
        }
        signal::block();
        let mut door = Epoll::new().map_err(|error| failed("epoll_create()", &error))?;
        let signals = Signals::open().map_err(|error| failed("signalfd()", &error))?;
        door.watch(signals.fd(), 0, bolide_io::Interest::Level);
        let ours = Successor::start(invocation, &sockets, pid_file);
        let ours = ours.map_err(|error| failed("the start of the server", &error))?;
        // nginx's master and our server hold duplicates.
        drop(sockets);
        let mut handover = Self { nginx, ours, door, signals, silences: 0 };
        let served =
            handover.wait(START_MAX, |of| of.ours.ended().is_some() || of.ours.served().is_some());
        if served != Waited::There || handover.ours.ended().is_some() {
            // It may have accepted connections already.
            handover.ours.signal(Signal::Quit);
            let why = match served {
                Waited::Interrupted => INTERRUPTED,
                Waited::There | Waited::Late => "the server did not start",
            };
            return Err(vec![format!("{why}; nginx serves on")]);
        }
        let text = format!("bolide serves as process {}", handover.ours.pid());
        print_line(&text);
        if let Err(error) = handover.nginx.signal(Signal::Drain) {
            handover.ours.signal(Signal::Quit);
            return Err(failed("the signal WINCH to nginx", &error));
        }
        match handover.wait(HEED_MAX, |of| matches!(of.nginx.accepting(), Ok(0))) {
            Waited::There => Ok(handover),
            Waited::Interrupted => Err(handover.go_back(INTERRUPTED)),
            Waited::Late => Err(handover.go_back(
                "nginx's workers accept in spite of the signal WINCH: an nginx that runs in the \
                 foreground (\"daemon off\") does not heed it",
            )),
        }
    }

    /// Watches our server, then ends nginx or goes back to it.
    fn finish(mut self, watch: Duration, pid_file: &Path) -> Result<(), Vec<String>> {
        let mut last = Served::default();
        if !watch.is_zero() {
            let seconds = watch.as_secs();
            print_line(&format!(
                "nginx accepts no more; watching for {seconds}s until it is ended"
            ));
            let mut why = None;
            let waited = self.wait(watch, |of| {
                why = of.verdict(&mut last);
                why.is_some()
            });
            match (waited, why) {
                (Waited::Interrupted, _) => {
                    return Err(self.go_back(INTERRUPTED));
                }
                (_, Some(why)) => return Err(self.go_back(&why)),
                (_, None) => {}
            }
        }
        let (requests, handshakes) = (last.requests, last.handshakes);
        print_line(&format!(
            "{} of {} requests ended with 5xx, {} of {} handshakes failed; nginx ends with its \
             last requests",
            requests.failed, requests.all, handshakes.failed, handshakes.all
        ));
        if let Err(error) = self.nginx.signal(Signal::Quit)
            && self.nginx.is_running()
        {
            let (pid, why) = (self.nginx.pid(), describe(&error));
            return Err(vec![format!("process {pid} of nginx cannot be ended ({why})")]);
        }
        let pid = self.ours.pid();
        print_line(&format!(
            "bolide goes on as process {pid}; its pid file is {}",
            pid_file.display()
        ));
        Ok(())
    }

    /// The reason for going back, if there is one. nginx does not report its errors, so none are
    /// assumed.
    fn verdict(&mut self, last: &mut Served) -> Option<String> {
        if let Some(status) = self.ours.ended() {
            return Some(format!("the server ended ({status})"));
        }
        // A busy server answers the next time.
        match self.ours.served() {
            Some(served) => (*last, self.silences) = (served, 0),
            None => self.silences += 1,
        }
        if self.silences >= SILENCES_MAX {
            return Some("the server does not answer".to_owned());
        }
        let is_bad = |of: EventCount| is_worse(EventCount { failed: 0, ..of }, of);
        let ratio = |of: EventCount, what: &str| format!("{} of {} {what}", of.failed, of.all);
        if is_bad(last.requests) {
            return Some(ratio(last.requests, "requests ended with 5xx"));
        }
        is_bad(last.handshakes).then(|| ratio(last.handshakes, "handshakes failed"))
    }

    /// Whether workers of nginx accept connections.
    fn nginx_accepts(&self) -> bool {
        self.nginx.accepting().is_ok_and(|workers| workers > 0)
    }

    /// Restarts nginx's workers, then ends our server; returns the messages.
    fn go_back(mut self, why: &str) -> Vec<String> {
        let mut texts = vec![why.to_owned()];
        if let Err(error) = self.nginx.signal(Signal::Reload) {
            texts.push(format!("nginx cannot be called back ({})", describe(&error)));
        }
        // The signal was handled; the rest is done in any case.
        let until = bolide_io::process::now().mono.after(HEED_MAX);
        while !self.nginx_accepts() && bolide_io::process::now().mono < until {
            let _ = self.wait(PAUSE, |_| false);
        }
        if !self.nginx_accepts() {
            if self.ours.ended().is_some() {
                let text =
                    "neither server accepts: start nginx (\"nginx -t\" tells why it does not)";
                texts.push(text.to_owned());
                return texts;
            }
            let pid = self.ours.pid();
            texts.push(format!(
                "nginx starts no worker, so the server goes on as process {pid}: see nginx's \
                 error log"
            ));
            return texts;
        }
        self.ours.signal(Signal::Quit);
        texts.push("nginx serves again; the server ends with its last requests".to_owned());
        texts
    }

    /// Polls `is_there` until it holds, `limit` passes or a signal interrupts.
    fn wait(&mut self, limit: Duration, mut is_there: impl FnMut(&mut Self) -> bool) -> Waited {
        let until = bolide_io::process::now().mono.after(limit);
        let mut ready = Vec::new();
        loop {
            if is_there(self) {
                return Waited::There;
            }
            let now = bolide_io::process::now().mono;
            if now >= until {
                return Waited::Late;
            }
            let next: Instant = now.after(PAUSE).min(until);
            ready.clear();
            let _ = self.door.wait(Some(next), &mut ready);
            let taken = self.signals.take().map(|taken| taken.signal);
            if matches!(taken, Some(Signal::Stop | Signal::Quit | Signal::Reload)) {
                return Waited::Interrupted;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::pid_file_beside;

    #[test]
    fn the_pid_file_of_nginx_is_left_to_it() {
        let beside = |configured: &str, of_nginx: &str| {
            pid_file_beside(Path::new(configured), Path::new(of_nginx))
        };
        assert_eq!(beside("/none/nginx.pid", "/none/nginx.pid"), Path::new("/none/bolide.pid"));
        assert_eq!(beside("/none/own.pid", "/none/nginx.pid"), Path::new("/none/own.pid"));
    }
}
