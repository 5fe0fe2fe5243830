//! An HTTP/2 upstream that a test plays: frames as they are, with field blocks that are not
//! compressed in one direction, and read with a small decoder in the other.

use std::io::{Error, ErrorKind, Result};

use bolide_testkit::origin::{TestPeer, UpstreamRequest};

pub(crate) const HEADERS: u8 = 1;
pub(crate) const RST_STREAM: u8 = 3;
/// `END_STREAM`
pub(crate) const END: u8 = 1;
/// `END_HEADERS`
pub(crate) const WHOLE: u8 = 4;

pub(crate) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let [_, a, b, c] = (payload.len() as u32).to_be_bytes();
    let [d, e, f, g] = stream.to_be_bytes();
    [&[a, b, c, kind, flags, d, e, f, g], payload].concat()
}

/// A field block without compression.
pub(crate) fn block(fields: &[(&str, &str)]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (name, value) in fields {
        bytes.push(0);
        for text in [name, value] {
            assert!(text.len() < 127, "one byte tells the length");
            bytes.push(text.len() as u8);
            bytes.extend_from_slice(text.as_bytes());
        }
    }
    bytes
}

/// The head of a response that goes on.
pub(crate) fn ok(stream: u32) -> Vec<u8> {
    let fields = [(":status", "200"), ("content-type", "application/grpc")];
    frame(HEADERS, WHOLE, stream, &block(&fields))
}

/// A whole response with trailers.
pub(crate) fn reply(stream: u32, text: &str) -> Vec<u8> {
    let trailers = block(&[("grpc-status", "0")]);
    let end = frame(HEADERS, WHOLE | END, stream, &trailers);
    [ok(stream), frame(0, 0, stream, text.as_bytes()), end].concat()
}

/// Kind, flags, stream and payload.
type Frame = (u8, u8, u32, Vec<u8>);

/// The connection of a server.
pub(crate) struct H2Peer<'a> {
    peer: &'a mut TestPeer,
    /// The dynamic table, newest first.
    table: Vec<(String, String)>,
}

