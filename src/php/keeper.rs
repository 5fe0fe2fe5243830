//! A process between the server and lsphp. The children of lsphp leave its process group and would
//! outlive a killed server and master. Orphans are reparented to the keeper, and end with it.

use std::os::fd::AsFd as _;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use bolide_base::Instant;
use bolide_io::Io as _;
use bolide_io::child::{self, ChildDescriptor, ChildEnd, ChildSignal, SpawnOptions};
use bolide_io::epoll::Epoll;
use bolide_io::signal::{self, Signal, Signals};

use crate::messages::err;

/// How the line begins that reports the end of a master whose children finish their requests; the
/// word of [`WORD`] follows. The server reads it from the output, to which applications write, too,
/// perhaps texts of their clients.
pub(super) const LOST: &str = "bolide php keep: the master ";
/// The variable with a word that the keeper and the server know; lsphp does not get it.
pub(super) const WORD: &str = "BOLIDE_KEEPER_WORD";
/// How often it checks whether killed processes are gone.
const TICK: Duration = Duration::from_millis(20);

/// Runs `program` on the listening socket that is our standard input, until all its processes have
/// ended. TERM ends them at once; USR1 lets running requests finish, and so do children of a master
/// that has ended.
pub(crate) fn run(program: &Path) -> ExitCode {
    match keep(program) {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            err(&format!("cannot run \"{}\": {error}", program.display()));
            ExitCode::FAILURE
        }
    }
}

fn keep(program: &Path) -> std::io::Result<u8> {
    signal::block();
    child::adopt_orphans()?;
    let (mut door, signals) = (Epoll::new()?, Signals::open()?);
    door.watch(signals.fd(), 0, bolide_io::Interest::Level);
    let socket = UnixListener::from(std::io::stdin().as_fd().try_clone_to_owned()?);
    let output = std::io::stderr().as_fd().try_clone_to_owned()?;
    let names: Vec<_> = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value)))
        .filter(|(name, _)| name != WORD)
        .collect();
    let word = std::env::var(WORD).unwrap_or_default();
    let env: Vec<_> = names.iter().map(|(name, value)| (name.as_str(), value.clone())).collect();
    let socket = ChildDescriptor::Stdin(&socket);
    let order = SpawnOptions {
        program,
        args: &[],
        env: &env,
        account: None,
        group: None,
        limits: &[],
        socket,
        output,
    };
    let master = child::spawn(order)?;
    let (mut is_gentle, mut killing, mut status) = (false, false, None);
    let mut ready = Vec::new();
    loop {
        while let Some((pid, end)) = child::reap(None) {
            if pid == master {
                status = Some(end);
            }
        }
        let left = descendants(std::process::id());
        if let Some(end) = status {
            if left.is_empty() {
                return Ok(exit_code(end));
            }
            if !is_gentle && !killing {
                err(&format!("{LOST}{word} {end}"));
                is_gentle = true;
            }
        }
        if killing {
            left.iter().for_each(|pid| child::signal(*pid, ChildSignal::Kill));
        }
        ready.clear();
        let _ = door.wait(deadline(killing), &mut ready);
        match signals.take().map(|taken| taken.signal) {
            Some(Signal::Stop | Signal::Quit) => killing = true,
            Some(Signal::Reopen) => {
                is_gentle = true;
                // The number of one that has ended may be another process's.
                if status.is_none() {
                    child::signal(master, ChildSignal::User1);
                }
            }
            _ => {}
        }
    }
}

/// The exit code of a shell for the end of a command.
fn exit_code(end: ChildEnd) -> u8 {
    match end {
        ChildEnd::Exit(code) => u8::try_from(code).unwrap_or(u8::MAX),
        ChildEnd::Signal(number) => u8::try_from(128 + number).unwrap_or(u8::MAX),
    }
}

/// The kernel signals deaths; only those of orphans' children may go unreported.
fn deadline(killing: bool) -> Option<Instant> {
    killing.then(|| bolide_io::process::now().mono.after(TICK))
}

/// Every process below one.
pub(super) fn descendants(pid: u32) -> Vec<u32> {
    let mut all = children(pid);
    let mut next = 0;
    while let Some(pid) = all.get(next) {
        all.extend(children(*pid));
        next += 1;
    }
    all
}

/// The children of a process without further threads.
pub(super) fn children(pid: u32) -> Vec<u32> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
    text.unwrap_or_default().split_whitespace().filter_map(|word| word.parse().ok()).collect()
}
