//! The trace ids of a request, in variables and for upstream servers.
//!
//! They are derived from the request's own id and from the client's fields, so that they are known
//! at any time without being stored.

use bolide_conf::vars::Var;
use bolide_http::trace_context::{TRACEPARENT, TRACESTATE, TraceParent, push_digits};

use super::{VariableScope, VariableValue};

/// The trace ids of a request, and the client's context.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TraceIds {
    pub(crate) trace: [u8; 16],
    pub(crate) span: [u8; 8],
    pub(crate) parent: Option<TraceParent>,
}

impl TraceIds {
    fn new(id: [u64; 2], parent: Option<TraceParent>) -> Self {
        // Zero is not a valid id.
        let own = (u128::from(id[0]) << 64 | u128::from(id[1])).max(1);
        let trace = parent.map_or(own.to_be_bytes(), |parent| parent.trace);
        let span = mixed(id[0] ^ id[1].rotate_left(32)).max(1).to_be_bytes();
        Self { trace, span, parent }
    }
}

/// The finalizer of SplitMix64: a permutation whose output does not reveal its input.
const fn mixed(word: u64) -> u64 {
    let word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ word >> 31
}

impl VariableScope<'_> {
    /// Appends a variable about traces.
    pub(super) fn write_trace(&self, var: &Var, out: &mut Vec<u8>) -> Option<VariableValue> {
        let ids = || trace_ids(self);
        match var {
            Var::OtelTraceId => push_digits(out, &ids().trace),
            Var::OtelSpanId => push_digits(out, &ids().span),
            Var::OtelParentId => match ids().parent {
                Some(parent) => push_digits(out, &parent.span),
                None => return Some(VariableValue::No),
            },
            Var::OtelParentSampled => {
                let is_sampled = ids().parent.is_some_and(|parent| parent.is_sampled);
                out.push(if is_sampled { b'1' } else { b'0' });
            }
            Var::HttpTraceparent if self.request.tracing.injects() => push_traceparent(self, out),
            Var::HttpTracestate if drops_tracestate(self) => return Some(VariableValue::No),
            Var::HttpTraceparent => return Some(write_all(self, TRACEPARENT, out)),
            Var::HttpTracestate => return Some(write_all(self, TRACESTATE, out)),
            _ => return None,
        }
        Some(VariableValue::Yes)
    }
}

/// The ids of a request's span, whether it is traced or not.
pub(crate) fn trace_ids(scope: &VariableScope<'_>) -> TraceIds {
    let settings = &scope.location().settings.otel;
    let context = scope.request.tracing.context().unwrap_or(settings.context);
    let fields = &scope.request.head().fields;
    let parent = context.extracts().then(|| TraceParent::of(fields)).flatten();
    TraceIds::new(scope.request.id, parent)
}

fn write_all(scope: &VariableScope<'_>, name: &[u8], out: &mut Vec<u8>) -> VariableValue {
    let mut found = VariableValue::No;
    for value in scope.request.head().fields.all_text(name) {
        if found == VariableValue::Yes {
            out.extend_from_slice(b", ");
        }
        found = VariableValue::Yes;
        out.extend_from_slice(value);
    }
    found
}

/// Appends the `traceparent` for upstream servers.
fn push_traceparent(scope: &VariableScope<'_>, out: &mut Vec<u8>) {
    let TraceIds { trace, span, .. } = trace_ids(scope);
    TraceParent { trace, span, is_sampled: scope.request.tracing.is_sampled() }.push(out);
}

/// Whether the client's `tracestate` belongs to a context that is not propagated.
fn drops_tracestate(scope: &VariableScope<'_>) -> bool {
    scope.request.tracing.injects() && trace_ids(scope).parent.is_none()
}

/// Whether a field of the client is replaced by ours.
#[cold]
pub(crate) fn replaces_field(scope: &VariableScope<'_>, name: &[u8]) -> bool {
    name.eq_ignore_ascii_case(TRACEPARENT)
        || name.eq_ignore_ascii_case(TRACESTATE) && drops_tracestate(scope)
}

/// Writes the trace context for upstream servers.
pub(crate) fn push_context(scope: &VariableScope<'_>, out: &mut Vec<u8>) {
    debug_assert!(scope.request.tracing.injects(), "what is not asked for is not written");
    push_traceparent(scope, out);
}

#[cfg(test)]
mod tests {
    use super::TraceIds;

    #[test]
    fn ids_are_never_zero_and_a_trace_is_named_as_its_request() {
        let ids = TraceIds::new([0, 0], None);
        assert!(ids.trace != [0; 16] && ids.span != [0; 8]);
        let ids = TraceIds::new([1, 2], None);
        assert_eq!(u128::from_be_bytes(ids.trace), 1 << 64 | 2);
        assert_ne!(ids.span, TraceIds::new([1, 3], None).span);
    }
}
