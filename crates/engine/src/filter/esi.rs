//! The head of an ESI page.
//!
//! Owns the fields that such a page cannot have: validators, ranges, and a length unless it is sent
//! as it was a moment ago. Easiest to break: the field that marks ESI pages for the store is never
//! sent.

use std::sync::Arc;

use bolide_base::SpoolLimits;
use bolide_cache::rules::{self, AnswerFacts};
use bolide_cache::{Memo, Object};
use bolide_conf::model::CharsetOf;
use bolide_http::negotiate::Coding;
use bolide_http::{BodyLen, FieldMap, Method, Name, OriginHead};

use crate::answer::Answer;
use crate::answer::{AnswerBody, Growth, Inflow, PageAssembly, Strand};
use crate::caching::CacheTransaction;
use crate::caching::UpstreamCacheStatus;
use crate::caching::cached_response::say_asked;
use crate::caching::cached_response::say_kept;
use crate::caching::hit_memo::warm_tag;
use crate::content::origin_news::take_more;
use crate::ctx::{StepCtx, StepEffect, Wake};
use crate::delivery::{Delivery, Representation, has_no_content};
use crate::exchange::NextStep;
use crate::filter::charset::{RecodedLength, recodes_origin};
use crate::filter::compress;
use crate::filter::compress::CodingChoice;
use crate::filter::upstream_response::PassedHead;
use crate::request::Request;
use crate::site::{CompiledLocation, Site};

/// LIMIT: bytes of a page that are read ahead of its client without a file: a fragment may need the
/// process that sends the page.
const PAGE_MAX: usize = 10 * 1024 * 1024;
/// LIMIT: bytes of a cached page whose literals are compressed.
const PARTS_MAX: u64 = 1024 * 1024;

/// Whether this location assembles pages.
pub(crate) fn assembles(location: &CompiledLocation) -> bool {
    let caching = location.caching.as_ref();
    caching.is_some_and(|caching| caching.is_page() && caching.conf.page.esi)
}

impl CacheTransaction {
    /// Whether an upstream response is an ESI page.
    pub(crate) fn is_esi_page(
        &self,
        request: &Request,
        head: &OriginHead,
        location: &CompiledLocation,
        ctx: &StepCtx<'_>,
        site: &Site,
    ) -> bool {
        let Some(caching) = location.caching.as_ref().filter(|_| assembles(location)) else {
            return false;
        };
        // The including page parses a combined response itself.
        if request.role.fragment().is_some_and(|lineage| lineage.form().is_some()) {
            return false;
        }
        let now_ms = ctx.now.unix_millis;
        let facts = AnswerFacts {
            status: head.status,
            fields: &head.fields,
            body_len: None,
            asked: now_ms,
            arrived: now_ms,
        };
        head.fields.get(Name::ContentEncoding).is_none()
            && rules::is_esi(&caching.policy, &self.facts(request, site, ctx), &facts)
    }

    /// Sends a cached page with its fragments.
    pub(crate) fn serve_assembled(
        &self,
        request: &Request,
        answer: &mut Answer,
        object: &Arc<Object>,
        head: &mut OriginHead,
        site: &Site,
        ctx: &mut StepCtx<'_>,
    ) -> NextStep {
        let location = site.location(request.location);
        let is_small = object.body_len() <= PARTS_MAX;
        let keep = Some(object).filter(|_| answer.cached == UpstreamCacheStatus::Hit);
        let (status, coding) = answer.fill_assembled(request, head, (is_small, keep), site, ctx);
        if let Some((coding, level)) = coding {
            object.make_parts(coding, level);
        }
        say_kept(answer, self, object, location, ctx.now.unix_millis);
        answer.answer_assembled(request, status, PageAssembly::kept(object.clone()), coding);
        assemble(answer, self, ctx)
    }

