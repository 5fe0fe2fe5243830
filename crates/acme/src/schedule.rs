//! When each certificate is ordered, and from which issuer: a state machine without I/O and clock.
//!
//! ```text
//!   due (missing, wrong, window of the issuer, two thirds of its life)
//!     -> start -> issued                -> due again much later
//!              -> failed                -> same issuer, next issuer, or a pause that doubles
//! ```
//! A certificate that its issuer revoked is due at once ([`Schedule::revoked`]).
//!
//! Easiest to break: a running attempt may still fail, so it counts against the failures of the
//! hour before it ends.

mod revoked;
mod windows;

use std::collections::{BTreeMap, BTreeSet};

use bolide_base::prng::Prng;

use crate::plan::OrderId;
use crate::record::{AccountRecord, OrderRecord, RenewalWindow};
use revoked::replacement;
pub use windows::WindowAnswer;

/// LIMIT: failed orders in any hour, of each order and of each account. Let's Encrypt permits
/// five failed validations of a name an hour.
pub const FAILURES_PER_HOUR: usize = 5;
/// LIMIT: concurrent orders, of all issuers.
const CONCURRENT_MAX: usize = 16;
/// Seconds to wait after the first failure; doubled with each further one.
const PAUSE_FIRST: u64 = 120;
/// LIMIT: seconds between two attempts of an order.
const PAUSE_MAX: u64 = 6 * HOUR;
/// Seconds until an issuer that did not respond is tried again: at first, and at most.
const SILENCE_FIRST: u64 = 30;
const SILENCE_MAX: u64 = HOUR;
/// LIMIT: seconds of `Retry-After` that are respected.
pub(crate) const RETRY_AFTER_MAX: u64 = 24 * HOUR;
/// LIMIT: how many times an attempt is continued after its process ended. An attempt that ends its
/// process is over then, and the pauses of failures apply.
const RESUMES_MAX: u32 = 3;
/// Failures of an order at an issuer before the next one is tried.
const TRIES_PER_ISSUER: u32 = 2;
/// Seconds before the next issuer is tried.
const FALL_BACK: u64 = 5;
/// LIMIT: the first part of its life (one in so many) in which no suggestion replaces a
/// certificate: a day of ninety.
const WINDOW_EARLIEST: u64 = 90;
/// Seconds after which a certificate is replaced at the earliest, whatever the clock says.
const AGAIN_MIN: u64 = 5;
const HOUR: u64 = 3600;

/// Both clocks, in seconds. Failures of this process are counted by `mono`, so that setting the
/// clock forward does not permit more of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AcmeNow {
    /// Since 1970.
    pub unix: u64,
    /// From an arbitrary start, the same for the whole process.
    pub mono: u64,
}

/// The time of a failure of an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FailedAt {
    unix: u64,
    /// `None`: in an earlier process.
    mono: Option<u64>,
}

/// The failures of the last hour.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FailureLog(Vec<FailedAt>);

impl FailureLog {
    /// The failures of a file.
    pub fn kept(times: impl Iterator<Item = u64>) -> Self {
        Self(times.map(|unix| FailedAt { unix, mono: None }).collect())
    }

    /// The times, for a file.
    pub fn times(&self) -> impl Iterator<Item = u64> {
        self.0.iter().map(|failed| failed.unix)
    }

    fn add(&mut self, now: AcmeNow) {
        self.tidy(now);
        self.0.push(FailedAt { unix: now.unix, mono: Some(now.mono) });
    }

    /// Removes failures older than an hour. A stored time in the future becomes now.
    fn tidy(&mut self, now: AcmeNow) {
        for failed in &mut self.0 {
            failed.unix = failed.unix.min(now.unix);
        }
        self.0.retain(|failed| left(failed, now) > 0);
    }

    fn count(&self, now: AcmeNow) -> usize {
        self.0.iter().filter(|failed| left(failed, now) > 0).count()
    }

    /// Seconds until another failure is permitted.
    fn wait(&self, now: AcmeNow) -> u64 {
        let mut left: Vec<u64> = self.0.iter().map(|failed| left(failed, now)).collect();
        left.sort_unstable_by(|a, b| b.cmp(a));
        left.get(FAILURES_PER_HOUR - 1).copied().unwrap_or(0)
    }
}

