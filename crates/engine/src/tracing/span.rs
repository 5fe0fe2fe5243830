//! The attributes of a request's span: nginx's, and those of the configuration.

use bolide_conf::vars::Var;
use bolide_http::RequestBody;
use bolide_http::trace_context::TRACESTATE;

use super::otlp::{AttributeValue, SpanFacts, SpanWriter};
use crate::connection::ClientAddress;
use crate::ctx::StepCtx;
use crate::vars::VariableScope;
use crate::vars::trace::{TraceIds, trace_ids};

/// Queues the span of a finished request for export.
#[cold]
pub(crate) fn finish(scope: &VariableScope<'_>, ctx: &StepCtx<'_>) {
    let Some(queue) = scope.site.spans() else { return };
    let span = of(scope);
    queue.push(ctx.counters.number(), &span);
}

fn of(scope: &VariableScope<'_>) -> SpanWriter {
    let VariableScope { request, answer, site, .. } = scope;
    let otel = &scope.location().settings.otel;
    let conf = site.http().and_then(|http| http.locations.get(request.location as usize));
    let route = conf.map_or(&b""[..], |conf| &conf.name);
    let mut text = Vec::new();
    match &otel.span_name {
        Some(name) => scope.expand(name, &mut text),
        None => text.extend_from_slice(route),
    }
    if text.is_empty() {
        text.extend_from_slice(&request.head().method_text);
    }
    let TraceIds { trace, span, parent } = trace_ids(scope);
    let fields = &request.head().fields;
    let state = match parent {
        Some(_) => fields.all_text(TRACESTATE).collect::<Vec<_>>().join(&b","[..]),
        None => Vec::new(),
    };
    let started = request.started.unix_millis.saturating_mul(1_000_000);
    let took = scope.now.mono.since(request.started.mono).as_nanos() as u64;
    let status = answer.logged_status();
    let mut made = SpanWriter::new(&SpanFacts {
        trace,
        span,
        parent: parent.map(|parent| parent.span),
        state: &state,
        name: &text,
        started,
        ended: started.saturating_add(took),
        is_error: status >= 500,
    });
    push_default(scope, route, status, &mut made);
    for (name, value) in otel.span_attrs.iter() {
        text.clear();
        scope.expand(value, &mut text);
        made.attribute(name, AttributeValue::Text(&text));
    }
    made
}

/// The attributes that nginx's module gives to every span.
fn push_default(scope: &VariableScope<'_>, route: &[u8], status: u16, made: &mut SpanWriter) {
    let VariableScope { request, answer, conn, .. } = scope;
    let head = request.head();
    let mut text = Vec::new();
    let mut put = |name: &str, var: &Var| {
        text.clear();
        scope.write(var, &mut text);
        if !text.is_empty() {
            made.attribute(name, AttributeValue::Text(&text));
        }
    };
    put("http.method", &Var::RequestMethod);
    put("http.target", &Var::RequestUri);
    put("http.scheme", &Var::Scheme);
    put("net.host.name", &Var::Host);
    put("net.sock.peer.addr", &Var::RemoteAddr);
    for (name, text) in [
        ("http.route", route),
        ("http.flavor", head.version.text().trim_start_matches("HTTP/").as_bytes()),
        ("http.user_agent", head.fields.get_text(b"user-agent").unwrap_or_default()),
    ] {
        if !text.is_empty() {
            made.attribute(name, AttributeValue::Text(text));
        }
    }
    let asked = match head.body {
        RequestBody::Length(len) => len,
        RequestBody::Unknown => request.body_received,
        RequestBody::None => 0,
    };
    let port = |address: ClientAddress| match address {
        ClientAddress::Inet(address) => u64::from(address.port()),
        ClientAddress::Unix => 0,
    };
    for (name, number) in [
        ("http.request_content_length", asked),
        ("http.response_content_length", answer.body_sent),
        ("http.status_code", u64::from(status)),
        ("net.host.port", port(conn.local)),
        ("net.sock.peer.port", port(scope.client())),
    ] {
        if let Some(number) = i64::try_from(number).ok().filter(|number| *number > 0) {
            made.attribute(name, AttributeValue::Number(number));
        }
    }
}
