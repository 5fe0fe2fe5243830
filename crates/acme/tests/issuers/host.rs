//! A server that presents challenges by itself, and a clock that tests set forward.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bolide_acme::{
    AccountKey, AccountName, AcmeHost, AcmeIssuer, AcmeLogLevel, AcmeNow, AcmeOrder,
    AcmeOrderReport, AcmePlan, AcmeService, AcmeSetting, CertificateKey, Challenge, ChallengeKind,
    OrderId,
};
use bolide_testkit::Pebble;
use bolide_testkit::ports::TestPorts;
use rcgen::{CertificateParams, CustomExtension, KeyPair};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;

#[derive(Default)]
pub(crate) struct HostState {
    tokens: BTreeMap<(String, String), String>,
    digests: BTreeMap<String, [u8; 32]>,
    /// Every certificate that was installed, with its key.
    pub(crate) installed: Vec<(OrderId, Vec<u8>, Vec<u8>)>,
    pub(crate) log: Vec<(AcmeLogLevel, String)>,
    /// Names whose validations get a wrong answer.
    pub(crate) wrong: BTreeSet<String>,
    /// The account that other servers have, and those that are over.
    pub(crate) common: Option<Vec<u8>>,
    pub(crate) over: Vec<Vec<u8>>,
    /// Validations that were answered.
    pub(crate) validations: usize,
    /// The most challenges at a time.
    pub(crate) presented_most: usize,
}

/// The server of a test.
pub(crate) struct TestHost {
    pub(crate) ports: TestPorts,
    pub(crate) state: Arc<Mutex<HostState>>,
}

impl TestHost {
    pub(crate) fn start() -> Arc<Self> {
        let host = Arc::new(Self { ports: TestPorts::claim(), state: Arc::default() });
        let (plain, tls) = (host.listen(0), host.listen(1));
        let state = host.state.clone();
        std::thread::spawn(move || {
            for stream in plain.incoming().flatten() {
                let state = state.clone();
                std::thread::spawn(move || answer(stream, &state));
            }
        });
        let resolver = Arc::new(AlpnCertificates(host.state.clone()));
        let mut config = rustls::ServerConfig::builder_with_provider(Arc::new(
            rustls::crypto::aws_lc_rs::default_provider(),
        ))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_cert_resolver(resolver);
        config.alpn_protocols = vec![b"acme-tls/1".to_vec()];
        let config = Arc::new(config);
        std::thread::spawn(move || {
            for mut stream in tls.incoming().flatten() {
                let config = config.clone();
                std::thread::spawn(move || {
                    let mut connection = rustls::ServerConnection::new(config).unwrap();
                    let _refused = connection.complete_io(&mut stream);
                });
            }
        });
        host
    }

    fn listen(&self, port: usize) -> TcpListener {
        TcpListener::bind(("127.0.0.1", self.ports.port(port))).unwrap()
    }

    pub(crate) fn state(&self) -> std::sync::MutexGuard<'_, HostState> {
        self.state.lock().unwrap()
    }

    /// The last certificate of an order.
    pub(crate) fn installed(&self, id: &OrderId) -> Option<(Vec<u8>, Vec<u8>)> {
        let state = self.state();
        let found = state.installed.iter().rev().find(|(known, _, _)| known == id);
        found.map(|(_, chain, key)| (chain.clone(), key.clone()))
    }

    pub(crate) fn log_text(&self) -> String {
        let state = self.state();
        state.log.iter().map(|(level, text)| format!("{level:?} {text}\n")).collect()
    }

    /// How many certificates were installed.
    pub(crate) fn count(&self) -> usize {
        self.state().installed.len()
    }
}

impl AcmeHost for TestHost {
    fn present(&self, challenge: &Challenge) {
        let mut state = self.state();
        match challenge.clone() {
            Challenge::Http01 { name, token, key_authorization } => {
                state.tokens.insert((name, token), key_authorization);
            }
            Challenge::TlsAlpn01 { name, digest } => {
                state.digests.insert(name, digest);
            }
        }
        let most = state.tokens.len() + state.digests.len();
        state.presented_most = state.presented_most.max(most);
    }

    fn withdraw(&self, challenge: &Challenge) {
        let mut state = self.state();
        match challenge.clone() {
            Challenge::Http01 { name, token, .. } => {
                state.tokens.remove(&(name, token));
            }
            Challenge::TlsAlpn01 { name, .. } => {
                state.digests.remove(&name);
            }
        }
    }

    fn install(&self, order: &OrderId, chain: &[u8], key: &[u8]) -> Result<(), String> {
        self.state().installed.push((order.clone(), chain.to_vec(), key.to_vec()));
        Ok(())
    }

    fn account(&self, _: &AccountName) -> Option<Vec<u8>> {
        self.state().common.clone()
    }

    fn forget_account(&self, _: &AccountName, credentials: &[u8]) {
        self.state().over.push(credentials.to_vec());
    }

    fn log(&self, level: AcmeLogLevel, text: &str) {
        assert!(!text.contains("PRIVATE KEY"), "{text}");
        self.state().log.push((level, text.to_owned()));
    }
}

