//! Owns: what a disk writer leaves behind, and what the next one makes of it, on a real disk.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bolide_base::Now;
use bolide_cache::disk::{DiskSite, DiskTree, DiskTreeSettings, JOURNAL, LOCK, Unfit, journal};
use bolide_cache::{
    KeyBuilder, Lookup, NamespaceId, ObjectHead, Store, StoreLimits, TagPurge, Tags, Times,
};
use bolide_io::epoll::Epoll;
use bolide_io::{DirChange, Io as _};
use bolide_testkit::site::TempDir;
use bytes::Bytes;

use super::DiskWriter;
use crate::disk_lookup::{flush, write_purges};

static LIVES: AtomicU64 = AtomicU64::new(0);

fn journal_file(directory: &Path) -> PathBuf {
    directory.join(std::str::from_utf8(JOURNAL).unwrap())
}

/// What `rm -rf` of the directory does first.
fn remove_journal_and_lock(directory: &Path) {
    std::fs::remove_file(journal_file(directory)).unwrap();
    std::fs::remove_file(lock_file(directory)).unwrap();
}

/// Whether `rmdir` of the directory would find neither.
fn is_without_journal_and_lock(directory: &Path) -> bool {
    !journal_file(directory).exists() && !lock_file(directory).exists()
}

fn lock_file(directory: &Path) -> PathBuf {
    directory.join(std::str::from_utf8(LOCK).unwrap())
}

fn settings(root: &Path) -> DiskTreeSettings {
    DiskTreeSettings {
        root: root.as_os_str().as_encoded_bytes().into(),
        levels: [1].into(),
        max_size: 0,
        inactive: 600,
        min_free: 0,
    }
}

/// A process that uses a directory.
struct Life {
    store: Arc<Store>,
    tree: Arc<DiskTree>,
    site: NamespaceId,
    disk_writer: DiskWriter<Epoll>,
}

impl Life {
    /// Nothing is open yet.
    fn new(root: &Path) -> Self {
        let store = Store::new(StoreLimits::default(), 1);
        let site = store.namespace(b"zone:one");
        let settings = settings(root);
        let tree = store.disk().tree(&settings);
        store.set_trees(&[(settings, Arc::clone(&tree), vec![site])]);
        // No two processes seal their journals alike.
        let seed = LIVES.fetch_add(1, Ordering::Relaxed);
        let disk_writer = DiskWriter::new(Epoll::new().unwrap(), Arc::clone(&store), seed);
        Self { store, tree, site, disk_writer }
    }

    fn start(root: &Path) -> Self {
        let mut life = Self::new(root);
        life.disk_writer.settle(Now::default());
        assert!(life.tree.is_open());
        life
    }

    /// Keeps a page; where its file is.
    fn keep(&mut self) -> PathBuf {
        self.keep_at(b"/a")
    }

    fn keep_at(&mut self, url: &[u8]) -> PathBuf {
        let mut keys = KeyBuilder::default();
        keys.start(self.site);
        keys.push_url(url);
        let Lookup::Miss(mut permit) = self.store.front(0).lookup(&keys.public(), 0) else {
            panic!("it is there");
        };
        let times = Times { expires_ms: u64::MAX, ..Times::default() };
        let _ = permit
            .begin(ObjectHead { status: 200, times, ..ObjectHead::default() }, &Tags::default());
        let _ = permit.append(Bytes::from_static(b"of a"));
        assert!(permit.commit().object.is_some());
        self.disk_writer.finish(Now::default());
        let path = self.store.namespaces().disk_query(&keys.public()).unwrap().path();
        PathBuf::from(String::from_utf8(path).unwrap())
    }

    /// What its workers and its disk writer do next.
    fn go_on(&mut self) {
        self.journal_purges();
        self.disk_writer.step(Now::default());
    }

    /// The same, some seconds after the beginning.
    fn go_on_at(&mut self, seconds: u64) {
        let mono = Now::default().mono.after(Duration::from_secs(seconds));
        self.disk_writer.step(Now { mono, ..Now::default() });
    }

