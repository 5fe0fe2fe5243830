//! Cached responses: preconditions, ranges, codings, and fields about the cache.
//!
//! Owns what a client gets of a cached object. Easiest to break: fields of the upstream that a
//! location hides are hidden in cached responses as well.

use std::sync::Arc;

use bolide_cache::rules::magento::MagentoLook;
use bolide_cache::{Follower, Object, ObjectKind, PAGE_ID, Waiter};
use bolide_http::conditional::Validator;
use bolide_http::{BodyLen, FieldMap, Name, OriginHead};

use crate::answer::Answer;
use crate::answer::{AnswerBody, BytesFrom, FromFile, Growth};
use crate::caching::CacheTransaction;
use crate::caching::Caching;
use crate::caching::UpstreamCacheStatus;
use crate::caching::cache_status::push_for_cached;
use crate::caching::cache_status::push_for_fetched;
use crate::caching::coded_form::CodedForm;
use crate::caching::hit_memo;
use crate::caching::hit_memo::remember_warm;
use crate::caching::magento;
use crate::caching::revalidate::push_validators;
use crate::content::esi::serve_fragment;
use crate::ctx::StepCtx;
use crate::delivery::send::give_coded;
use crate::delivery::{
    DeliveredBytes, RangeDate, Representation, RepresentationSource, Transfer, has_no_content,
    push_range,
};
use crate::exchange::NextStep;
use crate::filter::accel::apply_limit_rate;
use crate::filter::charset::{RecodedLength, complain_of_passed, recodes_origin};
use crate::filter::compress;
use crate::filter::compress::CodingChoice;
use crate::filter::esi::assembles;
use crate::filter::headers::{range_date, withhold_passed};
use crate::filter::passed_fields::{advertises_ranges, fields_of_unsatisfied};
use crate::filter::slice::{FirstSlice, first_slice};
use crate::filter::upstream_response::PassedHead;
use crate::media_types::MediaType;
use crate::request::Request;
use crate::site::{CompiledLocation, Site};
use crate::subrequest::Slicing;
use bolide_conf::model::{PageMode, StatusHeader};

impl Request {
    /// Whether fields for caches in front stay in the head, because the client is one.
    pub(super) fn sees_controls(&self, location: &CompiledLocation, ctx: &StepCtx<'_>) -> bool {
        location.caching.as_ref().is_some_and(|caching| {
            let page = &caching.conf.page;
            caching.is_page() && !page.trusted.is_empty() && self.is_for_front(page, ctx)
        })
    }
}

impl CacheTransaction {
    /// Sends a cached object.
    pub(crate) fn serve_kept(
        &mut self,
        request: &Request,
        answer: &mut Answer,
        object: Arc<Object>,
        cached: UpstreamCacheStatus,
        site: &Site,
        ctx: &mut StepCtx<'_>,
    ) -> NextStep {
        debug_assert!(cached.is_kept(), "what is served out of the store says so");
        debug_assert_eq!(object.kind(), ObjectKind::Content, "markers are no answers");
        let location = site.location(request.location);
        answer.cached = cached;
        if location.is_decorated {
            // For `$upstream_http_*` in added fields.
            answer.object = Some(object.clone());
        }
        let is_page = object.is_esi() && assembles(location);
        if is_page {
            self.set_page(object.control(PAGE_ID));
        }
        let is_sliced = matches!(request.slicing.get(), Slicing::Begun(_));
        if cached == UpstreamCacheStatus::Hit && !is_sliced {
            let next = match is_page {
                true => self.serve_warm_page(request, answer, &object, site, ctx),
                false if request.role.is_subrequest() && request.role.part().is_none() => {
                    serve_fragment(answer, &object).then_some(NextStep::Respond)
                }
                false => self
                    .serve_warm(request, answer, &object, site, ctx)
                    .then_some(NextStep::Respond),
            };
            if let Some(next) = next {
                answer.object = Some(object);
                return next;
            }
        }
        let mut head = std::mem::take(&mut self.head);
        head.fields.clear();
        object.fields(&mut head.fields);
        apply_limit_rate(request, &head.fields, location);
        if let Some(next) = intercepted(object.status(), location) {
            self.head = head;
            return next;
        }
        hide_controls(request, &mut head.fields, location, ctx);
        magento::show(request, &mut head.fields, MagentoLook::Shared, location);
        head.status = object.status();
        let next = if is_page {
            self.serve_assembled(request, answer, &object, &mut head, site, ctx)
        } else {
            push_validators(&object, &mut head.fields);
            self.serve_head(request, answer, &object, &head, site, ctx)
        };
        self.head = head;
        answer.object = Some(object);
        next
    }
}

