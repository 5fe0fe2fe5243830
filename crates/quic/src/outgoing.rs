//! Datagrams on their way to the socket: trains of equal segments in buffers that are used again.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use quinn_proto::{EcnCodepoint, Transmit};

/// Datagrams to one address, to be sent with one call (`UDP_SEGMENT` when there are several).
#[derive(Debug)]
pub struct Train {
    /// All datagrams, one behind the other.
    pub bytes: Vec<u8>,
    /// Bytes of each datagram; the last may be shorter.
    pub segment: usize,
    /// Where to.
    pub remote: SocketAddr,
    /// From which of our addresses, when the socket is bound to all of them.
    pub local: Option<IpAddr>,
    /// The two ECN bits.
    pub ecn: u8,
}

/// Trains of one turn. Clearing keeps the buffers.
#[derive(Debug, Default)]
pub struct QuicOutgoing {
    trains: Vec<Train>,
    used: usize,
}

impl QuicOutgoing {
    /// What is to be sent, in order.
    #[must_use]
    pub fn trains(&self) -> &[Train] {
        &self.trains[..self.used]
    }

    /// Whether nothing is to be sent.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.used == 0
    }

    /// Forgets what was sent, or given up on: the protocol repairs lost datagrams.
    pub fn clear(&mut self) {
        self.used = 0;
    }

    /// Gives back the memory of all but `keep` buffers; for idle moments.
    pub fn shrink(&mut self, keep: usize) {
        self.trains.truncate(keep.max(self.used));
    }

    /// An empty buffer to fill; what is in it leaves only after [`Self::commit`].
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

    /// Queues what stands in the vacant buffer.
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
