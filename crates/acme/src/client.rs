//! One attempt: account, order, challenges, request, chain (RFC 8555, section 7).
//!
//! ```text
//!   account -> order (kept) -> authorizations -> present all -> ready -> poll
//!           -> finalize -> poll -> chain -> check
//! ```
//! Easiest to break: all data of an issuer (tokens, identifiers, chains) is untrusted.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use instant_acme::{
    Account, AuthorizationStatus, CertificateIdentifier, ChallengeType, Error, Identifier,
    NewOrder, Order, OrderStatus,
};
use rustls::pki_types::Der;

use crate::accounts::{AccountFile, NONCES};
use crate::certificate::{self, ChainFacts};
use crate::host::{AcmeHost, AcmeLogLevel};
use crate::pending::PendingOrder;
use crate::plan::{AcmeIssuer, AcmeOrder, ChallengeKind};
use crate::presented::Presented;
use crate::schedule::AttemptFailure;
use crate::state::AcmeStore;
use crate::transport::AcmeTransport;

/// LIMIT: time for a whole attempt; validations by `dns-01` are slow.
const ATTEMPT_MAX: Duration = Duration::from_secs(900);
/// The intervals of polling an order: at first, and at most.
const POLL_FIRST: Duration = Duration::from_millis(250);
const POLL_MAX: Duration = Duration::from_secs(10);
/// LIMIT: polls of an order before it counts as failed.
const POLLS: usize = 60;
/// LIMIT: bytes of a token.
const TOKEN_MAX: usize = 200;

/// Repeats a request whose nonce was rejected: the issuer did not process it.
macro_rules! with_nonce {
    ($request:expr) => {{
        let mut left = NONCES;
        loop {
            match $request.await {
                Err(error) if left > 0 && is_bad_nonce(&error) => left -= 1,
                done => break done,
            }
        }
    }};
}
pub(crate) use with_nonce;

pub(crate) fn is_bad_nonce(error: &Error) -> bool {
    is_problem(error, "badNonce")
}

pub(crate) fn is_problem(error: &Error, kind: &str) -> bool {
    let Error::Api(problem) = error else { return false };
    let kind_of = problem.r#type.as_deref().and_then(|kind| kind.rsplit(':').next());
    kind_of == Some(kind)
}

/// The parts of an attempt.
pub(crate) struct AcmeAttempt {
    /// The issuer.
    pub issuer: AcmeIssuer,
    /// The order.
    pub order: AcmeOrder,
    /// Its connection.
    pub transport: AcmeTransport,
    /// The directory of the order's files.
    pub store: Arc<AcmeStore>,
    /// The prefix of their names.
    pub stem: String,
    /// The account.
    pub account: AccountFile,
    /// The credentials that it was opened with.
    pub used: OnceLock<Vec<u8>>,
    /// Presents challenges.
    pub host: Arc<dyn AcmeHost>,
    /// Seconds since 1970.
    pub clock: Arc<dyn Fn() -> u64 + Send + Sync>,
    /// The certificate to be renewed, if this issuer issued it.
    pub replaces: Option<(Vec<u8>, Vec<u8>)>,
    /// Whether the issuer may know the order.
    pub was_ordered: AtomicBool,
    /// Whether it continues an order of an earlier attempt.
    pub was_resumed: AtomicBool,
}

/// A certificate that matches the order.
#[derive(Debug)]
pub(crate) struct IssuedCertificate {
    /// In PEM form.
    pub chain: String,
    /// In PEM form.
    pub key: String,
    /// Its facts.
    pub facts: ChainFacts,
}

/// An error: of the issuer, or our own.
pub(crate) enum Fault {
    /// A request failed.
    Request(&'static str, Error),
    /// A response is invalid, or something failed here.
    Own(String),
}

impl From<String> for Fault {
    fn from(why: String) -> Self {
        Self::Own(why)
    }
}

fn at(step: &'static str) -> impl FnOnce(Error) -> Fault {
    move |error| Fault::Request(step, error)
}

impl AcmeAttempt {
    /// Runs the attempt. The certificate is not stored yet.
    ///
    /// # Errors
    ///
    /// The attempt failed.
    pub(crate) async fn run(&self) -> Result<IssuedCertificate, AttemptFailure> {
        let done = tokio::time::timeout(ATTEMPT_MAX, self.certificate()).await;
        let fault = match done {
            Ok(Ok(issued)) => return Ok(issued),
            Ok(Err(fault)) => fault,
            Err(_) => Fault::Own(format!("no certificate in {} s", ATTEMPT_MAX.as_secs())),
        };
        let notes = self.transport.notes();
        let was_ordered = self.was_ordered.load(Ordering::Relaxed);
        let (why, is_silent) = match fault {
            Fault::Request(step, error) => {
                let used = self.used.get().filter(|_| is_problem(&error, "accountDoesNotExist"));
                if let Some(used) = used
                    && let Err(why) = self.account.forget(&self.issuer, used).await
                {
                    self.host.log(AcmeLogLevel::Error, &format!("acme: {why}"));
                }
                let is_answer = matches!(error, Error::Api(_)) || was_ordered;
                let failed = notes.status.is_none_or(|status| status >= 500);
                let status = notes.status.filter(|_| !matches!(error, Error::Api(_)));
                let status = status.map(|status| format!(" (status {status})"));
                (format!("{step}: {error}{}", status.unwrap_or_default()), failed || !is_answer)
            }
            Fault::Own(why) => (why, false),
        };
        // If the issuer stopped responding, the order may still exist there; it is resumed once.
        if !is_silent || self.was_resumed.load(Ordering::Relaxed) {
            self.forget_pending();
        }
        let retry_after = notes.retry_after.filter(|_| notes.status.is_some_and(|s| s >= 400));
        Err(AttemptFailure { why, was_ordered, is_silent, retry_after })
    }

