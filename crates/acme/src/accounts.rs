//! Accounts at issuers: made once, kept in the state directory, one attempt at a time. What other
//! servers have made and this one is told of takes the place of what is kept.

use std::path::Path;
use std::sync::Arc;

use instant_acme::{Account, AccountCredentials, Error, ExternalAccountKey, Key, NewAccount};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};

use crate::base64url;
use crate::client::{Fault, is_bad_nonce, is_problem, with_nonce};
use crate::host::{AcmeHost, AcmeLogLevel};
use crate::plan::{AccountKey, AcmeIssuer, CertificateKey, ExternalAccount};
use crate::state::{AcmeStore, file_stem};
use crate::transport::AcmeTransport;

/// LIMIT: bytes of credentials and of files with keys.
pub(crate) const CREDENTIALS_MAX: usize = 64 << 10;
/// LIMIT: rejections of nonces of one request, beside those that the library bears.
pub(crate) const NONCES: usize = 10;

/// Where the account of an issuer is kept.
#[derive(Clone)]
pub(crate) struct AccountFile {
    /// Who knows what other servers have.
    pub host: Arc<dyn AcmeHost>,
    /// The directory of the issuer.
    pub store: Arc<AcmeStore>,
    /// Held while an account is made, so that there is one only.
    pub gate: Arc<tokio::sync::Mutex<()>>,
}

/// The beginning of the names of an account's files.
#[must_use]
pub(crate) fn account_stem(issuer: &AcmeIssuer) -> String {
    format!("account-{}", file_stem(&issuer.uri))
}

impl AccountFile {
    /// The kept account, or a new one.
    pub(crate) async fn open(
        &self,
        issuer: &AcmeIssuer,
        transport: &AcmeTransport,
    ) -> Result<Account, Fault> {
        let name = format!("{}.json", account_stem(issuer));
        let _gate = self.gate.lock().await;
        // The process may have died while the key was changed.
        self.settle_next(issuer, transport).await?;
        self.take_over(issuer, &name)?;
        if let Some(kept) = self.store.read(&name, CREDENTIALS_MAX)? {
            match serde_json::from_slice::<AccountCredentials>(&kept) {
                Ok(credentials) => {
                    let account = self.kept(issuer, transport, credentials, &name).await?;
                    self.note(issuer, None)?;
                    return Ok(account);
                }
                Err(_) => self.store.set_aside(&name)?,
            }
        }
        let account = self.make(issuer, transport, &name).await?;
        self.note(issuer, None)?;
        Ok(account)
    }

    /// Keeps the account that servers have in common, if it is another one than that here.
    pub(crate) fn take_over(&self, issuer: &AcmeIssuer, name: &str) -> Result<(), String> {
        let Some(theirs) = issuer.account_name().and_then(|known| self.host.account(&known)) else {
            return Ok(());
        };
        let is_good = serde_json::from_slice::<AccountCredentials>(&theirs).is_ok();
        if is_good && self.store.read(name, CREDENTIALS_MAX)?.as_deref() != Some(&*theirs) {
            self.store.write(name, &theirs)?;
            let text = format!("acme: the account at \"{}\" is another server's", issuer.name);
            self.host.log(AcmeLogLevel::Notice, &text);
        }
        Ok(())
    }

    /// Tells what is kept now, which may have taken the place of `before`.
    pub(crate) fn note(&self, issuer: &AcmeIssuer, before: Option<&[u8]>) -> Result<(), String> {
        let kept = self.store.read(&format!("{}.json", account_stem(issuer)), CREDENTIALS_MAX)?;
        if let (Some(name), Some(kept)) = (issuer.account_name(), kept) {
            self.host.note_account(&name, &kept, before);
        }
        Ok(())
    }

    async fn kept(
        &self,
        issuer: &AcmeIssuer,
        transport: &AcmeTransport,
        credentials: AccountCredentials,
        name: &str,
    ) -> Result<Account, Fault> {
        let is_usable = match file_key(issuer)? {
            Some((_, PrivateKeyDer::Pkcs8(key))) => {
                key.secret_pkcs8_der() == credentials.private_key().secret_pkcs8_der()
            }
            _ => true,
        };
        if !is_usable {
            return self.make(issuer, transport, name).await;
        }
        let builder = Account::builder_with_http(Box::new(transport.clone()));
        let opened = builder.from_credentials(credentials).await;
        opened.map_err(|error| Fault::Request("directory", error))
    }

