//! The issuers and orders of a configuration.

use std::path::PathBuf;
use std::time::Duration;

use crate::demand::DemandRate;

/// All issuers and orders of one configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AcmePlan {
    /// `acme_issuer` blocks, and the issuers that `auto_https` implies.
    pub issuers: Vec<AcmeIssuer>,
    /// `acme_certificate` directives, and the servers with `auto_https`; no two of the same id.
    pub orders: Vec<AcmeOrder>,
    /// `acme_certificate … on_demand` directives: an order for each allowed name that clients
    /// request.
    pub demands: Vec<AcmeDemand>,
}

/// Certificates for names that clients request, one for each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AcmeDemand {
    /// Determines the name of the file of its names.
    pub id: OrderId,
    /// As those of an order.
    pub issuers: Vec<usize>,
    /// `key=`
    pub key: CertificateKey,
    /// `on_demand_ask`: the URL that allows a name by status 200.
    pub ask: String,
    /// `on_demand_rate`
    pub rate: DemandRate,
    /// `on_demand_names`
    pub names_max: usize,
}

/// An `acme_issuer` block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AcmeIssuer {
    /// The name of the block.
    pub name: String,
    /// The kind of issuer.
    pub authority: AcmeAuthority,
    /// `uri`: the directory of the issuer (RFC 8555, section 7.1.1).
    pub uri: String,
    /// `account_key`
    pub account_key: AccountKey,
    /// `contact`: URIs, `mailto:` where the configuration has no scheme.
    pub contacts: Vec<String>,
    /// `challenge`
    pub challenge: ChallengeKind,
    /// `external_account_key` (RFC 8555, section 7.3.4)
    pub external_account: Option<ExternalAccount>,
    /// `preferred_chain`: the common name of the last issuer of the chain to choose.
    pub preferred_chain: Option<String>,
    /// `profile`, and whether the order fails if the issuer does not offer it (`require`).
    pub profile: Option<(String, bool)>,
    /// `ssl_trusted_certificate`: a file of authorities in PEM form; the system's without it.
    pub trusted: Option<PathBuf>,
    /// `ssl_verify`: whether the certificate of the issuer's own server is verified.
    pub verify: bool,
    /// `state_path`: the directory for account and certificates; `None` stores nothing (`off`).
    pub state_path: Option<PathBuf>,
    /// `accept_terms_of_service`
    pub accepts_terms: bool,
}

/// The name of an account that servers share: the issuer's URI, the external key identifier and the
/// contacts.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct AccountName(pub String);

impl AcmeIssuer {
    /// The name of its account, if it is generated, so that servers can share it. With a key file,
    /// all servers with that file have the same account anyway.
    #[must_use]
    pub fn account_name(&self) -> Option<AccountName> {
        let is_made = matches!(self.account_key, AccountKey::Generated(_));
        if self.authority != AcmeAuthority::Remote || !is_made {
            return None;
        }
        let kid = self.external_account.as_ref().map_or("", |account| &*account.kid);
        Some(AccountName(format!("{}\n{kid}\n{}", self.uri, self.contacts.join("\n"))))
    }
}

/// The kind of issuer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AcmeAuthority {
    /// An ACME server.
    #[default]
    Remote,
    /// `local`: this thread, with a root in the state directory; of the other fields, only `name`
    /// and `state_path` are used.
    Local {
        /// The lifetime of its certificates.
        lifetime: Duration,
    },
}

/// `account_key`
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AccountKey {
    /// A key that is generated once and stored in the state directory. Only
    /// [`CertificateKey::EcdsaP256`] can be used (ES256): orders fail with `unsupported` for all
    /// others.
    Generated(CertificateKey),
    /// A file in PEM form, PKCS #8 or SEC 1: ECDSA on P-256.
    File(PathBuf),
}

/// The algorithm of a generated key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum CertificateKey {
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

/// `challenge`
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ChallengeKind {
    /// `http-01` (RFC 8555, section 8.3)
    #[default]
    Http01,
    /// `tls-alpn-01` (RFC 8737)
    TlsAlpn01,
    /// `dns-01` (RFC 8555, section 8.4): a program that is run with `present` or `cleanup`, the
    /// name of the record and its value.
    Dns01(PathBuf),
}

/// `external_account_key`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExternalAccount {
    /// The identifier of the key.
    pub kid: String,
    /// The file with the key in base64url.
    pub key_file: PathBuf,
}

/// One certificate to order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AcmeOrder {
    /// Determines the names of its files and its slot for handshakes.
    pub id: OrderId,
    /// Indices of issuers in [`AcmePlan::issuers`]: each is tried after those before it failed.
    pub issuers: Vec<usize>,
    /// Names and addresses, in lower case, without repetition; the first is the common name.
    pub names: Vec<String>,
    /// `key=`
    pub key: CertificateKey,
}

/// Identifies an order over reloads and restarts: the first issuer's name, the names of the
/// certificate, the kind of its key and the profile.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct OrderId(pub String);
