//! The journal of purges in a disk tree, which keeps purges across restarts.
//!
//! Every process that uses the tree appends entries. Their order comes from a number that grows
//! with each start and each purge, not from a clock.
//!
//! INVARIANT: an unreadable entry may have purged anything, so every object from before it is dead.

use bolide_base::FileRef;

use crate::disk::format::sum;
use crate::disk::purges::{DiskPurge, DiskPurgeTarget, Purges};
use crate::tags::TagPurge;

/// The first bytes of a journal.
const MAGIC: [u8; 8] = *b"bolideJ1";
/// Bytes of the head of a journal: magic, seal, checksum.
pub const HEAD: usize = 24;
/// The first bytes of an entry.
const MARK: [u8; 4] = *b"\xb0\x11\xde\n";
/// Mark, length, checksum, number, time, kind, how, echo, lengths of namespace and session.
const FIXED: usize = 4 + 4 + 8 + 8 + 8 + 3 + 1 + 2 + 2;
/// LIMIT: bytes of an entry.
const ENTRY_MAX: usize = 1 << 20;
/// The kind of an entry with the first number of a process.
const START: u8 = 255;
/// The kind of an entry with the sites of a configuration.
const SITES: u8 = 254;

/// The head of a journal whose objects have `seal`.
#[must_use]
pub fn head(seal: u64) -> [u8; HEAD] {
    let mut head = [0; HEAD];
    head[..8].copy_from_slice(&MAGIC);
    head[8..16].copy_from_slice(&seal.to_le_bytes());
    let sum = sum(&head[..16]);
    head[16..].copy_from_slice(&sum.to_le_bytes());
    head
}

/// The seal of a journal, from its head; `None` if the head is invalid.
#[must_use]
pub fn seal(bytes: &[u8]) -> Option<u64> {
    let head = bytes.first_chunk::<HEAD>()?;
    let stored = u64::from_le_bytes(*head.last_chunk::<8>()?);
    let seal = u64::from_le_bytes(*head[8..16].first_chunk::<8>()?);
    (head[..8] == MAGIC && stored == sum(&head[..16])).then_some(seal)
}

/// Where entries were appended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JournalAppend {
    /// To the file that has the journal's name.
    Named,
    /// To a file without a name, and no file has the journal's: no later process reads either.
    Nameless,
}

/// A journal entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JournalEntry<'a> {
    /// The first number of a process; its upper half is unique to the process.
    Start(u64),
    /// A purge, and whether it repeats one of another process.
    Purge(DiskPurge<'a>, Echo),
    /// The sites that purges reach from here on.
    Sites(&'a [u8]),
}

/// Whether a purge is a repetition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Echo {
    /// It is new.
    First,
    /// It repeats a purge of another process, from a journal.
    Again,
    /// It repeats a purge of another node of a cluster.
    OfNode,
}

/// Appends an entry. A purge that exceeds the limit becomes a purge of everything.
pub fn push(out: &mut Vec<u8>, entry: &JournalEntry<'_>, unix_ms: u64) {
    let (kind, how, echo, sequence, texts) = match entry {
        JournalEntry::Start(sequence) => (START, 0, 0, *sequence, [&b""[..]; 3]),
        JournalEntry::Sites(sites) => (SITES, 0, 0, 0, [b"", b"", *sites]),
        JournalEntry::Purge(order, echo) => {
            let (kind, text) = order.target.parts();
            let how = u8::from(order.how == TagPurge::Stale);
            let echo = match echo {
                Echo::First => 0,
                Echo::Again => 1,
                Echo::OfNode => 2,
            };
            (kind, how, echo, order.sequence, [order.namespace, order.session, text])
        }
    };
    let is_fit = texts[..2].iter().all(|text| text.len() <= usize::from(u16::MAX));
    let size = FIXED + texts.iter().map(|text| text.len()).sum::<usize>();
    if !is_fit || size > ENTRY_MAX {
        let (namespace, session, target) = (&b""[..], &b""[..], DiskPurgeTarget::Everything);
        let order = DiskPurge { namespace, session, target, how: TagPurge::Dead, sequence };
        return push(out, &JournalEntry::Purge(order, Echo::First), unix_ms);
    }
    let start = out.len();
    out.extend_from_slice(&MARK);
    out.extend_from_slice(&(size as u32).to_le_bytes());
    out.extend_from_slice(&[0; 8]);
    out.extend_from_slice(&sequence.to_le_bytes());
    out.extend_from_slice(&unix_ms.to_le_bytes());
    out.extend_from_slice(&[kind, how, echo, 0]);
    for text in &texts[..2] {
        out.extend_from_slice(&(text.len() as u16).to_le_bytes());
    }
    texts.iter().for_each(|text| out.extend_from_slice(text));
    assert_eq!(out.len() - start, size, "an entry has the size that it declares");
    let sum = sum(&out[start..]);
    out[start + 8..start + 16].copy_from_slice(&sum.to_le_bytes());
    debug_assert!(
        self::entry(&out[start..]).is_some_and(|(read, _)| read == *entry),
        "a purge is read as it was written"
    );
}

