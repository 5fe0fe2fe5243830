//! The trace decision of a request, as a value.

use bolide_conf::model::OtelContext;

/// The trace decision of a request.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TraceDecision {
    /// Whether it was made.
    pub(super) is_made: bool,
    /// Whether the request has a span.
    pub(super) is_sampled: bool,
    /// How the trace context is propagated.
    pub(super) context: OtelContext,
}

impl TraceDecision {
    /// Whether the request has a span.
    pub(crate) const fn is_sampled(self) -> bool {
        self.is_sampled
    }

    /// How the trace context is propagated, if that is decided.
    pub(crate) fn context(self) -> Option<OtelContext> {
        self.is_made.then_some(self.context)
    }

    /// Whether upstream servers get its trace context.
    pub(crate) const fn injects(self) -> bool {
        self.is_made && self.context.injects()
    }
}
