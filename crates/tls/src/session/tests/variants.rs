//! Servers of one socket that offer different things, chosen by the name in the hello.

use std::sync::Arc;

use rustls::version::{TLS12, TLS13};

use super::{BOTH, Pair, Visitor, certificate};
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
    acceptor.vary(&certs, strict, &varied).unwrap();
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
        assert_eq!(ask("a.example", &TLS13).unwrap().1, "TLS_AES_128_GCM_SHA256");
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
