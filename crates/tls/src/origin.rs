//! TLS to upstreams: a location's settings, and one connection's session as a byte machine.
//!
//! ```text
//!   session ──receive──▶ (handshake) ──▶ verdict ──good──▶ seal, receive ──close_notify──▶ closed
//!                │                          │
//!                └── Err                    └── the text of what is wrong
//! ```
//! The handshake accepts every certificate whose key signs it, as nginx's does; the verification of
//! the certificate comes afterwards. Easiest to break: the caller must check `verdict`, for resumed
//! sessions too, before it sends any data.

use std::collections::HashMap;
use std::fmt;
use std::io::{Read, Write};
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex, PoisonError};

use rustls::client::{ResolvesClientCert, Resumption};
use rustls::crypto::{CryptoProvider, SupportedKxGroup, aws_lc_rs};
use rustls::pki_types::ServerName;
use rustls::sign::CertifiedKey;
use rustls::version::{TLS12, TLS13};
use rustls::{ClientConfig, ClientConnection, Error, SignatureScheme, SupportedCipherSuite};

use crate::client::AnyServerCert;
use crate::{ClientAuth, LoadedCertificate, Versions, origin_messages};

/// LIMIT: names whose sessions are stored, of one server and the settings of one location.
const NAMES_MAX: usize = 32;
/// LIMIT: servers whose sessions are stored with the settings of one location.
const SERVERS_MAX: usize = 256;

/// The TLS settings for upstreams.
#[derive(Clone, Debug)]
pub struct OriginOptions {
    /// Protocol versions.
    pub versions: Versions,
    /// TLS 1.2 suites, preferred first.
    pub ciphers: Vec<SupportedCipherSuite>,
    /// TLS 1.3 suites, preferred first.
    pub ciphersuites: Vec<SupportedCipherSuite>,
    /// Key exchange groups, preferred first.
    pub curves: Vec<&'static dyn SupportedKxGroup>,
    /// Whether to send the server name (SNI).
    pub tells_name: bool,
    /// Whether sessions are resumed.
    pub keeps_sessions: bool,
    /// The application protocols that are offered by ALPN; empty for none.
    pub alpn: Vec<Vec<u8>>,
}

/// Loads the certificate that two texts name, or returns the log text of the failure.
type Loader = dyn Fn(&[u8], &[u8]) -> Result<LoadedCertificate, String> + Send + Sync;

/// The shared part of connections from some locations to upstreams, for one configuration
/// generation.
pub struct OriginTls {
    config: Arc<ClientConfig>,
    /// By server, because one server does not know the sessions of another; `None` stores none.
    servers: Option<Mutex<HashMap<Box<str>, Arc<ClientConfig>>>>,
    trust: Option<Arc<ClientAuth>>,
    loader: Option<Box<Loader>>,
}

impl OriginTls {
    /// Sends `certificate` to upstreams that request one.
    ///
    /// # Errors
    ///
    /// As text, when versions, suites and groups leave nothing to offer.
    pub fn new(
        options: &OriginOptions,
        certificate: Option<LoadedCertificate>,
    ) -> Result<Self, String> {
        let mut suites = Vec::new();
        let mut versions = Vec::new();
        if options.versions.tls13 && !options.ciphersuites.is_empty() {
            suites.extend_from_slice(&options.ciphersuites);
            versions.push(&TLS13);
        }
        if options.versions.tls12 && !options.ciphers.is_empty() {
            suites.extend_from_slice(&options.ciphers);
            versions.push(&TLS12);
        }
        if versions.is_empty() {
            return Err("no TLS version with a usable cipher is enabled".to_owned());
        }
        let provider = Arc::new(CryptoProvider {
            cipher_suites: suites,
            kx_groups: options.curves.clone(),
            ..aws_lc_rs::default_provider()
        });
        let any_cert = Arc::new(AnyServerCert::new(&provider));
        let builder = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&versions)
            .map_err(|error| error.to_string())?
            .dangerous()
            .with_custom_certificate_verifier(any_cert);
        let mut config = match certificate {
            Some(certificate) => builder.with_client_cert_resolver(Arc::new(Shown(certificate))),
            None => builder.with_no_client_auth(),
        };
        config.enable_sni = options.tells_name;
        config.alpn_protocols.clone_from(&options.alpn);
        config.resumption = Resumption::disabled();
        let servers = options.keeps_sessions.then(Mutex::default);
        Ok(Self { config: Arc::new(config), servers, trust: None, loader: None })
    }

    /// The settings for connections to `server`, with its sessions.
    fn config_of(&self, server: &str) -> Arc<ClientConfig> {
        let Some(servers) = &self.servers else { return Arc::clone(&self.config) };
        let mut servers = servers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(config) = servers.get(server) {
            return Arc::clone(config);
        }
        if servers.len() >= SERVERS_MAX {
            servers.clear();
        }
        let mut config = ClientConfig::clone(&self.config);
        config.resumption = Resumption::in_memory_sessions(NAMES_MAX);
        let config = Arc::new(config);
        servers.insert(server.into(), Arc::clone(&config));
        config
    }

    /// Requires an upstream certificate that `trust` verifies, and that matches the host.
    pub fn trust(&mut self, trust: ClientAuth) {
        self.trust = Some(Arc::new(trust.for_servers()));
    }

    /// Loads the client certificate for each connection.
    pub fn load(
        &mut self,
        loader: impl Fn(&[u8], &[u8]) -> Result<LoadedCertificate, String> + Send + Sync + 'static,
    ) {
        self.loader = Some(Box::new(loader));
    }

    /// Begins a session with the upstream `name` at the address `server`; `pems` name the
    /// certificate and its key where they are loaded for each connection.
    ///
    /// # Errors
    ///
    /// In nginx's words: a certificate cannot be loaded.
    pub fn session(
        &self,
        name: &[u8],
        server: &str,
        pems: Option<(&[u8], &[u8])>,
    ) -> Result<OriginSession, String> {
        let mut config = self.config_of(server);
        if let (Some(loader), Some((chain, key))) = (&self.loader, pems)
            && !chain.is_empty()
        {
            let own = Arc::make_mut(&mut config);
            own.client_auth_cert_resolver = Arc::new(Shown(loader(chain, key)?));
            // A session carries the credentials that it was made with.
            own.resumption = Resumption::disabled();
        }
        let mut conn =
            ClientConnection::new(config, server_name(name)).map_err(|error| error.to_string())?;
        conn.set_buffer_limit(None);
        Ok(OriginSession { conn, trust: self.trust.clone(), name: name.into(), peer_closed: false })
    }
}

