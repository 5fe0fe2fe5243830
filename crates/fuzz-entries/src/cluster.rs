//! Entries of a cluster's stream, as a hostile or damaged Valkey server may return them.

use bolide_cache::TagPurge;
use bolide_cache::disk::journal::{self, Echo, JournalEntry};
use bolide_cache::disk::{DiskPurge, DiskPurgeTarget};
use bolide_cluster::{
    ClusterMachine, EntryId, EntryMark, EntryOutcome, Loss, Peer, PurgeRecord, StreamFacts,
};

/// LIMIT: entries of one input.
const ENTRIES_MAX: usize = 64;

/// Parses `data` as entries, each after its length; an odd length means the purges of a valid
/// record.
pub fn stream(mut data: &[u8]) {
    let _ = Peer::read(&String::from_utf8_lossy(data));
    let _ = String::from_utf8_lossy(data).parse::<EntryId>();
    let mut machine = ClusterMachine::new(b"c", b"n", 1);
    machine.attach(Some(EntryMark::default()));
    let facts = StreamFacts { has_position: true, ..StreamFacts::default() };
    assert_eq!(machine.check(&facts), Ok(()), "a position that is there is good");
    let mut last = std::collections::HashMap::new();
    for ms in 1..=ENTRIES_MAX as u64 {
        let Some((size, rest)) = data.split_first() else { break };
        let (text, rest) = rest.split_at(rest.len().min(usize::from(*size)));
        data = rest;
        let life = 2 + u64::from(*size) % 3;
        let mut good = Vec::new();
        if size % 2 == 1 {
            let purges = purges(text);
            let (cluster, node, number) = (&b"c"[..], &b"o"[..], ms);
            PurgeRecord { cluster, node, life, number, purges: &purges }.write(&mut good);
        }
        let bytes = if good.is_empty() { text } else { &good };
        let id = EntryId { ms, number: 0 };
        let mut numbers = Vec::new();
        let received = machine.receive(id, Some(bytes), |order| numbers.push(order.sequence));
        assert_eq!(machine.position(), Some(id), "whatever an entry is, the next one follows");
        if !good.is_empty() {
            let lost = EntryOutcome::Lost(Loss::Gap);
            assert!(received == EntryOutcome::Good || received == lost, "a good record is read");
            for number in numbers {
                let before = last.insert(life, number);
                assert!(before.is_none_or(|before| before < number), "each purge once, in order");
            }
        }
        let again = machine.receive(id, Some(bytes), |_| panic!("an entry is taken once"));
        assert_eq!(again, EntryOutcome::Known);
    }
}

/// Purges whose tags are the words of a text, with numbers that depend on its first byte.
fn purges(text: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let first = u64::from(text.first().copied().unwrap_or(1));
    for (sequence, word) in (first..).zip(text.split(|byte| *byte == b' ')) {
        let (namespace, session, target) = (&b"a"[..], &b""[..], DiskPurgeTarget::Tag(word));
        let order = DiskPurge { namespace, session, target, how: TagPurge::Stale, sequence };
        journal::push(&mut bytes, &JournalEntry::Purge(order, Echo::First), 0);
    }
    bytes
}
