//! `metrics`: serves the metrics of the server.

use bolide_http::{Method, Name};
use bytes::Bytes;

use crate::answer::Answer;
use crate::ctx::StepCtx;
use crate::exchange::NextStep;
use crate::metrics::{MetricsFormat, metrics_text};
use crate::request::Request;
use crate::site::Site;

/// Sends the metrics.
pub(super) fn serve(
    answer: &mut Answer,
    request: &Request,
    site: &Site,
    ctx: &StepCtx<'_>,
) -> NextStep {
    if !matches!(request.method, Method::Get | Method::Head) {
        return NextStep::Fail(405);
    }
    let Some(own) = &request.site else { return NextStep::Fail(500) };
    let format = MetricsFormat::wanted(request.head().fields.all(Name::Accept));
    let text = match request.is_dry() {
        true => Vec::new(),
        false => metrics_text(own, ctx.counters, ctx.now, format),
    };
    let media = format.media_type();
    // Compression depends on the type without its parameters.
    let plain = media.split(';').next().unwrap_or(media).as_bytes();
    let settings = &site.location(request.location).settings;
    let mut kind = crate::media_types::kind(settings, &plain.into());
    (kind.value, kind.charset_varies) = (media.as_bytes().into(), false);
    let next = answer.send_text(request, &kind, 200, Bytes::from(text), site, ctx);
    if matches!(next, NextStep::Respond) {
        answer.head.fields.set(Name::CacheControl, b"no-store");
        answer.head.fields.push(Name::Vary, b"Accept");
    }
    next
}
