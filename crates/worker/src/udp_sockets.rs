//! The UDP sockets of a worker. A socket that the configuration no longer names, and every socket
//! of a worker that drains, takes no new connections, ends its connections after their requests,
//! and is closed after the last one.
//!
//! Easiest to break: a connection knows its socket by index, so an index is reused only when no
//! connection has it, and not in the middle of a turn.

use std::net::{IpAddr, SocketAddr};
use std::ops::{Index, IndexMut};
use std::sync::Arc;

use bolide_base::SlabKey;
use bolide_engine::ClientAddress;
use bolide_io::listen::Listener;
use bolide_quic::{ConnId, Endpoint};

use crate::quic_conn::QuicConn;

/// The listen index of a socket that is being removed.
pub(crate) const NO_LISTEN: usize = usize::MAX;

/// A UDP socket with its QUIC endpoint.
#[derive(Debug)]
pub(crate) struct UdpSocket {
    pub(crate) socket: Arc<Listener>,
    /// The address that it is bound to.
    pub(crate) at: Option<SocketAddr>,
    pub(crate) listen: usize,
    pub(crate) endpoint: Endpoint,
    /// The worker's key of each connection, by the endpoint's index.
    pub(crate) keys: Vec<Option<SlabKey<QuicConn>>>,
    /// Whether it listens here; else it waits for its last connections.
    pub(crate) wanted: bool,
}

const fn index(id: ConnId) -> usize {
    (id.to_bits() & 0xffff_ffff) as usize
}

impl UdpSocket {
    /// The local address of a connection whose datagrams are sent to `ip`.
    pub(crate) fn local_end(&self, ip: Option<IpAddr>) -> ClientAddress {
        self.at.map_or(ClientAddress::Unix, |bound| {
            ClientAddress::Inet((ip.unwrap_or_else(|| bound.ip()), bound.port()).into())
        })
    }

    /// The key of an endpoint's connection; perhaps that of an earlier one.
    pub(crate) fn key(&self, id: ConnId) -> Option<SlabKey<QuicConn>> {
        self.keys.get(index(id)).copied().flatten()
    }

    pub(crate) fn set_key(&mut self, id: ConnId, key: Option<SlabKey<QuicConn>>) {
        let index = index(id);
        if self.keys.len() <= index {
            self.keys.resize(index + 1, None);
        }
        self.keys[index] = key;
    }
}

/// The sockets by index.
#[derive(Debug, Default)]
pub(crate) struct UdpSockets {
    pub(crate) places: Vec<Option<UdpSocket>>,
    /// Whether a socket only waits for its last connections.
    pub(crate) is_leaving: bool,
}

impl UdpSockets {
    pub(crate) fn get_mut(&mut self, place: usize) -> Option<&mut UdpSocket> {
        self.places.get_mut(place)?.as_mut()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &UdpSocket> {
        self.places.iter().flatten()
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut UdpSocket> {
        self.places.iter_mut().flatten()
    }

    pub(crate) fn find_mut(
        &mut self,
        mut is_it: impl FnMut(&UdpSocket) -> bool,
    ) -> Option<&mut UdpSocket> {
        self.iter_mut().find(|udp| is_it(udp))
    }

    pub(crate) fn position(&self, mut is_it: impl FnMut(&UdpSocket) -> bool) -> Option<usize> {
        self.places.iter().position(|place| place.as_ref().is_some_and(&mut is_it))
    }

    /// Accepts no new connections on any socket.
    pub(crate) fn leave_all(&mut self) {
        for udp in self.iter_mut() {
            udp.wanted = false;
            udp.endpoint.stop_accepting();
        }
        self.is_leaving = true;
    }

    /// The next free index.
    pub(crate) fn vacancy(&self) -> usize {
        self.places.iter().position(Option::is_none).unwrap_or(self.places.len())
    }

    pub(crate) fn insert(&mut self, udp: UdpSocket) {
        let place = self.vacancy();
        match self.places.get_mut(place) {
            Some(free) => {
                debug_assert!(free.is_none(), "a socket keeps its place");
                *free = Some(udp);
            }
            None => self.places.push(Some(udp)),
        }
    }
}

impl Index<usize> for UdpSockets {
    type Output = UdpSocket;

    fn index(&self, place: usize) -> &UdpSocket {
        self.places[place].as_ref().expect("a socket is there as long as its connections")
    }
}

impl IndexMut<usize> for UdpSockets {
    fn index_mut(&mut self, place: usize) -> &mut UdpSocket {
        self.places[place].as_mut().expect("a socket is there as long as its connections")
    }
}