    /// What a worker does before a purge is acknowledged.
    fn journal_purges(&self) {
        write_purges(&mut Epoll::new().unwrap(), &self.store);
    }

    /// A configuration names this directory alone.
    fn name(&mut self, settings: DiskTreeSettings) {
        self.tree = self.store.disk().tree(&settings);
        self.store.set_trees(&[(settings, Arc::clone(&self.tree), vec![self.site])]);
    }

    fn renew_journal(&mut self) {
        let mut charges = std::mem::take(&mut self.disk_writer.charges);
        self.disk_writer.renew_journal(&mut charges[0], 0);
        self.disk_writer.charges = charges;
        assert!(!self.tree.lacks_journal());
    }

    /// Whether the page is in memory and good.
    fn has(&self) -> bool {
        let mut keys = KeyBuilder::default();
        keys.start(self.site);
        keys.push_url(b"/a");
        self.store.find_known(&keys.public(), 0).is_some()
    }

    fn believes(&self, file: &Path) -> bool {
        let judged = self.tree.judge(&std::fs::read(file).unwrap(), None, 0).map(drop);
        assert!(matches!(judged, Ok(()) | Err(Unfit::Dead)));
        judged.is_ok()
    }
}

#[test]
fn the_next_life_believes_what_the_last_one_wrote() {
    let directory = TempDir::new();
    let mut first = Life::start(&directory);
    let file = first.keep();
    let mut seals = vec![first.tree.seal()];
    drop(first);
    for _ in 0..3 {
        let life = Life::start(&directory);
        assert!(life.believes(&file));
        seals.push(life.tree.seal());
        let journal = std::fs::read(journal_file(&directory)).unwrap();
        assert_eq!(journal::seal(&journal), Some(seals[0]));
    }
    assert!(seals.iter().all(|seal| *seal == seals[0]));
}

#[test]
fn a_directory_in_the_place_of_a_file_costs_one_object_and_not_the_tree() {
    let directory = TempDir::new();
    let mut life = Life::start(&directory);
    let file = life.keep();
    std::fs::remove_file(&file).unwrap();
    std::fs::create_dir(&file).unwrap();
    life.store.purge_all(life.site, TagPurge::Dead);
    assert_eq!(life.keep(), file);
    assert!(!life.tree.is_off(), "other objects have other places");
    let notes = life.disk_writer.take_notes();
    let told: Vec<_> = notes.iter().filter(|(_, text)| text.contains("Is a directory")).collect();
    assert!(matches!(&told[..], [(_, text)] if text.contains(file.to_str().unwrap())), "{notes:?}");
}

#[test]
fn a_purge_that_comes_before_its_shelf_is_open_outlives_the_process() {
    let directory = TempDir::new();
    let file = Life::start(&directory).keep();
    let mut life = Life::new(&directory);
    life.store.purge_all(life.site, TagPurge::Dead);
    // No worker acknowledges it before this.
    flush(&mut Epoll::new().unwrap(), &life.tree).unwrap();
    assert!(!journal_file(&directory).exists(), "nobody believes what lies there");
    life.disk_writer.settle(Now::default());
    assert!(!life.believes(&file));
    let newer = life.keep();
    assert!(life.believes(&newer));
    drop(life);
    assert!(Life::start(&directory).believes(&newer));
}

#[test]
fn a_purge_that_comes_while_its_shelf_is_opened_outlives_the_process() {
    let directory = TempDir::new();
    let file = Life::start(&directory).keep();
    let mut life = Life::new(&directory);
    // The worker did not get to its part yet.
    life.store.purge_all(life.site, TagPurge::Dead);
    life.disk_writer.settle(Now::default());
    assert!(!life.believes(&file));
    drop(life);
    assert!(!Life::start(&directory).believes(&file));
}

