//! `limit_rate` and `proxy_limit_rate`: how much of one response may be sent or read by now.
//!
//! Owns the arithmetic, which is nginx's. It reads no clock: one write happens at one time.

use std::time::Duration;

use bolide_base::Instant;
use bolide_engine::Rate;

#[cfg(test)]
mod tests;

/// Nanoseconds of a second.
const NANOS: u64 = 1_000_000_000;

/// The framing around the pieces of a body, which counts as well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PacedFraming {
    /// Nothing.
    Bare,
    /// The size of a chunk, and two line ends.
    Chunked,
    /// The header of a frame.
    H2,
    /// The header of a frame, where the length of the body is not known.
    H3,
}

/// How much of a response may be sent now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Allowance {
    /// This many bytes.
    Bytes(usize),
    /// Nothing before this time.
    From(Instant),
}

/// The rate limit of one response: what its head and body have sent, and when more may be sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AnswerPace {
    rate: Rate,
    framing: PacedFraming,
    /// Bytes sent.
    sent: u64,
    /// The time of the last write, and the rest of its allowance.
    write: Option<(Instant, u64)>,
    /// Bytes of that write that still have to be waited for.
    owed: u64,
    /// Nothing is sent before this time.
    resume: Instant,
    /// When it will be woken.
    armed: Option<Instant>,
}

impl AnswerPace {
    /// A limit of `rate`, which is not 0.
    pub(crate) const fn new(rate: Rate, framing: PacedFraming) -> Self {
        debug_assert!(rate.per_second > 0, "what is not limited has no pace");
        Self {
            rate,
            framing,
            sent: 0,
            write: None,
            owed: 0,
            resume: Instant::from_nanos(0),
            armed: None,
        }
    }

    /// Records bytes that count but were not delayed.
    pub(crate) const fn skip(&mut self, bytes: u64) {
        self.sent += bytes;
    }

    /// What may be sent at `now`. A second call at the same time returns the rest of the first.
    pub(crate) fn allowed(&mut self, now: Instant) -> Allowance {
        let left = match self.write {
            Some((at, left)) if at == now => left,
            _ if now < self.resume => return Allowance::From(self.resume),
            _ => match self.begin_write(now) {
                Ok(left) => left,
                Err(at) => return Allowance::From(at),
            },
        };
        match usize::try_from(left).unwrap_or(usize::MAX) {
            0 => Allowance::From(self.resume.max(now.after(Duration::from_millis(1)))),
            left => Allowance::Bytes(left),
        }
    }

    /// One second's worth for each second that has begun, in whole seconds of the clock.
    fn begin_write(&mut self, now: Instant) -> Result<u64, Instant> {
        let seconds =
            (now.as_nanos() / NANOS).saturating_sub(self.rate.since.as_nanos() / NANOS) + 1;
        let due = self.rate.per_second.saturating_mul(seconds).saturating_add(self.rate.after);
        if due <= self.sent {
            let millis = millis(self.sent - due, self.rate.per_second).saturating_add(1);
            return Err(now.after(Duration::from_millis(millis)));
        }
        let left = due - self.sent;
        debug_assert!(left > 0, "a write that begins may send something");
        (self.write, self.owed) = (Some((now, left)), 0);
        Ok(left)
    }

    /// Records that this many bytes of the body are sent in the current write.
    pub(crate) fn advance(&mut self, bytes: u64) {
        debug_assert!(
            bytes == 0 || self.write.is_some_and(|(_, left)| bytes <= left),
            "no more leaves than was allowed"
        );
        if bytes > 0 {
            self.advance_bare(bytes + self.framing.around(bytes));
        }
    }

    /// The same for bytes without framing.
    pub(crate) fn advance_bare(&mut self, bytes: u64) {
        let Some((at, left)) = &mut self.write else { return };
        *left = left.saturating_sub(bytes);
        let counted = self.sent.saturating_sub(self.rate.after);
        self.sent += bytes;
        self.owed += self.sent.saturating_sub(self.rate.after) - counted;
        self.resume = at.after(Duration::from_millis(millis(self.owed, self.rate.per_second)));
    }

    /// Whether a wake at `at` has to be scheduled.
    pub(crate) fn is_to_be_woken(&mut self, at: Instant) -> bool {
        self.armed.replace(at) != Some(at)
    }
}

impl PacedFraming {
    fn around(self, bytes: u64) -> u64 {
        match self {
            Self::Bare => 0,
            Self::Chunked => u64::from((u64::BITS - bytes.leading_zeros()).div_ceil(4)) + 4,
            Self::H2 => 9,
            Self::H3 => match bytes {
                0..0x40 => 2,
                0x40..0x4000 => 3,
                _ => 5,
            },
        }
    }
}

/// The time for this many bytes, in full milliseconds.
fn millis(bytes: u64, per_second: u64) -> u64 {
    u64::try_from(u128::from(bytes) * 1000 / u128::from(per_second)).unwrap_or(u64::MAX)
}

/// The rate limit of reading a response.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Throttle {
    per_second: u64,
    since: Instant,
    sent: u64,
}

impl Throttle {
    /// A limit for a response that begins now; none if there is no limit.
    pub(crate) const fn new(per_second: u64, now: Instant) -> Option<Self> {
        if per_second == 0 { None } else { Some(Self { per_second, since: now, sent: 0 }) }
    }

    /// Bytes that may be read now. As in nginx, the first second's worth is read at once.
    pub(crate) fn allowed(&self, now: Instant) -> usize {
        let millis = u64::try_from(now.since(self.since).as_millis()).unwrap_or(u64::MAX);
        let paced = self.per_second.saturating_mul(millis.saturating_add(1000)) / 1000;
        let due = paced.saturating_sub(self.sent);
        usize::try_from(due).unwrap_or(usize::MAX)
    }

    /// When the next bytes may be read: a tenth of a second's worth, so that reads are not tiny.
    pub(crate) fn next(&self, now: Instant) -> Instant {
        now.after(Duration::from_millis(100))
    }

    /// Records that this many bytes were read.
    pub(crate) const fn advance(&mut self, bytes: u64) {
        self.sent += bytes;
    }
}
