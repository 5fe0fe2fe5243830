//! Objects from a disk in memory, across restarts, purges and crashes.

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test fails by panicking, and a disk of its own is a directory"
)]

#[path = "../../fuzz-entries/src/disk.rs"]
pub mod entry;

use std::collections::HashMap;
use std::sync::Arc;

use bolide_base::FileRef;
use bolide_base::prng::Prng;
use bolide_cache::disk::journal::{self, Echo, JournalAppend, JournalEntry};
use bolide_cache::disk::{
    Begun, DiskPurge, DiskPurgeTarget, DiskTree, DiskTreeSettings, Recall, Replay, Unfit,
};
use bolide_cache::{
    AskedBy, CacheKey, FillPermit, Front, KeyBuilder, Lookup, NamespaceId, ObjectHead, SessionKey,
    Store, StoreLimits, TagPurge, TagScope, Tags, Times,
};
use bytes::Bytes;
use proptest::prelude::*;

/// A disk: files by path, and the journal.
#[derive(Debug, Default)]
struct Disk {
    files: HashMap<Vec<u8>, Vec<u8>>,
    journal: Vec<u8>,
}

/// A process that uses the disk.
struct Process {
    store: Arc<Store>,
    tree: Arc<DiskTree>,
    front: Front,
    site: NamespaceId,
}

fn settings() -> DiskTreeSettings {
    DiskTreeSettings {
        root: (*b"/c").into(),
        levels: [1, 2].into(),
        max_size: 0,
        inactive: 600,
        min_free: 0,
    }
}

fn some_file() -> FileRef {
    FileRef::new(std::fs::File::open("/dev/null").unwrap().into())
}

fn start(disk: &mut Disk) -> Process {
    let limits = StoreLimits { front_entries: 16, ..StoreLimits::default() };
    let store = Store::new(limits, 1);
    let site = store.namespace(b"zone:one");
    let settings = settings();
    let tree = store.disk().tree(&settings);
    store.set_trees(&[(settings, Arc::clone(&tree), vec![site])]);
    if disk.journal.is_empty() {
        disk.journal = journal::head(5).to_vec();
    }
    let seal = journal::seal(&disk.journal).unwrap();
    let mut replay = Replay::default();
    disk.journal[journal::HEAD..].chunks(100).for_each(|part| replay.feed(part));
    let start = store.next_start(replay.last());
    if replay.is_damaged() {
        disk.journal = journal::head(seal + 1).to_vec();
        replay = Replay::default();
    }
    let seal = journal::seal(&disk.journal).unwrap();
    journal::push(&mut disk.journal, &JournalEntry::Start(start), 0);
    store.begin_at(start);
    tree.open(some_file(), seal, replay);
    assert_eq!(tree.begin(start, 0), Some(Begun::Whole));
    let front = store.front(0);
    Process { store, tree, front, site }
}

impl Process {
    /// Does the work of the disk writer.
    fn write(&self, disk: &mut Disk) {
        self.store.disk().flush_purges(|tree, _| {
            let append = |_: &mut FileRef, bytes: &[u8]| -> Result<JournalAppend, ()> {
                disk.journal.extend_from_slice(bytes);
                Ok(JournalAppend::Named)
            };
            tree.flush(append).unwrap();
        });
        while let Some(spill) = self.tree.next_spill() {
            let mut file = Vec::new();
            assert!(spill.encode(self.tree.seal(), &mut file));
            spill.object().pieces().for_each(|piece| file.extend_from_slice(piece));
            self.tree.record_write(spill.hash(), file.len() as u64, 0);
            disk.files.insert(self.tree.path(spill.hash()), file);
        }
    }

    /// A lookup with the disk.
    fn look(&mut self, disk: &mut Disk, key: &CacheKey<'_>) -> Lookup {
        for _ in 0..4 {
            let permit = match self.front.lookup(key, 0) {
                Lookup::Miss(permit) => permit,
                found => return found,
            };
            let Some(disk_query) = permit.disk_query() else { return Lookup::Miss(permit) };
            let Some(file) = disk.files.get(&disk_query.path()) else {
                disk_query.forget();
                return Lookup::Miss(permit);
            };
            match disk_query.restore(permit, &Bytes::from(file.clone()), 0, 0) {
                Recall::Restored(wakes) => assert!(wakes.0.is_empty()),
                Recall::Unfit(permit, unfit) => {
                    assert_eq!(unfit, Unfit::Dead);
                    disk.files.remove(&disk_query.path());
                    disk_query.forget();
                    return Lookup::Miss(permit);
                }
            }
        }
        panic!("what was restored is not found");
    }
}

