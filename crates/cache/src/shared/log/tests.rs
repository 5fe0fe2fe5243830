//! Places of fills, and which purges objects are checked against.

use super::{ENTRIES_MAX, PurgeLog, StreamPlace};
use crate::bans::BanKind;
use crate::disk::format::{Record, pack_tags};
use crate::disk::{DiskPurge, DiskPurgeTarget};
use crate::object::{ObjectKind, Times};
use crate::tags::{TagPurge, Tags};

fn at(ms: u64) -> StreamPlace {
    StreamPlace { ms, ..StreamPlace::default() }
}

fn purge(log: &mut PurgeLog, tag: &[u8], sequence: u64, number: Option<u64>) {
    let (namespace, session, target) = (&b"a"[..], &b""[..], DiskPurgeTarget::Tag(tag));
    let how = TagPurge::Dead;
    log.record_purge(&DiskPurge { namespace, session, target, how, sequence }, number);
}

/// Whether an object with this tag is taken.
fn spares(log: &PurgeLog, place: StreamPlace, tag: &[u8]) -> bool {
    let mut tags = Tags::default();
    tags.push(tag);
    let tags = pack_tags(&tags);
    let record = Record {
        seal: 0,
        sequence: 0,
        kind: ObjectKind::Content,
        is_stale: false,
        status: 200,
        times: Times::default(),
        body_len: 0,
        namespace: b"a",
        url: b"/",
        vary: b"",
        session: b"",
        etag: b"",
        tags: &tags,
        head: &[0; 8],
        sums: b"",
    };
    let bans = log.spares(place, &record);
    bans.is_some_and(|bans| !bans.iter().any(|ban| ban.hits(&record)))
}

/// A log that has received purges of `x` at 20 and of `y` at 30.
fn log() -> PurgeLog {
    let mut log = PurgeLog::default();
    log.reset(at(10), 1);
    purge(&mut log, b"x", 2, None);
    log.record_entry(at(20), (Some(1), 2), 0);
    purge(&mut log, b"y", 3, None);
    log.record_entry(at(30), (Some(2), 3), 0);
    log
}

#[test]
fn an_object_is_checked_against_purges_after_its_place() {
    let log = log();
    let spared = |ms| [b"x", b"y", b"z"].map(|tag| spares(&log, at(ms), tag));
    assert_eq!(spared(10), [false, false, true]);
    assert_eq!(spared(20), [true, false, true]);
    assert_eq!(spared(30), [true, true, true]);
    assert_eq!(spared(25), [false; 3], "no entry is there");
    assert_eq!(spared(5), [false; 3], "nothing is known so far back");
    assert_eq!(spared(40), [false; 3], "nothing is known so far ahead");
}

#[test]
fn a_fill_has_the_place_of_the_last_entry_before_it() {
    let mut log = log();
    let places =
        |log: &PurgeLog| [0, 1, 2, 3, 9].map(|number| log.place_of(number).map(|at| at.ms));
    assert_eq!(places(&log), [None, Some(10), Some(20), Some(30), Some(30)]);
    log.record_entry(at(40), (Some(3), 4), 0);
    assert_eq!(places(&log), [None, Some(10), Some(20), Some(30), Some(40)]);
}

#[test]
fn a_purge_of_this_node_counts_until_its_entry_comes_and_from_its_place_on() {
    let mut log = log();
    purge(&mut log, b"z", 4, Some(1));
    assert!(!spares(&log, at(30), b"z") && spares(&log, at(30), b"y"));
    assert!(log.is_ahead(4) && !log.is_ahead(3));
    // Another one comes first: its place says nothing of the purge.
    purge(&mut log, b"w", 5, None);
    log.record_entry(at(40), (Some(4), 5), 0);
    assert!(!spares(&log, at(40), b"z"));
    log.record_entry(at(50), (None, 5), 1);
    assert!(!spares(&log, at(40), b"z") && spares(&log, at(50), b"z") && !log.is_ahead(4));
    assert_eq!(log.place_of(4).map(|at| at.ms), Some(30), "the other one may have come behind it");
    assert_eq!(log.place_of(5).map(|at| at.ms), Some(50));
}

#[test]
fn a_loss_and_a_fence_hide_what_came_before() {
    let mut log = log();
    log.reset(at(60), 9);
    assert!(!spares(&log, at(30), b"z") && spares(&log, at(60), b"x"));
    assert_eq!((log.place_of(8), log.place_of(9)), (None, Some(at(60))));
    log.begin(at(80), 0);
    log.reset(at(70), 9);
    log.record_entry(at(75), (Some(9), 10), 0);
    assert_eq!(log.last(), None);
    log.record_entry(at(80), (Some(10), 11), 0);
    assert!(spares(&log, at(80), b"x") && !spares(&log, at(75), b"x"));
    // A purge from before the log waits to be sent.
    log.begin(at(80), 5);
    log.reset(at(90), 11);
    log.record_entry(at(95), (None, 11), 4);
    assert_eq!(log.last(), None);
    log.record_entry(at(99), (None, 11), 5);
    assert_eq!(log.last(), Some(at(99)));
}

#[test]
fn the_log_is_bounded() {
    let mut log = PurgeLog::default();
    log.reset(at(1), 1);
    for number in 2..ENTRIES_MAX as u64 * 2 {
        purge(&mut log, &number.to_le_bytes(), number, None);
        log.record_entry(at(number), (Some(number - 1), number), 0);
    }
    assert!(log.rows.len() <= ENTRIES_MAX && log.purges.len() <= ENTRIES_MAX + 1);
    let last = ENTRIES_MAX as u64 * 2 - 1;
    assert!(!spares(&log, at(last - 100), &(last - 50).to_le_bytes()));
    assert!(spares(&log, at(last - 100), &(last - 150).to_le_bytes()));
    assert!(!spares(&log, at(2), b"z"), "too old");
    // Purges that the stream has not returned.
    for number in 0..super::PURGES_MAX as u64 + 2 {
        purge(&mut log, b"q", last + 1, Some(number));
    }
    assert!(log.pending.len() <= super::PURGES_MAX);
    log.record_entry(at(last + 10), (None, last + 1), 7);
    assert!(!spares(&log, at(last + 10), b"z"), "they are missing yet");
    log.record_entry(at(last + 20), (None, last + 1), super::PURGES_MAX as u64 + 9);
    assert!(spares(&log, at(last + 20), b"z"));
}

#[test]
fn expressions_are_left_to_be_matched_without_the_log() {
    let mut log = log();
    let (namespace, session, how) = (&b"a"[..], &b""[..], TagPurge::Dead);
    let target = DiskPurgeTarget::Matching(BanKind::Tag, b"^z");
    log.record_purge(&DiskPurge { namespace, session, target, how, sequence: 4 }, None);
    log.record_entry(at(40), (Some(3), 4), 0);
    assert!(spares(&log, at(40), b"z1"), "it came before the object");
    assert!(!spares(&log, at(30), b"z1") && spares(&log, at(30), b"other"));
    let foreign = DiskPurge { namespace: b"b", session, target, how, sequence: 5 };
    log.record_purge(&foreign, None);
    log.record_entry(at(50), (Some(4), 5), 0);
    assert!(spares(&log, at(40), b"z1"), "it is about another part of the cache");
}
