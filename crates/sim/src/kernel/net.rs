//! The simulated UDP network: datagrams in transit.
//!
//! A datagram is lost, duplicated, delayed, has a flipped bit, or is dropped because it exceeds the
//! path MTU. Clients are at hosts whose public address a NAT router may change at any time. At the
//! server a datagram is queued for the worker that its connection id names, as the kernel's BPF
//! program does, and now and then for another one.

use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, SocketAddr};

use bolide_io::{DatagramIn, DatagramOut, DatagramsSent, Fd, UdpBatch};

use super::Kernel;
use crate::chance::Chance;
use crate::net_conditions::NetConditions;
use crate::time::MILLI;

/// The server's address.
const SERVER: [u8; 4] = [198, 51, 100, 1];
/// Queued datagrams of one client, at most.
const INBOX_MAX: usize = 4096;
/// Bytes of the largest batch (GRO).
const MESSAGE_MAX: usize = 64 * 1024;

/// A datagram.
#[derive(Clone, Debug)]
pub struct Datagram {
    /// The source address, as the receiver sees it.
    pub from: SocketAddr,
    /// The destination address.
    pub to: SocketAddr,
    /// The two ECN bits.
    pub ecn: u8,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

/// One UDP socket of the server.
#[derive(Debug)]
struct Port {
    number: u16,
    worker: usize,
    fd: i32,
    queue: VecDeque<Datagram>,
    /// The token of its readiness.
    token: Option<u64>,
    is_open: bool,
    /// When it refused GSO.
    refused_at: Option<u64>,
}

/// A client's host.
#[derive(Debug)]
struct Host {
    at: SocketAddr,
    inbox: VecDeque<Datagram>,
    /// The number of its address changes.
    moves: u16,
}

/// The network.
#[derive(Debug)]
pub struct Net {
    /// The conditions of the network.
    pub conditions: NetConditions,
    /// The keys of the server's connection ids.
    pub keys: Option<bolide_quic::SharedKeys>,
    pub(super) chance: Chance,
    ports: Vec<Port>,
    hosts: Vec<Host>,
    /// By time of arrival and order of sending.
    in_flight: BTreeMap<(u64, u64), Datagram>,
    sent: u64,
    /// The network is down until this time.
    outage_until: u64,
    /// Crashes of the server.
    pub deaths: u64,
    /// Datagrams of clients, for replays.
    pub samples: Vec<Vec<u8>>,
}

impl Net {
    pub(super) const fn new(chance: Chance) -> Self {
        Self {
            conditions: NetConditions::ideal(),
            keys: None,
            chance,
            ports: Vec::new(),
            hosts: Vec::new(),
            in_flight: BTreeMap::new(),
            sent: 0,
            outage_until: 0,
            deaths: 0,
            samples: Vec::new(),
        }
    }

    /// Whether `worker` has datagrams waiting at a socket that it watches.
    pub(super) fn is_readable(&self, worker: usize) -> bool {
        self.readable(worker).next().is_some()
    }

    /// The tokens of sockets at which datagrams wait for `worker`.
    pub(super) fn readable(&self, worker: usize) -> impl Iterator<Item = u64> + '_ {
        let waits = move |port: &&Port| port.worker == worker && !port.queue.is_empty();
        self.ports.iter().filter(waits).filter_map(|port| port.token)
    }

    pub(super) fn has_socket(&self, fd: i32) -> bool {
        self.ports.iter().any(|port| port.fd == fd)
    }

    pub(super) fn watch(&mut self, fd: i32, token: u64) {
        if let Some(port) = self.ports.iter_mut().find(|port| port.fd == fd) {
            port.token = Some(token);
        }
    }

    /// The socket is closed, and its descriptor may be reused.
    pub(super) fn close(&mut self, fd: i32) {
        for port in self.ports.iter_mut().filter(|port| port.fd == fd) {
            (port.is_open, port.fd, port.token) = (false, -1, None);
            port.queue.clear();
        }
    }

    /// The server has crashed: its sockets are closed.
    pub(super) fn kill_server(&mut self) {
        self.ports.clear();
    }

    /// When the next datagram arrives.
    #[must_use]
    pub fn next_arrival(&self) -> Option<u64> {
        self.in_flight.keys().next().map(|(at, _)| *at)
    }

    /// Sends a datagram, or loses it.
    fn send(&mut self, now: u64, datagram: Datagram) {
        let conditions = self.conditions;
        let is_lost = datagram.bytes.len() > conditions.mtu
            || now < self.outage_until
            || self.chance.one_in(conditions.loss_in);
        if is_lost {
            return;
        }
        if self.chance.one_in(conditions.duplicate_in) {
            self.launch(now, datagram.clone());
        }
        self.launch(now, datagram);
    }

