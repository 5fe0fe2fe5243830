//! Several zones that report to each other, and what they let pass together.

use std::collections::VecDeque;
use std::sync::Arc;

use bolide_conf::model::{LimitKind, LimitZone};
use proptest::prelude::*;

use super::UNSENT_BYTES_MAX;
use crate::{
    LimitEntry, LimitPlace, LimitVerdict, REPORTED_KEY_MAX, ReportRoom, ReportedKeys, Ticket, Zone,
    Zones,
};

fn conf(kind: LimitKind, size: u64) -> LimitZone {
    LimitZone {
        name: (*b"one").into(),
        size,
        key: bolide_conf::Template::text(b"k"),
        key_text: (*b"$a").into(),
        kind,
        shared: true,
    }
}

fn zone(kind: LimitKind) -> Arc<Zone> {
    let conf = conf(kind, 64 << 10);
    let zone = Zone::new(&conf);
    zone.set_rate(&conf);
    zone.share(true);
    Arc::new(zone)
}

fn requests(rate: u64) -> Arc<Zone> {
    zone(LimitKind::Requests { rate })
}

fn passes(zone: &Zone, key: &[u8], terms: (u64, u64), now: u64) -> bool {
    matches!(zone.check_limit(key, terms, LimitPlace::Last, now), LimitVerdict::Counted(_))
}

fn enter(zone: &Arc<Zone>, key: &[u8], most: u32) -> Option<Ticket> {
    match zone.enter(key, most) {
        LimitEntry::Entered(ticket) => Some(ticket),
        LimitEntry::Busy | LimitEntry::Full => None,
    }
}

/// All that has not been reported.
fn unsent(zone: &Zone) -> ReportedKeys {
    zone.take_unsent(&mut ReportRoom { keys: usize::MAX, bytes: usize::MAX })
}

/// What one zone has counted goes to another.
fn report(from: &Zone, to: &Zone, now: u64) -> u64 {
    let unsent = unsent(from);
    unsent.iter().for_each(|(key, count)| to.charge_elsewhere(key, *count, now));
    unsent.iter().map(|(_, count)| count).sum()
}

#[test]
fn requests_elsewhere_count_as_if_they_had_come_here() {
    let (one, two, alone) = (requests(1000), requests(1000), requests(1000));
    let terms = (1000, 5000);
    for (now, reported) in [(5, 1), (5, 1), (5, 1), (505, 1)] {
        assert!(passes(&one, b"a", terms, now) && passes(&alone, b"a", terms, now));
        assert_eq!(report(&one, &two, now), reported);
    }
    assert_eq!(report(&one, &two, 505), 0, "each is reported once");
    // Both have two left, and what the rate has paid off.
    let count = |zone: &Zone| (0..9).filter(|_| passes(zone, b"a", terms, 1005)).count();
    assert_eq!((count(&two), count(&alone)), (3, 3));
    assert_eq!(count(&requests(1000)), 6, "a key that nobody counted");
}

#[test]
fn a_key_that_was_elsewhere_before_takes_along_what_it_owes() {
    let two = requests(1000);
    two.charge_elsewhere(b"a", 6, 5);
    assert!(!passes(&two, b"a", (1000, 5000), 5));
    assert_eq!(two.len(), 0, "a refused key needs no record");
    assert!(passes(&two, b"a", (1000, 5000), 1005));
    assert_eq!(two.len(), 1);
    assert!(!passes(&two, b"a", (1000, 5000), 1005), "it is counted once, not twice");
    two.charge_elsewhere(b"a", 0, 1005);
    two.charge_elsewhere(b"a", 1, 1005);
    assert!(!passes(&two, b"a", (1000, 5000), 2005));
    assert!(passes(&two, b"a", (1000, 5000), 3005));
}

#[test]
fn whatever_others_say_a_key_is_charged_for_an_hour_at_most() {
    let zone = requests(1000);
    zone.charge_elsewhere(b"a", u64::MAX, 5);
    zone.charge_elsewhere(b"a", u64::MAX, 5);
    assert!(!passes(&zone, b"a", (1000, 0), 3_600_000));
    assert!(passes(&zone, b"a", (1000, 0), 3_602_000));
}

