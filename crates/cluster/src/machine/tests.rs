//! One machine against simulated entries, and several against a stream that loses and repeats.

use bolide_cache::disk::journal::{self, Echo, JournalEntry};
use bolide_cache::disk::{DiskPurge, DiskPurgeTarget};
use bolide_cache::{OutboxBatch, TagPurge};
use proptest::collection::vec;
use proptest::prelude::*;

use super::{ClusterMachine, EntryOutcome, Loss};
use crate::position::{EntryId, EntryMark, StreamFacts};
use crate::record::{PurgeRecord, RecordFault};

fn at(ms: u64) -> EntryId {
    EntryId { ms, number: 0 }
}

/// An entry without bytes.
fn mark(ms: u64) -> EntryMark {
    EntryMark::of(at(ms), None)
}

/// Purges with these numbers.
fn batch(numbers: &[u64]) -> OutboxBatch {
    let purges: Vec<_> = numbers.iter().map(|number| (*number, "t")).collect();
    batch_of(&purges)
}

fn batch_of(purges: &[(u64, &str)]) -> OutboxBatch {
    let mut bytes = Vec::new();
    for &(sequence, tag) in purges {
        let target = DiskPurgeTarget::Tag(tag.as_bytes());
        let (namespace, session) = (&b"a"[..], &b""[..]);
        let order = DiskPurge { namespace, session, target, how: TagPurge::Dead, sequence };
        journal::push(&mut bytes, &JournalEntry::Purge(order, Echo::First), 0);
    }
    OutboxBatch { first: purges[0].0, last: purges[purges.len() - 1].0, bytes }
}

fn record(life: u64, numbers: &[u64]) -> Vec<u8> {
    record_of(b"c", life, 1, numbers)
}

fn record_of(cluster: &[u8], life: u64, number: u64, numbers: &[u64]) -> Vec<u8> {
    let mut out = Vec::new();
    let purges = &batch(numbers).bytes;
    PurgeRecord { cluster, node: b"n", life, number, purges }.write(&mut out);
    out
}

fn attached(life: u64, position: EntryId) -> ClusterMachine {
    let mut machine = ClusterMachine::new(b"c", b"n", life);
    let position = EntryMark::of(position, None);
    assert_eq!(machine.attach(Some(position)), position);
    machine
}

/// What came of an entry, and the numbers that were carried out.
fn take(machine: &mut ClusterMachine, id: EntryId, bytes: &[u8]) -> (EntryOutcome, Vec<u64>) {
    let mut numbers = Vec::new();
    let received = machine.receive(id, Some(bytes), |order| numbers.push(order.sequence));
    (received, numbers)
}

#[test]
fn purges_are_carried_out_once_and_in_order() {
    let mut machine = attached(1, at(10));
    assert_eq!(take(&mut machine, at(11), &record(2, &[1, 2])), (EntryOutcome::Good, vec![1, 2]));
    assert_eq!(take(&mut machine, at(11), &record(2, &[3])), (EntryOutcome::Known, vec![]));
    let again = take(&mut machine, at(12), &record(2, &[2, 3]));
    assert_eq!(again, (EntryOutcome::Good, vec![3]), "sent again after its answer was lost");
    assert_eq!(take(&mut machine, at(13), &record(3, &[7])), (EntryOutcome::Good, vec![7]));
    assert_eq!(machine.position(), Some(at(13)));
}

