//! What a worker remembers of each request that a store might have answered.

use cache::rules::Refusal;
use cache::{Class, Decision, NamespaceId, Note};

use super::why::{self, Why};
use crate::content::page::Cached;
use crate::ctx::Ctx;
use crate::exchange::Exchange;

/// A decision that was made lately.
#[derive(Clone, Debug)]
pub struct Recent {
    /// `$request_id`
    pub id: String,
    /// When the request was over; milliseconds since 1970.
    pub at_ms: u64,
    /// Whose part of the store.
    pub namespace: NamespaceId,
    /// The status that the client got.
    pub status: u16,
    /// The decision.
    pub decision: &'static str,
    /// nginx's word for it; empty if it has none.
    pub cached: &'static str,
    /// Why.
    pub why: Why,
    /// Why the origin's answer was not kept, if a rule said so.
    pub refusal: Option<Refusal>,
    /// Whether the origin's answer was kept.
    pub is_kept: bool,
    /// Hash of the key; 0 if it had none.
    pub key: u128,
    /// The first bytes of path and query.
    pub target: Vec<u8>,
    /// Whether more of it was there.
    pub is_cut: bool,
}

impl Recent {
    pub(super) fn new(noted: Decision) -> Self {
        let (cached, why, refusal, is_kept) = why::decode(noted.codes);
        Self {
            id: format!("{:016x}{:016x}", noted.id[0], noted.id[1]),
            at_ms: noted.at_ms,
            namespace: noted.namespace,
            status: noted.status,
            decision: decision(cached, why),
            cached: cached.text(),
            why,
            refusal,
            is_kept,
            key: noted.key,
            target: noted.target,
            is_cut: noted.is_cut,
        }
    }
}

/// The decision in one word.
pub(super) const fn decision(cached: Cached, why: Why) -> &'static str {
    match (cached, why) {
        (_, Why::Purge) => "PURGE",
        (Cached::Miss, Why::Asked | Why::Anew) => "MISS",
        (Cached::No | Cached::Miss, _) => "PASS",
        (cached, _) => cached.text(),
    }
}

const fn class(cached: Cached, why: Why) -> Class {
    match (cached, why) {
        (Cached::Hit | Cached::Revalidated, _) => Class::Hit,
        (Cached::Stale | Cached::Updating, _) => Class::Stale,
        (Cached::Expired, _) | (Cached::Miss, Why::Asked) => Class::Miss,
        (Cached::No | Cached::Bypass | Cached::Miss, _) => Class::Pass,
    }
}

impl Exchange {
    /// Has the worker remember what the store did for this request, if it might have done anything.
    #[inline]
    pub(crate) fn note_decision(&self, ctx: &mut Ctx<'_>) {
        if let (Some(_), Some(namespace)) = self.page.asked() {
            self.note_asked(namespace, ctx);
        }
    }

    fn note_asked(&self, namespace: NamespaceId, ctx: &mut Ctx<'_>) {
        let Some(front) = ctx.cache.as_deref_mut() else { return };
        let (cached, why) = (self.answer.cached, self.page.why);
        let note = Note {
            id: self.request.id,
            at_ms: ctx.now.unix_millis,
            key: self.page.hash,
            namespace,
            status: self.answer.logged_status(),
            codes: why::codes(cached, why, self.page.refusal, self.is_kept()),
            target: self.request.address(),
        };
        front.note(&note, class(cached, why));
    }
}