    async fn certificate(&self) -> Result<IssuedCertificate, Fault> {
        let opened = self.account.open(&self.issuer, &self.transport).await?;
        let (account, _first) = (opened.account, self.used.set(opened.credentials));
        if let Some(pending) = self.pending() {
            // If it fails, that counts: one start must not lead to a second order.
            self.was_resumed.store(true, Ordering::Relaxed);
            return self.resume(&account, &pending).await;
        }
        let key = certificate::new_key(self.order.key)?;
        let (mut order, url) = self.begin(&account).await?;
        self.record_account();
        let pending = PendingOrder { issuer: self.issuer.name.clone(), url, key: key.clone() };
        if pending.issuer.contains(char::is_control) || pending.url.contains(char::is_control) {
            return Err(Fault::Own("the order's address is unusable".to_owned()));
        }
        self.transport.step("order known").await;
        self.store.write(&format!("{}.pending", self.stem), pending.text().as_bytes())?;
        self.transport.step("order kept").await;
        self.complete(&account, &mut order, key).await
    }

    fn pending(&self) -> Option<PendingOrder> {
        let name = format!("{}.pending", self.stem);
        let text = self.store.read(&name, certificate::BUNDLE_MAX).ok().flatten()?;
        let pending = PendingOrder::parse(&String::from_utf8(text).ok()?)?;
        (pending.issuer == self.issuer.name).then_some(pending)
    }

    pub(crate) fn forget_pending(&self) {
        if let Err(why) = self.store.remove(&format!("{}.pending", self.stem)) {
            self.host.log(AcmeLogLevel::Error, &format!("acme: {why}"));
        }
    }

    async fn resume(
        &self,
        account: &Account,
        pending: &PendingOrder,
    ) -> Result<IssuedCertificate, Fault> {
        let url = pending.url.clone();
        let mut order = with_nonce!(account.order(url.clone())).map_err(at("order"))?;
        self.was_ordered.store(true, Ordering::Relaxed);
        self.record_account();
        self.complete(account, &mut order, pending.key.clone()).await
    }

    /// The issuer accepted a request of the account.
    fn record_account(&self) {
        if let Some(used) = self.used.get() {
            self.account.record(&self.issuer, used, None);
        }
    }

    /// Places the order.
    async fn begin(&self, account: &Account) -> Result<(Order, String), Fault> {
        let identifiers: Vec<Identifier> = (self.order.names.iter())
            .map(|name| match name.parse::<IpAddr>() {
                Ok(address) => Identifier::Ip(address),
                Err(_) => Identifier::Dns(name.clone()),
            })
            .collect();
        let profile = self.profile(account)?;
        let mut replaces = self.replaces.as_ref();
        loop {
            let mut wanted = NewOrder::new(&identifiers);
            if let Some(profile) = profile {
                wanted = wanted.profile(profile);
            }
            if let Some((authority, serial)) = replaces {
                let (authority, serial) = (Der::from_slice(authority), Der::from_slice(serial));
                wanted = wanted.replaces(CertificateIdentifier::new(authority, serial));
            }
            self.was_ordered.store(true, Ordering::Relaxed);
            match with_nonce!(account.new_order(&wanted)) {
                Ok(order) => {
                    let url = order.url().to_owned();
                    return Ok((order, url));
                }
                // The issuer does not know the certificate, or has replaced it already.
                Err(Error::Api(_) | Error::Unsupported(_)) if replaces.is_some() => replaces = None,
                // It accepted the order without `replaces` in its response (RFC 9773 §5: a MUST):
                // to fail each time would end in no certificate at all.
                Err(Error::Other(_)) if replaces.is_some() && self.was_created() => replaces = None,
                Err(error) => return Err(Fault::Request("new order", error)),
            }
        }
    }

