//! A key change of an account (RFC 8555, section 7.3.5), in an order that loses no key if the
//! process dies:
//!
//! ```text
//!   store new key (`.next`) -> change at the issuer -> put it in force (`.json`) -> remove `.next`
//! ```
//! A process that finds a `.next` asks the issuer which key it knows.

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{Method, Request};
use instant_acme::{
    AccountCredentials, BodyWrapper, BytesResponse, Error, HttpClient as _, Key, Problem,
};
use serde_json::{Value, json};

use crate::accounts::{AccountFile, CREDENTIALS_MAX, NONCES, account_stem, ask};
use crate::client::{Fault, is_bad_nonce, is_problem, with_nonce};
use crate::jws::AccountSigner;
use crate::plan::{AccountKey, AcmeIssuer};
use crate::transport::AcmeTransport;

/// An account as stored in its file.
struct KeptAccount {
    /// Its URL.
    id: String,
    /// PKCS #8 in DER.
    key: Vec<u8>,
}

/// Resources of an issuer.
struct AcmeDirectory {
    key_change: String,
    new_nonce: String,
}

impl AccountFile {
    /// Changes the key of the account.
    pub(crate) async fn roll_over(
        &self,
        issuer: &AcmeIssuer,
        transport: &AcmeTransport,
    ) -> Result<(), Fault> {
        if let AccountKey::File(path) = &issuer.account_key {
            let text = format!("the key of the account is the file \"{}\"", path.display());
            return Err(Fault::Own(text));
        }
        let _gate = self.gate.lock().await;
        // An unfinished change is completed first; its key is recent enough.
        if self.settle_next(issuer, transport).await? {
            return Ok(());
        }
        self.take_over(issuer, transport, &format!("{}.json", account_stem(issuer))).await?;
        let account = self.kept_account(issuer)?;
        let (_, next) = Key::generate_pkcs8().map_err(|error| error.to_string())?;
        let text = pem::encode(&pem::Pem::new("PRIVATE KEY", next.secret_pkcs8_der()));
        self.store.write(&next_file(issuer), text.as_bytes())?;
        transport.step("next key kept").await;
        if let Err(fault) = change(issuer, transport, &account, next.secret_pkcs8_der()).await {
            // The request failed or its result is unknown: ask the issuer.
            return match self.settle_next(issuer, transport).await {
                Ok(true) => Ok(()),
                Ok(false) | Err(_) => Err(fault),
            };
        }
        transport.step("key changed").await;
        match self.settle_next(issuer, transport).await? {
            true => Ok(()),
            false => Err(Fault::Own("the issuer does not know the new key".to_owned())),
        }
    }

    /// Completes an unfinished key change; returns whether the new key is in force.
    pub(crate) async fn settle_next(
        &self,
        issuer: &AcmeIssuer,
        transport: &AcmeTransport,
    ) -> Result<bool, Fault> {
        let name = next_file(issuer);
        let Some(text) = self.store.read(&name, CREDENTIALS_MAX)? else { return Ok(false) };
        let key = pem::parse(text).ok().filter(|block| block.tag() == "PRIVATE KEY");
        let Some(key) = key.map(pem::Pem::into_contents) else {
            // A truncated file was never used: files are replaced as a whole.
            self.store.set_aside(&name)?;
            return Ok(false);
        };
        match ask(issuer, transport, &key).await {
            Ok((_, credentials)) => {
                self.promote(issuer, transport, &credentials).await?;
                Ok(true)
            }
            Err(error) if is_problem(&error, "accountDoesNotExist") => {
                self.store.remove(&name)?;
                Ok(false)
            }
            Err(error) => Err(Fault::Request("account", error)),
        }
    }

    async fn promote(
        &self,
        issuer: &AcmeIssuer,
        transport: &AcmeTransport,
        credentials: &AccountCredentials,
    ) -> Result<(), Fault> {
        let text = serde_json::to_vec(credentials).map_err(|error| error.to_string())?;
        let name = format!("{}.json", account_stem(issuer));
        let before = self.store.read(&name, CREDENTIALS_MAX)?;
        self.store.write(&name, &text)?;
        self.record(issuer, &text, before.as_deref());
        transport.step("new key in force").await;
        self.store.remove(&next_file(issuer))?;
        transport.step("next key gone").await;
        Ok(())
    }

