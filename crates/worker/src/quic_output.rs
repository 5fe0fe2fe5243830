//! Output on QUIC sockets: trains of datagrams, those of several connections with one call.

use std::net::SocketAddr;

use bolide_conf::model::LogLevel;
use bolide_engine::{Due, WorkerCount};
use bolide_io::{DatagramOut, Fd, Io};
use bolide_quic::{QuicOutgoing, Train};

use crate::env::WorkerEnv;
use crate::quic_side::QuicSide;

/// Trains gathered before they are sent.
pub(crate) const TRAINS_MAX: usize = 32;
/// The number that one connection usually has; sending these clears less memory.
const FEW_TRAINS: usize = 2;

impl QuicSide {
    /// Sends the packed trains of one socket.
    pub(crate) fn send_trains<I: Io>(
        &mut self,
        slot: usize,
        outgoing: &mut QuicOutgoing,
        env: &mut WorkerEnv<I>,
    ) {
        if outgoing.is_empty() {
            return;
        }
        // The end of a connection may be among them: see `endings.rs`.
        env.write_logs(Due::Only);
        env.journal_purges();
        let Some(udp) = self.udp.get_mut(slot) else { return outgoing.clear() };
        for train in outgoing.trains() {
            let count = train.bytes.len().div_ceil(train.segment.max(1));
            env.tally.count(WorkerCount::DatagramsOut, count as u64);
            env.tally.count(WorkerCount::DatagramBytesOut, train.bytes.len() as u64);
        }
        let fd = udp.socket.fd();
        let refused_to_cut = match outgoing.trains() {
            few if few.len() <= FEW_TRAINS => send_some::<FEW_TRAINS, I>(&mut env.io, fd, few),
            many => many.chunks(TRAINS_MAX).fold(false, |refused, trains| {
                send_some::<TRAINS_MAX, I>(&mut env.io, fd, trains) | refused
            }),
        };
        outgoing.clear();
        if refused_to_cut && udp.endpoint.give_up_trains() {
            let at = udp.at.map_or_else(String::new, |at| format!(" of {at}"));
            let text = format!("the kernel refuses GSO: datagrams{at} are sent one by one");
            env.log_server(LogLevel::Notice, &text);
        }
    }
}

/// Sends up to `N` trains; returns whether the kernel refuses to cut them. What the socket does not
/// take is lost, as on any network; QUIC retransmits it.
fn send_some<const N: usize, I: Io>(io: &mut I, fd: Fd, trains: &[Train]) -> bool {
    debug_assert!(trains.len() <= N, "the caller cuts batches");
    let mut out = [EMPTY; N];
    for (to, train) in out.iter_mut().zip(trains) {
        *to = DatagramOut {
            bytes: &train.bytes,
            segment: train.segment,
            remote: train.remote,
            local: train.local,
            ecn: train.ecn,
        };
    }
    io.send_datagrams(fd, &out[..trains.len()]).refused_to_cut
}

const EMPTY: DatagramOut<'static> = DatagramOut {
    bytes: &[],
    segment: 0,
    remote: SocketAddr::V4(std::net::SocketAddrV4::new(std::net::Ipv4Addr::UNSPECIFIED, 0)),
    local: None,
    ecn: 0,
};
