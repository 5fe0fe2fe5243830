//! Answers out of the store: conditions, ranges, codings, and what is said about the cache.
//!
//! Owns what a client sees of a kept answer. Easiest to break: what a location hides of an origin's
//! fields it hides of kept ones.

use std::sync::Arc;

use bolide_cache::{Follower, Object, Waiter};
use bolide_files::FileAnswer as Verdict;
use bolide_http::conditional::Validator;
use bolide_http::{BodyLen, FieldMap, Method, Name, OriginHead};

use crate::answer::{AnswerBody, ByteSpan, BytesFrom, FromFile, Growth};
use crate::content::page::UpstreamCacheStatus;
use crate::content::revalidate::push_validators;
use crate::ctx::StepCtx;
use crate::exchange::{Exchange, NextStep};
use crate::filter::coded_form::CodedForm;
use crate::filter::preconditions::evaluate_preconditions;
use crate::filter::range::parts;
use crate::filter::upstream_response::{UpstreamShape, tells_ranges};
use crate::filter::{compress, hit_memo};
use crate::media_types::MediaType;
use crate::site::{CompiledLocation, Site};
use bolide_conf::model::{PageMode, StatusHeader};

impl Exchange {
    /// Answers with a kept object.
    pub(crate) fn serve_kept(
        &mut self,
        object: Arc<Object>,
        cached: UpstreamCacheStatus,
        site: &Site,
        ctx: &mut StepCtx<'_>,
    ) -> NextStep {
        let location = site.location(self.request.location);
        self.answer.cached = cached;
        if location.is_decorated {
            // For `$upstream_http_*` in what is added.
            self.answer.object = Some(object.clone());
        }
        let is_page = object.is_esi() && Self::assembles(location);
        if cached == UpstreamCacheStatus::Hit {
            let next = match is_page {
                true => self.serve_warm_page(&object, site, ctx),
                false if self.is_fragment() && self.request.inclusion.is_none() => {
                    self.serve_fragment(&object).then_some(NextStep::Respond)
                }
                false => self.serve_warm(&object, site, ctx).then_some(NextStep::Respond),
            };
            if let Some(next) = next {
                self.answer.object = Some(object);
                return next;
            }
        }
        if let Some(next) = self.intercepted(object.status(), location) {
            return next;
        }
        let mut head = std::mem::take(&mut self.page.head);
        head.fields.clear();
        object.fields(&mut head.fields);
        self.hide_controls(&mut head.fields, location, ctx);
        head.status = object.status();
        let next = if is_page {
            self.serve_assembled(&object, &mut head, site, ctx)
        } else {
            push_validators(&object, &mut head.fields);
            self.serve_head(&object, &head, site, ctx)
        };
        self.page.head = head;
        self.answer.object = Some(object);
        next
    }

    /// Hides what was kept for caches in front from everybody else.
    fn hide_controls(&self, fields: &mut FieldMap, location: &CompiledLocation, ctx: &StepCtx<'_>) {
        let Some(caching) = &location.caching else { return };
        let has_fronts = caching.is_page() && !caching.conf.page.trusted.is_empty();
        if has_fronts && !self.sees_controls(location, ctx) {
            bolide_cache::rules::for_client(fields);
        }
    }

    /// Whether what is kept for caches in front stays in the head, as the client is one.
    pub(super) fn sees_controls(&self, location: &CompiledLocation, ctx: &StepCtx<'_>) -> bool {
        location.caching.as_ref().is_some_and(|caching| {
            let page = &caching.conf.page;
            caching.is_page() && !page.trusted.is_empty() && self.is_for_front(page, ctx)
        })
    }

    /// `fastcgi_intercept_errors` is about kept answers as well.
    fn intercepted(&self, status: u16, location: &CompiledLocation) -> Option<NextStep> {
        let settings = &location.settings;
        let is_caught = settings.origin.intercept_errors
            && status >= 300
            && settings.error_pages.iter().any(|page| page.status == status);
        is_caught.then_some(NextStep::Fail(status))
    }