    async fn make(
        &self,
        issuer: &AcmeIssuer,
        transport: &AcmeTransport,
        name: &str,
    ) -> Result<Account, Fault> {
        let contacts: Vec<&str> = issuer.contacts.iter().map(String::as_str).collect();
        let external = issuer.external_account.as_ref().map(external).transpose()?;
        let key = file_key(issuer)?;
        if key.is_some() && external.is_some() {
            let why = "unsupported: external_account_key with account_key of a file";
            return Err(Fault::Own(why.to_owned()));
        }
        let builder = || Account::builder_with_http(Box::new(transport.clone()));
        let uri = || issuer.uri.clone();
        let made = match key {
            None => {
                let wanted = NewAccount {
                    contact: &contacts,
                    terms_of_service_agreed: issuer.accepts_terms,
                    only_return_existing: false,
                };
                with_nonce!(builder().create(&wanted, uri(), external.as_ref()))
            }
            Some(_) if !issuer.accepts_terms => {
                let why = "account_key of a file wants accept_terms_of_service";
                return Err(Fault::Own(why.to_owned()));
            }
            Some((_, key)) => {
                let again = || {
                    let key = key.clone_key();
                    let PrivateKeyDer::Pkcs8(der) = &key else { return Err(Error::KeyRejected) };
                    let der = PrivatePkcs8KeyDer::from(der.secret_pkcs8_der().to_vec());
                    Ok((Key::from_pkcs8_der(der)?, key))
                };
                with_nonce!(async { builder().create_from_key(again()?, uri()).await })
            }
        };
        let (account, credentials) = made.map_err(|error| Fault::Request("account", error))?;
        transport.step("account known").await;
        let text = serde_json::to_vec(&credentials).map_err(|error| error.to_string())?;
        self.store.write(name, &text)?;
        transport.step("account kept").await;
        if file_key(issuer)?.is_some() && !contacts.is_empty() {
            let told = with_nonce!(account.update_contacts(&contacts));
            told.map_err(|error| Fault::Request("contacts", error))?;
        }
        Ok(account)
    }

    /// The issuer no longer knows the account: the next attempt makes a new one.
    pub(crate) fn forget(&self, issuer: &AcmeIssuer, error: &Error) -> Result<(), String> {
        if !is_problem(error, "accountDoesNotExist") {
            return Ok(());
        }
        let file = format!("{}.json", account_stem(issuer));
        if let (Some(name), Some(kept)) =
            (issuer.account_name(), self.store.read(&file, CREDENTIALS_MAX)?)
        {
            self.host.forget_account(&name, &kept);
        }
        self.store.set_aside(&file)
    }
}

/// The key that the configuration names; none: one is generated.
fn file_key(issuer: &AcmeIssuer) -> Result<Option<(Key, PrivateKeyDer<'static>)>, String> {
    let path = match &issuer.account_key {
        AccountKey::Generated(CertificateKey::EcdsaP256) => return Ok(None),
        AccountKey::Generated(_) => {
            return Err("unsupported: account keys other than ecdsa:256".to_owned());
        }
        AccountKey::File(path) => path,
    };
    let block = pem::parse(read(path)?).map_err(|error| format!("account_key: {error}"))?;
    if block.tag() != "PRIVATE KEY" {
        return Err(format!("account_key: \"{}\" is no PKCS #8", path.display()));
    }
    let der = PrivatePkcs8KeyDer::from(block.into_contents());
    let key = Key::from_pkcs8_der(der.clone_key())
        .map_err(|_| "unsupported: account keys other than ecdsa:256".to_owned())?;
    Ok(Some((key, PrivateKeyDer::Pkcs8(der))))
}

fn external(account: &ExternalAccount) -> Result<ExternalAccountKey, String> {
    let text = String::from_utf8_lossy(&read(&account.key_file)?).trim().to_owned();
    let key = base64url::decode(&text).filter(|key| !key.is_empty()).ok_or_else(|| {
        format!("external_account_key: \"{}\" is no base64url", account.key_file.display())
    })?;
    Ok(ExternalAccountKey::new(account.kid.clone(), &key))
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    std::fs::read(path).map_err(|error| format!("cannot read \"{}\": {error}", path.display()))
}
