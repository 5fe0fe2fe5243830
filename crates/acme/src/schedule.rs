//! When each certificate is ordered, and of which issuer: a machine without I/O and clock.
//!
//! ```text
//!   due (missing, wrong, window of the issuer, two thirds of its life)
//!     -> start -> issued                -> due again much later
//!              -> failed                -> same issuer, next issuer, or a pause that doubles
//! ```
//! Easiest to break: a start is a failure that has not happened yet, so starts count against the
//! failures of the hour before they end.

mod windows;

use std::collections::{BTreeMap, BTreeSet};

use bolide_base::prng::Prng;

use crate::plan::OrderId;
use crate::record::{AccountRecord, OrderRecord, RenewalWindow};
pub use windows::WindowAnswer;

/// LIMIT: failed orders in any hour, of each order and of each account. Let's Encrypt permits
/// five failed validations of a name an hour.
pub const FAILURES_PER_HOUR: usize = 5;
/// LIMIT: orders under way at once, of all issuers.
const CONCURRENT_MAX: usize = 16;
/// Seconds after the first failure; doubled with each further one.
const PAUSE_FIRST: u64 = 120;
/// LIMIT: seconds between two tries of an order.
const PAUSE_MAX: u64 = 6 * HOUR;
/// Seconds after which an issuer that did not answer is asked again at first, and at most.
const SILENCE_FIRST: u64 = 30;
const SILENCE_MAX: u64 = HOUR;
/// LIMIT: seconds for which `Retry-After` is followed.
const RETRY_AFTER_MAX: u64 = 24 * HOUR;
/// Failures of an order at an issuer before the next one is asked.
const TRIES_PER_ISSUER: u32 = 2;
/// Seconds before the next issuer is asked.
const FALL_BACK: u64 = 5;
/// LIMIT: the part of its life in which no suggestion replaces a certificate: a day of ninety.
const WINDOW_EARLIEST: u64 = 90;
const HOUR: u64 = 3600;

/// Both clocks, in seconds. Failures of this process are counted by `mono`, so that a clock that
/// is set forward permits no more of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AcmeNow {
    /// Since 1970.
    pub unix: u64,
    /// Since any zero that is the same for the whole process.
    pub mono: u64,
}

/// A time at which an order failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FailedAt {
    unix: u64,
    /// None: in an earlier process.
    mono: Option<u64>,
}

/// The failures of the last hour.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FailureLog(Vec<FailedAt>);

impl FailureLog {
    /// Failures that a file holds.
    pub fn kept(times: impl Iterator<Item = u64>) -> Self {
        Self(times.map(|unix| FailedAt { unix, mono: None }).collect())
    }

    /// For a file.
    pub fn times(&self) -> impl Iterator<Item = u64> {
        self.0.iter().map(|failed| failed.unix)
    }

    fn note(&mut self, now: AcmeNow) {
        self.tidy(now);
        self.0.push(FailedAt { unix: now.unix, mono: Some(now.mono) });
    }

    /// Forgets what is older than an hour. What a kept failure says of the future becomes now.
    fn tidy(&mut self, now: AcmeNow) {
        for failed in &mut self.0 {
            failed.unix = failed.unix.min(now.unix);
        }
        self.0.retain(|failed| left(failed, now) > 0);
    }

    fn count(&self, now: AcmeNow) -> usize {
        self.0.iter().filter(|failed| left(failed, now) > 0).count()
    }

    /// Seconds until one more failure is permitted.
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
    // One more, as both times are cut to seconds.
    (HOUR + 1).saturating_sub(age)
}

/// The life of a certificate, in seconds since 1970. Of two, the greater one is that of the newer
/// certificate: it began later, or at the same time and lasts longer. One that is replaced because
/// it was revoked may last longer than what replaces it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Validity {
    /// Its first second.
    pub from: u64,
    /// Its last second.
    pub until: u64,
}

/// How an attempt ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AttemptEnd {
    /// There is a certificate.
    Issued(Validity),
    /// There is none.
    Failed(AttemptFailure),
    /// The configuration no longer wants it.
    Dropped,
}

/// Why an attempt failed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AttemptFailure {
    /// For the log.
    pub why: String,
    /// Whether an order may have reached the issuer, so that the failure counts.
    pub was_ordered: bool,
    /// Whether the issuer did not answer, or not as an issuer.
    pub is_silent: bool,
    /// Seconds of `Retry-After`.
    pub retry_after: Option<u64>,
}

/// One order.
#[derive(Clone, Debug, Default)]
pub struct OrderSlot {
    /// Its issuers, first the one to prefer; not empty.
    pub issuers: Vec<String>,
    /// What is kept.
    pub record: OrderRecord,
    /// The certificate that fits the order; none if there is none.
    pub validity: Option<Validity>,
    /// Whether an attempt that an earlier process began can be continued.
    pub is_resumable: bool,
    /// Whether it is not known yet how an attempt of another process ended.
    pub is_unclear: bool,
    /// Not looked at before, in seconds since 1970; not kept.
    pub hold: u64,
    /// The issuer that is being asked.
    pub running: Option<String>,
    /// How many times in succession its issuer did not tell when to renew; not kept.
    pub window_silences: u32,
}

