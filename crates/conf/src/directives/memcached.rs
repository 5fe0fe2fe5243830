//! `memcached_pass` and its kin: values of memcached by `$memcached_key`.

use super::origin::next_upstream_words;
use super::pass::group;
use crate::ast::Node;
use crate::directive::{Args, Contexts, DirectiveSpec, flag, list, millis, number, own, value};
use crate::model::{Handler, Pass, PassTo, Protocol};
use crate::reader::{ConfReader, DUPLICATE, ReadResult, size};

const HSL: Contexts = Contexts::HSL;

pub(super) const TABLE: &[DirectiveSpec] = &[
    own("memcached_pass", Contexts::LI, Args::ONE, pass)
        .doc(
            "The memcached whose value of `$memcached_key` is the response: 404 if it has none. \
             Caches and `page_cache` keep nothing of it.",
            "memcached_pass 127.0.0.1:11211;",
        )
        .takes("HOST | NAME")
        .without("none"),
    value("memcached_bind", HSL, Args::between(1, 2), super::bind::bind)
        .doc(
            "The local address of connections to memcached, with a port or without.",
            "memcached_bind 127.0.0.1;",
        )
        .takes("HOST [transparent] | off")
        .default("off"),
    value("memcached_buffer_size", HSL, Args::ONE, |r, node| {
        r.origin().buffer_size = size(node.arg(0))?;
        Ok(())
    })
    .doc("The largest first line of a response.", "memcached_buffer_size 8k;")
    .takes("SIZE")
    .default("4k"),
    millis("memcached_connect_timeout", HSL, |r| &mut r.origin().connect_timeout)
        .doc("The timeout of a connect to memcached.", "memcached_connect_timeout 5s;"),
    number("memcached_gzip_flag", HSL, |r| &mut r.origin().memcached_gzip_flag).doc(
        "The flags of values that are in gzip; the response has `Content-Encoding: gzip` if one of \
         them is set.",
        "memcached_gzip_flag 2;",
    ),
    list("memcached_next_upstream", HSL, Args::at_least(1), next_upstream)
        .doc(
            "The failures after which another server of the group is asked.",
            "memcached_next_upstream error timeout not_found;",
        )
        .takes("error | timeout | invalid_response | not_found | off…")
        .default("error timeout"),
    millis("memcached_next_upstream_timeout", HSL, |r| &mut r.origin().next_upstream_timeout).doc(
        "The time during which further servers are asked; 0 is no limit.",
        "memcached_next_upstream_timeout 10s;",
    ),
    number("memcached_next_upstream_tries", HSL, |r| &mut r.origin().next_upstream_tries).doc(
        "The most servers asked for a request; 0 is no limit.",
        "memcached_next_upstream_tries 2;",
    ),
    millis("memcached_read_timeout", HSL, |r| &mut r.origin().read_timeout)
        .doc("The longest pause between two reads from memcached.", "memcached_read_timeout 5s;"),
    millis("memcached_send_timeout", HSL, |r| &mut r.origin().send_timeout)
        .doc("The longest pause between two writes to memcached.", "memcached_send_timeout 5s;"),
    flag("memcached_socket_keepalive", HSL, |r| &mut r.origin().socket_keepalive).doc(
        "Whether the system probes idle connections (SO_KEEPALIVE).",
        "memcached_socket_keepalive on;",
    ),
];

fn pass(r: &mut ConfReader, node: &Node) -> ReadResult {
    if r.again {
        return Err(DUPLICATE);
    }
    let key = r.template(b"$memcached_key")?;
    let word = node.arg(0);
    let to = PassTo::Group(group(r, node, word, (word, None))?);
    r.origin().memcached_key = Some(key);
    r.scope.handler = Handler::Pass(Pass { protocol: Protocol::Memcached, to, url: None });
    Ok(())
}

fn next_upstream(r: &mut ConfReader, node: &Node) -> ReadResult {
    next_upstream_words(r, node, |words, word| match word {
        b"error" => Some(&mut words.next.error),
        b"timeout" => Some(&mut words.next.timeout),
        b"invalid_response" => Some(&mut words.next.invalid_header),
        b"not_found" => Some(&mut words.next.http_404),
        b"off" => Some(&mut words.off),
        _ => None,
    })
}
