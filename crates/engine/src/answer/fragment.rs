//! One include of an ESI page, and its state.

use std::sync::Arc;

use bolide_cache::Object;
use bolide_esi::EsiInclude;

/// The state of a fragment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FragmentStanding {
    /// Not requested yet, or its `alt` is not.
    New,
    Alternative,
    /// Requested by the exchange with this key; its head has not arrived.
    Asked(u64),
    /// Its head has arrived and is usable.
    Answering(u64),
    /// It has the same content as the include with this number.
    Same(u32),
    /// It is a cached object.
    Here,
    /// The combined request; it waits until the missing fragments are known.
    Held,
    /// Not cached: part of the combined request.
    Missing,
    /// It is left out.
    Nothing,
}

/// An include that was parsed and is not completely sent.
#[derive(Debug)]
pub(super) struct Fragment {
    pub(super) include: EsiInclude,
    /// Its number in the page.
    pub(super) number: u32,
    pub(super) standing: FragmentStanding,
    /// Whether bytes of it were taken.
    pub(super) has_begun: bool,
    /// Whether `alt` was tried.
    pub(super) is_second: bool,
    /// The cached object, and how many bytes or parts of it were sent.
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
