//! The TLS settings of a server block.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::IssuedId;
use crate::SourcePlace;
use crate::vars::Template;

/// Commands of OpenSSL's configuration language (`SSL_CONF_cmd`).
pub const OPENSSL_COMMANDS: [&str; 30] = [
    "Certificate",
    "ChainCAFile",
    "ChainCAPath",
    "ChainCAStore",
    "CipherString",
    "Ciphersuites",
    "ClientCAFile",
    "ClientCAPath",
    "ClientCAStore",
    "ClientSignatureAlgorithms",
    "Curves",
    "DHParameters",
    "ECDHParameters",
    "Groups",
    "MaxProtocol",
    "MinProtocol",
    "NumTickets",
    "Options",
    "PrivateKey",
    "Protocol",
    "RecordPadding",
    "RequestCAFile",
    "RequestCAPath",
    "RequestCAStore",
    "ServerInfoFile",
    "SignatureAlgorithms",
    "VerifyCAFile",
    "VerifyCAPath",
    "VerifyCAStore",
    "VerifyMode",
];

/// Settings in OpenSSL's own words: name and value, in order.
pub type ConfCommands = Arc<Vec<(String, String)>>;

/// The `ssl_*` directives of one server. Files are not opened here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsConf {
    /// Pairs of certificate chain and key (absolute paths); several for several key types.
    pub certificates: Arc<Vec<CertificateConf>>,
    /// `ssl_certificate_cache`; `None`: certificates named by variables are read for each client.
    pub certificate_cache: Option<CertificateCache>,
    /// `ssl_password_file`, and where it is written.
    pub password_file: Option<(PathBuf, SourcePlace)>,
    /// `ssl_protocols`
    pub protocols: Protocols,
    /// `ssl_ciphers`, in OpenSSL's language.
    pub ciphers: String,
    /// `ssl_conf_command`
    pub conf_commands: ConfCommands,
    /// `ssl_ecdh_curve`: `auto`, or names joined by `:`.
    pub ecdh_curve: String,
    /// `ssl_dhparam`; accepted.
    pub dhparam: Option<PathBuf>,
    /// `ssl_prefer_server_ciphers`, if it is written.
    pub prefer_server_ciphers: Option<bool>,
    /// `ssl_session_tickets`
    pub session_tickets: bool,
    /// `ssl_session_ticket_key`: key files, the first one encrypts.
    pub session_ticket_keys: Arc<Vec<PathBuf>>,
    /// `ssl_session_timeout`
    pub session_timeout: Duration,
    /// `ssl_session_cache`
    pub session_cache: SessionCache,
    /// `ssl_buffer_size`: bytes of one record.
    pub buffer_size: usize,
    /// `ssl_early_data`
    pub early_data: bool,
    /// `ssl_reject_handshake`
    pub reject_handshake: bool,
    /// `ssl_stapling`
    pub stapling: bool,
    /// `ssl_stapling_file`
    pub stapling_file: Option<PathBuf>,
    /// `ssl_certificate_compression`
    pub certificate_compression: bool,
    /// `ssl_stapling_responder`
    pub stapling_responder: Option<String>,
    /// `ssl_stapling_verify`
    pub stapling_verify: bool,
    /// `ssl_trusted_certificate`
    pub trusted_certificate: Option<PathBuf>,
    /// `ssl_client_certificate`
    pub client_certificate: Option<PathBuf>,
    /// `ssl_crl`
    pub crl: Option<PathBuf>,
    /// `ssl_verify_client`
    pub verify_client: VerifyClient,
    /// `ssl_verify_depth`
    pub verify_depth: u32,
}

impl TlsConf {
    /// Whether certificates are loaded for each client.
    #[must_use]
    pub fn computes_certificates(&self) -> bool {
        let is_computed = |pem: &Pem| matches!(pem, Pem::Computed { .. });
        self.certificates.iter().any(|pair| is_computed(&pair.chain) || is_computed(&pair.key))
    }

    /// Whether clients of its certificates cannot use QUIC, which needs TLS 1.3.
    #[must_use]
    pub fn refuses_quic(&self) -> bool {
        !self.protocols.tls13 && !self.certificates.is_empty()
    }

    /// Whether an issuer is asked for one of its certificates.
    #[must_use]
    pub fn is_issued(&self) -> bool {
        self.certificates.iter().any(|pair| matches!(pair.chain, Pem::Issued(_)))
    }
}

/// The cache of certificates that variables name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CertificateCache {
    /// How many chains and keys, each counted.
    pub max: usize,
    /// How long without being used, once others come.
    pub inactive: Duration,
    /// The interval of looking at the files.
    pub valid: Duration,
    /// Which directive of the configuration it is: blocks that inherit it share the cache.
    pub directive: u32,
}

