//! The encoding of an object in Valkey: cluster, place of its fill in the stream of purges, then
//! the file format of the disk cache.
//!
//! ```text
//!   magic │ place │ length and name of the cluster │ head, sealed with the sum of these │ body
//! ```

use bytes::Bytes;

use super::log::StreamPlace;
use crate::disk::DiskWrite;
use crate::disk::format::{Record, head_size, sum};

/// The common prefix of all versions, and the version.
const MAGIC: [u8; 8] = *b"bolideO2";
/// Magic, place, length of the name.
const FIXED: usize = 8 + 8 + 8 + 8 + 2;
/// Bytes of a head that distinguish it from others: magic, seal, sum.
const MARK: usize = 24;

/// An object of another node, parsed but not checked against purges.
#[derive(Debug)]
pub(super) struct SharedRecord<'a> {
    pub(super) place: StreamPlace,
    pub(super) record: Record<'a>,
    /// The offset of the body.
    body: usize,
}

fn prefix(cluster: &[u8], place: StreamPlace) -> Vec<u8> {
    let cluster = &cluster[..cluster.len().min(usize::from(u16::MAX))];
    let mut out = Vec::with_capacity(FIXED + cluster.len());
    out.extend_from_slice(&MAGIC);
    out.extend_from_slice(&place.ms.to_le_bytes());
    out.extend_from_slice(&place.number.to_le_bytes());
    out.extend_from_slice(&place.sum.to_le_bytes());
    out.extend_from_slice(&(cluster.len() as u16).to_le_bytes());
    out.extend_from_slice(cluster);
    out
}

/// The bytes of an object; `None` if the format cannot represent it.
pub(super) fn write(cluster: &[u8], place: StreamPlace, object: &DiskWrite) -> Option<Vec<u8>> {
    let mut out = prefix(cluster, place);
    let mut head = Vec::new();
    if !object.encode(sum(&out), &mut head) {
        return None;
    }
    out.extend_from_slice(&head);
    object.object().pieces().for_each(|piece| out.extend_from_slice(piece));
    debug_assert!(read(&out, cluster).is_some(), "an object is read as it was written");
    Some(out)
}

/// Parses an object of this cluster; `None` if it is foreign, damaged or incomplete.
pub(super) fn read<'a>(bytes: &'a [u8], cluster: &[u8]) -> Option<SharedRecord<'a>> {
    let fixed = bytes.first_chunk::<FIXED>()?;
    let word = |at: usize| fixed[at..].first_chunk().map(|word| u64::from_le_bytes(*word));
    let place = StreamPlace { ms: word(8)?, number: word(16)?, sum: word(24)? };
    let own = prefix(cluster, place);
    let rest = bytes.strip_prefix(&*own)?;
    let record = Record::decode(rest).filter(|record| record.seal == sum(&own))?;
    let body = own.len() + record.size();
    let is_whole = record.has_body(bytes.get(body..)?);
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

impl SharedRecord<'_> {
    /// The body, as a slice of `bytes`.
    pub(super) fn body(&self, bytes: &Bytes) -> Bytes {
        bytes.slice(self.body..)
    }
}