    fn launch(&mut self, now: u64, mut datagram: Datagram) {
        let conditions = self.conditions;
        let bytes = &mut datagram.bytes;
        if self.chance.one_in(conditions.bit_flip_in) && !bytes.is_empty() {
            let at = self.chance.index(bytes.len());
            bytes[at] ^= 1 << self.chance.below(8);
        }
        if self.chance.one_in(conditions.truncate_in) && !bytes.is_empty() {
            bytes.truncate(self.chance.index(bytes.len()));
        }
        let (min, max) = conditions.latency;
        let mut latency = self.chance.between(min, max);
        if self.chance.one_in(conditions.reorder_in) {
            latency += self.chance.below(300 * MILLI);
        }
        self.sent += 1;
        self.in_flight.insert((now + latency, self.sent), datagram);
    }

    /// Queues a datagram at a socket of the server.
    fn arrive(&mut self, datagram: Datagram) {
        let number = datagram.to.port();
        let conditions = self.conditions;
        let is_there = |port: &Port| port.number == number && port.is_open;
        let count = self.ports.iter().filter(|port| is_there(port)).count();
        if count == 0 {
            return;
        }
        let owner = self.keys.as_ref().and_then(|keys| {
            bolide_quic::owner(&datagram.bytes, keys, u8::try_from(count).unwrap_or(u8::MAX))
        });
        let by_hash = usize::from(datagram.from.port()) % count;
        let mut wanted = owner.map_or(by_hash, usize::from);
        // All first datagrams of a connection reach the same worker.
        if owner.is_some() && self.chance.one_in(conditions.misroute_in) {
            wanted = self.chance.index(count);
        }
        let mut ports = self.ports.iter_mut().filter(|port| is_there(port));
        if let Some(port) = ports.nth(wanted)
            && port.queue.len() < conditions.queue_max
        {
            port.queue.push_back(datagram);
        }
    }

    /// Gives a host another address, as a NAT router or a migration does.
    fn readdress(host: &mut Host, number: usize, chance: &mut Chance) {
        host.moves += 1;
        let keeps_ip = chance.one_in(2);
        let ip = if keeps_ip { host.at.ip() } else { ip_of(number, host.moves) };
        host.at = SocketAddr::new(ip, 20_000 + host.moves * 7 + number as u16 % 7);
    }
}

fn ip_of(host: usize, moves: u16) -> IpAddr {
    IpAddr::from([10, moves as u8, (host >> 8) as u8, host as u8])
}

impl Kernel {
    /// Registers the UDP socket `fd` of `worker`.
    pub fn add_udp_port(&mut self, number: u16, worker: usize, fd: Fd) {
        let queue = VecDeque::new();
        let port =
            Port { number, worker, fd: fd.0, queue, token: None, is_open: true, refused_at: None };
        self.net.ports.push(port);
    }

    /// Adds a host for a client.
    pub fn add_host(&mut self) -> usize {
        let number = self.net.hosts.len();
        let at = SocketAddr::new(ip_of(number, 0), 10_000 + number as u16);
        self.net.hosts.push(Host { at, inbox: VecDeque::new(), moves: 0 });
        number
    }

    /// The server's address with this port.
    #[must_use]
    pub fn server_at(port: u16) -> SocketAddr {
        SocketAddr::from((SERVER, port))
    }

    /// The client at `host` sends a datagram to a port of the server.
    pub fn client_datagram(&mut self, host: usize, port: u16, ecn: u8, bytes: &[u8]) {
        let from = self.net.hosts[host].at;
        if from.port() == 0 {
            return;
        }
        if self.net.samples.len() < 64 {
            self.net.samples.push(bytes.to_vec());
        }
        let datagram = Datagram { from, to: Self::server_at(port), ecn, bytes: bytes.to_vec() };
        self.trace(|| format!("host {host} sends {} bytes", bytes.len()));
        self.net.send(self.nanos, datagram);
    }

    /// The next datagram for the client at `host`.
    pub fn client_take(&mut self, host: usize) -> Option<Datagram> {
        self.net.hosts[host].inbox.pop_front()
    }

    /// Whether a datagram waits for the client at `host`.
    #[must_use]
    pub fn has_datagrams(&self, host: usize) -> bool {
        !self.net.hosts[host].inbox.is_empty()
    }

    /// The client at `host` has left.
    pub fn abandon_host(&mut self, host: usize) {
        let host = &mut self.net.hosts[host];
        host.at = SocketAddr::from(([0, 0, 0, 0], 0));
        host.inbox.clear();
    }

    /// The client at `host` gets another address.
    pub fn move_host(&mut self, host: usize) {
        Net::readdress(&mut self.net.hosts[host], host, &mut self.net.chance);
        self.trace(|| format!("host {host} has another address"));
    }

