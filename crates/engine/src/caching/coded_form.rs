//! In which form a kept answer leaves, and making one that is not there.
//!
//! Owns what is compressed at once and what later. Easiest to break: a form is made in a turn once
//! for an object, so one that the store would not keep is not made there.

use std::sync::Arc;

use bolide_cache::{Object, ObjectVariant};
use bolide_http::negotiate::Coding;
use bytes::Bytes;

use crate::ctx::{StepCtx, StepEffect};

/// LIMIT: bytes of an answer that is compressed when it is asked for; the thread does larger ones,
/// and they leave as they are until it has.
const AT_ONCE: u64 = 64 * 1024;

/// In which form an object leaves.
pub(super) enum CodedForm {
    /// Compressed.
    Coded(Bytes),
    /// As it is.
    Plain,
    /// As it is, until its compressed form is made.
    Later,
}

impl CodedForm {
    /// What there is of `object` in `coding`; what there is not is made, now or later.
    pub(super) fn of(
        object: &Arc<Object>,
        coding: Coding,
        level: i8,
        ctx: &mut StepCtx<'_>,
    ) -> Self {
        match object.variant(coding) {
            Some(ObjectVariant::Ready(form)) => return Self::Coded(form.clone()),
            Some(ObjectVariant::NotWorth) => return Self::Plain,
            None => {}
        }
        let lasting = lasting_level(coding);
        let front = ctx.cache.as_deref().filter(|front| !front.is_dry());
        // Harder than that takes a thread of its own, however small the body is.
        let is_light = object.body_len() <= AT_ONCE && level <= lasting;
        let level = level.max(lasting);
        if let Some(front) = front.filter(|_| is_light && !object.is_retired())
            && let Some(body) = object.body()
            && object.claim_variant(coding)
        {
            let form = bolide_files::compress(coding, level, &body).ok();
            let form = form.filter(|form| form.len() < body.len()).map(Bytes::from);
            let variant = form.clone().map_or(ObjectVariant::NotWorth, ObjectVariant::Ready);
            // It may have left the index just now.
            let _is_kept = front.store().set_variant(object, coding, variant);
            return form.map_or(Self::Plain, Self::Coded);
        }
        if object.claim_variant(coding) {
            ctx.effects.push(StepEffect::CompressObject(object.clone(), coding, level));
        }
        Self::Later
    }
}

/// How hard a form is compressed at least that is made once and sent often.
const fn lasting_level(coding: Coding) -> i8 {
    match coding {
        Coding::Gzip => 7,
        Coding::Brotli => 6,
        Coding::Zstd => 12,
    }
}
