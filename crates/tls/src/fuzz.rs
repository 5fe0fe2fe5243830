//! Entry points for fuzz targets and replay tests; each asserts what must hold for any input.

use std::sync::{Arc, OnceLock};

use crate::{Acceptor, AcceptorOptions, Certificate, ServerCerts, Session, names, self_signed};

/// An acceptor whose making is not part of what is tested.
fn acceptor() -> &'static Acceptor {
    static ACCEPTOR: OnceLock<Acceptor> = OnceLock::new();
    ACCEPTOR.get_or_init(|| {
        let (chain, key) = self_signed(&["fuzz.example"]).expect("a certificate can be made");
        let cert = Certificate::from_pem(chain.as_bytes(), key.as_bytes())
            .expect("a certificate that was just made is good");
        let mut certs = ServerCerts::new();
        let set = certs.add(vec![cert]);
        certs.set_default(set);
        Acceptor::new(&Arc::new(certs), &AcceptorOptions::default())
            .expect("the default options are good")
    })
}

/// Drives a session with arbitrary bytes in pieces whose sizes are the first byte's business.
///
/// # Panics
///
/// When an invariant of [`Session::receive`] does not hold.
pub fn session(data: &[u8]) {
    let Some((&step, data)) = data.split_first() else { return };
    let Ok(mut session) = Session::new(acceptor()) else { return };
    let (mut plain, mut out, mut cipher) = (Vec::new(), Vec::new(), Vec::new());
    for piece in data.chunks(usize::from(step) + 1) {
        cipher.extend_from_slice(piece);
        match session.receive(&mut cipher, &mut plain, &mut out) {
            Ok(received) => {
                assert!(received.consumed <= cipher.len(), "consumes only what was offered");
                cipher.drain(..received.consumed);
            }
            Err(_) => {
                assert!(session.seal(b"x", &mut out).is_err(), "a failed session stays failed");
                break;
            }
        }
        assert!(plain.is_empty() || !session.is_handshaking(), "no plain text before the keys");
    }
    assert!(out.len() < 64 * 1024, "answers are bounded");
}

/// Reads arbitrary words as the values of `ssl_*` directives.
///
/// # Panics
///
/// When a suite or group is given twice.
pub fn names(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    for suites in [names::ciphers(text).0, names::ciphersuites(text).0] {
        for (index, suite) in suites.iter().enumerate() {
            assert!(!suites[..index].contains(suite), "no suite twice");
        }
    }
    assert!(names::curves(text).0.len() <= 4, "no group twice");
    let _ = names::protocols(text.split(' '));
}

/// Reads arbitrary bytes as a chain and a key.
pub fn pem(data: &[u8]) {
    let _ = Certificate::from_pem(data, data);
}
