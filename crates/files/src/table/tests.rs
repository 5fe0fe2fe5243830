//! Freshness, bounds and variants, and the table against a naive disk.

use std::collections::HashMap;
use std::rc::Rc;
use std::time::Duration;

use bolide_base::{FileRef, Instant, Now};
use bolide_http::negotiate::Coding;
use bytes::Bytes;
use proptest::prelude::{Just, Strategy, any, prop, prop_oneof, proptest};

use super::{FileTable, FileTableLimits, Known};
use crate::open::{FileKind, Meta};
use crate::probe::{ProbePolicy, Probed, Remember, SymlinkPolicy, Trust, Want};
use crate::variant::{FileVariant, VariantKey};
use crate::watches::Trail;
use crate::{DirEntry, EncodeError, OpenFailure, OpenFile};

const GZIP: VariantKey = VariantKey { coding: Coding::Gzip, level: 1 };

fn at(millis: u64) -> Now {
    Now { mono: Instant::from_nanos(millis * 1_000_000), unix_millis: 1_000_000_000_000 + millis }
}

/// Meta of a file whose last change is long ago.
fn meta(version: u64, size: usize) -> Meta {
    Meta { size: size as u64, mtime_secs: version as i64, inode: version, ..Meta::default() }
}

fn content(version: u64, text: &str) -> Probed {
    Probed::Content(meta(version, text.len()), Bytes::copy_from_slice(text.as_bytes()))
}

fn table() -> FileTable {
    FileTable::new(7)
}

fn put(table: &mut FileTable, path: &str, probed: Probed, policy: &ProbePolicy, now: Now) -> Known {
    let probe = table.probe(path.as_bytes(), Want::OPEN, policy);
    table.insert_watched(&probe, probed, now)
}

fn file(known: Known) -> Rc<OpenFile> {
    match known {
        Known::File(file) => file,
        other => panic!("not a file: {other:?}"),
    }
}

#[test]
fn an_entry_is_valid_until_its_time_and_stays_if_nothing_changed() {
    let (mut table, policy) = (table(), ProbePolicy::default());
    assert!(matches!(table.lookup(b"/a", at(0), &policy), Known::Unknown));
    let first = file(put(&mut table, "/a", content(1, "one"), &policy, at(0)));
    assert_eq!(first.etag.strong(), b"\"1-3\"");
    let hit = file(table.lookup(b"/a", at(999), &policy));
    assert!(Rc::ptr_eq(&first, &hit));
    assert!(matches!(table.lookup(b"/a", at(1000), &policy), Known::Stale));
    let probe = table.probe(b"/a", Want::OPEN, &policy);
    assert_eq!(probe.known, Some(first.meta));
    let kept = file(table.insert_watched(&probe, Probed::Unchanged, at(1001)));
    assert!(Rc::ptr_eq(&first, &kept));
    assert!(matches!(table.lookup(b"/a", at(2000), &policy), Known::File(_)));
    let changed = file(put(&mut table, "/a", content(2, "two!"), &policy, at(2001)));
    assert_eq!(changed.content().map(|content| &content[..]), Some(&b"two!"[..]));
    assert_eq!(table.len(), 1);
}

#[test]
fn a_file_changed_just_before_it_was_read_is_read_again() {
    let (mut table, policy) = (table(), ProbePolicy::default());
    let young = |text: &str| {
        let changed = Meta { ctime_secs: 1_000_000_000, ..meta(1, text.len()) };
        Probed::Content(changed, Bytes::copy_from_slice(text.as_bytes()))
    };
    let first = file(put(&mut table, "/a", young("one"), &policy, at(500)));
    assert_eq!(table.probe(b"/a", Want::OPEN, &policy).known, None);
    let second = file(put(&mut table, "/a", young("two"), &policy, at(1600)));
    assert!(!Rc::ptr_eq(&first, &second), "same times, other bytes");
    assert!(table.probe(b"/a", Want::OPEN, &policy).known.is_some());
    let third = file(put(&mut table, "/a", young("two"), &policy, at(2700)));
    assert!(Rc::ptr_eq(&second, &third), "same times, same bytes");
}

