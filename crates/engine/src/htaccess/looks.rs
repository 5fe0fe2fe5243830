//! The state of looks ahead in a round; [`super::ahead`] makes them.

use std::rc::Rc;

use bolide_htaccess::{Ahead, AheadKind, Stop};

/// An internal request as Apache names it: by its path, which is empty for a file without a URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LookOf {
    pub(super) kind: AheadKind,
    /// The path of the request that looks ahead.
    pub(super) parent: Vec<u8>,
    pub(super) own: Vec<u8>,
    /// Its nesting depth, itself included.
    pub(super) depth: u8,
}

/// The target of a look.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LookTarget {
    pub(super) kind: AheadKind,
    pub(super) path: Vec<u8>,
}

/// LIMIT: bytes of the results of looks in one round.
const BYTES_MAX: usize = 1024 * 1024;

/// The state of looks ahead in a round.
#[derive(Clone, Debug, Default)]
pub(crate) struct AheadState {
    /// Set if the round is itself a look.
    of: Option<LookOf>,
    known: Vec<(LookTarget, Rc<Ahead>)>,
    /// Their approximate bytes.
    bytes: usize,
    /// The look that is missing.
    wanted: Option<LookTarget>,
}

impl AheadState {
    /// The state of a round that is itself a look.
    pub(super) fn new(of: LookOf) -> Self {
        debug_assert!(of.depth > 0, "a look is within itself");
        Self { of: Some(of), ..Self::default() }
    }

    /// The look that the round is, if it is one.
    pub(super) const fn of(&self) -> Option<&LookOf> {
        self.of.as_ref()
    }

    /// The number of looks made.
    pub(super) const fn known(&self) -> usize {
        self.known.len()
    }

    /// Takes the missing look.
    pub(super) fn take_wanted(&mut self) -> Option<LookTarget> {
        self.wanted.take()
    }

    /// Stores the result of a look until the end of the round; false if the limit is exceeded.
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

    /// The result of a look. As in Apache, a look for the path that is being looked at has none.
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
