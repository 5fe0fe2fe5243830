//! Caches of encoded response heads and of parsed request heads. A repeated head costs a comparison
//! and a copy.
//!
//! Both caches are sound because the bytes and the head determine each other. Responses: one table
//! serves all connections of a worker, because an encoded head does not depend on the client.
//! Requests: a connection keeps only its own last head, so that timing reveals nothing about the
//! requests of other clients. A head is cached when it comes the second time; one that never
//! repeats costs a lookup.

use bolide_http::{FieldMap, RequestHead, ResponseHead};

use super::head::After;
use super::response::{Delimiter, encode};
use crate::HeadPool;
use crate::fingerprint::fingerprint;

/// LIMIT: cached response heads. Framing and size of a head choose its slot.
const SLOTS: usize = 32;
/// LIMIT: bytes of a cached head, request or response.
const HEAD_SIZE_MAX: usize = 1024;

/// The properties that equal heads share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Print {
    status: u16,
    delimiter: Delimiter,
    after: After,
    /// Bytes of names and values.
    size: usize,
}

impl Print {
    #[inline]
    const fn slot(&self) -> usize {
        let length = match self.delimiter {
            Delimiter::Length(length) => length as usize,
            Delimiter::Nothing => 1,
            Delimiter::Chunked => 2,
        };
        (length ^ length >> 5 ^ self.size) % SLOTS
    }
}

#[derive(Debug)]
struct Slot {
    print: Print,
    /// The fields that `bytes` encode, unless `bytes` is empty.
    fields: FieldMap,
    bytes: Vec<u8>,
}

/// The encoded response heads of a worker's HTTP/1 connections. A head is cached when it comes the
/// second time. A new `Date` makes it a new head once per second.
#[derive(Debug, Default)]
pub struct Replies {
    /// Empty until the first head.
    slots: Vec<Option<Box<Slot>>>,
}

impl Replies {
    /// Appends a final head: the cached bytes, or newly encoded ones.
    #[inline]
    pub(super) fn write(
        &mut self,
        out: &mut Vec<u8>,
        head: &ResponseHead,
        delimiter: Delimiter,
        after: After,
    ) {
        let print = Print { status: head.status, delimiter, after, size: head.fields.size() };
        if let Some(Some(slot)) = self.slots.get(print.slot())
            && !slot.bytes.is_empty()
            && slot.print == print
            && slot.fields.is_identical(&head.fields)
        {
            debug_assert!(
                slot.bytes == encoded(head, delimiter, after),
                "a cached head equals a new encoding"
            );
            return out.extend_from_slice(&slot.bytes);
        }
        let start = out.len();
        encode(out, head, delimiter, after);
        self.note(print, &head.fields, &out[start..]);
    }

    /// Caches a head if the previous one of its slot had the same properties.
    fn note(&mut self, print: Print, fields: &FieldMap, bytes: &[u8]) {
        if self.slots.is_empty() {
            self.slots.resize_with(SLOTS, || None);
        }
        let slot = &mut self.slots[print.slot()];
        let again = slot.as_ref().is_some_and(|slot| slot.print == print);
        let slot = slot.get_or_insert_with(|| {
            Box::new(Slot { print, fields: FieldMap::new(), bytes: Vec::new() })
        });
        slot.print = print;
        slot.bytes.clear();
        if again && bytes.len() <= HEAD_SIZE_MAX {
            slot.fields.copy_from(fields);
            slot.bytes.extend_from_slice(bytes);
        }
    }
}

fn encoded(head: &ResponseHead, delimiter: Delimiter, after: After) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode(&mut bytes, head, delimiter, after);
    bytes
}

/// A request head that came at least twice.
#[derive(Debug)]
struct Request {
    /// The whole head, empty line included.
    bytes: Vec<u8>,
    head: RequestHead,
    after: After,
}

/// The last repeated request head of a connection.
#[derive(Debug, Default)]
pub(super) struct ReplayH1 {
    /// The fingerprint of the last head that missed.
    last: u64,
    kept: Option<Box<Request>>,
}