#[test]
fn a_file_that_shrinks_while_it_is_read_is_served_as_it_was_read() {
    let (mut table, policy) = (table(), ProbePolicy::default());
    let torn = Probed::Content(meta(1, 9), Bytes::from_static(b"short"));
    let read = file(put(&mut table, "/a", torn, &policy, at(0)));
    assert_eq!((read.meta.size, read.etag.strong()), (5, &b"\"1-5\""[..]));
}

#[test]
fn failures_hold_for_one_turn_unless_they_are_to_be_remembered() {
    let (mut table, policy) = (table(), ProbePolicy::default());
    let failed = Probed::Failed(OpenFailure::NotFound);
    assert!(matches!(put(&mut table, "/a", failed.clone(), &policy, at(5)), Known::Missing(_)));
    assert!(matches!(table.lookup(b"/a", at(5), &policy), Known::Missing(OpenFailure::NotFound)));
    assert!(matches!(table.lookup(b"/a", at(6), &policy), Known::Unknown));
    assert!(table.is_empty());
    let remembering = ProbePolicy { failures: Remember::Failures, trust: Trust::Young, ..policy };
    put(&mut table, "/a", failed.clone(), &remembering, at(7));
    assert!(matches!(table.lookup(b"/a", at(1006), &remembering), Known::Missing(_)));
    assert!(matches!(table.lookup(b"/a", at(1007), &remembering), Known::Stale));
    put(&mut table, "/b", content(1, "x"), &policy, at(8));
    put(&mut table, "/b", failed, &policy, at(9));
    assert!(matches!(table.lookup(b"/b", at(10), &policy), Known::Unknown));
}

#[test]
fn what_a_probe_brought_holds_for_its_own_turn_whatever_the_policy() {
    let mut table = table();
    let policy =
        ProbePolicy { valid: Duration::ZERO, min_uses: 9, max: 1, ..ProbePolicy::default() };
    put(&mut table, "/a", content(1, "x"), &policy, at(5));
    put(&mut table, "/b", content(1, "x"), &policy, at(5));
    assert!(matches!(table.lookup(b"/a", at(5), &policy), Known::File(_)));
    assert!(matches!(table.lookup(b"/b", at(5), &policy), Known::File(_)));
    assert!(matches!(table.lookup(b"/a", at(6), &policy), Known::Stale));
    put(&mut table, "/c", content(1, "x"), &policy, at(7));
    assert_eq!(table.len(), 2);
}

#[test]
fn an_entry_that_is_used_too_seldom_is_looked_at_each_time() {
    let mut table = table();
    let policy = ProbePolicy { min_uses: 3, ..ProbePolicy::default() };
    put(&mut table, "/a", content(1, "x"), &policy, at(0));
    assert!(matches!(table.lookup(b"/a", at(1), &policy), Known::Stale));
    assert!(matches!(table.lookup(b"/a", at(2), &policy), Known::File(_)));
    let later = at(2 + 60_001);
    assert!(matches!(table.lookup(b"/a", later, &policy), Known::Stale));
}

#[test]
fn a_stricter_rule_for_links_is_not_satisfied_by_a_laxer_look() {
    let (mut table, lax) = (table(), ProbePolicy::default());
    let strict = ProbePolicy { symlinks: SymlinkPolicy::Refuse { from: 0 }, ..lax };
    put(&mut table, "/a", content(1, "x"), &lax, at(0));
    assert!(matches!(table.lookup(b"/a", at(1), &strict), Known::Unknown));
    put(&mut table, "/a", content(1, "x"), &strict, at(1));
    assert!(matches!(table.lookup(b"/a", at(2), &strict), Known::File(_)));
    assert!(matches!(table.lookup(b"/a", at(2), &lax), Known::File(_)));
    put(&mut table, "/a", Probed::Failed(OpenFailure::Loop), &strict, at(3));
    assert!(matches!(table.lookup(b"/a", at(3), &lax), Known::Unknown));
}

#[test]
fn what_is_missing_without_links_is_missing_with_them() {
    let (mut table, lax) = (table(), ProbePolicy::default());
    let strict = ProbePolicy { symlinks: SymlinkPolicy::Refuse { from: 0 }, ..lax };
    put(&mut table, "/a", Probed::Failed(OpenFailure::NotFound), &strict, at(1));
    assert!(matches!(table.lookup(b"/a", at(1), &lax), Known::Missing(OpenFailure::NotFound)));
    put(&mut table, "/b", Probed::Failed(OpenFailure::NotFound), &lax, at(1));
    assert!(matches!(table.lookup(b"/b", at(1), &strict), Known::Unknown), "a link to nothing");
}

