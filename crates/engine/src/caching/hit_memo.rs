//! Repeated hits: the fields and the coded form of the last response with the same object.
//!
//! Owns what makes two such responses equal; excludes conditions, ranges and proxies. Easiest to
//! break: what depends on more than the tag is not remembered, but added by `decorate` and
//! `say_kept` each time.

use std::sync::Arc;

use bolide_cache::{Memo, Object};
use bolide_conf::model::CharsetOf;
use bolide_http::conditional::Conditions;
use bolide_http::{BodyLen, FieldMap, Name, OriginHead};
use bytes::Bytes;

use crate::answer::Answer;
use crate::answer::AnswerBody;
use crate::caching::CacheTransaction;
use crate::caching::UpstreamCacheStatus;
use crate::caching::cached_response::say_kept;
use crate::ctx::StepCtx;
use crate::filter::compress;
use crate::filter::esi::assembles;
use crate::htaccess::effects::has_codings;
use crate::request::Request;
use crate::site::{CompiledLocation, Site};

impl CacheTransaction {
    /// Sends the remembered response, if this worker has one for the same conditions.
    pub(crate) fn serve_warm(
        &self,
        request: &Request,
        answer: &mut Answer,
        object: &Arc<Object>,
        site: &Site,
        ctx: &StepCtx<'_>,
    ) -> bool {
        let location = site.location(request.location);
        let Some(tag) = warm_tag(request, answer, location, site, ctx) else {
            return false;
        };
        let Some(front) = ctx.cache.as_deref() else { return false };
        let Some(memo) = front.memo(object, tag) else { return false };
        let mut fields = std::mem::take(&mut answer.head.fields);
        fields.copy_from(&memo.fields);
        if memo.own_date {
            // All dates have 29 bytes (RFC 9110 §5.6.7).
            let is_written = fields.overwrite(Name::Date, ctx.clock.http());
            debug_assert!(is_written, "a remembered answer of ours has a date");
        }
        debug_assert!(
            !(object.is_esi() && assembles(location)),
            "a page with includes is put together, not repeated"
        );
        let body = memo.body.clone();
        answer.head.body = BodyLen::Exact(body.len() as u64);
        answer.body = if body.is_empty() { AnswerBody::Empty } else { AnswerBody::memory(body) };
        answer.decorate(request, fields, 200, object.last_modified(), site, ctx);
        say_kept(answer, self, object, location, ctx.now.unix_millis);
        true
    }
}

/// A response to remember.
pub(crate) struct HitMemo<'a> {
    /// Its status.
    pub(crate) status: u16,
    /// The head as stored.
    pub(crate) head: &'a OriginHead,
    /// The coded form that is sent, if there is one.
    pub(crate) body: Option<&'a Bytes>,
    /// Whether the next response has this form as well.
    pub(crate) is_final: bool,
}

/// Remembers a response for the next requests; `body` is its coded form.
pub(crate) fn remember_warm(
    request: &Request,
    answer: &Answer,
    object: &Arc<Object>,
    given: &HitMemo<'_>,
    fields: &FieldMap,
    site: &Site,
    ctx: &mut StepCtx<'_>,
) {
    let location = site.location(request.location);
    if answer.cached != UpstreamCacheStatus::Hit || given.status != 200 || !given.is_final {
        return;
    }
    // It has to be evaluated for each request.
    if given.head.fields.get_text(b"X-Accel-Limit-Rate").is_some() {
        return;
    }
    let charset = match &location.settings.charset.charset {
        CharsetOf::Name(name) => name.as_text().is_some(),
        _ => true,
    };
    let charset = charset && !location.recodes_passed;
    let Some(tag) = warm_tag(request, answer, location, site, ctx).filter(|_| charset) else {
        return;
    };
    debug_assert_eq!(object.status(), 200, "only what is a 200 is repeated as one");
    let Some(body) = given.body.cloned().or_else(|| object.body()) else { return };
    let Some(front) = ctx.cache.as_deref_mut() else { return };
    let own_date = location.dates(&given.head.fields);
    let memo = || Memo { tag, fields: fields.clone(), own_date, body, whole: None };
    front.remember(object, memo);
}

/// The conditions under which two responses are equal; none if this request is special.
pub(crate) fn warm_tag(
    request: &Request,
    answer: &Answer,
    location: &CompiledLocation,
    site: &Site,
    ctx: &StepCtx<'_>,
) -> Option<[u64; 2]> {
    let fields = &request.head().fields;
    let is_special = Conditions::of(fields) != Conditions::default()
        || fields.get(Name::Via).is_some()
        || answer.forced_status != 0
        || request.sees_controls(location, ctx)
        || has_codings(request);
    if is_special {
        return None;
    }
    let codings = compress::wanted_codings(request, location);
    let place = u64::from(request.location) << 8 | u64::from(codings.bits());
    Some([site.serial(), place])
}
