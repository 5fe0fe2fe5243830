//! The request to an HTTP upstream: the server that an address with variables names, the request
//! line, the fields.
//!
//! Easiest to break: a field of the configuration takes precedence over the client's, even if its
//! value is empty; and only the framing layer writes framing fields.

mod plan;

use std::sync::Arc;

use bolide_conf::model::{Protocol, ProxyUrl, ProxyVersion};
use bolide_http::escape::{UriPart, push_uri};
use bolide_http::trace_context::TRACEPARENT;
use bolide_http::{
    Hops, Http2Head, Method, Name, RequestBody, Scheme, UpstreamHead, UpstreamMessage,
    UpstreamVersion,
};
use bolide_upstream::request::PassTarget;

use crate::caching::fronts::is_trusted;
use crate::content::target::{self, NoTarget};
use crate::ctx::StepCtx;
use crate::exchange::NextStep;
use crate::request::Request;
use crate::site::{CompiledLocation, Site};
use crate::vars::{VariableScope, trace};

pub(crate) use plan::ProxyPlan;

const UNSENDABLE: &[u8] =
    b"the request to the upstream would have a line end or a zero byte in its target";

/// Refuses a request before a server is chosen: the client made it so, and no server is to blame.
pub(crate) fn refuse_unsendable(request: &Request, site: &Site, ctx: &mut StepCtx<'_>) -> NextStep {
    request.log_error(site, ctx, |out| out.extend_from_slice(UNSENDABLE));
    NextStep::Fail(502)
}

/// Fields that this server writes itself, besides connection-specific ones.
const OURS: [&[u8]; 3] = [b"host", b"expect", b"content-length"];
/// Framing fields.
const FRAMING: [&[u8]; 2] = [b"content-length", b"transfer-encoding"];
/// The conditional fields: they describe the client's copy, so that a fetch for the cache has none.
const CONDITIONS: [&[u8]; 6] = [
    b"if-modified-since",
    b"if-unmodified-since",
    b"if-none-match",
    b"if-match",
    b"range",
    b"if-range",
];

/// How the upstream request differs from the client's.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asking<'a> {
    /// Whether the response may be stored, so that it must be complete.
    pub(crate) is_to_keep: bool,
    /// Whether HEAD becomes GET.
    pub(crate) as_get: bool,
    /// The stored object to revalidate.
    pub(crate) old: Option<&'a bolide_cache::Object>,
    /// The length of the body; none if unknown.
    pub(crate) body_len: Option<u64>,
}

/// Parses an address that variables produced.
///
/// # Errors
///
/// The address is invalid.
pub(crate) fn read_url(text: &[u8]) -> Result<ProxyUrl, NoTarget> {
    let no_url = || NoTarget::invalid("invalid URL prefix in", text);
    let cut = bolide_conf::proxy_url::parse(text).map_err(|_| no_url())?;
    if cut.rest.is_empty() {
        return Err(no_url());
    }
    if cut.origin.is_empty() {
        return Err(NoTarget::invalid("no host in upstream", cut.rest));
    }
    if !matches!(std::str::from_utf8(cut.port).map(str::parse::<u16>), Ok(Ok(1..)))
        && !cut.port.is_empty()
    {
        return Err(NoTarget::invalid("invalid port in upstream", cut.rest));
    }
    Ok(ProxyUrl {
        secure: cut.secure,
        host: cut.host.into(),
        port: cut.port.into(),
        uri: cut.uri.map(Arc::from),
        replaces: Arc::default(),
        written: text.into(),
    })
}

/// The URL of the location's upstream where the protocol has URLs that say whether there is TLS.
pub(crate) fn pass_url<'a>(scope: &'a VariableScope<'_>) -> Option<&'a ProxyUrl> {
    let pass = scope.location().pass.as_ref().filter(|pass| pass.conf.protocol.has_tls())?;
    pass.conf.url.as_deref().or(scope.request.proxy_url.as_deref())
}

/// The server of an address that [`read_url`] has parsed.
///
/// # Errors
///
/// It names no server.
pub(crate) fn target(
    url: &ProxyUrl,
    location: &CompiledLocation,
    site: &Site,
) -> Result<PassTarget, NoTarget> {
    let Ok(cut) = bolide_conf::proxy_url::parse(&url.written) else {
        return Err(NoTarget::invalid("invalid URL prefix in", &url.written));
    };
    let usual = if cut.secure { 443 } else { 80 };
    target::find(cut.origin, cut.rest, Some(usual), Protocol::Http, location, site)
}

