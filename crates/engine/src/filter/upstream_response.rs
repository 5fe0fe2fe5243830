//! The head of an origin's answer: what of it is meant for us, what of it the client sees.
//!
//! Owns `X-Accel-*`, intercepted errors, hidden fields, and codings of what is made on the fly.
//! Easiest to break: framing fields of the origin never become fields of ours.

use bolide_base::SpoolLimits;
use bolide_conf::model::{CharsetOf, OriginSettings};
use bolide_files::FileAnswer as Verdict;
use bolide_http::conditional::{Conditions, Validator};
use bolide_http::hop_by_hop::is_hop;
use bolide_http::range::{ByteRange, RangeOutcome};
use bolide_http::{BodyLen, FieldMap, Method, Name, OriginHead, Scheme};

use crate::answer::{AnswerBody, Flush, Inflow};
use crate::ctx::StepCtx;
use crate::exchange::{Exchange, NextStep};
use crate::filter::compress::{self, CodingChoice};
use crate::filter::headers;
use crate::filter::preconditions::evaluate_preconditions;
use crate::identity::InternalTurn;
use crate::log_lines;
use crate::media_types::MediaType;
use crate::site::{Caching, CompiledLocation, Site, StaleCause};
use crate::vars::VariableScope;

/// What is made of a body on its way.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct UpstreamShape {
    /// How long it is, as the origin told.
    pub(crate) len: Option<u64>,
    pub(crate) choice: CodingChoice,
    /// The part of it that the client asked for.
    pub(crate) range: Option<ByteRange>,
    /// Whether ranges are on offer.
    pub(crate) ranges: bool,
    /// Whether it is changed, so that there are no parts of it.
    pub(crate) reworked: bool,
    /// The part that was asked for does not exist.
    pub(crate) unsatisfiable: bool,
}

impl Exchange {
    /// Answers with what the origin begins to say, or does what it asks for.
    pub(crate) fn take_origin_head(
        &mut self,
        head: &OriginHead,
        site: &Site,
        ctx: &mut StepCtx<'_>,
    ) -> NextStep {
        let location = site.location(self.request.location);
        let status = match head.status {
            // RFC 3875 §6.2.3: a Location without a status is a redirect.
            0 if head.fields.get(Name::Location).is_some() => 302,
            0 => 200,
            status => status,
        };
        if let Some(asked) = &mut self.answer.origin {
            asked.note_head(&head.fields, ctx.now);
        }
        if let Some(caching) = &location.caching {
            self.page.way.status = status;
            self.invalidate_zone(status, caching, site, ctx);
            let next = match status {
                304 => self.revalidated(head, caching, site, ctx),
                _ => self.stale_if_error(StaleCause::Status(status), site, ctx),
            };
            if let Some(next) = next {
                return next;
            }
        }
        let settings = &location.settings;
        if settings.origin.intercept_errors
            && status >= 300
            && settings.error_pages.iter().any(|page| page.status == status)
        {
            self.drop_fetch(ctx);
            match status {
                401 => self.answer.carry(&head.fields, |name| name == Name::WwwAuthenticate),
                405 => self.answer.carry(&head.fields, |name| name == Name::Allow),
                _ => {}
            }
            return NextStep::Fail(status);
        }
        let ignored = settings.origin.ignore_headers;
        if !ignored.redirect
            && let Some(target) = head.fields.get_text(b"X-Accel-Redirect")
        {
            self.drop_fetch(ctx);
            self.answer.carry(&head.fields, outlives_redirect);
            return self.accel_redirect(target, site, ctx);
        }
        self.send_origin(status, head, site, ctx)
    }

