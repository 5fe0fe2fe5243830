//! The process dies in every step: what was reached is not lost, and no order is repeated.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bolide_acme::{AcmeSetting, kept};
use bolide_testkit::{Pebble, PebbleOptions, wait_until};

use crate::host::{TestClock, TestHost, check_installed, issuer, order, plan, start, state_dir};

/// A setting in which the process dies at step number `at`, and how many there were.
fn dying(setting: AcmeSetting, at: usize) -> (AcmeSetting, Arc<AtomicUsize>) {
    let steps = Arc::new(AtomicUsize::new(0));
    let count = steps.clone();
    let dies = move |_: &str| count.fetch_add(1, Ordering::SeqCst) >= at;
    (AcmeSetting { dies: Some(Arc::new(dies)), ..setting }, steps)
}

#[test]
fn every_step() {
    let _alone = crate::HEAVY.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let host = TestHost::start();
    let options = PebbleOptions::validating(host.ports.port(0), host.ports.port(1));
    let pebble = Pebble::start(options);
    let clock = TestClock::default();
    for at in 0.. {
        assert!(at < 200, "an attempt has an end");
        let name = format!("n{at}.example");
        let wanted = order(&[&name]);
        let plan = plan(issuer(&pebble, Some(state_dir())), vec![wanted.clone()]);
        let (setting, steps) = dying(clock.setting(), at);
        let service = start(&host, setting);
        service.settle(plan.clone());
        let is_done = || {
            service
                .report()
                .first()
                .is_some_and(|report| !report.is_ordering && report.expires.is_some())
        };
        wait_until("the step", || steps.load(Ordering::SeqCst) > at || is_done());
        let was_done = steps.load(Ordering::SeqCst) <= at;
        drop(service);
        let in_use = host.installed(&wanted.id);
        let service = start(&host, clock.setting());
        service.settle(plan.clone());
        wait_until("a certificate that is kept", || {
            // What was begun before the issuer knew the order begins anew after the pause.
            if service.report()[0].failures > 0 {
                clock.forward(30);
            }
            kept(&plan, &wanted).is_some() && !service.report()[0].is_ordering
        });
        check_installed(&host, &wanted, None);
        if let Some((chain, _)) = in_use {
            // It is the same one: nothing was ordered twice.
            assert!(host.installed(&wanted.id).unwrap().0 == chain, "step {at}");
        }
        if was_done {
            assert!(at > 20, "{at} steps");
            return;
        }
    }
}
