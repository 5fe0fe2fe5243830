//! Compressed forms of files: made once, shared by all later requests until the file changes.
//!
//! ```text
//!             begin              finish, smaller than the file
//!   Absent ──────────▶ Pending ────────────────────────────────▶ Ready
//!     ▲                 │   │    finish, not smaller               │
//!     │   job dropped   │   └────────────────────▶ NotWorth        │
//!     └─────────────────┴──────── least recently used, evicted ────┘
//! ```
//!
//! The rule that is easiest to break: every byte of a `Ready` form is counted in the shared budget
//! exactly once, and is subtracted when the form is evicted or its file is dropped.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::{Rc, Weak};

use bolide_http::negotiate::Coding;
use bytes::Bytes;

use crate::OpenFile;
use crate::encode::{EncodeError, compress};

/// Which compressed form of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct VariantKey {
    /// The coding.
    pub coding: Coding,
    /// Its level, as configured.
    pub level: i8,
}

/// How far a compressed form is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileVariant {
    /// Never requested, or evicted.
    Absent,
    /// It is being made.
    Pending,
    /// It is here.
    Ready(Bytes),
    /// It would not be smaller than the file.
    NotWorth,
}

/// Compressed forms that one file may have; further levels are not stored.
const FORMS_MAX: usize = 8;

#[derive(Debug)]
struct Form {
    key: VariantKey,
    state: FileVariant,
    used: Cell<bool>,
}

/// Bytes of `Ready` forms, shared between a table and its files.
type Budget = Rc<Cell<u64>>;

/// The compressed forms of one file.
#[derive(Debug)]
pub(crate) struct VariantSet {
    forms: RefCell<Vec<Form>>,
    used: Budget,
}

impl VariantSet {
    pub(crate) const fn new(used: Budget) -> Self {
        Self { forms: RefCell::new(Vec::new()), used }
    }

    #[inline]
    pub(crate) fn find(&self, key: VariantKey) -> FileVariant {
        let forms = self.forms.borrow();
        let Some(form) = forms.iter().find(|form| form.key == key) else {
            return FileVariant::Absent;
        };
        form.used.set(true);
        form.state.clone()
    }

    /// Sets the state of a form and updates the budget; false when there is no room for another.
    fn set(&self, key: VariantKey, state: FileVariant) -> bool {
        let mut forms = self.forms.borrow_mut();
        let at = forms.iter().position(|form| form.key == key);
        let before = at.map_or(FileVariant::Absent, |at| forms[at].state.clone());
        let used = self.used.get() + size(&state) - size(&before);
        match (at, state) {
            (Some(at), FileVariant::Absent) => {
                forms.swap_remove(at);
            }
            (Some(at), state) => {
                forms[at].state = state;
                // A form must be requested again to survive its first visit by the ring.
                forms[at].used.set(false);
            }
            (None, FileVariant::Absent) => {}
            (None, _) if forms.len() >= FORMS_MAX => return false,
            (None, state) => forms.push(Form { key, state, used: Cell::new(false) }),
        }
        self.used.set(used);
        true
    }

    /// Whether a form is `Ready` and was used since the last call.
    fn take_used(&self, key: VariantKey) -> bool {
        let forms = self.forms.borrow();
        forms.iter().any(|form| form.key == key && form.used.replace(false))
    }
}

impl Drop for VariantSet {
    fn drop(&mut self) {
        let held: u64 = self.forms.get_mut().iter().map(|form| size(&form.state)).sum();
        self.used.set(self.used.get() - held);
    }
}

fn size(state: &FileVariant) -> u64 {
    match state {
        FileVariant::Ready(bytes) => bytes.len() as u64,
        FileVariant::Absent | FileVariant::Pending | FileVariant::NotWorth => 0,
    }
}

/// The job to compress a file. Dropping it unfinished makes the form absent again.
#[derive(Debug)]
pub struct CompressJob {
    file: Rc<OpenFile>,
    key: VariantKey,
    data: Bytes,
}

impl CompressJob {
    /// Which form is to be made.
    #[must_use]
    pub const fn key(&self) -> VariantKey {
        self.key
    }

    /// The file it is a form of.
    #[must_use]
    pub const fn file(&self) -> &Rc<OpenFile> {
        &self.file
    }

    /// The bytes to compress, for a thread that cannot take the job itself.
    #[must_use]
    pub const fn data(&self) -> &Bytes {
        &self.data
    }

    /// Compresses; takes as long as it needs.
    ///
    /// # Errors
    ///
    /// As [`compress`].
    pub fn run(&self) -> Result<Vec<u8>, EncodeError> {
        compress(self.key.coding, self.key.level, &self.data)
    }
}

impl Drop for CompressJob {
    fn drop(&mut self) {
        if self.file.variants.find(self.key) == FileVariant::Pending {
            self.file.variants.set(self.key, FileVariant::Absent);
        }
    }
}

/// All `Ready` forms of a table, in the order of the eviction scan.
#[derive(Debug)]
pub(crate) struct VariantRing {
    used: Budget,
    max: u64,
    queue: VecDeque<(Weak<OpenFile>, VariantKey)>,
}

impl VariantRing {
    pub(crate) fn new(max: u64) -> Self {
        Self { used: Rc::new(Cell::new(0)), max, queue: VecDeque::new() }
    }

    /// An empty set for a new file.
    pub(crate) fn new_set(&self) -> VariantSet {
        VariantSet::new(self.used.clone())
    }

    /// Bytes of `Ready` forms.
    pub(crate) fn used(&self) -> u64 {
        self.used.get()
    }

    /// Makes the form pending; `None` unless it is absent and the file's content is in memory.
    pub(crate) fn begin(file: &Rc<OpenFile>, key: VariantKey) -> Option<CompressJob> {
        let data = file.content()?.clone();
        if file.variants.find(key) != FileVariant::Absent
            || !file.variants.set(key, FileVariant::Pending)
        {
            return None;
        }
        Some(CompressJob { file: file.clone(), key, data })
    }

    /// Stores the result of a job.
    pub(crate) fn finish(
        &mut self,
        job: &CompressJob,
        output: Result<Vec<u8>, EncodeError>,
    ) -> FileVariant {
        let state = match output {
            Ok(bytes) if bytes.len() < job.data.len() => FileVariant::Ready(Bytes::from(bytes)),
            Ok(_) | Err(EncodeError) => FileVariant::NotWorth,
        };
        if job.file.variants.find(job.key) != FileVariant::Pending {
            return state;
        }
        job.file.variants.set(job.key, state.clone());
        if matches!(state, FileVariant::Ready(_)) {
            self.drop_dead(2);
            self.queue.push_back((Rc::downgrade(&job.file), job.key));
            self.evict();
        }
        state
    }

    /// Visits `visits` places and drops those whose file is gone, so that the queue stays
    /// proportional to the live files.
    fn drop_dead(&mut self, visits: usize) {
        for _ in 0..visits.min(self.queue.len()) {
            if let Some(place) = self.queue.pop_front()
                && place.0.strong_count() > 0
            {
                self.queue.push_back(place);
            }
        }
    }

    fn evict(&mut self) {
        let mut visits = 2 * self.queue.len();
        while self.used.get() > self.max && visits > 0 {
            visits -= 1;
            let Some((file, key)) = self.queue.pop_front() else { return };
            let Some(alive) = file.upgrade() else { continue };
            if alive.variants.take_used(key) {
                self.queue.push_back((file, key));
            } else {
                alive.variants.set(key, FileVariant::Absent);
            }
        }
    }
}