#[test]
fn a_purge_while_no_configuration_names_a_shelf_hits_what_lies_there() {
    let directory = TempDir::new();
    let mut life = Life::start(&directory);
    let file = life.keep();
    let settings = settings(&directory);
    life.store.set_trees(&[]);
    life.disk_writer.settle(Now::default());
    life.store.purge_all(life.site, TagPurge::Dead);
    life.tree = life.store.disk().tree(&settings);
    life.store.set_trees(&[(settings, Arc::clone(&life.tree), vec![life.site])]);
    life.disk_writer.settle(Now::default());
    assert!(life.tree.is_open());
    assert!(!life.believes(&file));
    drop(life);
    assert!(!Life::start(&directory).believes(&file));
}

#[test]
fn a_purge_while_no_configuration_names_a_tree_is_known_to_the_next_process() {
    let directory = TempDir::new();
    let mut life = Life::start(&directory);
    let file = life.keep();
    life.store.set_trees(&[]);
    life.store.purge_all(life.site, TagPurge::Dead);
    assert!(life.store.disk().has_unwritten_purges(), "it is not acknowledged before");
    life.journal_purges();
    // It crashes before its disk writer gets the configuration.
    drop(life);
    assert!(!Life::start(&directory).believes(&file));
}

#[test]
fn a_tree_that_is_not_named_any_more_misses_the_purges_of_later_processes() {
    let directory = TempDir::new();
    let mut life = Life::start(&directory);
    let file = life.keep();
    life.store.set_trees(&[]);
    life.disk_writer.settle(Now::default());
    assert!(!journal_file(&directory).exists());
    assert!(life.store.disk().left().is_empty());
    assert_eq!(life.disk_writer.take_notes().len(), 1);
    drop(life);
    // The next one names no directory, and the one after it does.
    let mut next = Life::start(&directory);
    assert!(!next.believes(&file));
    let newer = next.keep();
    drop(next);
    assert!(Life::start(&directory).believes(&newer));
}

#[test]
fn a_tree_that_is_named_again_at_once_has_missed_purges() {
    let directory = TempDir::new();
    let mut life = Life::start(&directory);
    let file = life.keep();
    life.store.set_trees(&[]);
    life.store.purge_all(life.site, TagPurge::Dead);
    life.name(settings(&directory));
    life.journal_purges();
    assert!(!journal_file(&directory).exists());
    life.disk_writer.settle(Now::default());
    assert!(life.tree.is_open() && !life.believes(&file));
}

#[test]
fn a_tree_of_other_levels_keeps_the_journal_of_its_directory() {
    let directory = TempDir::new();
    let mut life = Life::start(&directory);
    let file = life.keep();
    let same = settings(&directory);
    life.name(DiskTreeSettings { levels: [2].into(), ..same });
    assert!(life.store.disk().left().is_empty());
    life.disk_writer.settle(Now::default());
    drop(life);
    assert!(Life::start(&directory).believes(&file));
}

#[test]
fn a_bit_that_flips_in_a_journal_makes_all_files_void() {
    let directory = TempDir::new();
    let mut life = Life::start(&directory);
    let file = life.keep();
    life.store.purge_all(life.site, TagPurge::Dead);
    life.journal_purges();
    drop(life);
    let whole = std::fs::read(journal_file(&directory)).unwrap();
    for at in 0..whole.len() {
        let mut bent = whole.clone();
        bent[at] ^= 1 << (at % 8);
        std::fs::write(journal_file(&directory), &bent).unwrap();
        let mut next = Life::start(&directory);
        assert!(!next.believes(&file), "byte {at}");
        assert_eq!(next.disk_writer.take_notes().len(), 1, "byte {at}");
    }
}