/// `fastcgi_intercept_errors` applies to cached responses as well.
fn intercepted(status: u16, location: &CompiledLocation) -> Option<NextStep> {
    location.intercepts(status).then_some(NextStep::Fail(status))
}

impl CacheTransaction {
    pub(crate) fn serve_head(
        &self,
        request: &Request,
        answer: &mut Answer,
        object: &Arc<Object>,
        head: &OriginHead,
        site: &Site,
        ctx: &mut StepCtx<'_>,
    ) -> NextStep {
        let location = site.location(request.location);
        let status = answer.status_or(head.status);
        let slice = match first_slice(request, answer, status, head, site, ctx) {
            Ok(slice) => slice,
            Err(next) => return next,
        };
        let (status, head) = slice.as_ref().map_or((status, head), |first| (200, &first.head));
        let len = slice.as_ref().map_or_else(|| object.body_len(), FirstSlice::whole);
        let content_type = head.fields.get(Name::ContentType).unwrap_or_default();
        let kind = &*location.kinds.of_value(content_type, &location.settings);
        let recoded = recodes_origin(answer, request, head, status, site, ctx);
        let recoded = if slice.is_some() { FirstSlice::recoded(recoded) } else { recoded };
        let (choice, form, is_coded_last) =
            cached_form(request, object, head, (kind, recoded), location, ctx);
        let transfer = match &form {
            CodedForm::Coded(bytes) => Transfer::Coded { length: Some(bytes.len() as u64) },
            _ if is_coded_last || recoded == RecodedLength::Changed => Transfer::Filtered,
            _ if filters_cached(request, head, kind, len, location) => Transfer::Filtered,
            _ => Transfer::Identity,
        };
        let representation = Representation {
            source: RepresentationSource::Cached { page: is_page(location) },
            status,
            length: Some(len),
            transfer,
            validator: Validator { etag: object.etag(), last_modified: object.last_modified() },
            range_date: range_date(request, answer, site, ctx),
            rules: if slice.is_some() { location.rules.single() } else { location.rules },
            advertises_ranges: slice.is_some() || advertises_ranges(head, location),
        };
        let delivery = match answer.deliver(request, &representation) {
            Ok(delivery) => delivery,
            Err(next) => {
                if answer.unsatisfied.is_some() && !is_page(location) {
                    answer.carried = fields_of_unsatisfied(head, location);
                }
                return next;
            }
        };
        let (body, is_final) = match form {
            CodedForm::Coded(bytes) => (Some(bytes), true),
            CodedForm::Plain => (None, true),
            CodedForm::Later => (None, false),
        };
        let fields = answer.passed_fields(
            request,
            PassedHead { head, choice, delivery: &delivery },
            site,
            ctx,
        );
        let memo =
            hit_memo::HitMemo { status: delivery.status, head, body: body.as_ref(), is_final };
        if slice.is_none() {
            remember_warm(request, answer, object, &memo, &fields, site, ctx);
        }
        let modified = head.fields.get(Name::LastModified).and_then(bolide_http::date::parse);
        answer.head.body = BodyLen::Exact(len);
        answer.decorate(request, fields, delivery.status, modified, site, ctx);
        if delivery.status == 204 {
            withhold_passed(&mut answer.head.fields, request, head, site);
        }
        say_kept(answer, self, object, location, ctx.now.unix_millis);
        match (body, slice) {
            (Some(form), _) => give_coded(answer, &delivery, form),
            (None, Some(first)) => {
                push_range(&mut answer.head.fields, &delivery, len);
                answer.body = AnswerBody::whole(source(object), object.body_len());
                first.begin(request, answer, &delivery);
            }
            (None, None) => answer.give_bytes(&delivery, source(object), len, ctx),
        }
        complain_of_passed(request, answer, site, ctx);
        NextStep::Respond
    }

