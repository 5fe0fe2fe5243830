//! Caches the last request head and the last response head of a connection. A repeated head costs a
//! comparison and a copy.
//!
//! Both caches are sound because a block and a head determine each other for one state of the
//! dynamic table, which a generation number identifies. A head is cached when it comes the second
//! time, so that connections without repetition pay nothing.

use bolide_http::{RequestHead, ResponseHead};

use crate::fingerprint::fingerprint;
use crate::sched::Priority;

/// LIMIT: bytes of a cached block.
const BLOCK_MAX: usize = 1024;

/// A request whose block came at least twice.
#[derive(Debug)]
struct Request {
    generation: u32,
    block: Vec<u8>,
    head: RequestHead,
    priority: Option<Priority>,
}

/// The last repeated request head.
#[derive(Debug, Default)]
pub(super) struct ReplayH2 {
    /// The fingerprint of the last block that missed.
    last: u64,
    kept: Option<Box<Request>>,
}

impl ReplayH2 {
    /// Fills `head` if `block` is the cached one and the table has not changed.
    #[inline]
    pub(super) fn find(
        &self,
        generation: u32,
        block: &[u8],
        head: &mut RequestHead,
    ) -> Option<Option<Priority>> {
        let kept = self.kept.as_deref()?;
        if kept.generation != generation || kept.block != block {
            return None;
        }
        head.copy_from(&kept.head);
        Some(kept.priority)
    }

    /// Caches a request that left the table unchanged, if it comes the second time.
    pub(super) fn note(
        &mut self,
        generation: u32,
        block: &[u8],
        head: &RequestHead,
        priority: Option<Priority>,
    ) {
        let print = fingerprint(block);
        if std::mem::replace(&mut self.last, print) != print || block.len() > BLOCK_MAX {
            return;
        }
        let kept = self.kept.get_or_insert_with(|| {
            let (block, head) = (Vec::new(), RequestHead::default());
            Box::new(Request { generation, block, head, priority })
        });
        kept.generation = generation;
        kept.block.clear();
        kept.block.extend_from_slice(block);
        kept.head.copy_from(head);
        kept.priority = priority;
    }

    pub(super) fn shrink(&mut self) {
        self.kept = None;
    }
}

/// A response head that was sent at least twice.
#[derive(Debug)]
struct Response {
    generation: u32,
    head: ResponseHead,
    block: Vec<u8>,
}

/// The last repeated response head.
#[derive(Debug, Default)]
pub(super) struct Responses {
    last: (u16, bolide_http::BodyLen, usize),
    kept: Option<Box<Response>>,
}

impl Responses {
    /// The block of `head`, if it is the cached one and the table has not changed.
    #[inline]
    pub(super) fn find(&self, generation: Option<u32>, head: &ResponseHead) -> Option<&[u8]> {
        let kept = self.kept.as_deref()?;
        let is_same = generation == Some(kept.generation)
            && kept.head.status == head.status
            && kept.head.body == head.body
            && kept.head.fields.is_identical(&head.fields);
        is_same.then_some(&kept.block[..])
    }

    /// Caches a head that left the table unchanged, if it comes the second time.
    pub(super) fn note(&mut self, generation: u32, head: &ResponseHead, block: &[u8]) {
        let print = (head.status, head.body, head.fields.size());
        if std::mem::replace(&mut self.last, print) != print || block.len() > BLOCK_MAX {
            return;
        }
        let kept = self.kept.get_or_insert_with(|| {
            Box::new(Response { generation, head: ResponseHead::default(), block: Vec::new() })
        });
        kept.generation = generation;
        kept.head.copy_from(head);
        kept.block.clear();
        kept.block.extend_from_slice(block);
    }

    pub(super) fn shrink(&mut self) {
        self.kept = None;
    }
}
