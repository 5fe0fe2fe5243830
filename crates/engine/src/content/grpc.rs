//! The request to a gRPC upstream: pseudo-header fields, those of the configuration, the client's.
//!
//! Easiest to break: a field of the configuration takes precedence over the client's, even if its
//! value is empty; and only the framing layer decides about lengths.

use bolide_conf::model::ProxyUrl;
use bolide_http::escape::{UriPart, push_uri};
use bolide_http::structured::is_token;
use bolide_http::{Http2Head, Name, RequestBody, Scheme, UpstreamHead, UpstreamVersion};

use crate::content::proxied;
use crate::vars::VariableScope;

/// The address that variables produced. As in nginx, a scheme alone is none.
pub(crate) fn read_url(text: &[u8]) -> ProxyUrl {
    let url = bolide_conf::grpc_url::read(text);
    match url.written.is_empty() {
        true => ProxyUrl { written: text.into(), ..url },
        false => url,
    }
}

/// Writes the head of the upstream request, whose body has this length, if it is known.
pub(crate) fn write(scope: &VariableScope<'_>, url: &ProxyUrl, body_len: Option<u64>) -> Http2Head {
    let method = |out: &mut Vec<u8>| out.extend_from_slice(proxied::method_of(scope));
    let mut head = UpstreamHead::new(UpstreamVersion::V2, method, |out| push_path(scope, out));
    push_fields(scope, body_len, &mut head);
    let scheme = if url.secure { Scheme::Https } else { Scheme::Http };
    // As in nginx: who sets `Host` gets that field.
    let authority = if decides(scope, b"host") { Vec::new() } else { url.host.to_vec() };
    Http2Head { scheme, authority, head }
}

/// Whether the configuration has this field.
fn decides(scope: &VariableScope<'_>, name: &[u8]) -> bool {
    let fields = &scope.location().settings.origin.proxy.fields;
    fields.iter().any(|field| field.name.eq_ignore_ascii_case(name))
}

/// The client's target, or the rewritten one; as in nginx, that is always escaped.
fn push_path(scope: &VariableScope<'_>, out: &mut Vec<u8>) {
    let request = scope.request;
    if request.is_only_tried || proxied::is_as_asked(scope) {
        return out.extend_from_slice(&request.head().target);
    }
    push_uri(out, &request.uri, UriPart::Path);
    if !request.args().is_empty() {
        out.push(b'?');
        out.extend_from_slice(request.args());
    }
}

fn push_fields(scope: &VariableScope<'_>, body_len: Option<u64>, out: &mut UpstreamHead) {
    let mut value = Vec::new();
    let mut omits_length = false;
    for field in scope.location().settings.origin.proxy.fields.iter() {
        value.clear();
        scope.expand(&field.value, &mut value);
        value.retain(|byte| !matches!(byte, b'\r' | b'\n' | 0));
        if field.name.eq_ignore_ascii_case(b"content-length") {
            // A wrong length would make the request malformed (RFC 9113 §8.1.1).
            omits_length = value.is_empty();
        } else if !value.is_empty() {
            out.push(&field.name.to_ascii_lowercase(), &value);
        }
    }
    let head = scope.request.head();
    let is_declared =
        head.body != RequestBody::None || head.fields.get(Name::ContentLength).is_some();
    if let Some(len) = body_len.filter(|_| is_declared && !omits_length) {
        out.push_writing(
            |out| out.extend_from_slice(b"content-length"),
            |out| bolide_http::digits::push_decimal(out, len),
        );
    }
    let is_trailers = |word: &[u8]| {
        let coding = word.split(|byte| *byte == b';').next().unwrap_or_default();
        coding.trim_ascii().eq_ignore_ascii_case(b"trailers")
    };
    let mut codings = head.fields.all(Name::Te).flat_map(|value| value.split(|byte| *byte == b','));
    if !decides(scope, b"te") && codings.any(is_trailers) {
        out.push(b"te", b"trailers");
    }
    let is_kept_back = |name: &[u8]| decides(scope, name) || !name.iter().all(|b| is_token(*b));
    proxied::push_clients(scope, is_kept_back, false, out);
}
