//! Compressed pages joined from parts that were compressed separately.
//!
//! Owns the parts and the bytes around them, so that a page with ESI is sent compressed without
//! compressing its cached parts again. A part refers to nothing before it and ends on a byte
//! boundary:
//!
//! * gzip (RFC 1952): deflate blocks ended by a full flush, or stored ones. One header, one empty
//!   final block, one trailer whose checksum is computed from those of the parts.
//! * br (RFC 7932): meta-blocks without references to earlier data or to the static dictionary,
//!   padded to a byte. One stream header, one empty last meta-block.
//! * zstd (RFC 8878 §3): whole frames one after another.

use bolide_http::negotiate::Coding;
use bytes::Bytes;

/// An encoder failed; the only reason is lack of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpliceError;

impl From<std::io::Error> for SpliceError {
    fn from(_: std::io::Error) -> Self {
        Self
    }
}

/// The window of brotli's parts as a power of two; the header of every page has the same.
const BROTLI_WINDOW: i32 = 22;
/// Brotli's stream header for [`BROTLI_WINDOW`] (RFC 7932 §9.1: `1011` for 22, lowest bit first),
/// padded to a byte with an empty metadata block.
const BROTLI_HEAD: &[u8] = &[0x6b, 0x00];
/// The last and empty meta-block: ISLAST and ISLASTEMPTY.
const BROTLI_TAIL: &[u8] = &[0x03];
/// No time, no name, system Unix, as elsewhere in this server.
const GZIP_HEAD: &[u8] = &[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3];
/// The final and empty block with fixed codes.
const DEFLATE_END: [u8; 2] = [0x03, 0x00];
/// Windows of zstd's parts, as powers of two. Clients must support the largest one.
const ZSTD_WINDOW_MAX: u32 = 22;
const ZSTD_WINDOW_MIN: u32 = 16;

/// Bytes of a page in one coding, independent of their neighbours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SplicePart {
    coding: Coding,
    bytes: Bytes,
    len: u64,
    /// For gzip: the checksum of the uncompressed bytes, and the operator that shifts another
    /// checksum by their length.
    crc: u32,
    shift: u32,
}

impl SplicePart {
    /// Compresses `data`; `level` is clamped to the range of the coding.
    ///
    /// # Errors
    ///
    /// [`SpliceError`] when there is no memory for the encoder.
    pub fn compress(coding: Coding, level: i8, data: &[u8]) -> Result<Self, SpliceError> {
        let bytes = match coding {
            _ if data.is_empty() => Vec::new(),
            Coding::Gzip => deflate(level, data)?,
            Coding::Brotli => brotli_part(level, data)?,
            Coding::Zstd => zstd_part(level, data)?,
        };
        Ok(Self::of(coding, bytes, data))
    }

    /// Frames `data` without compressing it: for fragments that are sent once. Never fails and
    /// costs a copy.
    #[must_use]
    pub fn stored(coding: Coding, data: &[u8]) -> Self {
        let mut bytes = Vec::with_capacity(data.len() + 16);
        match coding {
            Coding::Gzip => data.chunks(0xffff).for_each(|chunk| {
                let len = (chunk.len() as u16).to_le_bytes();
                bytes.push(0);
                bytes.extend_from_slice(&[len[0], len[1], !len[0], !len[1]]);
                bytes.extend_from_slice(chunk);
            }),
            Coding::Brotli => data.chunks(0x1_0000).for_each(|chunk| {
                // ISLAST 0, MNIBBLES 0 (four), MLEN - 1 in 16 bits, ISUNCOMPRESSED 1, padding.
                let head = (chunk.len() as u32 - 1) << 3 | 1 << 19;
                bytes.extend_from_slice(&head.to_le_bytes()[..3]);
                bytes.extend_from_slice(chunk);
            }),
            Coding::Zstd => data.chunks(0x1_0000).for_each(|chunk| {
                // A frame of one raw block, with its content size in four bytes.
                bytes.extend_from_slice(&[0x28, 0xb5, 0x2f, 0xfd, 0xa0]);
                bytes.extend_from_slice(&(chunk.len() as u32).to_le_bytes());
                let head = (chunk.len() as u32) << 3 | 1;
                bytes.extend_from_slice(&head.to_le_bytes()[..3]);
                bytes.extend_from_slice(chunk);
            }),
        }
        Self::of(coding, bytes, data)
    }

