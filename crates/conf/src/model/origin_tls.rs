//! TLS to upstreams: `proxy_ssl_*`, `uwsgi_ssl_*`, `grpc_ssl_*`. Files are not opened here.

use std::path::PathBuf;
use std::sync::Arc;

use super::tls::{CertificateCache, ConfCommands, Protocols};
use super::{DirectiveFamily, SourcePlace};
use crate::vars::Template;

/// The `proxy_ssl_*`, `uwsgi_ssl_*` or `grpc_ssl_*` settings of one location.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OriginTlsConf {
    /// Which of them, for messages.
    pub family: DirectiveFamily,
    /// Whether ALPN offers HTTP/2 (RFC 9113 §3.2), which is then spoken.
    pub offers_http2: bool,
    /// `proxy_ssl_certificate`; an empty text means no certificate.
    pub certificate: Option<PemName>,
    /// `proxy_ssl_certificate_key`
    pub key: Option<PemName>,
    /// The base directory of these two paths.
    pub beside: PathBuf,
    /// `proxy_ssl_certificate_cache`; `None`: certificates named by variables are read for each
    /// connection.
    pub certificate_cache: Option<CertificateCache>,
    /// `proxy_ssl_password_file`, and where it is written.
    pub password_file: Option<(PathBuf, SourcePlace)>,
    /// `proxy_ssl_protocols`
    pub protocols: Protocols,
    /// `proxy_ssl_ciphers`, in OpenSSL's language.
    pub ciphers: String,
    /// `proxy_ssl_conf_command`
    pub conf_commands: ConfCommands,
    /// `proxy_ssl_name`; none: that of `proxy_pass`.
    pub name: Option<Template>,
    /// `proxy_ssl_server_name`
    pub server_name: bool,
    /// `proxy_ssl_session_reuse`
    pub session_reuse: bool,
    /// `proxy_ssl_verify`
    pub verify: bool,
    /// `proxy_ssl_verify_depth`
    pub verify_depth: u32,
    /// `proxy_ssl_trusted_certificate`
    pub trusted_certificate: Option<PathBuf>,
    /// `proxy_ssl_crl`
    pub crl: Option<PathBuf>,
}

/// The place of a certificate or a key, which may depend on variables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PemName {
    /// As written.
    pub written: Arc<[u8]>,
    /// Its text.
    pub template: Template,
}

impl Default for OriginTlsConf {
    fn default() -> Self {
        Self {
            family: DirectiveFamily::Proxy,
            offers_http2: false,
            certificate: None,
            key: None,
            beside: PathBuf::new(),
            certificate_cache: None,
            password_file: None,
            protocols: Protocols { tls12: true, tls13: true, obsolete: false },
            ciphers: "DEFAULT".to_owned(),
            conf_commands: Arc::default(),
            name: None,
            server_name: false,
            session_reuse: true,
            verify: false,
            verify_depth: 1,
            trusted_certificate: None,
            crl: None,
        }
    }
}

impl OriginTlsConf {
    /// Whether the certificate is loaded for each connection.
    #[must_use]
    pub fn computes_certificate(&self) -> bool {
        let is_computed = |pem: &PemName| pem.template.as_text().is_none();
        self.certificate.is_some() && self.certificate.iter().chain(&self.key).any(is_computed)
    }
}
