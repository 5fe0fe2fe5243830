//! OpenTelemetry: the exporter of spans, and the settings of a location.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::vars::Template;

/// The settings of the `http` block.
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
    /// `interval`: the longest time before a span is sent.
    pub interval: Duration,
    /// `batch_size`: the most spans of one worker in an export request.
    pub batch_size: u32,
    /// `batch_count`: the most waiting batches of one worker.
    pub batch_count: u32,
    /// `header`: names and values.
    pub headers: Vec<(String, String)>,
    /// `trusted_certificate`
    pub trusted_certificate: Option<PathBuf>,
}

/// The destination of spans.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OtelEndpoint {
    /// Whether over TLS.
    pub secure: bool,
    /// A name or an address; IPv6 without brackets. Empty if none is configured yet.
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
    /// Whether a request needs processing for traces when it enters the location.
    #[must_use]
    pub const fn is_used(&self) -> bool {
        self.trace.is_some() || !matches!(self.context, OtelContext::Ignore)
    }
}

/// `otel_trace_context`: the handling of `traceparent` and `tracestate`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OtelContext {
    /// They are passed on unchanged.
    #[default]
    Ignore,
    /// The span becomes a child of the client's context.
    Extract,
    /// Upstream servers get the context of this server.
    Inject,
    /// Both.
    Propagate,
}

impl OtelContext {
    /// Whether the client's context is used.
    #[must_use]
    pub const fn extracts(self) -> bool {
        matches!(self, Self::Extract | Self::Propagate)
    }

    /// Whether upstream servers get the context of this server.
    #[must_use]
    pub const fn injects(self) -> bool {
        matches!(self, Self::Inject | Self::Propagate)
    }
}