/// Seconds for which a failure still counts.
fn left(failed: &FailedAt, now: AcmeNow) -> u64 {
    let age = match failed.mono {
        Some(mono) => now.mono.saturating_sub(mono),
        None => now.unix.saturating_sub(failed.unix),
    };
    // One more, as both times are rounded down to seconds.
    (HOUR + 1).saturating_sub(age)
}

/// The validity of a certificate, in seconds since 1970. Of two, the greater one belongs to the
/// newer certificate: it begins later, or at the same time and ends later. A certificate that is
/// replaced because of a revocation may end later than its replacement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Validity {
    /// Its first second.
    pub from: u64,
    /// Its last second.
    pub until: u64,
}

/// The result of an attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AttemptEnd {
    /// A certificate.
    Issued(Validity),
    /// A failure.
    Failed(AttemptFailure),
    /// The order is no longer configured.
    Dropped,
}

/// Why an attempt failed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AttemptFailure {
    /// For the log.
    pub why: String,
    /// Whether an order may have reached the issuer, so that the failure counts.
    pub was_ordered: bool,
    /// Whether the issuer did not respond, or not in the protocol.
    pub is_silent: bool,
    /// Seconds of `Retry-After`.
    pub retry_after: Option<u64>,
}

/// One order.
#[derive(Clone, Debug, Default)]
pub struct OrderSlot {
    /// Its issuers, in order of preference; not empty.
    pub issuers: Vec<String>,
    /// The stored state.
    pub record: OrderRecord,
    /// The validity of the certificate, if there is one that matches the order.
    pub validity: Option<Validity>,
    /// Its serial number in hexadecimal; not stored.
    pub serial: Option<String>,
    /// Whether an attempt of an earlier process can be continued.
    pub is_resumable: bool,
    /// Whether the result of another process's attempt is still unknown.
    pub is_unclear: bool,
    /// Not examined before, in seconds since 1970; not stored.
    pub hold: u64,
    /// The issuer of the running attempt.
    pub running: Option<String>,
    /// How many times in succession its issuer gave no renewal window; not stored.
    pub window_silences: u32,
}

/// All orders.
#[derive(Clone, Debug, Default)]
pub struct Schedule {
    /// By id.
    pub orders: BTreeMap<OrderId, OrderSlot>,
    /// By the issuer's name.
    pub accounts: BTreeMap<String, AccountRecord>,
    /// Issuers with a running question about renewals.
    pub asked: BTreeSet<String>,
}

impl Schedule {
    /// The order to start now, and its issuer. Those with the fewest failures come first, so that
    /// orders that cannot succeed do not delay others.
    pub fn pick(&mut self, now: AcmeNow) -> Option<(OrderId, String)> {
        self.tidy(now);
        let running = self.orders.values().filter(|slot| slot.running.is_some()).count();
        if running >= CONCURRENT_MAX {
            return None;
        }
        let mut due: Vec<(bool, u32, u64, &OrderId)> = (self.orders.iter())
            .filter(|(_, slot)| slot.running.is_none() && slot.due() <= now.unix)
            .map(|(id, slot)| (!slot.is_begun(), slot.record.consecutive, slot.due(), id))
            .collect();
        due.sort_unstable();
        due.into_iter().find_map(|(_, _, _, id)| {
            let slot = self.orders.get(id)?;
            self.issuer(slot, now).map(|issuer| (id.clone(), issuer))
        })
    }

    /// The picked order begins.
    pub fn begin(&mut self, id: &OrderId, issuer: &str, now: AcmeNow) {
        let Some(slot) = self.orders.get_mut(id) else { return };
        if slot.is_resumable {
            slot.record.resumes = slot.record.resumes.saturating_add(1);
        } else {
            slot.record.started = Some((now.unix, issuer.to_owned()));
        }
        slot.is_resumable = false;
        if slot.record.issuer.as_deref() != Some(issuer) {
            slot.record.tries = 0;
            slot.record.issuer = Some(issuer.to_owned());
        }
        slot.running = Some(issuer.to_owned());
    }

    /// Limits pauses to their maximum: a clock that was set back makes them longer.
    fn tidy(&mut self, now: AcmeNow) {
        for slot in self.orders.values_mut() {
            let latest = now.unix.saturating_add(PAUSE_MAX);
            slot.hold = slot.hold.min(latest);
            slot.record.not_before = slot.record.not_before.min(latest);
            slot.record.failures.tidy(now);
            if let Some(revoked) = &mut slot.record.revoked {
                revoked.noticed = revoked.noticed.min(now.unix);
            }
        }
        for account in self.accounts.values_mut() {
            let latest = now.unix.saturating_add(RETRY_AFTER_MAX);
            account.not_before = account.not_before.min(latest);
            account.failures.tidy(now);
        }
    }