    pub(crate) fn serve_head(
        &mut self,
        object: &Arc<Object>,
        head: &OriginHead,
        site: &Site,
        ctx: &mut StepCtx<'_>,
    ) -> NextStep {
        let location = site.location(self.request.location);
        let status = self.answer.status_or(head.status);
        let len = object.body_len();
        let content_type = head.fields.get(Name::ContentType).unwrap_or_default();
        let kind = &*location.kinds.of_value(content_type, &location.settings);
        let (mut shape, form) = self.kept_shape(object, head, kind, location, ctx);
        let (body, is_final) = match form {
            CodedForm::Coded(bytes) => (Some(bytes), true),
            CodedForm::Plain => (None, true),
            CodedForm::Later => (None, false),
        };
        let mut status = status;
        if status == 200 {
            let has_parts = shape.choice.coding.is_none() && !shape.reworked;
            let max_ranges = if has_parts { u32::MAX } else { 0 };
            let validator =
                Validator { etag: object.etag(), last_modified: object.last_modified() };
            let request = &self.request.head().fields;
            match evaluate_preconditions(
                request,
                validator,
                len,
                location,
                max_ranges,
                &mut self.ranges,
            ) {
                Verdict::Whole => {}
                Verdict::Partial => {
                    shape.range = self.ranges.first().copied().filter(|_| self.ranges.len() == 1);
                    status = 206;
                }
                Verdict::NotModified => status = 304,
                Verdict::PreconditionFailed => return NextStep::Fail(412),
                Verdict::NotAllowed => return NextStep::Fail(405),
                Verdict::Unsatisfiable => {
                    self.unsatisfied = Some(len);
                    return NextStep::Fail(416);
                }
            }
            shape.ranges = location.rules.max_ranges.min(max_ranges) > 0
                && status == 200
                && tells_ranges(head, location);
        }
        let in_parts = status == 206 && head.status != 206 && shape.range.is_none();
        let fields = self.passed_fields(head, kind, shape, site, ctx);
        let warm = hit_memo::HitMemo { status, head, body: body.as_ref(), is_final };
        self.remember_warm(object, &warm, &fields, site, ctx);
        let modified = head.fields.get(Name::LastModified).and_then(bolide_http::date::parse);
        self.answer.head.body = BodyLen::Exact(len);
        self.decorate(fields, status, modified, site, ctx);
        self.say_kept(object, location, ctx.now.unix_millis);
        if in_parts {
            return self.send_parts(source(object), len, ctx);
        }
        self.answer.head.body = match (status, shape.range, &body) {
            (204, ..) => BodyLen::None,
            (304, ..) => {
                self.answer.head.fields.remove(Name::ContentType);
                self.answer.head.fields.remove(Name::ContentEncoding);
                BodyLen::None
            }
            (_, Some(range), _) => BodyLen::Exact(range.len()),
            (_, None, Some(form)) => BodyLen::Exact(form.len() as u64),
            (_, None, None) => BodyLen::Exact(len),
        };
        self.answer.body = match (self.answer.head.body, shape.range, body) {
            (BodyLen::None, ..) => AnswerBody::Empty,
            (_, Some(range), _) => AnswerBody::span(source(object), range),
            (_, None, Some(form)) => AnswerBody::memory(form),
            (_, None, None) if len == 0 => AnswerBody::Empty,
            _ => AnswerBody::Span(source(object), ByteSpan { at: 0, end: len }),
        };
        NextStep::Respond
    }

    /// Sends the ranges that were found, several of them.
    fn send_parts(&mut self, source: BytesFrom, len: u64, ctx: &mut StepCtx<'_>) -> NextStep {
        let fields = &mut self.answer.head.fields;
        let of_parts = fields.get(Name::ContentType).unwrap_or_default();
        let boundary = bolide_http::range::Boundary::new(ctx.prng.next_u64());
        let (parts, whole) = parts(source, of_parts, len, boundary, &self.ranges);
        let mut content_type = Vec::with_capacity(64);
        boundary.push_content_type(&mut content_type);
        fields.set(Name::ContentType, &content_type);
        fields.remove(Name::AcceptRanges);
        self.answer.head.body = BodyLen::Exact(whole);
        self.answer.body = AnswerBody::Parts(Box::new(parts));
        NextStep::Respond
    }

