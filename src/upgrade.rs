//! A new binary without a lost connection: the successor inherits the listening stream sockets.
//!
//! UDP sockets are not inherited: the successor's join the same port's group, so that packets of
//! living QUIC connections still reach the process that knows them.

use std::process::Command;

use conf::model::Level;
use io::listen::{Address, Listener};

use crate::control_log::ControlLog;
use crate::pid::PidFile;
use crate::sockets::Open;

/// Names the inherited descriptors: `FD=tcp:ADDRESS` or `FD=unix:PATH`, joined by `;`.
const VARIABLE: &str = "BOLIDE_SOCKETS";

/// Whether a predecessor runs, whose sockets we share.
pub(crate) fn has_predecessor() -> bool {
    std::env::var_os(VARIABLE).is_some()
}

/// Takes over the sockets that a predecessor names in the environment.
pub(crate) fn adopt(open: &mut Open) {
    let Ok(list) = std::env::var(VARIABLE) else { return };
    for entry in list.split(';') {
        let Some((fd, name)) = entry.split_once('=') else { continue };
        let address = match name.split_once(':') {
            Some(("tcp", at)) => at.parse().ok().map(Address::Tcp),
            Some(("unix", path)) => Some(Address::Unix(path.as_bytes().to_vec())),
            _ => None,
        };
        if let (Ok(fd), Some(address)) = (fd.parse::<i32>(), address)
            && let Some(listener) = Listener::inherited(fd)
        {
            open.adopt(address, listener);
        }
    }
}

/// Starts the binary of the same name again, with our sockets; nginx's USR2.
pub(crate) fn start_successor(open: &Open, pid: &mut PidFile, log: &ControlLog) {
    if let Err(error) = try_start(open, pid) {
        log.write(Level::Alert, &format!("cannot start a new binary: {error}"));
    }
}

fn try_start(open: &Open, pid: &mut PidFile) -> std::io::Result<()> {
    let mut entries = Vec::new();
    for (address, listener) in open.all() {
        let name = match address {
            Address::Tcp(at) => format!("tcp:{at}"),
            Address::Unix(path) => format!("unix:{}", String::from_utf8_lossy(path)),
            Address::Udp(_) => continue,
        };
        listener.inherit()?;
        entries.push(format!("{}={name}", listener.fd().0));
    }
    let mut args = std::env::args_os();
    let program = args.next().unwrap_or_else(|| "bolide".into());
    pid.step_aside()?;
    let spawned = Command::new(program).args(args).env(VARIABLE, entries.join(";")).spawn();
    spawned.map(drop).inspect_err(|_| {
        let _ = pid.step_back();
    })
}
