//! Stored rulings, for the next request for the same path.
//!
//! Owns when a ruling may be reused: for the same path, the same ruling of the previous round,
//! files that inotify watches, and the same replies of the request. A ruling that is older than the
//! last lookup of its files is not reused.

use std::hash::{BuildHasher, Hasher};
use std::rc::Rc;

use bolide_base::{Instant, Now};
use bolide_files::hash::Seeded;
use bolide_files::{FileTable, LapseMark};
use bolide_htaccess::EnvTable;
use bolide_http::{Method, RequestBody};

use super::questions::{Kept, Question, Reply, RequestTexts, bytes_of};
use super::reliance::Reliance;
use super::ruling::HtaccessRuling;
use super::target::InsideTarget;
use crate::request::Request;
use crate::site::Site;

/// LIMIT: paths with stored rulings in a worker. A later one replaces another.
const PATHS_MAX: usize = 4096;
/// LIMIT: rulings of one path, by the replies of requests. One more replaces invalid ones, or the
/// oldest.
const RULINGS_OF_PATH_MAX: usize = 8;
/// LIMIT: rulings of all paths; one more replaces one of another path.
const RULINGS_MAX: usize = 8192;
/// LIMIT: bytes of a stored ruling; a larger one is not stored.
const RULING_BYTES_MAX: usize = 16 * 1024;
/// LIMIT: bytes of all stored rulings; later ones replace those of other paths.
const BYTES_MAX: usize = 16 * 1024 * 1024;
/// LIMIT: bytes of a path whose ruling is stored.
const PATH_MAX: usize = 1024;

/// Where a stored ruling leads.
#[derive(Clone, Debug)]
pub(super) enum KeptWay {
    /// To the location's content.
    Content,
    /// To another internal path.
    Inside(Rc<InsideTarget>),
}

/// The result of a round, besides its ruling.
#[derive(Debug)]
pub(super) struct RoundOutcome {
    pub(super) way: KeptWay,
    /// Variables for applications that cache keys need.
    pub(super) exported: EnvTable,
    /// Whether the response must not be cached, because of this round.
    pub(super) is_unkeyed: bool,
}

impl RoundOutcome {
    /// Its approximate memory in bytes.
    fn bytes(&self) -> usize {
        let way = match &self.way {
            KeptWay::Content => 0,
            KeptWay::Inside(target) => target.bytes(),
        };
        way + self.exported.bytes()
    }
}

/// A ruling, with the conditions of its validity.
#[derive(Debug)]
pub(super) struct KeptRuling {
    /// The count of lapses when it was last known to be valid.
    lapses: u64,
    relied: Box<[LapseMark]>,
    until: Instant,
    /// None where no directive applies.
    ruling: Option<Rc<HtaccessRuling>>,
    outcome: RoundOutcome,
    /// Its approximate memory in bytes, with the questions that lead to it.
    bytes: usize,
    /// How many rulings were stored before it.
    serial: u64,
}

impl KeptRuling {
    /// Whether nothing that it depends on has lapsed; other lapses are examined once.
    #[inline]
    fn holds(&mut self, files: &FileTable, now: Now) -> bool {
        now.mono < self.until && (self.lapses == files.lapses() || self.holds_still(files))
    }

    /// Whether a request can follow it; otherwise there is an error, which is evaluated anew.
    #[inline]
    pub(super) fn can_lead(&self, request: &Request) -> bool {
        matches!(self.outcome.way, KeptWay::Content) || request.redirects_left > 1
    }

