//! Unit and property tests of the zones.

use std::sync::Arc;

use bolide_conf::model::{LimitKind, LimitZone};
use proptest::prelude::*;

use super::{LimitEntry, LimitHold, LimitPlace, LimitVerdict, Zone, Zones, room};

fn conf(key: &str, size: u64, kind: LimitKind) -> LimitZone {
    let key_text = key.as_bytes().into();
    LimitZone {
        name: (*b"one").into(),
        size,
        key: bolide_conf::Template::text(b"k"),
        key_text,
        kind,
        shared: false,
    }
}

fn requests(size: u64) -> Zone {
    Zone::new(&conf("$a", size, LimitKind::Requests { rate: 1000 }))
}

fn connections(size: u64) -> Arc<Zone> {
    Arc::new(Zone::new(&conf("$a", size, LimitKind::Connections)))
}

#[test]
fn the_excess_grows_by_one_request_and_shrinks_with_time() {
    let zone = requests(1 << 20);
    let weigh = |now| zone.check_limit(b"a", (1000, 2000), LimitPlace::Last, now);
    assert_eq!(weigh(5), LimitVerdict::Counted(0));
    assert_eq!(weigh(5), LimitVerdict::Counted(1000));
    assert_eq!(weigh(5), LimitVerdict::Counted(2000));
    assert_eq!(weigh(5), LimitVerdict::Busy(3000));
    assert_eq!(weigh(505), LimitVerdict::Busy(2500));
    assert_eq!(weigh(1105), LimitVerdict::Counted(1900));
    assert_eq!(weigh(60_000), LimitVerdict::Counted(0));
}

#[test]
fn a_worker_whose_time_is_older_does_not_pay_twice() {
    let zone = requests(1 << 20);
    let weigh = |now, place| zone.check_limit(b"a", (1000, 9000), place, now);
    assert_eq!(weigh(1500, LimitPlace::Last), LimitVerdict::Counted(0));
    assert_eq!(weigh(1000, LimitPlace::Last), LimitVerdict::Counted(1000));
    assert_eq!(weigh(1500, LimitPlace::Last), LimitVerdict::Counted(2000));
    let LimitVerdict::Pinned(pinned) = weigh(1000, LimitPlace::Inner) else {
        panic!("within the burst")
    };
    assert_eq!(zone.charge(pinned, 1000, 1000), 3000);
    assert_eq!(weigh(1500, LimitPlace::Last), LimitVerdict::Counted(4000));
}

#[test]
fn what_is_held_twice_is_counted_until_both_let_go() {
    let zone = connections(1 << 20);
    let LimitEntry::Entered(ticket) = zone.enter(b"a", 1) else { panic!("the first one enters") };
    let mut held = LimitHold::default();
    held.add(ticket);
    let script = held.clone();
    held.let_go();
    assert!(matches!(zone.enter(b"a", 1), LimitEntry::Busy));
    drop(script);
    assert!(matches!(zone.enter(b"a", 1), LimitEntry::Entered(_)));
}

#[test]
fn what_is_pinned_is_charged_only_when_told() {
    let zone = requests(1 << 20);
    let weigh = |place| zone.check_limit(b"a", (1000, 0), place, 5);
    let LimitVerdict::Pinned(first) = weigh(LimitPlace::Inner) else {
        panic!("a first request passes")
    };
    zone.unpin(first);
    let LimitVerdict::Pinned(second) = weigh(LimitPlace::Inner) else {
        panic!("nothing was charged")
    };
    assert_eq!(zone.charge(second, 1000, 5), 0);
    assert_eq!(weigh(LimitPlace::Last), LimitVerdict::Busy(1000));
}

#[test]
fn a_zone_of_the_smallest_size_holds_as_many_keys_as_nginx_would() {
    // Six pages of 32 records of 128 bytes, of which one is the zone's own head.
    assert_eq!(room(32 << 10), 6 * 4096 - 128);
    let zone = requests(32 << 10);
    for key in 0..500_u32 {
        assert_eq!(
            zone.check_limit(&key.to_be_bytes(), (1000, 0), LimitPlace::Last, 5),
            LimitVerdict::Counted(0)
        );
    }
    assert_eq!(zone.len(), 191);
    let weigh = |key: u32| zone.check_limit(&key.to_be_bytes(), (1000, 0), LimitPlace::Last, 5);
    assert_eq!(weigh(499), LimitVerdict::Busy(1000), "the newest are there");
    assert_eq!(weigh(0), LimitVerdict::Counted(0), "the oldest went");
}