    fn of(coding: Coding, bytes: Vec<u8>, data: &[u8]) -> Self {
        let crc = match coding {
            Coding::Gzip => {
                let mut crc = flate2::Crc::new();
                crc.update(data);
                crc.sum()
            }
            Coding::Brotli | Coding::Zstd => 0,
        };
        let shift = if coding == Coding::Gzip { crc32_shift(data.len() as u64) } else { 0 };
        Self { coding, bytes: bytes.into(), len: data.len() as u64, crc, shift }
    }

    /// The facts that the page needs of it.
    #[must_use]
    pub const fn seal(&self) -> SpliceSeal {
        let Self { coding, len, crc, shift, .. } = *self;
        SpliceSeal { coding, len, crc, shift, is_empty: self.bytes.is_empty() }
    }

    /// The encoded bytes.
    #[must_use]
    pub const fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// Bytes before compression.
    #[must_use]
    pub const fn plain_len(&self) -> u64 {
        self.len
    }

    /// Its coding; all parts of a page have the same one.
    #[must_use]
    pub const fn coding(&self) -> Coding {
        self.coding
    }
}

/// The facts that the page needs of a part already sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpliceSeal {
    coding: Coding,
    len: u64,
    crc: u32,
    shift: u32,
    is_empty: bool,
}

/// A page being sent: the bytes before, between and after the parts.
///
/// ```
/// # use bolide_esi::splice::{Joint, SplicePart};
/// # use bolide_http::negotiate::Coding;
/// let mut joint = Joint::new(Coding::Gzip);
/// let mut body = joint.head().to_vec();
/// for text in [&b"a page "[..], b"and a fragment"] {
///     let part = SplicePart::stored(Coding::Gzip, text);
///     joint.add(&part);
///     body.extend_from_slice(part.bytes());
/// }
/// body.extend_from_slice(joint.tail().as_bytes());
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Joint {
    coding: Coding,
    crc: u32,
    len: u64,
    has_parts: bool,
}

impl Joint {
    /// The beginning of a page.
    #[must_use]
    pub const fn new(coding: Coding) -> Self {
        Self { coding, crc: 0, len: 0, has_parts: false }
    }

    /// The coding of the page.
    #[must_use]
    pub const fn coding(&self) -> Coding {
        self.coding
    }

    /// The first bytes.
    #[must_use]
    pub const fn head(&self) -> &'static [u8] {
        match self.coding {
            Coding::Gzip => GZIP_HEAD,
            Coding::Brotli => BROTLI_HEAD,
            Coding::Zstd => &[],
        }
    }

    /// Records that `part` is sent next.
    pub fn add(&mut self, part: &SplicePart) {
        self.add_sealed(part.seal());
    }

    /// Records that the part of `seal` is sent next.
    pub fn add_sealed(&mut self, part: SpliceSeal) {
        debug_assert_eq!(self.coding, part.coding, "one page has one coding");
        if self.coding == Coding::Gzip {
            self.crc = multiply(part.shift, self.crc) ^ part.crc;
        }
        self.len += part.len;
        self.has_parts |= !part.is_empty;
    }

    /// The last bytes.
    #[must_use]
    pub fn tail(&self) -> Tail {
        let mut tail = Tail { bytes: [0; 10], len: 0 };
        match self.coding {
            Coding::Gzip => {
                tail.push(&DEFLATE_END);
                tail.push(&self.crc.to_le_bytes());
                tail.push(&(self.len as u32).to_le_bytes());
            }
            Coding::Brotli => tail.push(BROTLI_TAIL),
            // A zstd body needs at least one frame: an empty frame encodes an empty page.
            Coding::Zstd if !self.has_parts => {
                tail.push(&[0x28, 0xb5, 0x2f, 0xfd, 0x20, 0x00, 0x01, 0x00, 0x00]);
            }
            Coding::Zstd => {}
        }
        tail
    }
}

/// The end of a page, inline.
#[derive(Clone, Copy, Debug)]
pub struct Tail {
    bytes: [u8; 10],
    len: u8,
}

impl Tail {
    fn push(&mut self, bytes: &[u8]) {
        let start = usize::from(self.len);
        self.bytes[start..start + bytes.len()].copy_from_slice(bytes);
        self.len += bytes.len() as u8;
    }

    /// The bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}

/// Bytes of the page made of `parts`; known before the first byte is sent.
#[must_use]
pub fn joined_len<'a>(coding: Coding, parts: impl IntoIterator<Item = &'a SplicePart>) -> u64 {
    let mut joint = Joint::new(coding);
    let mut len = joint.head().len() as u64;
    for part in parts {
        joint.add(part);
        len += part.bytes.len() as u64;
    }
    len + u64::from(joint.tail().len)
}

