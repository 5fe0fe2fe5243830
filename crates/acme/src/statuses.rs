//! When to ask whether an issuer has revoked a certificate in use, and where: a state machine
//! without I/O and clock.
//!
//! ```text
//!   in use -> asked at once -> good    -> asked again after half a day
//!                           -> silent  -> asked again after a pause that doubles
//!                           -> revoked -> not asked any more: it is replaced
//! ```
//! Easiest to break: an answer about a certificate that was replaced meanwhile says nothing about
//! the one in use.

use std::collections::BTreeMap;

use bolide_base::prng::Prng;
use bolide_tls::Revocation;

use crate::plan::OrderId;
use crate::schedule::doubled;

const HOUR: u64 = 3600;
/// Seconds between two questions about a certificate; less up to a sixth.
const AGAIN: u64 = 12 * HOUR;
/// Seconds until a question without an answer is repeated: at first, and at most.
const RETRY_FIRST: u64 = 30;
const RETRY_MAX: u64 = 6 * HOUR;
/// LIMIT: concurrent requests; one of each source, and one for a list, because lists are large.
const CONCURRENT_MAX: usize = 8;
/// LIMIT: seconds between two fetches of a list, however many certificates come into use.
const LIST_EVERY: u64 = HOUR;
/// LIMIT: seconds between two lines in the log about a source.
const COMPLAINT_EVERY: u64 = 24 * HOUR;

/// Where the issuer of a certificate tells its status.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum StatusSource {
    /// The URL of an OCSP responder (RFC 6960).
    Responder(String),
    /// The URL of a revocation list (RFC 5280, section 5).
    List(String),
}

/// A certificate in use whose status can be asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WatchedCertificate {
    /// The contents of its serial number in DER.
    pub serial: Vec<u8>,
    /// Where.
    pub source: StatusSource,
}

/// The result of a question about one certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StatusAnswer {
    /// It is not revoked; a newer answer will exist then, in seconds since 1970.
    Good(Option<u64>),
    /// It is revoked.
    Revoked(Revocation),
    /// Why the source says nothing about this certificate, though it works.
    Unsaid(String),
    /// Why there is no answer.
    Silent(String),
}

/// A source, and the certificates in question: their orders and serial numbers.
pub type StatusQuestion = (StatusSource, Vec<(OrderId, Vec<u8>)>);

/// A certificate that was asked about: its order, its serial number, the answer.
pub type AnsweredStatus = (OrderId, Vec<u8>, StatusAnswer);

/// What follows from answers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StatusNews {
    /// Certificates in use that are revoked: orders and serial numbers.
    pub revoked: Vec<(OrderId, Vec<u8>, Revocation)>,
    /// A line for the log.
    pub complaint: Option<String>,
}

#[derive(Clone, Debug)]
struct Watch {
    certificate: WatchedCertificate,
    /// When to ask, in seconds since 1970; `None` if it is revoked.
    due: Option<u64>,
    failures: u32,
}

#[derive(Clone, Debug, Default)]
struct SourceState {
    is_asked: bool,
    failures: u32,
    /// No request before, in seconds since 1970.
    not_before: u64,
    /// When the log had a line about it, in seconds since 1970.
    complained: Option<u64>,
}

/// All certificates in use.
#[derive(Clone, Debug, Default)]
pub struct StatusBook {
    watches: BTreeMap<OrderId, Watch>,
    sources: BTreeMap<StatusSource, SourceState>,
}

impl StatusBook {
    /// The certificate in use for an order, if its issuer tells its status anywhere.
    pub fn watch(&mut self, id: &OrderId, certificate: Option<WatchedCertificate>, now: u64) {
        let Some(certificate) = certificate else {
            self.watches.remove(id);
            return;
        };
        if self.watches.get(id).is_none_or(|watch| watch.certificate != certificate) {
            self.watches.insert(id.clone(), Watch { certificate, due: Some(now), failures: 0 });
        }
    }

    /// Keeps only the orders that `is_wanted`.
    pub fn retain(&mut self, is_wanted: impl Fn(&OrderId) -> bool) {
        self.watches.retain(|id, _| is_wanted(id));
        let watches = &self.watches;
        self.sources.retain(|source, state| {
            state.is_asked || watches.values().any(|watch| watch.certificate.source == *source)
        });
    }

