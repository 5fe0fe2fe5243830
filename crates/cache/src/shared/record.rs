//! The encoding of an object in Valkey: cluster, place of its fill in the stream of purges, then
//! the file format of the disk cache, with a compressed body where that saves memory.
//!
//! ```text
//!   magic │ place │ coding │ length and name of the cluster │ head, sealed by their sum │ body
//! ```

use std::borrow::Cow;

use bytes::Bytes;

use super::log::StreamPlace;
use crate::disk::DiskWrite;
use crate::disk::format::{Record, head_size, sum};

/// The common prefix of all versions, and the version.
const MAGIC: [u8; 8] = *b"bolideO3";
/// Magic, place, coding, length of the name.
const FIXED: usize = 8 + 8 + 8 + 8 + 1 + 2;
/// The offset of the coding.
const CODING_AT: usize = FIXED - 3;
/// Bytes of a head that distinguish it from others: magic, seal, sum.
const MARK: usize = 24;
/// LIMIT: bytes of a body that is worth compressing.
const COMPRESSED_MIN: usize = 1024;
/// The level of zstd, which is fast: the thread of the cluster does nothing else meanwhile.
const LEVEL: i32 = 1;

/// How the body is written. Clients do not get this form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BodyCoding {
    Plain = 0,
    Zstd = 1,
}

/// An object of another node, parsed but not checked against purges.
#[derive(Debug)]
pub(super) struct SharedRecord<'a> {
    pub(super) place: StreamPlace,
    pub(super) record: Record<'a>,
    pub(super) body: Bytes,
}

fn prefix(cluster: &[u8], place: StreamPlace, coding: BodyCoding) -> Vec<u8> {
    let cluster = &cluster[..cluster.len().min(usize::from(u16::MAX))];
    let mut out = Vec::with_capacity(FIXED + cluster.len());
    out.extend_from_slice(&MAGIC);
    out.extend_from_slice(&place.ms.to_le_bytes());
    out.extend_from_slice(&place.number.to_le_bytes());
    out.extend_from_slice(&place.sum.to_le_bytes());
    out.push(coding as u8);
    out.extend_from_slice(&(cluster.len() as u16).to_le_bytes());
    out.extend_from_slice(cluster);
    out
}

/// The bytes of an object; `None` if the format cannot represent it.
pub(super) fn write(cluster: &[u8], place: StreamPlace, object: &DiskWrite) -> Option<Vec<u8>> {
    let (coding, body) = coded_body(object);
    let mut out = prefix(cluster, place, coding);
    let mut head = Vec::new();
    if !object.encode(sum(&out), &mut head) {
        return None;
    }
    out.extend_from_slice(&head);
    out.extend_from_slice(&body);
    debug_assert!(
        read(&Bytes::copy_from_slice(&out), cluster, |_| true).is_some(),
        "an object is read as it was written"
    );
    Some(out)
}

/// The body, in the form that takes less memory.
fn coded_body(object: &DiskWrite) -> (BodyCoding, Cow<'_, [u8]>) {
    let mut pieces = object.object().pieces();
    let plain = match (pieces.next(), pieces.next()) {
        (one, None) => Cow::Borrowed(one.unwrap_or_default()),
        _ => Cow::Owned(object.object().pieces().collect::<Vec<_>>().concat()),
    };
    if plain.len() >= COMPRESSED_MIN
        && let Ok(small) = zstd::bulk::compress(&plain, LEVEL)
        && small.len() < plain.len() / 10 * 9
    {
        return (BodyCoding::Zstd, Cow::Owned(small));
    }
    (BodyCoding::Plain, plain)
}

/// Parses an object of this cluster; `None` if it is foreign, damaged, incomplete, or has a body
/// whose size `has_size` refuses.
pub(super) fn read<'a>(
    bytes: &'a Bytes,
    cluster: &[u8],
    has_size: impl Fn(u64) -> bool,
) -> Option<SharedRecord<'a>> {
    let fixed = bytes.first_chunk::<FIXED>()?;
    let word = |at: usize| fixed[at..].first_chunk().map(|word| u64::from_le_bytes(*word));
    let place = StreamPlace { ms: word(8)?, number: word(16)?, sum: word(24)? };
    let codings = [BodyCoding::Plain, BodyCoding::Zstd];
    let coding = codings.into_iter().find(|coding| *coding as u8 == fixed[CODING_AT])?;
    let own = prefix(cluster, place, coding);
    let rest = bytes.strip_prefix(&*own)?;
    let record = Record::decode(rest).filter(|record| record.seal == sum(&own))?;
    // The head says how much memory the body takes, so the limit comes before the body.
    if !has_size(record.body_len) {
        return None;
    }
    let written = bytes.get(own.len() + record.size()..).map(|body| bytes.slice_ref(body))?;
    let body = match coding {
        BodyCoding::Plain => written,
        BodyCoding::Zstd => {
            let len = usize::try_from(record.body_len).ok()?;
            zstd::bulk::decompress(&written, len).ok()?.into()
        }
    };
    let is_whole = record.has_body(&body);
    is_whole.then_some(SharedRecord { place, record, body })
}

/// The part of the bytes that distinguishes them from another object under the same key.
pub(super) fn mark(bytes: &[u8]) -> &[u8] {
    let name =
        bytes.get(FIXED - 2..FIXED).map_or(0, |len| usize::from(len[0]) | usize::from(len[1]) << 8);
    let is_ours = bytes.starts_with(&MAGIC)
        && head_size(bytes.get(FIXED + name..).unwrap_or_default()).is_some();
    if is_ours {
        &bytes[..(FIXED + name + MARK).min(bytes.len())]
    } else {
        &bytes[..bytes.len().min(MARK)]
    }
}
