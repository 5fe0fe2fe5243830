//! `X-Accel-Redirect` and `X-Accel-Limit-Rate`: what an upstream orders.

use bolide_http::{FieldMap, Method};

use crate::answer::Answer;
use crate::caching::InternalRedirect;
use crate::ctx::StepCtx;
use crate::exchange::NextStep;
use crate::log_lines;
use crate::request::Request;
use crate::site::{CompiledLocation, Site};

/// `X-Accel-Limit-Rate` sets the rate of the request, in all later locations.
pub(crate) fn apply_limit_rate(request: &Request, fields: &FieldMap, location: &CompiledLocation) {
    if let Some(text) = fields.get_text(b"X-Accel-Limit-Rate")
        && !location.settings.origin.ignore_headers.limit_rate
        && text.iter().all(u8::is_ascii_digit)
        && let Some(rate) = std::str::from_utf8(text).ok().and_then(|text| text.parse().ok())
    {
        request.limit_rate.set(Some(rate));
    }
}

/// `X-Accel-Redirect`: an internal redirect replaces the response.
pub(super) fn accel_redirect(
    request: &mut Request,
    answer: &Answer,
    target: &[u8],
    site: &Site,
    ctx: &mut StepCtx<'_>,
) -> NextStep {
    request.is_straight = false;
    request.arrival.turn(InternalRedirect::Accel);
    if target.first() == Some(&b'@') {
        return request.enter_named(target, site, ctx);
    }
    let (path, args) = match memchr::memchr(b'?', target) {
        Some(mark) => (&target[..mark], &target[mark + 1..]),
        None => (target, &b""[..]),
    };
    let mut decoded = Vec::with_capacity(path.len());
    bolide_http::uri::push_decoded(&mut decoded, path);
    if is_unsafe(path) || is_unsafe(&decoded) {
        log_lines::error_at_origin(request, answer, site, ctx, |out| {
            out.extend_from_slice(b"unsafe URI \"");
            bolide_http::escape::push_log(out, target);
            out.extend_from_slice(b"\" was detected while reading response header from upstream");
        });
        return NextStep::Fail(404);
    }
    if request.method != Method::Head {
        request.method = Method::Get;
    }
    let next = request.redirect_inside(path, site, ctx);
    if matches!(next, NextStep::Step(_)) {
        // A `?` that was written as `%3F` is part of the path.
        request.uri.clear();
        request.uri.extend_from_slice(&decoded);
        request.mark_dots();
        if !args.is_empty() {
            request.set_args(args);
        }
    }
    next
}

/// Whether a path is unsafe: `..` as a segment, NUL, or empty.
pub(crate) fn is_unsafe(path: &[u8]) -> bool {
    path.is_empty()
        || memchr::memchr(0, path).is_some()
        || path.split(|byte| *byte == b'/').any(|segment| segment == b"..")
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