    /// Sends a cached page again, if this worker assembled it under the same conditions.
    pub(crate) fn serve_warm_page(
        &self,
        request: &Request,
        answer: &mut Answer,
        object: &Arc<Object>,
        site: &Site,
        ctx: &mut StepCtx<'_>,
    ) -> Option<NextStep> {
        let location = site.location(request.location);
        let tag = warm_tag(request, answer, location, site, ctx)?;
        let memo = ctx.cache.as_deref()?.memo(object, tag)?;
        let mut fields = std::mem::take(&mut answer.head.fields);
        fields.copy_from(&memo.fields);
        if memo.own_date {
            let is_written = fields.overwrite(Name::Date, ctx.clock.http());
            debug_assert!(is_written, "a remembered answer of ours has a date");
        }
        let coding = fields.get(Name::ContentEncoding).and_then(|token| {
            Coding::ALL.into_iter().find(|coding| coding.token().as_bytes() == token)
        });
        answer.decorate(request, fields, 200, None, site, ctx);
        say_kept(answer, self, object, location, ctx.now.unix_millis);
        let coding = coding.map(|coding| (coding, compress::level(location, coding)));
        if let Some((coding, level)) = coding {
            object.make_parts(coding, level);
        }
        if let Some(whole) = self.whole(request, answer, object, (tag, coding), site, ctx) {
            answer.head.body = BodyLen::Exact(whole.len());
            answer.body = AnswerBody::Whole(Strand::new(whole));
            return Some(NextStep::Respond);
        }
        answer.answer_assembled(request, 200, PageAssembly::kept(object.clone()), coding);
        self.take_shortcuts(request, answer, object, site, ctx);
        Some(assemble(answer, self, ctx))
    }

    /// Sends a page that another exchange fetches, with its fragments.
    pub(crate) fn serve_growing_page(
        &self,
        request: &Request,
        answer: &mut Answer,
        growth: Growth,
        head: &mut OriginHead,
        site: &Site,
        ctx: &mut StepCtx<'_>,
    ) -> NextStep {
        let location = site.location(request.location);
        let (status, coding) = answer.fill_assembled(request, head, (true, None), site, ctx);
        say_asked(request, answer, self, location, ctx);
        let assembly = PageAssembly::growing(growth);
        answer.answer_assembled(request, status, assembly, coding);
        assemble(answer, self, ctx)
    }

    /// Sends a page that arrives from an upstream, with its fragments.
    pub(crate) fn send_esi(
        &self,
        request: &Request,
        answer: &mut Answer,
        head: &OriginHead,
        site: &Site,
        ctx: &mut StepCtx<'_>,
    ) -> NextStep {
        let location = site.location(request.location);
        let origin = &location.settings.origin;
        let len = head.length();
        let mut head = head.clone();
        let (status, coding) = answer.fill_assembled(request, &mut head, (true, None), site, ctx);
        say_asked(request, answer, self, location, ctx);
        if let Some(asked) = &mut answer.origin {
            asked.set_answering();
        }
        let memory = origin.buffer_size + origin.buffers.0 as usize * origin.buffers.1;
        let limits = match origin.max_temp_file_size {
            0 => SpoolLimits { memory: memory.max(PAGE_MAX), file: 0 },
            file => SpoolLimits { memory, file },
        };
        let assembly = PageAssembly::inflow(Inflow::new(limits, None), len);
        answer.answer_assembled(request, status, assembly, coding);
        if request.head().method == Method::Head {
            // The body of a HEAD response is not fetched.
            answer.drop_fetch(ctx);
        }
        assemble(answer, self, ctx)
    }
}

impl Answer {
    /// Writes the head of an assembled page; returns its status, and its coding with the level.
    fn fill_assembled(
        &mut self,
        request: &Request,
        head: &mut OriginHead,
        (may_be_coded, keep): (bool, Option<&Arc<Object>>),
        site: &Site,
        ctx: &mut StepCtx<'_>,
    ) -> (u16, Option<(Coding, i8)>) {
        strip(&mut head.fields);
        let location = site.location(request.location);
        let status = self.status_or(if head.status == 0 { 200 } else { head.status });
        let content_type = head.fields.get(Name::ContentType).unwrap_or_default();
        let kind = location.kinds.of_value(content_type, &location.settings);
        let mut choice = CodingChoice::default();
        let recoded = recodes_origin(self, request, head, status, site, ctx);
        if location.coded && !has_no_content(status) && recoded == RecodedLength::Untouched {
            let now = ctx.now.unix_seconds();
            let client = compress::codings_for_origin(request, location, &head.fields, now);
            choice = compress::choose(request, location, &kind, status, None, client);
            choice.coding = choice.coding.filter(|_| may_be_coded);
        }
        debug_assert!(
            head.fields.get(Name::Etag).is_none() && head.fields.get(Name::LastModified).is_none(),
            "a page that is put together promises no validators"
        );
        let delivery = Delivery::whole(status);
        let passed = PassedHead { head, choice, delivery: &delivery };
        let fields = self.passed_fields(request, passed, site, ctx);
        if let Some(object) = keep.filter(|_| status == 200) {
            let own_date = location.dates(&head.fields);
            remember_page(request, self, object, &fields, own_date, site, ctx);
        }
        self.decorate(request, fields, status, None, site, ctx);
        let coding = choice.coding;
        (status, coding.map(|coding| (coding, compress::level(location, coding))))
    }
}

