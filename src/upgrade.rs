//! Upgrade to a new binary without a lost connection: the successor inherits the listening sockets.
//!
//! Stream sockets are shared. Datagram sockets are not: the packets of a live QUIC connection must
//! reach the process that owns it, so the successor opens its own and holds the others' places. It
//! inherits the keys of connection ids, and gives its workers other numbers.

use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::{Child, Command};

use bolide_conf::model::{Config, LogLevel};
use bolide_io::listen::{InheritedSocket, Listener, SocketAddress};

use crate::control_log::ControlLog;
use crate::pid::PidFile;
use crate::service_manager::ServiceManager;
use crate::sockets::OpenSocket;

/// The environment variable with the inherited descriptors: `FD=tcp:ADDRESS`, `FD=udp:ADDRESS`,
/// `FD=unix:PATH`, or `FD=given:PATH` for a unix socket of the service manager, joined by `;`.
const SOCKETS: &str = "BOLIDE_SOCKETS";
/// The prefix of a unix socket of the service manager.
const GIVEN: &str = "given";
/// The environment variable about the predecessor: `PID:FIRST:COUNT`, its pid and the numbers of
/// its workers in connection ids. The secret of its keys is on standard input, because an
/// environment stays readable as long as the process lives.
const ELDER: &str = "BOLIDE_ELDER";

/// Whether a predecessor runs, whose sockets we share.
pub(crate) fn has_predecessor() -> bool {
    std::env::var_os(SOCKETS).is_some()
}

/// The keys of connection ids for `workers` workers: a predecessor's if there is one, else those of
/// `quic_host_key`, else fresh ones. Resets are those of `quic_host_key` where it is written,
/// whatever key a predecessor had.
///
/// # Errors
///
/// As text, when the system's randomness fails, or in nginx's words, when `quic_host_key` is
/// unreadable.
pub(crate) fn quic_keys(
    open: &mut OpenSocket,
    config: &Config,
    workers: u16,
) -> Result<bolide_quic::SharedKeys, String> {
    let own = host_secret(config)?;
    let keys = host_keys(open, own, workers)?;
    Ok(match own {
        Some(secret) => keys.with_tokens_and_resets_of(secret),
        None => keys,
    })
}

/// The secret for QUIC tokens of a configuration: `quic_host_key`, else the `secrets_key` of a
/// cluster, so that all its servers accept them. Stateless resets do not use the latter, because
/// every server would reset the live connections of all others.
///
/// # Errors
///
/// In nginx's words, when a file is unreadable.
pub(crate) fn quic_tokens(config: &Config) -> Result<Option<[u8; 32]>, String> {
    match host_secret(config)? {
        Some(secret) => Ok(Some(secret)),
        None => crate::cluster::common_secret(config, b"quic tokens"),
    }
}

fn host_keys(
    open: &mut OpenSocket,
    own: Option<[u8; 32]>,
    workers: u16,
) -> Result<bolide_quic::SharedKeys, String> {
    let fresh = || match own {
        Some(secret) => Ok(bolide_quic::SharedKeys::from_secret(secret)),
        None => bolide_quic::SharedKeys::generate(),
    };
    let text = std::env::var(ELDER).ok();
    let workers = u8::try_from(workers).unwrap_or(u8::MAX);
    let Some((pid, numbers)) = text.as_deref().and_then(parse_elder) else {
        return fresh();
    };
    let mut secret = [0; 32];
    if std::io::stdin().lock().read_exact(&mut secret).is_err() {
        return fresh();
    }
    let Some(own) = numbers.beside(workers) else { return fresh() };
    open.follow(pid, numbers);
    Ok(bolide_quic::SharedKeys::from_secret(secret).numbered_from(own.first))
}

/// The contents of `quic_host_key`, of the first QUIC listener that has one; all files are read.
fn host_secret(config: &Config) -> Result<Option<[u8; 32]>, String> {
    let mut first = None;
    for server in config.http.iter().flat_map(|http| &http.servers) {
        let Some((path, place)) = &server.settings.h3.host_key else { continue };
        let shown = path.display();
        let bytes = std::fs::read(path).map_err(|error| {
            let why = bolide_base::errno::describe(&error);
            format!("open() \"{shown}\" failed ({why}) in {place}")
        })?;
        if bytes.is_empty() {
            return Err(format!("\"{shown}\" zero key size in {place}"));
        }
        first = first.or_else(|| Some(bolide_tls::secret_of(&bytes)));
    }
    Ok(first)
}