#[test]
fn what_is_missing_or_unreadable_is_a_loss_and_what_is_of_others_is_not() {
    let mut machine = attached(1, at(10));
    take(&mut machine, at(11), &record(2, &[1]));
    let gap = take(&mut machine, at(12), &record(2, &[3]));
    assert_eq!(gap, (EntryOutcome::Lost(Loss::Gap), vec![3]));
    let mut damaged = record(2, &[4]);
    *damaged.last_mut().expect("bytes") ^= 1;
    for (id, bytes, fault) in
        [(13, &damaged[..], RecordFault::Damaged), (14, &b"hello"[..], RecordFault::Foreign)]
    {
        let lost = EntryOutcome::Lost(Loss::Unreadable(fault));
        assert_eq!(take(&mut machine, at(id), bytes), (lost, vec![]));
    }
    let other = record_of(b"d", 9, 1, &[1]);
    assert_eq!(take(&mut machine, at(15), &other), (EntryOutcome::Elsewhere, vec![]));
    let none = machine.receive(at(16), None, |_| panic!("nothing to carry out"));
    assert_eq!(none, EntryOutcome::Lost(Loss::Unreadable(RecordFault::Foreign)));
}

#[test]
fn a_position_is_good_while_its_entry_is_there() {
    let facts = |first, newest, last, has_position| StreamFacts {
        first: at(first),
        newest: mark(newest),
        last: at(last),
        has_position,
    };
    for (position, facts, wanted) in [
        (Some(5), facts(1, 9, 9, true), Ok(())),
        (Some(5), facts(6, 9, 9, false), Err(Loss::Trimmed)),
        // Another entry has its id.
        (Some(5), facts(5, 9, 9, false), Err(Loss::RolledBack)),
        (Some(5), facts(1, 9, 9, false), Err(Loss::RolledBack)),
        (Some(5), facts(1, 4, 4, false), Err(Loss::RolledBack)),
        // The stream was emptied, and nothing was given since.
        (Some(9), facts(9, 9, 9, false), Ok(())),
        (None, facts(1, 9, 9, false), Err(Loss::NoPosition)),
    ] {
        let mut machine = ClusterMachine::new(b"c", b"n", 1);
        machine.attach(position.map(mark));
        assert_eq!(machine.check(&facts), wanted, "{position:?} {facts:?}");
        let end = if wanted.is_ok() { position.map(mark) } else { Some(facts.newest) };
        assert_eq!(machine.mark(), end);
    }
}

#[test]
fn own_purges_are_sent_until_they_come_back() {
    let mut machine = attached(1, at(10));
    assert!(machine.poll_record(|| None).is_none());
    let again = |number| Some(record_of(b"c", 1, number, &[1, 2]));
    assert_eq!(machine.poll_record(|| Some(batch(&[1, 2]))), again(1));
    assert!(machine.poll_record(|| panic!("one at a time")).is_none());
    machine.send_again();
    assert_eq!(machine.poll_record(|| panic!("the same first")), again(2), "no two are the same");
    machine.attach(None);
    assert_eq!(machine.poll_record(|| panic!("the same first")), again(3));
    assert_eq!(take(&mut machine, at(11), &record(1, &[1, 2])), (EntryOutcome::Good, vec![]));
    assert_eq!((machine.confirmed(), machine.is_sending()), (2, false));
    assert!(machine.poll_record(|| Some(batch(&[3]))).is_some());
}

#[test]
fn an_entry_that_was_passed_without_being_read_is_sent_again() {
    let mut machine = attached(1, at(10));
    let again = |number| Some(record_of(b"c", 1, number, &[1]));
    assert_eq!(machine.poll_record(|| Some(batch(&[1]))), again(1));
    machine.handle_added(at(11));
    assert!(machine.poll_record(|| panic!("it is on the way")).is_none());
    take(&mut machine, at(12), &record(2, &[1]));
    assert_eq!(machine.poll_record(|| panic!("the same first")), again(2));
    machine.handle_added(at(13));
    machine.handle_end();
    assert_eq!(machine.poll_record(|| panic!("the same first")), again(3));
}

/// The stream has lost entries, and gives ids that this node has read.
#[test]
fn an_entry_with_an_id_from_before_the_position_is_not_sent_again_at_once() {
    let mut machine = attached(1, at(10));
    assert!(machine.poll_record(|| Some(batch(&[1]))).is_some());
    machine.handle_added(at(9));
    assert!(machine.poll_record(|| panic!("it is on the way")).is_none());
    machine.skip_to(mark(9));
    assert!(machine.poll_record(|| panic!("the same first")).is_some());
}