#[test]
fn keys_of_others_displace_none_of_this_server() {
    let zone = requests(1);
    assert!(passes(&zone, b"own", (1, 0), 5));
    for key in 0..5000_u32 {
        zone.charge_elsewhere(&key.to_be_bytes(), 3, 5);
    }
    assert!(!passes(&zone, b"own", (1, 0), 5), "it still owes");
    assert!(!passes(&zone, &4999_u32.to_be_bytes(), (1, 0), 5), "the newest are known");
}

#[test]
fn nothing_is_kept_for_others_unless_it_is_reported() {
    let zone = requests(1000);
    zone.share(false);
    assert!(passes(&zone, b"a", (1000, 0), 5));
    assert!(unsent(&zone).is_empty());
    zone.share(true);
    assert!(passes(&zone, b"b", (1000, 0), 5));
    assert_eq!(unsent(&zone).len(), 1);
    let pinned = zone.check_limit(b"c", (1000, 0), LimitPlace::Inner, 5);
    let LimitVerdict::Pinned(pinned) = pinned else { panic!("a first request passes") };
    assert!(unsent(&zone).is_empty(), "it is not counted yet");
    zone.charge(pinned, 1000, 5);
    assert_eq!(unsent(&zone).len(), 1);
}

#[test]
fn what_has_no_room_in_a_report_is_reported_later_and_in_turn() {
    let zone = requests(1000);
    let keys = [b"a", b"b", b"c", b"d", b"e"];
    for key in keys.into_iter().chain([b"a", b"e"]) {
        assert!(passes(&zone, key, (1000, 9000), 5));
    }
    let reported = |keys, bytes| {
        let reported = zone.take_unsent(&mut ReportRoom { keys, bytes });
        reported.iter().map(|(key, count)| (key[0], *count)).collect::<Vec<_>>()
    };
    assert_eq!(reported(2, 999), [(b'a', 2), (b'b', 1)]);
    assert!(passes(&zone, b"a", (1000, 9000), 5));
    assert_eq!(reported(9, 15), [(b'c', 1), (b'd', 1)], "7 bytes each");
    assert_eq!(reported(9, 6), []);
    assert_eq!(reported(9, 99), [(b'e', 2), (b'a', 1)], "a key that comes again waits behind them");
    let held = self::zone(LimitKind::Connections);
    let _tickets = keys.map(|key| enter(&held, key, 9));
    assert_eq!(held.held(&mut ReportRoom { keys: 9, bytes: 15 }).len(), 2);
    assert_eq!(held.held(&mut ReportRoom { keys: 3, bytes: 99 }).len(), 3);
}

#[test]
fn keys_that_wait_to_be_reported_take_bounded_memory() {
    let conf = conf(LimitKind::Requests { rate: 1000 }, 64 << 20);
    let zone = Zone::new(&conf);
    zone.share(true);
    assert!(passes(&zone, &vec![b'k'; REPORTED_KEY_MAX + 1], (1000, 0), 5));
    for key in 0..3000_u32 {
        let long = [&key.to_be_bytes()[..], &[b'k'; 4000]].concat();
        assert!(passes(&zone, &long, (1000, 0), 5));
    }
    assert_eq!(unsent(&zone).len(), UNSENT_BYTES_MAX / 4004);
    assert!(passes(&zone, b"a", (1000, 0), 5));
    assert_eq!(unsent(&zone).len(), 1, "there is room again");
}