    /// `X-Accel-Redirect`: the answer is another one of ours.
    fn accel_redirect(&mut self, target: &[u8], site: &Site, ctx: &mut StepCtx<'_>) -> NextStep {
        self.request.is_straight = false;
        self.request.arrival.turn(InternalTurn::Accel);
        if target.first() == Some(&b'@') {
            return self.enter_named(target, site, ctx);
        }
        let (path, args) = match memchr::memchr(b'?', target) {
            Some(mark) => (&target[..mark], &target[mark + 1..]),
            None => (target, &b""[..]),
        };
        let mut decoded = Vec::with_capacity(path.len());
        bolide_http::uri::push_decoded(&mut decoded, path);
        if is_unsafe(path) || is_unsafe(&decoded) {
            log_lines::error_at_origin(self, site, ctx, |out| {
                out.extend_from_slice(b"unsafe URI \"");
                bolide_http::escape::push_log(out, target);
                out.extend_from_slice(
                    b"\" was detected while reading response header from upstream",
                );
            });
            return NextStep::Fail(404);
        }
        if self.request.method != Method::Head {
            self.request.method = Method::Get;
        }
        let next = self.redirect_inside(path, site, ctx);
        if matches!(next, NextStep::Step(_)) {
            // A `?` that was written as `%3F` is part of the path.
            self.request.uri.clear();
            self.request.uri.extend_from_slice(&decoded);
            self.request.note_dots();
            if !args.is_empty() {
                self.request.set_args(args);
            }
        }
        next
    }

    /// Answers with what the origin says.
    fn send_origin(
        &mut self,
        status: u16,
        head: &OriginHead,
        site: &Site,
        ctx: &mut StepCtx<'_>,
    ) -> NextStep {
        if self.is_post_action() {
            self.answer.head.status = self.answer.status_or(status);
            return NextStep::Respond;
        }
        let location = site.location(self.request.location);
        if status == 101 {
            return self.send_tunnel(head, site, ctx);
        }
        if self.is_esi_page(head, location, ctx, site) {
            return self.send_esi(head, site, ctx);
        }
        let status = self.answer.status_or(status);
        let content_type = head.fields.get(Name::ContentType).unwrap_or_default();
        let kind = &*location.kinds.of_value(content_type, &location.settings);
        let mut shape = self.shape(status, head, kind, location, ctx.now.unix_seconds());
        let mut status = status;
        let is_page = location.caching.as_ref().is_some_and(Caching::is_page);
        if self.page.is_whole && status == 200 && (is_page || self.evaluates_preconditions()) {
            match self.evaluate_requested(head, &mut shape, location) {
                304 => {
                    status = 304;
                    shape = UpstreamShape::default();
                    self.drop_fetch(ctx);
                }
                412 => {
                    self.drop_fetch(ctx);
                    return NextStep::Fail(412);
                }
                _ => {}
            }
        }
        if shape.unsatisfiable {
            self.drop_fetch(ctx);
            self.unsatisfied = shape.len;
            return NextStep::Fail(416);
        }
        let status = if shape.range.is_some() { 206 } else { status };
        self.answer.head.body = shape.len.map_or(BodyLen::Unknown, BodyLen::Exact);
        self.fill_from_origin(status, head, kind, shape, site, ctx);
        if status == 304 && self.page.is_whole {
            self.answer.head.fields.remove(Name::ContentType);
            self.answer.head.fields.remove(Name::ContentEncoding);
        }
        if location.caching.is_some() {
            self.say_asked(location, ctx);
        }
        self.answer_with_inflow(status, head, shape, location, ctx);
        NextStep::Respond
    }

    /// Decides what is made of the body.
    fn shape(
        &self,
        status: u16,
        head: &OriginHead,
        kind: &MediaType,
        location: &CompiledLocation,
        now: u64,
    ) -> UpstreamShape {
        let len = head.fields.get(Name::ContentLength).and_then(number);
        let mut shape = UpstreamShape { len, ..UpstreamShape::default() };
        let is_bare = matches!(status, 204 | 304);
        if location.coded && !is_bare && head.fields.get(Name::ContentEncoding).is_none() {
            let client = compress::codings_for_origin(&self.request, location, &head.fields, now);
            shape.choice = compress::choose(location, kind, status, len, client);
        }
        let encoding = head.fields.get(Name::ContentEncoding).unwrap_or_default();
        shape.reworked =
            location.reworks && self.reworks(kind, encoding, len.unwrap_or(1), location);
        let offers = location.settings.origin.force_ranges
            && location.settings.max_ranges != Some(0)
            && !shape.reworked
            && status == 200
            && shape.choice.coding.is_none();
        let Some(len) = len.filter(|_| offers) else { return shape };
        shape.ranges = true;
        let conditions = Conditions::of(&self.request.head().fields);
        let validator = Validator {
            etag: head.fields.get(Name::Etag),
            last_modified: head.fields.get(Name::LastModified).and_then(bolide_http::date::parse),
        };
        let Some(field) = conditions.range else { return shape };
        if !conditions.range_applies(validator) {
            return shape;
        }
        let mut ranges = Vec::new();
        match bolide_http::range::parse(field, len, 1, &mut ranges) {
            RangeOutcome::Partial => shape.range = ranges.first().copied(),
            RangeOutcome::Unsatisfiable => shape.unsatisfiable = true,
            RangeOutcome::Whole => {}
        }
        shape
    }

