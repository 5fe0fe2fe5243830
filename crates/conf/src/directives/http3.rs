//! HTTP/3 and QUIC.

use crate::directive::{Args, Contexts, DirectiveSpec, flag, number, value};
use crate::model::AltSvc;
use crate::reader::{INVALID, ReadFault, flag as switch, size as bytes};

const HS: Contexts = Contexts::HS;

pub(super) const TABLE: &[DirectiveSpec] = &[
    flag("http3", HS, |r| &mut r.scope.http3)
        .doc("Whether HTTP/3 is enabled on `quic` listeners.", "http3 on;"),
    value("http3_hq", HS, Args::ONE, |_, node| match switch("http3_hq", node.arg(0))? {
        true => Err(ReadFault::Text("\"http3_hq on\" is not implemented".to_owned())),
        false => Ok(()),
    })
    .doc("HTTP/0.9 over QUIC, for tests of QUIC; not supported.", "http3_hq off;")
    .takes("off")
    .default("off"),
    number("http3_max_concurrent_streams", HS, |r| &mut r.server().h3.max_concurrent_streams)
        .doc("The most concurrent streams of a connection.", "http3_max_concurrent_streams 128;"),
    value("http3_stream_buffer_size", HS, Args::ONE, |r, node| {
        r.server().h3.stream_buffer_size = Some(bytes(node.arg(0))?);
        Ok(())
    })
    .doc("The buffer size of a stream.", "http3_stream_buffer_size 64k;")
    .takes("SIZE")
    .without("256k for each stream"),
    value("http3_alt_svc", HS, Args::ONE, |r, node| {
        r.server().h3.alt_svc = match node.arg(0) {
            b"on" => AltSvc::Listener,
            b"off" => AltSvc::Off,
            text => {
                let number = std::str::from_utf8(text).ok().and_then(|text| text.parse().ok());
                AltSvc::Port(number.filter(|port| *port != 0).ok_or(INVALID)?)
            }
        };
        Ok(())
    })
    .doc(
        "Whether clients over TLS are told that HTTP/3 is to be had (`Alt-Svc`), and at which \
         port, if that is not the one that the server listens at: a published port of a container \
         or a balancer. Where `add_header` sets `Alt-Svc`, that alone is sent.",
        "http3_alt_svc 443;",
    )
    .takes("on | off | PORT")
    .default("on"),
    flag("quic_retry", HS, |r| &mut r.server().h3.retry)
        .doc("Whether clients must validate their address first (Retry).", "quic_retry on;"),
    flag("quic_gso", HS, |r| &mut r.server().h3.gso)
        .doc("Whether the kernel segments packets (GSO), which costs less.", "quic_gso on;"),
    value("quic_host_key", HS, Args::ONE, |r, node| {
        let path = r.beside_conf(node.arg(0));
        r.server().h3.host_key = Some((path, r.place(node)));
        Ok(())
    })
    .doc(
        "The file with the secret of tokens, so that they outlive a restart.",
        "quic_host_key quic.key;",
    )
    .takes("FILE")
    .without("a random key at each start"),
    number("quic_active_connection_id_limit", HS, |r| {
        &mut r.server().h3.active_connection_id_limit
    })
    .doc("The most active connection IDs of a connection.", "quic_active_connection_id_limit 2;"),
];
