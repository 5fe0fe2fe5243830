//! Rulings that hold for the next request for the same path, and what an evaluation relied on.
//!
//! Owns when a ruling may be used again: it was made of the path and of files that the kernel
//! vouches for, and of nothing else that a request has. Refuses what is older than a look at those
//! files. Easiest to break: whatever an evaluation asks has to be noted in [`Reliance`].

use std::cell::{Cell, RefCell};
use std::hash::BuildHasher;
use std::rc::Rc;

use bolide_base::{Instant, Now};
use bolide_files::hash::Seeded;
use bolide_files::{FileTable, LapseMark, ProbePolicy};
use bolide_http::{Method, RequestBody};

use super::ruling::HtaccessRuling;
use crate::request::Request;
use crate::site::Site;

/// LIMIT: rulings that a worker keeps. One that comes later takes the place of another.
const KEPT_MAX: usize = 4096;
/// LIMIT: fields whose absence a ruling that is kept relies on.
const ABSENT_MAX: usize = 4;
/// LIMIT: paths on disk that a ruling that is kept relies on.
const RELIED_MAX: usize = 64;
/// LIMIT: bytes of a path whose ruling is kept.
const PATH_MAX: usize = 1024;

/// What an evaluation relied on, beside the path and what is said of the directories above it.
#[derive(Debug)]
pub(super) struct Reliance {
    /// Whether it relied on nothing else.
    is_general: Cell<bool>,
    /// Until when what is known of files holds.
    until: Cell<Instant>,
    /// Fields that the request had not.
    absent: RefCell<Vec<Box<[u8]>>>,
    /// The paths on disk that were looked at.
    relied: RefCell<Vec<LapseMark>>,
}

impl Default for Reliance {
    fn default() -> Self {
        Self {
            is_general: Cell::new(true),
            until: Cell::new(Instant::from_nanos(u64::MAX)),
            absent: RefCell::default(),
            relied: RefCell::default(),
        }
    }
}

impl Reliance {
    /// It relied on something that another request has otherwise.
    pub(super) fn depends(&self) {
        self.is_general.set(false);
    }

    /// It relied on a field that is not there.
    pub(super) fn lacks(&self, name: &[u8]) {
        let mut absent = self.absent.borrow_mut();
        if absent.iter().any(|known| known.eq_ignore_ascii_case(name)) {
            return;
        }
        match absent.len() < ABSENT_MAX {
            true => absent.push(name.into()),
            false => self.depends(),
        }
    }

    /// It relied on what `files` knows of `path`.
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

/// A ruling with all that it is for.
#[derive(Debug)]
struct KeptRuling {
    site: u64,
    server: u32,
    location: u32,
    entry: RoundEntry,
    uri: Box<[u8]>,
    absent: Vec<Box<[u8]>>,
    /// What had lapsed when it was last seen to hold.
    lapses: u64,
    relied: Box<[LapseMark]>,
    until: Instant,
    /// None where no file has a say.
    ruling: Option<Rc<HtaccessRuling>>,
    /// Whether stores have no part in the answer.
    is_unkeyed: bool,
}

impl KeptRuling {
    /// Whether nothing lapsed that it relies on; what else did is seen once.
    #[inline]
    fn holds(&mut self, files: &FileTable) -> bool {
        self.lapses == files.lapses() || self.holds_still(files)
    }

    #[cold]
    fn holds_still(&mut self, files: &FileTable) -> bool {
        let holds = self.relied.iter().all(|mark| files.stands(*mark));
        if holds {
            self.lapses = files.lapses();
        }
        holds
    }
}

/// How a request comes to this step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RoundEntry {
    is_head: bool,
    /// Whether the path is that of an index.
    is_index: bool,
}

impl RoundEntry {
    /// None for a request whose ruling is its own: it has a method or a body that may matter, it is
    /// part of another one, or files had a say before.
    #[inline]
    pub(super) fn of(request: &Request) -> Option<Self> {
        let is_head = match request.method {
            Method::Get => false,
            Method::Head => true,
            _ => return None,
        };
        let is_plain = request.head().body == RequestBody::None
            && !request.role.is_inside()
            && !request.in_error_page;
        if !is_plain {
            return None;
        }
        let is_index = match &request.htaccess {
            None => false,
            Some(ruling) if ruling.is_only_index() => true,
            Some(_) => return None,
        };
        Some(Self { is_head, is_index })
    }
}

/// The rulings that one worker keeps, each at the place of its path's hash.
#[derive(Debug)]
pub struct HtaccessMemory {
    slots: Vec<Option<KeptRuling>>,
    recalled: u64,
    hasher: Seeded,
}

impl HtaccessMemory {
    /// An empty one; `seed` should be secret.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self { slots: Vec::new(), recalled: 0, hasher: Seeded::new(seed) }
    }

    /// How often a ruling was used again.
    #[must_use]
    pub const fn recalled(&self) -> u64 {
        self.recalled
    }

    fn slot(&self, request: &Request) -> usize {
        let hash = self.hasher.hash_one(&request.uri[..]) ^ u64::from(request.location) << 3;
        debug_assert_eq!(self.slots.len(), KEPT_MAX, "there are slots before one is asked for");
        (hash % KEPT_MAX as u64) as usize
    }

    /// Gives a request the ruling that was made for its path; whether there is one.
    pub(super) fn recall(
        &mut self,
        entry: RoundEntry,
        request: &mut Request,
        site: &Site,
        files: &FileTable,
        now: Now,
    ) -> bool {
        if self.slots.is_empty() {
            return false;
        }
        let slot = self.slot(request);
        let Some(kept) = &mut self.slots[slot] else { return false };
        let is_for_it = now.mono < kept.until
            && kept.location == request.location
            && kept.entry == entry
            && *kept.uri == *request.uri
            && (kept.site, kept.server) == (site.serial(), request.server)
            && !kept.absent.iter().any(|name| request.head().fields.get_text(name).is_some())
            && kept.holds(files);
        if is_for_it {
            self.recalled += 1;
            request.htaccess.clone_from(&kept.ruling);
            if kept.is_unkeyed {
                request.arrival.leave_unkeyed();
            }
        }
        is_for_it
    }

    /// Keeps what a request was told, if it holds for others.
    pub(super) fn keep(
        &mut self,
        entry: RoundEntry,
        reliance: &Reliance,
        request: &Request,
        site: &Site,
        files: &FileTable,
        now: Now,
    ) {
        let location = site.location(request.location);
        let root = site.location(site.server(request.server).root);
        let is_fixed = location.fixed_root.is_some()
            && root.fixed_root.is_some()
            && location.pass.is_none()
            && location.builtin.is_none()
            && request.uri.len() <= PATH_MAX;
        if !is_fixed || !reliance.is_general.get() || now.mono >= reliance.until.get() {
            return;
        }
        if self.slots.is_empty() {
            self.slots.resize_with(KEPT_MAX, || None);
        }
        debug_assert!(request.uri.len() <= PATH_MAX, "paths that are kept are bounded");
        let slot = self.slot(request);
        self.slots[slot] = Some(KeptRuling {
            site: site.serial(),
            server: request.server,
            location: request.location,
            entry,
            uri: request.uri[..].into(),
            absent: reliance.absent.borrow().clone(),
            lapses: files.lapses(),
            relied: reliance.relied.borrow()[..].into(),
            until: reliance.until.get(),
            ruling: request.htaccess.clone(),
            is_unkeyed: request.arrival.is_unkeyed(),
        });
    }
}