impl CacheTransaction {
    /// Continues after an event of the page, or of a fragment whose head it waits for.
    pub(crate) fn assemble_on(
        &self,
        request: &Request,
        answer: &mut Answer,
        wake: Wake,
        site: &Site,
        ctx: &mut StepCtx<'_>,
    ) -> NextStep {
        if let Wake::Origin(news) = wake {
            take_more(request, answer, news, site, ctx);
        }
        if let Some(assembly) = answer.body.assembly_mut() {
            assembly.read_on();
        }
        assemble(answer, self, ctx)
    }
}

impl Answer {
    /// Sets the body to an assembled page.
    fn answer_assembled(
        &mut self,
        request: &Request,
        status: u16,
        mut assembly: PageAssembly,
        coding: Option<(Coding, i8)>,
    ) {
        if let Some((coding, level)) = coding {
            assembly.encode(coding, level);
        }
        // Bytes that were read before would be sent uncompressed.
        assembly.read_on();
        let delivered = self.deliver(request, &Representation::assembled(status, None));
        debug_assert!(delivered.is_ok(), "an assembled page has no conditions and no ranges");
        let length = delivered.map_or(BodyLen::None, |delivery| delivery.length);
        self.head.body = length;
        self.body = match length {
            BodyLen::None => AnswerBody::Empty,
            _ => AnswerBody::Assembly(Box::new(assembly)),
        };
    }
}

/// Removes the fields that are not true of the assembled page.
fn strip(fields: &mut FieldMap) {
    for name in [Name::AcceptRanges, Name::ContentLength, Name::Etag, Name::LastModified] {
        fields.remove(name);
    }
    for name in [&b"Content-MD5"[..], b"Digest", b"Content-Digest", b"Repr-Digest"] {
        fields.remove_text(name);
    }
    fields.remove_text(bolide_cache::ESI_MARK.0);
}

/// A client without a session waits for the heads of the first fragments: one of them may start a
/// session, and a cookie cannot be set after the head.
fn assemble(answer: &Answer, cache: &CacheTransaction, ctx: &mut StepCtx<'_>) -> NextStep {
    match &answer.body {
        AnswerBody::Assembly(assembly) if cache.session.is_empty() && assembly.awaits_head() => {
            if assembly.wants_fragments() {
                ctx.effects.push(StepEffect::Fragments);
            }
            NextStep::Assemble
        }
        _ => NextStep::Respond,
    }
}

fn remember_page(
    request: &Request,
    answer: &Answer,
    object: &Arc<Object>,
    fields: &FieldMap,
    own_date: bool,
    site: &Site,
    ctx: &mut StepCtx<'_>,
) {
    let location = site.location(request.location);
    let charset = match &location.settings.charset.charset {
        CharsetOf::Name(name) => name.as_text().is_some(),
        _ => true,
    };
    let charset = charset && !location.recodes_passed;
    let Some(tag) = warm_tag(request, answer, location, site, ctx).filter(|_| charset) else {
        return;
    };
    let Some(front) = ctx.cache.as_deref_mut() else { return };
    let body = bytes::Bytes::new();
    let memo = || Memo { tag, fields: fields.clone(), own_date, body, whole: None };
    front.remember(object, memo);
}

/// Adds the cookies that fragments have set so far.
pub(crate) fn take_cookies(answer: &mut Answer) {
    if let Some(assembly) = answer.body.assembly_mut() {
        for cookie in assembly.take_cookies() {
            answer.head.fields.push(Name::SetCookie, &cookie);
        }
    }
}
