//! The client's side of TLS, for a server that talks to itself.
//!
//! It believes any certificate: whoever uses it has the address of its own server, and proves
//! nothing to itself. Refuses to be of use for anything else.

use std::io::{Error, Read, Result, Write};
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{
    WebPkiSupportedAlgorithms, aws_lc_rs, verify_tls12_signature, verify_tls13_signature,
};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, ClientConnection, DigitallySignedStruct, SignatureScheme, StreamOwned};

/// A session with our own server over a blocking stream.
#[derive(Debug)]
pub struct Client<S: Read + Write>(StreamOwned<ClientConnection, S>);

impl<S: Read + Write> Client<S> {
    /// Begins a session with the server `name` over `stream`; the handshake comes with the first
    /// bytes.
    ///
    /// # Errors
    ///
    /// A name that is none.
    pub fn new(name: &str, stream: S) -> Result<Self> {
        let provider = Arc::new(aws_lc_rs::default_provider());
        let anybody = Arc::new(Anybody(provider.signature_verification_algorithms));
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(Error::other)?
            .dangerous()
            .with_custom_certificate_verifier(anybody)
            .with_no_client_auth();
        let name = name.trim_start_matches('[').trim_end_matches(']').to_owned();
        let name = ServerName::try_from(name).map_err(Error::other)?;
        let session = ClientConnection::new(Arc::new(config), name).map_err(Error::other)?;
        Ok(Self(StreamOwned::new(session, stream)))
    }
}

impl<S: Read + Write> Read for Client<S> {
    fn read(&mut self, to: &mut [u8]) -> Result<usize> {
        self.0.read(to)
    }
}

impl<S: Read + Write> Write for Client<S> {
    fn write(&mut self, bytes: &[u8]) -> Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> Result<()> {
        self.0.flush()
    }
}

/// Believes every certificate, and still wants a signature that fits it.
#[derive(Debug)]
struct Anybody(WebPkiSupportedAlgorithms);

impl ServerCertVerifier for Anybody {
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
        signature: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, cert, signature, &self.0)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, cert, signature, &self.0)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_schemes()
    }
}
