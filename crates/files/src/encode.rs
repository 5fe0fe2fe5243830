//! Content codings: whole buffers at once, or a stream chunk by chunk. The same input with the same
//! level always gives the same output.

use std::fmt;
use std::io::Write;

use bolide_http::negotiate::Coding;
use brotli::CompressorWriter;
use brotli::enc::BrotliEncoderParams;
use flate2::write::GzEncoder;
use flate2::{Compression, GzBuilder};

/// A coder failed; only memory can be the reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EncodeError;

impl From<std::io::Error> for EncodeError {
    fn from(_: std::io::Error) -> Self {
        Self
    }
}

/// Bytes that brotli's encoder gathers before it outputs them.
const BROTLI_BUFFER: usize = 4096;
/// The operating system in a gzip header (RFC 1952 §2.3.1): Unix, as nginx writes.
const GZIP_OS_UNIX: u8 = 3;
/// Windows of streams, as powers of two: 512 KiB, so that a stream costs little memory.
const STREAM_WINDOW: u32 = 19;
/// The block of a stream of brotli's slowest levels, as a power of two: 64 KiB.
const STREAM_BLOCK: i32 = 16;
/// The largest window that a client must support: 8 MiB (RFC 9659 §3); brotli's is 16 MiB.
const WINDOW_MAX: u32 = 22;
const WINDOW_MIN: u32 = 16;

/// A stream being compressed.
pub enum CodingEncoder {
    /// `gzip`
    Gzip(Box<GzEncoder<Vec<u8>>>),
    /// `br`
    Brotli(Box<CompressorWriter<Vec<u8>>>),
    /// `zstd`
    Zstd(Box<zstd::stream::write::Encoder<'static, Vec<u8>>>),
}

/// How much longer a byte takes than with the fast levels: a turn does as much work as others have
/// patience for.
#[must_use]
pub const fn stream_cost(coding: Coding, level: i8) -> u64 {
    match (coding, level) {
        (Coding::Brotli, 10..) | (Coding::Zstd, 16..) => 64,
        (Coding::Brotli, 5..) | (Coding::Zstd, 7..) => 8,
        (Coding::Gzip, 7..) => 4,
        (Coding::Gzip | Coding::Brotli | Coding::Zstd, _) => 1,
    }
}

impl CodingEncoder {
    /// An encoder of `coding`; `level` is clamped to the range of the coding (gzip 1 to 9, br 0 to
    /// 11, zstd 1 to 19).
    ///
    /// # Errors
    ///
    /// [`EncodeError`] when there is no memory for the encoder.
    pub fn new(coding: Coding, level: i8) -> Result<Self, EncodeError> {
        Self::with_window(coding, level, STREAM_WINDOW, None)
    }

    fn with_window(
        coding: Coding,
        level: i8,
        window: u32,
        size: Option<usize>,
    ) -> Result<Self, EncodeError> {
        Ok(match coding {
            Coding::Gzip => {
                let level = Compression::new(level.clamp(1, 9).unsigned_abs().into());
                let builder = GzBuilder::new().operating_system(GZIP_OS_UNIX).mtime(0);
                Self::Gzip(Box::new(builder.write(Vec::new(), level)))
            }
            Coding::Brotli => {
                let params = BrotliEncoderParams {
                    quality: level.clamp(0, 11).into(),
                    lgwin: window as i32,
                    size_hint: size.unwrap_or(0),
                    // A stream is encoded in a worker's turn, a block at a time.
                    lgblock: if size.is_none() && level >= 10 { STREAM_BLOCK } else { 0 },
                    ..BrotliEncoderParams::default()
                };
                let writer = CompressorWriter::with_params(Vec::new(), BROTLI_BUFFER, &params);
                Self::Brotli(Box::new(writer))
            }
            Coding::Zstd => {
                let level = level.clamp(1, 19).into();
                let mut raw = zstd::stream::raw::Encoder::new(level)?;
                raw.set_parameter(zstd::stream::raw::CParameter::WindowLog(window))?;
                if let Some(size) = size {
                    raw.set_pledged_src_size(Some(size as u64))?;
                }
                let writer = zstd::stream::write::Encoder::with_encoder(Vec::new(), raw);
                Self::Zstd(Box::new(writer))
            }
        })
    }

    /// Encodes `chunk` and appends the bytes that are ready to `out`, possibly none.
    ///
    /// # Errors
    ///
    /// [`EncodeError`] when the encoder failed; the stream cannot continue.
    pub fn feed(&mut self, chunk: &[u8], out: &mut Vec<u8>) -> Result<(), EncodeError> {
        match self {
            Self::Gzip(writer) => writer.write_all(chunk)?,
            Self::Brotli(writer) => writer.write_all(chunk)?,
            Self::Zstd(writer) => writer.write_all(chunk)?,
        }
        out.append(self.ready());
        Ok(())
    }