    /// Applies it to a request; returns where it leads.
    pub(super) fn give(&self, request: &mut Request) -> KeptWay {
        request.htaccess.clone_from(&self.ruling);
        if self.outcome.is_unkeyed {
            request.arrival.leave_unkeyed();
        }
        for (name, value) in self.outcome.exported.iter() {
            request.arrival.record_variable(name, value);
        }
        self.outcome.way.clone()
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

/// How a request arrives at this step.
#[derive(Clone, Debug)]
pub(super) struct RoundEntry {
    is_head: bool,
    /// Whether the path is that of an index.
    is_index: bool,
    /// The ruling of the previous round, if that led here. It is held, so that its address is not
    /// reused.
    before: Option<Rc<HtaccessRuling>>,
}

impl PartialEq for RoundEntry {
    fn eq(&self, other: &Self) -> bool {
        self.place() == other.place()
            && (self.is_head, self.is_index) == (other.is_head, other.is_index)
    }
}

impl RoundEntry {
    /// None for a request whose ruling cannot be shared: its method or body may matter, it is part
    /// of another request, or a previous ruling is not stored.
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
        let (is_index, before) = match &request.htaccess {
            None => (false, None),
            Some(ruling) if ruling.is_only_index() => (true, None),
            Some(ruling) if ruling.opens_round => (false, Some(Rc::clone(ruling))),
            Some(_) => return None,
        };
        Some(Self { is_head, is_index, before })
    }

    /// The memory address of the previous ruling.
    fn place(&self) -> usize {
        self.before.as_ref().map_or(0, |before| Rc::as_ptr(before) as usize)
    }
}

/// A path with its stored rulings.
#[derive(Debug)]
struct KeptPath {
    site: u64,
    server: u32,
    location: u32,
    entry: RoundEntry,
    uri: Box<[u8]>,
    kept: Kept<KeptRuling>,
}

/// A request as it arrives at this step.
#[derive(Debug)]
pub(super) struct RoundStart {
    entry: RoundEntry,
    uri: Vec<u8>,
    location: u32,
}

impl RoundStart {
    pub(super) fn new(entry: RoundEntry, request: &Request) -> Self {
        Self { entry, uri: request.uri.clone(), location: request.location }
    }
}

/// The stored rulings of one worker; those of a path are at the slot of its hash.
#[derive(Debug)]
pub struct HtaccessMemory {
    slots: Vec<Option<KeptPath>>,
    /// The totals of all slots.
    held: Tally,
    /// The next slot to be examined, when others are changed.
    hand: usize,
    /// The number of rulings stored so far.
    kept: u64,
    recalled: u64,
    hasher: Seeded,
    spare: Vec<u8>,
}

impl HtaccessMemory {
    /// An empty memory; `seed` should be secret.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self {
            slots: Vec::new(),
            held: Tally { rulings: 0, bytes: 0 },
            hand: 0,
            kept: 0,
            recalled: 0,
            hasher: Seeded::new(seed),
            spare: Vec::new(),
        }
    }

    /// How often a ruling was reused.
    #[must_use]
    pub const fn recalled(&self) -> u64 {
        self.recalled
    }

    /// The number of stored rulings, and their approximate memory in bytes.
    #[must_use]
    pub const fn held(&self) -> (usize, usize) {
        (self.held.rulings, self.held.bytes)
    }

    fn slot(&self, uri: &[u8], location: u32, entry: &RoundEntry) -> usize {
        debug_assert_eq!(self.slots.len(), PATHS_MAX, "there are slots before one is asked for");
        let mut hasher = self.hasher.build_hasher();
        // A path with several previous rulings has a slot for each. Addresses leave the upper bits
        // free.
        hasher.write_usize(entry.place() ^ (location as usize) << 32);
        hasher.write(uri);
        (hasher.finish() % PATHS_MAX as u64) as usize
    }

    /// The ruling for the path of a request and its replies, if there is one.
    pub(super) fn recall<T: RequestTexts>(
        &mut self,
        entry: &RoundEntry,
        request: &Request,
        texts: impl FnOnce() -> T,
        site: &Site,
        files: &FileTable,
        now: Now,
    ) -> Option<&KeptRuling> {
        if self.slots.is_empty() {
            return None;
        }
        let slot = self.slot(&request.uri, request.location, entry);
        let path = self.slots[slot].as_mut()?;
        let is_for_it = path.location == request.location
            && path.entry == *entry
            && *path.uri == *request.uri
            && (path.site, path.server) == (site.serial(), request.server);
        if !is_for_it {
            return None;
        }
        let kept = match &mut path.kept {
            Kept::Ruling(kept) => kept,
            kept => kept.find(&texts(), &mut self.spare, &request.jit_taken)?,
        };
        if !kept.holds(files, now) {
            return None;
        }
        debug_assert!(kept.ruling.as_ref().is_none_or(|it| it.replaced.is_empty()), "no edits");
        self.recalled += 1;
        Some(kept)
    }

    /// Stores the ruling of a request, if it holds for others.
    #[cold]
    pub(super) fn keep(
        &mut self,
        start: RoundStart,
        reliance: Reliance,
        outcome: RoundOutcome,
        request: &mut Request,
        site: &Site,
        (files, now): (&FileTable, Now),
    ) {
        let RoundStart { entry, uri, location: at } = start;
        let location = site.location(at);
        let root = site.location(site.server(request.server).root);
        let is_fixed = location.fixed_root.is_some()
            && root.fixed_root.is_some()
            && location.builtin.is_none()
            && uri.len() <= PATH_MAX;
        if !is_fixed || !reliance.is_general.get() || now.mono >= reliance.until.get() {
            return;
        }
        let ruling = request.htaccess.as_mut();
        if ruling.as_ref().is_some_and(|ruling| ruling.stands_for.is_some()) {
            return;
        }
        let (replies, relied) = (reliance.replies.into_inner(), reliance.relied.into_inner());
        let bytes = ruling.as_ref().map_or(0, |ruling| ruling.bytes())
            + outcome.bytes()
            + bytes_of(&replies)
            + size_of_val(&*relied)
            + size_of::<KeptRuling>();
        if bytes > RULING_BYTES_MAX {
            return;
        }
        if let Some(ruling) = ruling.filter(|_| matches!(outcome.way, KeptWay::Inside(_))) {
            Rc::make_mut(ruling).opens_round = true;
        }
        let own = KeptPath {
            site: site.serial(),
            server: request.server,
            location: at,
            entry,
            uri: uri.into(),
            kept: Kept::Nothing,
        };
        let ruling = KeptRuling {
            lapses: files.lapses(),
            relied: relied.into(),
            until: reliance.until.get(),
            ruling: request.htaccess.clone(),
            outcome,
            bytes,
            serial: self.kept,
        };
        self.store(own, replies, ruling, files, now);
    }

    /// Stores a ruling, in place of others if there is no room.
    fn store(
        &mut self,
        own: KeptPath,
        replies: Vec<(Question, Reply)>,
        ruling: KeptRuling,
        files: &FileTable,
        now: Now,
    ) {
        if self.slots.is_empty() {
            self.slots.resize_with(PATHS_MAX, || None);
        }
        debug_assert!(own.uri.len() <= PATH_MAX, "paths that are kept are bounded");
        debug_assert!(ruling.bytes <= RULING_BYTES_MAX, "rulings that are kept are bounded");
        let slot = self.slot(&own.uri, own.location, &own.entry);
        // Each slot is examined in turn, so that invalid rulings are freed.
        self.turn_hand(|path| path.leave_those_that_hold(files, now));
        self.change(slot, |place| match place {
            Some(path) if path.is_for(&own) => path.make_room(files, now),
            _ => *place = None,
        });
        let more = own.tally().and(Tally { rulings: 1, bytes: ruling.bytes });
        while !self.held.and(more).is_bounded() {
            debug_assert!(self.held.rulings > 0, "there is room where nothing is kept");
            self.turn_hand(|path| path.kept = Kept::Nothing);
        }
        self.change(slot, |place| {
            place.get_or_insert(own).kept.insert(replies, ruling);
        });
        self.kept += 1;
        debug_assert!(self.held.is_bounded(), "what is kept is bounded");
    }

    /// Changes the path whose turn it is.
    fn turn_hand(&mut self, change: impl FnOnce(&mut KeptPath)) {
        let slot = self.hand;
        self.hand = (slot + 1) % PATHS_MAX;
        self.change(slot, |place| {
            if let Some(path) = place {
                change(path);
            }
        });
    }

    /// Changes a slot, and updates the totals.
    fn change(&mut self, slot: usize, change: impl FnOnce(&mut Option<KeptPath>)) {
        let place = &mut self.slots[slot];
        let before = place.as_ref().map_or_else(Tally::default, KeptPath::tally);
        change(place);
        if place.as_ref().is_some_and(|path| matches!(path.kept, Kept::Nothing)) {
            *place = None;
        }
        let after = place.as_ref().map_or_else(Tally::default, KeptPath::tally);
        debug_assert!(after.rulings <= RULINGS_OF_PATH_MAX, "rulings of a path are bounded");
        self.held = self.held.and(after).without(before);
    }
}