    /// A source to ask now, and the certificates in question. A list is asked about all that it
    /// may name.
    pub fn pick(&mut self, now: u64) -> Option<StatusQuestion> {
        self.tidy(now);
        let asked = || self.sources.iter().filter(|(_, state)| state.is_asked);
        if asked().count() >= CONCURRENT_MAX {
            return None;
        }
        let fetches = asked().any(|(source, _)| matches!(source, StatusSource::List(_)));
        let may_ask = |source: &StatusSource| {
            let waits = fetches && matches!(source, StatusSource::List(_));
            let state = self.sources.get(source);
            !waits && state.is_none_or(|state| !state.is_asked && state.not_before <= now)
        };
        let due = self.watches.iter().filter(|(_, watch)| watch.due.is_some_and(|due| due <= now));
        let mut due: Vec<_> = due.map(|(id, watch)| (watch.due, id, watch)).collect();
        due.sort_by_key(|(due, id, _)| (*due, *id));
        let (_, id, first) = due.iter().find(|(_, _, one)| may_ask(&one.certificate.source))?;
        let source = first.certificate.source.clone();
        let certificates = match &source {
            StatusSource::Responder(_) => vec![((*id).clone(), first.certificate.serial.clone())],
            StatusSource::List(_) => {
                let all = self
                    .watches
                    .iter()
                    .filter(|(_, watch)| watch.certificate.source == source && watch.due.is_some());
                all.map(|(id, watch)| (id.clone(), watch.certificate.serial.clone())).collect()
            }
        };
        self.sources.entry(source.clone()).or_default().is_asked = true;
        Some((source, certificates))
    }

    /// A clock that was set back does not make a pause longer.
    fn tidy(&mut self, now: u64) {
        for due in self.watches.values_mut().filter_map(|watch| watch.due.as_mut()) {
            *due = (*due).min(now.saturating_add(AGAIN));
        }
        for state in self.sources.values_mut() {
            state.not_before = state.not_before.min(now.saturating_add(RETRY_MAX));
            state.complained = state.complained.map(|time| time.min(now));
        }
    }

    /// Handles the answers of a source that was picked.
    pub fn answered(
        &mut self,
        source: &StatusSource,
        answers: Vec<AnsweredStatus>,
        now: u64,
    ) -> StatusNews {
        let mut news = StatusNews::default();
        let (mut silence, mut unsaid) = (None, None);
        for (id, serial, answer) in answers {
            match &answer {
                StatusAnswer::Silent(why) => {
                    silence.get_or_insert_with(|| why.clone());
                }
                StatusAnswer::Unsaid(why) => {
                    unsaid.get_or_insert_with(|| why.clone());
                }
                StatusAnswer::Good(_) | StatusAnswer::Revoked(_) => {}
            }
            let watch = self.watches.get_mut(&id);
            let Some(watch) = watch.filter(|watch| watch.certificate.serial == serial) else {
                continue;
            };
            match answer {
                StatusAnswer::Good(until) => {
                    let mut prng = Prng::new(now ^ serial_seed(&serial));
                    let usual = now.saturating_add(AGAIN - prng.below(AGAIN / 6));
                    let earliest = now.saturating_add(HOUR);
                    watch.failures = 0;
                    watch.due = Some(until.unwrap_or(u64::MAX).clamp(earliest, usual));
                }
                StatusAnswer::Revoked(revocation) => {
                    if watch.due.take().is_some() {
                        news.revoked.push((id, serial, revocation));
                    }
                }
                StatusAnswer::Silent(_) | StatusAnswer::Unsaid(_) => {
                    watch.failures = watch.failures.saturating_add(1);
                    let pause = doubled(RETRY_FIRST, watch.failures, RETRY_MAX);
                    watch.due = watch.due.map(|_| now.saturating_add(pause));
                }
            }
        }
        let state = self.sources.entry(source.clone()).or_default();
        state.asked(source, silence.is_some(), now);
        news.complaint = silence.or(unsaid).and_then(|why| state.complain(source, &why, now));
        news
    }

    /// When the next question is due, in seconds since 1970.
    #[must_use]
    pub fn due(&self) -> Option<u64> {
        let due = self.watches.values().filter_map(|watch| {
            let state = self.sources.get(&watch.certificate.source);
            let not_before = state.map_or(0, |state| state.not_before);
            let is_asked = state.is_some_and(|state| state.is_asked);
            watch.due.filter(|_| !is_asked).map(|due| due.max(not_before))
        });
        due.min()
    }
}

impl SourceState {
    /// Handles the end of a request: the source is asked again after a pause.
    fn asked(&mut self, source: &StatusSource, is_silent: bool, now: u64) {
        self.is_asked = false;
        self.failures = if is_silent { self.failures.saturating_add(1) } else { 0 };
        self.not_before = match source {
            _ if is_silent => now.saturating_add(doubled(RETRY_FIRST, self.failures, RETRY_MAX)),
            StatusSource::List(_) => now.saturating_add(LIST_EVERY),
            StatusSource::Responder(_) => 0,
        };
    }

    /// A line for the log, unless there was one lately.
    fn complain(&mut self, source: &StatusSource, why: &str, now: u64) -> Option<String> {
        if self.complained.is_some_and(|time| now.saturating_sub(time) < COMPLAINT_EVERY) {
            return None;
        }
        self.complained = Some(now);
        let (StatusSource::Responder(url) | StatusSource::List(url)) = source;
        Some(format!("{url:?} does not tell whether certificates are revoked: {why}"))
    }
}

/// A number that depends on a serial number only.
fn serial_seed(serial: &[u8]) -> u64 {
    serial.iter().fold(0, |seed, byte| seed.rotate_left(8) ^ u64::from(*byte))
}

#[cfg(test)]
mod tests;