/// A certificate and its key; both can be in one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateConf {
    /// The chain.
    pub chain: Pem,
    /// The key.
    pub key: Pem,
    /// Where `ssl_certificate` stands; none for the certificates that origins are shown.
    pub place: Option<SourcePlace>,
}

/// Where text in PEM is found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pem {
    /// In a file.
    File(PathBuf),
    /// In the configuration itself: the text after `data:`.
    Data(Arc<[u8]>),
    /// A key in a file of OpenSSL's store, in PEM or DER: `store:file:PATH`.
    Store(PathBuf),
    /// With an issuer: `$acme_certificate`, `$acme_certificate_key`.
    Issued(IssuedId),
    /// At the path that a text with variables gives, for each client.
    Computed {
        /// The text.
        template: Template,
        /// The base directory of its paths.
        beside: PathBuf,
    },
}

impl Pem {
    /// The source that a word without variables, or an evaluated one, names.
    #[must_use]
    pub fn of(word: &[u8], beside: &Path) -> Self {
        match word.strip_prefix(b"data:") {
            Some(data) => Self::Data(data.into()),
            None => Self::File(beside.join(OsStr::from_bytes(word))),
        }
    }

    /// The same of a key: `store:` names a file from the working directory.
    #[must_use]
    pub fn of_key(word: &[u8], beside: &Path) -> Self {
        match word.strip_prefix(b"store:").and_then(Self::file_of_store) {
            Some(path) => Self::Store(PathBuf::from(OsStr::from_bytes(path))),
            None => Self::of(word, beside),
        }
    }

    /// The path that a URI of OpenSSL's store names; `None` for schemes other than `file`.
    pub(crate) fn file_of_store(uri: &[u8]) -> Option<&[u8]> {
        let Some(colon) = uri.iter().position(|byte| *byte == b':') else { return Some(uri) };
        let (scheme, path) = (&uri[..colon], &uri[colon + 1..]);
        if !scheme.eq_ignore_ascii_case(b"file") {
            return None;
        }
        // RFC 8089 §2: an authority may stand in front, which is empty or this host.
        let Some(rest) = path.strip_prefix(b"//") else { return Some(path) };
        Some(rest.strip_prefix(b"localhost").filter(|path| path.starts_with(b"/")).unwrap_or(rest))
    }
}

impl std::fmt::Display for Pem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::File(path) => path.display().fmt(f),
            Self::Data(text) => write!(f, "data:{}", String::from_utf8_lossy(text)),
            Self::Store(path) => write!(f, "store:file:{}", path.display()),
            Self::Issued(_) => f.write_str("$acme_certificate"),
            Self::Computed { .. } => f.write_str("(computed)"),
        }
    }
}

/// Which versions of TLS are on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Protocols {
    /// `TLSv1.2`
    pub tls12: bool,
    /// `TLSv1.3`
    pub tls13: bool,
    /// `SSLv2`, `SSLv3`, `TLSv1` or `TLSv1.1` was named; all are obsolete.
    pub obsolete: bool,
}

/// `ssl_session_cache`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SessionCache {
    /// `none`: announced to the client, but never done.
    None,
    /// `off`
    Off,
    /// `builtin`: how many sessions, if given.
    Builtin(Option<u64>),
    /// `shared:NAME:SIZE`; the size in bytes.
    Shared(Box<str>, u64),
}

/// `ssl_verify_client`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VerifyClient {
    /// `off`
    Off,
    /// `on`
    On,
    /// `optional`
    Optional,
    /// `optional_no_ca`
    OptionalNoCa,
}

#[cfg(test)]
mod tests {
    use super::Pem;

    #[test]
    fn a_key_of_a_store_is_a_file_by_several_names() {
        for (uri, path) in [
            ("/k", Some("/k")),
            ("file:/k", Some("/k")),
            ("FILE:k/$", Some("k/$")),
            ("file:///k", Some("/k")),
            ("file://localhost/k", Some("/k")),
            ("file://localhosts/k", Some("localhosts/k")),
            ("pkcs11:object=k", None),
            ("", Some("")),
        ] {
            let found = Pem::file_of_store(uri.as_bytes());
            assert_eq!(found, path.map(str::as_bytes), "{uri}");
        }
        let beside = std::path::Path::new("/etc");
        assert_eq!(Pem::of_key(b"store:file:k", beside), Pem::Store("k".into()));
        assert_eq!(Pem::of_key(b"k", beside), Pem::File("/etc/k".into()));
        assert_eq!(Pem::of(b"store:file:k", beside), Pem::File("/etc/store:file:k".into()));
    }
}
