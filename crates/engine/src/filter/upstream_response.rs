//! The head of an upstream response: fields for this server, and fields for the client.
//!
//! Owns `X-Accel-*`, intercepted errors, hidden fields, and compression. Easiest to break: framing
//! fields of the upstream never become ours.

use bolide_base::{SpoolLimits, limits::RECEIVE_SIZE};
use bolide_http::conditional::Validator;
use bolide_http::{BodyLen, FieldMap, HttpVersion, Method, Name, OriginHead};

use crate::answer::Answer;
use crate::answer::{AnswerBody, Flush, Inflow};
use crate::caching::CacheTransaction;
use crate::caching::cached_response::say_asked;
use crate::caching::magento;
use crate::caching::{Caching, StaleCause};
use crate::content::sticky::LearnMoment;
use crate::content::{memcached, sticky};
use crate::ctx::StepCtx;
use crate::delivery::{
    DeliveredBytes, Delivery, DeliveryRules, RangeDate, Representation, RepresentationSource,
    Transfer, has_no_content, push_range, remove_content_fields,
};
use crate::exchange::NextStep;
use crate::filter::accel::{accel_redirect, apply_limit_rate};
use crate::filter::charset::{
    RecodedLength, complain_of_passed, is_computed, recodes_origin, rule_origin_charset,
};
use crate::filter::compress::{self, CodingChoice};
use crate::filter::headers;
use crate::filter::passed_fields::{
    advertises_ranges, fields_of_unsatisfied, is_buffered, is_for_zone, outlives_redirect,
    push_passed, rewritten,
};
use crate::filter::slice::{FirstSlice, first_slice};
use crate::htaccess::searched::tag_like_searched;
use crate::media_types::{MediaType, media};
use crate::request::Request;
use crate::site::{CompiledLocation, Site};
use crate::vars::VariableScope;

/// The head of an upstream response on its way to the client.
#[derive(Clone, Copy)]
pub(crate) struct PassedHead<'a> {
    pub(crate) head: &'a OriginHead,
    pub(crate) choice: CodingChoice,
    pub(crate) delivery: &'a Delivery,
}

impl Answer {
    /// Sends the upstream response, or follows `X-Accel-Redirect` or `error_page`.
    pub(crate) fn take_origin_head(
        &mut self,
        request: &mut Request,
        cache: &mut CacheTransaction,
        head: &OriginHead,
        site: &Site,
        ctx: &mut StepCtx<'_>,
    ) -> NextStep {
        let location = site.location(request.location);
        let status = head.status_or_implied();
        if let Some(asked) = &mut self.origin {
            asked.record_head(&head.fields, ctx.now);
        }
        apply_limit_rate(request, &head.fields, location);
        if let Some(caching) = &location.caching {
            cache.way.status = status;
            cache.invalidate_zone(request, self, status, caching, site, ctx);
            let next = match status {
                304 => cache.revalidated(request, self, head, caching, site, ctx),
                _ => cache.stale_if_error(request, self, StaleCause::Status(status), site, ctx),
            };
            if let Some(next) = next {
                return next;
            }
        }
        let settings = &location.settings;
        if location.intercepts(status) || memcached::has_none(location, status) {
            self.drop_fetch(ctx);
            match status {
                401 => self.carry(&head.fields, |name| name == Name::WwwAuthenticate),
                405 => self.carry(&head.fields, |name| name == Name::Allow),
                _ => {}
            }
            return NextStep::Fail(status);
        }
        // As in nginx, not of responses that `error_page` replaces.
        sticky::learn(request, self, LearnMoment::Head, site, ctx);
        let ignored = settings.origin.ignore_headers;
        if !ignored.redirect
            && let Some(target) = head.fields.get_text(b"X-Accel-Redirect")
        {
            self.drop_fetch(ctx);
            let rewritten = rewritten(request, self, head, site, ctx);
            let fields = &rewritten.as_deref().unwrap_or(head).fields;
            self.carry(fields, |name| outlives_redirect(name, location));
            if cache.asked().0.is_some() {
                request.arrival.leave();
            }
            return accel_redirect(request, self, target, site, ctx);
        }
        self.send_origin(request, cache, status, head, site, ctx)
    }
}

