//! The fields of a generated response, in nginx's order.
//!
//! Owns `Server`, `Date`, `expires`, `add_header` and the `Location` of redirects. Framing fields
//! belong to the protocol.

use std::cell::Cell;

use bolide_conf::model::{Expires, ExpiresRule, PortInRedirect, UserIdMode};
use bolide_http::date::http_date;
use bolide_http::digits::push_decimal;
use bolide_http::{FieldMap, HttpVersion, Name, OriginHead, Scheme};

use crate::answer::Answer;
use crate::connection::ConnInfo;
use crate::ctx::{ClientAddress, StepCtx};
use crate::delivery::RangeDate;
use crate::filter::edits::edit_answer;
use crate::filter::user_id::push_user_id;
use crate::request::Request;
use crate::site::{CompiledLocation, Site};
use crate::vars::{VariableScope, address, scheme};

/// The fields that a content handler determines.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct HeadDraft<'a> {
    /// `Content-Type`; empty for none.
    pub(crate) content_type: &'a [u8],
    /// `Last-Modified`, formatted.
    pub(crate) last_modified: Option<&'a [u8]>,
    /// `Last-Modified` in seconds since 1970.
    pub(crate) modified_at: Option<u64>,
    /// `Location`, absolute.
    pub(crate) location: Option<&'a [u8]>,
    /// `ETag`
    pub(crate) etag: Option<&'a [u8]>,
    /// `Content-Encoding`; empty for none.
    pub(crate) encoding: &'static str,
    /// Whether to send `Vary: Accept-Encoding`.
    pub(crate) varies: bool,
    /// Whether to send `Accept-Ranges: bytes`.
    pub(crate) ranges: bool,
}

/// Whether `add_header` without `always`, and `expires`, apply to this status.
pub(super) const fn is_safe(status: u16) -> bool {
    matches!(status, 200 | 201 | 204 | 206 | 301 | 302 | 303 | 304 | 307 | 308)
}

/// Writes the first fields of every response.
#[inline]
pub(crate) fn push_draft(
    fields: &mut FieldMap,
    status: u16,
    draft: &HeadDraft<'_>,
    place: FieldPlace<'_>,
) {
    debug_assert!(fields.is_empty(), "these fields come first");
    let signature = place.location.signature.text().as_bytes();
    // PERF: most responses carry no fields of another.
    if place.carried.is_empty() {
        fields.push(Name::Server, signature);
        fields.push(Name::Date, place.date);
    } else {
        push_own(fields, Name::Server, signature, place.carried);
        push_own(fields, Name::Date, place.date, place.carried);
    }
    let content_type = place.carried.get(Name::ContentType).unwrap_or(draft.content_type);
    if !content_type.is_empty() {
        fields.push(Name::ContentType, content_type);
    }
    if let Some(modified) = draft.last_modified.filter(|_| matches!(status, 200 | 204 | 206 | 304))
    {
        fields.push(Name::LastModified, modified);
    }
    if let Some(location) = draft.location {
        fields.push(Name::Location, location);
    }
    if draft.varies && place.location.settings.gzip.vary {
        fields.push(Name::Vary, b"Accept-Encoding");
    }
    let is_written = |name| matches!(name, Name::ContentType | Name::Server | Name::Date);
    for field in place.carried.iter().filter(|field| !is_written(field.name)) {
        fields.push_parsed(field.name, field.text, field.value);
    }
    if let Some(etag) = draft.etag {
        fields.push(Name::Etag, etag);
    }
    if !draft.encoding.is_empty() {
        fields.push(Name::ContentEncoding, draft.encoding.as_bytes());
    }
    if draft.ranges {
        fields.push(Name::AcceptRanges, b"bytes");
    }
}

/// Removes the representation fields that a generated 204 must not have; as in nginx, fields of the
/// configuration stay.
#[cold]
pub(crate) fn withhold(fields: &mut FieldMap, location: &CompiledLocation) {
    let is_type_seen = Cell::new(false);
    fields.remove_where(|field| match field.name {
        // The one of `add_header` comes after it.
        Name::ContentType => !is_type_seen.replace(true),
        Name::LastModified => !location.sets_last_modified,
        _ => false,
    });
}