#[test]
fn a_configuration_that_is_refused_leaves_the_rate_as_it_is() {
    let (zones, slow) = (Zones::default(), conf(LimitKind::Requests { rate: 17 }, 64 << 10));
    let zone = zones.adopt(&slow).unwrap();
    zones.put_in_force(std::slice::from_ref(&zone));
    let fast = conf(LimitKind::Requests { rate: 100_000_000 }, 64 << 10);
    drop(zones.adopt(&fast).unwrap());
    zone.charge_elsewhere(b"a", 6, 5);
    zone.charge_elsewhere(b"a", 1, 1005);
    assert!(!passes(&zone, b"a", (17, 5000), 1005));
    let again = zones.adopt(&fast).unwrap();
    again.set_rate(&fast);
    zone.charge_elsewhere(b"a", 1, 2005);
    assert!(passes(&zone, b"a", (17, 5000), 2005), "the new rate is in force");
}

#[test]
fn requests_in_work_elsewhere_take_their_places() {
    let zone = zone(LimitKind::Connections);
    zone.set_held_elsewhere([((*b"a").into(), 2)].into());
    let first = enter(&zone, b"a", 3).expect("the third of three");
    assert!(enter(&zone, b"a", 3).is_none());
    assert!(enter(&zone, b"b", 1).is_some(), "another key");
    assert_eq!(zone.held(&mut ReportRoom { keys: 9, bytes: 999 }), [(Arc::from(&b"a"[..]), 1)]);
    assert!(enter(&zone, b"a", 2).is_none());
    drop(first);
    assert_eq!(zone.len(), 0);
    assert!(enter(&zone, b"a", 2).is_none(), "nothing is kept of a key that is refused");
    assert_eq!(zone.len(), 0);
    zone.share(false);
    assert!(enter(&zone, b"a", 1).is_some(), "without others it goes on alone");
}

/// A request, or time that passes.
#[derive(Clone, Copy, Debug)]
enum Event {
    Request(usize),
    Later(u64),
}

fn event(nodes: usize) -> impl Strategy<Value = Event> {
    prop_oneof![
        5 => (0..nodes).prop_map(Event::Request),
        1 => (1_u64..1500).prop_map(Event::Later),
    ]
}

proptest! {
    /// The budget of error: beyond what one server lets pass in any span of time, each other one
    /// lets pass at most what it can within the delay.
    #[test]
    fn together_they_pass_the_rate_and_a_bounded_error(
        events in prop::collection::vec(event(3), 1..400),
        rate in 500_u64..5000,
        burst in 0_u64..8,
        delay in 0_u64..1000,
    ) {
        let nodes: Vec<_> = (0..3).map(|_| requests(rate)).collect();
        let terms = (rate, burst * 1000);
        let (mut now, mut passed): (u64, Vec<u64>) = (1, Vec::new());
        let mut on_the_way: VecDeque<(u64, usize, u64)> = VecDeque::new();
        let mut own = vec![Vec::new(); 3];
        for event in events {
            match event {
                Event::Later(ms) => now += ms,
                Event::Request(at) => {
                    while let Some((due, from, count)) = on_the_way.front().copied()
                        && due <= now
                    {
                        on_the_way.pop_front();
                        for (to, node) in nodes.iter().enumerate() {
                            if to != from {
                                node.charge_elsewhere(b"a", count, due.max(1));
                            }
                        }
                    }
                    if passes(&nodes[at], b"a", terms, now) {
                        passed.push(now);
                        own[at].push(now);
                        let unsent: u64 = unsent(&nodes[at]).iter().map(|(_, count)| count).sum();
                        prop_assert_eq!(unsent, 1);
                        on_the_way.push_back((now + delay, at, unsent));
                    }
                }
            }
        }
        let most = |ms: u64| burst + 1 + (rate * ms).div_ceil(1_000_000) + 1;
        for (first, start) in passed.iter().enumerate() {
            for (count, end) in passed[first..].iter().enumerate() {
                let bound = most(end - start) + 2 * most(delay);
                prop_assert!((count as u64) < bound, "{} in {} ms", count + 1, end - start);
            }
        }
        for passed in own {
            for (first, start) in passed.iter().enumerate() {
                for (count, end) in passed[first..].iter().enumerate() {
                    prop_assert!((count as u64) < most(end - start), "no server passes more");
                }
            }
        }
    }
}
