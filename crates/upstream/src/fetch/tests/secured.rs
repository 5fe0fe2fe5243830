//! Requests over TLS connections.

use std::sync::Arc;

use bolide_conf::model::Protocol;

use super::{Bench, END, SENT, head, patient, request, server};
use crate::{FetchWake, LocalAddress, OriginRequest, Secure};

/// A request to an HTTP upstream named `name`.
fn secret(name: &str) -> Box<OriginRequest> {
    wanting(Secure { site: 1, settings: 0, name: name.as_bytes().into(), certificate: None })
}

/// A request to an HTTP upstream with this TLS identity.
fn wanting(secure: Secure) -> Box<OriginRequest> {
    let mut request = request(patient());
    (request.protocol, request.secure) = (Protocol::Http, Some(Arc::new(secure)));
    request
}

#[test]
fn a_handshake_is_part_of_the_connection_and_of_its_time() {
    let mut bench = Bench::of(vec![server(1)]);
    bench.start(secret("a"));
    assert!(bench.pass(3).is_empty());
    assert!(bench.wakes([FetchWake::Handshaking]).is_empty());
    assert_eq!(
        bench.pass(3),
        [
            "close",
            "Error: upstream timed out (110: Connection timed out) while SSL handshaking to \
             upstream (127.0.0.1:1)",
            "attempt 127.0.0.1:1 504 over",
            "failed 504",
            "finish",
        ]
    );
}

#[test]
fn an_origin_that_is_not_trusted_is_left_for_another_one() {
    let mut bench = Bench::of(vec![server(1), server(2)]);
    bench.start(secret("a"));
    let why = FetchWake::Insecure("upstream SSL certificate does not match \"a\"".to_owned());
    assert_eq!(
        bench.wakes([FetchWake::Handshaking, why]),
        [
            "Error: upstream SSL certificate does not match \"a\" while SSL handshaking to \
             upstream (127.0.0.1:1)",
            "close",
            "Warn: upstream server temporarily disabled while SSL handshaking to upstream \
             (127.0.0.1:1)",
            "attempt 127.0.0.1:1 502 over",
            "connect 127.0.0.1:2",
        ]
    );
    assert_eq!(bench.wakes([FetchWake::Handshaking, FetchWake::Connected(2)]), ["send"]);
}

#[test]
fn what_is_missing_here_is_missing_for_every_origin() {
    let mut bench = Bench::of(vec![server(1), server(2)]);
    bench.start(secret("a"));
    let why = FetchWake::Unprepared("cannot load certificate \"x\"".to_owned());
    assert_eq!(
        bench.wakes([why]),
        [
            "Error: cannot load certificate \"x\" while connecting to upstream (127.0.0.1:1)",
            "attempt 127.0.0.1:1 0 over",
            "failed 500",
            "finish",
        ]
    );
    assert_eq!(bench.conns(), 0);
}

#[test]
fn an_idle_connection_serves_requests_with_the_same_tls_settings() {
    let mut bench = Bench::of(vec![server(1)]);
    let keep = |bench: &mut Bench, request, link| {
        bench.start(request);
        bench.wakes([FetchWake::Connected(link), SENT, FetchWake::Event(head(200)), END])
    };
    assert_eq!(keep(&mut bench, secret("a"), 7)[0], "keep");
    assert_eq!(keep(&mut bench, secret("b"), 8)[0], "keep");
    let mut plain = request(patient());
    plain.protocol = Protocol::Http;
    assert_eq!(bench.start(plain), ["connect 127.0.0.1:1"]);
    assert_eq!(bench.start(secret("c")), ["connect 127.0.0.1:1"]);
    assert_eq!(bench.start(secret("a")), ["reuse 7"]);
    assert_eq!(bench.start(secret("b")), ["reuse 8"]);
}

/// Names of which `DefaultHasher` makes the same 63 bits, in a [`Secure`] as [`secret`] has it.
const COLLIDING: [&str; 2] = ["nopdaiilocmmchgf", "akdbgbkljgaclpdj"];

#[test]
fn idle_connections_are_distinguished_by_every_tls_setting() {
    let secure = |site, settings, name: &str, certificate: Option<&str>| {
        let pem = |text: &str| text.as_bytes().into();
        let certificate = certificate.map(|text| [pem(text), pem("key")]);
        Secure { site, settings, name: pem(name), certificate }
    };
    let wanted = [
        secure(1, 0, COLLIDING[0], None),
        secure(1, 0, COLLIDING[1], None),
        secure(2, 0, COLLIDING[0], None),
        secure(1, 1, COLLIDING[0], None),
        secure(1, 0, COLLIDING[0], Some("a")),
        secure(1, 0, COLLIDING[0], Some("b")),
    ];
    let [first, others @ ..] = &wanted;
    for other in others {
        let mut bench = Bench::of(vec![server(1)]);
        bench.start(wanting(first.clone()));
        let kept = [FetchWake::Connected(1), SENT, FetchWake::Event(head(200)), END];
        assert_eq!(bench.wakes(kept)[0], "keep");
        assert_eq!(bench.start(wanting(other.clone())), ["connect 127.0.0.1:1"], "{other:?}");
        assert_eq!(bench.start(wanting(first.clone())), ["reuse 1"], "{other:?}");
    }
}

#[test]
fn an_idle_connection_serves_requests_with_the_same_local_address() {
    let plain = || {
        let mut request = request(patient());
        request.protocol = Protocol::Http;
        request
    };
    let from = |text: &str| {
        let mut request = plain();
        request.from =
            Some(LocalAddress { at: format!("{text}:0").parse().unwrap(), text: text.into() });
        request
    };
    let mut bench = Bench::of(vec![server(1)]);
    bench.start(from("127.0.0.11"));
    let kept = [FetchWake::Connected(1), SENT, FetchWake::Event(head(200)), END];
    assert_eq!(bench.wakes(kept)[0], "keep");
    assert_eq!(bench.start(from("127.0.0.12")), ["connect 127.0.0.1:1"]);
    assert_eq!(bench.start(plain()), ["connect 127.0.0.1:1"]);
    assert_eq!(bench.start(from("127.0.0.11")), ["reuse 1"]);
}
