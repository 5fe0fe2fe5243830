//! HTTP/3 and QUIC.

use crate::directive::{Args, Contexts, Directive, flag, number, size, value};

const HS: Contexts = Contexts::HS;

pub(super) const TABLE: &[Directive] = &[
    flag("http3", HS, |r| &mut r.scope.http3)
        .doc("Whether HTTP/3 is spoken where a `quic` listener is.", "http3 on;"),
    flag("http3_hq", HS, |r| &mut r.server().h3.hq)
        .doc("Whether HTTP/0.9 over QUIC is spoken, for tests.", "http3_hq off;"),
    number("http3_max_concurrent_streams", HS, |r| &mut r.server().h3.max_concurrent_streams)
        .doc("Requests at a time on one connection.", "http3_max_concurrent_streams 128;"),
    size("http3_stream_buffer_size", HS, |r| &mut r.server().h3.stream_buffer_size)
        .doc("Bytes buffered for one stream.", "http3_stream_buffer_size 64k;"),
    flag("quic_retry", HS, |r| &mut r.server().h3.retry)
        .doc("Whether clients must prove their address first.", "quic_retry on;"),
    flag("quic_gso", HS, |r| &mut r.server().h3.gso)
        .doc("Whether the kernel cuts packets out of large writes.", "quic_gso on;"),
    value("quic_host_key", HS, Args::ONE, |r, node| {
        let path = r.beside_conf(node.arg(0));
        r.server().h3.host_key = Some(path);
        Ok(())
    })
    .doc("The file with the secret for tokens.", "quic_host_key quic.key;"),
    number("quic_active_connection_id_limit", HS, |r| {
        &mut r.server().h3.active_connection_id_limit
    })
    .doc("Connection ids kept for a client.", "quic_active_connection_id_limit 2;"),
];
