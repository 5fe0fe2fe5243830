//! Handshakes in memory against the library's client.

use std::sync::{Arc, Mutex};

use proptest::prelude::{any, proptest};
use rcgen::{CertificateParams, KeyPair, PKCS_ECDSA_P256_SHA256, PKCS_RSA_SHA256};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{ClientConnection, Resumption};
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::version::{TLS12, TLS13};
use rustls::{
    ClientConfig, DigitallySignedStruct, Error, SignatureScheme, SupportedProtocolVersion,
};

use crate::records::Lane;
use crate::{
    Acceptor, AcceptorOptions, CipherOrder, CommonTickets, LoadedCertificate, ServerCerts, Tickets,
    TlsSession, Versions, fuzz, names, self_signed,
};

mod records;
mod variants;

/// Accepts any certificate and remembers the last one.
#[derive(Debug)]
struct Believer {
    schemes: Vec<SignatureScheme>,
    seen: Mutex<Vec<u8>>,
}

impl ServerCertVerifier for Believer {
    fn verify_server_cert(
        &self,
        leaf: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        *self.seen.lock().unwrap() = leaf.to_vec();
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let known = aws_lc_rs::default_provider().signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, cert, signed, &known)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let known = aws_lc_rs::default_provider().signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, cert, signed, &known)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.schemes.clone()
    }
}

struct Visitor {
    config: Arc<ClientConfig>,
    believer: Arc<Believer>,
}

const ECDSA: &[SignatureScheme] = &[SignatureScheme::ECDSA_NISTP256_SHA256];
const RSA: &[SignatureScheme] = &[SignatureScheme::RSA_PSS_SHA256];
const BOTH: &[SignatureScheme] = &[
    SignatureScheme::ECDSA_NISTP256_SHA256,
    SignatureScheme::RSA_PSS_SHA256,
    SignatureScheme::RSA_PKCS1_SHA256,
];

impl Visitor {
    fn new(
        version: &'static SupportedProtocolVersion,
        schemes: &[SignatureScheme],
        alpn: &[&[u8]],
    ) -> Self {
        let believer =
            Arc::new(Believer { schemes: schemes.to_vec(), seen: Mutex::new(Vec::new()) });
        let verifier: Arc<dyn ServerCertVerifier> = Arc::<Believer>::clone(&believer);
        let provider: Arc<CryptoProvider> = Arc::new(aws_lc_rs::default_provider());
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[version])
            .unwrap()
            .dangerous()
            .with_custom_certificate_verifier(verifier)
            .with_no_client_auth();
        config.alpn_protocols = alpn.iter().map(|name| name.to_vec()).collect();
        config.enable_secret_extraction = true;
        config.resumption = Resumption::in_memory_sessions(4);
        Self { config: Arc::new(config), believer }
    }

    fn client(&self, name: &str) -> ClientConnection {
        let name = ServerName::try_from(name.to_owned()).unwrap();
        ClientConnection::new(Arc::clone(&self.config), name).unwrap()
    }
}

fn certificate(name: &str) -> LoadedCertificate {
    let (chain, key) = self_signed(&[name]).unwrap();
    LoadedCertificate::from_pem(chain.as_bytes(), key.as_bytes(), &[]).unwrap()
}

fn rsa_certificate() -> LoadedCertificate {
    let key = KeyPair::generate_for(&PKCS_RSA_SHA256).unwrap();
    let params = CertificateParams::new(vec!["rsa.example".to_owned()]).unwrap();
    let cert = params.self_signed(&key).unwrap();
    LoadedCertificate::from_pem(cert.pem().as_bytes(), key.serialize_pem().as_bytes(), &[]).unwrap()
}

fn acceptor_of(certs: ServerCerts, options: &AcceptorOptions) -> Acceptor {
    Acceptor::new(&Arc::new(certs), options).unwrap()
}

fn acceptor(options: &AcceptorOptions) -> Acceptor {
    let mut certs = ServerCerts::new();
    let set = certs.add(vec![certificate("default.example")]);
    certs.set_default(set);
    acceptor_of(certs, options)
}