/// Removes the representation fields that a passed 204 must not have.
#[cold]
pub(crate) fn withhold_passed(
    fields: &mut FieldMap,
    request: &Request,
    head: &OriginHead,
    site: &Site,
) {
    if head.status_or_implied() != 204 {
        // `error_page` changed the status.
        withhold(fields, site.location(request.location));
    } else if request.head().version >= HttpVersion::Http2 {
        // As in nginx, the type of an upstream's 204 is passed over HTTP/1 only.
        fields.remove(Name::ContentType);
    }
}

/// Writes `Server` or `Date`: ours, unless that of an upstream response is carried, which may be
/// empty.
pub(super) fn push_own(fields: &mut FieldMap, name: Name, own: &[u8], carried: &FieldMap) {
    match carried.get(name) {
        None => fields.push(name, own),
        Some(b"") => {}
        Some(value) => fields.push(name, value),
    }
}

/// Where a response is generated.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FieldPlace<'a> {
    /// The location of the request.
    pub(crate) location: &'a CompiledLocation,
    /// The value of `Date`.
    pub(crate) date: &'a [u8],
    /// Fields of an upstream response that it has to carry; their type takes precedence.
    pub(crate) carried: &'a FieldMap,
}

/// Writes the fields of the configuration: `expires`, `add_header`, `Alt-Svc`.
///
/// Writes to `fields`, which is not yet part of the scope's answer.
pub(crate) fn push_configured(
    fields: &mut FieldMap,
    scope: &VariableScope<'_>,
    status: u16,
    last_modified: Option<u64>,
    scratch: &mut Vec<u8>,
) {
    // As in nginx, a response that no client sees gets none.
    if scope.request.role.is_inside() {
        return;
    }
    let location = scope.location();
    let safe = is_safe(status);
    if !location.settings.edits.is_empty() {
        edit_answer(fields, scope, status, scratch);
    }
    if location.expires && safe {
        push_expires(fields, scope, last_modified, scratch);
    }
    // As in nginx, a 416 has only validators with `always`.
    let is_cut = scope.answer.unsatisfied.is_some();
    let is_due = |name| safe && !(is_cut && matches!(name, Name::LastModified | Name::Etag));
    let mut headers = location.headers.iter();
    while let Some(header) = headers.find(|header| header.conf.always || is_due(header.name)) {
        scratch.clear();
        VariableScope { sent: Some(fields), ..*scope }.expand(&header.conf.value, scratch);
        for byte in scratch.iter_mut().filter(|byte| matches!(byte, 0 | b'\r' | b'\n')) {
            *byte = b' ';
        }
        match header.name {
            Name::LastModified => fields.remove(header.name),
            Name::Etag => {
                if is_coded_here(fields, scope.answer) {
                    weaken(scratch);
                }
                fields.remove(header.name);
            }
            _ => {}
        }
        if !scratch.is_empty() {
            fields.push_parsed(header.name, &header.conf.name, scratch);
        }
    }
    if location.htaccess.is_some() {
        crate::htaccess::effects::decorate(fields, scope, status, last_modified);
    }
    if location.settings.user_id.mode != UserIdMode::Off {
        push_user_id(fields, scope);
    }
    push_alt_svc(fields, scope.request, scope.site, scope.conn);
}

/// Announces HTTP/3 to a client of HTTPS over TCP, unless `add_header` or the application writes
/// the field.
#[inline]
pub(crate) fn push_alt_svc(fields: &mut FieldMap, request: &Request, site: &Site, conn: &ConnInfo) {
    if conn.scheme != Scheme::Https
        || request.role.is_inside()
        || request.head().version >= HttpVersion::Http3
    {
        return;
    }
    let alt_svc = site.alt_svc(request.listen, request.server);
    let is_set = site.location(request.location).sets_alt_svc;
    if !alt_svc.is_empty() && !is_set && fields.get(Name::AltSvc).is_none() {
        fields.push(Name::AltSvc, alt_svc);
    }
}

