//! The body of a cached object that stays in its file: read in blocks, each with a checksum.
//!
//! Easiest to break: no byte is sent before the checksum of its whole block was verified.

use std::sync::Arc;

use bolide_base::SendChain;
use bolide_cache::{Object, Outside};
use bolide_files::{FileKind, Meta};
use bytes::Bytes;

use super::{BodyPiece, ByteSpan, FileOwner};

/// A reader of one file.
#[derive(Clone, Debug)]
pub(crate) struct FromFile {
    object: Arc<Object>,
    /// The current block and its number.
    piece: Option<(u64, Bytes)>,
    /// The bytes of the block that is being read, whose number is `wanted`.
    reading: Vec<u8>,
    wanted: u64,
    is_broken: bool,
}

impl FromFile {
    /// A reader of the body of `object`, which is only on disk.
    pub(crate) const fn new(object: Arc<Object>) -> Self {
        Self { object, piece: None, reading: Vec::new(), wanted: 0, is_broken: false }
    }

    pub(super) fn pull(&self, span: &mut ByteSpan, len: u64, out: &mut SendChain) -> BodyPiece {
        let Some(outside) = self.object.outside().filter(|_| !self.is_broken) else {
            return BodyPiece::Broken;
        };
        let number = span.at / Outside::CHUNK;
        let within = span.at % Outside::CHUNK;
        if let Some((known, bytes)) = &self.piece
            && *known == number
        {
            let end = (within + len).min(bytes.len() as u64);
            if end <= within {
                return BodyPiece::Broken;
            }
            debug_assert!(span.at + (end - within) <= span.end, "no more leaves than the span has");
            out.push_owned(bytes.slice(within as usize..end as usize));
            span.at += end - within;
            return if span.at == span.end { BodyPiece::End } else { BodyPiece::More };
        }
        // Bytes of another block are of no use.
        let have = if self.wanted == number { self.reading.len() as u64 } else { 0 };
        BodyPiece::Read {
            file: outside.file.clone(),
            offset: outside.at + number * Outside::CHUNK + have,
            len: outside.chunk_len(number).saturating_sub(have),
            whose: FileOwner::Cache(meta(outside)),
        }
    }

    /// Takes the bytes at `at` of the block that the last pull requested.
    pub(super) fn feed(&mut self, at: u64, bytes: &[u8]) {
        let Some(outside) = self.object.outside() else { return };
        let number = at / Outside::CHUNK;
        if self.wanted != number {
            self.wanted = number;
            self.reading.clear();
        }
        self.reading.extend_from_slice(bytes);
        debug_assert!(
            self.reading.len() as u64 <= outside.chunk_len(number),
            "no more of a piece is read than it has"
        );
        self.is_broken |= bytes.is_empty();
        if self.reading.len() as u64 >= outside.chunk_len(number) {
            if !outside.is_good(number, &self.reading) {
                self.is_broken = true;
                outside.condemn();
            }
            self.piece = Some((number, Bytes::from(std::mem::take(&mut self.reading))));
        }
    }
}

/// The properties that the file must still have.
fn meta(outside: &Outside) -> Meta {
    Meta {
        kind: FileKind::File,
        size: outside.stamp.size,
        mtime_secs: outside.stamp.mtime_seconds,
        mtime_nanos: outside.stamp.mtime_nanos,
        ctime_secs: 0,
        ctime_nanos: 0,
        inode: 0,
        dev: 0,
        mode: 0,
        is_shared: false,
    }
}