    /// What the client's conditions and ranges, which the origin was not told of, make of its 200:
    /// the status. A part goes into `shape`.
    fn evaluate_requested(
        &mut self,
        head: &OriginHead,
        shape: &mut UpstreamShape,
        location: &CompiledLocation,
    ) -> u16 {
        let validator = Validator {
            etag: head.fields.get(Name::Etag),
            last_modified: head.fields.get(Name::LastModified).and_then(bolide_http::date::parse),
        };
        let has_parts = !shape.reworked && shape.choice.coding.is_none() && shape.len.is_some();
        let max_ranges = u32::from(has_parts && tells_ranges(head, location));
        let (request, len) = (&self.request.head().fields, shape.len.unwrap_or(0));
        match evaluate_preconditions(
            request,
            validator,
            len,
            location,
            max_ranges,
            &mut self.ranges,
        ) {
            Verdict::NotModified => 304,
            Verdict::PreconditionFailed => 412,
            Verdict::Partial => {
                shape.range = self.ranges.first().copied();
                206
            }
            Verdict::Unsatisfiable => {
                shape.unsatisfiable = true;
                416
            }
            Verdict::Whole | Verdict::NotAllowed => {
                shape.ranges |= max_ranges > 0 && location.rules.max_ranges > 0;
                200
            }
        }
    }

    /// Writes the head of an answer that an origin gives.
    pub(crate) fn fill_from_origin(
        &mut self,
        status: u16,
        head: &OriginHead,
        kind: &MediaType,
        shape: UpstreamShape,
        site: &Site,
        ctx: &mut StepCtx<'_>,
    ) {
        let fields = self.passed_fields(head, kind, shape, site, ctx);
        let modified = head.fields.get(Name::LastModified).and_then(bolide_http::date::parse);
        self.decorate(fields, status, modified, site, ctx);
    }

    /// The fields of such an answer, as far as they depend on it and the location.
    pub(crate) fn passed_fields(
        &mut self,
        head: &OriginHead,
        kind: &MediaType,
        shape: UpstreamShape,
        site: &Site,
        ctx: &StepCtx<'_>,
    ) -> FieldMap {
        let location = site.location(self.request.location);
        let plan = location.pass.as_ref().and_then(|pass| pass.proxied.as_ref());
        let rewritten = plan.map(|plan| {
            let scope = VariableScope::new(&self.request, &self.answer, site, ctx);
            plan.rewriter.apply(head, &scope)
        });
        let head = rewritten.as_deref().unwrap_or(head);
        let mut fields = std::mem::take(&mut self.answer.head.fields);
        fields.clear();
        if location.adds(Name::Server, &head.fields) {
            fields.push(Name::Server, location.signature.text().as_bytes());
        }
        if location.dates(&head.fields) {
            fields.push(Name::Date, ctx.clock.http());
        }
        if let Some(value) = head.fields.get(Name::ContentType)
            && !location.hides(Name::ContentType)
        {
            self.push_content_type(value, head, kind, &mut fields, site, ctx);
        }
        if shape.choice.varies && location.settings.gzip.vary {
            fields.push(Name::Vary, b"Accept-Encoding");
        }
        push_passed(&mut fields, head, shape, location);
        if let Some(coding) = shape.choice.coding {
            fields.push(Name::ContentEncoding, coding.token().as_bytes());
        }
        if let (Some(range), Some(len)) = (shape.range, shape.len) {
            fields.push_writing(Name::ContentRange, |out| {
                bolide_http::range::push_content_range(out, range, len);
            });
        } else if shape.ranges {
            fields.push(Name::AcceptRanges, b"bytes");
        }
        fields
    }

