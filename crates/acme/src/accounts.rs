//! Accounts at issuers: created once, stored in the state directory, by one attempt at a time. An
//! account that another server of the cluster shares replaces the stored one if the issuer knows
//! it.

use std::sync::Arc;

use instant_acme::{Account, AccountCredentials, Error, Key, NewAccount};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};

use crate::client::{Fault, is_bad_nonce, is_problem, with_nonce};
use crate::host::{AcmeHost, AcmeLogLevel};
use crate::key_files::{account_keys, file_key};
use crate::plan::AcmeIssuer;
use crate::state::{AcmeStore, file_stem};
use crate::transport::AcmeTransport;

/// LIMIT: bytes of credentials and of files with keys.
pub(crate) const CREDENTIALS_MAX: usize = 64 << 10;
/// LIMIT: retries of one request after a rejected nonce, beside those of the library.
pub(crate) const NONCES: usize = 10;

/// The file of an issuer's account.
#[derive(Clone)]
pub(crate) struct AccountFile {
    /// Knows the accounts of other servers.
    pub host: Arc<dyn AcmeHost>,
    /// The directory of the issuer.
    pub store: Arc<AcmeStore>,
    /// Held while an account is created, so that there is only one.
    pub gate: Arc<tokio::sync::Mutex<()>>,
}

/// An account, and the credentials of its file.
pub(crate) struct OpenAccount {
    pub account: Account,
    pub credentials: Vec<u8>,
}

/// The beginning of the names of an account's files.
#[must_use]
pub(crate) fn account_stem(issuer: &AcmeIssuer) -> String {
    format!("account-{}", file_stem(&issuer.uri))
}

impl AccountFile {
    /// Opens the stored account, or creates one.
    pub(crate) async fn open(
        &self,
        issuer: &AcmeIssuer,
        transport: &AcmeTransport,
    ) -> Result<OpenAccount, Fault> {
        let name = format!("{}.json", account_stem(issuer));
        let _gate = self.gate.lock().await;
        // The process may have died during a change of the key.
        self.settle_next(issuer, transport).await?;
        self.take_over(issuer, transport, &name).await?;
        if let Some(kept) = self.store.read(&name, CREDENTIALS_MAX)? {
            match serde_json::from_slice::<AccountCredentials>(&kept) {
                Ok(credentials) => {
                    return self.kept(issuer, transport, (credentials, kept), &name).await;
                }
                Err(_) => self.store.set_aside(&name)?,
            }
        }
        self.make(issuer, transport, &name).await
    }

    /// Stores the account that servers share, if it differs from the local one. The local one may
    /// have the newer key, so the issuer has to confirm the other one.
    pub(crate) async fn take_over(
        &self,
        issuer: &AcmeIssuer,
        transport: &AcmeTransport,
        name: &str,
    ) -> Result<(), Fault> {
        let Some(known) = issuer.account_name() else { return Ok(()) };
        let Some(theirs) = self.host.account(&known) else { return Ok(()) };
        let Ok(credentials) = serde_json::from_slice::<AccountCredentials>(&theirs) else {
            return Ok(());
        };
        let own = self.store.read(name, CREDENTIALS_MAX)?;
        if own.as_deref() == Some(&*theirs) {
            return Ok(());
        }
        if own.is_some() {
            let key = credentials.private_key().secret_pkcs8_der();
            match ask(issuer, transport, key).await {
                Ok(_) => self.store.keep_old(name)?,
                Err(error @ Error::Api(_)) => {
                    if is_problem(&error, "accountDoesNotExist") {
                        self.host.forget_account(&known, &theirs);
                    }
                    let name = &issuer.name;
                    let text = format!(
                        "acme: the account at \"{name}\" of another server is not used: {error}"
                    );
                    self.host.log(AcmeLogLevel::Warn, &text.replace(char::is_control, " "));
                    return Ok(());
                }
                Err(error) => return Err(Fault::Request("account", error)),
            }
        }
        self.store.write(name, &theirs)?;
        let text = format!("acme: the account at \"{}\" is another server's", issuer.name);
        self.host.log(AcmeLogLevel::Notice, &text);
        Ok(())
    }

    /// The issuer accepted a request with these credentials, which may replace `before`.
    pub(crate) fn record(&self, issuer: &AcmeIssuer, now: &[u8], before: Option<&[u8]>) {
        if let Some(name) = issuer.account_name() {
            self.host.record_account(&name, now, before);
        }
    }

    async fn kept(
        &self,
        issuer: &AcmeIssuer,
        transport: &AcmeTransport,
        (credentials, text): (AccountCredentials, Vec<u8>),
        name: &str,
    ) -> Result<OpenAccount, Fault> {
        let is_usable = match file_key(issuer)? {
            Some(PrivateKeyDer::Pkcs8(key)) => {
                key.secret_pkcs8_der() == credentials.private_key().secret_pkcs8_der()
            }
            _ => true,
        };
        if !is_usable {
            return self.make(issuer, transport, name).await;
        }
        let builder = Account::builder_with_http(Box::new(transport.clone()));
        let opened = builder.from_credentials(credentials).await;
        let account = opened.map_err(|error| Fault::Request("directory", error))?;
        Ok(OpenAccount { account, credentials: text })
    }

    async fn make(
        &self,
        issuer: &AcmeIssuer,
        transport: &AcmeTransport,
        name: &str,
    ) -> Result<OpenAccount, Fault> {
        let contacts: Vec<&str> = issuer.contacts.iter().map(String::as_str).collect();
        let (key, external) = account_keys(issuer)?;
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
            Some(key) => {
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
        self.store.keep_old(name)?;
        self.store.write(name, &text)?;
        transport.step("account kept").await;
        if file_key(issuer)?.is_some() && !contacts.is_empty() {
            let updated = with_nonce!(account.update_contacts(&contacts));
            updated.map_err(|error| Fault::Request("contacts", error))?;
        }
        self.record(issuer, &text, None);
        Ok(OpenAccount { account, credentials: text })
    }

    /// The issuer no longer knows the account that an attempt used: removes it, if it is the stored
    /// one, so that the next attempt creates another.
    pub(crate) async fn forget(&self, issuer: &AcmeIssuer, used: &[u8]) -> Result<(), String> {
        let _gate = self.gate.lock().await;
        if let Some(name) = issuer.account_name() {
            self.host.forget_account(&name, used);
        }
        let file = format!("{}.json", account_stem(issuer));
        if self.store.read(&file, CREDENTIALS_MAX)?.as_deref() != Some(used) {
            return Ok(());
        }
        self.store.keep_old(&file)?;
        self.store.remove(&file)
    }
}

/// Looks up the account of a key (PKCS #8 in DER) at the issuer; creates none.
pub(crate) async fn ask(
    issuer: &AcmeIssuer,
    transport: &AcmeTransport,
    key: &[u8],
) -> Result<(Account, AccountCredentials), Error> {
    let again = || {
        let der = || PrivatePkcs8KeyDer::from(key.to_vec());
        Ok::<_, Error>((Key::from_pkcs8_der(der())?, PrivateKeyDer::Pkcs8(der())))
    };
    let builder = || Account::builder_with_http(Box::new(transport.clone()));
    with_nonce!(async { builder().from_key(again()?, issuer.uri.clone()).await })
}