#[test]
fn nothing_pinned_is_evicted() {
    let zone = requests(32 << 10);
    for key in 0..191_u32 {
        let verdict = zone.check_limit(&key.to_be_bytes(), (1000, 0), LimitPlace::Inner, 5);
        assert!(matches!(verdict, LimitVerdict::Pinned(_)));
    }
    let more = |key: &[u8]| zone.check_limit(key, (1000, 0), LimitPlace::Last, 5);
    assert_eq!(more(b"more"), LimitVerdict::Full);
    zone.unpin(0);
    assert_eq!(more(b"more"), LimitVerdict::Counted(0));
}

#[test]
fn idle_records_go_two_at_a_time() {
    let zone = requests(1 << 20);
    for key in [b"a", b"b", b"c"] {
        zone.check_limit(key, (1000, 0), LimitPlace::Last, 5);
    }
    zone.check_limit(b"d", (1000, 0), LimitPlace::Last, 70_000);
    assert_eq!(zone.len(), 2);
}

#[test]
fn tickets_count_until_they_are_dropped() {
    let zone = connections(32 << 10);
    let LimitEntry::Entered(first) = zone.enter(b"a", 1) else { panic!("the first one enters") };
    assert!(matches!(zone.enter(b"a", 1), LimitEntry::Busy));
    assert!(matches!(zone.enter(b"b", 1), LimitEntry::Entered(_)));
    drop(first);
    assert_eq!(zone.len(), 0);
    let all: Vec<LimitEntry> = (0..500_u32).map(|key| zone.enter(&key.to_be_bytes(), 1)).collect();
    let entered = all.iter().filter(|entry| matches!(entry, LimitEntry::Entered(_))).count();
    assert_eq!(entered, 6 * 64 - 2, "records of 64 bytes, and nobody is evicted");
    assert!(matches!(all.last(), Some(LimitEntry::Full)));
}

#[test]
fn zones_outlive_a_configuration_under_the_same_name_key_and_size() {
    let zones = Zones::default();
    let adopt = |conf: &LimitZone| zones.adopt(conf);
    let kind = LimitKind::Requests { rate: 1 };
    let first = adopt(&conf("$a", 32 << 10, kind)).unwrap();
    zones.put_in_force(std::slice::from_ref(&first));
    let again = adopt(&conf("$a", 32 << 10, LimitKind::Requests { rate: 2 })).unwrap();
    assert!(Arc::ptr_eq(&first, &again));
    let other = adopt(&conf("$a", 64 << 10, kind)).unwrap();
    assert!(!Arc::ptr_eq(&first, &other));
    assert!(!Arc::ptr_eq(&first, &adopt(&conf("$a", 32 << 10, LimitKind::Connections)).unwrap()));
    assert_eq!(
        adopt(&conf("$b", 32 << 10, kind)).unwrap_err(),
        "limit_req \"one\" uses the \"$b\" key while previously it used the \"$a\" key"
    );
}

#[test]
fn only_the_configuration_in_force_has_zones_to_take_over_whoever_still_uses_others() {
    let (zones, size) = (Zones::default(), 32 << 10);
    let adopt = |key: &str| zones.adopt(&conf(key, size, LimitKind::Connections));
    // A draft that is held, and refused: nothing is known of it.
    let refused = adopt("$r").unwrap();
    let first = adopt("$a").unwrap();
    assert!(!Arc::ptr_eq(&refused, &first));
    assert_eq!(zones.held(), 0);
    let LimitEntry::Entered(_of_refused) = refused.enter(b"k", 1) else { panic!("it enters") };
    assert_eq!(zones.held(), 0, "only what was in force is counted");
    zones.put_in_force(std::slice::from_ref(&first));
    let LimitEntry::Entered(_ticket) = first.enter(b"k", 1) else { panic!("it enters") };
    assert!(adopt("$b").is_err(), "it is in force with another key");
    // A configuration without the zone, while a request of the last one goes on.
    zones.put_in_force(&[]);
    let second = adopt("$b").unwrap();
    assert!(matches!(second.enter(b"k", 1), LimitEntry::Entered(_)), "a zone of its own");
    zones.put_in_force(std::slice::from_ref(&second));
    assert_eq!(zones.held(), 1, "the request of the old configuration");
    assert!(adopt("$a").is_err() && adopt("$b").is_ok_and(|it| Arc::ptr_eq(&it, &second)));
}

proptest! {
    /// Whatever is asked, the memory is never exceeded and comes back.
    #[test]
    fn room_is_kept_account_of(
        asked in prop::collection::vec((0_usize..6000, 0_u64..200_000), 1..200)
    ) {
        let zone = requests(32 << 10);
        let mut now = 0;
        for (len, later) in asked {
            now += later;
            zone.check_limit(&vec![b'k'; len], (1000, 0), LimitPlace::Last, now);
            let records = zone.lock();
            let used: u64 = records.index.keys().map(|key| records.cost(key)).sum();
            prop_assert_eq!(used + records.room, room(32 << 10));
        }
    }
}
