//! Encodes the parts of an object: its head in one allocation, a large body in pieces.

use bytes::Bytes;

use super::{ESI_MARK, ObjectHead};

/// LIMIT: bytes of a piece of a larger body.
const PIECE_SIZE: usize = 1024 * 1024;

/// Copies `body` to pieces that own exactly their memory. Received bytes may be slices of larger
/// buffers.
pub(super) fn gather(body: Vec<Bytes>, len: usize) -> Vec<Bytes> {
    let mut pieces = Vec::with_capacity(len.div_ceil(PIECE_SIZE));
    let (mut piece, mut left) = (Vec::with_capacity(len.min(PIECE_SIZE)), len);
    for bytes in body {
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            let (now, later) = rest.split_at(rest.len().min(piece.capacity() - piece.len()));
            piece.extend_from_slice(now);
            left -= now.len();
            rest = later;
            if piece.len() == piece.capacity() {
                let next = Vec::with_capacity(left.min(PIECE_SIZE));
                pieces.push(Bytes::from(std::mem::replace(&mut piece, next).into_boxed_slice()));
            }
        }
    }
    debug_assert!(left == 0 && piece.is_empty(), "the pieces have the whole body");
    pieces
}

/// The control field with the id of an ESI page, which its inlines have in their keys.
pub const PAGE_ID: &[u8] = b"Page-Id";
/// The control field with the tags that responses before a 304 had, as in files.
pub const EARLIER_TAGS: &[u8] = b"Earlier-Tags";
/// The first byte of the name of a packed control field; no field that is sent begins with it.
const CONTROL: u8 = 0;

/// Packs a head: `Last-Modified` in 8 bytes, then each field as lengths, name and value; the fields
/// that no client gets come first.
pub(crate) fn pack_head(head: &ObjectHead) -> Vec<u8> {
    let mut packed = Vec::with_capacity(512);
    packed.extend_from_slice(&head.last_modified.unwrap_or(u64::MAX).to_le_bytes());
    for field in head.controls.iter() {
        pack_field(&mut packed, &[&[CONTROL], field.text], field.value);
    }
    for field in head.fields.iter() {
        pack_field(&mut packed, &[field.text], field.value);
    }
    packed
}

fn pack_field(packed: &mut Vec<u8>, name: &[&[u8]], value: &[u8]) {
    let len: usize = name.iter().map(|part| part.len()).sum();
    assert!(
        u16::try_from(len).is_ok() && u32::try_from(value.len()).is_ok(),
        "a packed field has its lengths in two and four bytes"
    );
    packed.extend_from_slice(&(len as u16).to_le_bytes());
    packed.extend_from_slice(&(value.len() as u32).to_le_bytes());
    name.iter().for_each(|part| packed.extend_from_slice(part));
    packed.extend_from_slice(value);
}

fn packed_fields(head: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    let mut rest = head.get(8..).unwrap_or_default();
    std::iter::from_fn(move || {
        let (name, value, next) = split_field(rest)?;
        rest = next;
        Some((name, value))
    })
}

/// The fields of a packed head that clients get, name and value.
pub(crate) fn sent_fields(head: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    packed_fields(head).filter(|(name, _)| name.first() != Some(&CONTROL))
}

/// The others, which the application sent to the cache alone.
pub(super) fn control_fields(head: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    packed_fields(head).map_while(|(name, value)| Some((name.strip_prefix(&[CONTROL])?, value)))
}

/// Whether a packed head has the ESI mark.
#[must_use]
pub fn is_marked(head: &[u8]) -> bool {
    packed_fields(head).any(|field| field == ESI_MARK)
}

#[inline]
pub(crate) fn split_field(bytes: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let (name_len, rest) = bytes.split_first_chunk::<2>()?;
    let (value_len, rest) = rest.split_first_chunk::<4>()?;
    let (name, rest) = rest.split_at_checked(usize::from(u16::from_le_bytes(*name_len)))?;
    let (value, rest) = rest.split_at_checked(u32::from_le_bytes(*value_len) as usize)?;
    Some((name, value, rest))
}