/// Whether the body is compressed for this response, not cached in that form.
fn is_coded_here(fields: &FieldMap, answer: &Answer) -> bool {
    fields.get(Name::ContentEncoding).is_some()
        && (answer.compression.is_some()
            || fields.get(Name::Etag).is_some_and(|own| own.starts_with(b"W/")))
}

/// Weakens the tag of a coded form (RFC 9110 §8.8.1); as in nginx, an invalid one is removed.
fn weaken(tag: &mut Vec<u8>) {
    if tag.starts_with(b"\"") {
        tag.splice(..0, *b"W/");
    } else if !tag.starts_with(b"W/") {
        tag.clear();
    }
}

/// The date for `If-Range`: `add_header Last-Modified` replaces that of the representation.
#[inline]
pub(crate) fn range_date(
    request: &Request,
    answer: &Answer,
    site: &Site,
    ctx: &StepCtx<'_>,
) -> RangeDate {
    // PERF: hardly any location has it.
    match site.location(request.location).sets_last_modified {
        true => added_date(&VariableScope::new(request, answer, site, ctx)),
        false => RangeDate::Own,
    }
}

#[cold]
fn added_date(scope: &VariableScope<'_>) -> RangeDate {
    if scope.request.head().fields.get(Name::IfRange).is_none() {
        return RangeDate::Own;
    }
    let mut headers = scope.location().headers.iter();
    let Some(last) = headers.rfind(|header| header.name == Name::LastModified) else {
        return RangeDate::Own;
    };
    let mut text = Vec::new();
    // What it says of the answer's fields is known when these are written.
    let known = scope.request.first_values.borrow().mark();
    scope.expand(&last.conf.value, &mut text);
    scope.request.first_values.borrow_mut().forget_since(known);
    RangeDate::Added(bolide_http::date::parse(&text))
}

fn push_expires(
    fields: &mut FieldMap,
    scope: &VariableScope<'_>,
    last_modified: Option<u64>,
    scratch: &mut Vec<u8>,
) {
    let rule = match &*scope.location().settings.expires {
        Expires::Fixed(rule) => *rule,
        Expires::Variable { text, modified } => {
            scratch.clear();
            VariableScope { sent: Some(fields), ..*scope }.expand(text, scratch);
            match ExpiresRule::parse(scratch, *modified) {
                Ok(rule) => rule,
                Err(_) => return,
            }
        }
    };
    let now = scope.now.unix_seconds() as i64;
    let (at, age) = match rule {
        ExpiresRule::Off => return,
        ExpiresRule::Epoch => (1, -1),
        ExpiresRule::Max => (2_145_916_555, 315_360_000),
        // As in nginx, zero counts from now.
        ExpiresRule::Modified(0) => (now, 0),
        ExpiresRule::After(seconds) => (now.saturating_add(seconds), seconds),
        ExpiresRule::Modified(seconds) => match last_modified {
            Some(modified) => {
                let at = (modified as i64).saturating_add(seconds);
                (at, if seconds < 0 { -1 } else { at - now })
            }
            None => (now.saturating_add(seconds), seconds),
        },
        ExpiresRule::Daily(second) => {
            let at = next_time_of_day(now, scope.clock.utc_offset(), second);
            (at, at - now)
        }
    };
    // `Expires` of the upstream does not count here.
    fields.remove(Name::Expires);
    fields.remove(Name::CacheControl);
    fields.push(Name::Expires, &http_date(at));
    if age < 0 {
        fields.push(Name::CacheControl, b"no-cache");
    } else {
        fields.push_writing(Name::CacheControl, |out| {
            out.extend_from_slice(b"max-age=");
            push_decimal(out, age.unsigned_abs());
        });
    }
}

/// The next time at which a local clock shows `second` seconds since midnight.
fn next_time_of_day(now: i64, offset: i32, second: u32) -> i64 {
    const DAY: i64 = 86_400;
    let local = now + i64::from(offset);
    let today = local - local.rem_euclid(DAY) + i64::from(second);
    let at = if today > local { today } else { today + DAY };
    debug_assert!(at > local && at - local <= DAY, "a time of day comes within a day");
    at - i64::from(offset)
}

