//! Pieces of a body that wait in memory: small ones are joined.
//!
//! A piece costs some eighty bytes beside its own, and may keep the whole buffer that it was
//! received in. Limits count bytes, so without this a sender of single bytes would have many times
//! as much memory as they allow.

use std::collections::VecDeque;

use bytes::Bytes;

/// Larger pieces stay as they are.
const SMALL: usize = 4096;

/// Appends a piece; joins it with pieces at the end of `queue`, of which the first `fixed` stay as
/// they are. A byte is copied a few times at most.
#[inline]
pub fn push_piece(queue: &mut VecDeque<Bytes>, fixed: usize, bytes: Bytes) {
    if bytes.len() < SMALL && queue.len() > fixed {
        return push_small(queue, fixed, bytes);
    }
    queue.push_back(bytes);
}

/// As in a binary counter, a piece joins one that is less than twice as long, so that the lengths
/// of those that stay at least halve from one to the next.
fn push_small(queue: &mut VecDeque<Bytes>, fixed: usize, bytes: Bytes) {
    let (mut from, mut len) = (queue.len(), bytes.len());
    while from > fixed
        && let Some(last) = queue.get(from - 1)
        && last.len() < 2 * len
        && last.len() + len <= SMALL
    {
        from -= 1;
        len += last.len();
    }
    if from == queue.len() {
        return queue.push_back(bytes);
    }
    let mut joined = Vec::with_capacity(len);
    for piece in queue.drain(from..) {
        joined.extend_from_slice(&piece);
    }
    joined.extend_from_slice(&bytes);
    queue.push_back(Bytes::from(joined));
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use bytes::Bytes;

    use super::{SMALL, push_piece};
    use crate::prng::Prng;

    #[test]
    fn single_bytes_become_few_pieces() {
        let mut queue = VecDeque::new();
        for n in 0..100_000_u32 {
            push_piece(&mut queue, 0, Bytes::copy_from_slice(&[n as u8]));
            assert!(queue.len() <= 2 * (n as usize / SMALL) + 13, "{n}: {}", queue.len());
        }
        let all: Vec<u8> = queue.iter().flatten().copied().collect();
        assert!(all.iter().enumerate().all(|(n, byte)| *byte == n as u8));
        assert_eq!(all.len(), 100_000);
    }

    #[test]
    fn pieces_of_any_length_keep_their_order_and_those_that_are_fixed() {
        let mut prng = Prng::new(3);
        for _ in 0..200 {
            let (mut queue, mut all) = (VecDeque::new(), Vec::new());
            for _ in 0..prng.below(60) {
                let most = 2 << prng.below(13);
                let len = 1 + prng.below(most) as usize;
                let piece: Vec<u8> = (0..len).map(|_| prng.next_u64() as u8).collect();
                all.extend_from_slice(&piece);
                let fixed = prng.below(queue.len() as u64 + 1) as usize;
                let before: Vec<Bytes> = queue.iter().take(fixed).cloned().collect();
                push_piece(&mut queue, fixed, Bytes::from(piece));
                assert!(queue.iter().zip(&before).all(|(one, other)| one == other));
            }
            assert!(queue.iter().flatten().eq(&all));
        }
    }
}