/// A server and a client joined by two buffers; `step` is the most bytes moved at once.
struct Pair {
    client: ClientConnection,
    server: TlsSession,
    cipher: Vec<u8>,
    plain: Vec<u8>,
    out: Vec<u8>,
    step: usize,
    peer_closed: bool,
}

impl Pair {
    fn new(acceptor: &Acceptor, client: ClientConnection, step: usize) -> Self {
        let server = TlsSession::new(acceptor).unwrap();
        let (cipher, plain, out) = (Vec::new(), Vec::new(), Vec::new());
        Self { client, server, cipher, plain, out, step, peer_closed: false }
    }

    /// Moves bytes both ways until nothing moves.
    fn run(&mut self) -> Result<(), String> {
        loop {
            let mut wire = Vec::new();
            while self.client.wants_write() {
                self.client.write_tls(&mut wire).unwrap();
            }
            let moved = !wire.is_empty() || !self.out.is_empty();
            for piece in wire.chunks(self.step) {
                self.cipher.extend_from_slice(piece);
                let received = self
                    .server
                    .receive(&mut self.cipher, &mut self.plain, &mut self.out)
                    .map_err(|error| error.to_string())?;
                self.cipher.drain(..received.consumed);
                self.peer_closed |= received.peer_closed;
            }
            let answer = std::mem::take(&mut self.out);
            self.feed_client(&answer)?;
            if !moved && self.out.is_empty() {
                return Ok(());
            }
        }
    }

    fn feed_client(&mut self, mut bytes: &[u8]) -> Result<(), String> {
        while !bytes.is_empty() {
            self.client.read_tls(&mut bytes).unwrap();
            self.client.process_new_packets().map_err(|error| error.to_string())?;
        }
        Ok(())
    }

    fn say(&mut self, bytes: &[u8]) {
        use std::io::Write as _;
        self.client.writer().write_all(bytes).unwrap();
    }

    fn heard(&mut self, len: usize) -> Vec<u8> {
        use std::io::Read as _;
        let mut bytes = vec![0; len];
        self.client.reader().read_exact(&mut bytes).unwrap();
        bytes
    }
}

fn meet(acceptor: &Acceptor, visitor: &Visitor, name: &str) -> Result<Pair, String> {
    let mut pair = Pair::new(acceptor, visitor.client(name), usize::MAX);
    pair.run()?;
    Ok(pair)
}

#[test]
fn both_versions_carry_bytes_both_ways_however_the_bytes_are_cut() {
    for version in [&TLS12, &TLS13] {
        for step in [1, 7, 1000, usize::MAX] {
            let acceptor = acceptor(&AcceptorOptions::default());
            let visitor = Visitor::new(version, BOTH, &[]);
            let mut pair = Pair::new(&acceptor, visitor.client("any.example"), step);
            pair.run().unwrap();
            assert!(!pair.server.is_handshaking());
            pair.say(b"ping");
            pair.say(&[b'x'; 40_000]);
            pair.run().unwrap();
            assert_eq!((&pair.plain[..4], pair.plain.len()), (&b"ping"[..], 40_004));
            let body: Vec<u8> = (0..50_000_u32).map(|i| i as u8).collect();
            pair.server.seal(b"pong", &mut pair.out).unwrap();
            pair.server.seal(&body, &mut pair.out).unwrap();
            let answer = std::mem::take(&mut pair.out);
            let mut heard = Vec::new();
            for piece in answer.chunks(4096) {
                pair.feed_client(piece).unwrap();
                use std::io::Read as _;
                let mut some = vec![0; 32 * 1024];
                while let Ok(count @ 1..) = pair.client.reader().read(&mut some) {
                    heard.extend_from_slice(&some[..count]);
                }
            }
            assert_eq!(&heard[..4], b"pong");
            assert!(heard[4..] == body[..], "{} bytes", heard.len());
        }
    }
}

