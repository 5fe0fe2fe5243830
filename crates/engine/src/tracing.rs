//! OpenTelemetry traces: which requests have a span, its attributes, and its way out of the worker.
//!
//! Easiest to break: the decision is made once, where the request enters its first location with
//! `otel_trace`, and redirects do not change it.

pub(crate) mod decision;
pub mod otlp;
pub mod queue;
pub(crate) mod span;

use bolide_conf::model::OtelContext;

use crate::answer::Answer;
use crate::ctx::StepCtx;
use crate::request::Request;
use crate::site::Site;
use crate::tracing::decision::TraceDecision;
use crate::vars::VariableScope;

/// Decides about a request that enters a location with `otel_trace`.
#[cold]
pub(crate) fn decide(request: &mut Request, answer: &Answer, site: &Site, ctx: &StepCtx<'_>) {
    let otel = &site.location(request.location).settings.otel;
    if request.tracing.is_made || !otel.is_used() {
        return;
    }
    let is_sampled = request.trace.is_none()
        && otel.trace.as_ref().is_some_and(|trace| {
            let mut value = Vec::new();
            VariableScope::new(request, answer, site, ctx).expand(trace, &mut value);
            value == b"on" || value == b"1"
        });
    let context = otel.context;
    let is_made = is_sampled || context != OtelContext::Ignore;
    request.tracing = TraceDecision { is_made, is_sampled, context };
}