impl fmt::Debug for OriginTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OriginTls").field("trust", &self.trust).finish_non_exhaustive()
    }
}

/// The library's form of a server name. Anything that is not a name is an address, and SNI does not
/// carry addresses.
fn server_name(name: &[u8]) -> ServerName<'static> {
    let text = std::str::from_utf8(name).unwrap_or_default();
    let nameless = ServerName::IpAddress(Ipv4Addr::UNSPECIFIED.into());
    ServerName::try_from(text.to_owned()).unwrap_or(nameless)
}

/// The certificate for upstreams that request one.
#[derive(Debug)]
struct Shown(LoadedCertificate);

impl ResolvesClientCert for Shown {
    fn resolve(&self, _: &[&[u8]], schemes: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        let fits = self.0.key().choose_scheme(schemes).is_some();
        fits.then(|| self.0.certified())
    }

    fn has_certs(&self) -> bool {
        true
    }
}

/// Our side of a TLS connection to an upstream.
pub struct OriginSession {
    conn: ClientConnection,
    trust: Option<Arc<ClientAuth>>,
    name: Box<[u8]>,
    peer_closed: bool,
}

/// Why a session has ended. `Display` gives OpenSSL's words where it has some.
#[derive(Clone, Debug)]
pub struct OriginFault(Error);

impl fmt::Display for OriginFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&origin_messages::of(&self.0))
    }
}

impl OriginSession {
    /// Takes all of `cipher`, and appends its data to `plain`, up to the first error. There may be
    /// bytes to [`Self::transmit`] afterwards, whatever the outcome.
    ///
    /// # Errors
    ///
    /// The session is over.
    pub fn receive(&mut self, mut cipher: &[u8], plain: &mut Vec<u8>) -> Result<(), OriginFault> {
        while !cipher.is_empty() && !self.peer_closed {
            if !matches!(self.conn.read_tls(&mut cipher), Ok(1..)) {
                return Err(OriginFault(Error::General("the origin says too much".to_owned())));
            }
            let state = self.conn.process_new_packets();
            if let Ok(state) = &state {
                self.peer_closed = state.peer_has_closed();
                plain.reserve(state.plaintext_bytes_to_read());
            }
            // Data before an invalid record is valid. It ends with "nothing more yet".
            let _ = self.conn.reader().read_to_end(plain);
            state.map_err(OriginFault)?;
        }
        Ok(())
    }

    /// Appends the session's own messages: its part of the handshake, alerts, key updates.
    pub fn transmit(&mut self, out: &mut Vec<u8>) {
        while self.conn.wants_write() && matches!(self.conn.write_tls(out), Ok(1..)) {}
    }

    /// Appends `plain` to `out` in records.
    pub fn seal(&mut self, plain: &[u8], out: &mut Vec<u8>) {
        debug_assert!(!self.is_handshaking(), "nothing is said to a stranger");
        // Without a limit the library accepts all bytes.
        let _ = self.conn.writer().write_all(plain);
        self.transmit(out);
    }

    /// Appends a `close_notify`; nothing may be sealed afterwards.
    pub fn close(&mut self, out: &mut Vec<u8>) {
        self.conn.send_close_notify();
        self.transmit(out);
    }

    /// Whether data cannot be encrypted yet.
    #[must_use]
    pub fn is_handshaking(&self) -> bool {
        self.conn.is_handshaking()
    }

    /// Whether the upstream closed its side.
    #[must_use]
    pub const fn peer_closed(&self) -> bool {
        self.peer_closed
    }

    /// After the handshake: why the upstream's certificate fails, in nginx's words; `None` if it
    /// passes or is not verified.
    #[must_use]
    pub fn verdict(&self) -> Option<String> {
        let trust = self.trust.as_ref()?;
        let chain = self.conn.peer_certificates().unwrap_or_default();
        trust.judge_host(chain, &self.name)
    }
}

impl fmt::Debug for OriginSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OriginSession")
            .field("name", &String::from_utf8_lossy(&self.name))
            .field("is_handshaking", &self.is_handshaking())
            .field("peer_closed", &self.peer_closed)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
