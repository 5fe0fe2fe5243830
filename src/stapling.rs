//! OCSP stapling: a thread queries the responders of our certificates, caches the responses while
//! they are valid, and supplies them to handshakes. It starts with the first certificate that needs
//! it, and nothing waits for it.
//!
//! ```text
//!   attach (draft) ──settle (in force)──▶ active ──due──▶ asked ──▶ staple
//! ```
//! Easiest to break: a draft may be dropped, so certificates attached to it must not be queried.

use std::fmt;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bolide_conf::model::{LogLevel, TlsConf};
use bolide_tls::{LoadedCertificate, OcspQuestion, Staple};

use crate::account::{WorkerAccount, spawn_as};
use crate::control_log::ControlLog;
use crate::tls_setup::openssl_words;

/// Seconds before the end of a response that the next one is requested, as in nginx; and the least
/// and the most between two requests.
const EARLY: u64 = 300;
const LATEST: u64 = 3600;
/// Seconds until a failed query is repeated: at first, doubled with each failure.
const RETRY: u64 = 10;
/// How long a draft waits for addresses of responders, of all its servers.
const NAMES_MAX: Duration = Duration::from_secs(3);
/// How long a responder may take for each step.
const PATIENCE: Duration = Duration::from_secs(10);
/// LIMIT: bytes of a response.
const ANSWER_MAX: usize = 64 << 10;

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
    log: Option<Arc<ControlLog>>,
    runs: bool,
}

/// The certificates to staple of a draft configuration.
#[derive(Debug)]
pub(crate) struct StaplingDraft {
    entries: Vec<Arc<Entry>>,
    /// How long names of responders may still be resolved.
    left: Duration,
}

impl Default for StaplingDraft {
    fn default() -> Self {
        Self { entries: Vec::new(), left: NAMES_MAX }
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
    /// The file of the certificate, for the log.
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

/// The responder.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Responder {
    host: String,
    port: u16,
    /// With a slash at its end.
    path: String,
}

impl Responder {
    /// # Errors
    ///
    /// nginx's message, and the text that it is about.
    fn parse(url: &str) -> Result<Self, (&'static str, String)> {
        let wrong_prefix = || ("invalid URL prefix", url.to_owned());
        let is_http = url.get(..7).is_some_and(|start| start.eq_ignore_ascii_case("http://"));
        let rest = url.get(7..).filter(|rest| is_http && !rest.is_empty());
        let rest = rest.ok_or_else(wrong_prefix)?;
        let (authority, path) = rest.find('/').map_or((rest, ""), |at| rest.split_at(at));
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => {
                let port = port.parse().ok().filter(|port| *port > 0);
                (host, port.ok_or(("invalid port", rest.to_owned()))?)
            }
            _ => (authority, 80),
        };
        if host.is_empty() {
            return Err(("no host", rest.to_owned()));
        }
        let slash = if path.ends_with('/') { "" } else { "/" };
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        Ok(Self { host, port, path: format!("{path}{slash}") })
    }

    fn addresses(&self) -> Vec<SocketAddr> {
        let found = (self.host.as_str(), self.port).to_socket_addrs();
        found.map(Iterator::collect).unwrap_or_default()
    }
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
        certificates: Vec<LoadedCertificate>,
        warnings: &mut Vec<String>,
    ) -> Result<Vec<LoadedCertificate>, String> {
        if !conf.stapling {
            return Ok(certificates);
        }
        if let Some(path) = &conf.stapling_file {
            let answer = read_answer(path)?;
            let all = certificates.iter().map(|certificate| certificate.stapled(answer.clone()));
            return Ok(all.collect());
        }
        let trusted = match &conf.trusted_certificate {
            Some(path) => bolide_tls::certificates_in(&std::fs::read(path).map_err(|error| {
                let why = openssl_words(path, &error);
                format!("cannot load certificate \"{}\": {why}", path.display())
            })?),
            None => Vec::new(),
        };
        let mut all = Vec::new();
        for (pair, certificate) in conf.certificates.iter().zip(certificates) {
            let name = pair.chain.to_string();
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
        let url = conf.stapling_responder.clone().or_else(|| bolide_tls::responder(certificate));
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
        if !state.active.is_empty() && !state.runs {
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
            let due = state.active.iter().map(|entry| entry.known().due).min();
            let wait =
                due.map_or(Duration::MAX, |due| Duration::from_secs(due.saturating_sub(now)));
            if !wait.is_zero() {
                // An hour at most: the clock may be set.
                let wait = wait.min(Duration::from_secs(LATEST));
                let woken = self.bell.wait_timeout(state, wait);
                state = woken.unwrap_or_else(PoisonError::into_inner).0;
                continue;
            }
            let next = state.active.iter().min_by_key(|entry| entry.known().due).cloned();
            let log = state.log.clone();
            drop(state);
            if let (Some(entry), Some(log)) = (next, log) {
                entry.renew(&log);
            }
            state = self.lock();
        }
    }
}

