//! Zones of several servers and configurations, and the reports of one server to another.

use std::sync::Arc;

use bolide_base::{Instant, Now};
use bolide_cluster::{LimitReport, ReportKind, ReportZone};
use bolide_conf::model::{LimitKind, LimitZone as ZoneConf};
use bolide_engine::{LimitZone, Zones};

use super::receiving::{AGE_MAX_MS, LastReports, LimitReceiving};
use super::reporting::{LimitReporting, REPORT_BYTES, ReportedZones};

const KIND: LimitKind = LimitKind::Requests { rate: 17 };
const START: u64 = 1_000_000_000;

fn conf(name: &str, key: &str, size: u64, kind: LimitKind) -> ZoneConf {
    ZoneConf {
        name: name.as_bytes().into(),
        size,
        key: bolide_conf::Template::text(b"k"),
        key_text: key.as_bytes().into(),
        kind,
        shared: true,
    }
}

fn at(ms: u64) -> Now {
    Now { mono: Instant::from_nanos(ms * 1_000_000), unix_millis: START + ms }
}

fn report(
    (life, number, sent_ms): (u64, u64, u64),
    kind: ReportKind,
    keys: &[(&'static [u8], u32)],
) -> LimitReport<'static> {
    let zone = ReportZone { kind, name: b"z", key_text: b"$a", keys: keys.to_vec() };
    let unix_ms = START + sent_ms;
    LimitReport { cluster: b"c", node: b"two", life, number, unix_ms, zones: vec![zone] }
}

/// How many requests of `a` pass at once.
fn passed(zone: &LimitZone, now_ms: u64) -> usize {
    let terms = (17, 9000);
    let weigh = || zone.check_limit(b"a", terms, bolide_limit::LimitPlace::Last, now_ms);
    (0..20).filter(|_| matches!(weigh(), bolide_limit::LimitVerdict::Counted(_))).count()
}

fn enter(zone: &Arc<LimitZone>, key: &[u8], most: u32) -> Option<bolide_limit::Ticket> {
    match zone.enter(key, most) {
        bolide_limit::LimitEntry::Entered(ticket) => Some(ticket),
        _ => None,
    }
}

/// The zone of a configuration that comes into force.
fn in_force(zones: &Zones, conf: &ZoneConf) -> Arc<LimitZone> {
    let zone = zones.adopt(conf).unwrap();
    zones.put_in_force(std::slice::from_ref(&zone));
    zone
}

#[test]
fn zones_of_two_configurations_are_charged_and_the_older_goes_with_its_own() {
    let (zones, mut sharing) = (Zones::default(), ReportedZones::default());
    let old = in_force(&zones, &conf("z", "$a", 64 << 10, KIND));
    assert_eq!(sharing.turn(&zones.shared()).len(), 1);
    let new = in_force(&zones, &conf("z", "$a", 128 << 10, KIND));
    assert_eq!(sharing.turn(&zones.shared()).len(), 1);
    let counted = report((1, 1, 5), ReportKind::Counted, &[(b"a", 10)]);
    assert!(LimitReceiving::default().apply(
        &counted,
        &zones.shared(),
        &mut LastReports::default(),
        at(5)
    ));
    assert_eq!((passed(&old, 5), passed(&new, 5)), (0, 0));
    let gone = Arc::downgrade(&old);
    drop(old);
    assert!(gone.upgrade().is_none(), "nothing but its configuration keeps a zone");
    drop(new);
    zones.adopt(&conf("z", "$b", 64 << 10, KIND)).expect("a zone that is gone refuses no key");
}

#[test]
fn requests_in_work_of_two_configurations_are_reported_as_one_sum_and_known_to_both() {
    let zones = Zones::default();
    let (mut sharing, mut reporting) = (ReportedZones::default(), LimitReporting::default());
    let old = in_force(&zones, &conf("z", "$a", 64 << 10, LimitKind::Connections));
    let _first = enter(&old, b"a", 9).unwrap();
    let (mut receiving, mut last_reports) = (LimitReceiving::default(), LastReports::default());
    sharing.turn(&zones.shared()).into_iter().for_each(|zone| receiving.mark_changed(zone));
    let held = report((1, 1, 5), ReportKind::Held, &[(b"a", 2)]);
    assert!(receiving.apply(&held, &zones.shared(), &mut last_reports, at(5)));
    receiving.settle(&zones.shared(), at(5));
    // The other server reports the same requests in progress as before.
    let new = in_force(&zones, &conf("z", "$a", 128 << 10, LimitKind::Connections));
    sharing.turn(&zones.shared()).into_iter().for_each(|zone| receiving.mark_changed(zone));
    let held = report((1, 2, 1005), ReportKind::Held, &[(b"a", 2)]);
    assert!(receiving.apply(&held, &zones.shared(), &mut last_reports, at(1005)));
    receiving.settle(&zones.shared(), at(1005));
    assert!(enter(&old, b"a", 3).is_none() && enter(&new, b"a", 2).is_none());
    let _second = enter(&new, b"a", 3).unwrap();
    let _third = enter(&new, b"b", 3).unwrap();
    let parts = reporting.tick(&zones.shared(), 5);
    let reported: Vec<_> = parts.iter().flat_map(|part| &part.keys).collect();
    assert_eq!(reported, [&(Arc::from(&b"a"[..]), 2), &(Arc::from(&b"b"[..]), 1)]);
    assert_eq!(reporting.tick(&zones.shared(), 900), [], "nothing is new");
    assert_eq!(reporting.tick(&zones.shared(), 1005).len(), 1, "they are still there");
    receiving.settle(&zones.shared(), at(6005));
    assert!(enter(&new, b"a", 2).is_some(), "a silent server has nothing in work");
}

#[test]
fn a_report_is_charged_once_and_only_while_it_is_new() {
    let zones = Zones::default();
    let zone = in_force(&zones, &conf("z", "$a", 64 << 10, KIND));
    let mut last_reports = LastReports::default();
    let mut apply = |stamp, now| {
        let counted = report(stamp, ReportKind::Counted, &[(b"a", 1)]);
        // On a connection of its own.
        LimitReceiving::default().apply(&counted, &zones.shared(), &mut last_reports, at(now))
    };
    let day = 86_400_000;
    assert!(apply((1, 5, day), day));
    assert!(!apply((1, 5, day), day) && !apply((1, 4, day), day) && !apply((1, 0, day + 9), day));
    assert!(apply((1, 9, day), day), "numbers may have gaps");
    assert!(apply((2, 1, day), day), "another process has its own");
    for age in [AGE_MAX_MS + 1, day] {
        assert!(!apply((1, 10, day - age), day) && !apply((3, 1, day - age), day), "too old");
        assert!(!apply((1, 10, day + age), day) && !apply((3, 1, day + age), day), "too new");
    }
    assert!(apply((1, 10, day - AGE_MAX_MS), day) && apply((1, 11, day + AGE_MAX_MS), day));
    assert_eq!(passed(&zone, day), 5, "five were charged");
    // However many processes there are, the last report of each is not dropped too early.
    let admitted = (10..3000).filter(|life| apply((*life, 1, day), day)).count();
    assert!((1000..1024).contains(&admitted), "{admitted}");
    assert!(!apply((1, 11, day), day + 1));
    let later = day + 2 * AGE_MAX_MS + 2;
    assert!(apply((5000, 1, later), later), "those that are gone make room");
    assert!(!apply((1, 11, day + AGE_MAX_MS), later), "their reports are too old now");
}

#[test]
fn busy_zones_take_turns_and_nothing_is_lost() {
    let (zones, mut reporting) = (Zones::default(), LimitReporting::default());
    let adopt = |at: u32| in_force(&zones, &conf(&format!("z{at}"), "$a", 64 << 20, KIND));
    let kept: Vec<_> = (0..70).map(adopt).collect();
    kept.iter().for_each(|zone| zone.share(true));
    let count = |keys: std::ops::Range<u32>| {
        for (zone, key) in kept.iter().flat_map(|zone| keys.clone().map(move |key| (zone, key))) {
            let key = [&key.to_be_bytes()[..], &[b'k'; 3000]].concat();
            let _counted = zone.check_limit(&key, (17, 0), bolide_limit::LimitPlace::Last, 5);
        }
    };
    count(0..1);
    let mut all = Vec::new();
    for tick in 0..3 {
        let parts = reporting.tick(&zones.shared(), 5);
        assert_eq!(parts.len(), [32, 32, 6][tick]);
        all.extend(parts.into_iter().map(|part| part.zone));
    }
    all.sort();
    all.dedup();
    assert_eq!(all.len(), 70, "each has had its turn");
    // So much that bytes are what bounds it.
    count(1..91);
    let (mut reported, mut ticks) = (0, 0);
    loop {
        let parts = reporting.tick(&zones.shared(), 5);
        let bytes = |keys: &[(Arc<[u8]>, u32)]| keys.iter().map(|(key, _)| key.len()).sum();
        let sizes: Vec<usize> = parts.iter().map(|part| bytes(&part.keys)).collect();
        assert!(sizes.iter().all(|size| *size <= REPORT_BYTES));
        assert!(sizes.iter().sum::<usize>() <= 1 << 20);
        reported += parts.iter().map(|part| part.keys.len()).sum::<usize>();
        ticks += 1;
        if parts.is_empty() {
            break;
        }
    }
    assert_eq!(reported, 70 * 90);
    assert!(ticks > 18, "{ticks}");
}