    /// Appends all input so far to `out` in a form that a client can decode at once.
    ///
    /// # Errors
    ///
    /// [`EncodeError`] when the encoder failed; the stream cannot continue.
    pub fn flush(&mut self, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        match self {
            Self::Gzip(writer) => writer.flush()?,
            Self::Brotli(writer) => writer.flush()?,
            Self::Zstd(writer) => writer.flush()?,
        }
        out.append(self.ready());
        Ok(())
    }

    /// Ends the stream and appends the rest to `out`.
    ///
    /// # Errors
    ///
    /// [`EncodeError`] when the encoder failed; the bytes sent so far are not a complete body.
    pub fn finish(self, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        let mut rest = match self {
            Self::Gzip(writer) => writer.finish()?,
            Self::Brotli(writer) => writer.into_inner(),
            Self::Zstd(writer) => writer.finish()?,
        };
        out.append(&mut rest);
        Ok(())
    }

    fn ready(&mut self) -> &mut Vec<u8> {
        match self {
            Self::Gzip(writer) => writer.get_mut(),
            Self::Brotli(writer) => writer.get_mut(),
            Self::Zstd(writer) => writer.get_mut(),
        }
    }
}

impl fmt::Debug for CodingEncoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Gzip(_) => "Encoder::Gzip",
            Self::Brotli(_) => "Encoder::Brotli",
            Self::Zstd(_) => "Encoder::Zstd",
        })
    }
}

/// All of `data` in one coding; `level` as in [`CodingEncoder::new`].
///
/// # Errors
///
/// [`EncodeError`] when there is no memory for the encoder.
pub fn compress(coding: Coding, level: i8, data: &[u8]) -> Result<Vec<u8>, EncodeError> {
    // A window larger than the data only costs memory.
    let window = usize::BITS - data.len().leading_zeros();
    let window = window.clamp(WINDOW_MIN, WINDOW_MAX);
    let mut encoder = CodingEncoder::with_window(coding, level, window, Some(data.len()))?;
    let mut out = Vec::new();
    encoder.feed(data, &mut out)?;
    encoder.finish(&mut out)?;
    out.shrink_to_fit();
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::{CodingEncoder, compress};
    use bolide_http::negotiate::Coding;
    use proptest::prelude::{any, prop, proptest};
    use std::io::Read;

    fn decompress(coding: Coding, data: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        match coding {
            Coding::Gzip => flate2::read::GzDecoder::new(data).read_to_end(&mut out).unwrap(),
            Coding::Brotli => brotli::Decompressor::new(data, 4096).read_to_end(&mut out).unwrap(),
            Coding::Zstd => {
                zstd::stream::read::Decoder::new(data).unwrap().read_to_end(&mut out).unwrap()
            }
        };
        out
    }

    #[test]
    fn text_gets_smaller_and_twice_the_same() {
        let text = "a line of a page that repeats itself\n".repeat(500);
        for coding in Coding::ALL {
            for level in [-5, 1, 6, 127] {
                let once = compress(coding, level, text.as_bytes()).unwrap();
                assert!(once.len() < text.len() / 10, "{coding:?} {level}");
                assert_eq!(once, compress(coding, level, text.as_bytes()).unwrap());
                assert_eq!(decompress(coding, &once), text.as_bytes());
            }
        }
    }

    #[test]
    fn a_gzip_header_names_no_time_and_the_system_that_nginx_names() {
        let out = compress(Coding::Gzip, 5, b"x").unwrap();
        assert_eq!(&out[..8], &[0x1f, 0x8b, 8, 0, 0, 0, 0, 0]);
        assert_eq!(out[9], 3);
    }

    #[test]
    fn what_was_flushed_can_be_decoded_before_the_end() {
        for coding in Coding::ALL {
            let (mut encoder, mut out) = (CodingEncoder::new(coding, 1).unwrap(), Vec::new());
            encoder.feed(b"the first part", &mut out).unwrap();
            encoder.flush(&mut out).unwrap();
            let mut first = [0; 14];
            match coding {
                Coding::Gzip => flate2::read::GzDecoder::new(&out[..]).read_exact(&mut first),
                Coding::Brotli => brotli::Decompressor::new(&out[..], 64).read_exact(&mut first),
                Coding::Zstd => {
                    zstd::stream::read::Decoder::new(&out[..]).unwrap().read_exact(&mut first)
                }
            }
            .unwrap();
            assert_eq!(&first, b"the first part");
            encoder.finish(&mut out).unwrap();
            assert_eq!(decompress(coding, &out), b"the first part");
        }
    }

    proptest! {
        #[test]
        fn decompressing_gives_the_data_back(
            chunks in prop::collection::vec(any::<Vec<u8>>(), 0..4),
            level in 0_i8..5,
        ) {
            let whole = chunks.concat();
            for coding in Coding::ALL {
                let at_once = compress(coding, level, &whole).unwrap();
                assert_eq!(decompress(coding, &at_once), whole);
                let mut encoder = CodingEncoder::new(coding, level).unwrap();
                let mut out = Vec::new();
                for chunk in &chunks {
                    encoder.feed(chunk, &mut out).unwrap();
                }
                encoder.finish(&mut out).unwrap();
                assert_eq!(decompress(coding, &out), whole);
            }
        }
    }
}