#[test]
fn directories_and_stat_lookups_are_distinct_from_files() {
    let (mut table, policy) = (table(), ProbePolicy::default());
    let directory = Meta { kind: FileKind::Directory, ..Meta::default() };
    let known = put(&mut table, "/d", Probed::Seen(directory), &policy, at(0));
    assert!(matches!(known, Known::Directory(found) if found == directory));
    let seen = put(&mut table, "/f", Probed::Seen(meta(1, 1)), &policy, at(0));
    assert!(matches!(seen, Known::Seen(_)));
    let opened = file(put(&mut table, "/f", content(1, "x"), &policy, at(0)));
    let again = file(put(&mut table, "/f", Probed::Seen(meta(1, 1)), &policy, at(2000)));
    assert!(Rc::ptr_eq(&opened, &again));
    let other = put(&mut table, "/f", Probed::Seen(meta(2, 1)), &policy, at(4000));
    assert!(matches!(other, Known::Seen(_)));
    let names =
        vec![DirEntry { name: (*b"x").into(), kind: FileKind::File, size: 1, mtime_secs: 2 }];
    let probe = table.probe(b"/d", Want::List, &policy);
    table.insert_watched(&probe, Probed::Listing(directory, names.clone()), at(4000));
    assert_eq!(table.listing(b"/d", at(4000)), Some(Ok(std::sync::Arc::new(names))));
    assert_eq!(table.listing(b"/d", at(4001)), None);
}

#[test]
fn contents_and_descriptors_stay_within_their_limits() {
    let limits = FileTableLimits { entries: 100, open: 2, content: 10, variants: 100 };
    let (mut table, policy) = (FileTable::with_limits(limits, 1), ProbePolicy::default());
    for number in 0..20_u64 {
        put(&mut table, &format!("/m{number}"), content(1, "four"), &policy, at(number));
        let null = std::fs::OpenOptions::new().read(true).open("/dev/null").unwrap();
        let open = Probed::Open(meta(1, 1 << 20), FileRef::new(null.into()));
        put(&mut table, &format!("/d{number}"), open, &policy, at(number));
        assert!(table.content_size() <= 12 && table.open_count() <= 3);
    }
    assert_eq!((table.content_size(), table.open_count()), (8, 2));
    let Known::File(used) = table.lookup(b"/d19", at(25), &policy) else { panic!("it is known") };
    assert!(table.give_up_descriptors(at(30)), "one file is idle");
    assert_eq!(table.open_count(), 1, "a response uses the other one");
    assert!(!table.give_up_descriptors(at(31)));
    drop(used);
    assert!(table.give_up_descriptors(at(32)));
    assert_eq!(table.open_count(), 0);
    table.clear();
    assert_eq!((table.len(), table.content_size()), (0, 0));
}

#[test]
fn what_was_read_out_of_contents_counts_among_them() {
    let limits = FileTableLimits { entries: 100, open: 2, content: 1000, variants: 100 };
    let (mut table, policy) = (FileTable::with_limits(limits, 1), ProbePolicy::default());
    for number in 0..20_u64 {
        let path = format!("/m{number}");
        let Known::File(file) = put(&mut table, &path, content(1, "four"), &policy, at(number))
        else {
            panic!("it was put there")
        };
        assert_eq!(*file.reading(<[u8]>::len).unwrap(), 4);
        for _ in 0..2 {
            table.weigh_reading(path.as_bytes(), &file, 400, at(number));
        }
        table.weigh_reading(b"/other", &file, 10_000, at(number));
        assert!(table.content_size() <= 1000 && table.len() <= 3, "{}", table.content_size());
    }
    assert_eq!((table.len(), table.content_size()), (2, 808));
    table.clear();
    assert_eq!(table.content_size(), 0);
}

