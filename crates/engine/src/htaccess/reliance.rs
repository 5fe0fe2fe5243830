//! The dependencies of an evaluation: its result holds for requests with the same ones.
//!
//! Owns their recording, within limits. Easiest to break: everything that an evaluation asks must
//! be recorded here.

use std::cell::{Cell, RefCell};

use bolide_base::Instant;
use bolide_files::{FileTable, LapseMark, ProbePolicy};

use super::questions::{Question, Reply};

/// LIMIT: questions of a stored ruling.
const QUESTIONS_MAX: usize = 64;
/// LIMIT: bytes of the replies of a stored ruling.
const REPLIES_MAX: usize = 1024;
/// LIMIT: paths on disk that a stored ruling depends on.
const RELIED_MAX: usize = 64;

/// The dependencies of an evaluation, besides the path and the directives of its directories.
#[derive(Debug)]
pub(super) struct Reliance {
    /// Whether there are no other dependencies.
    pub(super) is_general: Cell<bool>,
    /// Until when the file lookups are valid.
    pub(super) until: Cell<Instant>,
    /// The questions about the request, with their replies.
    pub(super) replies: RefCell<Vec<(Question, Reply)>>,
    /// Bytes of the replies.
    replied: Cell<usize>,
    /// The paths on disk that were looked up.
    pub(super) relied: RefCell<Vec<LapseMark>>,
}

impl Default for Reliance {
    fn default() -> Self {
        Self {
            is_general: Cell::new(true),
            until: Cell::new(Instant::from_nanos(u64::MAX)),
            replies: RefCell::default(),
            replied: Cell::new(0),
            relied: RefCell::default(),
        }
    }
}

impl Reliance {
    /// Records a dependency that cannot be stored.
    pub(super) fn depends(&self) {
        self.is_general.set(false);
    }

    /// Records a question about the request.
    pub(super) fn asked(&self, question: impl FnOnce() -> Question, reply: impl FnOnce() -> Reply) {
        if !self.is_general.get() {
            return;
        }
        let (question, mut replies) = (question(), self.replies.borrow_mut());
        if replies.iter().any(|(known, _)| *known == question) {
            return;
        }
        debug_assert!(replies.len() <= QUESTIONS_MAX, "questions of an evaluation are bounded");
        let reply = reply();
        let text = match &reply {
            Reply::Text(text) => text.as_ref().map_or(0, |text| text.len()),
            Reply::Matches(_) => 0,
        };
        self.replied.set(self.replied.get() + text);
        match replies.len() < QUESTIONS_MAX && self.replied.get() <= REPLIES_MAX {
            true => replies.push((question, reply)),
            false => self.depends(),
        }
    }

    /// Records a dependency on what `files` knows of `path`.
    pub(super) fn relies_on(&self, files: &FileTable, path: &[u8], policy: &ProbePolicy) {
        if !self.is_general.get() {
            return;
        }
        match files.vouched_until(path, policy) {
            Some(until) => self.until.set(self.until.get().min(until)),
            None => return self.depends(),
        }
        let (mark, mut relied) = (files.mark(path), self.relied.borrow_mut());
        match relied.len() < RELIED_MAX {
            _ if relied.contains(&mark) => {}
            true => relied.push(mark),
            false => self.depends(),
        }
    }
}