/// Appends `path`, as an absolute URL if `absolute_redirect` is on.
///
/// The scheme is the connection's; the host is that of the request, the server's name or the
/// address, in nginx's order; a default port is omitted.
pub(crate) fn push_absolute(scope: &VariableScope<'_>, path: &[u8], out: &mut Vec<u8>) {
    let settings = &scope.location().settings;
    if !settings.absolute_redirect || path.first() != Some(&b'/') {
        return out.extend_from_slice(path);
    }
    out.extend_from_slice(scheme(scope.conn.scheme));
    out.extend_from_slice(b"://");
    if settings.server_name_in_redirect {
        out.extend_from_slice(scope.site.server(scope.request.server).name.as_bytes());
    } else if !scope.request.host.is_empty() {
        out.extend_from_slice(&scope.request.host);
    } else {
        push_local_host(scope.conn.local, out);
    }
    let port = match settings.port_in_redirect {
        PortInRedirect::None => 0,
        PortInRedirect::Host if !scope.request.host.is_empty() => {
            scope.request.port.unwrap_or_default()
        }
        PortInRedirect::Host | PortInRedirect::Listen => scope.conn.local.port(),
    };
    let default = match scope.conn.scheme {
        Scheme::Http => 80,
        Scheme::Https => 443,
    };
    if port != 0 && port != default {
        out.push(b':');
        push_decimal(out, u64::from(port));
    }
    out.extend_from_slice(path);
}

impl Answer {
    /// Sets the target of a redirect: a path becomes an absolute URL when the head is written.
    pub(crate) fn write_redirect(&mut self, path: &[u8]) {
        self.location.clear();
        self.location.extend_from_slice(path);
        (self.location_origin, self.is_to_nowhere) = (0, path.is_empty());
    }

    /// Writes the `Location` of a redirect, or of a response that `error_page` made of one. As in
    /// nginx, the location that sends the response determines the host of a relative one.
    pub(crate) fn push_location(
        &mut self,
        fields: &mut FieldMap,
        request: &Request,
        site: &Site,
        ctx: &StepCtx<'_>,
    ) {
        if self.location.first() == Some(&b'/') {
            let mut address = std::mem::take(&mut self.scratch);
            address.clear();
            let scope = VariableScope::new(request, self, site, ctx);
            push_absolute(&scope, &self.location, &mut address);
            debug_assert!(address.ends_with(&self.location), "an address ends with its path");
            self.location_origin = address.len() - self.location.len();
            self.scratch = std::mem::replace(&mut self.location, address);
        }
        fields.push(Name::Location, &self.location);
    }
}

fn push_local_host(local: ClientAddress, out: &mut Vec<u8>) {
    let is_v6 = matches!(local, ClientAddress::Inet(addr) if addr.ip().to_canonical().is_ipv6());
    if is_v6 {
        out.push(b'[');
    }
    address(out, local);
    if is_v6 {
        out.push(b']');
    }
}

#[cfg(test)]
mod tests {
    use super::{next_time_of_day, weaken};

    #[test]
    fn the_tag_of_a_coded_form_is_weak() {
        for (tag, wanted) in [("\"a\"", "W/\"a\""), ("W/\"a\"", "W/\"a\""), ("a", ""), ("", "")] {
            let mut tag = tag.as_bytes().to_vec();
            weaken(&mut tag);
            assert_eq!(tag, wanted.as_bytes());
        }
    }

    #[test]
    fn the_next_time_of_day_is_in_the_future_and_in_the_zone() {
        const DAY: i64 = 86_400;
        assert_eq!(next_time_of_day(DAY + 10, 0, 20), DAY + 20);
        assert_eq!(next_time_of_day(DAY + 20, 0, 20), 2 * DAY + 20);
        assert_eq!(next_time_of_day(DAY, 3600, 3600), 2 * DAY);
        assert_eq!(next_time_of_day(DAY - 1, 3600, 3600), DAY);
    }
}
