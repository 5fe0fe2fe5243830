//! One include of a page that is put together, and how it stands.

use std::sync::Arc;

use bolide_cache::Object;
use bolide_esi::EsiInclude;

/// How a fragment stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FragmentStanding {
    /// Not asked for; the second one means its `alt`.
    New,
    Alternative,
    /// Asked for, by the exchange of this name; its head has not come.
    Asked(u64),
    /// Its head has come and is good.
    Answering(u64),
    /// The same as the include of this number.
    Same(u32),
    /// It is a kept answer.
    Here,
    /// Is to ask for others, when it is known which.
    Held,
    /// Not kept: asked for with others.
    Missing,
    /// Gives nothing.
    Nothing,
}

/// An include that came up and is not over.
#[derive(Debug)]
pub(super) struct Fragment {
    pub(super) include: EsiInclude,
    /// Among the includes of the page.
    pub(super) number: u32,
    pub(super) standing: FragmentStanding,
    /// Whether bytes of it were taken.
    pub(super) has_begun: bool,
    /// Whether `alt` was tried.
    pub(super) is_second: bool,
    /// The kept answer that it is, and what of it has left: bytes, or parts.
    pub(super) object: Option<Arc<Object>>,
    pub(super) at: u64,
}

impl Fragment {
    pub(super) const fn is_asked(&self) -> bool {
        matches!(self.standing, FragmentStanding::Asked(_) | FragmentStanding::Answering(_))
    }

    pub(super) fn is_by(&self, child: u64) -> bool {
        use FragmentStanding::{Answering, Asked};
        matches!(self.standing, Asked(by) | Answering(by) if by == child)
    }
}