    /// Whether the issuer created the last order.
    fn was_created(&self) -> bool {
        self.transport.notes().status == Some(201)
    }

    /// The profile to request.
    fn profile(&self, account: &Account) -> Result<Option<&str>, Fault> {
        let Some((wanted, is_required)) = &self.issuer.profile else { return Ok(None) };
        if account.profiles().any(|profile| profile.name == wanted) {
            return Ok(Some(wanted));
        }
        let why = format!("the issuer has no profile \"{wanted}\"");
        if *is_required {
            return Err(Fault::Own(why));
        }
        self.host.log(AcmeLogLevel::Warn, &format!("acme: \"{}\": {why}", self.issuer.name));
        Ok(None)
    }

    async fn complete(
        &self,
        account: &Account,
        order: &mut Order,
        key: String,
    ) -> Result<IssuedCertificate, Fault> {
        if order.state().status == OrderStatus::Pending {
            let presented = self.validate(order).await;
            let presented = match presented {
                Ok(presented) => presented,
                Err((presented, fault)) => {
                    presented.end().await;
                    return Err(fault);
                }
            };
            let polled = self.poll(order, &[OrderStatus::Pending]).await;
            let polled = match polled {
                Ok(OrderStatus::Invalid) => Err(Fault::Own(self.refusal(order).await)),
                other => other.map(|_| ()),
            };
            presented.end().await;
            polled?;
        }
        if order.state().status == OrderStatus::Ready {
            let csr = certificate::request(&self.order.names, &key)?;
            with_nonce!(order.finalize_csr(&csr)).map_err(at("finalize"))?;
        }
        let ends = [OrderStatus::Processing, OrderStatus::Ready, OrderStatus::Pending];
        if ends.contains(&order.state().status) {
            self.poll(order, &ends).await?;
        }
        if order.state().status != OrderStatus::Valid {
            return Err(Fault::Own(self.refusal(order).await));
        }
        let chain = with_nonce!(order.certificate()).map_err(at("certificate"))?;
        let chain = chain.ok_or_else(|| "the order has no certificate".to_owned())?;
        let facts = self.check(&chain, &key)?;
        self.preferred(account, IssuedCertificate { chain, key, facts }).await
    }

    fn check(&self, chain: &str, key: &str) -> Result<ChainFacts, String> {
        let order = &self.order;
        let facts = certificate::check(chain.as_bytes(), key, order.key, &order.names)?;
        certificate::check_time(facts.validity, (self.clock)())?;
        Ok(facts)
    }

    /// The chain with the preferred root, if the issuer has it.
    async fn preferred(
        &self,
        account: &Account,
        issued: IssuedCertificate,
    ) -> Result<IssuedCertificate, Fault> {
        let Some(wanted) = &self.issuer.preferred_chain else { return Ok(issued) };
        if issued.facts.top.as_ref() == Some(wanted) {
            return Ok(issued);
        }
        let alternates = self.transport.notes().chain.map(|(_, links)| links).unwrap_or_default();
        for url in alternates {
            // The response is not an order, so parsing fails; the transport has the chain.
            let _no_order = with_nonce!(account.order(url.clone()));
            let Some((chain, _)) = self.transport.notes().chain else { continue };
            if let Ok(facts) = self.check(&chain, &issued.key)
                && facts.top.as_ref() == Some(wanted)
            {
                return Ok(IssuedCertificate { chain, facts, ..issued });
            }
        }
        let text = format!("acme: \"{}\" has no chain of \"{wanted}\"", self.issuer.name);
        self.host.log(AcmeLogLevel::Warn, &text);
        Ok(issued)
    }

