//! Gzip decoding, chunk by chunk. Refuses data that is not gzip, or is incomplete.

use std::fmt;
use std::io::Write;

use flate2::write::MultiGzDecoder;

/// The data is not gzip, or is truncated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodingError;

impl From<std::io::Error> for CodingError {
    fn from(_: std::io::Error) -> Self {
        Self
    }
}

/// The decoder of a gzip stream (RFC 1952) of one or more members.
pub struct CodingDecoder(MultiGzDecoder<Vec<u8>>);

impl CodingDecoder {
    /// A stream at its beginning.
    #[must_use]
    pub fn gzip() -> Self {
        Self(MultiGzDecoder::new(Vec::new()))
    }

    /// Decodes `chunk` and appends the result to `out`: at most about a thousand times its size.
    ///
    /// # Errors
    ///
    /// [`CodingError`] when the data is not gzip; the stream cannot continue.
    pub fn feed(&mut self, chunk: &[u8], out: &mut Vec<u8>) -> Result<(), CodingError> {
        let fed = self.0.write_all(chunk).and_then(|()| self.0.flush());
        out.append(self.0.get_mut());
        Ok(fed?)
    }

    /// Appends the rest to `out`.
    ///
    /// # Errors
    ///
    /// [`CodingError`] when the stream is not complete.
    pub fn finish(mut self, out: &mut Vec<u8>) -> Result<(), CodingError> {
        let ended = self.0.try_finish();
        out.append(self.0.get_mut());
        Ok(ended?)
    }
}

impl fmt::Debug for CodingDecoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Decoder::Gzip")
    }
}

#[cfg(test)]
mod tests {
    use super::CodingDecoder;
    use crate::compress;
    use bolide_http::negotiate::Coding;
    use proptest::prelude::{any, prop, proptest};

    fn decode(data: &[u8], size: usize) -> Option<Vec<u8>> {
        let (mut decoder, mut out) = (CodingDecoder::gzip(), Vec::new());
        for chunk in data.chunks(size) {
            decoder.feed(chunk, &mut out).ok()?;
        }
        decoder.finish(&mut out).ok()?;
        Some(out)
    }

    proptest! {
        #[test]
        fn what_was_compressed_comes_back_in_pieces_of_any_size(
            data in prop::collection::vec(any::<u8>(), 0..2000),
            size in 1..500_usize,
        ) {
            let mut coded = compress(Coding::Gzip, 5, &data).unwrap();
            assert_eq!(decode(&coded, size).as_ref(), Some(&data));
            let twice = [&coded[..], &coded[..]].concat();
            assert_eq!(decode(&twice, size), Some([&data[..], &data[..]].concat()));
            coded.truncate(coded.len() - 1);
            assert_eq!(decode(&coded, size), None);
        }

        #[test]
        fn whatever_comes_is_refused_without_harm(
            data in prop::collection::vec(any::<u8>(), 1..200),
        ) {
            assert!(decode(&data, 7).is_none() || data.starts_with(&[0x1f, 0x8b]));
        }
    }
}
