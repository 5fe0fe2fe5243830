//! Tokens: the owner of a readiness report or deadline, in one word.

use bolide_base::SlabKey;

use crate::exchange_table::ActiveExchange;
use crate::heartbeat::Doing;
use crate::name_sockets::NameSocket;
use crate::quic_conn::QuicConn;
use crate::tcp::TcpConn;
use crate::upstream_link::UpstreamLink;

/// The owner of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PollToken {
    /// The mailbox's bell.
    Mail,
    /// A listening TCP or unix socket: its index in the worker's list.
    Listener(u32),
    /// A UDP socket: its index in the worker's list.
    Udp(u32),
    /// A TCP or unix connection.
    Tcp(SlabKey<TcpConn>),
    /// A QUIC connection.
    Quic(SlabKey<QuicConn>),
    /// An exchange that asked to be woken.
    Exchange(SlabKey<ActiveExchange>),
    /// A lookup at other nodes for an exchange.
    Asked(SlabKey<ActiveExchange>),
    /// A connection to an origin.
    Link(SlabKey<UpstreamLink>),
    /// The fetch in this slot.
    Fetch(u32),
    /// A QUIC connection whose client waits for an upstream.
    Ping(SlabKey<QuicConn>),
    /// Idle connections to upstream servers.
    Links,
    /// An exchange whose client has to send more of a request body.
    Body(SlabKey<ActiveExchange>),
    /// An exchange whose upstream waits for the client to take some of the response.
    Stall(SlabKey<ActiveExchange>),
    /// Requests that a reload left running.
    Overtime,
    /// Paused listeners.
    Accepting,
    /// Stalled streams of a TCP or unix connection.
    LateTcp(SlabKey<TcpConn>),
    /// Stalled streams of a QUIC connection.
    LateQuic(SlabKey<QuicConn>),
    /// A socket to a name server.
    Names(NameSocket),
    /// The resolver at this index.
    NamesDue(u32),
    /// Lookups of upstream servers with `resolve`.
    ServersDue,
    /// Changes below watched directories.
    Changes,
}

/// The top byte of a generation holds the kind; 24 bits of generation are left, so a key could
/// alias only after one slot was reused sixteen million times while a report is in flight.
const KIND_SHIFT: u32 = 56;
const BITS: u64 = (1 << KIND_SHIFT) - 1;

impl PollToken {
    pub(crate) const fn pack(self) -> u64 {
        let (kind, bits) = match self {
            Self::Mail => (0, 0),
            Self::Listener(index) => (1, index as u64),
            Self::Udp(index) => (2, index as u64),
            Self::Tcp(key) => (3, key.to_bits()),
            Self::Quic(key) => (4, key.to_bits()),
            Self::Exchange(key) => (5, key.to_bits()),
            Self::Link(key) => (6, key.to_bits()),
            Self::Fetch(slot) => (7, slot as u64),
            Self::Body(key) => (8, key.to_bits()),
            Self::Links => (9, 0),
            Self::Ping(key) => (10, key.to_bits()),
            Self::Stall(key) => (11, key.to_bits()),
            Self::Overtime => (12, 0),
            Self::Accepting => (13, 0),
            Self::LateTcp(key) => (14, key.to_bits()),
            Self::LateQuic(key) => (15, key.to_bits()),
            Self::Names(socket) => (16, socket.to_bits()),
            Self::NamesDue(place) => (17, place as u64),
            Self::Changes => (18, 0),
            Self::ServersDue => (19, 0),
            Self::Asked(key) => (20, key.to_bits()),
        };
        debug_assert!(bits <= BITS, "generations of slabs leave the top byte free");
        kind << KIND_SHIFT | bits & BITS
    }