fn keys(site: NamespaceId, path: &str) -> KeyBuilder {
    let mut keys = KeyBuilder::default();
    keys.start(site);
    keys.push_url(path.as_bytes());
    keys
}

fn fill(mut permit: FillPermit, tags: &[&str], body: &str) {
    let mut all = Tags::default();
    tags.iter().for_each(|tag| all.push(tag.as_bytes()));
    let times = Times { expires_ms: 1000, ..Times::default() };
    let mut head = ObjectHead { status: 200, times, ..ObjectHead::default() };
    head.etag = b"\"v\"".to_vec();
    head.fields.push_text(b"content-type", b"text/html");
    let _ = permit.begin(head, &all);
    let _ = permit.append(Bytes::from(body.to_owned()));
    assert!(permit.commit().object.is_some());
}

fn body(found: &Lookup) -> Option<String> {
    let (Lookup::Hit(object) | Lookup::Stale(object, _)) = found else { return None };
    assert_eq!((object.status(), object.etag()), (200, Some(&b"\"v\""[..])));
    Some(String::from_utf8(object.body().unwrap().to_vec()).unwrap())
}

fn missed(found: Lookup) -> FillPermit {
    match found {
        Lookup::Miss(permit) => permit,
        other => panic!("not a miss: {other:?}"),
    }
}

#[test]
fn what_was_filled_is_there_after_a_restart() {
    let mut disk = Disk::default();
    let mut process = start(&mut disk);
    let session = SessionKey::new(b"sid=12345678901234567").unwrap();
    let (public, private) = (keys(process.site, "/a"), keys(process.site, "/a"));
    fill(missed(process.look(&mut disk, &public.public())), &["t"], "for all");
    fill(missed(process.look(&mut disk, &private.private(session))), &["t"], "for one");
    process.write(&mut disk);
    let mut process = start(&mut disk);
    assert_eq!(body(&process.look(&mut disk, &public.public())).unwrap(), "for all");
    assert_eq!(body(&process.look(&mut disk, &private.private(session))).unwrap(), "for one");
    let other = SessionKey::new(b"sid=another7890123456").unwrap();
    drop(missed(process.look(&mut disk, &private.private(other))));
    // Its tags work again, too.
    assert_eq!(process.store.purge_tag(process.site, TagScope::Public, b"t", TagPurge::Dead), 1);
    drop(missed(process.look(&mut disk, &public.public())));
}

/// The origin names no tags where nothing changed: those of the page hold on, on the disk too.
#[test]
fn a_tag_purge_hits_the_file_of_what_was_validated() {
    let mut disk = Disk::default();
    let mut process = start(&mut disk);
    let page = keys(process.site, "/a");
    fill(missed(process.look(&mut disk, &page.public())), &["t"], "of a");
    process.write(&mut disk);
    process.store.purge_tag(process.site, TagScope::Public, b"t", TagPurge::Stale);
    let Lookup::Stale(_, Some(permit)) = process.look(&mut disk, &page.public()) else { panic!() };
    let times = Times { expires_ms: 1000, ..Times::default() };
    let head = ObjectHead { status: 200, times, etag: b"\"v\"".to_vec(), ..ObjectHead::default() };
    assert!(permit.freshen(head, &Tags::default()).object.is_some());
    process.write(&mut disk);
    let mut next = start(&mut disk);
    assert!(body(&next.look(&mut disk, &page.public())).is_some());
    drop(next);
    let mut next = start(&mut disk);
    next.store.purge_tag(next.site, TagScope::Public, b"t", TagPurge::Dead);
    drop(missed(next.look(&mut disk, &page.public())));
}

