//! The shared part of all TLS connections of one listening socket, for one configuration
//! generation. It refuses settings with which no handshake could succeed.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use bolide_base::ClientCert;
use rustls::crypto::{CryptoProvider, SupportedKxGroup, aws_lc_rs};
use rustls::pki_types::CertificateDer;
use rustls::server::NoServerSessionStorage;
use rustls::version::{TLS12, TLS13};
use rustls::{ServerConfig, SupportedCipherSuite};

use crate::asking::Asker;
use crate::by_name::ByName;
use crate::sessions::{SessionContexts, SessionStamp, StampedSessions, StampedTickets};
use crate::{CertSet, ServerCerts, Sessions, Tickets, names};

/// Single-use sessions that may be resumed with 0-RTT.
const EARLY_SESSIONS_MAX: usize = 4096;

/// Protocol versions that are offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Versions {
    /// TLS 1.2.
    pub tls12: bool,
    /// TLS 1.3.
    pub tls13: bool,
}

/// Whose order of ciphers takes precedence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CipherOrder {
    /// The server's: `ssl_prefer_server_ciphers on`.
    Server,
    /// The client's.
    Client,
}

/// Whether QUIC clients may send requests with their first flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EarlyData {
    /// Never.
    Off,
    /// With a single-use session (RFC 8446 §8.1), kept in memory instead of tickets.
    SingleUse,
}

/// The TLS settings of a socket; [`AcceptorOptions::default`] is for a site without `ssl_*`.
#[derive(Clone, Debug)]
pub struct AcceptorOptions {
    /// Protocol versions of TCP connections; QUIC is always TLS 1.3.
    pub versions: Versions,
    /// Application protocols of TCP connections, preferred first; empty disables ALPN.
    pub alpn: Vec<Vec<u8>>,
    /// TLS 1.2 suites, preferred first.
    pub ciphers: Vec<SupportedCipherSuite>,
    /// TLS 1.3 suites, preferred first.
    pub ciphersuites: Vec<SupportedCipherSuite>,
    /// Key exchange groups, preferred first.
    pub curves: Vec<&'static dyn SupportedKxGroup>,
    /// Whose order of ciphers takes precedence.
    pub order: CipherOrder,
    /// Ticket keys; `None` issues no tickets.
    pub tickets: Option<Arc<Tickets>>,
    /// The session store for clients without tickets; `None`: no store.
    pub sessions: Option<Sessions>,
    /// How many seconds a session can be resumed.
    pub session_lifetime: u32,
    /// 0-RTT for QUIC.
    pub early_data: EarlyData,
}

impl Default for AcceptorOptions {
    fn default() -> Self {
        Self {
            versions: Versions { tls12: true, tls13: true },
            alpn: Vec::new(),
            ciphers: names::default_ciphers(),
            ciphersuites: names::default_ciphersuites(),
            curves: names::default_curves(),
            order: CipherOrder::Client,
            tickets: None,
            sessions: None,
            session_lifetime: 300,
            early_data: EarlyData::Off,
        }
    }
}

/// Why the options allow no acceptor, as text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AcceptorError(String);

impl fmt::Display for AcceptorError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for AcceptorError {}

/// Makes sessions. Existing connections keep the settings that they were made with.
#[derive(Clone, Debug)]
pub struct Acceptor {
    pub(crate) tcp: Arc<ServerConfig>,
    /// Only when a server has a different offer over TCP.
    pub(crate) by_name: Option<Arc<ByName>>,
    quic: Option<Arc<ServerConfig>>,
    /// Only when a server requests client certificates.
    asking: Option<Arc<ServerCerts>>,
    loads: bool,
}

impl Acceptor {
    /// Lets servers offer other versions, ciphers, order or protocols over TCP than those of
    /// [`Self::new`]; all other settings stay the same. `names` maps server names to the sets that
    /// `others` are for; it needs no certificates.
    ///
    /// # Errors
    ///
    /// As [`Self::new`].
    pub fn vary(
        &mut self,
        certs: &Arc<ServerCerts>,
        names: ServerCerts,
        others: &[(CertSet, AcceptorOptions)],
    ) -> Result<(), AcceptorError> {
        let mut by_set = HashMap::new();
        for (set, options) in others {
            let mut config = server_config(certs, options, options.versions)?;
            config.alpn_protocols.clone_from(&options.alpn);
            config.ticketer = Arc::clone(&self.tcp.ticketer);
            config.session_storage = Arc::clone(&self.tcp.session_storage);
            config.send_tls13_tickets = self.tcp.send_tls13_tickets;
            config.enable_secret_extraction = true;
            by_set.insert(*set, Arc::new(config));
        }
        let usual = Arc::clone(&self.tcp);
        self.by_name = Some(Arc::new(ByName { usual, names, others: by_set }));
        Ok(())
    }

    /// Prepares both the TCP and the QUIC side.
    ///
    /// # Errors
    ///
    /// As text, when the versions, suites and groups leave nothing to negotiate.
    pub fn new(certs: &Arc<ServerCerts>, options: &AcceptorOptions) -> Result<Self, AcceptorError> {
        let mut tcp = server_config(certs, options, options.versions)?;
        tcp.alpn_protocols.clone_from(&options.alpn);
        // PERF: a ticket costs an HKDF and an AEAD. Browsers that open several HTTP/1.1 connections
        // at once use two, HTTP/3 clients open one connection.
        let stamp = SessionStamp {
            lifetime: options.session_lifetime,
            contexts: SessionContexts::of(certs),
        };
        keep_sessions(&mut tcp, options, 2, &stamp);
        // This crate encrypts and decrypts records once the handshake is over.
        tcp.enable_secret_extraction = true;
        let quic = match server_config(certs, options, Versions { tls12: false, tls13: true }) {
            Ok(config) => Some(Arc::new(quic_config(config, options, stamp))),
            Err(_) => None,
        };
        let asking = certs.asks_clients().then(|| Arc::clone(certs));
        let loads = certs.loads();
        Ok(Self { tcp: Arc::new(tcp), by_name: None, quic, asking, loads })
    }