#[test]
fn such_a_purge_is_remembered_when_another_shelf_is_opened_in_between() {
    let (directory, other) = (TempDir::new(), TempDir::new());
    let mut life = Life::start(&directory);
    let file = life.keep();
    life.store.set_trees(&[]);
    life.disk_writer.settle(Now::default());
    life.store.purge_all(life.site, TagPurge::Dead);
    // Purges are counted from a new number then.
    for root in [&other, &directory] {
        let settings = settings(root);
        life.tree = life.store.disk().tree(&settings);
        life.store.set_trees(&[(settings, Arc::clone(&life.tree), vec![life.site])]);
        life.disk_writer.settle(Now::default());
        assert!(life.tree.is_open());
    }
    assert!(!life.believes(&file));
    drop(life);
    assert!(!Life::start(&directory).believes(&file));
}

#[test]
fn what_one_process_purges_another_purges_once() {
    let directory = TempDir::new();
    let mut lives = [Life::start(&directory), Life::start(&directory)];
    let [old, new] = &mut lives;
    new.keep();
    assert!(new.has());
    old.store.purge_all(old.site, TagPurge::Dead);
    for life in [&mut *old, &mut *new] {
        life.go_on();
        life.go_on();
    }
    assert!(!new.has(), "the purge reached it");
    let size = || std::fs::metadata(journal_file(&directory)).unwrap().len();
    let told = size();
    let generations = [old.store.generation(), new.store.generation()];
    for _ in 0..4 {
        old.go_on();
        new.go_on();
    }
    assert_eq!(size(), told, "nobody repeats what was repeated");
    assert_eq!([old.store.generation(), new.store.generation()], generations);
}

#[test]
fn a_purge_of_everything_reaches_another_process() {
    let directory = TempDir::new();
    let mut lives = [Life::start(&directory), Life::start(&directory)];
    let [old, new] = &mut lives;
    let file = new.keep();
    old.tree.note(&bolide_cache::disk::everything(old.store.generation()), 0);
    old.go_on();
    new.go_on();
    new.go_on();
    assert!(!new.has());
    assert!(!new.believes(&file));
    let newer = new.keep();
    let size = || std::fs::metadata(journal_file(&directory)).unwrap().len();
    let told = size();
    for _ in 0..4 {
        old.go_on();
        new.go_on();
    }
    assert_eq!(size(), told);
    assert!(new.has() && new.believes(&newer));
    drop(lives);
    assert!(Life::start(&directory).believes(&newer));
}

#[test]
fn a_purge_while_a_journal_is_made_anew_stands_in_the_old_one_and_in_the_new_one() {
    let directory = TempDir::new();
    let mut life = Life::start(&directory);
    let file = life.keep();
    let old = life.tree.old_journal();
    let read = life.disk_writer.charges[0].read;
    let draft = life.disk_writer.draft_anew(&life.tree, old, read, 0).unwrap();
    life.store.purge_all(life.site, TagPurge::Dead);
    let size = || std::fs::metadata(journal_file(&directory)).unwrap().len();
    let before = size();
    flush(&mut Epoll::new().unwrap(), &life.tree).unwrap();
    assert!(size() > before, "it can be told");
    let Life { tree, disk_writer, .. } = &mut life;
    tree.replace_journal(|_, due| disk_writer.complete(tree, draft, due, 0)).unwrap();
    assert!(!life.believes(&file));
    drop(life);
    assert!(!Life::start(&directory).believes(&file));
}

#[test]
fn a_journal_made_anew_says_what_the_old_one_said() {
    let directory = TempDir::new();
    let mut life = Life::start(&directory);
    let file = life.keep();
    let mut keys = KeyBuilder::default();
    keys.start(life.site);
    keys.push_url(b"/other");
    life.store.purge_url(&keys.public(), TagPurge::Dead);
    life.renew_journal();
    assert!(life.believes(&file));
    let mut next = Life::start(&directory);
    assert!(next.believes(&file));
    assert!(next.store.generation() > life.store.generation());
    // Who began later counts from a greater number, which the other one must not forget.
    next.go_on();
    life.renew_journal();
    assert!(Life::start(&directory).store.generation() > next.store.generation());
    life.store.purge_all(life.site, TagPurge::Dead);
    life.renew_journal();
    life.renew_journal();
    drop((life, next));
    assert!(!Life::start(&directory).believes(&file));
}

