//! HTTP/3 and QUIC.

use crate::directive::{Args, Contexts, Directive, Form, accepted, flag, number, size, value};
use crate::reader::{Fault, flag as switch};

const HS: Contexts = Contexts::HS;

pub(super) const TABLE: &[Directive] = &[
    flag("http3", HS, |r| &mut r.scope.http3)
        .doc("Whether HTTP/3 is spoken where a `quic` listener is.", "http3 on;"),
    value("http3_hq", HS, Args::ONE, |_, node| match switch("http3_hq", node.arg(0))? {
        true => Err(Fault::Text("\"http3_hq on\" is not implemented".to_owned())),
        false => Ok(()),
    })
    .doc("HTTP/0.9 over QUIC, for tests of QUIC, is not spoken.", "http3_hq off;"),
    number("http3_max_concurrent_streams", HS, |r| &mut r.server().h3.max_concurrent_streams)
        .doc("Requests at a time on one connection.", "http3_max_concurrent_streams 128;"),
    size("http3_stream_buffer_size", HS, |r| &mut r.server().h3.stream_buffer_size)
        .doc("Bytes buffered for one stream.", "http3_stream_buffer_size 64k;"),
    flag("quic_retry", HS, |r| &mut r.server().h3.retry)
        .doc("Whether clients must prove their address first.", "quic_retry on;"),
    accepted("quic_gso", HS, Args::ONE, Form::Flag)
        .doc("Chose whether the kernel cuts packets, as it does where it can.", "quic_gso on;"),
    value("quic_host_key", HS, Args::ONE, |r, node| {
        let path = r.beside_conf(node.arg(0));
        r.server().h3.host_key = Some((path, r.place(node)));
        Ok(())
    })
    .doc("The file with the secret of tokens, which outlive a restart.", "quic_host_key quic.key;"),
    accepted("quic_active_connection_id_limit", HS, Args::ONE, Form::Number)
        .doc("Bounded the connection ids kept for a client.", "quic_active_connection_id_limit 2;"),
];
