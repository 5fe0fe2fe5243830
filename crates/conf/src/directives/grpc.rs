//! `grpc_pass` and its kin: gRPC services, and other upstreams that speak HTTP/2.
//!
//! Requests and responses are not buffered, and trailers are passed on. Nothing is cached.

use std::sync::Arc;

use super::origin::{ignore_headers, next_upstream_words, push_name};
use super::pass::group;
use crate::ast::Node;
use crate::directive::{
    Args, Contexts, DirectiveForm, DirectiveSpec, accepted, flag, list, millis, number, own, value,
};
use crate::grpc_url;
use crate::model::{Handler, Pass, PassTo, Protocol};
use crate::reader::{ConfReader, DUPLICATE, ReadFault, ReadResult, show, size};

const HSL: Contexts = Contexts::HSL;

pub(super) const TABLE: &[DirectiveSpec] = &[
    own("grpc_pass", Contexts::LI, Args::ONE, pass)
        .doc(
            "The gRPC upstream, which speaks HTTP/2: an address, a socket, a group, or a text with \
             variables; over TLS with `grpcs://`.",
            "grpc_pass grpc://127.0.0.1:9000;",
        )
        .takes("[grpc:// | grpcs://]HOST | [grpc:// | grpcs://]NAME | TEXT")
        .without("none"),
    list("grpc_set_header", HSL, Args::TWO, set_header)
        .doc(
            "A header field of upstream requests; an empty value omits it. `Host` takes the place \
             of `:authority`.",
            "grpc_set_header X-Real-IP $remote_addr;",
        )
        .takes("NAME TEXT")
        .without("`:authority` is the upstream as written; all other fields are the client's"),
    value("grpc_bind", HSL, Args::between(1, 2), super::bind::bind)
        .doc(
            "The local address of upstream connections, with a port or without.",
            "grpc_bind 127.0.0.1;",
        )
        .takes("HOST [transparent] | off")
        .default("off"),
    value("grpc_buffer_size", HSL, Args::ONE, |r, node| {
        r.origin().buffer_size = size(node.arg(0))?;
        Ok(())
    })
    .doc(
        "The largest head of a response, and how much of a response waits for the client.",
        "grpc_buffer_size 16k;",
    )
    .takes("SIZE")
    .default("4k"),
    millis("grpc_connect_timeout", HSL, |r| &mut r.origin().connect_timeout)
        .doc("The timeout of a connect to the upstream.", "grpc_connect_timeout 5s;"),
    millis("grpc_send_timeout", HSL, |r| &mut r.origin().send_timeout)
        .doc("The longest pause between two writes to the upstream.", "grpc_send_timeout 60s;"),
    millis("grpc_read_timeout", HSL, |r| &mut r.origin().read_timeout).doc(
        "The longest time between the end of a request and the head of its response, and the \
         longest pause between two reads of the body.",
        "grpc_read_timeout 300s;",
    ),
    list("grpc_next_upstream", HSL, Args::at_least(1), next_upstream)
        .doc(
            "The failures after which another server of the group is tried.",
            "grpc_next_upstream error timeout http_503;",
        )
        .takes(
            "error | timeout | invalid_header | http_500 | http_502 | http_503 | http_504 | \
             http_403 | http_404 | http_429 | non_idempotent | off…",
        )
        .default("error timeout"),
    millis("grpc_next_upstream_timeout", HSL, |r| &mut r.origin().next_upstream_timeout).doc(
        "The time during which further servers are tried; 0 is no limit.",
        "grpc_next_upstream_timeout 10s;",
    ),
    number("grpc_next_upstream_tries", HSL, |r| &mut r.origin().next_upstream_tries)
        .doc("The most servers tried for a request; 0 is no limit.", "grpc_next_upstream_tries 2;"),
    list("grpc_hide_header", HSL, Args::ONE, |r, node| {
        let again = r.again;
        push_name(&mut r.origin().hide_headers, again, node);
        Ok(())
    })
    .doc(
        "A field, or a trailer field, of upstream responses that clients do not get.",
        "grpc_hide_header X-Served-By;",
    )
    .takes("NAME")
    .without("`Date`, `Server`, `X-Accel-…`"),
    list("grpc_pass_header", HSL, Args::ONE, |r, node| {
        let again = r.again;
        push_name(&mut r.origin().pass_headers, again, node);
        Ok(())
    })
    .doc("A hidden field that clients get nevertheless.", "grpc_pass_header Server;")
    .takes("NAME")
    .without("none"),
    list("grpc_ignore_headers", HSL, Args::at_least(1), ignore_headers)
        .doc(
            "Upstream response fields to ignore.",
            "grpc_ignore_headers X-Accel-Redirect X-Accel-Charset;",
        )
        .takes(
            "X-Accel-Redirect | X-Accel-Expires | X-Accel-Limit-Rate | X-Accel-Buffering | \
             X-Accel-Charset | Expires | Cache-Control | Set-Cookie | Vary…",
        )
        .without("none"),
    flag("grpc_intercept_errors", HSL, |r| &mut r.origin().intercept_errors)
        .doc("Whether `error_page` applies to upstream responses.", "grpc_intercept_errors on;"),
    flag("grpc_socket_keepalive", HSL, |r| &mut r.origin().socket_keepalive).doc(
        "Whether the system probes idle connections (SO_KEEPALIVE).",
        "grpc_socket_keepalive on;",
    ),
    accepted("grpc_socket_rcvbuf", HSL, Args::ONE, DirectiveForm::Size)
        .doc("Without effect: the system sizes the buffer.", "grpc_socket_rcvbuf 64k;"),
    accepted("grpc_socket_sndbuf", HSL, Args::ONE, DirectiveForm::Size)
        .doc("Without effect: the system sizes the buffer.", "grpc_socket_sndbuf 64k;"),
];

fn pass(r: &mut ConfReader, node: &Node) -> ReadResult {
    if r.again {
        return Err(DUPLICATE);
    }
    let text = r.template(node.arg(0))?;
    let (to, url) = match text.as_text() {
        Some(_) => {
            let url = grpc_url::read(node.arg(0));
            let to = PassTo::Group(group(r, node, &url.written, (&url.written, None))?);
            (to, Some(Arc::new(url)))
        }
        None => (PassTo::Text(text), None),
    };
    r.scope.handler = Handler::Pass(Pass { protocol: Protocol::Http2, to, url });
    Ok(())
}

/// A name that is none would make requests malformed, and a colon another pseudo-header field.
fn set_header(r: &mut ConfReader, node: &Node) -> ReadResult {
    let name = node.arg(0);
    if name.is_empty() || !name.iter().all(|byte| bolide_http::structured::is_token(*byte)) {
        return Err(ReadFault::Text(format!("invalid field name \"{}\"", show(name))));
    }
    super::proxy::set_header(r, node)
}

fn next_upstream(r: &mut ConfReader, node: &Node) -> ReadResult {
    next_upstream_words(r, node, |words, word| {
        let next = &mut words.next;
        match word {
            b"error" => Some(&mut next.error),
            b"timeout" => Some(&mut next.timeout),
            b"invalid_header" => Some(&mut next.invalid_header),
            b"non_idempotent" => Some(&mut next.non_idempotent),
            b"http_500" => Some(&mut next.http_500),
            b"http_502" => Some(&mut next.http_502),
            b"http_503" => Some(&mut next.http_503),
            b"http_504" => Some(&mut next.http_504),
            b"http_403" => Some(&mut next.http_403),
            b"http_404" => Some(&mut next.http_404),
            b"http_429" => Some(&mut next.http_429),
            b"off" => Some(&mut words.off),
            _ => None,
        }
    })
}
