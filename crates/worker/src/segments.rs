//! The part of a gather list that a socket did not take.

use std::collections::VecDeque;

use bolide_base::{Segment, SendChain};
use bytes::Bytes;

/// Shared pieces below this are copied: a gather entry costs more than copying them.
pub(crate) const SHARE_MIN: usize = 16 * 1024;

/// Bytes of a segment.
pub(crate) fn segment_len(segment: &Segment) -> u64 {
    match segment {
        Segment::Inline(start, end) => (end - start) as u64,
        Segment::Bytes(bytes) => bytes.len() as u64,
        Segment::File(range) => range.len,
    }
}

/// Drops this many bytes from the front of a segment.
pub(crate) fn advance(segment: &mut Segment, n: u64) {
    debug_assert!(n <= segment_len(segment), "no more leaves than there is");
    match segment {
        Segment::Inline(start, _) => *start += n as usize,
        Segment::Bytes(bytes) => {
            let _ = bytes.split_to(n as usize);
        }
        Segment::File(range) => {
            range.offset += n;
            range.len -= n;
        }
    }
}

/// Keeps everything of `chain` after its first `sent` bytes.
pub(crate) fn keep_rest(chain: &SendChain, mut sent: u64, unsent: &mut VecDeque<Segment>) {
    debug_assert!(sent <= chain.len(), "no more leaves than there is");
    for segment in chain.segments() {
        let len = segment_len(segment);
        if sent >= len {
            sent -= len;
            continue;
        }
        let mut rest = match segment {
            Segment::Inline(start, end) => {
                Segment::Bytes(Bytes::copy_from_slice(chain.inline(*start, *end)))
            }
            Segment::Bytes(bytes) => Segment::Bytes(bytes.clone()),
            Segment::File(range) => Segment::File(range.clone()),
        };
        advance(&mut rest, sent);
        sent = 0;
        unsent.push_back(rest);
    }
}

#[cfg(test)]
mod tests {
    use super::{keep_rest, segment_len};
    use bolide_base::{CopyPolicy, Segment, SendChain};
    use bytes::Bytes;
    use std::collections::VecDeque;

    #[test]
    fn what_was_not_taken_is_kept_from_its_first_byte_on() {
        let mut chain = SendChain::new(CopyPolicy::Shared(4));
        chain.push_slice(b"ab");
        chain.push_bytes(&Bytes::from_static(b"cdef"));
        chain.push_slice(b"gh");
        for sent in 0..8 {
            let mut unsent = VecDeque::new();
            keep_rest(&chain, sent, &mut unsent);
            let text: Vec<u8> = unsent
                .iter()
                .flat_map(|segment| match segment {
                    Segment::Bytes(bytes) => bytes.to_vec(),
                    _ => Vec::new(),
                })
                .collect();
            assert_eq!(text, b"abcdefgh"[sent as usize..]);
            assert_eq!(unsent.iter().map(segment_len).sum::<u64>(), 8 - sent);
        }
    }
}