#[test]
fn the_variables_are_spelt_as_openssl_spells_them() {
    let acceptor = acceptor(&AcceptorOptions::default());
    let pair = meet(&acceptor, &Visitor::new(&TLS13, BOTH, &[]), "a.example").unwrap();
    let shown = (pair.server.protocol(), pair.server.cipher(), pair.server.curve());
    assert_eq!(shown, ("TLSv1.3", "TLS_AES_256_GCM_SHA384", "X25519MLKEM768"));
    assert_eq!(pair.server.server_name(), Some("a.example"));
    assert!(!pair.server.is_resumed());
    let pair = meet(&acceptor, &Visitor::new(&TLS12, BOTH, &[]), "A.Example").unwrap();
    let shown = (pair.server.protocol(), pair.server.cipher(), pair.server.curve());
    assert_eq!(shown, ("TLSv1.2", "ECDHE-ECDSA-AES256-GCM-SHA384", "X25519"));
    assert_eq!(pair.server.server_name(), Some("a.example"));
    let pair = meet(&acceptor, &Visitor::new(&TLS13, BOTH, &[]), "127.0.0.1").unwrap();
    assert_eq!(pair.server.server_name(), None);
}

#[test]
fn the_configured_ciphers_groups_and_versions_are_obeyed() {
    let options = AcceptorOptions {
        ciphers: names::ciphers("ECDHE-ECDSA-CHACHA20-POLY1305").unwrap().suites,
        ciphersuites: names::ciphersuites("TLS_CHACHA20_POLY1305_SHA256").0,
        curves: names::curves("secp384r1").0,
        ..AcceptorOptions::default()
    };
    let both = acceptor(&options);
    let pair = meet(&both, &Visitor::new(&TLS13, BOTH, &[]), "a.example").unwrap();
    let shown = (pair.server.cipher(), pair.server.curve());
    assert_eq!(shown, ("TLS_CHACHA20_POLY1305_SHA256", "secp384r1"));
    let pair = meet(&both, &Visitor::new(&TLS12, BOTH, &[]), "a.example").unwrap();
    assert_eq!(pair.server.cipher(), "ECDHE-ECDSA-CHACHA20-POLY1305");
    let versions = Versions { tls12: false, tls13: true };
    let only13 = acceptor(&AcceptorOptions { versions, ..options.clone() });
    assert!(meet(&only13, &Visitor::new(&TLS12, BOTH, &[]), "a.example").is_err());
    for (order, cipher) in [
        (CipherOrder::Client, "TLS_AES_256_GCM_SHA384"),
        (CipherOrder::Server, "TLS_AES_128_GCM_SHA256"),
    ] {
        let ciphersuites = names::ciphersuites("TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384").0;
        let options = AcceptorOptions { order, ciphersuites, ..AcceptorOptions::default() };
        let acceptor = acceptor(&options);
        let pair = meet(&acceptor, &Visitor::new(&TLS13, BOTH, &[]), "a.example").unwrap();
        assert_eq!(pair.server.cipher(), cipher);
    }
    let versions = Versions { tls12: false, tls13: false };
    let options = AcceptorOptions { versions, ..options };
    assert!(Acceptor::new(&Arc::new(ServerCerts::new()), &options).is_err());
}

#[test]
fn the_certificate_follows_the_name_and_the_clients_signatures() {
    let [exact, wild, ecdsa] = ["a.example", "*.example", "default.test"].map(certificate);
    let rsa = rsa_certificate();
    let mut certs = ServerCerts::new();
    let set = certs.add(vec![exact.clone()]);
    certs.name("a.example", set);
    let set = certs.add(vec![wild.clone()]);
    certs.name("*.example", set);
    let set = certs.add(vec![ecdsa.clone(), rsa.clone()]);
    certs.set_default(set);
    let acceptor = acceptor_of(certs, &AcceptorOptions::default());
    let cases = [
        ("a.example", BOTH, &exact),
        ("b.example", BOTH, &wild),
        ("x.b.example", BOTH, &wild),
        ("other.test", BOTH, &ecdsa),
        ("other.test", ECDSA, &ecdsa),
        ("other.test", RSA, &rsa),
    ];
    for version in [&TLS12, &TLS13] {
        for (name, schemes, expected) in &cases {
            let visitor = Visitor::new(version, schemes, &[]);
            meet(&acceptor, &visitor, name).unwrap();
            let seen = visitor.believer.seen.lock().unwrap();
            assert!(*seen == expected.leaf(), "{name} with {schemes:?}");
        }
    }
    let refused = meet(&acceptor, &Visitor::new(&TLS13, RSA, &[]), "a.example");
    assert!(refused.is_err(), "an RSA-only client cannot use an ECDSA certificate");
}