#[test]
fn what_a_url_varies_by_is_there_after_a_restart() {
    let mut disk = Disk::default();
    let mut process = start(&mut disk);
    let base = keys(process.site, "/a");
    let mut varied = base.clone();
    varied.push_vary(b"de");
    assert!(process.store.remember_vary(&base.public(), &[b"accept-language"], AskedBy::Others));
    fill(missed(process.look(&mut disk, &varied.public())), &[], "auf deutsch");
    process.write(&mut disk);
    let mut process = start(&mut disk);
    let Lookup::Vary(marker) = process.look(&mut disk, &base.public()) else { panic!() };
    assert_eq!(marker.vary_names().collect::<Vec<_>>(), [b"accept-language"]);
    assert_eq!(body(&process.look(&mut disk, &varied.public())).unwrap(), "auf deutsch");
    process.store.purge_url(&base.public(), TagPurge::Dead);
    process.write(&mut disk);
    let mut process = start(&mut disk);
    drop(missed(process.look(&mut disk, &base.public())));
    drop(missed(process.look(&mut disk, &varied.public())));
}

#[test]
fn a_file_of_another_key_or_another_cache_is_not_served() {
    let mut disk = Disk::default();
    let mut process = start(&mut disk);
    let (a, b) = (keys(process.site, "/a"), keys(process.site, "/b"));
    fill(missed(process.look(&mut disk, &a.public())), &[], "of a");
    process.write(&mut disk);
    let path = process.store.namespaces().disk_query(&a.public()).unwrap().path();
    let moved = disk.files[&path].clone();
    let disk_query = process.store.namespaces().disk_query(&b.public()).unwrap();
    disk.files.insert(disk_query.path(), moved.clone());
    drop(missed(process.look(&mut disk, &b.public())));
    assert!(!disk.files.contains_key(&disk_query.path()), "it is taken away");
    disk.journal = journal::head(6).to_vec();
    let mut process = start(&mut disk);
    disk.files.insert(path, moved);
    drop(missed(process.look(&mut disk, &a.public())));
}

#[test]
fn a_journal_with_a_hole_leaves_nothing_of_what_came_before() {
    let mut disk = Disk::default();
    let mut process = start(&mut disk);
    let a = keys(process.site, "/a");
    fill(missed(process.look(&mut disk, &a.public())), &[], "of a");
    process.write(&mut disk);
    disk.journal.extend_from_slice(b"half an ent");
    let mut process = start(&mut disk);
    drop(missed(process.look(&mut disk, &a.public())));
    fill(missed(process.look(&mut disk, &a.public())), &[], "new");
    process.write(&mut disk);
    let mut process = start(&mut disk);
    assert_eq!(body(&process.look(&mut disk, &a.public())).as_deref(), Some("new"));
}

#[test]
fn what_becomes_due_while_a_journal_is_made_anew_stays_due() {
    let tree = DiskTree::new(&settings());
    let text = vec![b'x'; 1 << 19];
    let (namespace, session, target) = (&b"a"[..], &b""[..], DiskPurgeTarget::Tag(&text));
    for sequence in [1, 2] {
        let order = DiskPurge { namespace, session, target, how: TagPurge::Dead, sequence };
        tree.note(&JournalEntry::Purge(order, Echo::First), 0);
    }
    let due = |tree: &DiskTree| {
        let mut found = Vec::new();
        let append = |_: &mut FileRef, bytes: &[u8]| -> Result<JournalAppend, ()> {
            let read = journal::read(bytes, |entry| match entry {
                JournalEntry::Start(sequence) => found.push((false, sequence)),
                JournalEntry::Purge(order, _) => {
                    found.push((order.target == DiskPurgeTarget::Everything, order.sequence));
                }
                JournalEntry::Sites(_) => {}
            });
            assert_eq!(read.used, bytes.len());
            Ok(JournalAppend::Named)
        };
        tree.flush(append).unwrap();
        found
    };
    let made = tree.replace_journal(|_, due| -> Result<FileRef, ()> {
        assert!(due.len() > 1 << 20, "there is no room for more");
        tree.note(&JournalEntry::Start(4), 0);
        Ok(some_file())
    });
    assert_eq!(made, Ok(()));
    assert_eq!(due(&tree), [(true, 4), (false, 4)]);
    tree.note(&JournalEntry::Start(5), 0);
    let made = tree.replace_journal(|_, due| -> Result<FileRef, ()> {
        assert!(!due.is_empty());
        tree.note(&JournalEntry::Start(6), 0);
        Ok(some_file())
    });
    assert_eq!(made, Ok(()));
    assert_eq!(due(&tree), [(false, 6)], "the new journal has the other one");
}

