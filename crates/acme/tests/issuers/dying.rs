//! The process dies in every step: what was reached is not lost, and no order is repeated.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bolide_acme::{AcmeSetting, kept};
use bolide_testkit::{Pebble, PebbleOptions, wait_until};

use crate::host::{
    TestClock, TestHost, check_installed, issuer, order, plan, says, start, state_dir,
};

/// A setting in which the process dies at step number `at`, and how many there were.
fn dying(setting: AcmeSetting, at: usize) -> (AcmeSetting, Arc<AtomicUsize>) {
    let steps = Arc::new(AtomicUsize::new(0));
    let count = steps.clone();
    let crash_hook = move |_: &str| count.fetch_add(1, Ordering::SeqCst) >= at;
    (AcmeSetting { crash_hook: Some(Arc::new(crash_hook)), ..setting }, steps)
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
        let is_done = || says(&service, |report| !report.is_ordering && report.expires.is_some());
        wait_until("the step", || steps.load(Ordering::SeqCst) > at || is_done());
        let was_done = steps.load(Ordering::SeqCst) <= at;
        drop(service);
        let in_use = host.installed(&wanted.id);
        let service = start(&host, clock.setting());
        service.settle(plan.clone());
        wait_until("a certificate that is kept", || {
            // What was begun before the issuer knew the order begins anew after the pause.
            if says(&service, |report| report.failures > 0) {
                clock.forward(30);
            }
            kept(&plan, &wanted).is_some() && says(&service, |report| !report.is_ordering)
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

/// The address and the key of the account of a state directory.
fn account(dir: &Path) -> (String, String) {
    let files = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    let mut files = files.filter(|path| path.extension().is_some_and(|end| end == "json"));
    let file = files.next().expect("an account");
    assert_eq!(files.next(), None, "one account");
    let whole: serde_json::Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
    let text = |name: &str| whole[name].as_str().unwrap().to_owned();
    (text("id"), text("key_pkcs8"))
}

#[test]
fn a_change_of_keys_loses_no_account() {
    let _alone = crate::HEAVY.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let host = TestHost::start();
    let options = PebbleOptions::validating(host.ports.port(0), host.ports.port(1));
    let pebble = Pebble::start(PebbleOptions { bad_nonces: 10, ..options });
    let clock = TestClock::default();
    let dir = state_dir();
    let issuer = issuer(&pebble, Some(dir.clone()));
    let plan_of = |n: usize| {
        let name = format!("r{n}.example");
        plan(issuer.clone(), vec![order(&[&name])])
    };
    let issued = |n: usize| {
        let (service, plan) = (start(&host, clock.setting()), plan_of(n));
        service.settle(plan.clone());
        wait_until("a certificate", || {
            kept(&plan, &plan.orders[0]).is_some() && says(&service, |report| !report.is_ordering)
        });
        assert_eq!(service.report()[0].failures, 0, "{}", host.log_text());
    };
    issued(0);
    let (id, mut key) = account(&dir);
    let mut changes = 0;
    for at in 0.. {
        assert!(at < 100, "a change has an end");
        let (setting, steps) = dying(clock.setting(), at);
        let service = start(&host, setting.clone());
        // A certificate that is kept: nothing is asked for it before the steps of the change.
        service.settle(plan_of(0));
        wait_until("the plan", || {
            !service.report().is_empty() || steps.load(Ordering::SeqCst) > at
        });
        let end = setting.inbox.roll_over("pebble");
        let mut was_done = None;
        wait_until("the step", || {
            was_done = end.try_recv().ok();
            was_done.is_some() || steps.load(Ordering::SeqCst) > at
        });
        drop(service);
        if let Some(done) = &was_done {
            assert_eq!(*done, Ok(()), "step {at}");
        }
        // The next process orders with the account, whichever key it has.
        issued(at + 1);
        let (same, now) = account(&dir);
        assert_eq!(same, id, "step {at}");
        changes += usize::from(now != key);
        key = now;
        assert!(
            std::fs::read_dir(&dir)
                .unwrap()
                .all(|entry| { !entry.unwrap().path().to_string_lossy().ends_with(".next") })
        );
        if was_done.is_some() {
            assert!(at > 5 && changes > 1, "{at} steps, {changes} changes");
            return;
        }
    }
}
