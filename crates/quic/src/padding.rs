//! Cuts runs of PADDING in a decrypted packet to one byte each.
//!
//! PERF: the library parses PADDING as one frame per byte, and common clients pad every small
//! packet to a full datagram. Without this, parsing padding takes half of the time of small
//! requests.
//!
//! INVARIANT: a zero byte is padding only where a frame may begin (RFC 9000 §12.4); zeros inside a
//! frame are data. So the frames are parsed. Everything from the first invalid frame on stays
//! unchanged, for the library to refuse.

/// Compacts `payload` in place and returns its new length. At least one byte of every run stays, so
/// that a packet with nothing but padding stays valid.
pub fn cut(payload: &mut [u8]) -> usize {
    let mut read = 0;
    // Bytes before `write` are final; bytes from `kept` to `read` must still move down.
    let (mut write, mut kept) = (0, 0);
    while read < payload.len() {
        if payload[read] != 0 {
            match frame_len(&payload[read..]) {
                Some(len) => read += len,
                None => break,
            }
            continue;
        }
        let run = zeros(&payload[read..]);
        if run > 1 {
            write = move_down(payload, write, kept, read + 1);
            kept = read + run;
        }
        read += run;
    }
    let end = payload.len();
    move_down(payload, write, kept, end)
}

/// Moves `from..to` to `write` and returns the position behind it.
fn move_down(payload: &mut [u8], write: usize, from: usize, to: usize) -> usize {
    if write != from {
        payload.copy_within(from..to, write);
    }
    write + to - from
}

/// The number of zero bytes at the start of `bytes`.
fn zeros(bytes: &[u8]) -> usize {
    let (words, _) = bytes.as_chunks::<16>();
    let whole = words.iter().take_while(|word| u128::from_ne_bytes(**word) == 0).count() * 16;
    whole + bytes[whole..].iter().take_while(|byte| **byte == 0).count()
}

/// The length of the frame at the start of `bytes`; `None` if it is unknown, truncated, or takes
/// the rest of the packet.
fn frame_len(bytes: &[u8]) -> Option<usize> {
    let mut walk = Walk { bytes, at: 0 };
    match walk.varint()? {
        // PADDING in a longer encoding, PING, HANDSHAKE_DONE, IMMEDIATE_ACK.
        0x00 | 0x01 | 0x1e | 0x1f => {}
        // ACK, without and with ECN counts.
        kind @ 0x02..=0x03 => {
            walk.varints(2)?;
            let ranges = walk.varint()?;
            walk.varints(1)?;
            walk.varints(ranges.checked_mul(2)?)?;
            walk.varints(if kind == 0x03 { 3 } else { 0 })?;
        }
        // RESET_STREAM.
        0x04 => walk.varints(3)?,
        // STOP_SENDING, MAX_STREAM_DATA, STREAM_DATA_BLOCKED.
        0x05 | 0x11 | 0x15 => walk.varints(2)?,
        // CRYPTO.
        0x06 => {
            walk.varints(1)?;
            walk.data()?;
        }
        // NEW_TOKEN, DATAGRAM with a length.
        0x07 | 0x31 => walk.data()?,
        // STREAM: bit 2 means an offset, bit 1 a length; without one the frame takes the rest of
        // the packet.
        kind @ 0x08..=0x0f if kind & 0x02 != 0 => {
            walk.varints(if kind & 0x04 != 0 { 2 } else { 1 })?;
            walk.data()?;
        }
        // MAX_DATA, MAX_STREAMS, DATA_BLOCKED, STREAMS_BLOCKED, RETIRE_CONNECTION_ID.
        0x10 | 0x12..=0x14 | 0x16 | 0x17 | 0x19 => walk.varints(1)?,
        // NEW_CONNECTION_ID: two numbers, a length in one byte, the id, the reset token.
        0x18 => {
            walk.varints(2)?;
            let len = usize::from(*walk.bytes.get(walk.at)?);
            walk.skip(1 + len + 16)?;
        }
        // PATH_CHALLENGE, PATH_RESPONSE.
        0x1a | 0x1b => walk.skip(8)?,
        // CONNECTION_CLOSE of the transport and of the application.
        0x1c => {
            walk.varints(2)?;
            walk.data()?;
        }
        0x1d => {
            walk.varints(1)?;
            walk.data()?;
        }
        // ACK_FREQUENCY.
        0xaf => walk.varints(4)?,
        _ => return None,
    }
    Some(walk.at)
}

/// A cursor that fails at the end of the bytes.
struct Walk<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Walk<'_> {
    fn skip(&mut self, count: usize) -> Option<()> {
        let at = self.at.checked_add(count).filter(|at| *at <= self.bytes.len())?;
        self.at = at;
        Some(())
    }

    /// RFC 9000 §16: a variable-length integer.
    fn varint(&mut self) -> Option<u64> {
        let first = *self.bytes.get(self.at)?;
        let len = 1 << (first >> 6);
        let start = self.at;
        self.skip(len)?;
        let rest = &self.bytes[start + 1..start + len];
        Some(rest.iter().fold(u64::from(first & 0x3f), |value, byte| value << 8 | u64::from(*byte)))
    }

    fn varints(&mut self, count: u64) -> Option<()> {
        for _ in 0..count {
            let first = *self.bytes.get(self.at)?;
            self.skip(1 << (first >> 6))?;
        }
        Some(())
    }

    fn data(&mut self) -> Option<()> {
        let len = usize::try_from(self.varint()?).ok()?;
        self.skip(len)
    }
}

#[cfg(test)]
mod tests;
