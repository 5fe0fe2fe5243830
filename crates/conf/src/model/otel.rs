//! Traces of OpenTelemetry: where spans go, and what a location says about them.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::vars::Template;

/// What the `http` block says of traces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Otel {
    /// `otel_exporter`
    pub exporter: Option<OtelExporter>,
    /// `otel_service_name`
    pub service_name: String,
    /// `otel_resource_attr`: names and values.
    pub resource: Vec<(String, String)>,
}

impl Default for Otel {
    fn default() -> Self {
        let service_name = "unknown_service:nginx".to_owned();
        Self { exporter: None, service_name, resource: Vec::new() }
    }
}

/// An `otel_exporter` block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OtelExporter {
    /// `endpoint`
    pub endpoint: OtelEndpoint,
    /// `interval`: the longest that a span waits.
    pub interval: Duration,
    /// `batch_size`: spans of one worker in a request.
    pub batch_size: u32,
    /// `batch_count`: batches of one worker that may wait.
    pub batch_count: u32,
    /// `header`: names and values.
    pub headers: Vec<(String, String)>,
    /// `trusted_certificate`
    pub trusted_certificate: Option<PathBuf>,
}

/// Where spans are sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OtelEndpoint {
    /// Whether over TLS.
    pub secure: bool,
    /// A name or an address; without the brackets of IPv6. Empty while none was written.
    pub host: String,
    /// The port.
    pub port: u16,
    /// The path, with its slash.
    pub path: String,
}

/// `otel_trace*` and `otel_span_*` of a location.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OtelSettings {
    /// `otel_trace`: a request is traced if this is `on` or `1`; none is `off`.
    pub trace: Option<Template>,
    /// `otel_trace_context`
    pub context: OtelContext,
    /// `otel_span_name`
    pub span_name: Option<Template>,
    /// `otel_span_attr`
    pub span_attrs: Arc<Vec<(Arc<str>, Template)>>,
}

impl OtelSettings {
    /// Whether a request has to be looked at where it enters the location.
    #[must_use]
    pub const fn is_used(&self) -> bool {
        self.trace.is_some() || !matches!(self.context, OtelContext::Ignore)
    }
}

/// `otel_trace_context`: what becomes of `traceparent` and `tracestate`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OtelContext {
    /// They pass as they are.
    #[default]
    Ignore,
    /// The client's context is taken up.
    Extract,
    /// Upstream servers get a context of this server.
    Inject,
    /// Both.
    Propagate,
}

impl OtelContext {
    /// Whether the client's context is taken up.
    #[must_use]
    pub const fn extracts(self) -> bool {
        matches!(self, Self::Extract | Self::Propagate)
    }

    /// Whether upstream servers get a context of this server.
    #[must_use]
    pub const fn injects(self) -> bool {
        matches!(self, Self::Inject | Self::Propagate)
    }
}
