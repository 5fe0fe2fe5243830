//! What a round knows of looks ahead; making them is [`super::ahead`]'s.

use std::rc::Rc;

use bolide_htaccess::{Ahead, AheadKind, Stop};

/// A request inside the server as Apache names it: by its path, which is empty where it is for a
/// file elsewhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LookOf {
    pub(super) kind: AheadKind,
    /// The path of the request that looks ahead.
    pub(super) parent: Vec<u8>,
    pub(super) own: Vec<u8>,
    /// How many looks it is within, itself included.
    pub(super) depth: u8,
}

/// Where a look goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LookTarget {
    pub(super) kind: AheadKind,
    pub(super) path: Vec<u8>,
}

/// LIMIT: bytes of what looks ahead of one round come to.
const BYTES_MAX: usize = 1024 * 1024;

/// What a round knows of looks ahead.
#[derive(Clone, Debug, Default)]
pub(crate) struct AheadState {
    /// Set where the round is itself such a look.
    of: Option<LookOf>,
    known: Vec<(LookTarget, Rc<Ahead>)>,
    /// About how many bytes they have.
    bytes: usize,
    /// The look that is missing.
    wanted: Option<LookTarget>,
}

impl AheadState {
    /// That of a round that is itself a look ahead.
    pub(super) fn new(of: LookOf) -> Self {
        debug_assert!(of.depth > 0, "a look is within itself");
        Self { of: Some(of), ..Self::default() }
    }

    /// What the round is a look at, if it is one.
    pub(super) const fn of(&self) -> Option<&LookOf> {
        self.of.as_ref()
    }

    /// How many looks were made.
    pub(super) const fn known(&self) -> usize {
        self.known.len()
    }

    /// The look that was missing.
    pub(super) fn take_wanted(&mut self) -> Option<LookTarget> {
        self.wanted.take()
    }

    /// Keeps what a look came to, until the end of the round; false where that is too much.
    #[must_use]
    pub(super) fn keep(&mut self, target: LookTarget, found: Ahead) -> bool {
        debug_assert!(found.status >= 100, "a look comes to a status");
        self.bytes += target.path.len() + found.bytes();
        self.known.push((target, Rc::new(found)));
        self.bytes <= BYTES_MAX
    }

    /// Whether the round is itself a look ahead.
    pub(super) const fn is_look(&self) -> bool {
        self.of.is_some()
    }

    /// What a look came to. As in Apache, one for the path that is looked ahead to is none.
    pub(super) fn ask(&mut self, kind: AheadKind, path: &[u8]) -> Result<Option<Rc<Ahead>>, Stop> {
        if self.of.as_ref().is_some_and(|of| of.parent == of.own) {
            return Ok(None);
        }
        let is_it = |(of, _): &&(LookTarget, _)| of.kind == kind && of.path == path;
        if let Some((_, found)) = self.known.iter().find(is_it) {
            return Ok(Some(Rc::clone(found)));
        }
        self.wanted = Some(LookTarget { kind, path: path.to_vec() });
        Err(Stop::Wait)
    }
}