#[test]
fn a_hello_has_no_purges() {
    let hello = ClusterMachine::new(b"c", b"n", 2).hello();
    let mut machine = attached(1, at(10));
    assert_eq!(take(&mut machine, at(11), &hello), (EntryOutcome::Good, vec![]));
    assert_eq!(machine.position(), Some(at(11)));
}

/// What happens to a cluster of three.
#[derive(Clone, Copy, Debug)]
enum Act {
    /// A node purges.
    Purge(usize),
    /// More waits than may: what waits becomes one purge.
    Overflow(usize),
    /// A node sends; whether the answer, or the request, is lost.
    Send(usize, Fate),
    /// A node reads up to so many entries.
    Read(usize, usize),
    /// The connection of a node breaks.
    Detach(usize),
    /// The process of a node is killed and starts again.
    Kill(usize),
    /// Entries are trimmed.
    Trim(usize),
    /// The newest entries are lost: power failed, or a replica that lacked them took over.
    RollBack(usize),
    /// The stream is gone.
    Flush,
    /// Bytes of the newest entry change.
    Damage,
}

#[derive(Clone, Copy, Debug)]
enum Fate {
    Arrives,
    RequestLost,
    AnswerLost,
}

fn act() -> impl Strategy<Value = Act> {
    let node = 0..3_usize;
    prop_oneof![
        6 => node.clone().prop_map(Act::Purge),
        1 => node.clone().prop_map(Act::Overflow),
        6 => (node.clone(), prop_oneof![
            4 => Just(Fate::Arrives), 1 => Just(Fate::RequestLost), 1 => Just(Fate::AnswerLost),
        ]).prop_map(|(node, fate)| Act::Send(node, fate)),
        8 => (node.clone(), 1..6_usize).prop_map(|(node, count)| Act::Read(node, count)),
        2 => node.clone().prop_map(Act::Detach),
        1 => node.prop_map(Act::Kill),
        2 => (1..4_usize).prop_map(Act::Trim),
        1 => (1..4_usize).prop_map(Act::RollBack),
        1 => Just(Act::Flush),
        1 => Just(Act::Damage),
    ]
}

/// What a node did to what it keeps, at a time.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Deed {
    /// It carried out a purge of a process.
    Purged(u64, u64),
    /// It dropped everything.
    Dropped,
}

struct Node {
    machine: ClusterMachine,
    is_attached: bool,
    /// What it has acknowledged, which outlives it.
    stored: Option<EntryMark>,
    /// Numbers and tags of purges; the tag `all` means everything.
    waiting: Vec<(u64, &'static str)>,
    last: u64,
    /// The purge that other nodes have to receive before it acknowledges its position.
    owes: u64,
    deeds: Vec<(u64, Deed)>,
}

/// A stream, its nodes, and what they did.
struct World {
    time: u64,
    lives: u64,
    entries: Vec<(EntryId, Vec<u8>)>,
    last: EntryId,
    nodes: Vec<Node>,
    /// Time, node, process and number of each purge.
    purges: Vec<(u64, usize, u64, u64)>,
}

impl World {
    fn new() -> Self {
        let mut world = Self {
            time: 0,
            lives: 0,
            entries: Vec::new(),
            last: EntryId::ZERO,
            nodes: Vec::new(),
            purges: Vec::new(),
        };
        for _ in 0..3 {
            let machine = world.machine();
            let (stored, waiting, deeds) = (None, Vec::new(), Vec::new());
            let (is_attached, last, owes) = (false, 0, 0);
            let node = Node { machine, is_attached, stored, waiting, last, owes, deeds };
            world.nodes.push(node);
        }
        world
    }

    fn machine(&mut self) -> ClusterMachine {
        self.lives += 1;
        ClusterMachine::new(b"c", b"n", self.lives)
    }

