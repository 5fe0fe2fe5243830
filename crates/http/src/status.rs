//! Status codes and the reason phrases that nginx's users expect.

/// The reason phrase of `code` on an HTTP/1.1 status line; empty for codes without one.
#[must_use]
pub const fn reason(code: u16) -> &'static str {
    match code {
        100 => "Continue",
        101 => "Switching Protocols",
        103 => "Early Hints",
        200 => "OK",
        201 => "Created",
        202 => "Accepted",
        204 => "No Content",
        206 => "Partial Content",
        301 => "Moved Permanently",
        302 => "Moved Temporarily",
        303 => "See Other",
        304 => "Not Modified",
        307 => "Temporary Redirect",
        308 => "Permanent Redirect",
        400 => "Bad Request",
        401 => "Unauthorized",
        402 => "Payment Required",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Not Allowed",
        406 => "Not Acceptable",
        407 => "Proxy Authentication Required",
        408 => "Request Time-out",
        409 => "Conflict",
        410 => "Gone",
        411 => "Length Required",
        412 => "Precondition Failed",
        413 => "Request Entity Too Large",
        414 => "Request-URI Too Large",
        415 => "Unsupported Media Type",
        416 => "Requested Range Not Satisfiable",
        421 => "Misdirected Request",
        429 => "Too Many Requests",
        500 => "Internal Server Error",
        501 => "Not Implemented",
        502 => "Bad Gateway",
        503 => "Service Temporarily Unavailable",
        504 => "Gateway Time-out",
        505 => "HTTP Version Not Supported",
        507 => "Insufficient Storage",
        _ => "",
    }
}

/// Whether a response with `code` is the last one to its request. Other statuses below 200 announce
/// it (RFC 9110 §15.2); 101 ends HTTP on the connection.
#[must_use]
pub const fn ends_exchange(code: u16) -> bool {
    matches!(code, 101 | 200..=999)
}

/// Whether a response with `code` never has a body (RFC 9110 §6.4.1).
#[must_use]
pub const fn is_bodiless(code: u16) -> bool {
    matches!(code, 100..=199 | 204 | 304)
}
