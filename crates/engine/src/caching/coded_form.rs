//! The coded forms of a cached object, and the making of a missing one.
//!
//! Owns what is compressed at once and what later. Easiest to break: a form is made within a turn
//! at most once for an object, so not if the store would not keep it.

use std::sync::Arc;

use bolide_cache::{Object, ObjectVariant};
use bolide_http::negotiate::Coding;
use bytes::Bytes;

use crate::ctx::{StepCtx, StepEffect};

/// LIMIT: bytes of an object that is compressed when it is requested; the background thread
/// compresses larger ones, which are sent uncompressed until then.
const AT_ONCE: u64 = 64 * 1024;

/// The form of an object that is sent.
pub(super) enum CodedForm {
    /// Compressed.
    Coded(Bytes),
    /// Uncompressed.
    Plain,
    /// Uncompressed, until its compressed form is made.
    Later,
}

impl CodedForm {
    /// The form of `object` in `coding`; a missing one is made, now or later.
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
        // A higher level is left to the background thread, even for a small body.
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

/// The least level of a form that is made once and sent often.
const fn lasting_level(coding: Coding) -> i8 {
    match coding {
        Coding::Gzip => 7,
        Coding::Brotli => 6,
        Coding::Zstd => 12,
    }
}
