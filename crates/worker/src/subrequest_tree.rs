//! Work for pages and their subrequests that is deferred while bodies are pulled.
//!
//! No exchange is stepped during a pull.

use bolide_base::{Slab, SlabKey};

use crate::exchange_table::ActiveExchange;

/// How a subrequest ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SubrequestEnd {
    /// All of its bytes went into the page; this many.
    Sent(u64),
    /// The rest is not needed.
    Unwanted,
}

/// Work for pages and subrequests that is deferred until the end of a pull.
#[derive(Debug, Default)]
pub(crate) struct SubrequestTree {
    /// Subrequests that have ended.
    pub(crate) over: Vec<(SlabKey<ActiveExchange>, SubrequestEnd)>,
    /// Pages that may start more subrequests.
    pub(crate) eager: Vec<SlabKey<ActiveExchange>>,
    /// The page whose subrequests are being started, which gets their immediate results at the end;
    /// or one that is gone.
    pub(crate) starting: Option<SlabKey<ActiveExchange>>,
}

impl SubrequestTree {
    /// Whether there is nothing to do.
    pub(crate) const fn is_idle(&self) -> bool {
        self.over.is_empty() && self.eager.is_empty()
    }

    /// Records a page that may start more subrequests.
    pub(crate) fn note(&mut self, exchanges: &Slab<ActiveExchange>, page: SlabKey<ActiveExchange>) {
        if exchanges.get(page).is_some_and(|live| live.exchange.wants_fragments())
            && !self.eager.contains(&page)
        {
            self.eager.push(page);
        }
    }
}
