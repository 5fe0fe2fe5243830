//! `health`: liveness and readiness probes.

use std::sync::Arc;

use bolide_conf::model::HealthProbe;
use bolide_http::{Method, Name};
use bytes::Bytes;

use crate::answer::Answer;
use crate::ctx::StepCtx;
use crate::exchange::NextStep;
use crate::request::Request;
use crate::site::Site;

/// Answers a probe.
pub(super) fn serve(
    answer: &mut Answer,
    request: &Request,
    probe: HealthProbe,
    site: &Site,
    ctx: &StepCtx<'_>,
) -> NextStep {
    if !matches!(request.method, Method::Get | Method::Head) {
        return NextStep::Fail(405);
    }
    let (status, text): (u16, &'static [u8]) = match probe {
        HealthProbe::Alive => (200, b"alive\n"),
        HealthProbe::Ready if site.figures().is_leaving() => (503, b"leaving\n"),
        HealthProbe::Ready => (200, b"ready\n"),
    };
    let settings = &site.location(request.location).settings;
    let kind = crate::media_types::kind(settings, &Arc::from(&b"text/plain"[..]));
    let next = answer.send_text(request, &kind, status, Bytes::from_static(text), site, ctx);
    if matches!(next, NextStep::Respond) {
        answer.head.fields.set(Name::CacheControl, b"no-store");
    }
    next
}