    fn add(&mut self, bytes: Vec<u8>) {
        // A server whose clock stands still or goes back gives the next id, and one that has lost
        // entries gives theirs again.
        self.last = self.last.next();
        self.entries.push((self.last, bytes));
    }

    fn facts(&self, position: EntryMark) -> StreamFacts {
        let mark = |(id, bytes): &(EntryId, Vec<u8>)| EntryMark::of(*id, Some(bytes));
        let none = EntryMark::of(self.last, None);
        StreamFacts {
            first: self.entries.first().map_or(self.last, |(id, _)| *id),
            newest: self.entries.last().map_or(none, mark),
            last: self.last,
            has_position: self.entries.iter().any(|entry| mark(entry) == position),
        }
    }

    fn purge(&mut self, n: usize, tag: &'static str) {
        let node = &mut self.nodes[n];
        node.last += 1;
        node.waiting.push((node.last, tag));
        self.purges.push((self.time, n, node.machine.life(), node.last));
    }

    fn lose(&mut self, n: usize, loss: Loss) {
        self.nodes[n].deeds.push((self.time, Deed::Dropped));
        if loss.concerns_others() {
            self.overflow(n);
            self.nodes[n].owes = self.nodes[n].last;
        }
    }

    /// One purge of everything takes the place of what waits.
    fn overflow(&mut self, n: usize) {
        self.nodes[n].waiting.clear();
        self.purge(n, "all");
    }

    fn read(&mut self, n: usize, count: usize) {
        if self.entries.is_empty() {
            let hello = self.nodes[n].machine.hello();
            self.add(hello);
        }
        let node = &mut self.nodes[n];
        if !node.is_attached {
            node.is_attached = true;
            node.machine.attach(node.stored);
        }
        let position = node.machine.mark().unwrap_or_default();
        let facts = self.facts(position);
        if let Err(loss) = self.nodes[n].machine.check(&facts) {
            self.lose(n, loss);
        }
        let from = self.nodes[n].machine.position().unwrap_or_default();
        let next: Vec<_> =
            self.entries.iter().filter(|(id, _)| *id > from).take(count).cloned().collect();
        if next.is_empty() {
            self.nodes[n].machine.handle_end();
        }
        for (id, bytes) in next {
            let node = &mut self.nodes[n];
            let mut new = Vec::new();
            let life = PurgeRecord::read(&bytes).map_or(0, |record| record.life);
            let received = node.machine.receive(id, Some(&bytes), |order| {
                let is_all = order.target == DiskPurgeTarget::Tag(b"all");
                new.push(if is_all { Deed::Dropped } else { Deed::Purged(life, order.sequence) });
            });
            node.deeds.extend(new.into_iter().map(|deed| (self.time, deed)));
            if let EntryOutcome::Lost(loss) = received {
                self.lose(n, loss);
            }
        }
        let node = &mut self.nodes[n];
        if node.owes <= node.machine.confirmed() {
            node.stored = node.machine.mark();
        }
    }

    fn send(&mut self, n: usize, fate: Fate) {
        let node = &mut self.nodes[n];
        if !node.is_attached {
            return;
        }
        let waiting = std::mem::take(&mut node.waiting);
        let mut left = waiting.clone();
        let bytes = node.machine.poll_record(|| {
            left.clear();
            (!waiting.is_empty()).then(|| batch_of(&waiting))
        });
        node.waiting = left;
        let Some(bytes) = bytes else { return };
        match fate {
            Fate::Arrives => {
                self.add(bytes);
                let id = self.last;
                self.nodes[n].machine.handle_added(id);
            }
            Fate::RequestLost => self.nodes[n].is_attached = false,
            Fate::AnswerLost => {
                self.add(bytes);
                self.nodes[n].is_attached = false;
            }
        }
    }

