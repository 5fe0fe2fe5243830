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

/// Packs a head: `Last-Modified` in 8 bytes, then each field as lengths, name and value.
pub(crate) fn pack_head(head: &ObjectHead) -> Vec<u8> {
    let mut packed = Vec::with_capacity(512);
    packed.extend_from_slice(&head.last_modified.unwrap_or(u64::MAX).to_le_bytes());
    for field in head.fields.iter() {
        assert!(
            u16::try_from(field.text.len()).is_ok() && u32::try_from(field.value.len()).is_ok(),
            "a packed field has its lengths in two and four bytes"
        );
        packed.extend_from_slice(&(field.text.len() as u16).to_le_bytes());
        packed.extend_from_slice(&(field.value.len() as u32).to_le_bytes());
        packed.extend_from_slice(field.text);
        packed.extend_from_slice(field.value);
    }
    packed
}

/// Whether a packed head has the ESI mark.
#[must_use]
pub fn is_marked(head: &[u8]) -> bool {
    let mut rest = head.get(8..).unwrap_or_default();
    while let Some((name, value, next)) = split_field(rest) {
        if (name, value) == ESI_MARK {
            return true;
        }
        rest = next;
    }
    false
}

#[inline]
pub(crate) fn split_field(bytes: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let (name_len, rest) = bytes.split_first_chunk::<2>()?;
    let (value_len, rest) = rest.split_first_chunk::<4>()?;
    let (name, rest) = rest.split_at_checked(usize::from(u16::from_le_bytes(*name_len)))?;
    let (value, rest) = rest.split_at_checked(u32::from_le_bytes(*value_len) as usize)?;
    Some((name, value, rest))
}
