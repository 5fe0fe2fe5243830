//! Entry points for fuzz targets and replay tests; each asserts the invariants of any input.

use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, ConnectionTrafficSecrets, RootCertStore};

use aws_lc_rs::aead::{
    AES_128_GCM, AES_256_GCM, Aad, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey,
};
use bolide_tls::{
    Acceptor, AcceptorOptions, LoadedCertificate, OriginOptions, OriginTls, ServerCerts,
    TlsSession, names, self_signed,
};

/// An acceptor, made outside the tested part, and a client's side of it.
fn ends() -> &'static (Acceptor, Arc<ClientConfig>) {
    static ENDS: OnceLock<(Acceptor, Arc<ClientConfig>)> = OnceLock::new();
    ENDS.get_or_init(|| {
        let (chain, key) = self_signed(&["fuzz.example"]).expect("a certificate can be made");
        let cert = LoadedCertificate::from_pem(chain.as_bytes(), key.as_bytes(), &[])
            .expect("a certificate that was just made is good");
        let mut roots = RootCertStore::empty();
        roots.add(cert.leaf().to_vec().into()).expect("the certificate is an anchor");
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let mut client = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13])
            .expect("the library speaks TLS 1.3")
            .with_root_certificates(roots)
            .with_no_client_auth();
        client.enable_secret_extraction = true;
        let mut certs = ServerCerts::new();
        let set = certs.add(vec![cert]);
        certs.set_default(set);
        let acceptor = Acceptor::new(&Arc::new(certs), &AcceptorOptions::default())
            .expect("the default options are good");
        (acceptor, Arc::new(client))
    })
}

/// The keys of the client's records.
struct ClientKeys {
    key: LessSafeKey,
    iv: [u8; 12],
    sequence: u64,
}

impl ClientKeys {
    fn new((sequence, secrets): (u64, ConnectionTrafficSecrets)) -> Option<Self> {
        let (algorithm, key, iv) = match &secrets {
            ConnectionTrafficSecrets::Aes128Gcm { key, iv } => (&AES_128_GCM, key, iv),
            ConnectionTrafficSecrets::Aes256Gcm { key, iv } => (&AES_256_GCM, key, iv),
            ConnectionTrafficSecrets::Chacha20Poly1305 { key, iv } => (&CHACHA20_POLY1305, key, iv),
            _ => return None,
        };
        let key = LessSafeKey::new(UnboundKey::new(algorithm, key.as_ref()).ok()?);
        Some(Self { key, iv: iv.as_ref().try_into().ok()?, sequence })
    }

    /// RFC 8446 §5.2: appends a record whose content is of type `kind`, without padding.
    fn seal(&mut self, kind: u8, content: &[u8], out: &mut Vec<u8>) {
        let mut nonce = self.iv;
        for (byte, number) in nonce[4..].iter_mut().zip(self.sequence.to_be_bytes()) {
            *byte ^= number;
        }
        self.sequence += 1;
        let mut inner = [content, &[kind]].concat();
        let [high, low] = ((inner.len() + 16) as u16).to_be_bytes();
        let header = [23, 3, 3, high, low];
        let nonce = Nonce::assume_unique_for_key(nonce);
        let sealed = self.key.seal_in_place_append_tag(nonce, Aad::from(header), &mut inner);
        sealed.expect("a short record can be sealed");
        out.extend_from_slice(&header);
        out.extend_from_slice(&inner);
    }
}

/// An established session, and its client's keys.
fn established() -> Option<(TlsSession, ClientKeys)> {
    let (acceptor, config) = ends();
    let name = ServerName::try_from("fuzz.example").ok()?;
    let mut client = ClientConnection::new(Arc::clone(config), name).ok()?;
    let mut session = TlsSession::new(acceptor).ok()?;
    let (mut plain, mut wire, mut out) = (Vec::new(), Vec::new(), Vec::new());
    while session.is_handshaking() {
        wire.clear();
        while client.wants_write() {
            client.write_tls(&mut wire).ok()?;
        }
        session.receive(&mut wire, &mut plain, &mut out).ok()?;
        let mut flight = &out[..];
        while !flight.is_empty() {
            client.read_tls(&mut flight).ok()?;
            client.process_new_packets().ok()?;
        }
        out.clear();
    }
    let secrets = client.dangerous_extract_secrets().ok()?;
    Some((session, ClientKeys::new(secrets.tx)?))
}