    fn act(&mut self, act: Act) {
        self.time += 1;
        match act {
            Act::Purge(n) => self.purge(n, "t"),
            Act::Overflow(n) => self.overflow(n),
            Act::Send(n, fate) => self.send(n, fate),
            Act::Read(n, count) => self.read(n, count),
            Act::Detach(n) => self.nodes[n].is_attached = false,
            Act::Kill(n) => {
                // What had not left is lost with the process, as its client may know.
                let (life, confirmed) = {
                    let node = &self.nodes[n];
                    (node.machine.life(), node.machine.confirmed())
                };
                self.purges.retain(|purge| purge.2 != life || purge.3 <= confirmed);
                let machine = self.machine();
                let node = &mut self.nodes[n];
                (node.machine, node.is_attached, node.last, node.owes) = (machine, false, 0, 0);
                node.waiting.clear();
            }
            Act::Trim(count) => drop(self.entries.drain(..count.min(self.entries.len()))),
            Act::RollBack(count) => {
                let keep = self.entries.len().saturating_sub(count);
                self.entries.truncate(keep);
                self.last = self.entries.last().map_or(EntryId::ZERO, |(id, _)| *id);
            }
            Act::Flush => {
                self.entries.clear();
                self.last = EntryId::ZERO;
            }
            Act::Damage => {
                if let Some((_, bytes)) = self.entries.last_mut() {
                    bytes[20] ^= 1;
                }
            }
        }
    }

    /// All nodes are connected until nothing is on the way.
    fn settle(&mut self) {
        for _ in 0..8 {
            for n in 0..3 {
                self.time += 1;
                self.read(n, usize::MAX);
                self.send(n, Fate::Arrives);
                self.read(n, usize::MAX);
            }
        }
    }

    fn check(&self) -> Result<(), TestCaseError> {
        for (n, node) in self.nodes.iter().enumerate() {
            prop_assert!(node.waiting.is_empty() && !node.machine.is_sending());
            for (time, origin, life, number) in self.purges.iter().filter(|purge| purge.1 != n) {
                let deed = Deed::Purged(*life, *number);
                let is_gone = |(at, done): &&(u64, Deed)| {
                    *at >= *time && (*done == deed || *done == Deed::Dropped)
                };
                let has = node.deeds.iter().any(|done| is_gone(&done));
                prop_assert!(has, "{} lacks {} of {}: {:?}", n, number, origin, node.deeds);
            }
        }
        Ok(())
    }
}

/// Purges of a process come in the order of their numbers, each once, in one process.
fn check_order(deeds: &[(u64, Deed)]) -> Result<(), TestCaseError> {
    let mut last = std::collections::HashMap::new();
    for (_, deed) in deeds {
        let Deed::Purged(life, number) = deed else { continue };
        let before = last.insert(*life, *number);
        prop_assert!(before.is_none_or(|before| before < *number), "{:?}", deeds);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// Whatever happens to connections, processes and the stream: in the end each purge has hit
    /// every node that may have had the page.
    #[test]
    fn no_purge_is_missed(acts in vec(act(), 0..80)) {
        let mut world = World::new();
        acts.iter().for_each(|act| world.act(*act));
        world.settle();
        world.check()?;
    }

    /// While nothing is lost, each purge is carried out exactly once.
    #[test]
    fn purges_are_carried_out_exactly_once(acts in vec(act(), 0..80)) {
        let mut world = World::new();
        world.settle();
        let is_mild = |act: &&Act| matches!(
            act, Act::Purge(_) | Act::Send(..) | Act::Read(..) | Act::Detach(_)
        );
        acts.iter().filter(is_mild).for_each(|act| world.act(*act));
        world.settle();
        world.check()?;
        for (n, node) in world.nodes.iter().enumerate() {
            check_order(&node.deeds)?;
            let own = world.purges.iter().filter(|purge| purge.1 == n).count();
            let done = node.deeds.iter().filter(|(_, deed)| *deed != Deed::Dropped).count();
            prop_assert_eq!(done, world.purges.len() - own);
        }
    }
}
