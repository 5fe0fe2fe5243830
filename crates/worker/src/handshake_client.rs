//! Notes the client before handshake steps, for certificates whose names have variables.

use bolide_engine::handshake::{HandshakeClient, set_handshake_client as make_known};
use bolide_engine::{ClientAddress, ConnInfo};

use crate::generation::Generation;
use crate::udp_sockets::UdpSocket;

/// Records the client of a stream socket.
pub(crate) fn set_connecting_client(generation: &Generation, info: &ConnInfo) {
    let tls = generation.listens.get(info.listen).and_then(|listen| listen.tls.as_ref());
    if tls.is_some_and(bolide_tls::Acceptor::loads) {
        make_known(HandshakeClient { serial: info.serial, remote: info.remote, local: info.local });
    }
}

/// Records the sender of a datagram.
pub(crate) fn set_datagram_sender(
    generation: &Generation,
    socket: &UdpSocket,
    from: bolide_quic::QuicArrival,
) {
    let tls = generation.listens.get(socket.listen).and_then(|listen| listen.tls.as_ref());
    if tls.is_some_and(bolide_tls::Acceptor::loads) {
        let local = socket.local_end(from.local);
        make_known(HandshakeClient { serial: 0, remote: ClientAddress::Inet(from.remote), local });
    }
}
