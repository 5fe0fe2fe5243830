//! One connection as the kernel between client and server sees it.
//!
//! Buffers are bounded in both directions, readiness is edge-triggered like epoll's: a change
//! queues an event, and its flags are determined when it is delivered. Closing with unread bytes
//! resets, and a reset may discard what the client has not read yet.

use std::collections::VecDeque;

use bolide_io::Reset;

use super::{FIRST_SOCKET, Kernel};

/// What a client gets when it reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SocketGot {
    /// Bytes.
    Bytes(Vec<u8>),
    /// The server will send no more.
    End,
    /// The connection is dead.
    Reset,
    /// Nothing yet.
    Nothing,
}

/// A connection.
#[derive(Debug)]
pub struct SimSocket {
    /// Its number in the story.
    pub number: u32,
    /// The port that the client called.
    pub port: u16,
    /// Bytes on their way to the server.
    pub(crate) inbound: VecDeque<u8>,
    pub(crate) inbound_max: usize,
    /// When the server last moved bytes, either way.
    pub moved: u64,
    /// For how long it had moved none when it closed.
    pub idled: u64,
    /// Bytes that the server has read before it ended its side.
    pub taken: u64,
    /// The client will send no more.
    pub(crate) fin: bool,
    /// The client has closed both ways: what the server still sends kills the connection.
    pub(crate) client_gone: bool,
    /// The server finds the connection dead.
    pub(crate) dead: bool,
    pub(crate) outbound: VecDeque<u8>,
    pub(crate) outbound_max: usize,
    /// A send was short, so room is to be reported.
    pub(crate) no_space: bool,
    /// Its last bytes wait for the end of the server's side.
    pub(crate) awaits_end: bool,
    /// The server has shut its side down.
    pub(crate) shut: bool,
    /// The server has closed.
    pub(crate) closed: Option<Reset>,
    /// The client finds the connection dead.
    pub(crate) reset: bool,
    /// Who watches, and under which token.
    pub(crate) watch: Option<(usize, u64)>,
    /// Something changed that its watcher has not been told of.
    pub(crate) edge: bool,
    /// The kernel itself killed it: nothing is owed.
    pub killed: bool,
    /// A call of a worker without an answer, and the error number.
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
            shut: false,
            closed: None,
            reset: false,
            watch: None,
            edge: false,
            killed: false,
            refused: None,
        }
    }

    /// Whether it is neither ended nor broken.
    pub(crate) const fn is_whole(&self) -> bool {
        self.closed.is_none() && !self.client_gone && !self.dead && !self.reset
    }

    /// Room for what the server sends.
    pub(crate) fn room(&self) -> usize {
        self.outbound_max.saturating_sub(self.outbound.len())
    }

    pub(crate) fn is_writable(&self) -> bool {
        self.dead || self.room() * 3 >= self.outbound_max
    }

    pub(crate) fn is_readable(&self) -> bool {
        !self.inbound.is_empty() || self.fin || self.dead
    }

    /// The client writes; how much was taken, or nothing when the connection is dead.
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

    /// The client closes its sending side.
    pub(crate) fn finish(&mut self) {
        if !self.fin && !self.reset {
            self.fin = true;
            self.edge = true;
        }
    }

    /// The client leaves; `rude` means by a reset.
    pub(crate) fn leave(&mut self, rude: bool) {
        self.client_gone = true;
        // Unread bytes turn an orderly end into a reset, on this side too.
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

    /// Whether this worker has something to hear of it.
    pub(super) fn is_due_to(&self, worker: usize) -> bool {
        self.edge && self.watch.is_some_and(|(watcher, _)| watcher == worker)
    }

    /// The server closes. What it has not read, or what comes later, makes the client see a reset.
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

/// The stream sockets of a run by their descriptors, which rise; some numbers between them are of
/// sockets of another kind. Closed sockets stay: what they received is checked at the end.
#[derive(Debug, Default)]
pub(crate) struct SocketTable(Vec<Option<SimSocket>>);

impl SocketTable {
    fn index(fd: i32) -> Option<usize> {
        usize::try_from(fd.checked_sub(FIRST_SOCKET)?).ok()
    }

    /// Adds a socket under a descriptor that is higher than all before.
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
    /// The server announced the end of its side of a socket for this turn.
    pub(crate) fn expect_end(&mut self, fd: i32) {
        if let Some(socket) = self.sockets.get_mut(fd) {
            socket.awaits_end = true;
        }
    }

    /// Checks that the ends that `worker` announced have come.
    pub(super) fn check_ends(&mut self, worker: usize) {
        for fd in &self.watched {
            let Some(socket) = self.sockets.get(*fd) else { continue };
            let is_own = socket.watch.is_some_and(|(watcher, _)| watcher == worker);
            if is_own && socket.awaits_end && !socket.shut && socket.closed.is_none() {
                self.offences.push(format!("#{} was to end in this turn", socket.number));
            }
        }
    }
}
