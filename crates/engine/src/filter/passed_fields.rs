//! Which fields of an upstream response the client gets, and whether it is buffered.

use std::borrow::Cow;

use bolide_conf::model::OriginSettings;
use bolide_http::hop_by_hop::is_hop;
use bolide_http::{FieldMap, Name, OriginHead};

use crate::answer::Answer;
use crate::caching::Caching;
use crate::ctx::StepCtx;
use crate::delivery::Delivery;
use crate::filter::compress::CodingChoice;
use crate::request::Request;
use crate::site::{CompiledLocation, Site};
use crate::vars::VariableScope;

/// Whether a response is buffered (`proxy_buffering`, `X-Accel-Buffering`).
pub(crate) fn is_buffered(head: &OriginHead, origin: &OriginSettings) -> bool {
    let said = head.fields.get_text(b"X-Accel-Buffering");
    match said.filter(|_| !origin.ignore_headers.buffering) {
        Some(value) if value.eq_ignore_ascii_case(b"no") => false,
        Some(value) if value.eq_ignore_ascii_case(b"yes") => true,
        _ => origin.buffering,
    }
}

/// Copies the fields that a client would get.
pub(crate) fn push_shown(fields: &mut FieldMap, head: &OriginHead, location: &CompiledLocation) {
    if let Some(value) = head.fields.get(Name::ContentType)
        && !location.hides(Name::ContentType)
    {
        fields.push(Name::ContentType, value);
    }
    push_passed(fields, head, CodingChoice::default(), &Delivery::whole(head.status), location);
}

/// Copies the fields that the client may get.
pub(super) fn push_passed(
    fields: &mut FieldMap,
    head: &OriginHead,
    choice: CodingChoice,
    delivery: &Delivery,
    location: &CompiledLocation,
) {
    let says_ranges = choice.coding.is_some()
        || delivery.accept_ranges
        || delivery.is_partial()
        || location.settings.origin.force_ranges;
    for field in head.fields.iter() {
        match field.name {
            Name::ContentType | Name::ContentLength => continue,
            // RFC 9110 §7.8: a 101 must name the protocol; framings without upgrades omit the
            // field.
            Name::Upgrade if location.hides(Name::Upgrade) => continue,
            Name::Upgrade => {}
            name if is_hop(name) => continue,
            Name::AcceptRanges if says_ranges => continue,
            // Our own `Content-Range` describes the part of the part.
            Name::ContentRange if delivery.is_partial() => continue,
            Name::Etag if choice.coding.is_some() => {
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

/// The head after `proxy_redirect` and `proxy_cookie_*` of the location, for HTTP upstreams.
pub(crate) fn rewritten<'a>(
    request: &Request,
    answer: &Answer,
    head: &'a OriginHead,
    site: &Site,
    ctx: &StepCtx<'_>,
) -> Option<Cow<'a, OriginHead>> {
    let plan = site.location(request.location).pass.as_ref()?.proxied.as_ref()?;
    Some(plan.rewriter.apply(head, &VariableScope::new(request, answer, site, ctx)))
}

/// As in nginx, a 416 that replaces an upstream response has its fields that are not about the
/// content. An empty `Server` or `Date` suppresses ours, where the upstream's would be passed but
/// is absent.
pub(crate) fn fields_of_unsatisfied(head: &OriginHead, location: &CompiledLocation) -> FieldMap {
    let mut fields = FieldMap::new();
    let whole = Delivery::whole(head.status);
    push_passed(&mut fields, head, CodingChoice::default(), &whole, location);
    for name in [
        Name::ContentEncoding,
        Name::ContentRange,
        Name::AcceptRanges,
        Name::Etag,
        Name::LastModified,
    ] {
        fields.remove(name);
    }
    for (name, is_ours) in [
        (Name::Server, location.adds(Name::Server, &head.fields)),
        (Name::Date, location.dates(&head.fields)),
    ] {
        if is_ours {
            fields.remove(name);
        } else if fields.get(name).is_none() {
            fields.push(name, b"");
        }
    }
    debug_assert!(
        fields.get(Name::ContentLength).is_none(),
        "framing fields of the origin never become fields of ours"
    );
    fields
}

/// Whether a 200 advertises ranges of a cached response: in nginx's zones, if the upstream or the
/// configuration does.
pub(crate) fn advertises_ranges(head: &OriginHead, location: &CompiledLocation) -> bool {
    location.caching.as_ref().is_some_and(Caching::is_page)
        || location.settings.origin.force_ranges
        || head.fields.get(Name::AcceptRanges).is_some() && !location.hides(Name::AcceptRanges)
}

/// Whether a response belongs to a zone, or is being stored in one: as in nginx, `Accept-Ranges` of
/// the upstream then concerns the zone only.
pub(crate) fn is_for_zone(answer: &Answer, location: &CompiledLocation) -> bool {
    let is_whole = answer.origin.as_deref().is_some_and(|asked| asked.is_whole);
    let has_zone = location.caching.as_ref().is_some_and(|caching| !caching.is_page());
    has_zone && (answer.cached.is_kept() || is_whole)
}

/// Whether a field of the upstream response stays after `X-Accel-Redirect`. As in nginx, a location
/// with `proxy_force_ranges` advertises ranges itself.
pub(super) fn outlives_redirect(name: Name, location: &CompiledLocation) -> bool {
    match name {
        Name::ContentType
        | Name::SetCookie
        | Name::ContentDisposition
        | Name::CacheControl
        | Name::Expires => true,
        Name::AcceptRanges => !location.settings.origin.force_ranges,
        _ => false,
    }
}

/// RFC 9110 §8.8.1: a coded form is equivalent to the original, but has other bytes.
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