#[test]
fn two_who_write_the_same_purge_leave_the_next_one_unwritten() {
    let mut disk = Disk::default();
    let Process { store, site, .. } = start(&mut disk);
    assert!(!store.disk().has_unwritten_purges());
    store.purge_all(site, TagPurge::Dead);
    // Another worker does the same meanwhile.
    store.disk().flush_purges(|_, _| store.disk().flush_purges(|_, _| {}));
    assert!(!store.disk().has_unwritten_purges());
    store.purge_all(site, TagPurge::Dead);
    assert!(store.disk().has_unwritten_purges(), "the purge is not acknowledged yet");
    // A purge that comes during a write is not part of it.
    store.disk().flush_purges(|_, _| {
        store.purge_all(site, TagPurge::Dead);
    });
    assert!(store.disk().has_unwritten_purges());
    store.disk().flush_purges(|_, _| {});
    assert!(!store.disk().has_unwritten_purges());
}

#[derive(Clone, Debug)]
enum Op {
    Ask(u8),
    Begin(u8),
    Commit,
    Validate,
    Write,
    Tag(u8, bool),
    Url(u8),
    From(u8),
    All,
    Restart,
    Flip(u16),
    Cut(u16),
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        6 => (0..4_u8).prop_map(Op::Ask),
        4 => (0..4_u8).prop_map(Op::Begin),
        4 => Just(Op::Commit),
        2 => Just(Op::Validate),
        4 => Just(Op::Write),
        3 => (0..4_u8, any::<bool>()).prop_map(|(tag, soft)| Op::Tag(tag, soft)),
        1 => (0..4_u8).prop_map(Op::Url),
        1 => (0..4_u8).prop_map(Op::From),
        1 => Just(Op::All),
        3 => Just(Op::Restart),
        1 => any::<u16>().prop_map(Op::Flip),
        1 => any::<u16>().prop_map(Op::Cut),
    ]
}