#[test]
fn entries_in_use_outlive_a_flood_of_others() {
    let limits = FileTableLimits { entries: 8, ..FileTableLimits::default() };
    let (mut table, policy) = (FileTable::with_limits(limits, 1), ProbePolicy::default());
    put(&mut table, "/hot", content(1, "x"), &policy, at(0));
    for number in 0..100 {
        put(&mut table, &format!("/{number}"), content(1, "x"), &policy, at(number));
        assert!(matches!(table.lookup(b"/hot", at(number), &policy), Known::File(_)));
        assert!(table.len() <= 9);
    }
}

#[test]
fn a_sweep_drops_unused_entries() {
    let (mut table, policy) = (table(), ProbePolicy::default());
    put(&mut table, "/a", content(1, "x"), &policy, at(0));
    put(&mut table, "/b", content(1, "x"), &policy, at(0));
    table.lookup(b"/b", at(30_000), &policy);
    table.sweep(at(60_001), 100);
    assert_eq!(table.len(), 1);
    table.sweep(at(90_001), 100);
    assert!(table.is_empty());
}

#[test]
fn a_missing_sibling_is_not_looked_for_until_the_file_is_checked_again() {
    let (mut table, policy, mut path) = (table(), ProbePolicy::default(), Vec::new());
    let css = file(put(&mut table, "/a.css", content(1, "x"), &policy, at(0)));
    let known = table.lookup_sibling(&css, Coding::Brotli, &mut path, at(1), &policy);
    assert!(matches!(known, Known::Unknown));
    assert_eq!(path, b"/a.css.br");
    css.record_missing_sibling(Coding::Brotli);
    let known = table.lookup_sibling(&css, Coding::Brotli, &mut path, at(2), &policy);
    assert!(matches!(known, Known::Missing(_)));
    let known = table.lookup_sibling(&css, Coding::Gzip, &mut path, at(2), &policy);
    assert!(matches!(known, Known::Unknown));
    let probe = table.probe(b"/a.css", Want::OPEN, &policy);
    table.insert_watched(&probe, Probed::Unchanged, at(1000));
    assert!(!css.lacks_sibling(Coding::Brotli));
}

#[test]
fn a_file_is_compressed_once_until_it_changes() {
    let (mut table, policy) = (table(), ProbePolicy::default());
    let text = "again and ".repeat(100);
    let one = file(put(&mut table, "/a", content(1, &text), &policy, at(0)));
    let job = table.begin_variant(&one, GZIP).unwrap();
    assert_eq!(one.variant(GZIP), FileVariant::Pending);
    assert!(table.begin_variant(&one, GZIP).is_none());
    let output = job.run();
    let FileVariant::Ready(bytes) = table.finish_job(&job, output) else { panic!("not ready") };
    assert_eq!(one.variant(GZIP), FileVariant::Ready(bytes.clone()));
    assert_eq!(table.variants_size(), bytes.len() as u64);
    assert_eq!(one.variant(VariantKey { level: 9, ..GZIP }), FileVariant::Absent);
    let probe = table.probe(b"/a", Want::OPEN, &policy);
    let kept = file(table.insert_watched(&probe, Probed::Unchanged, at(5000)));
    assert_eq!(kept.variant(GZIP), FileVariant::Ready(bytes));
    drop((one, kept, job));
    let two = file(put(&mut table, "/a", content(2, &text), &policy, at(9000)));
    assert_eq!((two.variant(GZIP), table.variants_size()), (FileVariant::Absent, 0));
}

#[test]
fn an_order_that_is_dropped_or_in_vain_leaves_no_form_pending() {
    let (mut table, policy) = (table(), ProbePolicy::default());
    let one = file(put(&mut table, "/a", content(1, "tiny"), &policy, at(0)));
    drop(table.begin_variant(&one, GZIP));
    assert_eq!(one.variant(GZIP), FileVariant::Absent);
    let job = table.begin_variant(&one, GZIP).unwrap();
    let output = job.run();
    assert_eq!(table.finish_job(&job, output), FileVariant::NotWorth);
    assert_eq!(one.variant(GZIP), FileVariant::NotWorth);
    let other = VariantKey { level: 2, ..GZIP };
    let job = table.begin_variant(&one, other).unwrap();
    assert_eq!(table.finish_job(&job, Err(EncodeError)), FileVariant::NotWorth);
    for level in 3..20 {
        drop(table.begin_variant(&one, VariantKey { level, ..GZIP }));
    }
    assert_eq!(one.variant(other), FileVariant::NotWorth);
}

