//! OCSP stapling: a thread queries the responders of our certificates, caches the responses while
//! they are valid, and supplies them to handshakes. It starts with the first certificate that needs
//! it, and nothing waits for it.
//!
//! ```text
//!   attach (draft) ──settle (in force)──▶ active ─┬─due──▶ asked ──▶ staple
//!   certificate of an order ──install─────▶ issued ─┘
//! ```
//! Easiest to break: a draft may be dropped, so certificates attached to it must not be queried.

mod issued;
mod responder;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bolide_acme::OrderId;
use bolide_conf::model::{LogLevel, TlsConf};
use bolide_tls::{LoadedCertificate, OcspQuestion, Staple};

use crate::account::{WorkerAccount, spawn_as};
use crate::control_log::ControlLog;
use crate::tls_setup::openssl_words;
pub(crate) use issued::{IssuedStapling, StapleRule};
use responder::Responder;

/// Seconds before the end of a response that the next one is requested, as in nginx; and the least
/// and the most between two requests.
const EARLY: u64 = 300;
const LATEST: u64 = 3600;
/// Seconds until a failed query is repeated: at first, doubled with each failure.
const RETRY: u64 = 10;
/// How long a draft waits for addresses of responders, of all its servers.
const NAMES_MAX: Duration = Duration::from_secs(3);

/// The certificates to staple, and the thread that queries for them.
#[derive(Debug, Default)]
pub(crate) struct Stapling(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    bell: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// Of the configuration in force.
    active: Vec<Arc<Entry>>,
    /// Of certificates in use that were ordered.
    issued: BTreeMap<OrderId, Vec<Arc<Entry>>>,
    /// Directives whose certificates cannot be stapled, each logged once.
    noticed: BTreeSet<OrderId>,
    log: Option<Arc<ControlLog>>,
    runs: bool,
}

/// The certificates to staple of a draft configuration.
#[derive(Debug)]
pub(crate) struct StaplingDraft {
    entries: Vec<Arc<Entry>>,
    /// Whether ordered certificates are stapled.
    has_rules: bool,
    /// How long names of responders may still be resolved.
    left: Duration,
}

impl Default for StaplingDraft {
    fn default() -> Self {
        Self { entries: Vec::new(), has_rules: false, left: NAMES_MAX }
    }
}

impl StaplingDraft {
    /// Whether the name of a responder has addresses, or it is not known in time: a name server
    /// that does not answer must not hold up the control thread.
    fn may_resolve(&mut self, responder: &Responder) -> bool {
        let (sender, receiver) = sync_channel(1);
        let asked = responder.clone();
        let body = move || {
            let _late = sender.send(!asked.addresses().is_empty());
        };
        if self.left.is_zero() || std::thread::Builder::new().spawn(body).is_err() {
            return true;
        }
        let start = bolide_io::process::now().mono;
        let found = receiver.recv_timeout(self.left).unwrap_or(true);
        self.left = self.left.saturating_sub(bolide_io::process::now().mono.since(start));
        found
    }
}

/// A certificate to staple.
#[derive(Debug)]
struct Entry {
    question: OcspQuestion,
    responder: Responder,
    /// The file of the certificate, or its order, for the log.
    name: String,
    staple: Staple,
    known: Mutex<Known>,
}

/// The state of a certificate. Times are seconds since 1970.
#[derive(Clone, Debug, Default)]
struct Known {
    answer: Option<Vec<u8>>,
    /// Until when the response is valid; `None` if it does not say.
    until: Option<u64>,
    /// When to query again.
    due: u64,
    failures: u32,
}

