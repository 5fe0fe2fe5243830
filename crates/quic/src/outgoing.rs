//! Datagrams on their way to the socket: trains of equal segments in reused buffers.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use quinn_proto::{EcnCodepoint, Transmit};

/// Datagrams to one address that one call sends (with `UDP_SEGMENT` if there are several).
#[derive(Debug)]
pub struct Train {
    /// All datagrams in sequence.
    pub bytes: Vec<u8>,
    /// Bytes of each datagram; the last one may be shorter.
    pub segment: usize,
    /// The destination.
    pub remote: SocketAddr,
    /// Our address, if the socket is bound to all of them.
    pub local: Option<IpAddr>,
    /// The two ECN bits.
    pub ecn: u8,
}

/// The trains of one turn. Clearing keeps the buffers.
#[derive(Debug, Default)]
pub struct QuicOutgoing {
    trains: Vec<Train>,
    used: usize,
}

impl QuicOutgoing {
    /// The trains to send, in order.
    #[must_use]
    pub fn trains(&self) -> &[Train] {
        &self.trains[..self.used]
    }

    /// Whether there is nothing to send.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.used == 0
    }

    /// Forgets the trains, sent or not: the protocol repairs lost datagrams.
    pub fn clear(&mut self) {
        self.used = 0;
    }

    /// Frees all but `keep` buffers; for idle moments.
    pub fn shrink(&mut self, keep: usize) {
        self.trains.truncate(keep.max(self.used));
    }

    /// An empty buffer to fill. Its bytes are sent only after [`Self::commit`].
    pub(crate) fn vacant(&mut self) -> &mut Vec<u8> {
        if self.used == self.trains.len() {
            self.trains.push(Train {
                bytes: Vec::new(),
                segment: 0,
                remote: SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0)),
                local: None,
                ecn: 0,
            });
        }
        let bytes = &mut self.trains[self.used].bytes;
        bytes.clear();
        bytes
    }

    /// Queues the vacant buffer.
    pub(crate) fn commit(&mut self, transmit: &Transmit) {
        let train = &mut self.trains[self.used];
        debug_assert_eq!(train.bytes.len(), transmit.size, "the library fills one buffer");
        train.segment = transmit.segment_size.unwrap_or(transmit.size);
        train.remote = transmit.destination;
        train.local = transmit.src_ip;
        train.ecn = ecn_bits(transmit.ecn);
        self.used += 1;
    }
}

const fn ecn_bits(ecn: Option<EcnCodepoint>) -> u8 {
    match ecn {
        Some(codepoint) => codepoint as u8,
        None => 0,
    }
}
