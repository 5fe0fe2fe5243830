//! Servers of one socket with different offers, selected by the name in the hello.

use std::sync::Arc;

use rustls::version::{TLS12, TLS13};

use super::{BOTH, Pair, Visitor, certificate};
use crate::by_name::Hello;
use crate::{Acceptor, AcceptorOptions, ServerCerts, Versions, names};

fn acceptor() -> Acceptor {
    let mut certs = ServerCerts::new();
    let everybody = certs.add(vec![certificate("a.example")]);
    certs.set_default(everybody);
    let strict = certs.add(vec![certificate("strict.example")]);
    certs.name("strict.example", strict);
    let certs = Arc::new(certs);
    let options = AcceptorOptions::default();
    let mut acceptor = Acceptor::new(&certs, &options).unwrap();
    let varied = AcceptorOptions {
        versions: Versions { tls12: false, tls13: true },
        ciphersuites: names::ciphersuites("TLS_CHACHA20_POLY1305_SHA256").0,
        ..options
    };
    let mut names = ServerCerts::new();
    let other = names.add(Vec::new());
    names.name("strict.example", other);
    acceptor.vary(&certs, names, &[(other, varied)]).unwrap();
    acceptor
}

#[test]
fn each_server_offers_its_own_however_the_hello_is_cut() {
    let acceptor = acceptor();
    for step in [1, 7, 300, usize::MAX] {
        let ask = |name: &str, version| {
            let visitor = Visitor::new(version, BOTH, &[]);
            let mut pair = Pair::new(&acceptor, visitor.client(name), step);
            pair.run().map(|()| (pair.server.protocol(), pair.server.cipher()))
        };
        assert_eq!(ask("a.example", &TLS12).unwrap().0, "TLSv1.2");
        assert_eq!(ask("a.example", &TLS13).unwrap().1, "TLS_AES_256_GCM_SHA384");
        assert_eq!(ask("strict.example", &TLS13).unwrap().1, "TLS_CHACHA20_POLY1305_SHA256");
        assert!(ask("strict.example", &TLS12).is_err());
    }
}

#[test]
fn garbage_is_refused_and_not_waited_for() {
    let acceptor = acceptor();
    let visitor = Visitor::new(&TLS13, BOTH, &[]);
    for mut bytes in [b"\x16\x03\x01\x00\x04junk".to_vec(), b"\x80junkjunkjunk".to_vec()] {
        let mut pair = Pair::new(&acceptor, visitor.client("a.example"), usize::MAX);
        assert!(pair.server.receive(&mut bytes, &mut pair.plain, &mut pair.out).is_err());
    }
}

#[test]
fn what_was_seen_of_a_hello_is_not_looked_at_again() {
    let acceptor = acceptor();
    let by_name = acceptor.by_name.as_ref().unwrap();
    let visitor = Visitor::new(&TLS13, BOTH, &[]);
    for (name, is_other) in [("a.example", false), ("strict.example", true)] {
        let mut bytes = Vec::new();
        visitor.client(name).write_tls(&mut bytes).unwrap();
        let mut hello = Hello::new(by_name);
        for len in 1..bytes.len() {
            assert!(hello.receive(&bytes[..len]).unwrap().is_none());
            bytes[len - 1] = 0;
        }
        let chosen = hello.receive(&bytes).unwrap().unwrap();
        assert_eq!(Arc::ptr_eq(&chosen, &acceptor.tcp), !is_other, "{name}");
    }
}

#[test]
fn a_client_without_a_certificate_gets_unrecognized_name() {
    let mut certs = ServerCerts::new();
    let nobody = certs.add(Vec::new());
    certs.set_default(nobody);
    let known = certs.add(vec![certificate("a.example")]);
    certs.name("a.example", known);
    let acceptor = Acceptor::new(&Arc::new(certs), &AcceptorOptions::default()).unwrap();
    for version in [&TLS12, &TLS13] {
        let visitor = Visitor::new(version, BOTH, &[]);
        let mut pair = Pair::new(&acceptor, visitor.client("a.example"), usize::MAX);
        pair.run().unwrap();
        let mut pair = Pair::new(&acceptor, visitor.client("b.example"), usize::MAX);
        assert!(pair.run().is_err());
        assert_eq!(pair.out, [21, 3, 3, 0, 2, 2, 112]);
    }
}
