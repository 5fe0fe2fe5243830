//! Sockets that `bolide adopt` duplicated from a server of another program, which may take them up
//! again: this process changes nothing about them that the other one would notice.

use std::path::PathBuf;

use bolide_io::listen::{Listener, SocketAddress};

use crate::sockets::OpenSocket;
use crate::upgrade::named_sockets;

/// Names their descriptors, as a predecessor's are named.
pub(crate) const SOCKETS: &str = "BOLIDE_ADOPTED";
/// The pid file, in place of that of the configuration, which is the other server's. Successors
/// have it as well.
pub(crate) const PID_FILE: &str = "BOLIDE_PID_FILE";

/// Whether this process takes over from a server of another program.
pub(crate) fn is_adopting() -> bool {
    std::env::var_os(SOCKETS).is_some()
}

/// The pid file in place of the configuration's, if there is one.
pub(crate) fn pid_file() -> Option<PathBuf> {
    std::env::var_os(PID_FILE).map(PathBuf::from)
}

/// Takes over what the environment names.
pub(crate) fn adopt(open: &mut OpenSocket) {
    let Ok(list) = std::env::var(SOCKETS) else { return };
    bolide_io::process::remove_environment(SOCKETS);
    for (_, fd, address) in named_sockets(&list) {
        // Options of datagram sockets are left alone: joined datagrams, which ours ask for, would
        // break the other server.
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
