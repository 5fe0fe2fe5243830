//! Handshakes that need a certificate found out for their client: the client is made known before,
//! and what could not be found is told afterwards.

use bolide_conf::model::LogLevel;
use bolide_engine::handshake::{HandshakeClient, set_handshake_client as make_known};
use bolide_engine::{ClientAddress, ConnInfo};
use bolide_io::Io;

use crate::log::Subject;
use crate::worker::Worker;
use crate::{Generation, udp};

/// What nginx says of a handshake without a certificate, beside why there is none.
const NONE_FOUND: &str =
    "SSL_do_handshake() failed (SSL: error:0A000179:SSL routines::cert cb error)";

/// Makes the client of a stream socket known.
pub(crate) fn set_connecting_client(generation: &Generation, info: &ConnInfo) {
    let tls = generation.listens.get(info.listen).and_then(|listen| listen.tls.as_ref());
    if tls.is_some_and(bolide_tls::Acceptor::loads) {
        make_known(HandshakeClient { serial: info.serial, remote: info.remote, local: info.local });
    }
}

/// Makes the sender of a datagram known.
pub(crate) fn set_datagram_sender(
    generation: &Generation,
    socket: &udp::UdpSocket,
    from: bolide_quic::QuicArrival,
) {
    let tls = generation.listens.get(socket.listen).and_then(|listen| listen.tls.as_ref());
    if tls.is_some_and(bolide_tls::Acceptor::loads) {
        let local = udp::local_end(socket, from.local);
        make_known(HandshakeClient { serial: 0, remote: ClientAddress::Inet(from.remote), local });
    }
}

impl<I: Io> Worker<I> {
    /// Logs why there was no certificate for a client, if that is so; what else to say then.
    pub(crate) fn complain(&mut self, subject: &Subject) -> Option<String> {
        let why = bolide_tls::take_complaint()?;
        self.log_conn(LogLevel::Error, subject, &format!("{why} while SSL handshaking"));
        Some(NONE_FOUND.to_owned())
    }
}
