//! Sends on connections: each accepts as many bytes as its buffer has room for.

use bolide_base::errno::EAGAIN;
use bolide_base::{Segment, SendChain};
use bolide_io::{Fd, Sent};

use super::SimIo;
use crate::kernel::Kernel;
use crate::kernel::syscall_faults::IoCall;

/// The bytes of a segment.
fn piece<'a>(kernel: &Kernel, chain: Option<&'a SendChain>, segment: &'a Segment) -> Piece<'a> {
    match segment {
        Segment::Inline(start, end) => {
            Piece::Here(chain.map_or(&[][..], |chain| chain.inline(*start, *end)))
        }
        Segment::Bytes(bytes) => Piece::Here(bytes),
        Segment::File(range) => match kernel.disk.content(&range.file) {
            Some(content) => {
                let start = (range.offset as usize).min(content.bytes.len());
                let end = content.bytes.len().min(start + range.len as usize);
                Piece::File(content.bytes[start..end].to_vec(), range.len)
            }
            None => Piece::File(Vec::new(), range.len),
        },
    }
}

enum Piece<'a> {
    Here(&'a [u8]),
    /// The bytes of the file, and how many were requested.
    File(Vec<u8>, u64),
}

impl SimIo {
    /// Sends segments until one is not accepted completely.
    pub(super) fn send_all(&self, fd: Fd, chain: Option<&SendChain>, segments: &[Segment]) -> Sent {
        match self.draw_errno(IoCall::Send) {
            Some(EAGAIN) => {
                self.report_again(fd);
                return Sent::Bytes(0);
            }
            Some(_) => {
                self.kernel.borrow_mut().cut(fd.0);
                return Sent::Dead;
            }
            None => {}
        }
        let mut kernel = self.call();
        let kernel = &mut *kernel;
        if kernel.is_dead {
            return Sent::Dead;
        }
        let mut total = 0;
        for segment in segments {
            let piece = piece(kernel, chain, segment);
            let (bytes, asked) = match &piece {
                Piece::Here(bytes) => (*bytes, bytes.len() as u64),
                Piece::File(bytes, asked) => (&bytes[..], *asked),
            };
            let is_file = matches!(piece, Piece::File(..));
            if is_file && kernel.chance.one_in(kernel.fault_rates.read_in) {
                if let Segment::File(range) = segment {
                    kernel.disk.record_read_failure(&range.file, kernel.nanos);
                }
                kernel.trace(|| "sendfile: EIO".to_owned());
                return if total > 0 { Sent::Bytes(total) } else { Sent::Dead };
            }
            let Some(socket) = kernel.sockets.get_mut(fd.0) else {
                kernel.violations.push(format!("send on unknown descriptor {}", fd.0));
                return Sent::Dead;
            };
            if socket.closed.is_some() || socket.shut {
                kernel.violations.push(format!("#{} send after close", socket.number));
                return Sent::Dead;
            }
            if socket.dead {
                return Sent::Dead;
            }
            if socket.client_gone {
                // A closed client's kernel accepts the first bytes and answers with a reset.
                socket.dead = true;
                socket.edge = true;
                total += asked;
                continue;
            }
            if is_file && bytes.is_empty() && asked > 0 {
                return Sent::FileFailed;
            }
            let n = bytes.len().min(socket.room());
            socket.outbound.extend(&bytes[..n]);
            if n > 0 {
                socket.moved = kernel.nanos;
            }
            total += n as u64;
            if n < bytes.len() {
                socket.no_space = true;
            }
            if (n as u64) < asked {
                break;
            }
        }
        let number = kernel.sockets.get(fd.0).map_or(0, |socket| socket.number);
        let offered: u64 = chain.map_or(0, SendChain::len);
        kernel.trace(|| format!("#{number} send {total} of {offered}"));
        Sent::Bytes(total)
    }
}
