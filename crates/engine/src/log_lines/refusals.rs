//! Error-log lines about requests that are refused before they have a location, in nginx's words.
//!
//! Owns the activity that a line names, and its level.

use bolide_conf::model::LogLevel;
use bolide_http::HttpVersion;

use super::{LogFields, error_within};
use crate::ctx::{RequestRefusal, StepCtx};
use crate::request::Request;
use crate::site::Site;

/// What nginx was reading when it refused a request.
pub(crate) fn reading(request: &Request, refusal: RequestRefusal) -> &'static str {
    let line = ["invalid method", "URI", "version", "invalid request", "URL"];
    let head = request.head();
    // A client that disconnected within its request line, or sent it too late.
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

/// Errors of clients are logged at `info`, as in nginx.
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

/// nginx's level of a message.
fn level_of(reason: &str) -> LogLevel {
    if reason.contains("chunked body") { LogLevel::Error } else { LogLevel::Info }
}