/// Writes the head of the upstream request; none if it cannot be sent.
pub(crate) fn message(
    scope: &VariableScope<'_>,
    plan: &ProxyPlan,
    url: &ProxyUrl,
    asking: Asking<'_>,
) -> Option<UpstreamMessage> {
    let head = write(scope, plan, url, asking);
    if !plan.speaks_http2() {
        return head.has_encodable_line().then(|| head.into());
    }
    let scheme = if url.secure { Scheme::Https } else { Scheme::Http };
    // As in nginx: who sets `Host` gets that field.
    let authority = if plan.decides(b"host") { &[] } else { &*url.host };
    let head = Http2Head::of(&head, scheme, authority);
    head.is_encodable().then(|| head.into())
}

fn write(
    scope: &VariableScope<'_>,
    plan: &ProxyPlan,
    url: &ProxyUrl,
    asking: Asking<'_>,
) -> UpstreamHead {
    let version = match plan.settings.version {
        ProxyVersion::V10 => UpstreamVersion::V10,
        ProxyVersion::V11 | ProxyVersion::V2 => UpstreamVersion::V11,
    };
    let method = |out: &mut Vec<u8>| push_method(scope, plan, asking.as_get, out);
    let mut head = UpstreamHead::new(version, method, |out| push_target(scope, url, out));
    push_fields(scope, plan, url, asking, &mut head);
    head
}

fn push_method(scope: &VariableScope<'_>, plan: &ProxyPlan, as_get: bool, out: &mut Vec<u8>) {
    if as_get {
        return out.extend_from_slice(b"GET");
    }
    let start = out.len();
    if let Some(method) = &plan.settings.method {
        scope.expand(method, out);
    }
    if out.len() == start {
        out.extend_from_slice(method_of(scope));
    }
}

/// Appends the fields: those of the configuration, ours, then the client's.
fn push_fields(
    scope: &VariableScope<'_>,
    plan: &ProxyPlan,
    url: &ProxyUrl,
    asking: Asking<'_>,
    out: &mut UpstreamHead,
) {
    let mut value = Vec::new();
    let mut declared_len = None;
    for field in plan.settings.fields.iter() {
        value.clear();
        scope.expand(&field.value, &mut value);
        if is_any(&FRAMING, &field.name) {
            if field.name.eq_ignore_ascii_case(b"content-length") {
                declared_len = Some(value.clone());
            }
            continue;
        }
        if !value.is_empty() && !field.name.is_empty() {
            value.retain(|byte| !matches!(byte, b'\r' | b'\n' | 0));
            out.push(&field.name, &value);
        }
    }
    if !plan.decides(b"host") {
        out.push(b"Host", &url.host);
    }
    write_framing(scope, plan, asking.body_len, declared_len.as_deref(), out);
    if let Some(old) = asking.old {
        write_conditions(old, out);
    }
    if scope.location().settings.origin.pass_request_headers {
        push_clients(scope, |name| plan.decides(name), asking.is_to_keep, out);
    }
}

/// Appends the client's fields, without those that `decides` is true for, and without conditions
/// where the response is to be kept.
pub(super) fn push_clients(
    scope: &VariableScope<'_>,
    decides: impl Fn(&[u8]) -> bool,
    is_to_keep: bool,
    out: &mut UpstreamHead,
) {
    let request = scope.request;
    let is_believed = scope.site.store().is_none()
        || is_trusted(&scope.location().settings.cache.page, scope.conn);
    let hops = Hops::of(&request.head().fields);
    let injects = request.tracing.injects();
    if injects && !decides(TRACEPARENT) {
        out.push_writing(
            |name| name.extend_from_slice(TRACEPARENT),
            |value| trace::push_context(scope, value),
        );
    }
    for field in request.head().fields.iter() {
        let is = |names: &[&[u8]]| is_any(names, field.text);
        let is_forged = !is_believed && bolide_cache::rules::is_forged(field.text);
        let is_kept_back = hops.has(field)
            || is(&OURS)
            || decides(field.text)
            || is_forged
            || is_to_keep && is(&CONDITIONS)
            || injects && trace::replaces_field(scope, field.text);
        if !is_kept_back {
            out.push(field.text, field.value);
        }
    }
}