    /// presents all challenges, and informs the issuer that they are ready.
    async fn validate<'a>(
        &'a self,
        order: &mut Order,
    ) -> Result<Presented<'a>, (Presented<'a>, Fault)> {
        let mut presented = Presented::new(&*self.host, &self.issuer.challenge);
        match self.validate_all(order, &mut presented).await {
            Ok(()) => Ok(presented),
            Err(fault) => Err((presented, fault)),
        }
    }

    async fn validate_all(
        &self,
        order: &mut Order,
        presented: &mut Presented<'_>,
    ) -> Result<(), Fault> {
        let kind = match &self.issuer.challenge {
            ChallengeKind::Http01 => ChallengeType::Http01,
            ChallengeKind::TlsAlpn01 => ChallengeType::TlsAlpn01,
            ChallengeKind::Dns01(_) => ChallengeType::Dns01,
        };
        let mut open = BTreeSet::new();
        let mut left = NONCES;
        let mut authorizations = order.authorizations();
        loop {
            let mut one = match authorizations.next().await {
                None => break,
                Some(Ok(one)) => one,
                Some(Err(error)) if left > 0 && is_bad_nonce(&error) => {
                    left -= 1;
                    // Those that were read are not read again.
                    authorizations = order.authorizations();
                    continue;
                }
                Some(Err(error)) => return Err(Fault::Request("authorization", error)),
            };
            left = NONCES;
            if one.status == AuthorizationStatus::Valid || open.contains(one.url()) {
                continue;
            }
            let name = self.own_name(&one.identifier())?;
            if one.status != AuthorizationStatus::Pending {
                return Err(Fault::Own(format!("the authorization of \"{name}\" is void")));
            }
            let url = one.url().to_owned();
            let challenge = one
                .challenge(kind.clone())
                .ok_or_else(|| format!("the issuer does not offer {kind:?} for \"{name}\""))?;
            let is_base64url = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
            let token = challenge.token.clone();
            if token.is_empty() || token.len() > TOKEN_MAX || !token.chars().all(is_base64url) {
                return Err(Fault::Own(format!("the token for \"{name}\" is unusable")));
            }
            presented.show(&name, &token, &challenge.key_authorization()).await?;
            open.insert(url);
        }
        self.transport.step("presented").await;
        // Issuers may send the validation to any server of the name.
        let spreading = self.host.spreading();
        if !spreading.is_zero() && !matches!(self.issuer.challenge, ChallengeKind::Dns01(_)) {
            tokio::time::sleep(spreading).await;
        }
        self.ready(order, open, &kind).await
    }

    async fn ready(
        &self,
        order: &mut Order,
        mut open: BTreeSet<String>,
        kind: &ChallengeType,
    ) -> Result<(), Fault> {
        let mut authorizations = order.authorizations();
        while let Some(one) = authorizations.next().await {
            let mut one = one.map_err(at("authorization"))?;
            if !open.remove(one.url()) {
                continue;
            }
            if let Some(mut challenge) = one.challenge(kind.clone()) {
                with_nonce!(challenge.set_ready()).map_err(at("challenge"))?;
            }
        }
        Ok(())
    }

    /// The name of the order that an authorization is for.
    fn own_name(
        &self,
        identifier: &instant_acme::AuthorizedIdentifier<'_>,
    ) -> Result<String, String> {
        let full = identifier.to_string();
        let is_ours = self.order.names.iter().any(|name| match name.parse::<IpAddr>() {
            Ok(address) => *identifier.identifier == Identifier::Ip(address),
            Err(_) => name.eq_ignore_ascii_case(&full),
        });
        match identifier.identifier {
            _ if !is_ours => Err("the issuer wants to validate a name that is not ours".to_owned()),
            Identifier::Dns(name) => Ok(name.to_ascii_lowercase()),
            other => Ok(other.clone().authorized_text()),
        }
    }

    /// Polls the order until it has another status than these.
    async fn poll(
        &self,
        order: &mut Order,
        while_in: &[OrderStatus],
    ) -> Result<OrderStatus, Fault> {
        let mut pause = POLL_FIRST;
        for _ in 0..POLLS {
            let asked = self.transport.notes().retry_after.map(Duration::from_secs);
            tokio::time::sleep(asked.unwrap_or(pause).clamp(POLL_FIRST, POLL_MAX)).await;
            pause = (pause * 2).min(POLL_MAX);
            let state = with_nonce!(refresh(order)).map_err(at("order"))?;
            if !while_in.contains(&state) {
                return Ok(state);
            }
        }
        Err(Fault::Own("the issuer does not come to a decision".to_owned()))
    }

    /// The reason of a refusal: the problems of the order and of its authorizations.
    async fn refusal(&self, order: &mut Order) -> String {
        let mut problems = Vec::new();
        if let Some(problem) = &order.state().error {
            problems.push(problem.to_string());
        }
        let mut authorizations = order.authorizations();
        while let Some(Ok(mut one)) = authorizations.next().await {
            // If an authorization cannot be read, the refusal is reported without it.
            let _unknown = with_nonce!(renew(&mut one));
            let name = one.identifier().to_string();
            let of_one = one.challenges.iter().filter_map(|challenge| challenge.error.as_ref());
            problems.extend(of_one.map(|problem| format!("{name}: {problem}")));
            if problems.len() > 3 {
                break;
            }
        }
        format!("the issuer refused the order: {}", problems.join("; "))
    }
}

async fn refresh(order: &mut Order) -> Result<OrderStatus, Error> {
    order.refresh().await.map(|state| state.status)
}

async fn renew(one: &mut instant_acme::AuthorizationHandle<'_>) -> Result<(), Error> {
    one.refresh().await.map(|_| ())
}

/// The text of an identifier that is not a name.
trait IdentifierText {
    fn authorized_text(self) -> String;
}

impl IdentifierText for Identifier {
    fn authorized_text(self) -> String {
        self.authorized(false).to_string()
    }
}
