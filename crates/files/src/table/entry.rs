//! An entry of the table: what is known of a path.

use std::rc::Rc;
use std::time::Duration;

use bolide_base::Instant;

use super::Known;
use crate::OpenFailure;
use crate::open::{FileKind, Meta, OpenFile};
use crate::probe::SymlinkPolicy;

#[derive(Debug)]
pub(super) enum State {
    File(Rc<OpenFile>),
    Seen(Meta),
    Refused(FailedLook),
}

/// A look that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FailedLook {
    pub(super) failure: OpenFailure,
    /// What lies there all the same.
    pub(super) seen: Option<Meta>,
}

impl FailedLook {
    pub(super) const fn known(self) -> Known {
        match self.seen {
            Some(meta) => Known::Closed(meta, self.failure),
            None => Known::Missing(self.failure),
        }
    }
}

impl State {
    /// Whether both results are the same.
    pub(super) fn is(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::File(own), Self::File(other)) => Rc::ptr_eq(own, other),
            (Self::Seen(own), Self::Seen(other)) => own == other,
            (Self::Refused(own), Self::Refused(other)) => own == other,
            _ => false,
        }
    }
}

#[derive(Debug)]
pub(super) struct FileEntry {
    pub(super) path: Rc<[u8]>,
    pub(super) state: State,
    pub(super) checked: Instant,
    pub(super) used: Instant,
    pub(super) uses: u32,
    /// Set by use, cleared by the clock's hand.
    pub(super) referenced: bool,
    /// Read so soon after a change that equal times prove no equality.
    pub(super) racy: bool,
    /// The directories on its path were watched before the lookup, and no change was reported.
    pub(super) watched: bool,
    /// In which part of a turn it was looked up.
    pub(super) part: u32,
    pub(super) symlinks: SymlinkPolicy,
    pub(super) inactive: Duration,
}

impl FileEntry {
    pub(super) fn content_len(&self) -> u64 {
        match &self.state {
            State::File(file) => {
                let content = file.content().map_or(0, |content| content.len() as u64);
                content + file.reading_weight.get()
            }
            State::Seen(_) | State::Refused(_) => 0,
        }
    }

    pub(super) fn holds_descriptor(&self) -> bool {
        match &self.state {
            State::File(file) => file.content().is_none(),
            State::Seen(_) | State::Refused(_) => false,
        }
    }

    /// Whether it holds a descriptor that no response uses.
    pub(super) fn holds_spare_descriptor(&self) -> bool {
        match &self.state {
            State::File(file) => file.content().is_none() && Rc::strong_count(file) == 1,
            State::Seen(_) | State::Refused(_) => false,
        }
    }

    /// Whether a result found under this entry's rule for links is valid for a request with `rule`.
    pub(super) fn satisfies(&self, rule: SymlinkPolicy) -> bool {
        let found = !matches!(self.state, State::Refused(_));
        self.symlinks == rule || found && rule == SymlinkPolicy::Follow
    }

    pub(super) fn known(&self) -> Known {
        match &self.state {
            State::File(file) => Known::File(file.clone()),
            State::Seen(meta) if meta.kind == FileKind::Directory => Known::Directory(*meta),
            State::Seen(meta) => Known::Seen(*meta),
            State::Refused(refusal) => refusal.known(),
        }
    }
}