impl Answer {
    /// Sends the upstream response.
    fn send_origin(
        &mut self,
        request: &mut Request,
        cache: &CacheTransaction,
        status: u16,
        head: &OriginHead,
        site: &Site,
        ctx: &mut StepCtx<'_>,
    ) -> NextStep {
        if request.role.has_no_client() {
            self.head.status = self.status_or(status);
            return NextStep::Respond;
        }
        let location = site.location(request.location);
        if status == 101 {
            return self.send_tunnel(request, head, site, ctx);
        }
        let shown = location.caching.as_ref().filter(|caching| caching.is_magento()).map(|_| {
            let mut shown = head.clone();
            magento::show(request, &mut shown.fields, magento::look(cache), location);
            shown
        });
        let head = shown.as_ref().unwrap_or(head);
        if cache.is_esi_page(request, head, location, ctx, site) {
            return cache.send_esi(request, self, head, site, ctx);
        }
        let status = self.status_or(status);
        let slice = match first_slice(request, self, status, head, site, ctx) {
            Ok(slice) => slice,
            Err(next) => {
                self.drop_fetch(ctx);
                return next;
            }
        };
        let part = head;
        let (status, head) = slice.as_ref().map_or((status, head), |first| (200, &first.head));
        let content_type = head.fields.get(Name::ContentType).unwrap_or_default();
        let kind = &*location.kinds.of_value(content_type, &location.settings);
        let recoded = recodes_origin(self, request, head, status, site, ctx);
        let recoded = if slice.is_some() { FirstSlice::recoded(recoded) } else { recoded };
        let now = ctx.now.unix_seconds();
        let (mut choice, transfer) =
            transfer_of(request, status, head, (kind, recoded), location, now);
        let length = head.length();
        let representation = Representation {
            range_date: headers::range_date(request, self, site, ctx),
            ..upstream_representation(
                cache,
                slice.is_some(),
                (status, length),
                transfer,
                head,
                location,
            )
        };
        let delivery = match self.deliver(request, &representation) {
            Ok(delivery) => delivery,
            Err(next) => {
                self.drop_fetch(ctx);
                // A cached page may hide fields from clients.
                let is_page = location.caching.as_ref().is_some_and(Caching::is_page);
                if self.unsatisfied.is_some() && !is_page {
                    self.carried = fields_of_unsatisfied(head, location);
                }
                return next;
            }
        };
        if delivery.is_not_modified {
            choice = CodingChoice::default();
            self.drop_fetch(ctx);
        }
        self.head.body = length.map_or(BodyLen::Unknown, BodyLen::Exact);
        let passed = PassedHead { head, choice, delivery: &delivery };
        if let Some(asked) = &mut self.origin {
            asked.set_answering();
        }
        self.fill_from_origin(request, passed, site, ctx);
        if location.caching.is_some() {
            say_asked(request, self, cache, location, ctx);
        }
        if let Some(length) = length {
            push_range(&mut self.head.fields, &delivery, length);
        }
        match slice {
            None => answer_with_inflow(request, self, head, choice, &delivery, location, ctx),
            Some(first) => {
                let whole = FirstSlice::delivery(&delivery);
                answer_with_inflow(request, self, part, choice, &whole, location, ctx);
                first.begin(request, self, &delivery);
            }
        }
        complain_of_passed(request, self, site, ctx);
        NextStep::Respond
    }

    /// Writes the head of an upstream response.
    pub(crate) fn fill_from_origin(
        &mut self,
        request: &Request,
        passed: PassedHead<'_>,
        site: &Site,
        ctx: &StepCtx<'_>,
    ) {
        let fields = self.passed_fields(request, passed, site, ctx);
        let PassedHead { head, delivery, .. } = passed;
        let modified = head.fields.get(Name::LastModified).and_then(bolide_http::date::parse);
        self.decorate(request, fields, delivery.status, modified, site, ctx);
        if delivery.status == 204 {
            headers::withhold_passed(&mut self.head.fields, request, head, site);
        }
    }

