//! Datagrams in batches: recvmmsg with GRO in, sendmmsg with GSO out.

use std::net::{IpAddr, SocketAddr};

use crate::sys;

/// Messages taken by one call.
const MESSAGES: usize = 16;
/// Bytes of one message: a whole GRO batch.
const MESSAGE_SIZE: usize = 64 * 1024;

/// One received message: a datagram, or a GRO batch of equal ones from the same peer.
#[derive(Clone, Copy, Debug)]
pub struct DatagramIn {
    /// The sender.
    pub remote: SocketAddr,
    /// The local address that it was sent to.
    pub local: Option<IpAddr>,
    /// The two ECN bits.
    pub ecn: u8,
    /// Bytes of the whole message.
    pub len: usize,
    /// Bytes of each datagram in it; the last may be shorter.
    pub stride: usize,
}

/// One message to send: `bytes` is cut into datagrams of `segment` bytes by the kernel.
#[derive(Clone, Copy, Debug)]
pub struct DatagramOut<'a> {
    /// The payload of all datagrams.
    pub bytes: &'a [u8],
    /// Size of each; `bytes.len()` for a single one.
    pub segment: usize,
    /// The remote address.
    pub remote: SocketAddr,
    /// The local address.
    pub local: Option<IpAddr>,
    /// The two ECN bits.
    pub ecn: u8,
}

/// The result of a send of datagrams.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DatagramsSent {
    /// Entries taken before the socket blocked.
    pub taken: usize,
    /// The kernel refused segmentation for one of them; its datagrams were sent one by one.
    pub refused_to_cut: bool,
}

/// Buffers for one receive call, reused.
#[derive(Debug, Default)]
pub struct UdpBatch {
    buffer: Vec<u8>,
    messages: Vec<DatagramIn>,
}

impl UdpBatch {
    /// Messages that one receive call can return; fewer mean that no more were waiting.
    pub const CAPACITY: usize = MESSAGES;

    pub(crate) fn receive(&mut self, fd: i32) -> usize {
        self.messages.clear();
        if self.buffer.is_empty() {
            // Allocated by the first receive call: a batch that is taken out for a turn leaves an
            // empty one in its place. Zeroed pages cost nothing until they are used.
            self.buffer = vec![0; MESSAGES * MESSAGE_SIZE];
        }
        sys::receive_datagrams(fd, &mut self.buffer, MESSAGE_SIZE, &mut self.messages);
        self.messages.len()
    }

    /// Drops the messages of the last receive call; for a simulated kernel.
    pub fn clear(&mut self) {
        self.messages.clear();
    }

    /// Adds a message as a receive call does, if there is a free slot and it is not too long; for a
    /// simulated kernel.
    pub fn push(&mut self, message: DatagramIn, bytes: &[u8]) -> bool {
        if self.messages.len() == MESSAGES || bytes.len() > MESSAGE_SIZE {
            return false;
        }
        if self.buffer.is_empty() {
            self.buffer = vec![0; MESSAGES * MESSAGE_SIZE];
        }
        let start = self.messages.len() * MESSAGE_SIZE;
        self.buffer[start..start + bytes.len()].copy_from_slice(bytes);
        self.messages.push(DatagramIn { len: bytes.len(), ..message });
        true
    }

    /// The messages of the last receive call, with their bytes.
    pub fn messages(&mut self) -> impl Iterator<Item = (DatagramIn, &mut [u8])> {
        let chunks = self.buffer.chunks_mut(MESSAGE_SIZE);
        self.messages.iter().zip(chunks).map(|(message, chunk)| {
            let len = message.len.min(chunk.len());
            (*message, &mut chunk[..len])
        })
    }
}
