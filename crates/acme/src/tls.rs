//! TLS to issuers: the authorities of the system or of a file, or no check at all.

use std::path::Path;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, aws_lc_rs, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::addresses;
use crate::plan::AcmeIssuer;
use crate::transport::{AcmeConnect, AcmeStream, Connecting};

/// Where systems keep their authorities.
const SYSTEM: [&str; 4] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

/// Connects by TCP and TLS.
pub(crate) struct TlsConnect(Arc<ClientConfig>);

impl TlsConnect {
    /// As the issuer's block says.
    ///
    /// # Errors
    ///
    /// The file of authorities is unreadable or has none.
    pub(crate) fn new(issuer: &AcmeIssuer) -> Result<Self, String> {
        let provider = Arc::new(aws_lc_rs::default_provider());
        let builder = ClientConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?;
        let config = if issuer.verify {
            let roots = roots(issuer.trusted.as_deref())?;
            builder.with_root_certificates(roots).with_no_client_auth()
        } else {
            let verifier = Arc::new(NoVerifier(provider));
            let dangerous = builder.dangerous();
            dangerous.with_custom_certificate_verifier(verifier).with_no_client_auth()
        };
        Ok(Self(Arc::new(config)))
    }

    /// With the authorities of the system.
    ///
    /// # Errors
    ///
    /// It has none.
    pub(crate) fn of_system() -> Result<Self, String> {
        let builder = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?;
        let config = builder.with_root_certificates(roots(None)?).with_no_client_auth();
        Ok(Self(Arc::new(config)))
    }
}

impl AcmeConnect for TlsConnect {
    fn connect(&self, host: &str, port: u16) -> Connecting {
        let (config, host) = (self.0.clone(), host.to_owned());
        Box::pin(async move {
            let name = ServerName::try_from(host.clone());
            let name = name.map_err(|error| format!("{host}:{port}: {error}"))?;
            // An address can be silent only after the first packets, too: the handshake counts.
            let open = |address| {
                let (config, name) = (config.clone(), name.clone());
                async move {
                    let stream = TcpStream::connect(address).await?;
                    let _slower = stream.set_nodelay(true);
                    TlsConnector::from(config).connect(name, stream).await
                }
            };
            let stream = addresses::connect(&host, port, open).await?;
            Ok(Box::new(stream) as Box<dyn AcmeStream>)
        })
    }
}

pub(crate) fn roots(trusted: Option<&Path>) -> Result<RootCertStore, String> {
    let text = match trusted {
        Some(path) => std::fs::read(path)
            .map_err(|error| format!("cannot read \"{}\": {error}", path.display()))?,
        None => SYSTEM
            .iter()
            .find_map(|path| std::fs::read(path).ok())
            .ok_or("the system has no file of authorities (ssl_trusted_certificate)")?,
    };
    let blocks = pem::parse_many(text).map_err(|error| format!("authorities: {error}"))?;
    let mut roots = RootCertStore::empty();
    let found = blocks.into_iter().filter(|block| block.tag().ends_with("CERTIFICATE"));
    roots.add_parsable_certificates(found.map(|block| block.into_contents().into()));
    if roots.is_empty() { Err("there is no usable authority".to_owned()) } else { Ok(roots) }
}

/// `ssl_verify off`: any certificate will do, but its key must have signed the handshake.
#[derive(Debug)]
struct NoVerifier(Arc<CryptoProvider>);

impl ServerCertVerifier for NoVerifier {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, cert, dss, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, cert, dss, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