#[test]
fn a_journal_made_anew_knows_the_sites_of_the_old_one() {
    let directory = TempDir::new();
    let start = |reach: &str| {
        let mut life = Life::new(&directory);
        let name = b"zone:one".as_slice().into();
        life.tree.expect_sites(&[DiskSite { name, reach: reach.into() }]);
        life.disk_writer.settle(Now::default());
        life
    };
    let mut life = start("80");
    let file = life.keep();
    life.renew_journal();
    drop(life);
    for (reach, is_good) in [("80", true), ("81", false), ("80", false)] {
        assert_eq!(start(reach).believes(&file), is_good, "{reach}");
    }
}

#[test]
fn purges_in_a_journal_that_another_process_has_replaced_are_applied() {
    let directory = TempDir::new();
    let mut lives = [Life::start(&directory), Life::start(&directory)];
    let [old, new] = &mut lives;
    old.keep();
    old.go_on();
    new.renew_journal();
    new.store.purge_all(new.site, TagPurge::Dead);
    new.go_on();
    assert!(old.has());
    old.go_on();
    old.go_on();
    assert!(!old.has());
    // And back, with neither taking the other's away again.
    new.go_on();
    let file = new.keep();
    old.store.purge_all(old.site, TagPurge::Dead);
    old.go_on();
    new.go_on();
    assert!(!new.has() && !new.believes(&file));
}

#[test]
fn where_the_journal_is_deleted_everything_is_purged_and_it_is_written_again() {
    let directory = TempDir::new();
    let mut life = Life::start(&directory);
    let file = life.keep();
    remove_journal_and_lock(&directory);
    life.go_on();
    assert!(!life.has() && !life.believes(&file));
    assert!(is_without_journal_and_lock(&directory));
    life.go_on_at(1);
    let journal = std::fs::read(journal_file(&directory)).unwrap();
    assert_eq!(journal::seal(&journal), Some(life.tree.seal()));
    assert!(!life.believes(&file));
    let file = life.keep();
    drop(life);
    assert!(Life::start(&directory).believes(&file));
}

#[test]
fn a_purge_between_the_deletion_of_the_journal_and_its_notice_loses_nothing() {
    let directory = TempDir::new();
    let mut life = Life::start(&directory);
    life.keep();
    remove_journal_and_lock(&directory);
    life.store.purge_all(life.site, TagPurge::Dead);
    life.journal_purges();
    assert!(is_without_journal_and_lock(&directory), "it may be removed just now");
    life.go_on();
    assert!(is_without_journal_and_lock(&directory));
    life.go_on_at(1);
    let journal = std::fs::read(journal_file(&directory)).unwrap();
    assert_eq!(journal::seal(&journal), Some(life.tree.seal()));
}

#[test]
fn a_file_that_others_delete_ends_its_page() {
    let directory = TempDir::new();
    let mut life = Life::start(&directory);
    let file = life.keep();
    assert!(life.has());
    std::fs::remove_file(&file).unwrap();
    life.go_on();
    assert!(!life.has());
    assert_eq!(life.tree.files(), 0);
    let notes = life.disk_writer.take_notes();
    assert!(notes.iter().any(|(_, text)| text.starts_with("1 file of cache")), "{notes:?}");
}

#[test]
fn a_process_with_a_successor_neither_evicts_nor_heeds_evictions() {
    let directory = TempDir::new();
    let mut life = Life::start(&directory);
    let file = life.keep();
    life.store.disk().leave_upkeep(true);
    life.go_on_at(3600);
    assert!(file.exists(), "inactive, as far as this process knows");
    std::fs::remove_file(&file).unwrap();
    life.go_on_at(3601);
    assert!(life.has(), "the successor may have evicted it");
    let second = life.keep_at(b"/b");
    std::fs::remove_file(&second).unwrap();
    life.go_on_at(3602);
    // The successor has ended.
    life.store.disk().leave_upkeep(false);
    let third = life.keep_at(b"/c");
    life.go_on_at(2);
    std::fs::remove_file(&third).unwrap();
    life.go_on_at(4);
    let notes = life.disk_writer.take_notes();
    let told = notes.iter().filter(|(_, text)| text.contains("deleted from outside")).count();
    assert_eq!(told, 1, "{notes:?}");
}

