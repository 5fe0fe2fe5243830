//! What is to be done for pages and their fragments between pulls.
//!
//! No exchange is stepped while bodies are pulled: this holds what is to be done until the pull is
//! over.

use bolide_base::{Slab, SlabKey};

use crate::exchange_table::ActiveExchange;

/// How a fragment ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SubrequestEnd {
    /// All of it went into the page: so many bytes.
    Sent(u64),
    /// The rest is not used.
    Unwanted,
}

/// What is to be done for pages and fragments between pulls.
#[derive(Debug, Default)]
pub(crate) struct SubrequestTree {
    /// Fragments that are over.
    pub(crate) over: Vec<(SlabKey<ActiveExchange>, SubrequestEnd)>,
    /// Pages that want more fragments asked for.
    pub(crate) eager: Vec<SlabKey<ActiveExchange>>,
    /// The page whose fragments are being asked for, which learns at the end what became of them;
    /// or one that has left.
    pub(crate) starting: Option<SlabKey<ActiveExchange>>,
}

impl SubrequestTree {
    /// Whether there is nothing to do.
    pub(crate) const fn is_idle(&self) -> bool {
        self.over.is_empty() && self.eager.is_empty()
    }

    /// A page may want more fragments asked for.
    pub(crate) fn note(&mut self, exchanges: &Slab<ActiveExchange>, page: SlabKey<ActiveExchange>) {
        if exchanges.get(page).is_some_and(|live| live.exchange.wants_fragments())
            && !self.eager.contains(&page)
        {
            self.eager.push(page);
        }
    }
}
