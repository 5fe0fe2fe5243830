//! A source whose bytes come behind some of ours: a part of a file with a head of its own.

use bolide_base::SendChain;
use bytes::Bytes;

use super::piece::{BodyPiece, FileOwner};
use super::span::{ByteSpan, BytesFrom, push_part};

/// Bytes of ours, and behind them a file or memory from a byte on.
#[derive(Clone, Debug)]
pub(crate) struct HeadedBytes {
    head: Bytes,
    rest: BytesFrom,
    /// The first byte of `rest` that belongs to it.
    skip: u64,
}

impl HeadedBytes {
    /// `head`, and `rest` from byte `skip` on.
    pub(crate) fn new(head: Bytes, rest: BytesFrom, skip: u64) -> Self {
        debug_assert!(
            matches!(rest, BytesFrom::Memory(_) | BytesFrom::File(..)),
            "files alone have parts with heads"
        );
        Self { head, rest, skip }
    }

    /// Appends or describes at most `len` bytes of `span`, which are there.
    pub(super) fn pull(&self, span: &mut ByteSpan, len: u64, out: &mut SendChain) -> BodyPiece {
        let head_len = self.head.len() as u64;
        let (bytes, from) = match &self.rest {
            _ if span.at < head_len => (&self.head, span.at),
            BytesFrom::Memory(bytes) => (bytes, span.at - head_len + self.skip),
            BytesFrom::File(file) => {
                let offset = span.at - head_len + self.skip;
                let (file, whose) = (file.clone(), FileOwner::Site);
                return BodyPiece::File { file, offset, len, whose };
            }
            _ => return BodyPiece::Broken,
        };
        let end = (from + len).min(bytes.len() as u64);
        if end <= from {
            return BodyPiece::Broken;
        }
        push_part(bytes, from as usize, end as usize, out);
        span.at += end - from;
        if span.at == span.end { BodyPiece::End } else { BodyPiece::More }
    }
}

#[cfg(test)]
mod tests {
    use bolide_base::SendChain;
    use bolide_base::chain::CopyPolicy;
    use bolide_http::range::ByteRange;
    use bytes::Bytes;

    use super::HeadedBytes;
    use crate::answer::{AnswerBody, BodyPiece, BytesFrom};

    #[test]
    fn any_range_in_pulls_of_any_size_is_that_of_head_and_rest() {
        let whole = b"head23456789";
        for (start, end) in [(0, 12), (0, 4), (1, 3), (3, 6), (4, 12), (11, 12)] {
            for max in [1, 3, 5, 100] {
                let rest = BytesFrom::Memory(Bytes::from_static(b"0123456789"));
                let headed = HeadedBytes::new(Bytes::from_static(b"head"), rest, 2);
                let source = BytesFrom::Headed(Box::new(headed));
                let mut body = AnswerBody::span(source, ByteRange { start, end });
                let mut out = SendChain::new(CopyPolicy::Contiguous);
                while let BodyPiece::More = body.pull(max, &mut out) {}
                let wanted = &whole[start as usize..end as usize];
                assert_eq!(out.contiguous().unwrap(), wanted, "{start}..{end} by {max}");
            }
        }
    }
}