fn entry(bytes: &[u8]) -> Option<(JournalEntry<'_>, usize)> {
    let fixed = bytes.first_chunk::<FIXED>()?;
    let size = u32::from_le_bytes(*fixed[4..].first_chunk()?) as usize;
    if fixed[..4] != MARK || !(FIXED..=ENTRY_MAX).contains(&size) {
        return None;
    }
    let mut copy = bytes.get(..size)?.to_vec();
    let stored = u64::from_le_bytes(*copy[8..].first_chunk()?);
    copy[8..16].fill(0);
    if stored != sum(&copy) {
        return None;
    }
    let sequence = u64::from_le_bytes(*fixed[16..].first_chunk()?);
    let [kind, how, echo, _] = *fixed[32..].first_chunk()?;
    if kind == START {
        return Some((JournalEntry::Start(sequence), size));
    }
    let namespace_len = usize::from(u16::from_le_bytes(*fixed[36..].first_chunk()?));
    let session_len = usize::from(u16::from_le_bytes(*fixed[38..].first_chunk()?));
    let (namespace, rest) = bytes[FIXED..size].split_at_checked(namespace_len)?;
    let (session, text) = rest.split_at_checked(session_len)?;
    if kind == SITES {
        return Some((JournalEntry::Sites(text), size));
    }
    let target = DiskPurgeTarget::of_parts(kind, text)?;
    let how = if how == 0 { TagPurge::Dead } else { TagPurge::Stale };
    let echo = match echo {
        0 => Echo::First,
        2 => Echo::OfNode,
        _ => Echo::Again,
    };
    let order = DiskPurge { namespace, session, target, how, sequence };
    Some((JournalEntry::Purge(order, echo), size))
}

/// The result of reading entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JournalRead {
    /// Bytes up to the end of the last valid entry.
    pub used: usize,
    /// Whether invalid bytes precede a valid entry.
    pub is_damaged: bool,
}

/// Reads the entries behind the head. An incomplete last entry may be in the middle of being
/// written.
pub fn read<'a>(bytes: &'a [u8], mut take: impl FnMut(JournalEntry<'a>)) -> JournalRead {
    let (mut at, mut used, mut is_damaged) = (0, 0, false);
    while at < bytes.len() {
        if let Some((entry, size)) = entry(&bytes[at..]) {
            is_damaged |= at != used;
            take(entry);
            at += size;
            used = at;
            continue;
        }
        // Searches the next mark.
        let rest = &bytes[at + 1..];
        match memchr::memmem::find(rest, &MARK) {
            Some(next) => at += 1 + next,
            None => break,
        }
    }
    JournalRead { used, is_damaged }
}

/// The contents of a journal.
#[derive(Debug, Default)]
pub struct Replay {
    pub(super) purges: Purges,
    rest: Vec<u8>,
    last: u64,
    sites: Vec<u8>,
    is_damaged: bool,
}

impl Replay {
    /// Parses the next bytes behind the head.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.rest.extend_from_slice(bytes);
        let (purges, sites, mut last) = (&mut self.purges, &mut self.sites, self.last);
        let read = read(&self.rest, |entry| match entry {
            JournalEntry::Start(sequence) => last = last.max(sequence),
            JournalEntry::Purge(order, _) => {
                last = last.max(order.sequence);
                purges.add(&order);
            }
            JournalEntry::Sites(text) => *sites = text.to_vec(),
        });
        self.last = last;
        self.is_damaged |= read.is_damaged;
        self.rest.drain(..read.used);
    }

    /// Whether part of it is unreadable. The lost entries may have purged anything: replace the
    /// journal with one that has another seal, so that no earlier object is used.
    #[must_use]
    pub const fn is_damaged(&self) -> bool {
        self.is_damaged || !self.rest.is_empty()
    }

    /// The sites of the process that wrote last; none if no process has used it.
    pub(super) fn sites(&self) -> Option<Vec<u8>> {
        (self.last > 0).then(|| self.sites.clone())
    }

    /// The greatest purge number in it.
    #[must_use]
    pub const fn last(&self) -> u64 {
        self.last
    }
}

/// An open journal, or one that could not be written.
#[derive(Debug, Default)]
pub(super) struct OpenJournal {
    pub(super) file: Option<FileRef>,
    /// The journal that was given up, until it is replaced.
    pub(super) given_up: Option<FileRef>,
}

impl OpenJournal {
    pub(super) fn give_up(&mut self) {
        if let Some(file) = self.file.take() {
            self.given_up = Some(file);
        }
    }
}

