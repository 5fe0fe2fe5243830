//! The sites whose purges reach the files of a tree: those of the configuration in force, and those
//! that the journal has of the last process.

use std::collections::BTreeSet;

/// A site that purges reach.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiskSite {
    /// The name of its namespace.
    pub name: Box<[u8]>,
    /// What its purges depend on beside their targets.
    pub reach: Vec<u8>,
}

/// The sites of a tree.
#[derive(Debug, Default)]
pub(super) struct Sites {
    /// Those of the configuration, with their ids.
    pub(super) own: Vec<(DiskSite, u64)>,
    /// The ids of those of the last process; none if the journal is new.
    pub(super) last: Option<Vec<u8>>,
}

impl Sites {
    /// The ids of the sites of the configuration, in order, for the journal.
    pub(super) fn ids(&self) -> Vec<u8> {
        let ids: BTreeSet<u64> = self.own.iter().map(|own| own.1).collect();
        ids.into_iter().flat_map(u64::to_le_bytes).collect()
    }

    /// The sites that the last process did not have as they are.
    pub(super) fn new_ones(&self) -> impl Iterator<Item = &DiskSite> {
        let last = self.last.as_deref();
        debug_assert!(last.is_none_or(|last| last.len() % 8 == 0), "an id has eight bytes");
        let is_new = move |(_, id): &&(DiskSite, u64)| {
            let id = id.to_le_bytes();
            last.is_some_and(|last| !last.chunks_exact(8).any(|known| *known == id))
        };
        self.own.iter().filter(is_new).map(|own| &own.0)
    }
}
