//! The client's side of TLS, for a server that connects to itself.
//!
//! It accepts any certificate: its user has the address of its own server and needs no proof. For
//! upstreams there is [`crate::OriginTls`], which shares the verifier.

use std::io::{Error, Read, Result, Write};
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, WebPkiSupportedAlgorithms, aws_lc_rs};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, ClientConnection, DigitallySignedStruct, SignatureScheme, StreamOwned};

use crate::signed::{check_tls12, check_tls13};

/// A session with our own server over a blocking stream.
#[derive(Debug)]
pub struct TlsClient<S: Read + Write>(StreamOwned<ClientConnection, S>);

impl<S: Read + Write> TlsClient<S> {
    /// Begins a session with the server `name` over `stream`; the handshake runs with the first
    /// bytes.
    ///
    /// # Errors
    ///
    /// An invalid name.
    pub fn new(name: &str, stream: S) -> Result<Self> {
        let provider = Arc::new(aws_lc_rs::default_provider());
        let any_cert = Arc::new(AnyServerCert::new(&provider));
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(Error::other)?
            .dangerous()
            .with_custom_certificate_verifier(any_cert)
            .with_no_client_auth();
        let name = name.trim_start_matches('[').trim_end_matches(']').to_owned();
        let name = ServerName::try_from(name).map_err(Error::other)?;
        let session = ClientConnection::new(Arc::new(config), name).map_err(Error::other)?;
        Ok(Self(StreamOwned::new(session, stream)))
    }
}

impl<S: Read + Write> Read for TlsClient<S> {
    fn read(&mut self, to: &mut [u8]) -> Result<usize> {
        self.0.read(to)
    }
}

impl<S: Read + Write> Write for TlsClient<S> {
    fn write(&mut self, bytes: &[u8]) -> Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> Result<()> {
        self.0.flush()
    }
}

/// Accepts every certificate, but requires a signature that matches it.
#[derive(Debug)]
pub(crate) struct AnyServerCert(WebPkiSupportedAlgorithms);

impl AnyServerCert {
    pub(crate) const fn new(provider: &CryptoProvider) -> Self {
        Self(provider.signature_verification_algorithms)
    }
}

impl ServerCertVerifier for AnyServerCert {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> std::result::Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, rustls::Error> {
        check_tls12(message, cert, signed, &self.0)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, rustls::Error> {
        check_tls13(message, cert, signed, &self.0)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_schemes()
    }
}