    /// Adds what the configuration says, and makes `fields` those of the answer.
    pub(crate) fn decorate(
        &mut self,
        mut fields: FieldMap,
        status: u16,
        modified: Option<u64>,
        site: &Site,
        ctx: &StepCtx<'_>,
    ) {
        let location = site.location(self.request.location);
        self.answer.head.status = status;
        // What an origin said before it handed the request on.
        if !self.answer.carried.is_empty() {
            push_carried(&mut fields, &self.answer.carried);
        }
        if location.is_decorated || ctx.conn.scheme == Scheme::Https {
            let mut scratch = std::mem::take(&mut self.scratch);
            let scope = VariableScope::new(&self.request, &self.answer, site, ctx);
            headers::push_configured(&mut fields, &scope, status, modified, &mut scratch);
            self.scratch = scratch;
        }
        self.answer.head.fields = fields;
    }

    /// The origin's type, with a charset where configuration or the origin wants one.
    fn push_content_type(
        &mut self,
        value: &[u8],
        head: &OriginHead,
        kind: &MediaType,
        fields: &mut FieldMap,
        site: &Site,
        ctx: &StepCtx<'_>,
    ) {
        let settings = &site.location(self.request.location).settings;
        let mut text = std::mem::take(&mut self.scratch);
        text.clear();
        text.extend_from_slice(value);
        let named = head
            .fields
            .get_text(b"X-Accel-Charset")
            .filter(|name| !settings.origin.ignore_headers.charset && !name.is_empty());
        if memchr::memchr(b';', value).is_none() {
            let mark = text.len();
            text.extend_from_slice(b"; charset=");
            let empty = text.len();
            match (named, &settings.charset.charset) {
                (Some(name), _) => text.extend_from_slice(name),
                (None, CharsetOf::Name(name)) if settings.charset.types.contains(&kind.media) => {
                    VariableScope::new(&self.request, &self.answer, site, ctx)
                        .expand(name, &mut text);
                }
                (None, _) => {}
            }
            if text.len() == empty {
                text.truncate(mark);
            }
        }
        fields.push(Name::ContentType, &text);
        self.scratch = text;
    }

    /// Makes the body that what comes from the origin goes through.
    fn answer_with_inflow(
        &mut self,
        status: u16,
        head: &OriginHead,
        shape: UpstreamShape,
        location: &CompiledLocation,
        ctx: &mut StepCtx<'_>,
    ) {
        let origin = &location.settings.origin;
        let ignored = origin.ignore_headers;
        let said = |name: &[u8], ignored: bool| {
            head.fields.get_text(name).filter(|value| !ignored && !value.is_empty())
        };
        let buffers = is_buffered(head, origin);
        if let Some(asked) = &mut self.answer.origin {
            asked.rate = said(b"X-Accel-Limit-Rate", ignored.limit_rate).and_then(number);
            asked.set_answering();
        }
        let limits = match buffers {
            true => SpoolLimits {
                memory: origin.buffer_size + origin.buffers.0 as usize * origin.buffers.1,
                file: origin.max_temp_file_size,
            },
            false => SpoolLimits { memory: origin.buffer_size, file: 0 },
        };
        let is_head = self.request.head().method == Method::Head;
        self.answer.head.body = match (shape.range, shape.choice.coding, shape.len) {
            _ if matches!(status, 204 | 304) => BodyLen::None,
            (Some(range), ..) => BodyLen::Exact(range.len()),
            (None, None, Some(len)) => BodyLen::Exact(len),
            _ if is_head => BodyLen::None,
            _ => BodyLen::Unknown,
        };
        if is_head {
            // As in nginx, nobody waits for a body that nobody gets.
            self.drop_fetch(ctx);
            self.answer.body = AnswerBody::Empty;
        } else if matches!(status, 204 | 304) {
            self.answer.body = AnswerBody::Empty;
        } else {
            let mut inflow = Inflow::new(limits, shape.len);
            if let Some(coding) = shape.choice.coding {
                let flush = if buffers { Flush::Lazily } else { Flush::Always };
                inflow.encode(coding, compress::level(location, coding), flush);
            }
            if let Some(range) = shape.range {
                inflow.keep_only(range);
            }
            self.answer.body = AnswerBody::Origin(Box::new(inflow));
        }
    }
}