#[test]
fn compressed_forms_stay_within_the_budget_and_the_used_ones_stay() {
    let limits = FileTableLimits { variants: 1000, ..FileTableLimits::default() };
    let (mut table, policy) = (FileTable::with_limits(limits, 1), ProbePolicy::default());
    let text = "0123456789".repeat(100);
    let hot = file(put(&mut table, "/hot", content(1, &text), &policy, at(0)));
    let job = table.begin_variant(&hot, GZIP).unwrap();
    table.finish_job(&job, Ok(vec![0; 300]));
    for number in 0..50 {
        assert!(matches!(hot.variant(GZIP), FileVariant::Ready(_)), "{number}");
        let path = format!("/{number}");
        let file = file(put(&mut table, &path, content(1, &text), &policy, at(number)));
        let job = table.begin_variant(&file, GZIP).unwrap();
        table.finish_job(&job, Ok(vec![0; 300]));
        assert!(table.variants_size() <= 1000);
    }
}

#[derive(Clone, Debug)]
enum Op {
    Write(u8, u8),
    Delete(u8),
    Ask(u8),
    Wait(u16),
    Sweep,
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let op = prop_oneof![
        2 => (0_u8..6, any::<u8>()).prop_map(|(path, len)| Op::Write(path, len)),
        1 => (0_u8..6).prop_map(Op::Delete),
        6 => (0_u8..6).prop_map(Op::Ask),
        3 => (0_u16..1500).prop_map(Op::Wait),
        1 => Just(Op::Sweep),
    ];
    prop::collection::vec(op, 0..120)
}

/// The file on disk: version and length.
type What = Option<(u64, usize)>;

/// A disk and how its files have changed over time.
#[derive(Default)]
struct Disk {
    /// The states of each path, with their beginnings.
    history: HashMap<u8, Vec<(u64, What)>>,
    versions: u64,
}

impl Disk {
    fn now(&self, path: u8) -> What {
        self.history.get(&path)?.last()?.1
    }

    /// Whether `found` was true at some moment from `since` on.
    fn was(&self, path: u8, since: u64, found: What) -> bool {
        let Some(history) = self.history.get(&path) else { return found.is_none() };
        let first = history.iter().rposition(|(when, _)| *when <= since);
        let always_missing = first.is_none() && found.is_none();
        always_missing || history[first.unwrap_or(0)..].iter().any(|(_, what)| *what == found)
    }
}

/// Looks up as an engine does: look up, probe if necessary, look up again.
fn ask(table: &mut FileTable, disk: &Disk, path: u8, now: Now, policy: &ProbePolicy) -> Known {
    let name = format!("/{path}");
    let known = table.lookup(name.as_bytes(), now, policy);
    if !matches!(known, Known::Stale | Known::Unknown) {
        return known;
    }
    let probe = table.probe(name.as_bytes(), Want::OPEN, policy);
    let probed = match disk.now(path) {
        None => Probed::Failed(OpenFailure::NotFound),
        Some((version, len)) if probe.known == Some(meta(version, len)) => Probed::Unchanged,
        Some((version, len)) => Probed::Content(meta(version, len), Bytes::from(vec![7; len])),
    };
    table.insert_watched(&probe, probed, now);
    table.lookup(name.as_bytes(), now, policy)
}

proptest! {
    #[test]
    fn no_answer_is_older_than_valid_and_no_bound_is_broken(
        ops in ops(),
        remember in any::<bool>(),
        max in 1_usize..8,
    ) {
        let failures = if remember { Remember::Failures } else { Remember::Nothing };
        let policy = ProbePolicy { failures, max, ..ProbePolicy::default() };
        let limits = FileTableLimits { entries: 5, open: 5, content: 500, variants: 0 };
        let mut table = FileTable::with_limits(limits, 3);
        let (mut disk, mut clock) = (Disk::default(), 10_000);
        for op in ops {
            clock += 1;
            match op {
                Op::Write(path, len) => {
                    disk.versions += 1;
                    let what = Some((disk.versions, usize::from(len)));
                    disk.history.entry(path).or_default().push((clock, what));
                }
                Op::Delete(path) => disk.history.entry(path).or_default().push((clock, None)),
                Op::Wait(millis) => clock += u64::from(millis),
                Op::Sweep => table.sweep(at(clock), 4),
                Op::Ask(path) => {
                    let found = match ask(&mut table, &disk, path, at(clock), &policy) {
                        Known::File(file) => {
                            let len = file.content().unwrap().len();
                            assert_eq!(file.meta.size, len as u64);
                            Some((file.meta.inode, len))
                        }
                        Known::Missing(OpenFailure::NotFound) => None,
                        other => panic!("an asked path is known: {other:?}"),
                    };
                    let since = if found.is_none() && !remember { clock } else { clock - 1000 };
                    assert!(disk.was(path, since, found), "stale beyond its time");
                }
            }
            assert!(table.len() <= 5 && table.content_size() <= 500 + 255);
        }
    }
}

