//! The client's side of TLS, for a server that connects to itself.
//!
//! It accepts any certificate: its user has the address of its own server and needs no proof. For
//! upstreams there is [`crate::OriginTls`], which shares the verifier.

use std::io::{Error, Read, Result, Write};
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{
    CryptoProvider, WebPkiSupportedAlgorithms, aws_lc_rs, verify_tls13_signature_with_raw_key,
};
use rustls::pki_types::{
    CertificateDer, ServerName, SignatureVerificationAlgorithm, SubjectPublicKeyInfoDer, UnixTime,
};
use rustls::{
    CertificateError, ClientConfig, ClientConnection, DigitallySignedStruct, SignatureScheme,
    StreamOwned,
};
use webpki::RawPublicKeyEntity;
use x509_parser::certificate::X509Certificate;
use x509_parser::prelude::FromDer;

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
        let anybody = Arc::new(Anybody::new(&provider));
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
pub(crate) struct Anybody(WebPkiSupportedAlgorithms);

impl Anybody {
    pub(crate) const fn new(provider: &CryptoProvider) -> Self {
        Self(provider.signature_verification_algorithms)
    }
}

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
        signed: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, rustls::Error> {
        let key = key_of(cert)?;
        let entity = RawPublicKeyEntity::try_from(&key)
            .map_err(|_| rustls::Error::from(CertificateError::BadEncoding))?;
        let mut known = self.0.mapping.iter().filter(|(scheme, _)| *scheme == signed.scheme);
        let is_good = known.any(|(_, algorithms)| {
            let verify = |algorithm: &&'static dyn SignatureVerificationAlgorithm| {
                entity.verify_signature(*algorithm, message, signed.signature()).is_ok()
            };
            algorithms.iter().any(verify)
        });
        match is_good {
            true => Ok(HandshakeSignatureValid::assertion()),
            false => Err(CertificateError::BadSignature.into()),
        }
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature_with_raw_key(message, &key_of(cert)?, signed, &self.0)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_schemes()
    }
}

/// The key of a certificate of any version; the library parses version 3 only.
fn key_of<'a>(
    cert: &'a CertificateDer<'_>,
) -> std::result::Result<SubjectPublicKeyInfoDer<'a>, rustls::Error> {
    let (_, cert) = X509Certificate::from_der(cert.as_ref())
        .map_err(|_| rustls::Error::from(CertificateError::BadEncoding))?;
    Ok(SubjectPublicKeyInfoDer::from(cert.tbs_certificate.subject_pki.raw))
}