    /// The fields of such a response, as far as they depend on it and the location.
    pub(crate) fn passed_fields(
        &mut self,
        request: &Request,
        passed: PassedHead<'_>,
        site: &Site,
        ctx: &StepCtx<'_>,
    ) -> FieldMap {
        let PassedHead { head, choice, delivery } = passed;
        let location = site.location(request.location);
        let rewritten = rewritten(request, self, head, site, ctx);
        let head = rewritten.as_deref().unwrap_or(head);
        let mut fields = std::mem::take(&mut self.head.fields);
        fields.clear();
        if location.adds(Name::Server, &head.fields) {
            let signature = location.signature.text().as_bytes();
            headers::push_own(&mut fields, Name::Server, signature, &self.carried);
        }
        if location.dates(&head.fields) {
            headers::push_own(&mut fields, Name::Date, ctx.clock.http(), &self.carried);
        }
        if let Some(value) = head.fields.get(Name::ContentType)
            && !value.is_empty()
            && !location.hides(Name::ContentType)
        {
            if is_computed(&location.settings.charset.charset) {
                // It may depend on what is sent.
                self.head.fields.copy_from(&head.fields);
                self.head.status = delivery.status;
            }
            let ruling = rule_origin_charset(self, request, head, delivery.status, site, ctx);
            fields.push(Name::ContentType, &ruling.value);
            let outcome = ruling.outcome.filter(|_| !delivery.is_not_modified);
            self.charset = outcome.map(Box::new);
        }
        if choice.varies && location.settings.gzip.vary {
            fields.push(Name::Vary, b"Accept-Encoding");
        }
        push_passed(&mut fields, head, choice, delivery, location);
        if is_for_zone(self, location) {
            fields.remove(Name::AcceptRanges);
        }
        if let Some(coding) = choice.coding {
            fields.push(Name::ContentEncoding, coding.token().as_bytes());
        }
        if delivery.accept_ranges {
            fields.push(Name::AcceptRanges, b"bytes");
        }
        debug_assert!(
            fields.get(Name::ContentLength).is_none()
                && fields.get(Name::TransferEncoding).is_none(),
            "framing fields of the origin never become fields of ours"
        );
        if delivery.status == 304 {
            let of = |name| head.fields.get(name).filter(|value| !value.is_empty());
            let is_whole = delivery.is_not_modified;
            let kind = (
                of(Name::ContentType).map(media).or(is_whole.then_some(b"")),
                of(Name::ContentEncoding).or(is_whole.then_some(b"")),
            );
            tag_like_searched(&mut fields, self, request, kind, location);
        }
        if delivery.is_not_modified {
            remove_content_fields(&mut fields);
        }
        fields
    }

    /// Adds the fields of the configuration, and sets `fields` as those of the response.
    pub(crate) fn decorate(
        &mut self,
        request: &Request,
        mut fields: FieldMap,
        status: u16,
        modified: Option<u64>,
        site: &Site,
        ctx: &StepCtx<'_>,
    ) {
        let location = site.location(request.location);
        self.head.status = status;
        // Fields of an upstream response before `X-Accel-Redirect`, and the challenge of a password
        // check whose error page this is.
        if !self.carried.is_empty() || !self.challenge.is_empty() {
            push_carried(&mut fields, &self.carried, &self.challenge);
        }
        sticky::push_cookies(&mut fields, self);
        if !self.location.is_empty() || self.is_to_nowhere {
            // Fields that were set before the upstream request come first.
            let passed = std::mem::take(&mut fields);
            self.push_location(&mut fields, request, site, ctx);
            for field in passed.iter() {
                fields.push_parsed(field.name, field.text, field.value);
            }
        }
        if location.is_decorated {
            let mut scratch = std::mem::take(&mut self.scratch);
            let scope = VariableScope::new(request, self, site, ctx);
            headers::push_configured(&mut fields, &scope, status, modified, &mut scratch);
            self.scratch = scratch;
        } else {
            headers::push_alt_svc(&mut fields, request, site, ctx.conn);
        }
        self.head.fields = fields;
    }
}

/// Puts the `carried` fields and the challenge before the response's own fields.
#[cold]
fn push_carried(fields: &mut FieldMap, carried: &FieldMap, challenge: &[u8]) {
    let own = std::mem::take(fields);
    let has_type = own.get(Name::ContentType).is_some();
    let counts = |name: Name| match name {
        Name::ContentType => !has_type,
        Name::Server | Name::Date => false,
        _ => true,
    };
    for field in carried.iter().filter(|field| counts(field.name)) {
        fields.push_parsed(field.name, field.text, field.value);
    }
    if !challenge.is_empty() {
        fields.push(Name::WwwAuthenticate, challenge);
    }
    for field in own.iter() {
        fields.push_parsed(field.name, field.text, field.value);
    }
}