#[test]
fn a_file_that_this_process_deletes_ends_nothing() {
    let directory = TempDir::new();
    let mut life = Life::start(&directory);
    let file = life.keep();
    let hash = life.tree.next_victim(0, true).unwrap();
    life.disk_writer.unlink_own(&life.tree, hash);
    life.go_on();
    assert!(!file.exists() && life.has());
    assert!(life.disk_writer.take_notes().is_empty());
}

#[test]
fn after_an_overflow_files_are_looked_for() {
    let directory = TempDir::new();
    let mut life = Life::start(&directory);
    let file = life.keep();
    let overflow = |life: &mut Life| {
        // What was told is lost.
        life.disk_writer.io.take_changes(&mut Vec::new());
        life.disk_writer.changes.push(DirChange::Unknown);
        life.go_on();
    };
    overflow(&mut life);
    assert!(life.has());
    std::fs::remove_file(&file).unwrap();
    overflow(&mut life);
    assert!(!life.has());
}

#[test]
fn a_directory_that_moves_away_takes_its_pages_along() {
    let directory = TempDir::new();
    let mut life = Life::start(&directory);
    let file = life.keep();
    std::fs::rename(file.parent().unwrap(), directory.join("elsewhere")).unwrap();
    life.go_on();
    assert!(!life.has());
    assert_eq!(life.keep(), file);
    assert!(file.exists());
    std::fs::remove_file(&file).unwrap();
    life.go_on_at(1);
    assert!(!life.has());
}

#[test]
fn where_nothing_can_be_watched_files_are_looked_for() {
    let directory = TempDir::new();
    let mut life = Life::start(&directory);
    let file = life.keep();
    life.disk_writer.io = Epoll::new().unwrap();
    life.disk_writer.charges[0].removals.go_blind();
    std::fs::remove_file(&file).unwrap();
    life.go_on_at(1);
    assert!(!life.has());
}

/// A process that finds no journal where another one still runs.
fn with_another_seal(directory: &Path, old: &mut Life) -> Life {
    std::fs::remove_file(journal_file(directory)).unwrap();
    let mut new = Life::new(directory);
    new.store.begin_at(5 << 32);
    new.disk_writer.settle(Now::default());
    assert_ne!(new.tree.seal(), old.tree.seal());
    for _ in 0..3 {
        old.go_on();
        new.go_on();
        let journal = std::fs::read(journal_file(directory)).unwrap();
        assert_eq!(journal::seal(&journal), Some(new.tree.seal()), "there is no contest");
    }
    new
}

#[test]
fn a_journal_of_another_seal_is_read() {
    let directory = TempDir::new();
    let mut old = Life::start(&directory);
    let file = old.keep();
    let mut new = with_another_seal(&directory, &mut old);
    assert!(old.has() && old.believes(&file) && !new.believes(&file));
    new.store.purge_all(new.site, TagPurge::Dead);
    new.go_on();
    old.go_on();
    assert!(!old.has() && !old.believes(&file));
}

#[test]
fn a_journal_of_another_seal_does_not_vouch_for_what_is_ours() {
    let directory = TempDir::new();
    let mut old = Life::start(&directory);
    let file = old.keep();
    old.store.purge_all(old.site, TagPurge::Dead);
    old.go_on();
    let new = with_another_seal(&directory, &mut old);
    // Seals it with ours, and does not have that purge.
    old.renew_journal();
    let next = Life::start(&directory);
    assert_eq!(next.tree.seal(), old.tree.seal());
    assert!(!next.believes(&file));
    assert!(next.store.generation() > new.store.generation());
}