    /// Sends an object that another exchange fills, as it grows.
    pub(crate) fn serve_growing(
        &mut self,
        request: &Request,
        answer: &mut Answer,
        follower: Follower,
        waiter: Waiter,
        site: &Site,
        ctx: &mut StepCtx<'_>,
    ) -> NextStep {
        let location = site.location(request.location);
        let Some(kept) = follower.head() else { return NextStep::Fail(502) };
        if let Some(next) = intercepted(kept.status, location) {
            return next;
        }
        apply_limit_rate(request, &kept.fields, location);
        let mut head = std::mem::take(&mut self.head);
        head.fields.copy_from(&kept.fields);
        head.status = kept.status;
        magento::show(request, &mut head.fields, MagentoLook::Shared, location);
        let mark = head.fields.get_text(bolide_cache::ESI_MARK.0);
        if mark == Some(bolide_cache::ESI_MARK.1) && assembles(location) {
            self.set_page(kept.controls.get_text(PAGE_ID));
            let next = self.serve_growing_page(
                request,
                answer,
                Growth::new(follower, waiter),
                &mut head,
                site,
                ctx,
            );
            self.head = head;
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
        self.way.is_collapsed = true;
        self.way.status = kept.status;
        self.way.ttl = u32::try_from(ttl).ok();
        let representation = Representation {
            source: RepresentationSource::Filling { page: is_page(location) },
            status: answer.status_or(head.status),
            length: len,
            transfer: Transfer::Identity,
            validator: Validator {
                etag: Some(&kept.etag[..]).filter(|etag| !etag.is_empty()),
                last_modified: kept.last_modified,
            },
            range_date: RangeDate::Own,
            rules: location.rules,
            advertises_ranges: false,
        };
        let delivery = match answer.deliver(request, &representation) {
            Ok(delivery) => delivery,
            Err(next) => {
                self.head = head;
                return next;
            }
        };
        let choice = CodingChoice::default();
        let passed = PassedHead { head: &head, choice, delivery: &delivery };
        answer.fill_from_origin(request, passed, site, ctx);
        self.head = head;
        say_asked(request, answer, self, location, ctx);
        answer.head.body = delivery.length;
        answer.body = match delivery.bytes {
            DeliveredBytes::Nothing => AnswerBody::Empty,
            _ => AnswerBody::Growing(Box::new(Growth::new(follower, waiter))),
        };
        NextStep::Respond
    }
}

fn is_page(location: &CompiledLocation) -> bool {
    location.caching.as_ref().is_some_and(Caching::is_page)
}

/// Hides the fields for the cache; its cookies become the client's.
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

/// The coding to send, and whether it is applied after the filters; a missing form is made.
fn cached_form(
    request: &Request,
    object: &Arc<Object>,
    head: &OriginHead,
    (kind, recoded): (&MediaType, RecodedLength),
    location: &CompiledLocation,
    ctx: &mut StepCtx<'_>,
) -> (CodingChoice, CodedForm, bool) {
    let is_plain = head.fields.get(Name::ContentEncoding).is_none();
    let mut choice = CodingChoice::default();
    if !location.coded || !is_plain || has_no_content(head.status) {
        return (choice, CodedForm::Plain, false);
    }
    let len = object.body_len();
    let now = ctx.now.unix_seconds();
    let client = compress::codings_for_origin(request, location, &head.fields, now);
    if kind.recoded || recoded != RecodedLength::Untouched {
        let last = compress::choose_last(request, location, kind, head.status, Some(len), client);
        return (choice, CodedForm::Plain, last.coding.is_some());
    }
    let wanted = compress::choose(request, location, kind, head.status, Some(len), client);
    choice.varies = wanted.varies;
    let Some(coding) = wanted.coding else { return (choice, CodedForm::Plain, false) };
    let form = CodedForm::of(object, coding, compress::level(location, coding), ctx);
    if matches!(form, CodedForm::Coded(_)) {
        choice.coding = Some(coding);
    }
    (choice, form, false)
}

/// Hides fields for caches in front from all other clients.
fn hide_controls(
    request: &Request,
    fields: &mut FieldMap,
    location: &CompiledLocation,
    ctx: &StepCtx<'_>,
) {
    let Some(caching) = &location.caching else { return };
    let has_fronts = caching.is_page() && !caching.conf.page.trusted.is_empty();
    if has_fronts && !request.sees_controls(location, ctx) {
        bolide_cache::rules::for_client(fields);
    }
}

/// Whether a body filter changes a cached response.
fn filters_cached(
    request: &Request,
    head: &OriginHead,
    kind: &MediaType,
    length: u64,
    location: &CompiledLocation,
) -> bool {
    let encoding = head.fields.get(Name::ContentEncoding).unwrap_or_default();
    location.filters_bodies && request.filters_body(kind, encoding, length, location)
}

/// Adds `Age`, and the fields about the cache that the configuration enables.
pub(crate) fn say_kept(
    answer: &mut Answer,
    cache: &CacheTransaction,
    object: &Object,
    location: &CompiledLocation,
    now_ms: u64,
) {
    let Some(caching) = &location.caching else { return };
    let times = object.times();
    let cached = answer.cached;
    let fields = &mut answer.head.fields;
    if caching.sends_age() {
        fields.push_writing(Name::Age, |out| {
            bolide_http::digits::push_decimal(out, times.age_seconds(now_ms));
        });
    }
    if caching.is_magento() {
        magento::say_kept(answer, cache);
    }
    let fields = &mut answer.head.fields;
    if caching.is_page() {
        match caching.conf.page.status_header {
            StatusHeader::Off => {}
            StatusHeader::LiteSpeed if caching.is_magento() => {}
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
    push_for_cached(answer, cache, object, caching, now_ms);
}

/// Adds the fields about the cache to an upstream response.
pub(crate) fn say_asked(
    request: &Request,
    answer: &mut Answer,
    cache: &CacheTransaction,
    location: &CompiledLocation,
    ctx: &StepCtx<'_>,
) {
    let Some(caching) = &location.caching else { return };
    // A response that another exchange fetches counts as stored.
    let stored = cache.is_kept() || cache.way.is_collapsed;
    let cached = answer.cached;
    let page = &caching.conf.page;
    let is_front = caching.is_page() && request.is_for_front(page, ctx);
    let speaks_lscache = caching.is_page() && !caching.is_magento();
    let is_crawler_miss = speaks_lscache && page.crawler && !stored && request.is_crawler();
    let fields = &mut answer.head.fields;
    if caching.is_magento() {
        magento::say_asked(fields, cache);
    }
    if caching.is_page() {
        if !is_front {
            hide(fields);
        }
        if is_crawler_miss {
            // The crawlers of plugins skip what is not cached.
            fields.remove_text(b"X-LiteSpeed-Cache-Control");
            fields.push_text(b"X-LiteSpeed-Cache-Control", b"no-cache");
        }
        match caching.conf.page.status_header {
            _ if page.mode == PageMode::Off => {}
            StatusHeader::LiteSpeed if stored && speaks_lscache => {
                fields.push_text(b"X-LiteSpeed-Cache", b"miss");
            }
            StatusHeader::XCache if cached == UpstreamCacheStatus::Bypass => {
                fields.push_text(b"X-Cache", b"BYPASS");
            }
            StatusHeader::XCache => fields.push_text(b"X-Cache", b"MISS"),
            StatusHeader::Off | StatusHeader::LiteSpeed => {}
        }
    }
    push_for_fetched(answer, cache, caching);
}