/// A purge of every object with a smaller number.
#[must_use]
pub fn everything(sequence: u64) -> JournalEntry<'static> {
    let (namespace, session, target) = (&b""[..], &b""[..], DiskPurgeTarget::Everything);
    let order = DiskPurge { namespace, session, target, how: TagPurge::Dead, sequence };
    JournalEntry::Purge(order, Echo::First)
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::{Echo, JournalEntry, JournalRead, head, push, read, seal};
    use crate::disk::purges::{DiskPurge, DiskPurgeTarget};
    use crate::tags::TagPurge;

    fn order(sequence: u64, text: &[u8]) -> JournalEntry<'_> {
        let (namespace, session, target) = (&b"page:a"[..], &b"s"[..], DiskPurgeTarget::Tag(text));
        JournalEntry::Purge(
            DiskPurge { namespace, session, target, how: TagPurge::Stale, sequence },
            Echo::Again,
        )
    }

    fn all(bytes: &[u8]) -> (Vec<JournalEntry<'_>>, JournalRead) {
        let mut found = Vec::new();
        let read = read(bytes, |entry| found.push(entry));
        (found, read)
    }

    #[test]
    fn a_head_is_known_by_its_sum() {
        let mut bytes = head(77);
        assert_eq!((seal(&bytes), seal(&bytes[..20])), (Some(77), None));
        bytes[9] ^= 1;
        assert_eq!(seal(&bytes), None);
    }

    #[test]
    fn what_is_torn_off_is_damage_only_when_more_follows() {
        let (mut first, mut second) = (Vec::new(), Vec::new());
        push(&mut first, &order(1, b"one"), 5);
        push(&mut second, &JournalEntry::Start(2), 6);
        for len in 0..first.len() {
            let torn = &first[..len];
            assert_eq!(all(torn), (vec![], JournalRead { used: 0, is_damaged: false }));
            let both = [torn, &second].concat();
            let used = both.len();
            assert_eq!(
                all(&both),
                (vec![JournalEntry::Start(2)], JournalRead { used, is_damaged: len > 0 })
            );
        }
        let both = [&first[..], &second].concat();
        let used = both.len();
        let found = vec![order(1, b"one"), JournalEntry::Start(2)];
        assert_eq!(all(&both), (found, JournalRead { used, is_damaged: false }));
    }

    #[test]
    fn the_last_sites_count_once_a_process_has_begun() {
        let mut replay = super::Replay::default();
        assert_eq!(replay.sites(), None);
        let mut bytes = Vec::new();
        push(&mut bytes, &JournalEntry::Start(7), 5);
        replay.feed(&bytes);
        assert_eq!(replay.sites(), Some(Vec::new()), "of an earlier process nothing is known");
        bytes.clear();
        [&b"12345678"[..], b"87654321"]
            .iter()
            .for_each(|ids| push(&mut bytes, &JournalEntry::Sites(ids), 5));
        replay.feed(&bytes);
        assert_eq!(replay.sites().as_deref(), Some(&b"87654321"[..]));
        assert!(!replay.is_damaged() && replay.last() == 7);
    }

    #[test]
    fn what_does_not_fit_is_everything() {
        let mut bytes = Vec::new();
        push(&mut bytes, &order(3, &vec![b'x'; 2 << 20]), 5);
        let (found, _) = all(&bytes);
        assert!(matches!(
            found[..],
            [JournalEntry::Purge(
                DiskPurge { target: DiskPurgeTarget::Everything, sequence: 3, .. },
                _
            )]
        ));
    }

    proptest! {
        #[test]
        fn what_is_pushed_is_read(texts in vec(vec(any::<u8>(), 0..60), 0..20)) {
            let mut bytes = Vec::new();
            for (number, text) in (0..).zip(&texts) {
                push(&mut bytes, &order(number, text), number);
            }
            let (found, read) = all(&bytes);
            let wanted: Vec<_> = (0..).zip(&texts).map(|(n, text)| order(n, text)).collect();
            prop_assert_eq!(found, wanted);
            prop_assert_eq!(read, JournalRead { used: bytes.len(), is_damaged: false });
        }

        /// No purge is lost silently: a missing one is reported as damage or as an incomplete end.
        #[test]
        fn a_changed_byte_never_loses_a_purge_unseen(
            at in any::<prop::sample::Index>(),
            to in any::<u8>(),
        ) {
            let mut bytes = Vec::new();
            for number in 0..9 {
                push(&mut bytes, &order(number, b"a tag"), number);
            }
            let at = at.index(bytes.len());
            let is_same = bytes[at] == to;
            bytes[at] = to;
            let (found, read) = all(&bytes);
            let lost = found.len() < 9;
            prop_assert_eq!(lost, !is_same);
            prop_assert_eq!(lost, read.is_damaged || read.used < bytes.len());
        }
    }
}
