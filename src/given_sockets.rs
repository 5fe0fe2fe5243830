//! Socket activation (sd_listen_fds(3)): uses the sockets that a service manager passed, if the
//! configuration names their address; closes all others with a warning.

use bolide_conf::model::Config;
use bolide_io::listen::{Listener, SocketAddress};

use crate::sockets::{OpenSocket, bind_of};

/// Their number.
const COUNT: &str = "LISTEN_FDS";
/// The process that they are for.
const RECEIVER: &str = "LISTEN_PID";
/// Their names, which are not used.
const NAMES: &str = "LISTEN_FDNAMES";
/// The first descriptor.
const FIRST: i32 = 3;
/// LIMIT: passed sockets.
const SOCKETS_MAX: i32 = 1024;

/// Uses the sockets of the environment; returns warnings about unused ones.
pub(crate) fn adopt(open: &mut OpenSocket, config: &Config) -> Vec<String> {
    let own = std::process::id().to_string();
    let is_ours = std::env::var(RECEIVER).is_ok_and(|pid| pid == own);
    let count = std::env::var(COUNT).ok().and_then(|text| text.parse::<i32>().ok());
    for name in [COUNT, RECEIVER, NAMES] {
        bolide_io::process::remove_environment(name);
    }
    let count = count.filter(|_| is_ours).unwrap_or(0).clamp(0, SOCKETS_MAX);
    let listens = config.http.as_ref().map_or(&[][..], |http| &http.listens);
    let wanted: Vec<SocketAddress> = listens.iter().map(bind_of).collect();
    let mut warnings = Vec::new();
    for fd in FIRST..FIRST + count {
        match Listener::given(fd) {
            Some((address, listener)) if wanted.contains(&address) => {
                open.accept_given(address, listener);
            }
            Some((address, _closed)) => warnings.push(format!(
                "the service manager passes a socket for {}, which no \"listen\" names; it is \
                 closed",
                shown(&address)
            )),
            None => warnings.push(format!(
                "the service manager passes descriptor {fd}, which is no listening stream socket; \
                 it is not used"
            )),
        }
    }
    warnings
}

fn shown(address: &SocketAddress) -> String {
    match address {
        SocketAddress::Tcp(at) | SocketAddress::Udp(at) => at.to_string(),
        SocketAddress::Unix(path) => format!("unix:{}", String::from_utf8_lossy(path)),
    }
}