/// Feeds an established session records with arbitrary contents under the right keys. Each is two
/// bytes, its type and its length, and that many bytes of content; type 0xff is sent unchanged.
///
/// # Panics
///
/// An invariant of [`TlsSession::receive`] does not hold.
pub fn records(mut data: &[u8]) {
    let (mut session, mut keys) = established().expect("the two ends agree");
    let (mut plain, mut out) = (Vec::new(), Vec::new());
    while let Some((&[kind, len], rest)) = data.split_first_chunk() {
        let (content, rest) = rest.split_at(usize::from(len).min(rest.len()));
        data = rest;
        let mut cipher = Vec::new();
        if kind == 0xff {
            cipher.extend_from_slice(content);
        } else {
            keys.seal(kind, content, &mut cipher);
        }
        out.clear();
        match session.receive(&mut cipher, &mut plain, &mut out) {
            Ok(received) => {
                assert!(received.consumed <= cipher.len(), "consumes only what was offered");
                assert!(out.is_empty(), "only an error is answered at once");
                if received.peer_closed {
                    break;
                }
                let heard = kind != 23 || plain.ends_with(content);
                assert!(heard, "data arrives as it was sealed");
                if received.consumed < cipher.len() {
                    // The next bytes would be the rest of another record.
                    break;
                }
            }
            Err(_) => {
                assert!(session.seal(b"x", &mut out).is_err(), "a failed session stays failed");
                return;
            }
        }
    }
    out.clear();
    assert!(session.seal(b"answer", &mut out).is_ok(), "a good session answers");
    assert!(matches!(out.len(), 28 | 55), "one record, and one more with new keys");
}

/// Drives a session with arbitrary bytes in pieces; the first byte determines their sizes.
///
/// # Panics
///
/// An invariant of [`TlsSession::receive`] does not hold.
pub fn session(data: &[u8]) {
    let Some((&step, data)) = data.split_first() else { return };
    let Ok(mut session) = TlsSession::new(&ends().0) else { return };
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

/// Responds to the server's ClientHello to an upstream with arbitrary bytes in pieces; the first
/// byte determines their sizes.
///
/// # Panics
///
/// An invariant of `bolide_tls::OriginSession` does not hold.
pub fn origin(data: &[u8]) {
    static TLS: OnceLock<OriginTls> = OnceLock::new();
    let Some((&step, data)) = data.split_first() else { return };
    let tls = TLS.get_or_init(|| {
        let offered = AcceptorOptions::default();
        let options = OriginOptions {
            versions: offered.versions,
            ciphers: offered.ciphers,
            ciphersuites: offered.ciphersuites,
            curves: offered.curves,
            tells_name: true,
            keeps_sessions: false,
            alpn: Vec::new(),
        };
        OriginTls::new(&options, None).expect("the defaults are good")
    });
    let mut session =
        tls.session(b"fuzz.example", "192.0.2.1:443", None).expect("any name will do");
    let (mut plain, mut out) = (Vec::new(), Vec::new());
    session.transmit(&mut out);
    for piece in data.chunks(usize::from(step) + 1) {
        let received = session.receive(piece, &mut plain);
        session.transmit(&mut out);
        if received.is_err() {
            break;
        }
        assert!(session.is_handshaking(), "nobody guesses the keys");
    }
    assert!(plain.is_empty(), "no plain text before the keys");
    assert!(out.len() < 64 * 1024, "answers are bounded");
}

/// Parses arbitrary words as the values of `ssl_*` directives.
///
/// # Panics
///
/// A suite or group appears twice.
pub fn names(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let selected = names::ciphers(text).map(|selected| selected.suites);
    for suites in [selected.unwrap_or_default(), names::ciphersuites(text).0] {
        for (index, suite) in suites.iter().enumerate() {
            assert!(!suites[..index].contains(suite), "no suite twice");
        }
    }
    assert!(names::curves(text).0.len() <= 4, "no group twice");
    let _ = names::protocols(text.split(' '));
}

/// Parses arbitrary bytes as a chain and a key.
pub fn pem(data: &[u8]) {
    let _ = LoadedCertificate::from_pem(data, data, &[]);
}

/// Reads arbitrary bytes as a revocation list, and as a certificate that names sources of its
/// status.
///
/// # Panics
///
/// A list counts that no issuer signed.
pub fn statuses(data: &[u8]) {
    let _ = (bolide_tls::responder(data), bolide_tls::list_url(data));
    assert!(bolide_tls::issuer_in(&[data, data]).is_none(), "no certificate is its own issuer");
    let issuer = LoadedCertificate::from_pem(data, data, &[]);
    let issuer = issuer.as_ref().map_or(data, LoadedCertificate::leaf);
    let found = bolide_tls::listed(data, issuer, "http://a.test/7.crl", &BTreeSet::new(), 0);
    assert!(found.is_err(), "nobody signs");
}
