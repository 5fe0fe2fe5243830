//! The upstreams are sessions of our own server.

use std::sync::Arc;

use proptest::prelude::*;

use super::{OriginOptions, OriginSession, OriginTls};
use crate::{
    Acceptor, AcceptorOptions, ClientAuth, ClientAuthFiles, CommonTickets, LoadedCertificate,
    ServerCerts, Tickets, TlsSession, Versions, fuzz, names, self_signed,
};

fn options() -> OriginOptions {
    OriginOptions {
        versions: Versions { tls12: true, tls13: true },
        ciphers: names::default_ciphers(),
        ciphersuites: names::default_ciphersuites(),
        curves: names::default_curves(),
        tells_name: true,
        keeps_sessions: true,
        alpn: Vec::new(),
    }
}

/// A server for `a.example`, and its certificate.
fn server(versions: Versions) -> (Acceptor, String) {
    let (chain, key) = self_signed(&["a.example"]).unwrap();
    let mut certs = ServerCerts::new();
    let set = certs
        .add(vec![LoadedCertificate::from_pem(chain.as_bytes(), key.as_bytes(), &[]).unwrap()]);
    certs.set_default(set);
    let tickets = Some(Arc::new(Tickets::rotating(300, CommonTickets::default()).unwrap()));
    let options = AcceptorOptions { versions, tickets, ..AcceptorOptions::default() };
    (Acceptor::new(&Arc::new(certs), &options).unwrap(), chain)
}

/// Both ends, with the bytes on their way to the server.
struct Pair {
    origin: OriginSession,
    server: TlsSession,
    waiting: Vec<u8>,
    heard: Vec<u8>,
    said: Vec<u8>,
}

impl Pair {
    fn new(tls: &OriginTls, server: &Acceptor, name: &str) -> Self {
        Self::with(tls, server, name, "127.0.0.1:1")
    }

    /// A session with the server at this address.
    fn with(tls: &OriginTls, server: &Acceptor, name: &str, at: &str) -> Self {
        Self {
            origin: tls.session(name.as_bytes(), at, None).unwrap(),
            server: TlsSession::new(server).unwrap(),
            waiting: Vec::new(),
            heard: Vec::new(),
            said: Vec::new(),
        }
    }

    /// Carries bytes in pieces of `step` until both sides are silent.
    fn run(&mut self, step: usize) {
        loop {
            self.origin.transmit(&mut self.waiting);
            let mut out = Vec::new();
            let received =
                self.server.receive(&mut self.waiting, &mut self.heard, &mut out).unwrap();
            self.waiting.drain(..received.consumed);
            if out.is_empty() && received.consumed == 0 {
                return;
            }
            for piece in out.chunks(step) {
                self.origin.receive(piece, &mut self.said).unwrap();
            }
        }
    }

    fn says(&mut self, text: &[u8]) {
        let mut out = Vec::new();
        self.server.seal(text, &mut out).unwrap();
        self.origin.receive(&out, &mut self.said).unwrap();
    }
}

const BOTH: Versions = Versions { tls12: true, tls13: true };

#[test]
fn bytes_go_both_ways_in_either_version_however_they_are_cut() {
    for versions in [BOTH, Versions { tls12: true, tls13: false }] {
        let (server, _) = server(versions);
        let tls = OriginTls::new(&options(), None).unwrap();
        for step in [1, 100, usize::MAX] {
            let mut pair = Pair::new(&tls, &server, "a.example");
            pair.run(step);
            assert_eq!(pair.server.server_name(), Some("a.example"));
            let long = vec![b'x'; 100_000];
            pair.origin.seal(&long, &mut pair.waiting);
            pair.run(step);
            assert!(pair.heard == long);
            pair.says(&long);
            assert!(pair.said == long && !pair.origin.peer_closed());
            let mut bye = Vec::new();
            pair.server.close(&mut bye);
            pair.origin.receive(&bye, &mut pair.said).unwrap();
            assert!(pair.origin.peer_closed());
        }
    }
}

#[test]
fn sessions_are_taken_up_again_where_that_is_wanted() {
    for (keeps_sessions, resumed) in [(true, true), (false, false)] {
        let (server, _) = server(BOTH);
        let tls = OriginTls::new(&OriginOptions { keeps_sessions, ..options() }, None).unwrap();
        for is_resumed in [false, resumed] {
            let mut pair = Pair::new(&tls, &server, "a.example");
            pair.run(usize::MAX);
            assert_eq!(pair.server.is_resumed(), is_resumed);
        }
    }
}

