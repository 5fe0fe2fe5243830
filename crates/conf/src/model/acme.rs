//! Certificates that are ordered from issuers: `acme_issuer`, `acme_certificate`, `auto_https`.
//!
//! Owns the configuration; the state of orders and certificates is in `crates/acme`.

use std::path::PathBuf;
use std::time::Duration;

use super::SourcePlace;

/// Issuers, and the certificates that are ordered from them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AcmeConf {
    /// In the order of the file; an implied issuer is the last.
    pub issuers: Vec<IssuerConf>,
    /// No two are alike; an [`IssuedId`] is an index.
    pub certificates: Vec<IssuedConf>,
}

impl AcmeConf {
    /// Whether an issuer with a certificate to order validates names by this challenge.
    #[must_use]
    pub fn uses(&self, challenge: &IssuerChallenge) -> bool {
        let asked = self.certificates.iter().flat_map(|one| &one.issuers);
        let asked = asked.filter_map(|at| self.issuers.get(*at)).filter(|one| !one.is_local());
        asked.into_iter().any(|issuer| issuer.challenge == *challenge)
    }

    /// The label of a certificate in metrics: its first issuer and its first name.
    #[must_use]
    pub fn label(&self, id: IssuedId) -> String {
        let Some(one) = self.certificates.get(id.index()) else { return String::new() };
        let issuer = one.issuers.first().and_then(|at| self.issuers.get(*at));
        let issuer = issuer.map_or("", |issuer| &*issuer.name);
        format!("acme:{issuer}/{}", one.names.first().map_or("on_demand", |name| &**name))
    }
}

/// An index into [`AcmeConf::certificates`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct IssuedId(pub u32);

impl IssuedId {
    /// The position in the list.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// One certificate to be ordered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IssuedConf {
    /// Indices into [`AcmeConf::issuers`]: each is tried after those before it failed.
    pub issuers: Vec<usize>,
    /// Names and IP addresses, in lower case; empty: one certificate for each name that clients
    /// request (`on_demand`).
    pub names: Vec<Box<str>>,
    /// `key=`
    pub key: IssuedKey,
    /// The directive that orders it.
    pub place: SourcePlace,
}

impl IssuedConf {
    /// Whether its names come from clients.
    #[must_use]
    pub fn is_on_demand(&self) -> bool {
        self.names.is_empty()
    }

    /// Whether both are one certificate.
    #[must_use]
    pub fn is_like(&self, other: &Self) -> bool {
        self.issuers == other.issuers && self.names == other.names && self.key == other.key
    }
}

/// An `acme_issuer` block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IssuerConf {
    /// Its name.
    pub name: Box<str>,
    /// The kind of issuer.
    pub authority: IssuerAuthority,
    /// `uri`
    pub uri: String,
    /// `account_key`
    pub account_key: IssuerKey,
    /// `challenge`
    pub challenge: IssuerChallenge,
    /// `contact`: URIs; `mailto:` is prepended to a text without a scheme.
    pub contacts: Vec<String>,
    /// `external_account_key`
    pub external_account: Option<IssuerAccount>,
    /// `preferred_chain`
    pub preferred_chain: Option<String>,
    /// `profile`, and whether the issuer must have it.
    pub profile: Option<(String, bool)>,
    /// `ssl_trusted_certificate`
    pub trusted_certificate: Option<PathBuf>,
    /// `ssl_verify`
    pub verify: bool,
    /// `state_path`; `None`: `off`.
    pub state_path: Option<PathBuf>,
    /// The directory that the default of `state_path` is in, where it is that default.
    pub state_parent: Option<PathBuf>,
    /// `accept_terms_of_service`
    pub accepts_terms: bool,
    /// `on_demand_ask`: the URL that allows names of clients; `None` allows none.
    pub on_demand_ask: Option<String>,
    /// `on_demand_rate`
    pub on_demand_rate: DemandedRate,
    /// `on_demand_names`
    pub on_demand_names: usize,
    /// Where it is configured; for an implied one, the `auto_https` that implies it.
    pub place: SourcePlace,
}

impl IssuerConf {
    /// Whether this server issues itself.
    #[must_use]
    pub const fn is_local(&self) -> bool {
        matches!(self.authority, IssuerAuthority::Local { .. })
    }

    /// Whether it issues wildcards.
    #[must_use]
    pub const fn takes_wildcards(&self) -> bool {
        self.is_local() || matches!(self.challenge, IssuerChallenge::Dns(_))
    }

    /// Whether it issues for addresses.
    #[must_use]
    pub const fn takes_addresses(&self) -> bool {
        self.is_local() || !matches!(self.challenge, IssuerChallenge::Dns(_))
    }
}

/// `on_demand_rate`: a number of requests per time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DemandedRate {
    /// The number.
    pub count: u32,
    /// The time, in seconds.
    pub seconds: u32,
}

/// The kind of issuer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IssuerAuthority {
    /// An ACME server.
    #[default]
    Acme,
    /// `local`: this server, with its own root certificate.
    Local {
        /// `lifetime=`, of its certificates.
        lifetime: Duration,
    },
}

/// `account_key`
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IssuerKey {
    /// Generated once, and stored with the state.
    Made(IssuedKey),
    /// A file in PEM form.
    File(PathBuf),
}

/// The algorithm of a generated key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum IssuedKey {
    /// `ecdsa`, `ecdsa:256`
    #[default]
    EcdsaP256,
    /// `ecdsa:384`
    EcdsaP384,
    /// `ecdsa:521`
    EcdsaP521,
    /// `rsa`, `rsa:2048`
    Rsa2048,
    /// `rsa:3072`
    Rsa3072,
    /// `rsa:4096`
    Rsa4096,
}

impl IssuedKey {
    /// The text in the configuration.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::EcdsaP256 => "ecdsa:256",
            Self::EcdsaP384 => "ecdsa:384",
            Self::EcdsaP521 => "ecdsa:521",
            Self::Rsa2048 => "rsa:2048",
            Self::Rsa3072 => "rsa:3072",
            Self::Rsa4096 => "rsa:4096",
        }
    }
}

/// `challenge`
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum IssuerChallenge {
    /// `http-01` (RFC 8555, section 8.3)
    #[default]
    Http,
    /// `tls-alpn-01` (RFC 8737)
    TlsAlpn,
    /// `dns-01` (RFC 8555, section 8.4), by a program.
    Dns(PathBuf),
}

/// `external_account_key` (RFC 8555, section 7.3.4).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IssuerAccount {
    /// The key identifier that the issuer assigned.
    pub kid: String,
    /// The file of its key, in base64url.
    pub key_file: PathBuf,
}