    fn kept_account(&self, issuer: &AcmeIssuer) -> Result<KeptAccount, String> {
        let name = format!("{}.json", account_stem(issuer));
        let text = self.store.read(&name, CREDENTIALS_MAX)?;
        let text = text.ok_or_else(|| "there is no account yet".to_owned())?;
        let damaged = || format!("{} is damaged", self.store.shown(&name));
        let kept: AccountCredentials = serde_json::from_slice(&text).map_err(|_| damaged())?;
        let whole: Value = serde_json::from_slice(&text).map_err(|_| damaged())?;
        let id = whole["id"].as_str().ok_or_else(damaged)?.to_owned();
        Ok(KeptAccount { id, key: kept.private_key().secret_pkcs8_der().to_vec() })
    }
}

fn next_file(issuer: &AcmeIssuer) -> String {
    format!("{}.next", account_stem(issuer))
}

/// Has the issuer replace the key.
async fn change(
    issuer: &AcmeIssuer,
    transport: &AcmeTransport,
    account: &KeptAccount,
    next: &[u8],
) -> Result<(), Fault> {
    let directory = directory(issuer, transport).await?;
    let (old, new) = (AccountSigner::from_pkcs8(&account.key)?, AccountSigner::from_pkcs8(next)?);
    let url = &directory.key_change;
    let header = json!({"alg": "ES256", "jwk": new.jwk(), "url": url});
    let inner = new.sign(&header, &json!({"account": account.id, "oldKey": old.jwk()}))?;
    let sent = with_nonce!(async {
        let nonce = nonce(transport, &directory).await?;
        let header = json!({"alg": "ES256", "kid": account.id, "nonce": nonce, "url": url});
        let body = old.sign(&header, &inner).map_err(|why| Error::Other(why.into()))?;
        let request = Request::builder()
            .method(Method::POST)
            .uri(url)
            .header(CONTENT_TYPE, "application/jose+json")
            .body(BodyWrapper::from(body.to_string().into_bytes()))?;
        checked(transport.request(request).await?).await
    });
    sent.map(|_| ()).map_err(|error| Fault::Request("key change", error))
}

async fn directory(issuer: &AcmeIssuer, transport: &AcmeTransport) -> Result<AcmeDirectory, Fault> {
    let asked = async {
        let request = Request::builder().uri(&issuer.uri).body(BodyWrapper::default())?;
        checked(transport.request(request).await?).await
    };
    let text = asked.await.map_err(|error| Fault::Request("directory", error))?;
    let all: Value = serde_json::from_slice(&text).map_err(|error| error.to_string())?;
    let url = |name: &str| all[name].as_str().map(str::to_owned);
    let missing = || "the issuer does not change keys of accounts".to_owned();
    let (key_change, new_nonce) = (url("keyChange"), url("newNonce"));
    Ok(AcmeDirectory {
        key_change: key_change.ok_or_else(missing)?,
        new_nonce: new_nonce.ok_or_else(missing)?,
    })
}

async fn nonce(transport: &AcmeTransport, directory: &AcmeDirectory) -> Result<String, Error> {
    let request = Request::builder()
        .method(Method::HEAD)
        .uri(&directory.new_nonce)
        .body(BodyWrapper::default())?;
    let response = transport.request(request).await?;
    let nonce = response.parts.headers.get("replay-nonce").and_then(|nonce| nonce.to_str().ok());
    nonce.map(str::to_owned).ok_or(Error::Str("the issuer sends no nonce"))
}

/// The body of a response without an error.
async fn checked(mut response: BytesResponse) -> Result<Bytes, Error> {
    let body = response.body.into_bytes().await.map_err(Error::Other)?;
    if response.parts.status.is_success() {
        return Ok(body);
    }
    Err(match serde_json::from_slice::<Problem>(&body) {
        Ok(problem) => Error::Api(problem),
        Err(_) => Error::Str("the issuer refused it"),
    })
}