/// The page that `parts` make, in one piece.
#[must_use]
pub fn join<'a>(coding: Coding, parts: impl IntoIterator<Item = &'a SplicePart>) -> Vec<u8> {
    let mut joint = Joint::new(coding);
    let mut body = joint.head().to_vec();
    for part in parts {
        joint.add(part);
        body.extend_from_slice(&part.bytes);
    }
    body.extend_from_slice(joint.tail().as_bytes());
    body
}

fn deflate(level: i8, data: &[u8]) -> Result<Vec<u8>, SpliceError> {
    let level = flate2::Compression::new(level.clamp(1, 9).unsigned_abs().into());
    let mut coder = flate2::Compress::new(level, false);
    let mut out = Vec::with_capacity(data.len() / 3 + 64);
    loop {
        let taken = coder.total_in() as usize;
        let status = coder.compress_vec(&data[taken..], &mut out, flate2::FlushCompress::Full);
        status.map_err(|_| SpliceError)?;
        // Room was left, so all output was flushed.
        if coder.total_in() as usize == data.len() && out.len() < out.capacity() {
            out.shrink_to_fit();
            return Ok(out);
        }
        out.reserve(data.len() / 4 + 64);
    }
}

fn brotli_part(level: i8, data: &[u8]) -> Result<Vec<u8>, SpliceError> {
    let params = brotli::enc::BrotliEncoderParams {
        // Below level 2 the encoder ends the stream, whatever the options are.
        quality: level.clamp(2, 11).into(),
        lgwin: BROTLI_WINDOW,
        size_hint: data.len(),
        // No header, no end, byte-aligned; no references to earlier bytes nor to the dictionary,
        // whose words are addressed by distances that grow with the page.
        catable: true,
        bare_stream: true,
        byte_align: true,
        appendable: true,
        use_dictionary: false,
        ..brotli::enc::BrotliEncoderParams::default()
    };
    let mut out = Vec::with_capacity(data.len() / 3 + 64);
    brotli::BrotliCompress(&mut &data[..], &mut out, &params)?;
    out.shrink_to_fit();
    Ok(out)
}

fn zstd_part(level: i8, data: &[u8]) -> Result<Vec<u8>, SpliceError> {
    use std::io::Write;
    let window = usize::BITS - data.len().leading_zeros();
    let mut raw = zstd::stream::raw::Encoder::new(level.clamp(1, 19).into())?;
    let window = window.clamp(ZSTD_WINDOW_MIN, ZSTD_WINDOW_MAX);
    raw.set_parameter(zstd::stream::raw::CParameter::WindowLog(window))?;
    raw.set_pledged_src_size(Some(data.len() as u64))?;
    let mut writer = zstd::stream::write::Encoder::with_encoder(Vec::new(), raw);
    writer.write_all(data)?;
    let mut out = writer.finish()?;
    out.shrink_to_fit();
    Ok(out)
}

/// The polynomial of CRC-32, bits reversed.
const POLYNOMIAL: u32 = 0xedb8_8320;

/// The product of two polynomials modulo [`POLYNOMIAL`]; the highest bit is `x^0`.
const fn multiply(a: u32, mut b: u32) -> u32 {
    let mut product = 0;
    let mut bit = 1 << 31;
    while bit != 0 {
        if a & bit != 0 {
            product ^= b;
        }
        b = if b & 1 == 1 { b >> 1 ^ POLYNOMIAL } else { b >> 1 };
        bit >>= 1;
    }
    product
}

/// `x^(8 * 2^n)` for each `n`.
const POWERS: [u32; 64] = {
    let mut powers = [0; 64];
    // x^8: eight steps from x^0.
    powers[0] = 1 << 23;
    let mut n = 1;
    while n < 64 {
        powers[n] = multiply(powers[n - 1], powers[n - 1]);
        n += 1;
    }
    powers
};

/// The factor of a checksum when a text of `len` bytes follows: `x^(8 * len)`.
const fn crc32_shift(mut len: u64) -> u32 {
    // x^0
    let mut shift = 1 << 31;
    let mut n = 0;
    while len != 0 {
        if len & 1 == 1 {
            shift = multiply(POWERS[n], shift);
        }
        len >>= 1;
        n += 1;
    }
    shift
}

/// The checksum of two consecutive texts from those of each and the second's length.
#[must_use]
pub const fn crc32_combine(first: u32, second: u32, second_len: u64) -> u32 {
    multiply(crc32_shift(second_len), first) ^ second
}

#[cfg(test)]
mod tests;