    /// Which coding leaves; one that is not there yet is made.
    fn kept_shape(
        &self,
        object: &Arc<Object>,
        head: &OriginHead,
        kind: &MediaType,
        location: &CompiledLocation,
        ctx: &mut StepCtx<'_>,
    ) -> (UpstreamShape, CodedForm) {
        let len = object.body_len();
        let mut shape = UpstreamShape { len: Some(len), ..UpstreamShape::default() };
        let encoding = head.fields.get(Name::ContentEncoding);
        let is_plain = encoding.is_none();
        shape.reworked =
            location.reworks && self.reworks(kind, encoding.unwrap_or_default(), len, location);
        if !location.coded || !is_plain || matches!(head.status, 204 | 304) {
            return (shape, CodedForm::Plain);
        }
        let now = ctx.now.unix_seconds();
        let client = compress::codings_for_origin(&self.request, location, &head.fields, now);
        let choice = compress::choose(location, kind, head.status, Some(len), client);
        shape.choice.varies = choice.varies;
        let Some(coding) = choice.coding else { return (shape, CodedForm::Plain) };
        let form = CodedForm::of(object, coding, compress::level(location, coding), ctx);
        if matches!(form, CodedForm::Coded(_)) {
            shape.choice.coding = Some(coding);
        }
        (shape, form)
    }

    /// `Age`, and what the configuration lets clients know.
    pub(crate) fn say_kept(&mut self, object: &Object, location: &CompiledLocation, now_ms: u64) {
        let Some(caching) = &location.caching else { return };
        let times = object.times();
        let cached = self.answer.cached;
        let fields = &mut self.answer.head.fields;
        if caching.tells_age() {
            fields.push_writing(Name::Age, |out| {
                bolide_http::digits::push_decimal(out, times.age_seconds(now_ms));
            });
        }
        if caching.is_page() {
            match caching.conf.page.status_header {
                StatusHeader::Off => {}
                StatusHeader::XCache if cached == UpstreamCacheStatus::Hit => {
                    fields.push_text(b"X-Cache", b"HIT");
                }
                StatusHeader::XCache => fields.push_text(b"X-Cache", b"STALE"),
                StatusHeader::LiteSpeed if object.session().is_some() => {
                    fields.push_text(b"X-LiteSpeed-Cache", b"hit,private");
                }
                StatusHeader::LiteSpeed => fields.push_text(b"X-LiteSpeed-Cache", b"hit"),
            }
        }
        self.tell_kept(object, caching, now_ms);
    }

    /// What is said about the cache in an answer that an origin gives.
    pub(crate) fn say_asked(&mut self, location: &CompiledLocation, ctx: &StepCtx<'_>) {
        let Some(caching) = &location.caching else { return };
        // What others fetch is kept, as far as anybody knows.
        let stored = self.is_kept() || self.page.way.is_collapsed;
        let cached = self.answer.cached;
        let page = &caching.conf.page;
        let is_front = caching.is_page() && self.is_for_front(page, ctx);
        let is_told = caching.is_page() && page.crawler && !stored && self.is_crawler();
        let fields = &mut self.answer.head.fields;
        if caching.is_page() {
            if !is_front {
                hide(fields);
            }
            if is_told {
                // The crawlers of plugins leave out what is not cached.
                fields.remove_text(b"X-LiteSpeed-Cache-Control");
                fields.push_text(b"X-LiteSpeed-Cache-Control", b"no-cache");
            }
            match caching.conf.page.status_header {
                _ if page.mode == PageMode::Off => {}
                StatusHeader::LiteSpeed if stored => {
                    fields.push_text(b"X-LiteSpeed-Cache", b"miss");
                }
                StatusHeader::XCache if cached == UpstreamCacheStatus::Bypass => {
                    fields.push_text(b"X-Cache", b"BYPASS");
                }
                StatusHeader::XCache => fields.push_text(b"X-Cache", b"MISS"),
                StatusHeader::Off | StatusHeader::LiteSpeed => {}
            }
        }
        self.tell_asked(caching);
    }

