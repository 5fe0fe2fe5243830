//! A simulated TCP connection between a client and the server.
//!
//! Buffers are bounded in both directions, readiness is edge-triggered like epoll's: a change
//! queues an event, and its flags are determined when it is delivered. Closing with unread bytes
//! resets, and a reset may discard what the client has not read yet.

use std::collections::VecDeque;

use bolide_io::Reset;

use super::{FIRST_SOCKET, Kernel};

/// The result of a client's read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SocketGot {
    /// Bytes.
    Bytes(Vec<u8>),
    /// The server has ended its sending side.
    End,
    /// The connection is dead.
    Reset,
    /// No bytes are available.
    Nothing,
}

/// A connection.
#[derive(Debug)]
pub struct SimSocket {
    /// Its number in the trace.
    pub number: u32,
    /// The port that the client connected to; 0 for a connection to an upstream.
    pub port: u16,
    /// Bytes in transit to the server.
    pub(crate) inbound: VecDeque<u8>,
    pub(crate) inbound_max: usize,
    /// When the server last received or sent bytes.
    pub moved: u64,
    /// For how long the connection was idle when the server closed it.
    pub idled: u64,
    /// Bytes that the server read before it shut its sending side down.
    pub taken: u64,
    /// The client has shut its sending side down.
    pub(crate) fin: bool,
    /// The client has closed: bytes from the server kill the connection.
    pub(crate) client_gone: bool,
    /// The connection is dead for the server.
    pub(crate) dead: bool,
    pub(crate) outbound: VecDeque<u8>,
    pub(crate) outbound_max: usize,
    /// A send was short: room must be reported.
    pub(crate) no_space: bool,
    /// The server announced that it ends its sending side in this turn.
    pub(crate) awaits_end: bool,
    /// The last bytes of the server did not fit; it does not wait for room to end a connection.
    pub(crate) lacks_room_to_end: bool,
    /// The server has shut its sending side down.
    pub(crate) shut: bool,
    /// The server has closed.
    pub(crate) closed: Option<Reset>,
    /// The connection is dead for the client.
    pub(crate) reset: bool,
    /// The worker that watches, and its token.
    pub(crate) watch: Option<(usize, u64)>,
    /// A change that was not reported to the worker so far.
    pub(crate) edge: bool,
    /// The network or the kernel broke it: the server owes nothing.
    pub killed: bool,
    /// The error of a refused connect.
    pub(crate) refused: Option<i32>,
}

impl SimSocket {
    pub(crate) fn new(number: u32, port: u16, inbound_max: usize, outbound_max: usize) -> Self {
        Self {
            number,
            port,
            inbound: VecDeque::new(),
            inbound_max,
            moved: 0,
            idled: 0,
            taken: 0,
            fin: false,
            client_gone: false,
            dead: false,
            outbound: VecDeque::new(),
            outbound_max,
            no_space: false,
            awaits_end: false,
            lacks_room_to_end: false,
            shut: false,
            closed: None,
            reset: false,
            watch: None,
            edge: false,
            killed: false,
            refused: None,
        }
    }

    /// Whether it is open on both sides.
    pub(crate) const fn is_whole(&self) -> bool {
        self.closed.is_none() && !self.client_gone && !self.dead && !self.reset
    }

    /// Room in the send buffer.
    pub(crate) fn room(&self) -> usize {
        self.outbound_max.saturating_sub(self.outbound.len())
    }

    pub(crate) fn is_writable(&self) -> bool {
        self.dead || self.room() * 3 >= self.outbound_max
    }

    pub(crate) fn is_readable(&self) -> bool {
        !self.inbound.is_empty() || self.fin || self.dead
    }