impl Entry {
    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Queries, and stores the response; an old one stays until it expires.
    fn renew(&self, log: &ControlLog) {
        let now = bolide_io::process::now().unix_seconds();
        let asked = self.ask().and_then(|answer| match self.question.judge(&answer, now) {
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
    }

    /// One request and its response.
    fn ask(&self) -> Result<Vec<u8>, String> {
        let addresses = self.responder.addresses();
        let address = addresses
            .first()
            .ok_or_else(|| format!("{} could not be resolved", self.responder.host))?;
        let failed = |call: &str, error: &std::io::Error| {
            format!("{call}() failed ({})", bolide_base::errno::describe(error))
        };
        let mut socket = TcpStream::connect_timeout(address, PATIENCE)
            .map_err(|error| failed("connect", &error))?;
        let limits = socket
            .set_read_timeout(Some(PATIENCE))
            .and_then(|()| socket.set_write_timeout(Some(PATIENCE)));
        limits.map_err(|error| failed("setsockopt", &error))?;
        let Responder { host, path, .. } = &self.responder;
        let question = escaped(&base64(&self.question.request()));
        let request = format!("GET {path}{question} HTTP/1.0\r\nHost: {host}\r\n\r\n");
        socket.write_all(request.as_bytes()).map_err(|error| failed("send", &error))?;
        let mut answer = Vec::new();
        let end = bolide_io::process::now().mono.after(PATIENCE);
        let mut part = [0; 4096];
        while answer.len() < ANSWER_MAX {
            // A responder that sends single bytes would delay all other certificates.
            if bolide_io::process::now().mono >= end {
                return Err("OCSP responder timed out".to_owned());
            }
            match socket.read(&mut part).map_err(|error| failed("recv", &error))? {
                0 => break,
                len => answer.extend_from_slice(&part[..len]),
            }
        }
        body_of(answer)
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

/// The body of an HTTP response, if it is an OCSP response.
fn body_of(mut answer: Vec<u8>) -> Result<Vec<u8>, String> {
    if answer.is_empty() {
        return Err("OCSP responder prematurely closed connection".to_owned());
    }
    let end = answer.windows(4).position(|window| window == b"\r\n\r\n");
    let end = end.filter(|_| answer.starts_with(b"HTTP/"));
    let Some(end) = end else { return Err("OCSP responder sent invalid response".to_owned()) };
    let head = String::from_utf8_lossy(&answer[..end]).into_owned();
    let field = |name: &str| {
        let fields = head.lines().skip(1).filter_map(|line| line.split_once(':'));
        let mut fields = fields.filter(|(known, _)| known.eq_ignore_ascii_case(name));
        fields.next().map(|(_, value)| value.trim().to_owned())
    };
    let kind = field("Content-Type").unwrap_or_default();
    if !kind.eq_ignore_ascii_case("application/ocsp-response") {
        return Err(format!("OCSP responder sent invalid \"Content-Type\" header: \"{kind}\""));
    }
    answer.drain(..end + 4);
    if let Some(len) = field("Content-Length").and_then(|text| text.parse::<usize>().ok()) {
        if answer.len() < len {
            return Err("OCSP responder prematurely closed connection".to_owned());
        }
        answer.truncate(len);
    }
    Ok(answer)
}

/// RFC 4648 §4.
fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::new();
    for chunk in bytes.chunks(3) {
        let byte = |at: usize| u32::from(chunk.get(at).copied().unwrap_or(0));
        let group = byte(0) << 16 | byte(1) << 8 | byte(2);
        for place in 0..4 {
            let letter = LETTERS[(group >> (18 - 6 * place)) as usize & 63];
            out.push(if place > chunk.len() { '=' } else { char::from(letter) });
        }
    }
    out
}

/// RFC 6960 §A.1: the request is escaped in the path.
fn escaped(text: &str) -> String {
    text.replace('+', "%2B").replace('/', "%2F").replace('=', "%3D")
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

#[cfg(test)]
mod tests {
    use super::{Responder, base64, body_of, escaped};

    #[test]
    fn questions_are_written_as_rfc_4648_and_rfc_6960_say() {
        for (bytes, text) in [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v")] {
            assert_eq!(base64(bytes.as_bytes()), text);
        }
        assert_eq!(base64(&[0xfb, 0xef, 0xff]), "++//");
        assert_eq!(escaped("+/="), "%2B%2F%3D");
    }

    #[test]
    fn responders_are_asked_over_http_only() {
        let good = |url: &str| Responder::parse(url).map(|it| (it.host, it.port, it.path));
        assert_eq!(good("http://a.test"), Ok(("a.test".into(), 80, "/".into())));
        assert_eq!(good("HTTP://a.test:81/x"), Ok(("a.test".into(), 81, "/x/".into())));
        assert_eq!(good("http://[::1]/x/"), Ok(("::1".into(), 80, "/x/".into())));
        for url in ["https://a.test/", "a.test", "http://", ""] {
            assert_eq!(good(url), Err(("invalid URL prefix", url.to_owned())));
        }
        assert_eq!(good("http://a:x/"), Err(("invalid port", "a:x/".to_owned())));
        assert_eq!(good("http://:80/"), Err(("no host", ":80/".to_owned())));
    }

    #[test]
    fn an_answer_says_what_it_is() {
        let ask = |text: &str| body_of(text.as_bytes().to_vec());
        let kind = "Content-Type: application/ocsp-response";
        assert_eq!(ask(&format!("HTTP/1.0 200 OK\r\n{kind}\r\n\r\nxyz")), Ok(b"xyz".to_vec()));
        let cut = format!("HTTP/1.0 200 OK\r\n{kind}\r\nContent-Length: 2\r\n\r\nxyz");
        assert_eq!(ask(&cut), Ok(b"xy".to_vec()));
        let short = format!("HTTP/1.0 200 OK\r\n{kind}\r\nContent-Length: 9\r\n\r\nxyz");
        for text in ["", "junk", "junk\r\n\r\n", &*short, "HTTP/1.0 404 No\r\n\r\n"] {
            assert!(ask(text).is_err(), "{text}");
        }
    }
}