    /// The issuer to use now for an order that is due.
    fn issuer(&self, slot: &OrderSlot, now: AcmeNow) -> Option<String> {
        if slot.is_begun() {
            return slot.record.started.as_ref().map(|(_, issuer)| issuer.clone());
        }
        if slot.record.failures.count(now) >= FAILURES_PER_HOUR {
            return None;
        }
        let first = slot.position();
        for at in 0..slot.issuers.len() {
            let name = &slot.issuers[(first + at) % slot.issuers.len()];
            let account = self.accounts.get(name)?;
            let failed = account.failures.count(now);
            if account.wait(now) > 0 || failed >= FAILURES_PER_HOUR {
                continue;
            }
            let reserved = self.reserved(name);
            let most = if account.silences > 0 { 1 } else { FAILURES_PER_HOUR - failed };
            return (reserved < most).then(|| name.clone());
        }
        None
    }

    /// Running attempts of an issuer, which may still fail.
    fn reserved(&self, issuer: &str) -> usize {
        let is_reserved = |slot: &&OrderSlot| match (&slot.running, &slot.record.started) {
            (Some(running), _) => running == issuer,
            (None, Some((_, started))) => slot.is_begun() && started == issuer,
            (None, None) => false,
        };
        self.orders.values().filter(is_reserved).count()
    }

    /// An attempt ended.
    pub fn ended(&mut self, id: &OrderId, end: AttemptEnd, now: AcmeNow) {
        let Some(slot) = self.orders.get_mut(id) else { return };
        let Some(issuer) = slot.running.take() else { return };
        slot.record.started = None;
        slot.record.resumes = 0;
        let account = self.accounts.entry(issuer.clone()).or_default();
        match end {
            AttemptEnd::Issued(validity) => {
                (slot.validity, slot.serial) = (Some(validity), None);
                let failures = std::mem::take(&mut slot.record.failures);
                let revoked = slot.record.revoked.take();
                slot.record = OrderRecord {
                    failures,
                    revoked,
                    issued_by: Some(issuer),
                    not_before: now.unix.saturating_add(again(validity)),
                    ..OrderRecord::default()
                };
                account.silences = 0;
                account.not_before = 0;
            }
            AttemptEnd::Failed(failure) => {
                account.failed(&failure, now);
                slot.failed(id, failure, now);
            }
            AttemptEnd::Dropped => {}
        }
    }

    /// An attempt of an earlier process cannot be continued: it counts as failed.
    pub fn lost(&mut self, id: &OrderId, now: AcmeNow) {
        let Some(slot) = self.orders.get_mut(id) else { return };
        if let Some((_, issuer)) = slot.record.started.clone() {
            slot.is_resumable = false;
            slot.is_unclear = false;
            slot.running = Some(issuer);
            let why = "the server ended during the order".to_owned();
            let failure = AttemptFailure { why, was_ordered: true, ..AttemptFailure::default() };
            self.ended(id, AttemptEnd::Failed(failure), now);
        }
    }

    /// The time of the next attempt of an order, in seconds since 1970, as far as known.
    #[must_use]
    pub fn next_attempt(&self, id: &OrderId, now: AcmeNow) -> u64 {
        let Some(slot) = self.orders.get(id) else { return u64::MAX };
        let accounts = slot.issuers.iter().filter_map(|name| self.accounts.get(name));
        let open = accounts.map(|account| account.wait(now).max(account.failures.wait(now))).min();
        let wait = open.unwrap_or(0).max(slot.record.failures.wait(now));
        slot.due().max(now.unix.saturating_add(wait))
    }
}

impl OrderSlot {
    /// The index of its next issuer.
    fn position(&self) -> usize {
        let next = self.record.issuer.as_ref();
        self.issuers.iter().position(|name| Some(name) == next).unwrap_or(0)
    }