    /// Answers with what somebody else fetches, as it comes.
    pub(crate) fn serve_growing(
        &mut self,
        follower: Follower,
        waiter: Waiter,
        site: &Site,
        ctx: &mut StepCtx<'_>,
    ) -> NextStep {
        let location = site.location(self.request.location);
        let Some(kept) = follower.head() else { return NextStep::Fail(502) };
        if location.caching.as_ref().is_some_and(|caching| !caching.is_page()) {
            // As in nginx, where who stood in line finds it kept.
            self.answer.cached = UpstreamCacheStatus::Hit;
        }
        if let Some(next) = self.intercepted(kept.status, location) {
            return next;
        }
        let mut head = std::mem::take(&mut self.page.head);
        head.fields.copy_from(&kept.fields);
        head.status = kept.status;
        let mark = head.fields.get_text(bolide_cache::ESI_MARK.0);
        if mark == Some(bolide_cache::ESI_MARK.1) && Self::assembles(location) {
            let next = self.serve_growing_page(follower, waiter, &mut head, site, ctx);
            self.page.head = head;
            return next;
        }
        let len = kept.length;
        if head.fields.get(Name::Etag).is_none() && !kept.etag.is_empty() {
            head.fields.push(Name::Etag, &kept.etag);
        }
        if let Some(at) = kept.last_modified
            && head.fields.get(Name::LastModified).is_none()
        {
            head.fields.push_writing(Name::LastModified, |out| {
                out.extend_from_slice(&bolide_http::date::http_date(at as i64));
            });
        }
        let ttl = kept.times.ttl_seconds(ctx.now.unix_millis);
        self.page.way.is_collapsed = true;
        self.page.way.status = kept.status;
        self.page.way.ttl = u32::try_from(ttl).ok();
        let mut status = self.answer.status_or(head.status);
        if status == 200 {
            let etag = Some(&kept.etag[..]).filter(|etag| !etag.is_empty());
            let validator = Validator { etag, last_modified: kept.last_modified };
            let request = &self.request.head().fields;
            match evaluate_preconditions(request, validator, 0, location, 0, &mut self.ranges) {
                Verdict::NotModified => status = 304,
                Verdict::PreconditionFailed => return NextStep::Fail(412),
                _ => {}
            }
        }
        let content_type = head.fields.get(Name::ContentType).unwrap_or_default();
        let kind = location.kinds.of_value(content_type, &location.settings);
        let shape = UpstreamShape { len, ..UpstreamShape::default() };
        self.fill_from_origin(status, &head, &kind, shape, site, ctx);
        self.page.head = head;
        if status == 304 {
            self.answer.head.fields.remove(Name::ContentType);
            self.answer.head.fields.remove(Name::ContentEncoding);
        }
        self.say_asked(location, ctx);
        let is_bare = matches!(status, 204 | 304);
        self.answer.head.body = match len {
            _ if is_bare => BodyLen::None,
            Some(len) => BodyLen::Exact(len),
            None if self.request.head().method == Method::Head => BodyLen::None,
            None => BodyLen::Unknown,
        };
        self.answer.body = match is_bare {
            true => AnswerBody::Empty,
            false => AnswerBody::Growing(Box::new(Growth::new(follower, waiter))),
        };
        NextStep::Respond
    }
}

/// Hides what is the cache's business; its cookies become the client's.
fn hide(fields: &mut FieldMap) {
    let cookies: Vec<Vec<u8>> = fields.all_text(b"LSC-Cookie").map(<[u8]>::to_vec).collect();
    bolide_cache::rules::for_client(fields);
    for cookie in &cookies {
        fields.push(Name::SetCookie, cookie);
    }
}

fn source(object: &Arc<Object>) -> BytesFrom {
    if object.outside().is_some() {
        return BytesFrom::Outside(Box::new(FromFile::new(object.clone())));
    }
    match object.body() {
        Some(bytes) => BytesFrom::Memory(bytes),
        None => BytesFrom::Object(object.clone()),
    }
}