    /// The client writes. Returns how many bytes were accepted, or `None` if the connection is
    /// dead.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Option<usize> {
        if self.reset || self.dead {
            return None;
        }
        if self.closed.is_some() {
            self.receive_reset();
            return Some(bytes.len());
        }
        let n = bytes.len().min(self.inbound_max.saturating_sub(self.inbound.len()));
        self.inbound.extend(&bytes[..n]);
        self.edge |= n > 0;
        Some(n)
    }

    /// The client reads.
    pub(crate) fn read(&mut self, max: usize) -> SocketGot {
        if self.reset {
            return SocketGot::Reset;
        }
        if self.outbound.is_empty() {
            return if self.shut || self.closed.is_some() {
                SocketGot::End
            } else {
                SocketGot::Nothing
            };
        }
        let n = max.min(self.outbound.len());
        let (first, second) = self.outbound.as_slices();
        let split = n.min(first.len());
        let bytes = [&first[..split], &second[..n - split]].concat();
        self.outbound.drain(..n);
        if self.no_space && self.is_writable() {
            self.no_space = false;
            self.edge = true;
        }
        SocketGot::Bytes(bytes)
    }

    /// The client shuts its sending side down.
    pub(crate) fn finish(&mut self) {
        if !self.fin && !self.reset {
            self.fin = true;
            self.edge = true;
        }
    }

    /// The client closes; by a reset if `rude`.
    pub(crate) fn leave(&mut self, rude: bool) {
        self.client_gone = true;
        // Unread bytes turn a close into a reset, on the client's side too.
        if rude || !self.outbound.is_empty() {
            self.dead = true;
            self.edge = true;
            self.outbound.clear();
        } else {
            self.finish();
        }
    }

    /// The server reads.
    pub(crate) fn take(&mut self, into: &mut [u8]) -> usize {
        let n = into.len().min(self.inbound.len());
        let (first, second) = self.inbound.as_slices();
        let split = n.min(first.len());
        into[..split].copy_from_slice(&first[..split]);
        into[split..n].copy_from_slice(&second[..n - split]);
        self.inbound.drain(..n);
        if !self.shut {
            self.taken += n as u64;
        }
        n
    }

    /// Whether an event is pending for this worker.
    pub(super) fn is_due_to(&self, worker: usize) -> bool {
        self.edge && self.is_watched_by(worker)
    }

    pub(super) fn is_watched_by(&self, worker: usize) -> bool {
        self.watch.is_some_and(|(watcher, _)| watcher == worker)
    }

    /// The server closes. Unread or later bytes become a reset for the client.
    pub(crate) fn close(&mut self, how: Reset) {
        self.closed = Some(how);
        self.edge = false;
        self.watch = None;
        if how == Reset::Yes || !self.inbound.is_empty() {
            self.receive_reset();
        }
    }

    fn receive_reset(&mut self) {
        self.reset = true;
        self.outbound.clear();
    }
}

/// The stream sockets of a run by ascending descriptors; some numbers belong to sockets of another
/// kind. Closed sockets stay for the checks at the end.
#[derive(Debug, Default)]
pub(crate) struct SocketTable(Vec<Option<SimSocket>>);

impl SocketTable {
    fn index(fd: i32) -> Option<usize> {
        usize::try_from(fd.checked_sub(FIRST_SOCKET)?).ok()
    }

    /// Adds a socket with the highest descriptor so far.
    pub(super) fn insert(&mut self, fd: i32, socket: SimSocket) {
        let index = Self::index(fd).expect("the numbers of sockets begin at FIRST_SOCKET");
        assert!(index >= self.0.len(), "a descriptor is given once");
        self.0.resize_with(index, || None);
        self.0.push(Some(socket));
    }

    pub(crate) fn get(&self, fd: i32) -> Option<&SimSocket> {
        self.0.get(Self::index(fd)?)?.as_ref()
    }

    pub(crate) fn get_mut(&mut self, fd: i32) -> Option<&mut SimSocket> {
        self.0.get_mut(Self::index(fd)?)?.as_mut()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (i32, &SimSocket)> {
        (FIRST_SOCKET..).zip(&self.0).filter_map(|(fd, socket)| Some((fd, socket.as_ref()?)))
    }

    pub(super) fn values_mut(&mut self) -> impl Iterator<Item = &mut SimSocket> {
        self.0.iter_mut().flatten()
    }
}

impl Kernel {
    /// The server announced that it ends its sending side in this turn.
    pub(crate) fn expect_end(&mut self, fd: i32) {
        if let Some(socket) = self.sockets.get_mut(fd) {
            socket.awaits_end = true;
            socket.lacks_room_to_end = false;
        }
    }

    /// The socket has not taken all of the bytes that were to be the last ones.
    pub(crate) fn refuse_end(&mut self, fd: i32) {
        if let Some(socket) = self.sockets.get_mut(fd) {
            socket.lacks_room_to_end = true;
        }
    }

    /// Checks that `worker` has ended the sides that it announced.
    pub(super) fn check_ends(&mut self, worker: usize) {
        for fd in &self.worker_states[worker].watched {
            let Some(socket) = self.sockets.get(*fd) else { continue };
            if socket.is_watched_by(worker)
                && socket.awaits_end
                && !socket.shut
                && socket.closed.is_none()
            {
                self.violations.push(format!("#{} was to end in this turn", socket.number));
            }
        }
    }
}