#[test]
fn alpn_prefers_the_servers_order_and_refuses_strangers() {
    let alpn = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let acceptor = acceptor(&AcceptorOptions { alpn, ..AcceptorOptions::default() });
    let agreed = |offer: &[&[u8]]| {
        let pair = meet(&acceptor, &Visitor::new(&TLS13, BOTH, offer), "a.example");
        pair.map(|pair| pair.server.alpn().map(<[u8]>::to_vec))
    };
    assert_eq!(agreed(&[]).unwrap(), None);
    assert_eq!(agreed(&[b"http/1.1", b"h2"]).unwrap().unwrap(), b"h2");
    assert_eq!(agreed(&[b"http/1.1"]).unwrap().unwrap(), b"http/1.1");
    assert!(agreed(&[b"spdy/3"]).is_err());
}

#[test]
fn a_session_is_resumed_by_another_acceptor_that_shares_the_tickets() {
    let tickets = Some(Arc::new(Tickets::rotating(60, CommonTickets::default()).unwrap()));
    let certificate = certificate("default.example");
    let acceptor_like = |options: &AcceptorOptions| {
        let mut certs = ServerCerts::new();
        let set = certs.add(vec![certificate.clone()]);
        certs.set_default(set);
        acceptor_of(certs, options)
    };
    for version in [&TLS12, &TLS13] {
        let options = AcceptorOptions { tickets: tickets.clone(), ..AcceptorOptions::default() };
        let visitor = Visitor::new(version, BOTH, &[]);
        let first = meet(&acceptor_like(&options), &visitor, "a.example").unwrap();
        assert!(!first.server.is_resumed());
        let other = meet(&acceptor(&options), &visitor, "a.example").unwrap();
        assert!(!other.server.is_resumed(), "its certificate is another one");
        let first = meet(&acceptor_like(&options), &visitor, "a.example").unwrap();
        assert!(!first.server.is_resumed());
        let second = meet(&acceptor_like(&options), &visitor, "a.example").unwrap();
        assert!(second.server.is_resumed());
        assert_eq!(second.server.server_name(), Some("a.example"));
        let stranger = AcceptorOptions {
            tickets: Some(Arc::new(Tickets::rotating(60, CommonTickets::default()).unwrap())),
            ..AcceptorOptions::default()
        };
        let third = meet(&acceptor_like(&stranger), &visitor, "a.example").unwrap();
        assert!(!third.server.is_resumed());
    }
}

#[test]
fn a_close_reaches_the_other_side() {
    for version in [&TLS12, &TLS13] {
        let acceptor = acceptor(&AcceptorOptions::default());
        let mut pair = meet(&acceptor, &Visitor::new(version, BOTH, &[]), "a.example").unwrap();
        pair.say(b"last");
        pair.client.send_close_notify();
        pair.run().unwrap();
        assert_eq!((&pair.plain[..], pair.peer_closed), (&b"last"[..], true));
        pair.server.seal(b"late", &mut pair.out).unwrap();
        pair.server.close(&mut pair.out);
        let length = pair.out.len();
        pair.server.close(&mut pair.out);
        assert_eq!(pair.out.len(), length, "a second close says nothing");
        let answer = std::mem::take(&mut pair.out);
        pair.feed_client(&answer).unwrap();
        assert_eq!(pair.heard(4), b"late");
        assert!(pair.client.process_new_packets().unwrap().peer_has_closed());
        assert!(pair.server.seal(b"x", &mut pair.out).is_err());
    }
}