    /// The activity of a worker that handles a report with this token.
    pub(crate) const fn report_doing(self) -> Doing {
        match self {
            Self::Mail => Doing::Mail,
            Self::Listener(_) | Self::Accepting => Doing::Accepting,
            Self::Udp(_) | Self::Quic(_) | Self::Ping(_) => Doing::Datagrams,
            Self::Tcp(_) | Self::LateTcp(_) | Self::LateQuic(_) => Doing::Reading,
            Self::Link(_) | Self::Links | Self::Fetch(_) => Doing::Origins,
            Self::Names(_) | Self::NamesDue(_) | Self::ServersDue => Doing::Origins,
            Self::Changes => Doing::Beginning,
            Self::Exchange(_) | Self::Asked(_) => Doing::Reading,
            Self::Body(_) | Self::Stall(_) | Self::Overtime => Doing::Reading,
        }
    }

    /// The activity of a worker that handles a deadline with this token.
    pub(crate) const fn deadline_doing(self) -> Doing {
        match self {
            Self::Tcp(_) | Self::LateTcp(_) => Doing::ConnDeadline,
            Self::Quic(_) | Self::Ping(_) | Self::LateQuic(_) => Doing::QuicDeadline,
            Self::Exchange(_) | Self::Asked(_) => Doing::RequestDeadline,
            Self::Body(_) | Self::Stall(_) => Doing::RequestDeadline,
            Self::Link(_) | Self::Links | Self::Fetch(_) => Doing::OriginDeadline,
            Self::Names(_) | Self::NamesDue(_) | Self::ServersDue => Doing::OriginDeadline,
            Self::Mail | Self::Listener(_) | Self::Udp(_) => Doing::OtherDeadline,
            Self::Overtime | Self::Accepting | Self::Changes => Doing::OtherDeadline,
        }
    }

    pub(crate) fn unpack(word: u64) -> Option<Self> {
        let bits = word & BITS;
        Some(match word >> KIND_SHIFT {
            0 => Self::Mail,
            1 => Self::Listener(bits as u32),
            2 => Self::Udp(bits as u32),
            3 => Self::Tcp(SlabKey::from_bits(bits)),
            4 => Self::Quic(SlabKey::from_bits(bits)),
            5 => Self::Exchange(SlabKey::from_bits(bits)),
            6 => Self::Link(SlabKey::from_bits(bits)),
            7 => Self::Fetch(bits as u32),
            8 => Self::Body(SlabKey::from_bits(bits)),
            9 => Self::Links,
            10 => Self::Ping(SlabKey::from_bits(bits)),
            11 => Self::Stall(SlabKey::from_bits(bits)),
            12 => Self::Overtime,
            13 => Self::Accepting,
            14 => Self::LateTcp(SlabKey::from_bits(bits)),
            15 => Self::LateQuic(SlabKey::from_bits(bits)),
            16 => Self::Names(NameSocket::from_bits(bits)),
            17 => Self::NamesDue(bits as u32),
            18 => Self::Changes,
            19 => Self::ServersDue,
            20 => Self::Asked(SlabKey::from_bits(bits)),
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::PollToken;
    use bolide_base::SlabKey;

    #[test]
    fn tokens_survive_packing() {
        for token in [
            PollToken::Mail,
            PollToken::Listener(7),
            PollToken::Udp(9),
            PollToken::Tcp(SlabKey::from_bits(0x12_0000_0003)),
            PollToken::Quic(SlabKey::from_bits(5)),
            PollToken::Exchange(SlabKey::from_bits(6)),
            PollToken::Link(SlabKey::from_bits(7)),
            PollToken::Fetch(8),
            PollToken::Links,
            PollToken::Ping(SlabKey::from_bits(10)),
            PollToken::Body(SlabKey::from_bits(9)),
            PollToken::Stall(SlabKey::from_bits(11)),
            PollToken::Overtime,
            PollToken::Accepting,
            PollToken::LateTcp(SlabKey::from_bits(13)),
            PollToken::LateQuic(SlabKey::from_bits(14)),
            PollToken::NamesDue(15),
            PollToken::ServersDue,
            PollToken::Asked(SlabKey::from_bits(16)),
            PollToken::Changes,
        ] {
            assert_eq!(PollToken::unpack(token.pack()), Some(token));
        }
        assert_eq!(PollToken::unpack(u64::MAX), None);
    }
}