#[test]
fn a_name_is_sent_only_if_configured_and_an_address_never() {
    let (server, _) = server(BOTH);
    for (tells_name, name, told) in [
        (true, "b.example", Some("b.example")),
        (false, "b.example", None),
        (true, "127.0.0.1", None),
        (true, "[::1", None),
        (true, "", None),
        (true, "no name", None),
    ] {
        let tls = OriginTls::new(&OriginOptions { tells_name, ..options() }, None).unwrap();
        let mut pair = Pair::new(&tls, &server, name);
        pair.run(usize::MAX);
        assert_eq!(pair.server.server_name(), told, "{name}");
    }
}

#[test]
fn an_upstream_has_the_expected_name_or_fails_in_nginxs_words() {
    let (server, chain) = server(BOTH);
    let (other, _) = self_signed(&["a.example"]).unwrap();
    // All certificates made here have the same subject, and signed themselves.
    let forged = "upstream SSL certificate verify error: (18:self-signed certificate)";
    let stranger = "upstream SSL certificate does not match \"b.example\"";
    for (trusted, name, verdict) in [
        (&chain, "a.example", None),
        (&chain, "b.example", Some(stranger)),
        (&other, "a.example", Some(forged)),
    ] {
        let files = ClientAuthFiles { trusted: Some(trusted.as_bytes()), ..Default::default() };
        let mut tls = OriginTls::new(&options(), None).unwrap();
        tls.trust(ClientAuth::new(&files, 1).unwrap());
        // The second session is resumed, and verified as strictly.
        for _ in 0..2 {
            let mut pair = Pair::new(&tls, &server, name);
            pair.run(usize::MAX);
            assert_eq!(pair.origin.verdict().as_deref(), verdict);
        }
    }
}

#[test]
fn sessions_are_resumed_with_the_server_that_made_them() {
    for versions in [BOTH, Versions { tls12: true, tls13: false }] {
        let servers =
            ["127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:3"].map(|at| (at, server(versions).0));
        let tls = OriginTls::new(&options(), None).unwrap();
        for round in 0..4 {
            for (at, server) in &servers {
                let mut pair = Pair::with(&tls, server, "a.example", at);
                pair.run(usize::MAX);
                assert_eq!(pair.server.is_resumed(), round > 0, "{at} in round {round}");
            }
        }
    }
}

#[test]
fn a_stream_without_tls_fails_in_openssls_words() {
    let tls = OriginTls::new(&options(), None).unwrap();
    let mut session = tls.session(b"a.example", "127.0.0.1:1", None).unwrap();
    let fault = session.receive(b"HTTP/1.1 400 Bad Request\r\n", &mut Vec::new()).unwrap_err();
    assert_eq!(fault.to_string(), "SSL: error:0A00010B:SSL routines::wrong version number");
    let mut session = tls.session(b"a.example", "127.0.0.1:1", None).unwrap();
    let alert = b"\x15\x03\x03\x00\x02\x02\x46";
    let fault = session.receive(alert, &mut Vec::new()).unwrap_err();
    let text = "SSL: error:0A00042E:SSL routines::tlsv1 alert protocol version:SSL alert number 70";
    assert_eq!(fault.to_string(), text);
}

#[test]
fn what_comes_before_a_record_that_is_wrong_holds() {
    for versions in [BOTH, Versions { tls12: true, tls13: false }] {
        let (server, _) = server(versions);
        let tls = OriginTls::new(&options(), None).unwrap();
        let mut pair = Pair::new(&tls, &server, "a.example");
        pair.run(usize::MAX);
        let mut records = Vec::new();
        pair.server.seal(b"whole", &mut records).unwrap();
        let bad_at = records.len() + 10;
        pair.server.seal(b"broken", &mut records).unwrap();
        records[bad_at] ^= 1;
        let mut said = Vec::new();
        assert!(pair.origin.receive(&records, &mut said).is_err());
        assert_eq!(said, b"whole");
        assert!(pair.origin.receive(b"more", &mut said).is_err());
        assert_eq!(said, b"whole");
    }
}

/// Our server's first response to a hello.
fn first_flight() -> Vec<u8> {
    let (server, _) = server(BOTH);
    let tls = OriginTls::new(&options(), None).unwrap();
    let mut pair = Pair::new(&tls, &server, "a.example");
    pair.origin.transmit(&mut pair.waiting);
    let mut out = Vec::new();
    let _received = pair.server.receive(&mut pair.waiting, &mut Vec::new(), &mut out).unwrap();
    out
}

proptest! {
    #[test]
    fn arbitrary_answers_to_a_hello_end_or_leave_a_handshake(
        step: u8,
        data in proptest::collection::vec(any::<u8>(), 0..300),
        at in 0..1000_usize,
        bit in 0..8_u8,
    ) {
        fuzz::origin(&[&[step][..], &data].concat());
        let mut flight = first_flight();
        let at = at % flight.len();
        flight[at] ^= 1 << bit;
        fuzz::origin(&[&[step][..], &flight].concat());
    }
}