#[test]
fn garbage_is_answered_with_an_alert_and_ends_the_session() {
    for garbage in [&b"GET / HTTP/1.1\r\n\r\n"[..], &[0x16, 3, 1, 0, 4, 1, 0, 0, 0], &[0x17; 64]] {
        let mut session = TlsSession::new(&acceptor(&AcceptorOptions::default())).unwrap();
        let (mut plain, mut out) = (Vec::new(), Vec::new());
        let mut bytes = garbage.to_vec();
        assert!(session.receive(&mut bytes, &mut plain, &mut out).is_err());
        assert_eq!((out[0], plain.len()), (21, 0), "{garbage:?}");
        assert!(session.receive(&mut [], &mut plain, &mut out).is_err());
        assert!(session.seal(b"x", &mut out).is_err());
    }
    assert!(super::opens_handshake(0x16) && !super::opens_handshake(b'G'));
}

#[test]
fn a_changed_record_is_refused_with_an_alert() {
    for version in [&TLS12, &TLS13] {
        let acceptor = acceptor(&AcceptorOptions::default());
        let mut pair = meet(&acceptor, &Visitor::new(version, BOTH, &[]), "a.example").unwrap();
        pair.say(b"secret");
        let mut wire = Vec::new();
        pair.client.write_tls(&mut wire).unwrap();
        let last = wire.len() - 1;
        wire[last] ^= 1;
        let (mut plain, mut out) = (Vec::new(), Vec::new());
        assert!(pair.server.receive(&mut wire, &mut plain, &mut out).is_err());
        assert!(plain.is_empty() && !out.is_empty());
        let told = pair.feed_client(&out).unwrap_err();
        assert!(told.contains("BadRecordMac"), "{told}");
    }
}

#[test]
fn the_peers_key_updates_are_followed_and_answered() {
    let acceptor = acceptor(&AcceptorOptions::default());
    let mut pair = meet(&acceptor, &Visitor::new(&TLS13, BOTH, &[]), "a.example").unwrap();
    for round in 0..5_u8 {
        pair.client.refresh_traffic_keys().unwrap();
        pair.say(&[round; 10]);
        pair.run().unwrap();
        pair.server.seal(&[round; 20], &mut pair.out).unwrap();
        pair.run().unwrap();
        assert_eq!(pair.heard(20), [round; 20]);
    }
    assert_eq!(pair.plain.len(), 50);
}

#[test]
fn a_message_left_unfinished_after_the_handshake_ends_the_session() {
    for bytes in [&[24, 0][..], &[24, 0, 0, 1, 0, 24, 0], &[24, 0, 0, 1], &[]] {
        let acceptor = acceptor(&AcceptorOptions::default());
        let pair = meet(&acceptor, &Visitor::new(&TLS13, BOTH, &[]), "a.example").unwrap();
        let (mut server, client) = (pair.server, pair.client);
        let mut record = Vec::new();
        let mut keys = Lane::new(client.dangerous_extract_secrets().unwrap().tx).unwrap();
        keys.seal(22, bytes, &mut record).unwrap();
        let (mut plain, mut out) = (Vec::new(), Vec::new());
        let result = server.receive(&mut record, &mut plain, &mut out);
        assert!(result.is_err(), "{bytes:?} gives {result:?}");
        assert!(server.seal(b"x", &mut out).is_err());
        server.close(&mut out);
    }
}