impl<'a> H2Peer<'a> {
    /// Reads the preface and sends SETTINGS.
    pub(crate) fn greet(peer: &'a mut TestPeer) -> Result<Self> {
        let preface = peer.take(24)?;
        assert_eq!(preface, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
        peer.send(frame(4, 0, 0, b""))?;
        Ok(Self { peer, table: Vec::new() })
    }

    /// The number of the connection.
    pub(crate) const fn number(&self) -> usize {
        self.peer.number
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) -> Result<()> {
        self.peer.send(bytes)
    }

    pub(crate) fn drain(&mut self) -> Vec<u8> {
        self.peer.to_end()
    }

    /// Records a text for the test.
    pub(crate) fn remember(&self, text: &str) {
        let head = format!("CALL {text}");
        self.peer.remember(UpstreamRequest {
            connection: self.peer.number,
            head,
            body: Vec::new(),
        });
    }

    fn next(&mut self) -> Result<Frame> {
        let head = self.peer.take(9)?;
        let len = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
        let stream = u32::from_be_bytes([head[5], head[6], head[7], head[8]]);
        Ok((head[3], head[4], stream, self.peer.take(len)?))
    }

    /// The next frame of this kind.
    pub(crate) fn next_of(&mut self, kind: u8) -> Result<Frame> {
        loop {
            let found = self.next()?;
            if found.0 == kind {
                return Ok(found);
            }
        }
    }

    /// Reads a request to its end, or as far as its first DATA: the stream, and its fields.
    pub(crate) fn call(&mut self) -> Result<(u32, Vec<String>)> {
        let (_, flags, stream, block) = self.next_of(HEADERS)?;
        assert!(flags & WHOLE != 0, "the head is small");
        let fields = self.decode(&block).ok_or_else(|| Error::from(ErrorKind::InvalidData))?;
        let mut is_over = flags & END != 0;
        while !is_over {
            is_over = self.next_of(0)?.1 & END != 0;
        }
        Ok((stream, fields))
    }

    /// Reads a request and opens the windows as it takes bytes, a few at a time: the stream, and
    /// the size of its body.
    pub(crate) fn large_call(&mut self) -> Result<(u32, usize)> {
        let (_, _, stream, _) = self.next_of(HEADERS)?;
        let mut size = 0;
        loop {
            let (_, flags, _, payload) = self.next_of(0)?;
            assert!(payload.len() <= 16_384, "a frame has no more than was announced");
            size += payload.len();
            if flags & END != 0 {
                return Ok((stream, size));
            }
            let room = (payload.len() as u32).to_be_bytes();
            let updates = [frame(8, 0, 0, &room), frame(8, 0, stream, &room)];
            self.peer.send(updates.concat())?;
        }
    }

    /// The fields of a block whose texts are not Huffman-coded where that matters to a test.
    fn decode(&mut self, mut block: &[u8]) -> Option<Vec<String>> {
        let mut fields = Vec::new();
        while let Some(first) = block.first().copied() {
            let (bits, inserts) = match first {
                0x80.. => (7, false),
                0x40.. => (6, true),
                0x20.. => (5, false),
                _ => (4, false),
            };
            let index = integer(&mut block, bits)?;
            if bits == 5 {
                continue;
            }
            let known = self.entry(index);
            let (name, value) = if bits == 7 {
                known?
            } else {
                let name = if index == 0 { text(&mut block)? } else { known?.0 };
                (name, text(&mut block)?)
            };
            if inserts {
                self.table.insert(0, (name.clone(), value.clone()));
            }
            fields.push(format!("{name}: {value}"));
        }
        Some(fields)
    }

    fn entry(&self, index: usize) -> Option<(String, String)> {
        let fixed = match index {
            1 => (":authority", ""),
            2 => (":method", "GET"),
            3 => (":method", "POST"),
            4 => (":path", "/"),
            6 => (":scheme", "http"),
            7 => (":scheme", "https"),
            19 => ("accept", ""),
            28 => ("content-length", ""),
            38 => ("host", ""),
            58 => ("user-agent", ""),
            62.. => return self.table.get(index - 62).cloned(),
            _ => return None,
        };
        Some((fixed.0.to_owned(), fixed.1.to_owned()))
    }
}

/// RFC 7541 §5.1
fn integer(block: &mut &[u8], bits: u32) -> Option<usize> {
    let mask = (1_usize << bits) - 1;
    let (first, mut rest) = block.split_first()?;
    let mut value = usize::from(*first) & mask;
    if value == mask {
        let mut shift = 0;
        loop {
            let (byte, behind) = rest.split_first()?;
            rest = behind;
            value += (usize::from(*byte) & 127) << shift;
            shift += 7;
            if byte & 128 == 0 {
                break;
            }
        }
    }
    *block = rest;
    Some(value)
}

/// RFC 7541 §5.2
fn text(block: &mut &[u8]) -> Option<String> {
    let is_coded = block.first()? & 128 != 0;
    let len = integer(block, 7)?;
    let (bytes, rest) = block.split_at_checked(len)?;
    *block = rest;
    if is_coded { huffman(bytes) } else { String::from_utf8(bytes.to_vec()).ok() }
}

/// The codes of RFC 7541 appendix B of lower-case letters, digits and what else the tests send.
fn huffman(bytes: &[u8]) -> Option<String> {
    const CODES: [(&str, u32, u32); 5] = [
        ("012aceiost", 5, 0),
        (" %-./3456789=A_bdfghlmnpru", 6, 0x14),
        (":BCDEFGHIJKLMNOPQRSTUVWYjkqvwxyz", 7, 0x5c),
        ("&*,;XZ", 8, 0xf8),
        ("!\"()?", 10, 0x3f8),
    ];
    let (mut out, mut code, mut len) = (String::new(), 0_u32, 0_u32);
    for bit in bytes.iter().flat_map(|byte| (0..8).rev().map(move |at| u32::from(byte >> at & 1))) {
        (code, len) = (code << 1 | bit, len + 1);
        let row = CODES
            .iter()
            .find(|row| row.1 == len && code >= row.2 && code < row.2 + row.0.len() as u32);
        if let Some(row) = row {
            out.push(row.0.as_bytes()[(code - row.2) as usize] as char);
            (code, len) = (0, 0);
        }
    }
    (len < 8).then_some(out)
}