impl Stapling {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock()
    }

    /// The certificates of a server with the staples that `ssl_stapling` requires; warns of those
    /// without a responder.
    ///
    /// # Errors
    ///
    /// In nginx's words: a file is unreadable or contains no response.
    pub(crate) fn attach(
        &self,
        draft: &mut StaplingDraft,
        conf: &TlsConf,
        certificates: Vec<(String, LoadedCertificate)>,
        warnings: &mut Vec<String>,
    ) -> Result<Vec<LoadedCertificate>, String> {
        let certificates = certificates.into_iter();
        if !conf.stapling {
            return Ok(certificates.map(|(_, certificate)| certificate).collect());
        }
        if let Some(path) = &conf.stapling_file {
            let answer = read_answer(path)?;
            let all = certificates.map(|(_, certificate)| certificate.stapled(answer.clone()));
            return Ok(all.collect());
        }
        let trusted = trusted(conf)?;
        let mut all = Vec::new();
        for (name, certificate) in certificates {
            match self.entry(draft, (conf, name), &certificate, &trusted) {
                Ok(staple) => all.push(certificate.at_staple(&staple)),
                Err(why) => {
                    warnings.push(format!("\"ssl_stapling\" ignored, {why}"));
                    all.push(certificate);
                }
            }
        }
        Ok(all)
    }

    fn entry(
        &self,
        draft: &mut StaplingDraft,
        (conf, name): (&TlsConf, String),
        certificate: &LoadedCertificate,
        trusted: &[Vec<u8>],
    ) -> Result<Staple, String> {
        let question = OcspQuestion::new(certificate, trusted, conf.stapling_verify);
        let question = question
            .ok_or_else(|| format!("issuer certificate not found for certificate \"{name}\""))?;
        let url =
            conf.stapling_responder.clone().or_else(|| bolide_tls::responder(certificate.leaf()));
        let url =
            url.ok_or_else(|| format!("no OCSP responder URL in the certificate \"{name}\""))?;
        let in_responder = |why: &str, text: &str| {
            format!("{why} in OCSP responder \"{text}\" in the certificate \"{name}\"")
        };
        let responder = Responder::parse(&url).map_err(|(why, text)| in_responder(why, &text))?;
        let active = self.state().active.clone();
        let is_known = active.iter().any(|entry| entry.responder == responder);
        if !is_known && !draft.may_resolve(&responder) {
            return Err(in_responder("host not found", &url[7..]));
        }
        let is_same = |entry: &&Arc<Entry>| {
            entry.question == question && entry.responder == responder && entry.name == name
        };
        if let Some(entry) = draft.entries.iter().find(is_same) {
            return Ok(entry.staple.clone());
        }
        let known = active.iter().find(is_same).map(|entry| entry.known().clone());
        // A new configuration retries failed queries at once.
        let mut known = known.unwrap_or_default();
        if known.failures > 0 {
            known.due = 0;
        }
        let staple = certificate.with_staple();
        staple.set(known.answer.clone(), known.until);
        let entry =
            Entry { question, responder, name, staple: staple.clone(), known: Mutex::new(known) };
        draft.entries.push(Arc::new(entry));
        Ok(staple)
    }

    /// Logs to another file from now on: the old one may have been moved away.
    pub(crate) fn log_to(&self, log: ControlLog) {
        self.state().log = Some(Arc::new(log));
    }

    /// Puts the draft in force, and queries unknown statuses. The thread runs as `account`:
    /// responses of responders are parsed without privileges.
    pub(crate) fn settle(
        &self,
        draft: StaplingDraft,
        log: ControlLog,
        account: Option<&WorkerAccount>,
    ) {
        let mut state = self.state();
        state.active = draft.entries;
        let log = Arc::new(log);
        state.log = Some(log.clone());
        self.0.bell.notify_all();
        if (!state.active.is_empty() || draft.has_rules) && !state.runs {
            let (shared, refusing, log_of_thread) = (self.0.clone(), self.0.clone(), log.clone());
            let refused = move |why: &str| {
                log_of_thread.write(LogLevel::Emerg, why);
                // The next reload tries again.
                refusing.lock().runs = false;
            };
            match spawn_as(account, "stapling", move || shared.run(), refused) {
                Ok(_) => state.runs = true,
                Err(error) => {
                    log.write(LogLevel::Alert, &format!("cannot query OCSP responders: {error}"));
                }
            }
        }
    }
}

