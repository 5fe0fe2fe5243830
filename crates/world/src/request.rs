//! The requests of clients.

use bolide_http::{Method, Name, RequestHead};

/// A request head as HTTP/1.1 framing would leave it.
#[must_use]
pub fn request(
    method: Method,
    host: &str,
    target: &str,
    fields: &[(&str, &str)],
) -> Box<RequestHead> {
    let mut head = Box::<RequestHead>::default();
    head.method = method;
    let name = match method {
        Method::Get => "GET",
        Method::Head => "HEAD",
        Method::Post => "POST",
        Method::Put => "PUT",
        Method::Delete => "DELETE",
        Method::Options => "OPTIONS",
        Method::Patch => "PATCH",
        Method::Trace => "TRACE",
        Method::Connect => "CONNECT",
        Method::Purge => "PURGE",
        Method::Other => "BREW",
    };
    head.method_text = name.as_bytes().to_vec();
    head.target = target.as_bytes().to_vec();
    head.authority = host.as_bytes().to_vec();
    head.line = format!("{name} {target} HTTP/1.1").into_bytes();
    head.fields.push(Name::Host, host.as_bytes());
    for (name, value) in fields {
        head.fields.push_text(name.as_bytes(), value.as_bytes());
    }
    head.wire_size = 100;
    head
}