    /// The QUIC side (TLS 1.3, ALPN `h3`) for `bolide_quic::Endpoint`; `None` when the options
    /// leave no TLS 1.3 suite.
    #[must_use]
    pub fn quic(&self) -> Option<Arc<ServerConfig>> {
        self.quic.clone()
    }

    /// Whether a server's certificates are loaded during handshakes.
    #[must_use]
    pub const fn loads(&self) -> bool {
        self.loads
    }

    /// Whether parts of it are shared with others than the caller, such as its connections.
    #[must_use]
    pub fn is_in_use(&self) -> bool {
        let is_shared = |config: &Arc<ServerConfig>| Arc::strong_count(config) > 1;
        let mut others = self.by_name.iter().flat_map(|by_name| by_name.others.values());
        is_shared(&self.tcp)
            || self.quic.as_ref().is_some_and(is_shared)
            || self.by_name.as_ref().is_some_and(|by_name| Arc::strong_count(by_name) > 1)
            || others.any(is_shared)
    }

    /// Whether a server requests client certificates.
    #[must_use]
    pub const fn asks_clients(&self) -> bool {
        self.asking.is_some()
    }

    /// Whether `other` would verify every client of that name with the same files.
    #[must_use]
    pub fn judges_like(&self, other: &Self, server_name: Option<&str>) -> bool {
        let judge = |acceptor: &Self| {
            let certs = acceptor.asking.as_ref()?;
            Some(*certs.client_auth(certs.choose(server_name)?)?.digest())
        };
        judge(self) == judge(other)
    }

    /// The facts of the client's certificates with their verification; `None` when the server of
    /// that name requests none, or the client has none. Called once per connection.
    #[must_use]
    pub fn client_cert(
        &self,
        server_name: Option<&str>,
        chain: Option<&[CertificateDer<'_>]>,
    ) -> Option<Box<ClientCert>> {
        let certs = self.asking.as_ref()?;
        let auth = certs.client_auth(certs.choose(server_name)?)?;
        auth.judge(chain?, self.tcp.time_provider.current_time()?)
    }
}

fn quic_config(
    mut config: ServerConfig,
    options: &AcceptorOptions,
    stamp: SessionStamp,
) -> ServerConfig {
    config.alpn_protocols = vec![b"h3".to_vec()];
    if options.early_data == EarlyData::Off {
        keep_sessions(&mut config, options, 1, &stamp);
    } else {
        // The library accepts 0-RTT only for sessions that it can delete after one use.
        config.send_tls13_tickets = 1;
        let sessions = Sessions::new(EARLY_SESSIONS_MAX);
        config.session_storage = Arc::new(StampedSessions { sessions, stamp });
        // RFC 9001 §4.6.1: any value but 0xffffffff is a connection error at the client.
        config.max_early_data_size = u32::MAX;
    }
    config
}

fn server_config(
    certs: &Arc<ServerCerts>,
    options: &AcceptorOptions,
    versions: Versions,
) -> Result<ServerConfig, AcceptorError> {
    let mut suites = Vec::new();
    let mut offered = Vec::new();
    if versions.tls13 && !options.ciphersuites.is_empty() {
        suites.extend_from_slice(&options.ciphersuites);
        offered.push(&TLS13);
    }
    if versions.tls12 && !options.ciphers.is_empty() {
        suites.extend_from_slice(&options.ciphers);
        offered.push(&TLS12);
    }
    if offered.is_empty() {
        return Err(AcceptorError("no TLS version with a usable cipher is enabled".into()));
    }
    let provider = CryptoProvider {
        cipher_suites: suites,
        kx_groups: options.curves.clone(),
        ..aws_lc_rs::default_provider()
    };
    let builder = ServerConfig::builder_with_provider(Arc::new(provider))
        .with_protocol_versions(&offered)
        .map_err(|error| AcceptorError(error.to_string()))?;
    let builder = if certs.asks_clients() {
        builder.with_client_cert_verifier(Arc::new(Asker::new(certs)))
    } else {
        builder.with_no_client_auth()
    };
    let mut config = builder.with_cert_resolver(Arc::<ServerCerts>::clone(certs));
    config.ignore_client_order = options.order == CipherOrder::Server;
    config.session_storage = Arc::new(NoServerSessionStorage {});
    Ok(config)
}

fn keep_sessions(
    config: &mut ServerConfig,
    options: &AcceptorOptions,
    count: usize,
    stamp: &SessionStamp,
) {
    config.send_tls13_tickets = 0;
    if let Some(sessions) = options.sessions.clone() {
        config.session_storage = Arc::new(StampedSessions { sessions, stamp: stamp.clone() });
        config.send_tls13_tickets = count;
    }
    if let Some(tickets) = &options.tickets {
        let tickets = Arc::clone(&tickets.0);
        config.ticketer = Arc::new(StampedTickets { tickets, stamp: stamp.clone() });
        config.send_tls13_tickets = count;
    }
}