/// When each page was purged last, and when the served object was begun.
#[derive(Default)]
struct Model {
    clock: u64,
    purged: [u64; 4],
    softened: [u64; 4],
    /// When fills began that validated what is served, by page and by its own beginning.
    validated: HashMap<(u8, u64), u64>,
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn nothing_purged_or_broken_ever_comes_back(ops in proptest::collection::vec(op(), 1..80)) {
        let mut disk = Disk::default();
        let mut process = start(&mut disk);
        let mut model = Model::default();
        let mut fills: Vec<(u8, u64, FillPermit)> = Vec::new();
        let mut chance = Prng::new(3);
        for op in ops {
            model.clock += 1;
            let clock = model.clock;
            match op {
                Op::Ask(page) => {
                    let keys = keys(process.site, &format!("/{page}"));
                    let found = process.look(&mut disk, &keys.public());
                    if let Some(text) = body(&found) {
                        let (of, begun) = text.split_once('@').unwrap();
                        let begun: u64 = begun.trim_end_matches('x').parse().unwrap();
                        prop_assert_eq!(of, page.to_string());
                        prop_assert!(begun > model.purged[usize::from(page)], "purged");
                        if let Lookup::Hit(_) = found {
                            let begun = *model.validated.get(&(page, begun)).unwrap_or(&begun);
                            prop_assert!(begun > model.softened[usize::from(page)], "softened");
                        }
                    }
                }
                Op::Begin(page) if !fills.iter().any(|fill| fill.0 == page) => {
                    let keys = keys(process.site, &format!("/{page}"));
                    if let Lookup::Miss(permit) | Lookup::Stale(_, Some(permit)) =
                        process.look(&mut disk, &keys.public())
                    {
                        fills.push((page, clock, permit));
                    }
                }
                Op::Commit if !fills.is_empty() => {
                    let (page, begun, mut permit) = fills.swap_remove(0);
                    let mut tags = Tags::default();
                    tags.push(format!("tag-{page}").as_bytes());
                    let times = Times { expires_ms: 9, stale_seconds: 9, ..Times::default() };
                    let mut head = ObjectHead { status: 200, times, ..ObjectHead::default() };
                    head.etag = b"\"v\"".to_vec();
                    let _ = permit.begin(head, &tags);
                    let pad = "x".repeat(chance.below(200) as usize);
                    let _ = permit.append(Bytes::from(format!("{page}@{begun}{pad}")));
                    let _ = permit.commit();
                }
                // The origin says 304, and names no tags.
                Op::Validate if !fills.is_empty() => {
                    let (page, begun, permit) = fills.swap_remove(0);
                    let times = Times { expires_ms: 9, stale_seconds: 9, ..Times::default() };
                    let mut head = ObjectHead { status: 200, times, ..ObjectHead::default() };
                    head.etag = b"\"v\"".to_vec();
                    let committed = permit.freshen(head, &Tags::default());
                    if let Some(text) = committed.object.and_then(|object| object.body()) {
                        let text = String::from_utf8(text.to_vec()).unwrap();
                        let of = text.split_once('@').unwrap().1.trim_end_matches('x');
                        model.validated.insert((page, of.parse().unwrap()), begun);
                    }
                }
                Op::Write => process.write(&mut disk),
                Op::Tag(page, soft) => {
                    let how = if soft { TagPurge::Stale } else { TagPurge::Dead };
                    let tag = format!("tag-{page}");
                    process.store.purge_tag(process.site, TagScope::Public, tag.as_bytes(), how);
                    let times = if soft { &mut model.softened } else { &mut model.purged };
                    times[usize::from(page)] = clock;
                }
                Op::Url(page) => {
                    let keys = keys(process.site, &format!("/{page}"));
                    process.store.purge_url(&keys.public(), TagPurge::Dead);
                    model.purged[usize::from(page)] = clock;
                }
                Op::From(page) => {
                    let start = format!("/{page}");
                    process.store.purge_urls_from(process.site, start.as_bytes(), TagPurge::Dead);
                    model.purged[usize::from(page)] = clock;
                }
                Op::All => {
                    process.store.purge_all(process.site, TagPurge::Dead);
                    model.purged = [clock; 4];
                }
                Op::Restart => {
                    // A purge is acknowledged only after it is in the journal.
                    process.store.disk().flush_purges(|tree, _| {
                        let append = |_: &mut FileRef, bytes: &[u8]| -> Result<JournalAppend, ()> {
                            disk.journal.extend_from_slice(bytes);
                            Ok(JournalAppend::Named)
                        };
                        tree.flush(append).unwrap();
                    });
                    fills.clear();
                    process = start(&mut disk);
                }
                Op::Flip(at) => {
                    if let Some(file) = disk.files.values_mut().next() {
                        let at = usize::from(at) % (file.len() * 8);
                        file[at / 8] ^= 1 << (at % 8);
                    }
                }
                Op::Cut(at) => {
                    if let Some(file) = disk.files.values_mut().next() {
                        file.truncate(usize::from(at) % file.len());
                        if file.is_empty() {
                            file.push(0);
                        }
                    }
                }
                Op::Begin(_) | Op::Commit | Op::Validate => {}
            }
        }
    }
}

/// Writes the seeds of `fuzz/corpus/disk` on request.
#[test]
fn seeds_for_fuzzing_are_what_is_written() {
    let mut disk = Disk::default();
    let mut process = start(&mut disk);
    let a = keys(process.site, "/a");
    fill(missed(process.look(&mut disk, &a.public())), &["t", "u"], "of a");
    assert!(process.store.remember_vary(
        &keys(process.site, "/b").public(),
        &[b"accept"],
        AskedBy::Others
    ));
    process.store.purge_tag(process.site, TagScope::Public, b"x*", TagPurge::Stale);
    process.write(&mut disk);
    let files = disk.files.values().chain([&disk.journal]);
    for (number, bytes) in files.enumerate() {
        entry::reader(bytes);
        if let Some(directory) = std::env::var_os("BOLIDE_SEEDS") {
            let name = std::path::Path::new(&directory).join(format!("seed-{number}"));
            std::fs::write(name, bytes).unwrap();
        }
    }
    assert_eq!(disk.files.len(), 2);
}
