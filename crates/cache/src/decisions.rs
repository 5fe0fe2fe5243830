//! The recent decisions of each worker, for the command line: a ring with one writer and many
//! readers.
//!
//! It holds no object. INVARIANT: a writer never waits. A reader skips a slot that is being written
//! (its sequence number is odd, or changes).

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering, fence};

use crate::key::NamespaceId;

/// LIMIT: decisions that each worker remembers.
pub const DECISIONS_MAX: usize = 1024;
/// LIMIT: bytes of a target that are kept.
const TARGET_MAX: usize = 64;
const TARGET_WORDS: usize = TARGET_MAX / 8;
const WORDS: usize = 7 + TARGET_WORDS;

/// The class in which a request counts for its namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecisionClass {
    /// Served with a fresh object.
    Hit,
    /// Served with a stale object.
    Stale,
    /// Sent upstream, or coalesced with a fill.
    Miss,
    /// Bypassed the store.
    Pass,
}

/// The decision for one request, as it is written.
#[derive(Clone, Copy, Debug)]
pub struct DecisionNote<'a> {
    /// The request id.
    pub id: [u64; 2],
    /// When the request ended, in milliseconds since 1970.
    pub at_ms: u64,
    /// The hash of the key; 0 if there was none.
    pub key: u128,
    /// The namespace.
    pub namespace: NamespaceId,
    /// The status of the response.
    pub status: u16,
    /// How long the request took, in milliseconds.
    pub millis: u32,
    /// The decision and its reasons, in the caller's numbers.
    pub codes: [u8; 4],
    /// Path and query; the first bytes are kept.
    pub target: &'a [u8],
}

/// A decision as it is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecisionRecord {
    /// The request id.
    pub id: [u64; 2],
    /// When the request ended, in milliseconds since 1970.
    pub at_ms: u64,
    /// The hash of the key; 0 if there was none.
    pub key: u128,
    /// The namespace.
    pub namespace: NamespaceId,
    /// The status of the response.
    pub status: u16,
    /// How long the request took, in milliseconds.
    pub millis: u32,
    /// The decision and its reasons, in the writer's numbers.
    pub codes: [u8; 4],
    /// The first bytes of path and query.
    pub target: Vec<u8>,
    /// Whether the target was longer.
    pub is_cut: bool,
}

/// Two cache lines.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Slot {
    sequence: AtomicU64,
    words: [AtomicU64; WORDS],
}

/// One worker's ring.
#[derive(Debug)]
pub(crate) struct DecisionRing {
    slots: Box<[Slot]>,
    next: AtomicUsize,
}

impl DecisionRing {
    pub(crate) fn new() -> Self {
        let slots = (0..DECISIONS_MAX).map(|_| Slot::default()).collect();
        Self { slots, next: AtomicUsize::new(0) }
    }

    /// Writes a decision over the oldest one. Only the ring's worker may call it.
    pub(crate) fn write(&self, note: &DecisionNote<'_>) {
        let next = self.next.load(Ordering::Relaxed);
        self.next.store(next.wrapping_add(1), Ordering::Relaxed);
        let slot = &self.slots[next % DECISIONS_MAX];
        let sequence = slot.sequence.load(Ordering::Relaxed);
        debug_assert!(sequence.is_multiple_of(2), "a ring has one writer");
        slot.sequence.store(sequence.wrapping_add(1), Ordering::Relaxed);
        fence(Ordering::Release);
        let put = |at: usize, word: u64| slot.words[at].store(word, Ordering::Relaxed);
        put(0, note.id[0]);
        put(1, note.id[1]);
        put(2, note.at_ms);
        put(3, (note.key >> 64) as u64);
        put(4, note.key as u64);
        put(5, u64::from(note.namespace.0) << 32 | u64::from(u32::from_le_bytes(note.codes)));
        let len = note.target.len().min(u16::MAX.into()) as u64;
        put(6, u64::from(note.millis) << 32 | u64::from(note.status) << 16 | len);
        let mut target = [0; TARGET_MAX];
        let kept = note.target.len().min(TARGET_MAX);
        target[..kept].copy_from_slice(&note.target[..kept]);
        for (at, word) in target.as_chunks::<8>().0.iter().enumerate() {
            put(7 + at, u64::from_le_bytes(*word));
        }
        slot.sequence.store(sequence.wrapping_add(2), Ordering::Release);
    }

    /// Visits its decisions, in no order.
    pub(crate) fn read(&self, visit: &mut impl FnMut(DecisionRecord)) {
        self.slots.iter().filter_map(Slot::read).for_each(visit);
    }
}