/// All orders.
#[derive(Clone, Debug, Default)]
pub struct Schedule {
    /// By id.
    pub orders: BTreeMap<OrderId, OrderSlot>,
    /// By the issuer's name.
    pub accounts: BTreeMap<String, AccountRecord>,
    /// Issuers that are being asked when to renew.
    pub asked: BTreeSet<String>,
}

impl Schedule {
    /// The order to start now, and its issuer. Fewest failures first, so that orders that cannot
    /// succeed do not keep others waiting.
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

    /// What was picked begins.
    pub fn begin(&mut self, id: &OrderId, issuer: &str, now: AcmeNow) {
        let Some(slot) = self.orders.get_mut(id) else { return };
        if !slot.is_resumable {
            slot.record.started = Some((now.unix, issuer.to_owned()));
        }
        slot.is_resumable = false;
        if slot.record.issuer.as_deref() != Some(issuer) {
            slot.record.tries = 0;
            slot.record.issuer = Some(issuer.to_owned());
        }
        slot.running = Some(issuer.to_owned());
    }

    /// Cuts pauses to their longest, as a clock that was set back makes them longer.
    fn tidy(&mut self, now: AcmeNow) {
        for slot in self.orders.values_mut() {
            let latest = now.unix.saturating_add(PAUSE_MAX);
            slot.hold = slot.hold.min(latest);
            slot.record.not_before = slot.record.not_before.min(latest);
            slot.record.failures.tidy(now);
        }
        for account in self.accounts.values_mut() {
            let latest = now.unix.saturating_add(RETRY_AFTER_MAX);
            account.not_before = account.not_before.min(latest);
            account.failures.tidy(now);
        }
    }

    /// The issuer to ask now for an order that is due.
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

    /// Attempts of an issuer that may still fail.
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
        let account = self.accounts.entry(issuer.clone()).or_default();
        match end {
            AttemptEnd::Issued(validity) => {
                slot.validity = Some(validity);
                let failures = std::mem::take(&mut slot.record.failures);
                slot.record =
                    OrderRecord { failures, issued_by: Some(issuer), ..OrderRecord::default() };
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

    /// An earlier process began an attempt that cannot be continued: it counts as failed.
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

    /// When an order is tried next, in seconds since 1970, as far as is known now.
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
    /// Which of its issuers is next.
    fn position(&self) -> usize {
        let next = self.record.issuer.as_ref();
        self.issuers.iter().position(|name| Some(name) == next).unwrap_or(0)
    }

    /// When it is to be ordered, in seconds since 1970.
    #[must_use]
    pub fn due(&self) -> u64 {
        if self.is_begun() {
            return self.hold;
        }
        let wanted = self.validity.map_or(0, |validity| renewal(validity, self.record.window));
        wanted.max(self.record.not_before).max(self.hold)
    }

    /// Whether there is an attempt of an earlier process.
    pub(crate) fn is_begun(&self) -> bool {
        (self.is_resumable || self.is_unclear) && self.record.started.is_some()
    }

    fn failed(&mut self, id: &OrderId, failure: AttemptFailure, now: AcmeNow) {
        let position = self.position();
        let record = &mut self.record;
        if failure.was_ordered {
            record.failures.note(now);
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
                // The account knows when the issuer is asked again.
                pause = pause.min(SILENCE_FIRST);
            }
        }
        let mut prng = Prng::new(seed(&id.0) ^ now.unix);
        record.not_before = now.unix.saturating_add(pause - prng.below(pause / 10 + 1));
    }
}

impl AccountRecord {
    /// Seconds for which the issuer is not asked.
    fn wait(&self, now: AcmeNow) -> u64 {
        self.not_before.saturating_sub(now.unix)
    }

    fn failed(&mut self, failure: &AttemptFailure, now: AcmeNow) {
        if failure.was_ordered {
            self.failures.note(now);
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

fn doubled(first: u64, times: u32, most: u64) -> u64 {
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
            // Never so late that it could not be tried again. An issuer that always wants a
            // replacement at once gets no order after order.
            let earliest = validity.from.saturating_add(life / WINDOW_EARLIEST);
            point.min(validity.until.saturating_sub(life / 20)).max(earliest)
        }
        _ => usual.saturating_sub(prng.below(life / 30 + 1)),
    }
}

/// A number that depends on a text only (FNV-1a).
fn seed(text: &str) -> u64 {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    text.bytes().fold(0xcbf2_9ce4_8422_2325, step)
}

#[cfg(test)]
mod tests;
