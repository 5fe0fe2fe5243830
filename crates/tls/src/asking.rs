//! Requests for client certificates: the library's side.
//!
//! The library has one verifier per socket, but whether to request a certificate depends on the
//! name in the hello. So the verifier consults [`ServerCerts`], which has seen the hello within the
//! same call.

use std::cell::Cell;
use std::sync::Arc;

use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::WebPkiSupportedAlgorithms;
use rustls::crypto::aws_lc_rs::default_provider;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{DigitallySignedStruct, DistinguishedName, Error, SignatureScheme};

use crate::signed::{check_tls12, check_tls13};
use crate::{ServerCerts, certs};

/// Accepts every chain whose key signs the handshake; its verification comes afterwards.
#[derive(Debug)]
pub(crate) struct Asker {
    certs: Arc<ServerCerts>,
    algorithms: WebPkiSupportedAlgorithms,
}

thread_local! {
    static CLIENT_SIGNED: Cell<Option<SignatureScheme>> = const { Cell::new(None) };
}

/// Takes the kind of the last client signature on this thread.
pub(crate) fn take_client_signature() -> Option<SignatureScheme> {
    CLIENT_SIGNED.take()
}

impl Asker {
    pub(crate) fn new(certs: &Arc<ServerCerts>) -> Self {
        let algorithms = default_provider().signature_verification_algorithms;
        Self { certs: Arc::clone(certs), algorithms }
    }
}

impl ClientCertVerifier for Asker {
    fn offer_client_auth(&self) -> bool {
        // Before the hello no server is known, and the library must keep the transcript for a
        // signature.
        certs::asked_set().is_none_or(|set| self.certs.client_auth(set).is_some())
    }

    fn client_auth_mandatory(&self) -> bool {
        false
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        let auth = certs::asked_set().and_then(|set| self.certs.client_auth(set));
        auth.map_or(&[], |auth| auth.hints())
    }

    fn verify_client_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        CLIENT_SIGNED.set(Some(signed.scheme));
        check_tls12(message, cert, signed, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        CLIENT_SIGNED.set(Some(signed.scheme));
        check_tls13(message, cert, signed, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}