/// Totals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Tally {
    rulings: usize,
    bytes: usize,
}

impl Tally {
    const fn and(self, other: Self) -> Self {
        Self { rulings: self.rulings + other.rulings, bytes: self.bytes + other.bytes }
    }

    const fn without(self, other: Self) -> Self {
        Self { rulings: self.rulings - other.rulings, bytes: self.bytes - other.bytes }
    }

    const fn is_bounded(self) -> bool {
        self.rulings <= RULINGS_MAX && self.bytes <= BYTES_MAX
    }
}

impl KeptPath {
    fn is_for(&self, other: &Self) -> bool {
        (self.site, self.server, self.location) == (other.site, other.server, other.location)
            && self.entry == other.entry
            && self.uri == other.uri
    }

    /// The totals of a slot. It holds the ruling of the previous round.
    fn tally(&self) -> Tally {
        let before = self.entry.before.as_ref().map_or(0, |before| before.bytes());
        let mut tally = Tally { rulings: 0, bytes: self.uri.len() + before };
        self.kept.each(&mut |ruling| {
            tally = tally.and(Tally { rulings: 1, bytes: ruling.bytes });
        });
        tally
    }

    fn leave_those_that_hold(&mut self, files: &FileTable, now: Now) {
        self.kept.retain(&mut |ruling| ruling.holds(files, now));
    }

    /// Makes room for one more ruling.
    fn make_room(&mut self, files: &FileTable, now: Now) {
        self.leave_those_that_hold(files, now);
        let (mut len, mut oldest) = (0, u64::MAX);
        self.kept.each(&mut |ruling| {
            (len, oldest) = (len + 1, oldest.min(ruling.serial));
        });
        if len >= RULINGS_OF_PATH_MAX {
            self.kept.retain(&mut |ruling| ruling.serial != oldest);
        }
        debug_assert!(len <= RULINGS_OF_PATH_MAX, "rulings of a path are bounded");
    }
}

#[cfg(test)]
mod tests;