impl Shared {
    /// The state; what a panicking thread has left of it is whole.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes due queries, forever: the thread ends with the process.
    fn run(&self) {
        let mut state = self.lock();
        loop {
            let now = bolide_io::process::now().unix_seconds();
            let due = state.entries().map(|entry| entry.known().due).min();
            let wait =
                due.map_or(Duration::MAX, |due| Duration::from_secs(due.saturating_sub(now)));
            if !wait.is_zero() {
                // An hour at most: the clock may be set.
                let wait = wait.min(Duration::from_secs(LATEST));
                let woken = self.bell.wait_timeout(state, wait);
                state = woken.unwrap_or_else(PoisonError::into_inner).0;
                continue;
            }
            let next = state.entries().min_by_key(|entry| entry.known().due).cloned();
            let log = state.log.clone();
            drop(state);
            let renewed = next.zip(log).map(|(entry, log)| (entry.renew(&log), entry));
            state = self.lock();
            if let Some((Renewed::Silent(pause), entry)) = renewed {
                state.postpone(&entry.responder, pause);
            }
        }
    }
}

impl State {
    fn entries(&self) -> impl Iterator<Item = &Arc<Entry>> {
        self.active.iter().chain(self.issued.values().flatten())
    }

    /// A responder did not respond: many ordered certificates of it must not delay others.
    fn postpone(&self, responder: &Responder, until: u64) {
        let issued = self.issued.values().flatten();
        for entry in issued.filter(|entry| entry.responder == *responder) {
            let mut known = entry.known();
            known.due = known.due.max(until);
        }
    }
}

/// What a query came to.
enum Renewed {
    /// The responder responded.
    Answered,
    /// It did not; the query is repeated then, in seconds since 1970.
    Silent(u64),
}

impl Entry {
    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Queries, and stores the response; an old one stays until it expires.
    fn renew(&self, log: &ControlLog) -> Renewed {
        let now = bolide_io::process::now().unix_seconds();
        let answer = self.responder.ask(&self.question.request());
        let is_silent = answer.is_err();
        let asked = answer.and_then(|answer| match self.question.judge(&answer, now) {
            Ok(until) => Ok((answer, until)),
            Err(fault) => Err(fault.to_string()),
        });
        // The query takes time.
        let now = bolide_io::process::now().unix_seconds();
        let mut known = self.known();
        match asked {
            Ok((answer, until)) => {
                let before_end = until.map_or(u64::MAX, |until| until.saturating_sub(EARLY));
                let due = before_end.min(now + LATEST).max(now + EARLY);
                *known = Known { answer: Some(answer), until, due, failures: 0 };
                self.staple.set(known.answer.clone(), until);
            }
            Err(why) => {
                known.due = now + EARLY.min(RETRY << known.failures.min(8));
                known.failures += 1;
                log.write(LogLevel::Error, &format!("{why} {self}"));
            }
        }
        if is_silent { Renewed::Silent(known.due) } else { Renewed::Answered }
    }
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Responder { host, port, .. } = &self.responder;
        write!(
            f,
            "while requesting certificate status, responder: {host}, peer: {host}:{port}, \
             certificate: \"{}\"",
            self.name
        )
    }
}

/// The certificates of `ssl_trusted_certificate`.
fn trusted(conf: &TlsConf) -> Result<Vec<Vec<u8>>, String> {
    let Some(path) = &conf.trusted_certificate else { return Ok(Vec::new()) };
    let content = std::fs::read(path).map_err(|error| {
        let why = openssl_words(path, &error);
        format!("cannot load certificate \"{}\": {why}", path.display())
    })?;
    Ok(bolide_tls::certificates_in(&content))
}

/// The response in `ssl_stapling_file`.
fn read_answer(path: &std::path::Path) -> Result<Vec<u8>, String> {
    let answer = std::fs::read(path).map_err(|error| {
        let words = openssl_words(path, &error).replace(", r) error", ", rb) error");
        words.replacen("BIO_new_file()", &format!("BIO_new_file(\"{}\")", path.display()), 1)
    })?;
    // RFC 6960 §4.2.1: an OCSPResponse is a sequence.
    if answer.first() != Some(&0x30) {
        let failed = format!("d2i_OCSP_RESPONSE_bio(\"{}\") failed", path.display());
        if answer.is_empty() {
            return Err(failed);
        }
        let why = "error:0680008E:asn1 encoding routines::not enough data";
        return Err(format!("{failed} (SSL: {why})"));
    }
    Ok(answer)
}