fn parse_elder(text: &str) -> Option<(u32, bolide_quic::WorkerNumbers)> {
    let mut parts = text.split(':');
    let pid = parts.next()?.parse().ok()?;
    let first = parts.next()?.parse().ok()?;
    let count = parts.next()?.parse().ok()?;
    Some((pid, bolide_quic::WorkerNumbers { first, count }))
}

/// Takes over the sockets that a predecessor names in the environment.
pub(crate) fn adopt(open: &mut OpenSocket) {
    let Ok(list) = std::env::var(SOCKETS) else { return };
    open.inherit();
    for (kind, fd, address) in named_sockets(&list) {
        let Some(listener) = Listener::inherited(fd) else { continue };
        match address {
            SocketAddress::Udp(_) => open.hold(address, listener),
            SocketAddress::Unix(_) if kind == GIVEN => open.accept_given(address, listener),
            SocketAddress::Tcp(_) | SocketAddress::Unix(_) => open.adopt(address, listener),
        }
    }
}

/// The sockets of such a list: the word before the address, the descriptor, the address.
pub(crate) fn named_sockets(list: &str) -> impl Iterator<Item = (&str, i32, SocketAddress)> {
    list.split(';').filter_map(|entry| {
        let (fd, name) = entry.split_once('=')?;
        let (kind, at) = name.split_once(':')?;
        let address = match kind {
            "tcp" => SocketAddress::Tcp(at.parse().ok()?),
            "udp" => SocketAddress::Udp(at.parse().ok()?),
            "unix" | GIVEN => SocketAddress::Unix(at.as_bytes().to_vec()),
            _ => return None,
        };
        Some((kind, fd.parse().ok()?, address))
    })
}

/// The form of an address in such a list.
pub(crate) fn name_of(address: &SocketAddress) -> String {
    match address {
        SocketAddress::Tcp(at) => format!("tcp:{at}"),
        SocketAddress::Udp(at) => format!("udp:{at}"),
        SocketAddress::Unix(path) => format!("unix:{}", String::from_utf8_lossy(path)),
    }
}

/// Starts the binary of the same name again, with our sockets (nginx's USR2), in the directory in
/// which this one was started: relative arguments mean the same.
pub(crate) fn start_successor(
    open: &OpenSocket,
    keys: &bolide_quic::SharedKeys,
    workers: usize,
    pid: &mut PidFile,
    directory: &Path,
    (manager, log): (&ServiceManager, &ControlLog),
) -> Option<Child> {
    let started = try_start(open, keys, workers, pid, directory, manager);
    for (_, listener) in open.all() {
        // No other child process may have them.
        let _ = listener.inherit(InheritedSocket::No);
    }
    started
        .inspect_err(|error| {
            log.write(LogLevel::Alert, &format!("cannot start a new binary: {error}"));
        })
        .ok()
}

/// Takes the pid file's name back when the successor has ended.
pub(crate) fn watch_successor(successor: &mut Option<Child>, pid: &mut PidFile, log: &ControlLog) {
    let ended = successor.as_mut().and_then(|child| child.try_wait().ok().flatten());
    if let Some(status) = ended {
        *successor = None;
        log.write(LogLevel::Alert, &format!("the new binary ended ({status})"));
        let _ = pid.step_back();
    }
}

fn try_start(
    open: &OpenSocket,
    keys: &bolide_quic::SharedKeys,
    workers: usize,
    pid: &mut PidFile,
    directory: &Path,
    manager: &ServiceManager,
) -> std::io::Result<Child> {
    let mut entries = Vec::new();
    for (address, listener) in open.all() {
        let name = match address {
            SocketAddress::Unix(path) if open.is_given(address) => {
                format!("{GIVEN}:{}", String::from_utf8_lossy(path))
            }
            _ => name_of(address),
        };
        listener.inherit(InheritedSocket::Yes)?;
        entries.push(format!("{}={name}", listener.fd().0));
    }
    let (secret, mut writer) = std::io::pipe()?;
    writer.write_all(keys.secret())?;
    drop(writer);
    let mut args = std::env::args_os();
    let program = args.next().unwrap_or_else(|| "bolide".into());
    pid.step_aside()?;
    let elder = format!("{}:{}:{workers}", std::process::id(), keys.first());
    let mut command = Command::new(program);
    command.args(args).env(SOCKETS, entries.join(";")).env(ELDER, elder).stdin(secret);
    command.current_dir(directory);
    manager.introduce(&mut command);
    command.spawn().inspect_err(|_| {
        let _ = pid.step_back();
    })
}
