//! The certificate of the simulated site, and what clients need to trust it.
//!
//! Ed25519 signatures are deterministic and of constant length, so that handshakes have the same
//! sizes in every run; other random parts of them decide nothing.

pub mod streams;

use std::sync::Arc;

use bolide_tls::{Acceptor, AcceptorOptions, EarlyData, LoadedCertificate, ServerCerts};
use quinn_proto::crypto::rustls::QuicClientConfig;
use rustls::client::Resumption;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::version::TLS13;
use rustls::{ClientConfig, DigitallySignedStruct, Error, SignatureScheme};

const KEY: &[u8] = b"-----BEGIN PRIVATE KEY-----
MC4CAQAwBQYDK2VwBCIEIBFdw5PNHH1xLybTUwj20hI57BgUn0/X/9ObgJbOhP2o
-----END PRIVATE KEY-----
";
const CERTIFICATE: &[u8] = b"-----BEGIN CERTIFICATE-----
MIIBRTCB+KADAgECAhRf4+Jz38ZFcDyYYSPxy0QZY7mmWjAFBgMrZXAwDzENMAsG
A1UEAwwEc2l0ZTAgFw0yNjExMjIxOTQyNThaGA8yMTI2MTAyOTE5NDI1OFowDzEN
MAsGA1UEAwwEc2l0ZTAqMAUGAytlcAMhAOiQsYGkE8p6jJO1kEdP5tHclWj0XUUY
G1NVingdxFdbo2QwYjAdBgNVHQ4EFgQUSEE3R6CarwgMelMD8qaL/2gRbxQwHwYD
VR0jBBgwFoAUSEE3R6CarwgMelMD8qaL/2gRbxQwDwYDVR0TAQH/BAUwAwEB/zAP
BgNVHREECDAGggRzaXRlMAUGAytlcANBAIlrKIjsO9r8sH+y0oimNkCtOex3p8oO
Z2VjuevEaN1jg4Jkx7qGqpDmcXgflX5oEwGqutQR27s6Bv3LHamxAAM=
-----END CERTIFICATE-----
";

/// The server's TLS settings for QUIC.
///
/// # Errors
///
/// The certificate is not usable.
pub fn acceptor(early_data: EarlyData) -> Result<Acceptor, String> {
    let certificate =
        LoadedCertificate::from_pem(CERTIFICATE, KEY, &[]).map_err(|error| error.to_string())?;
    let mut certs = ServerCerts::new();
    let set = certs.add(vec![certificate]);
    certs.set_default(set);
    let options = AcceptorOptions {
        early_data,
        sessions: Some(bolide_tls::Sessions::new(64)),
        ..AcceptorOptions::default()
    };
    Acceptor::new(&Arc::new(certs), &options).map_err(|error| error.to_string())
}

/// A client's TLS settings for QUIC; connections that share them can resume each other's sessions.
///
/// # Errors
///
/// The library refuses the settings.
pub fn client(protocol: &[u8]) -> Result<Arc<QuicClientConfig>, String> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&TLS13])
        .map_err(|error| error.to_string())?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(AcceptAnyCert))
        .with_no_client_auth();
    config.alpn_protocols = vec![protocol.to_vec()];
    config.enable_early_data = true;
    config.resumption = Resumption::in_memory_sessions(8);
    let config = QuicClientConfig::try_from(config).map_err(|error| error.to_string())?;
    Ok(Arc::new(config))
}

/// A verifier that accepts any certificate.
#[derive(Debug)]
struct AcceptAnyCert;

impl ServerCertVerifier for AcceptAnyCert {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ED25519]
    }
}