/// The coding that is applied, and its effect on the bytes.
fn transfer_of(
    request: &Request,
    status: u16,
    head: &OriginHead,
    (kind, recoded): (&MediaType, RecodedLength),
    location: &CompiledLocation,
    now: u64,
) -> (CodingChoice, Transfer) {
    let length = head.length();
    let encoding = head.fields.get(Name::ContentEncoding);
    let mut choice = CodingChoice::default();
    let mut is_coded_last = false;
    if location.coded && !has_no_content(status) && encoding.is_none() {
        let client = compress::codings_for_origin(request, location, &head.fields, now);
        if kind.recoded || recoded != RecodedLength::Untouched {
            let last = compress::choose_last(request, location, kind, status, length, client);
            is_coded_last = last.coding.is_some();
        } else {
            choice = compress::choose(request, location, kind, status, length, client);
        }
    }
    let is_filtered = is_coded_last
        || recoded == RecodedLength::Changed
        || location.filters_bodies
            && request.filters_body(
                kind,
                encoding.unwrap_or_default(),
                length.unwrap_or(1),
                location,
            );
    let transfer = match choice.coding {
        Some(_) => Transfer::Coded { length: None },
        None if is_filtered => Transfer::Filtered,
        None => Transfer::Identity,
    };
    (choice, transfer)
}

/// An upstream response as a representation: it got the client's preconditions and ranges, unless
/// the whole was requested to be stored.
fn upstream_representation<'a>(
    cache: &CacheTransaction,
    is_sliced: bool,
    (status, length): (u16, Option<u64>),
    transfer: Transfer,
    head: &'a OriginHead,
    location: &CompiledLocation,
) -> Representation<'a> {
    let page = location.caching.as_ref().is_some_and(Caching::is_page);
    let is_whole = cache.is_whole && (page || cache.evaluates_preconditions());
    let forces = location.settings.origin.force_ranges || is_sliced;
    let has_ranges = forces || is_whole && advertises_ranges(head, location);
    let max_ranges = if has_ranges { location.rules.max_ranges } else { 0 };
    Representation {
        source: match is_whole {
            true => RepresentationSource::UpstreamWhole { page },
            false => RepresentationSource::Upstream,
        },
        status,
        length,
        transfer,
        validator: Validator {
            etag: head.fields.get(Name::Etag),
            last_modified: head.fields.get(Name::LastModified).and_then(bolide_http::date::parse),
        },
        range_date: RangeDate::Own,
        rules: DeliveryRules { max_ranges, ..location.rules },
        advertises_ranges: true,
    }
}

/// Sets the body that takes the upstream response.
fn answer_with_inflow(
    request: &Request,
    answer: &mut Answer,
    head: &OriginHead,
    choice: CodingChoice,
    delivery: &Delivery,
    location: &CompiledLocation,
    ctx: &mut StepCtx<'_>,
) {
    let origin = &location.settings.origin;
    debug_assert_ne!(delivery.bytes, DeliveredBytes::Parts, "what comes by and by has one range");
    let buffers = is_buffered(head, origin);
    // The first bytes of a filtered body are processed before the head is sent, once in memory.
    let least = if answer.may_be_searched { 2 * RECEIVE_SIZE } else { 0 };
    let limits = match buffers {
        true => SpoolLimits {
            memory: least.max(origin.buffer_size + origin.buffers.0 as usize * origin.buffers.1),
            file: origin.max_temp_file_size,
        },
        false => SpoolLimits { memory: origin.buffer_size, file: 0 },
    };
    answer.head.body = delivery.length;
    answer.body = AnswerBody::Empty;
    if request.head().method == Method::Head {
        // As in nginx, the rest of the fetch is of no use.
        answer.drop_fetch(ctx);
    } else if delivery.bytes != DeliveredBytes::Nothing {
        let mut inflow = Inflow::new(limits, head.length());
        if let Some(coding) = choice.coding {
            let flush = if buffers { Flush::Lazily } else { Flush::Always };
            inflow.encode(coding, compress::level(location, coding), flush);
        }
        if let Some(range) = delivery.range() {
            inflow.keep_only(range);
        }
        if may_be_trailed(request, answer, location) && choice.coding.is_none() {
            inflow.await_end();
        }
        answer.body = AnswerBody::Origin(Box::new(inflow));
    }
}

/// Whether trailers come and go beside a declared length: both sides have HTTP/2 or newer.
fn may_be_trailed(request: &Request, answer: &Answer, location: &CompiledLocation) -> bool {
    request.head().version >= HttpVersion::Http2
        && location.settings.origin.proxy.pass_trailers
        && answer.origin.as_ref().is_some_and(|asked| asked.has_http2)
}