    /// When it is due, in seconds since 1970.
    #[must_use]
    pub fn due(&self) -> u64 {
        if self.is_begun() {
            return self.hold;
        }
        let revoked = self.revoked().map(replacement);
        let Some(validity) = self.validity.filter(|_| revoked.is_none()) else {
            // Only failures delay the order for a certificate that is missing or revoked.
            let not_before = if self.record.consecutive > 0 { self.record.not_before } else { 0 };
            return not_before.max(self.hold).max(revoked.unwrap_or(0));
        };
        renewal(validity, self.record.window).max(self.record.not_before).max(self.hold)
    }

    /// Whether there is an attempt of an earlier process.
    pub(crate) fn is_begun(&self) -> bool {
        (self.is_resumable || self.is_unclear) && self.record.started.is_some()
    }

    /// Whether an attempt of an earlier process may be continued once more.
    #[must_use]
    pub const fn may_resume(&self) -> bool {
        self.record.resumes < RESUMES_MAX
    }

    fn failed(&mut self, id: &OrderId, failure: AttemptFailure, now: AcmeNow) {
        let position = self.position();
        let record = &mut self.record;
        if failure.was_ordered {
            record.failures.add(now);
        }
        record.consecutive = record.consecutive.saturating_add(1);
        record.tries += 1;
        record.last_error = Some(failure.why);
        let mut pause = doubled(PAUSE_FIRST, record.consecutive, PAUSE_MAX);
        if failure.is_silent || record.tries >= TRIES_PER_ISSUER {
            record.tries = 0;
            record.issuer = self.issuers.get((position + 1) % self.issuers.len()).cloned();
            if position + 1 < self.issuers.len() {
                pause = FALL_BACK;
            } else if failure.is_silent {
                // The account has the time of the next request to the issuer.
                pause = pause.min(SILENCE_FIRST);
            }
        }
        let mut prng = Prng::new(seed(&id.0) ^ now.unix);
        record.not_before = now.unix.saturating_add(pause - prng.below(pause / 10 + 1));
    }
}

impl AccountRecord {
    /// Seconds to wait before a request to the issuer.
    fn wait(&self, now: AcmeNow) -> u64 {
        self.not_before.saturating_sub(now.unix)
    }

    fn failed(&mut self, failure: &AttemptFailure, now: AcmeNow) {
        if failure.was_ordered {
            self.failures.add(now);
        }
        let mut pause = failure.retry_after.unwrap_or(0).min(RETRY_AFTER_MAX);
        if failure.is_silent {
            self.silences = self.silences.saturating_add(1);
            pause = pause.max(doubled(SILENCE_FIRST, self.silences, SILENCE_MAX));
        } else {
            self.silences = 0;
        }
        self.not_before = now.unix.saturating_add(pause);
    }
}

pub(crate) fn doubled(first: u64, times: u32, most: u64) -> u64 {
    first.saturating_mul(1 << times.saturating_sub(1).min(20)).min(most)
}

/// When a certificate is to be replaced: at a point in the issuer's window for it (RFC 9773,
/// section 4.2), or after two thirds of its life less up to a thirtieth. The point depends on the
/// certificate and the window only, so that a restart does not move it.
#[must_use]
pub fn renewal(validity: Validity, window: Option<RenewalWindow>) -> u64 {
    let life = validity.until.saturating_sub(validity.from);
    let mut prng = Prng::new(validity.from ^ validity.until.rotate_left(32));
    let usual = validity.from.saturating_add(life / 3 * 2);
    match window {
        Some(RenewalWindow { start, end, until }) if start < end && until == validity.until => {
            let point = start.saturating_add(prng.below(end - start));
            // Never so late that there is no time to try again. An issuer that always suggests
            // immediate replacement must not get one order after the other.
            let earliest = validity.from.saturating_add(life / WINDOW_EARLIEST);
            point.min(validity.until.saturating_sub(life / 20)).max(earliest)
        }
        _ => usual.saturating_sub(prng.below(life / 30 + 1)),
    }
}

/// Seconds before a certificate that was issued just now is ordered again: where the clock is
/// wrong, it may be due at once.
fn again(validity: Validity) -> u64 {
    let life = validity.until.saturating_sub(validity.from);
    (life / WINDOW_EARLIEST).clamp(AGAIN_MIN, PAUSE_MAX)
}

/// A number that depends on a text only (FNV-1a).
fn seed(text: &str) -> u64 {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    text.bytes().fold(0xcbf2_9ce4_8422_2325, step)
}

#[cfg(test)]
mod tests;
