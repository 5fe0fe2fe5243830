//! Error-log lines about requests that are refused before a location has them, in nginx's words.
//!
//! Owns which part of the request a line says was being read, and its level.

use bolide_conf::model::LogLevel;
use bolide_http::HttpVersion;

use super::{LogFields, error_within};
use crate::ctx::{RequestRefusal, StepCtx};
use crate::request::Request;
use crate::site::Site;

/// What was being read when a request was refused, as nginx's lines say it.
pub(crate) fn reading(request: &Request, refusal: RequestRefusal) -> &'static str {
    let line = ["invalid method", "URI", "version", "invalid request", "URL"];
    let head = request.head();
    // A client that left within its first line, or was late with it.
    let is_cut = matches!(refusal.status, 408 | 499) && head.method_text.is_empty();
    let has_line = !(head.line.is_empty() || is_cut) || head.version >= HttpVersion::Http2;
    if line.iter().any(|word| refusal.reason.contains(word)) || !has_line {
        " while reading client request line"
    } else if refusal.reason.contains("body") {
        ""
    } else {
        " while reading client request headers"
    }
}

/// What clients do wrong is logged at `info`, as in nginx.
pub(crate) fn log_refusal(
    request: &Request,
    refusal: RequestRefusal,
    reading: &str,
    site: &Site,
    ctx: &mut StepCtx<'_>,
) {
    let level = level_of(refusal.reason);
    let fields = if reading.ends_with(" line") { LogFields::Unread } else { LogFields::Read };
    error_within(request, (None, fields), site, ctx, level, |out| {
        out.extend_from_slice(refusal.reason.as_bytes());
        out.extend_from_slice(reading.as_bytes());
    });
}

/// How bad nginx thinks it is.
fn level_of(reason: &str) -> LogLevel {
    if reason.contains("chunked body") { LogLevel::Error } else { LogLevel::Info }
}
