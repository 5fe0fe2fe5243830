//! Sockets that `bolide adopt` duplicated from another program's server, which may use them again:
//! this process changes nothing about them that the other one would notice.

use std::path::PathBuf;

use bolide_io::listen::{Listener, SocketAddress};

use crate::sockets::OpenSocket;
use crate::upgrade::named_sockets;

/// The environment variable with their descriptors, in the format for predecessors.
pub(crate) const SOCKETS: &str = "BOLIDE_ADOPTED";
/// The environment variable with the pid file that replaces the configured one, which belongs to
/// the other server. Successors inherit it.
pub(crate) const PID_FILE: &str = "BOLIDE_PID_FILE";

/// Whether this process takes over from a server of another program.
pub(crate) fn is_adopting() -> bool {
    std::env::var_os(SOCKETS).is_some()
}

/// The pid file that replaces the configured one, if there is one.
pub(crate) fn pid_file() -> Option<PathBuf> {
    std::env::var_os(PID_FILE).map(PathBuf::from)
}

/// Uses the sockets that the environment names.
pub(crate) fn adopt(open: &mut OpenSocket) {
    let Ok(list) = std::env::var(SOCKETS) else { return };
    bolide_io::process::remove_environment(SOCKETS);
    for (_, fd, address) in named_sockets(&list) {
        // Options of datagram sockets are left unchanged: GRO, which ours use, would break the
        // other server.
        let listener = match address {
            SocketAddress::Udp(_) => Listener::inherited(fd),
            SocketAddress::Tcp(_) | SocketAddress::Unix(_) => {
                Listener::given(fd).map(|(_, listener)| listener)
            }
        };
        if let Some(listener) = listener {
            open.adopt(address, listener);
        }
    }
}
