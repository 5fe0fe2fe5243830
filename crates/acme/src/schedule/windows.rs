//! When to ask issuers for renewal windows (RFC 9773).
//!
//! A window only moves a renewal: issuers without windows work as well.

use super::{AcmeNow, HOUR, PAUSE_MAX, SILENCE_FIRST, Schedule, doubled};
use crate::plan::OrderId;
use crate::record::RenewalWindow;

/// LIMIT: certificates per task.
const QUESTIONS_MAX: usize = 50;
/// LIMIT: seconds until the next question to an issuer: at least (RFC 9773, section 4.3.2), and at
/// most.
const AGAIN_MIN: u64 = 60;
const AGAIN_MAX: u64 = 24 * HOUR;

/// The answer of an issuer about the renewal of a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowAnswer {
    /// The window, and seconds until the next question.
    Window(RenewalWindow, u64),
    /// It offers no renewal information.
    Unoffered,
    /// It does not know the certificate, or the answer is invalid.
    Useless,
    /// It does not respond.
    Silent,
}

impl Schedule {
    /// The issuer to ask now, and orders whose certificates it issued.
    pub fn pick_questions(&mut self, now: AcmeNow) -> Option<(String, Vec<OrderId>)> {
        for slot in self.orders.values_mut() {
            // A clock that was set back does not make a pause longer.
            let latest = now.unix.saturating_add(AGAIN_MAX);
            slot.record.window_again = slot.record.window_again.min(latest);
        }
        let open = self.orders.iter().filter_map(|(id, slot)| {
            let issuer = slot.record.issued_by.as_ref()?;
            let is_asked = self.asked.contains(issuer) || slot.running.is_some();
            let is_due = slot.validity.is_some() && slot.record.window_again <= now.unix;
            let account = self.accounts.get(issuer).filter(|_| slot.issuers.contains(issuer))?;
            (is_due && !is_asked && account.wait(now) == 0).then_some((issuer, id))
        });
        let mut found: Option<(String, Vec<OrderId>)> = None;
        for (issuer, id) in open {
            let (first, ids) = found.get_or_insert_with(|| (issuer.clone(), Vec::new()));
            if first == issuer && ids.len() < QUESTIONS_MAX {
                ids.push(id.clone());
            }
        }
        let (issuer, ids) = found?;
        self.asked.insert(issuer.clone());
        Some((issuer, ids))
    }

    /// Handles an answer about an order's certificate; returns whether the renewal moved.
    pub fn answered(&mut self, id: &OrderId, answer: WindowAnswer, now: AcmeNow) -> bool {
        let Some(slot) = self.orders.get_mut(id) else { return false };
        let before = slot.due();
        let again = match answer {
            WindowAnswer::Window(window, again) => {
                slot.record.window = Some(window);
                again.clamp(AGAIN_MIN, AGAIN_MAX)
            }
            WindowAnswer::Unoffered => AGAIN_MAX,
            WindowAnswer::Useless => PAUSE_MAX,
            WindowAnswer::Silent => doubled(SILENCE_FIRST, slot.window_silences + 1, PAUSE_MAX),
        };
        let is_silent = answer == WindowAnswer::Silent;
        slot.window_silences = if is_silent { slot.window_silences.saturating_add(1) } else { 0 };
        slot.record.window_again = now.unix.saturating_add(again);
        slot.due() != before
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::{OrderSlot, Validity};
    use super::*;
    use crate::record::AccountRecord;

    const LIFE: u64 = 90 * 24 * HOUR;

    fn asked_of(issuer: Option<&str>, orders: usize) -> Schedule {
        let mut schedule = Schedule::default();
        schedule.accounts.insert("a".into(), AccountRecord::default());
        for n in 0..orders {
            let mut slot = OrderSlot { issuers: vec!["a".into()], ..OrderSlot::default() };
            slot.validity = Some(Validity { from: 0, until: LIFE });
            slot.record.issued_by = issuer.map(str::to_owned);
            schedule.orders.insert(OrderId(format!("{n:03}")), slot);
        }
        schedule
    }

    fn at(unix: u64) -> AcmeNow {
        AcmeNow { unix, mono: unix }
    }

    #[test]
    fn only_the_issuer_of_a_certificate_is_asked_and_once_at_a_time() {
        assert_eq!(asked_of(None, 1).pick_questions(at(5)), None);
        assert_eq!(asked_of(Some("gone"), 1).pick_questions(at(5)), None);
        let mut schedule = asked_of(Some("a"), 120);
        let (issuer, ids) = schedule.pick_questions(at(5)).expect("a question");
        assert_eq!((&*issuer, ids.len()), ("a", QUESTIONS_MAX));
        assert_eq!(schedule.pick_questions(at(5)), None);
        for id in &ids {
            schedule.answered(id, WindowAnswer::Unoffered, at(6));
        }
        schedule.asked.clear();
        let (_, others) = schedule.pick_questions(at(7)).expect("the others");
        assert!(others.iter().all(|id| !ids.contains(id)));
        // An issuer that wants to be left alone is.
        let mut busy = asked_of(Some("a"), 1);
        busy.accounts.get_mut("a").expect("an account").not_before = 100;
        assert_eq!(busy.pick_questions(at(99)), None);
        assert!(busy.pick_questions(at(100)).is_some());
    }

    #[test]
    fn a_window_moves_the_renewal_and_one_of_another_certificate_does_not() {
        let mut schedule = asked_of(Some("a"), 1);
        let id = OrderId("000".into());
        let day = 24 * HOUR;
        let window = |until| RenewalWindow { start: 10 * day, end: 11 * day, until };
        let other = WindowAnswer::Window(window(LIFE - 1), 1);
        assert!(!schedule.answered(&id, other, at(day)));
        assert!(schedule.answered(&id, WindowAnswer::Window(window(LIFE), 1), at(day)));
        let due = schedule.orders[&id].due();
        assert!((10 * day..11 * day).contains(&due), "{due}");
        assert_eq!(schedule.orders[&id].record.window_again, day + AGAIN_MIN);
    }

    proptest! {
        #[test]
        fn no_answer_has_an_issuer_asked_often_or_never(
            kinds in proptest::collection::vec((0_u8..4, any::<u64>()), 1..30),
        ) {
            let mut schedule = asked_of(Some("a"), 1);
            let id = OrderId("000".into());
            let mut now = 0;
            for (kind, number) in kinds {
                let end = number.rotate_left(7);
                let window = RenewalWindow { start: number, end, until: LIFE };
                let answer = match kind {
                    0 => WindowAnswer::Window(window, number),
                    1 => WindowAnswer::Unoffered,
                    2 => WindowAnswer::Useless,
                    _ => WindowAnswer::Silent,
                };
                schedule.answered(&id, answer, at(now));
                let slot = &schedule.orders[&id];
                let pause = slot.record.window_again - now;
                prop_assert!((SILENCE_FIRST..=AGAIN_MAX).contains(&pause), "{pause}");
                // Not in its first day, and early enough to be tried again.
                let due = slot.due();
                prop_assert!((LIFE / 90..=LIFE / 20 * 19).contains(&due), "{due}");
                now += pause;
            }
        }
    }
}
