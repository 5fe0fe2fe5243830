//! What is decided of a request's trace; refuses to know how.

use bolide_conf::model::OtelContext;

/// What was decided of a request.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TraceDecision {
    /// Whether anything was.
    pub(super) is_made: bool,
    /// Whether the request has a span.
    pub(super) is_sampled: bool,
    /// What becomes of the context.
    pub(super) context: OtelContext,
}

impl TraceDecision {
    /// Whether the request has a span.
    pub(crate) const fn is_sampled(self) -> bool {
        self.is_sampled
    }

    /// What becomes of the context, if that is decided.
    pub(crate) fn context(self) -> Option<OtelContext> {
        self.is_made.then_some(self.context)
    }

    /// Whether upstream servers are told of its span.
    pub(crate) const fn injects(self) -> bool {
        self.is_made && self.context.injects()
    }
}
