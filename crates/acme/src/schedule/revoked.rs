//! Certificates that their issuers revoked: each is replaced at once, and an issuer that revokes
//! each one gets no order after the other.

use bolide_tls::Revocation;

use super::{AcmeNow, HOUR, OrderSlot, Schedule, doubled};
use crate::certificate::serial_text;
use crate::plan::OrderId;
use crate::record::RevokedCertificate;

/// Seconds from noticing a revocation to the next order, if the certificate replaced a revoked one:
/// at first, and at most.
const AGAIN_FIRST: u64 = HOUR;
const AGAIN_MAX: u64 = 48 * HOUR;
/// Seconds after which a revocation does not count any more.
const MEMORY: u64 = 7 * 24 * HOUR;

impl Schedule {
    /// The issuer has revoked the certificate with this serial number. Returns whether it is in
    /// use, and this was not known.
    pub fn revoked(
        &mut self,
        id: &OrderId,
        serial: &[u8],
        revocation: Revocation,
        now: AcmeNow,
    ) -> bool {
        let Some(slot) = self.orders.get_mut(id) else { return false };
        let serial = serial_text(serial);
        let before = slot.record.revoked.as_ref();
        let is_known = before.is_some_and(|before| before.serial == serial);
        if slot.serial.as_ref() != Some(&serial) || is_known {
            return false;
        }
        let recent = before.filter(|before| before.noticed.saturating_add(MEMORY) > now.unix);
        let times = recent.map_or(0, |before| before.times).saturating_add(1);
        let noticed = now.unix;
        slot.record.revoked = Some(RevokedCertificate { serial, times, noticed, revocation });
        true
    }
}

impl OrderSlot {
    /// The revocation of the certificate in use, if its issuer revoked it.
    #[must_use]
    pub fn revoked(&self) -> Option<&RevokedCertificate> {
        let revoked = self.record.revoked.as_ref();
        revoked.filter(|revoked| self.serial.as_ref() == Some(&revoked.serial))
    }
}

/// When a revoked certificate is to be replaced.
pub(super) fn replacement(revoked: &RevokedCertificate) -> u64 {
    match revoked.times {
        0..=1 => 0,
        times => revoked.noticed.saturating_add(doubled(AGAIN_FIRST, times - 1, AGAIN_MAX)),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::{AttemptEnd, AttemptFailure, FAILURES_PER_HOUR, Validity};
    use super::*;
    use crate::record::AccountRecord;

    const START: u64 = 1_800_000_000;
    const LIFE: u64 = 90 * 24 * HOUR;

    fn at(unix: u64) -> AcmeNow {
        AcmeNow { unix, mono: unix }
    }

    /// An order with a new certificate of serial number 1.
    fn fresh() -> (Schedule, OrderId) {
        let (mut schedule, id) = (Schedule::default(), OrderId("a".into()));
        schedule.accounts.insert("ca".into(), AccountRecord::default());
        let slot = OrderSlot { issuers: vec!["ca".into()], ..OrderSlot::default() };
        schedule.orders.insert(id.clone(), slot);
        issue(&mut schedule, &id, 1, START);
        (schedule, id)
    }

    fn issue(schedule: &mut Schedule, id: &OrderId, serial: u8, now: u64) {
        let (_, issuer) = schedule.pick(at(now)).expect("an order");
        schedule.begin(id, &issuer, at(now));
        let validity = Validity { from: now, until: now + LIFE };
        schedule.ended(id, AttemptEnd::Issued(validity), at(now));
        schedule.orders.get_mut(id).unwrap().serial = Some(serial_text(&[serial]));
    }

    #[test]
    fn a_revoked_certificate_is_replaced_at_once_and_another_serial_number_is_not() {
        let (mut schedule, id) = fresh();
        let why = Revocation { at: Some(START), reason: Some(1) };
        assert!(!schedule.revoked(&id, &[2], why, at(START + 1)));
        assert_eq!(schedule.pick(at(START + 1)), None);
        assert!(schedule.revoked(&id, &[1], why, at(START + 1)));
        assert!(!schedule.revoked(&id, &[1], why, at(START + 2)), "it is known");
        assert_eq!(schedule.orders[&id].revoked().unwrap().revocation, why);
        issue(&mut schedule, &id, 2, START + 2);
        // What is said again about the old one does not concern the new one.
        assert!(!schedule.revoked(&id, &[1], why, at(START + 3)));
        assert_eq!(schedule.orders[&id].revoked(), None);
        assert_eq!(schedule.pick(at(START + HOUR)), None);
    }

    #[test]
    fn failures_delay_the_order_for_a_revoked_certificate_like_any_other() {
        let (mut schedule, id) = fresh();
        assert!(schedule.revoked(&id, &[1], Revocation::default(), at(START)));
        let (mut now, mut failures) = (START, Vec::new());
        while now < START + 3 * HOUR {
            if let Some((id, issuer)) = schedule.pick(at(now)) {
                schedule.begin(&id, &issuer, at(now));
                let failure = AttemptFailure { was_ordered: true, ..AttemptFailure::default() };
                schedule.ended(&id, AttemptEnd::Failed(failure), at(now));
                failures.push(now);
            }
            now += 10;
        }
        assert!(failures.len() > 5);
        for start in &failures {
            let within = failures.iter().filter(|when| (*start..start + HOUR).contains(*when));
            assert!(within.count() <= FAILURES_PER_HOUR);
        }
    }

    proptest! {
        /// An issuer that revokes whatever it issues gets few orders, also if the process restarts
        /// and the clock jumps.
        #[test]
        fn an_issuer_that_revokes_all_gets_few_orders(
            delays in proptest::collection::vec(0_u64..3 * HOUR, 1..40),
        ) {
            let (mut schedule, id) = fresh();
            let (mut now, mut serial, mut issued) = (START, 1_u8, Vec::new());
            for delay in delays {
                schedule.revoked(&id, &[serial], Revocation::default(), at(now));
                let slot = schedule.orders.get_mut(&id).unwrap();
                // A restart knows what the file has.
                slot.record = crate::record::OrderRecord::parse(&slot.record.text()).unwrap();
                now += delay;
                if schedule.pick(at(now)).is_some() {
                    serial += 1;
                    issue(&mut schedule, &id, serial, now);
                    issued.push(now);
                }
            }
            for start in &issued {
                let day = issued.iter().filter(|when| (*start..start + 24 * HOUR).contains(*when));
                prop_assert!(day.count() <= 6);
            }
        }
    }
}
