//! `limit_rate`: how much of one answer may leave by now.

use std::time::Duration;

use bolide_base::Instant;
use bolide_engine::Rate;

/// The pace of one answer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Throttle {
    rate: Rate,
    since: Instant,
    sent: u64,
}

impl Throttle {
    /// A pace for an answer that begins now; none when it is not limited.
    pub(crate) const fn new(rate: Rate, now: Instant) -> Option<Self> {
        if rate.per_second == 0 { None } else { Some(Self { rate, since: now, sent: 0 }) }
    }

    /// Bytes that may leave now. As with nginx, the first second's worth leaves at once.
    pub(crate) fn allowed(&self, now: Instant) -> usize {
        let millis = u64::try_from(now.since(self.since).as_millis()).unwrap_or(u64::MAX);
        let paced = self.rate.per_second.saturating_mul(millis.saturating_add(1000)) / 1000;
        let due = paced.saturating_add(self.rate.after).saturating_sub(self.sent);
        usize::try_from(due).unwrap_or(usize::MAX)
    }

    /// When the next bytes are due: a tenth of a second's worth, so that no turn sends crumbs.
    pub(crate) fn next(&self, now: Instant) -> Instant {
        now.after(Duration::from_millis(100))
    }

    /// Notes that so many bytes left.
    pub(crate) const fn advance(&mut self, bytes: u64) {
        self.sent += bytes;
    }
}

#[cfg(test)]
mod tests {
    use super::Throttle;
    use bolide_base::Instant;
    use bolide_engine::Rate;

    #[test]
    fn an_answer_leaves_at_its_pace_after_its_free_bytes() {
        let at = |millis: u64| Instant::from_nanos(millis * 1_000_000);
        let rate = Rate { per_second: 1000, after: 500 };
        let mut throttle = Throttle::new(rate, at(0)).unwrap();
        assert_eq!(throttle.allowed(at(0)), 1500);
        throttle.advance(1500);
        assert_eq!(throttle.allowed(at(0)), 0);
        assert_eq!(throttle.allowed(at(100)), 100);
        assert!(Throttle::new(Rate { per_second: 0, after: 0 }, at(0)).is_none());
    }
}