impl ReplayH1 {
    /// The cached head, if `input` begins with it, and its length. Call it only at the start of a
    /// head, and only under the settings that `note` had.
    #[inline]
    pub(super) fn find(
        &self,
        input: &[u8],
        heads: &mut HeadPool,
    ) -> Option<(usize, Box<RequestHead>, After)> {
        let kept = self.kept.as_deref()?;
        if !input.starts_with(&kept.bytes) {
            return None;
        }
        let mut head = heads.take();
        head.copy_from(&kept.head);
        Some((kept.bytes.len(), head, kept.after))
    }

    /// Caches a head that came whole as `bytes`, if it comes the second time.
    pub(super) fn note(&mut self, bytes: &[u8], head: &RequestHead, after: After) {
        if bytes.len() > HEAD_SIZE_MAX {
            return;
        }
        let print = fingerprint(bytes);
        if std::mem::replace(&mut self.last, print) != print {
            return;
        }
        let kept = self.kept.get_or_insert_with(|| {
            Box::new(Request { bytes: Vec::new(), head: RequestHead::default(), after })
        });
        kept.bytes.clear();
        kept.bytes.extend_from_slice(bytes);
        kept.head.copy_from(head);
        kept.after = after;
    }

    pub(super) fn shrink(&mut self) {
        self.kept = None;
    }
}

#[cfg(test)]
mod tests {
    use bolide_http::{BodyLen, Name, ResponseHead};
    use proptest::prelude::{Just, Strategy, any, prop, prop_oneof, proptest};

    use super::{After, Delimiter, Replies, encode};

    fn heads() -> impl Strategy<Value = (ResponseHead, Delimiter, After)> {
        let values = prop_oneof![Just("a"), Just("b"), Just("a\r\nb"), Just("")];
        let names = prop_oneof![
            Just("Server"),
            Just("Date"),
            Just("X-One"),
            Just("x-one"),
            Just("ETag"),
            Just("Connection"),
        ];
        let fields = prop::collection::vec((names, values), 0..3);
        let status = prop_oneof![Just(200), Just(304), Just(101)];
        (status, fields, 0..4_u64, any::<bool>(), any::<bool>()).prop_map(
            |(status, fields, len, close, removes)| {
                let mut head =
                    ResponseHead { status, body: BodyLen::Exact(len), ..ResponseHead::default() };
                for (name, value) in fields {
                    head.fields.push_text(name.as_bytes(), value.as_bytes());
                }
                if removes {
                    head.fields.remove(Name::Server);
                }
                let delimiter = match len {
                    0 => Delimiter::Nothing,
                    1 => Delimiter::Chunked,
                    _ => Delimiter::Length(len),
                };
                (head, delimiter, if close { After::Close } else { After::KeepAlive })
            },
        )
    }

    proptest! {
        #[test]
        fn what_is_said_from_memory_is_what_would_be_written(
            heads in prop::collection::vec(heads(), 1..6),
            turns in prop::collection::vec(any::<prop::sample::Index>(), 1..60),
        ) {
            let mut replies = Replies::default();
            for turn in turns {
                let (head, delimiter, after) = turn.get(&heads);
                let (mut said, mut written) = (b"kept".to_vec(), b"kept".to_vec());
                replies.write(&mut said, head, *delimiter, *after);
                encode(&mut written, head, *delimiter, *after);
                assert_eq!(said, written);
            }
        }
    }

    #[test]
    fn a_head_is_kept_when_its_like_came_twice_and_long_ones_never() {
        let said = |replies: &mut Replies, head: &ResponseHead| {
            replies.write(&mut Vec::new(), head, Delimiter::Length(5), After::KeepAlive);
            replies.slots.iter().flatten().filter(|slot| !slot.bytes.is_empty()).count()
        };
        let mut head = ResponseHead { status: 200, ..ResponseHead::default() };
        head.fields.push(Name::Server, b"s");
        let mut replies = Replies::default();
        assert_eq!([said(&mut replies, &head), said(&mut replies, &head)], [0, 1]);
        let mut long = ResponseHead { status: 200, ..ResponseHead::default() };
        long.fields.push(Name::Server, &[b's'; 1025]);
        assert_eq!([said(&mut replies, &long), said(&mut replies, &long)], [0, 0]);
    }
}