    /// Delivers the datagrams that are due. Returns whether there were any.
    pub fn deliver(&mut self) -> bool {
        let mut any = false;
        while let Some(entry) = self.net.in_flight.first_entry() {
            if entry.key().0 > self.nanos {
                break;
            }
            let datagram = entry.remove();
            any = true;
            if datagram.to.ip() == IpAddr::from(SERVER) {
                self.net.arrive(datagram);
                continue;
            }
            let hosts = &mut self.net.hosts;
            if let Some(host) = hosts.iter_mut().find(|host| host.at == datagram.to)
                && host.inbox.len() < INBOX_MAX
            {
                host.inbox.push_back(datagram);
            }
        }
        any
    }

    /// Draws outages and address changes.
    pub fn apply_net_conditions(&mut self) {
        let conditions = self.net.conditions;
        if self.net.chance.one_in(conditions.outage_in) {
            let gap = self.net.chance.below(3000 * MILLI);
            self.net.outage_until = self.nanos + gap;
            self.trace(|| format!("the network carries nothing for {gap} ns"));
        }
        if self.net.chance.one_in(conditions.rebind_in) && !self.net.hosts.is_empty() {
            let host = self.net.chance.index(self.net.hosts.len());
            if self.net.hosts[host].at.port() != 0 {
                self.move_host(host);
            }
        }
    }

    /// A worker reads a UDP socket.
    pub(crate) fn receive_datagrams(&mut self, fd: Fd, batch: &mut UdpBatch) -> usize {
        batch.clear();
        let conditions = self.net.conditions;
        let Some(port) = self.net.ports.iter_mut().find(|port| port.fd == fd.0) else {
            self.violations.push(format!("receive on unknown UDP descriptor {}", fd.0));
            return 0;
        };
        if self.net.chance.one_in(conditions.spurious_read_in) {
            return 0;
        }
        let mut count = 0;
        while count < UdpBatch::CAPACITY {
            let Some(first) = port.queue.pop_front() else { break };
            let stride = first.bytes.len();
            let mut bytes = first.bytes;
            // GRO merges equal datagrams of one sender; the last may be shorter.
            while conditions.merges_batches && bytes.len() % stride.max(1) == 0 && stride > 0 {
                let is_alike = |next: &Datagram| {
                    (next.from, next.ecn) == (first.from, first.ecn)
                        && !next.bytes.is_empty()
                        && next.bytes.len() <= stride
                        && bytes.len() + next.bytes.len() <= MESSAGE_MAX
                };
                let Some(next) = port.queue.front().filter(|next| is_alike(next)) else { break };
                bytes.extend_from_slice(&next.bytes);
                port.queue.pop_front();
            }
            let local = Some(IpAddr::from(SERVER));
            let message = DatagramIn { remote: first.from, local, ecn: first.ecn, len: 0, stride };
            batch.push(message, &bytes);
            count += 1;
        }
        let (worker, number) = (port.worker, port.number);
        self.trace(|| format!("worker {worker} reads {count} messages at {number}"));
        count
    }

    /// A worker writes to a UDP socket.
    pub(crate) fn send_datagrams(&mut self, fd: Fd, out: &[DatagramOut<'_>]) -> DatagramsSent {
        let mut sent = DatagramsSent::default();
        if self.is_dead {
            return sent;
        }
        let Some(port) = self.net.ports.iter_mut().find(|port| port.fd == fd.0) else {
            self.violations.push(format!("send on unknown UDP descriptor {}", fd.0));
            return sent;
        };
        let from = SocketAddr::from((SERVER, port.number));
        let worker = port.worker;
        let is_train = |message: &DatagramOut<'_>| message.segment < message.bytes.len();
        if self.net.conditions.refuses_gso && out.iter().any(is_train) {
            sent.refused_to_cut = true;
            let first = *port.refused_at.get_or_insert(self.nanos);
            // Batches of the same turn were built before the refusal.
            if first != self.nanos {
                self.violations.push(format!("a train for the kernel that refused one at {first}"));
            }
        }
        for message in out {
            if self.net.chance.one_in(self.net.conditions.send_full_in) {
                self.trace(|| format!("worker {worker}: no room for datagrams"));
                return sent;
            }
            sent.taken += 1;
            if message.bytes.is_empty() || message.segment == 0 {
                self.violations.push("an empty datagram is sent".to_owned());
                continue;
            }
            let (len, segment) = (message.bytes.len(), message.segment);
            self.trace(|| format!("worker {worker} sends {len} bytes by {segment}"));
            for bytes in message.bytes.chunks(segment) {
                let bytes = bytes.to_vec();
                let datagram = Datagram { from, to: message.remote, ecn: message.ecn, bytes };
                self.net.send(self.nanos, datagram);
            }
        }
        sent
    }
}
