//! The encoding of an entry: sender and purges, with version, checksum and the cluster's name.

use bolide_cache::disk::DiskPurge;
use bolide_cache::disk::format::sum;
use bolide_cache::disk::journal::{self, JournalEntry};

/// The common prefix of all versions, and the version.
const MAGIC: [u8; 8] = *b"bolideC2";
/// Magic, checksum, life, number, lengths of cluster and node.
const FIXED: usize = 8 + 8 + 8 + 8 + 2 + 2;

/// An entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PurgeRecord<'a> {
    /// The name of the cluster.
    pub cluster: &'a [u8],
    /// The node that sends it.
    pub node: &'a [u8],
    /// The process that sends it, a random number.
    pub life: u64,
    /// Its number among the entries of the process: a repeated entry has a new number, so that no
    /// two are equal.
    pub number: u64,
    /// Entries in the format of the journal; their numbers are those of the process.
    pub purges: &'a [u8],
}

/// Why bytes are not an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordFault {
    /// They are not an entry of this version.
    Foreign,
    /// The checksum does not match.
    Damaged,
}

impl<'a> PurgeRecord<'a> {
    /// Appends the encoding. Names are truncated to the maximum of their length fields.
    pub fn write(&self, out: &mut Vec<u8>) {
        let cut = |name: &'a [u8]| &name[..name.len().min(usize::from(u16::MAX))];
        let (cluster, node, start) = (cut(self.cluster), cut(self.node), out.len());
        out.extend_from_slice(&MAGIC);
        out.extend_from_slice(&[0; 8]);
        out.extend_from_slice(&self.life.to_le_bytes());
        out.extend_from_slice(&self.number.to_le_bytes());
        for name in [cluster, node] {
            out.extend_from_slice(&(name.len() as u16).to_le_bytes());
        }
        out.extend_from_slice(cluster);
        out.extend_from_slice(node);
        out.extend_from_slice(self.purges);
        let sum = sum(&out[start..]);
        out[start + 8..start + 16].copy_from_slice(&sum.to_le_bytes());
    }

    /// Parses bytes.
    ///
    /// # Errors
    ///
    /// They are not an entry of this version, or incomplete.
    pub fn read(bytes: &'a [u8]) -> Result<Self, RecordFault> {
        if !bytes.starts_with(&MAGIC) {
            return Err(RecordFault::Foreign);
        }
        Self::read_parts(bytes).ok_or(RecordFault::Damaged)
    }

    fn read_parts(bytes: &'a [u8]) -> Option<Self> {
        let fixed = bytes.first_chunk::<FIXED>()?;
        let expected = u64::from_le_bytes(*fixed[8..].first_chunk()?);
        let mut copy = bytes.to_vec();
        copy[8..16].fill(0);
        if expected != sum(&copy) {
            return None;
        }
        let life = u64::from_le_bytes(*fixed[16..].first_chunk()?);
        let number = u64::from_le_bytes(*fixed[24..].first_chunk()?);
        let cluster_len = u16::from_le_bytes(*fixed[32..].first_chunk()?);
        let node_len = u16::from_le_bytes(*fixed[34..].first_chunk()?);
        let (cluster, rest) = bytes[FIXED..].split_at_checked(cluster_len.into())?;
        let (node, purges) = rest.split_at_checked(node_len.into())?;
        Some(Self { cluster, node, life, number, purges })
    }

    /// Its purges; `None` if one is invalid or their numbers have gaps.
    #[must_use]
    pub fn purges(&self) -> Option<Vec<DiskPurge<'a>>> {
        let (mut found, mut is_good) = (Vec::new(), true);
        let read = journal::read(self.purges, |entry| match entry {
            JournalEntry::Purge(order, _) => {
                let before: Option<&DiskPurge<'_>> = found.last();
                is_good &=
                    before.is_none_or(|last| last.sequence.checked_add(1) == Some(order.sequence));
                found.push(order);
            }
            JournalEntry::Start(_) | JournalEntry::Sites(_) => is_good = false,
        });
        (is_good && !read.is_damaged && read.used == self.purges.len()).then_some(found)
    }
}

#[cfg(test)]
mod tests {
    use bolide_cache::TagPurge;
    use bolide_cache::disk::journal::{self, Echo, JournalEntry};
    use bolide_cache::disk::{DiskPurge, DiskPurgeTarget};
    use proptest::prelude::*;

    use super::{PurgeRecord, RecordFault};

    fn purges(numbers: &[u64]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for &sequence in numbers {
            let (namespace, session, target) = (&b"a"[..], &b""[..], DiskPurgeTarget::Tag(b"t"));
            let order = DiskPurge { namespace, session, target, how: TagPurge::Dead, sequence };
            journal::push(&mut bytes, &JournalEntry::Purge(order, Echo::First), 0);
        }
        bytes
    }

    fn written(purges: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        PurgeRecord { cluster: b"shop", node: b"n1", life: 7, number: 3, purges }.write(&mut bytes);
        bytes
    }

    #[test]
    fn an_entry_is_read_as_it_was_written() {
        let purges = purges(&[4, 5, 6]);
        let bytes = written(&purges);
        let read = PurgeRecord::read(&bytes).expect("an entry");
        let (cluster, node) = (&b"shop"[..], &b"n1"[..]);
        let wanted = PurgeRecord { cluster, node, life: 7, number: 3, purges: &purges };
        assert_eq!(read, wanted);
        let numbers = read.purges().map(|all| all.iter().map(|one| one.sequence).collect());
        assert_eq!(numbers, Some(vec![4, 5, 6]));
    }

    #[test]
    fn gaps_and_rests_are_no_purges() {
        for purges in [purges(&[4, 6]), purges(&[4, 4]), [purges(&[4]), b"x".to_vec()].concat()] {
            let bytes = written(&purges);
            assert_eq!(PurgeRecord::read(&bytes).ok().and_then(|read| read.purges()), None);
        }
        assert_eq!(PurgeRecord::read(b"bolideC1 and more"), Err(RecordFault::Foreign));
        assert_eq!(PurgeRecord::read(b""), Err(RecordFault::Foreign));
        assert_eq!(PurgeRecord::read(b"bolideC2"), Err(RecordFault::Damaged));
    }

    proptest! {
        #[test]
        fn a_changed_or_missing_byte_is_noticed(
            at in any::<prop::sample::Index>(),
            to: u8,
            cut: bool,
        ) {
            let mut bytes = written(&purges(&[1, 2]));
            let at = at.index(bytes.len());
            let is_same = bytes[at] == to && !cut;
            match cut {
                true => bytes.truncate(at),
                false => bytes[at] = to,
            }
            prop_assert_eq!(PurgeRecord::read(&bytes).is_ok(), is_same);
        }
    }
}