fn answer(mut stream: TcpStream, state: &Mutex<HostState>) {
    let (mut head, mut part) = (Vec::new(), [0; 1024]);
    while !head.windows(4).any(|four| four == b"\r\n\r\n") {
        match stream.read(&mut part) {
            Ok(len @ 1..) => head.extend_from_slice(&part[..len]),
            _ => return,
        }
    }
    let head = String::from_utf8_lossy(&head).to_ascii_lowercase();
    let host = head.lines().find_map(|line| line.strip_prefix("host: ")).unwrap_or("");
    let host = host.rsplit_once(':').map_or(host, |(host, _)| host).to_owned();
    let path = head.split(' ').nth(1).unwrap_or("").to_owned();
    let token = path.strip_prefix("/.well-known/acme-challenge/").unwrap_or("").to_owned();
    let mut state = state.lock().unwrap();
    state.validations += 1;
    let is_asked =
        |(name, known): &(String, String)| *name == host && known.to_ascii_lowercase() == token;
    let found = state.tokens.iter().find(|(key, _)| is_asked(key)).map(|(_, text)| text.clone());
    let text = found.filter(|_| !state.wrong.contains(&host)).unwrap_or_default();
    drop(state);
    let reply = format!(
        "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{text}",
        text.len()
    );
    let _gone = stream.write_all(reply.as_bytes());
}

struct AlpnCertificates(Arc<Mutex<HostState>>);

impl std::fmt::Debug for AlpnCertificates {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("AlpnCertificates")
    }
}

impl ResolvesServerCert for AlpnCertificates {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let name = hello.server_name()?.to_owned();
        let mut state = self.0.lock().unwrap();
        state.validations += 1;
        let digest = *state.digests.get(&name)?;
        let is_wrong = state.wrong.contains(&name);
        drop(state);
        let mut params = CertificateParams::new([name]).unwrap();
        let digest = if is_wrong { [0; 32] } else { digest };
        params.custom_extensions = vec![CustomExtension::new_acme_identifier(&digest)];
        let key = KeyPair::generate().unwrap();
        let certificate = params.self_signed(&key).unwrap();
        let der = rustls::pki_types::PrivateKeyDer::try_from(key.serialize_der()).unwrap();
        let key = rustls::crypto::aws_lc_rs::sign::any_supported_type(&der).unwrap();
        Some(Arc::new(CertifiedKey::new(vec![certificate.der().clone()], key)))
    }
}

/// A clock that runs as the real one does, and is set forward.
#[derive(Clone, Default)]
pub(crate) struct TestClock(Arc<AtomicU64>);

impl TestClock {
    pub(crate) fn forward(&self, seconds: u64) {
        self.0.fetch_add(seconds, Ordering::SeqCst);
    }

    pub(crate) fn setting(&self) -> AcmeSetting {
        let (ahead, real) = (self.0.clone(), AcmeSetting::default().clock);
        let clock = move || {
            let (now, ahead) = (real(), ahead.load(Ordering::SeqCst));
            AcmeNow { unix: now.unix + ahead, mono: now.mono + ahead }
        };
        AcmeSetting {
            clock: Arc::new(clock),
            tick: Duration::from_millis(20),
            ..AcmeSetting::default()
        }
    }
}

pub(crate) fn issuer(pebble: &Pebble, state_path: Option<PathBuf>) -> AcmeIssuer {
    AcmeIssuer {
        name: "pebble".to_owned(),
        authority: bolide_acme::AcmeAuthority::Remote,
        uri: pebble.directory(),
        account_key: AccountKey::Generated(CertificateKey::EcdsaP256),
        contacts: vec!["mailto:admin@a.example".to_owned()],
        challenge: ChallengeKind::Http01,
        external_account: None,
        preferred_chain: None,
        profile: None,
        trusted: Some(pebble.trusted()),
        verify: true,
        state_path,
        accepts_terms: true,
    }
}

pub(crate) fn order(names: &[&str]) -> AcmeOrder {
    AcmeOrder {
        id: OrderId(format!("pebble {} ecdsa", names[0])),
        issuers: vec![0],
        names: names.iter().map(|name| (*name).to_owned()).collect(),
        key: CertificateKey::EcdsaP256,
    }
}

pub(crate) fn plan(issuer: AcmeIssuer, orders: Vec<AcmeOrder>) -> AcmePlan {
    AcmePlan { issuers: vec![issuer], orders, demands: Vec::new() }
}

pub(crate) fn start(host: &Arc<TestHost>, setting: AcmeSetting) -> AcmeService {
    AcmeService::start_with(host.clone(), || Ok(()), setting).unwrap()
}

/// Whether the service says so of its only order; it says nothing before it has heard of the plan.
pub(crate) fn says(service: &AcmeService, what: impl FnOnce(&AcmeOrderReport) -> bool) -> bool {
    service.report().first().is_some_and(what)
}

/// A private state directory.
pub(crate) fn state_dir() -> PathBuf {
    bolide_testkit::site::temp_dir().join("state")
}

/// Checks that what is installed for an order is for its names and its key, and by openssl that
/// the issuer's root vouches for it.
pub(crate) fn check_installed(host: &TestHost, order: &AcmeOrder, root: Option<&str>) {
    let (chain, key) = host.installed(&order.id).expect("a certificate");
    let key = String::from_utf8(key).unwrap();
    bolide_acme::certificate::check(&chain, &key, order.key, &order.names).unwrap();
    let Some(root) = root else { return };
    let dir = bolide_testkit::site::temp_dir();
    std::fs::write(dir.join("chain.pem"), &chain).unwrap();
    std::fs::write(dir.join("root.pem"), root).unwrap();
    let (chain, root) = (dir.join("chain.pem"), dir.join("root.pem"));
    let paths = [root.to_str().unwrap(), chain.to_str().unwrap()];
    let verified = bolide_testkit::run(
        "openssl",
        ["verify", "-CAfile", paths[0], "-untrusted", paths[1], paths[1]],
    );
    let _said = verified.succeeded();
}
