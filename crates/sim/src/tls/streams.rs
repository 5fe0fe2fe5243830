//! TLS over stream sockets: the certificates that the site presents and requests, and those that
//! its clients and applications present.
//!
//! The authority of `certs/authority.pem` issued `member`, `app` and `impostor`; `stranger` is
//! self-signed. All of them are valid from 2020 to 2120.

use std::sync::Arc;

use bolide_tls::{
    Acceptor, AcceptorOptions, CertComplaint, ClientAuth, ClientAuthFiles, LoadedCertificate,
    OriginOptions, OriginTls, ServerCerts,
};
use rustls::client::Resumption;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::version::{TLS12, TLS13};
use rustls::{ClientConfig, RootCertStore, ServerConfig, SupportedProtocolVersion};

use super::AcceptAnyCert;

type Pair = (&'static [u8], &'static [u8]);

const AUTHORITY: &[u8] = include_bytes!("../../certs/authority.pem");
const MEMBER: Pair =
    (include_bytes!("../../certs/member.pem"), include_bytes!("../../certs/member.key.pem"));
const STRANGER: Pair =
    (include_bytes!("../../certs/stranger.pem"), include_bytes!("../../certs/stranger.key.pem"));
const APP: Pair =
    (include_bytes!("../../certs/app.pem"), include_bytes!("../../certs/app.key.pem"));
const IMPOSTOR: Pair =
    (include_bytes!("../../certs/impostor.pem"), include_bytes!("../../certs/impostor.key.pem"));

/// A client's certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SimClientCert {
    /// None.
    None,
    /// Signed by the authority.
    Member,
    /// Self-signed.
    Stranger,
}

/// The TLS versions that a client supports.
pub const VERSIONS: [&[&SupportedProtocolVersion]; 3] = [&[&TLS13, &TLS12], &[&TLS13], &[&TLS12]];

fn words(error: impl std::fmt::Display) -> String {
    error.to_string()
}

/// The server's certificate.
///
/// # Errors
///
/// The certificate is not usable.
pub fn certificate() -> Result<LoadedCertificate, String> {
    LoadedCertificate::from_pem(super::CERTIFICATE, super::KEY, &[]).map_err(words)
}

fn trust() -> Result<ClientAuth, String> {
    let files = ClientAuthFiles { client: Some(AUTHORITY), ..ClientAuthFiles::default() };
    ClientAuth::new(&files, 1).map_err(|error| format!("{error:?}"))
}

/// The server's TLS settings. `loader` loads the certificate within each handshake, if it is not
/// fixed.
///
/// # Errors
///
/// The certificates are not usable.
pub fn acceptor<L>(loader: Option<L>) -> Result<Acceptor, String>
where
    L: Fn(Option<&str>) -> Result<Vec<LoadedCertificate>, String> + Send + Sync + 'static,
{
    let mut certs = ServerCerts::new();
    let set = match loader {
        Some(loader) => {
            let set = certs.add(Vec::new());
            certs.load(set, "", move |name| loader(name).map_err(CertComplaint::from));
            set
        }
        None => certs.add(vec![certificate()?]),
    };
    certs.ask_clients(set, Arc::new(trust()?));
    certs.set_default(set);
    let options = AcceptorOptions {
        alpn: vec![b"h2".to_vec(), b"http/1.1".to_vec()],
        sessions: Some(bolide_tls::Sessions::new(64)),
        ..AcceptorOptions::default()
    };
    Acceptor::new(&Arc::new(certs), &options).map_err(words)
}

/// A client's TLS settings; connections that share them can resume each other's sessions.
///
/// # Errors
///
/// The library refuses the settings.
pub fn client(
    protocol: &[u8],
    versions: &[&'static SupportedProtocolVersion],
    client_cert: SimClientCert,
) -> Result<Arc<ClientConfig>, String> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(versions)
        .map_err(words)?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(AcceptAnyCert));
    let pair = match client_cert {
        SimClientCert::None => None,
        SimClientCert::Member => Some(MEMBER),
        SimClientCert::Stranger => Some(STRANGER),
    };
    let mut config = match pair {
        Some(pair) => {
            let (chain, key) = parse(pair)?;
            builder.with_client_auth_cert(chain, key).map_err(words)?
        }
        None => builder.with_no_client_auth(),
    };
    config.alpn_protocols = vec![protocol.to_vec()];
    config.resumption = Resumption::in_memory_sessions(8);
    Ok(Arc::new(config))
}

fn parse(
    (chain, key): Pair,
) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>), String> {
    let chain = CertificateDer::pem_slice_iter(chain).collect::<Result<_, _>>().map_err(words)?;
    Ok((chain, PrivateKeyDer::from_pem_slice(key).map_err(words)?))
}

/// The server's TLS settings as a client of upstreams.
///
/// # Errors
///
/// The certificates are not usable.
pub fn to_upstream(verifies: bool, shows: bool) -> Result<OriginTls, String> {
    let offered = AcceptorOptions::default();
    let options = OriginOptions {
        versions: offered.versions,
        ciphers: offered.ciphers,
        ciphersuites: offered.ciphersuites,
        curves: offered.curves,
        tells_name: true,
        keeps_sessions: true,
        alpn: Vec::new(),
    };
    let (chain, key) = MEMBER;
    let client_cert =
        shows.then(|| LoadedCertificate::from_pem(chain, key, &[])).transpose().map_err(words)?;
    let mut made = OriginTls::new(&options, client_cert)?;
    if verifies {
        made.trust(trust()?);
    }
    Ok(made)
}

/// The kind of an application with TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TlsApp {
    /// It has the right certificate.
    Valid,
    /// It has the right certificate and requires one of the client.
    RequiresClientCert,
    /// It has a certificate for another name.
    Impostor,
}

/// An application's TLS settings.
///
/// # Errors
///
/// The certificates are not usable.
pub fn application(which: TlsApp) -> Result<Arc<ServerConfig>, String> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(&[&TLS13, &TLS12])
        .map_err(words)?;
    let (chain, key) = parse(if which == TlsApp::Impostor { IMPOSTOR } else { APP })?;
    let config = if which == TlsApp::RequiresClientCert {
        let mut roots = RootCertStore::empty();
        for root in CertificateDer::pem_slice_iter(AUTHORITY) {
            roots.add(root.map_err(words)?).map_err(words)?;
        }
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
        builder.with_client_cert_verifier(verifier.build().map_err(words)?)
    } else {
        builder.with_no_client_auth()
    };
    Ok(Arc::new(config.with_single_cert(chain, key).map_err(words)?))
}