#[test]
fn a_session_may_be_asked_anything_in_the_middle_of_a_fragmented_hello() {
    let acceptor = acceptor(&AcceptorOptions::default());
    let mut hello = Vec::new();
    Visitor::new(&TLS13, BOTH, &[]).client("a.example").write_tls(&mut hello).unwrap();
    // The same message in two records, of which the second is late.
    let (first, second) = hello[5..].split_at(100);
    let record = |part: &[u8]| [&[22, 3, 1][..], &(part.len() as u16).to_be_bytes(), part].concat();
    let (mut plain, mut out) = (Vec::new(), Vec::new());
    let mut session = TlsSession::new(&acceptor).unwrap();
    let mut cipher = record(first);
    let received = session.receive(&mut cipher, &mut plain, &mut out).unwrap();
    cipher.drain(..received.consumed);
    session.close(&mut out);
    assert!(session.seal(b"x", &mut out).is_err() && out.is_empty());
    cipher.extend(record(second));
    let received = session.receive(&mut cipher, &mut plain, &mut out).unwrap();
    assert_eq!((received.consumed, out.first()), (cipher.len(), Some(&22)));
    assert_eq!(session.server_name(), Some("a.example"));

    let mut careless = TlsSession::new(&acceptor).unwrap();
    careless.receive(&mut record(first), &mut plain, &mut out).unwrap();
    assert!(careless.receive(&mut [], &mut plain, &mut out).is_err(), "the part is needed");
}

#[test]
fn the_name_of_a_refused_session_is_not_the_next_ones() {
    let refusing = acceptor_of(ServerCerts::new(), &AcceptorOptions::default());
    assert!(meet(&refusing, &Visitor::new(&TLS13, BOTH, &[]), "a.example").is_err());
    let acceptor = acceptor(&AcceptorOptions::default());
    let pair = meet(&acceptor, &Visitor::new(&TLS13, BOTH, &[]), "127.0.0.1").unwrap();
    assert_eq!(pair.server.server_name(), None);
}

#[test]
fn a_hello_of_another_session_sets_no_name_here() {
    let acceptor = acceptor(&AcceptorOptions::default());
    let visitor = Visitor::new(&TLS13, BOTH, &[]);
    let hello_of = |name: &str| {
        let mut hello = Vec::new();
        visitor.client(name).write_tls(&mut hello).unwrap();
        hello
    };
    let mut session = TlsSession::new(&acceptor).unwrap();
    // As in QUIC: by the library, without a session.
    let mut stranger = rustls::ServerConnection::new(Arc::clone(&acceptor.tcp)).unwrap();
    stranger.read_tls(&mut &hello_of("stranger.example")[..]).unwrap();
    stranger.process_new_packets().unwrap();
    let hello = hello_of("own.example");
    let (mut plain, mut out) = (Vec::new(), Vec::new());
    let mut cipher = hello[..7].to_vec();
    let received = session.receive(&mut cipher, &mut plain, &mut out).unwrap();
    assert_eq!((received.consumed, session.server_name()), (0, None));
    cipher.extend_from_slice(&hello[7..]);
    session.receive(&mut cipher, &mut plain, &mut out).unwrap();
    assert_eq!(session.server_name(), Some("own.example"));
}

#[test]
fn no_certificate_means_no_handshake() {
    let acceptor = acceptor_of(ServerCerts::new(), &AcceptorOptions::default());
    assert!(meet(&acceptor, &Visitor::new(&TLS13, BOTH, &[]), "a.example").is_err());
}

#[test]
fn an_ecdsa_key_is_what_self_signed_makes_and_warming_up_works() {
    assert!(KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).is_ok());
    crate::warm_up().unwrap();
    assert!(self_signed(&["localhost", "127.0.0.1", "::1"]).is_ok());
    assert!(self_signed(&["not a name\u{e9}"]).is_err());
}

proptest! {
    #[test]
    fn arbitrary_bytes_never_break_a_session(data: Vec<u8>) {
        fuzz::session(&data);
        fuzz::pem(&data);
        fuzz::statuses(&data);
    }

    #[test]
    fn arbitrary_words_never_break_the_names(text in "[-A-Z0-9:+!@?* a-z]{0,60}") {
        fuzz::names(text.as_bytes());
    }

    #[test]
    fn a_changed_hello_never_breaks_a_session(
        at in any::<usize>(), with in any::<u8>(), step in 0_u8..,
    ) {
        let mut wire = vec![step];
        let mut client = Visitor::new(&TLS13, BOTH, &[]).client("a.example");
        client.write_tls(&mut wire).unwrap();
        let at = 1 + at % (wire.len() - 1);
        wire[at] = with;
        fuzz::session(&wire);
    }
}