/// Whether clients are told that a kept answer is to be had in parts: in nginx's zones, if the
/// origin or the configuration says so.
pub(crate) fn tells_ranges(head: &OriginHead, location: &CompiledLocation) -> bool {
    location.caching.as_ref().is_some_and(Caching::is_page)
        || location.settings.origin.force_ranges
        || head.fields.get(Name::AcceptRanges).is_some()
}

/// Whether an answer is read ahead of the client.
pub(crate) fn is_buffered(head: &OriginHead, origin: &OriginSettings) -> bool {
    let said = head.fields.get_text(b"X-Accel-Buffering");
    match said.filter(|_| !origin.ignore_headers.buffering) {
        Some(value) if value.eq_ignore_ascii_case(b"no") => false,
        Some(value) if value.eq_ignore_ascii_case(b"yes") => true,
        _ => origin.buffering,
    }
}

/// Copies what a client would see of it.
pub(crate) fn push_shown(fields: &mut FieldMap, head: &OriginHead, location: &CompiledLocation) {
    if let Some(value) = head.fields.get(Name::ContentType)
        && !location.hides(Name::ContentType)
    {
        fields.push(Name::ContentType, value);
    }
    push_passed(fields, head, UpstreamShape::default(), location);
}

/// Copies what the client may see.
fn push_passed(
    fields: &mut FieldMap,
    head: &OriginHead,
    shape: UpstreamShape,
    location: &CompiledLocation,
) {
    for field in head.fields.iter() {
        match field.name {
            Name::ContentType | Name::ContentLength => continue,
            // RFC 9110 §7.8: only this says which protocol it is.
            Name::Upgrade if head.status == 101 => {}
            name if is_hop(name) => continue,
            Name::AcceptRanges
                if shape.choice.coding.is_some()
                    || shape.ranges
                    || shape.range.is_some()
                    || location.settings.origin.force_ranges =>
            {
                continue;
            }
            Name::Etag if shape.choice.coding.is_some() => {
                push_weak(fields, field.value);
                continue;
            }
            Name::Other if location.hides_text(field.text) => continue,
            Name::Date if location.keeps_dates() => {}
            name if location.hides(name) => continue,
            _ => {}
        }
        fields.push_parsed(field.name, field.text, field.value);
    }
}

/// RFC 9110 §8.8.1: a coded form is equivalent to the original, not the same bytes.
fn push_weak(fields: &mut FieldMap, etag: &[u8]) {
    if etag.starts_with(b"W/\"") {
        fields.push(Name::Etag, etag);
    } else if etag.len() >= 2 && etag.starts_with(b"\"") {
        fields.push_writing(Name::Etag, |out| {
            out.extend_from_slice(b"W/");
            out.extend_from_slice(etag);
        });
    }
}

/// Fields of the origin that stay when `X-Accel-Redirect` replaces its answer, as in nginx.
const fn outlives_redirect(name: Name) -> bool {
    matches!(
        name,
        Name::ContentType
            | Name::SetCookie
            | Name::ContentDisposition
            | Name::CacheControl
            | Name::Expires
            | Name::AcceptRanges
    )
}

/// Whether a path could lead out of where it points: `..` as a segment, NUL, nothing at all.
pub(crate) fn is_unsafe(path: &[u8]) -> bool {
    path.is_empty()
        || memchr::memchr(0, path).is_some()
        || path.split(|byte| *byte == b'/').any(|segment| segment == b"..")
}

fn number(text: &[u8]) -> Option<u64> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// Puts what is `carried` in front of an answer's own fields.
#[cold]
fn push_carried(fields: &mut FieldMap, carried: &FieldMap) {
    let own = std::mem::take(fields);
    let has_type = own.get(Name::ContentType).is_some();
    let counts = |name: Name| name != Name::ContentType || !has_type;
    for field in carried.iter().filter(|field| counts(field.name)).chain(own.iter()) {
        fields.push_parsed(field.name, field.text, field.value);
    }
}

#[cfg(test)]
mod tests {
    use super::is_unsafe;

    #[test]
    fn a_path_with_a_way_up_is_unsafe() {
        for path in ["", "/a/../b", "..", "../a", "/a/..", "/a\0b"] {
            assert!(is_unsafe(path.as_bytes()), "{path}");
        }
        for path in ["/", "/a/..b", "a", "/a/b..c", "/..a/"] {
            assert!(!is_unsafe(path.as_bytes()), "{path}");
        }
    }
}