#[test]
fn what_no_watch_vouches_for_is_looked_at_for_each_request() {
    let (mut table, policy) = (table(), ProbePolicy::default());
    let probe = table.probe(b"/a", Want::OPEN, &policy);
    table.insert_probe(&probe, content(1, "x"), at(0));
    assert!(matches!(table.lookup(b"/a", at(0), &policy), Known::File(_)));
    assert!(matches!(table.lookup(b"/a", at(1), &policy), Known::Stale));
    let young = ProbePolicy { trust: Trust::Young, ..policy };
    assert!(matches!(table.lookup(b"/a", at(1), &young), Known::File(_)), "open_file_cache");
    let shared = Meta { is_shared: true, ..meta(1, 1) };
    let shared = Probed::Content(shared, Bytes::from_static(b"x"));
    put(&mut table, "/b", shared, &policy, at(1));
    assert!(matches!(table.lookup(b"/b", at(2), &policy), Known::Stale), "it has other names");
}

#[test]
fn a_change_that_is_told_makes_what_it_is_about_doubtful() {
    let (mut table, policy) = (table(), ProbePolicy::default());
    let steps = vec![(1, b"srv"[..].into())];
    table.watches.insert(b"/srv/", Trail { steps, last: 2 });
    for path in ["/srv/a", "/srv/a.gz", "/srv/b", "/srv/dir/"] {
        put(&mut table, path, content(1, "x"), &policy, at(0));
    }
    let is_known = |table: &mut FileTable, path: &str| {
        matches!(table.lookup(path.as_bytes(), at(5), &policy), Known::File(_))
    };
    let one = file(table.lookup(b"/srv/a", at(5), &policy));
    one.record_missing_sibling(Coding::Gzip);
    table.hear_changed(2, b"a.gz", at(5).mono);
    assert!(!one.lacks_sibling(Coding::Gzip), "one may have come");
    assert!(is_known(&mut table, "/srv/a") && !is_known(&mut table, "/srv/a.gz"));
    table.hear_changed(2, b"dir", at(5).mono);
    assert!(!is_known(&mut table, "/srv/dir/") && is_known(&mut table, "/srv/b"));
    table.hear_changed(1, b"other", at(5).mono);
    assert!(is_known(&mut table, "/srv/b"));
    table.hear_changed(1, b"srv", at(5).mono);
    assert!(!is_known(&mut table, "/srv/b") && !is_known(&mut table, "/srv/a"));
    put(&mut table, "/srv/b", content(1, "x"), &policy, at(3));
    assert!(is_known(&mut table, "/srv/b"));
    table.hear_unknown();
    assert!(!is_known(&mut table, "/srv/b"));
}

#[test]
fn a_request_that_may_have_come_during_the_turn_looks_itself() {
    let (mut table, policy) = (table(), ProbePolicy::default());
    let probe = table.probe(b"/a", Want::OPEN, &policy);
    table.insert_probe(&probe, content(1, "x"), at(5));
    let failed = Probed::Failed(OpenFailure::NotFound);
    put(&mut table, "/b", failed, &policy, at(5));
    assert!(matches!(table.lookup(b"/a", at(5), &policy), Known::File(_)));
    table.part_turn();
    assert!(matches!(table.lookup(b"/a", at(5), &policy), Known::Stale));
    assert!(matches!(table.lookup(b"/b", at(5), &policy), Known::Unknown));
}