impl Slot {
    fn read(&self) -> Option<DecisionRecord> {
        let sequence = self.sequence.load(Ordering::Acquire);
        if sequence == 0 || sequence % 2 == 1 {
            return None;
        }
        let words: [u64; WORDS] = std::array::from_fn(|at| self.words[at].load(Ordering::Relaxed));
        fence(Ordering::Acquire);
        if self.sequence.load(Ordering::Relaxed) != sequence {
            return None;
        }
        let len = usize::from(words[6] as u16);
        let mut target: Vec<u8> = words[7..].iter().flat_map(|word| word.to_le_bytes()).collect();
        target.truncate(len);
        Some(DecisionRecord {
            id: [words[0], words[1]],
            at_ms: words[2],
            key: u128::from(words[3]) << 64 | u128::from(words[4]),
            namespace: NamespaceId((words[5] >> 32) as u32),
            status: (words[6] >> 16) as u16,
            millis: (words[6] >> 32) as u32,
            codes: (words[5] as u32).to_le_bytes(),
            target,
            is_cut: len > TARGET_MAX,
        })
    }
}

/// Counts of requests by namespace and class that the store does not have yet.
#[derive(Debug, Default)]
pub(crate) struct DecisionTallies {
    counts: Vec<[u32; 4]>,
    /// Namespaces with such counts.
    dirty: Vec<u32>,
}

impl DecisionTallies {
    /// Counts one request.
    pub(crate) fn count(&mut self, namespace: NamespaceId, class: DecisionClass) {
        let at = namespace.0 as usize;
        if at >= self.counts.len() {
            self.counts.resize(at + 1, [0; 4]);
        }
        let counts = &mut self.counts[at];
        if *counts == [0; 4] {
            self.dirty.push(namespace.0);
        }
        counts[class as usize] += 1;
    }

    /// Passes the counts to `report` and resets them.
    pub(crate) fn drain(&mut self, mut report: impl FnMut(u32, [u32; 4])) {
        while let Some(namespace) = self.dirty.pop() {
            report(namespace, std::mem::take(&mut self.counts[namespace as usize]));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{
        DECISIONS_MAX, DecisionClass, DecisionNote, DecisionRecord, DecisionRing, DecisionTallies,
    };
    use crate::key::NamespaceId;

    fn note(number: u64, target: &[u8]) -> DecisionNote<'_> {
        DecisionNote {
            id: [number, !number],
            at_ms: 1_795_239_636_000 + number,
            key: u128::from(number) << 70 | 5,
            namespace: NamespaceId(3),
            status: 200,
            millis: u32::MAX,
            codes: [1, 2, 3, 255],
            target,
        }
    }

    fn all(ring: &DecisionRing) -> Vec<DecisionRecord> {
        let mut all = Vec::new();
        ring.read(&mut |decision| all.push(decision));
        all.sort_by_key(|decision| decision.at_ms);
        all
    }

    #[test]
    fn the_last_notes_are_read_back_whole() {
        let ring = DecisionRing::new();
        assert_eq!(all(&ring), []);
        let last = DECISIONS_MAX as u64 + 9;
        for number in 0..=last {
            ring.write(&note(number, b"/path?query"));
        }
        let read = all(&ring);
        assert_eq!(read.len(), DECISIONS_MAX);
        let newest = read.last().unwrap();
        let written = note(last, b"/path?query");
        assert_eq!((newest.id, newest.key), (written.id, written.key));
        assert_eq!(
            (newest.namespace, newest.status, newest.codes),
            (NamespaceId(3), 200, [1, 2, 3, 255])
        );
        assert_eq!((&*newest.target, newest.is_cut), (&b"/path?query"[..], false));
        assert_eq!(read[0].id[0], 10);
    }

    #[test]
    fn a_long_target_is_cut_and_says_so() {
        let ring = DecisionRing::new();
        ring.write(&note(1, &[b'x'; 65]));
        ring.write(&note(2, &[b'y'; 64]));
        let read = all(&ring);
        assert_eq!((&*read[0].target, read[0].is_cut), (&[b'x'; 64][..], true));
        assert_eq!((&*read[1].target, read[1].is_cut), (&[b'y'; 64][..], false));
    }

    #[test]
    fn readers_of_another_thread_never_see_half_a_note() {
        let ring = DecisionRing::new();
        let done = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            let reader = scope.spawn(|| {
                let mut seen = 0_u64;
                while !done.load(std::sync::atomic::Ordering::Relaxed) {
                    ring.read(&mut |decision| {
                        assert_eq!(decision.id[0], !decision.id[1]);
                        assert_eq!(decision.at_ms, 1_795_239_636_000 + decision.id[0]);
                        seen += 1;
                    });
                }
                seen
            });
            for number in 0..200_000 {
                ring.write(&note(number, b"/"));
            }
            done.store(true, std::sync::atomic::Ordering::Relaxed);
            let _at_least_it_ended = reader.join().unwrap();
        });
        assert_eq!(all(&ring).len(), DECISIONS_MAX);
    }

    #[test]
    fn tallies_are_told_once() {
        let mut tallies = DecisionTallies::default();
        for class in [DecisionClass::Hit, DecisionClass::Hit, DecisionClass::Miss] {
            tallies.count(NamespaceId(2), class);
        }
        tallies.count(NamespaceId(0), DecisionClass::Pass);
        let mut counted = Vec::new();
        tallies.drain(|namespace, counts| counted.push((namespace, counts)));
        counted.sort_unstable();
        assert_eq!(counted, [(0, [0, 0, 0, 1]), (2, [2, 0, 1, 0])]);
        tallies.drain(|_, _| panic!("nothing is left to report"));
    }
}