/// Writes the framing fields. `declared` is the configuration's `Content-Length`: it can omit the
/// length of an absent body and nothing else, because a wrong length would turn the rest of the
/// body into another request.
fn write_framing(
    scope: &VariableScope<'_>,
    plan: &ProxyPlan,
    len: Option<u64>,
    declared: Option<&[u8]>,
    out: &mut UpstreamHead,
) {
    let Some(len) = len else { return out.push(b"Transfer-Encoding", b"chunked") };
    // An empty body that the client declares, even a chunked one, is declared upstream as well.
    let head = scope.request.head();
    let is_asked = head.body != RequestBody::None || head.fields.get(Name::ContentLength).is_some();
    let is_sent = match declared {
        _ if len > 0 => true,
        Some(declared) => declared == b"0",
        None => is_asked || plan.settings.body.is_some(),
    };
    if is_sent {
        out.push_writing(
            |out| out.extend_from_slice(b"Content-Length"),
            |out| bolide_http::digits::push_decimal(out, len),
        );
    }
}

fn is_any(names: &[&[u8]], text: &[u8]) -> bool {
    names.iter().any(|name| name.eq_ignore_ascii_case(text))
}

/// Makes the request conditional on the validators of `old` (RFC 9111 §4.3.1).
fn write_conditions(old: &bolide_cache::Object, out: &mut UpstreamHead) {
    if let Some(at) = old.last_modified() {
        out.push(b"If-Modified-Since", &bolide_http::date::http_date(at as i64));
    }
    if let Some(etag) = old.etag() {
        out.push(b"If-None-Match", etag);
    }
}

pub(super) fn method_of<'a>(scope: &VariableScope<'a>) -> &'a [u8] {
    let (request, head) = (scope.request, scope.request.head());
    match request.method {
        Method::Get if head.method != Method::Get => b"GET",
        // For these, the method text is the client's.
        _ if request.role.auth().is_some()
            || request.role.part().is_some()
            || request.role.slice().is_some() =>
        {
            b"GET"
        }
        _ => &head.method_text,
    }
}

/// Writes path and query, as nginx chooses them.
pub(crate) fn push_target(scope: &VariableScope<'_>, url: &ProxyUrl, out: &mut Vec<u8>) {
    let request = scope.request;
    let from = match &url.uri {
        // Variables gave the whole URI.
        Some(uri) if scope.location().pass.as_ref().is_some_and(|pass| pass.conf.url.is_none()) => {
            return push_rooted(uri, out);
        }
        Some(uri) if !request.rewritten_here => {
            push_rooted(uri, out);
            url.replaces.len()
        }
        _ if scope.request.is_only_tried || is_as_asked(scope) => {
            return out.extend_from_slice(&request.head().target);
        }
        _ => 0,
    };
    let rest = request.uri.get(from..).unwrap_or_default();
    if request.internal || is_quoted(scope) || rest.iter().any(|byte| *byte <= b' ') {
        push_uri(out, rest, UriPart::Path);
    } else {
        out.extend_from_slice(rest);
    }
    if !request.args().is_empty() {
        out.push(b'?');
        out.extend_from_slice(request.args());
    }
}

/// A URI that is only a query belongs to the path `/`.
fn push_rooted(uri: &[u8], out: &mut Vec<u8>) {
    if uri.first() == Some(&b'?') {
        out.push(b'/');
    }
    out.extend_from_slice(uri);
}

/// Whether the path was decoded; as in nginx, nothing is escaped otherwise.
fn is_quoted(scope: &VariableScope<'_>) -> bool {
    let target = &scope.request.head().target;
    let path = target.split(|byte| *byte == b'?').next().unwrap_or_default();
    memchr::memchr(b'%', path).is_some()
}

/// Whether path and query are still the client's own.
pub(crate) fn is_as_asked(scope: &VariableScope<'_>) -> bool {
    let request = scope.request;
    // As in nginx, a slice has the URI of its parent.
    if request.is_rewritten || request.role.is_subrequest() && request.role.slice().is_none() {
        return false;
    }
    let target = &request.head().target;
    let merge = scope.site.server(request.server).merge_slashes;
    let mut decoded = Vec::new();
    bolide_http::uri::normalise(target, merge, &mut decoded).is_ok_and(|parts| {
        parts.path(target, &decoded) == request.uri && parts.args(target) == request.args()
    })
}
