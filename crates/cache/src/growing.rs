//! A fill in progress: the bytes so far, the waiting followers, and its end.
//!
//! ```text
//!            begin                 commit
//!   Asked ─────────▶ Begun ─────────────────▶ Complete
//!     │                │  abandon
//!     └────────────────┴────────▶ Abandoned      (before begin: followers look up again;
//!                                                 after it: their responses are truncated)
//! ```
//! Followers of all workers read without a lock. One writer, the permit, appends.
//!
//! INVARIANT: a follower without bytes to read registers under the lock of the waiters, and checks
//! once more under it. The writer first publishes, then takes the waiters. So no wake is lost.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use bolide_base::Instant;
use bytes::Bytes;

use crate::held::{FILLING_MIN, FillMemory};
use crate::key::{CacheKey, NamespaceId, SessionKey};
use crate::object::{Object, ObjectHead};
use crate::readers::{Readers, TakenPiece};
use crate::segments::Segments;
use crate::tags::{TagTable, lock};

/// A waiting exchange, by the caller's own numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Waiter {
    /// Its worker.
    pub worker: u16,
    /// Its exchange on that worker.
    pub exchange: u64,
}

/// The waiters to wake. A caller that drops them leaves their exchanges waiting.
#[must_use = "these waiters are registered nowhere any more; wake them"]
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wakes(pub Vec<Waiter>);

impl Wakes {
    /// Adds the waiters of `other`.
    pub fn join(&mut self, other: Self) {
        self.0.extend(other.0);
    }
}

/// The waiters of permits that were dropped without a word.
#[derive(Debug, Default)]
pub(crate) struct Orphans {
    waiters: Mutex<Vec<Waiter>>,
    /// Whether there are any; read without the lock.
    any: AtomicBool,
}

impl Orphans {
    /// Leaves waiters to the worker that asks next.
    pub(crate) fn leave(&self, waiters: Wakes) {
        if !waiters.0.is_empty() {
            lock(&self.waiters).extend(waiters.0);
            self.any.store(true, Ordering::Release);
        }
    }

    pub(crate) fn take(&self) -> Wakes {
        if !self.any.load(Ordering::Acquire) {
            return Wakes::default();
        }
        let mut waiters = lock(&self.waiters);
        self.any.store(false, Ordering::Release);
        Wakes(std::mem::take(&mut *waiters))
    }
}

const ASKED: u8 = 0;
const BEGUN: u8 = 1;
const COMPLETE: u8 = 2;
const ABANDONED: u8 = 3;

/// The key of a fill, owned.
#[derive(Debug)]
pub(crate) struct OwnedKey {
    namespace: NamespaceId,
    hash: [u64; 2],
    url_hash: u64,
    text: Box<[u8]>,
    url_len: u32,
    session: Box<[u8]>,
}

impl OwnedKey {
    pub(crate) fn new(key: &CacheKey<'_>) -> Self {
        Self {
            namespace: key.namespace,
            hash: key.hash,
            url_hash: key.url_hash,
            text: key.text.into(),
            url_len: key.url_len,
            session: key.session.map_or(&[][..], SessionKey::text).into(),
        }
    }

    pub(crate) fn key(&self) -> CacheKey<'_> {
        CacheKey {
            namespace: self.namespace,
            hash: self.hash,
            url_hash: self.url_hash,
            text: &self.text,
            url_len: self.url_len,
            session: SessionKey::new(&self.session),
        }
    }
}

/// The state that the writer and all followers of a fill share.
#[derive(Debug)]
pub struct GrowingObject {
    pub(crate) key: OwnedKey,
    /// The purge generation when the permit was granted.
    pub(crate) generation: u64,
    /// When the request was sent upstream, if it was recorded.
    asked: OnceLock<Instant>,
    /// The object that the index had then, too old to be served without revalidation.
    pub(crate) stale: Option<Arc<Object>>,
    state: AtomicU8,
    /// A purge hit it: it will not be stored, and later followers look up again.
    doomed: AtomicBool,
    /// A soft purge hit it.
    softened: AtomicBool,
    /// Sessions whose copies of the URL were purged meanwhile: whose response it is, is not known
    /// before its head.
    doomed_for: Mutex<Vec<Box<[u8]>>>,
    head: OnceLock<ObjectHead>,
    pub(crate) tags: OnceLock<Vec<u32>>,
    /// The tags as text, for the disk.
    pub(crate) packed_tags: OnceLock<Box<[u8]>>,
    pieces: Segments<OnceLock<Bytes>>,
    count: AtomicU64,
    size: AtomicU64,
    waiters: Mutex<Vec<Waiter>>,
    /// Those that wait for the end, not for the next bytes.
    patient: Mutex<Vec<Waiter>>,
    readers: Readers,
}

/// LIMIT: sessions whose purges a fill remembers; with more it is not stored.
const DOOMED_FOR_MAX: usize = 64;

impl GrowingObject {
    pub(crate) fn new(key: &CacheKey<'_>, generation: u64, stale: Option<Arc<Object>>) -> Self {
        Self {
            key: OwnedKey::new(key),
            generation,
            asked: OnceLock::new(),
            stale,
            state: AtomicU8::new(ASKED),
            doomed: AtomicBool::new(false),
            softened: AtomicBool::new(false),
            doomed_for: Mutex::default(),
            head: OnceLock::new(),
            tags: OnceLock::new(),
            packed_tags: OnceLock::new(),
            pieces: Segments::new(8),
            count: AtomicU64::new(0),
            size: AtomicU64::new(0),
            waiters: Mutex::default(),
            patient: Mutex::default(),
            readers: Readers::default(),
        }
    }

    /// The head, once the fill has begun.
    #[must_use]
    pub fn head(&self) -> Option<&ObjectHead> {
        self.head.get()
    }

    /// When the request was sent upstream, by a monotonic clock, if it was recorded.
    #[must_use]
    pub fn asked(&self) -> Option<Instant> {
        self.asked.get().copied()
    }

    pub(crate) fn mark_sent(&self, at: Instant) {
        let _ = self.asked.set(at);
    }

    /// Bytes received so far.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.size.load(Ordering::Acquire)
    }

    pub(crate) fn is(&self, key: &CacheKey<'_>) -> bool {
        let own = self.key.key();
        own.hash == key.hash
            && own.namespace == key.namespace
            && own.text == key.text
            && own.url_len == key.url_len
            && own.session == key.session
    }

    pub(crate) fn is_doomed(&self) -> bool {
        self.doomed.load(Ordering::Acquire)
    }

    pub(crate) fn is_followed(&self) -> bool {
        self.readers.count() > 0
    }

    pub(crate) fn doom(&self) {
        self.doomed.store(true, Ordering::Release);
    }

    /// A purge hit the copy of a session, if it will be that.
    pub(crate) fn doom_for(&self, session: SessionKey<'_>) {
        debug_assert!(self.key.key().session.is_none(), "a session's own fill is doomed as such");
        let mut sessions = lock(&self.doomed_for);
        debug_assert!(sessions.len() <= DOOMED_FOR_MAX, "the list is bounded");
        if sessions.len() >= DOOMED_FOR_MAX {
            return self.doom();
        }
        sessions.push(session.text().into());
    }

    pub(crate) fn is_doomed_for(&self, session: SessionKey<'_>) -> bool {
        lock(&self.doomed_for).iter().any(|text| **text == *session.text())
    }

    pub(crate) fn soften(&self) {
        self.softened.store(true, Ordering::Release);
    }

    pub(crate) fn is_softened(&self) -> bool {
        self.softened.load(Ordering::Acquire)
    }

    /// Whether a purge killed it, as far as its tags are known.
    pub(crate) fn is_killed(&self, tags: &TagTable) -> bool {
        if let Some(ids) = self.tags.get()
            && tags.is_killed(ids, self.generation)
        {
            self.doom();
        }
        self.is_doomed()
    }

    pub(crate) fn begin(&self, head: ObjectHead) -> Wakes {
        if self.head.set(head).is_ok() {
            self.state.store(BEGUN, Ordering::Release);
        }
        self.wake()
    }

    pub(crate) fn append(&self, bytes: Bytes) -> Wakes {
        if bytes.is_empty() {
            return Wakes::default();
        }
        debug_assert_eq!(
            self.state.load(Ordering::Relaxed),
            BEGUN,
            "the body follows the head and precedes the end"
        );
        let count = self.count.load(Ordering::Relaxed);
        self.size.fetch_add(bytes.len() as u64, Ordering::Release);
        if !self.readers.push(&bytes) {
            let cell = self.pieces.make(count as usize);
            let set = cell.is_some_and(|cell| cell.set(bytes).is_ok());
            debug_assert!(set, "one writer, and memory ends before the rows do");
        }
        self.count.store(count + 1, Ordering::Release);
        self.wake()
    }

    /// Later pieces are held only until all followers have taken them.
    pub(crate) fn pass_on(&self) {
        self.readers.pass_on(self.count.load(Ordering::Relaxed) as usize);
    }

    /// Frees what no follower needs.
    pub(crate) fn settle(&self, memory: &FillMemory) {
        memory.free(self.readers.settle());
    }

    /// Whether it waits for its followers, because memory is short.
    pub(crate) fn awaits_followers(&self, memory: &FillMemory, now: Instant) -> bool {
        let waits = !memory.has_room() && self.readers.are_behind(FILLING_MIN, now);
        self.settle(memory);
        waits
    }

    /// The bytes that [`Self::settle`] has not freed.
    pub(crate) fn unsettled(&self) -> u64 {
        self.size() - self.readers.settled()
    }

    pub(crate) fn finish(&self, complete: bool) -> Wakes {
        let end = if complete { COMPLETE } else { ABANDONED };
        let before = self.state.swap(end, Ordering::AcqRel);
        assert!(matches!(before, ASKED | BEGUN), "a fill ends once");
        debug_assert!(!complete || before == BEGUN, "a complete fill has a head");
        let mut wakes = self.wake();
        wakes.0.append(&mut *lock(&self.patient));
        wakes
    }

    fn wake(&self) -> Wakes {
        Wakes(std::mem::take(&mut *lock(&self.waiters)))
    }

    pub(crate) fn body(&self) -> Vec<Bytes> {
        let count = self.count.load(Ordering::Acquire) as usize;
        let body: Vec<Bytes> =
            (0..count).filter_map(|index| self.pieces.get(index)?.get().cloned()).collect();
        assert_eq!(
            body.iter().map(|piece| piece.len() as u64).sum::<u64>(),
            self.size(),
            "the pieces have every byte that was counted"
        );
        body
    }
}

/// The state of a fill for a follower that has no head yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Follow {
    /// The response has not begun.
    Waiting,
    /// [`Follower::head`] is available and the body can be read.
    Head,
    /// The fill was abandoned or purged: look up again.
    Again,
}

/// The result of reading.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GrowthRead {
    /// The next bytes.
    Bytes(Bytes),
    /// No bytes are available.
    Pending,
    /// The body is complete.
    End,
    /// The fill was abandoned within the body, or the follower was too slow: truncate the
    /// response.
    Broken,
}

/// The result of registering a waiter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waited {
    /// The waiter will be woken once.
    Registered,
    /// There is something to read: read again.
    Moved,
}

/// A reader of a fill.
#[derive(Debug)]
pub struct Follower {
    growing: Arc<GrowingObject>,
    /// The purge generation when it joined.
    since: u64,
    piece: usize,
    begun: bool,
}

impl Drop for Follower {
    fn drop(&mut self) {
        self.growing.readers.leave(self.piece);
    }
}

impl Follower {
    pub(crate) fn new(growing: Arc<GrowingObject>, since: u64) -> Self {
        growing.readers.join();
        Self { growing, since, piece: 0, begun: false }
    }

    /// Whether the head is available. [`Follow::Head`] is final.
    pub fn poll(&mut self) -> Follow {
        if self.begun {
            return Follow::Head;
        }
        match self.growing.state.load(Ordering::Acquire) {
            ASKED => Follow::Waiting,
            ABANDONED => Follow::Again,
            _ if self.since > self.growing.generation && self.growing.is_doomed() => Follow::Again,
            _ => {
                self.begun = true;
                Follow::Head
            }
        }
    }

    /// The same for a follower that takes nothing before the end: [`Follow::Head`] says that the
    /// response is complete.
    #[must_use]
    pub fn poll_end(&self) -> Follow {
        match self.growing.state.load(Ordering::Acquire) {
            COMPLETE => Follow::Head,
            ABANDONED => Follow::Again,
            _ => Follow::Waiting,
        }
    }

    /// Registers a waiter for the end.
    pub fn wait_end(&self, waiter: Waiter) -> Waited {
        let mut patient = lock(&self.growing.patient);
        if self.poll_end() != Follow::Waiting {
            return Waited::Moved;
        }
        if !patient.contains(&waiter) {
            patient.push(waiter);
        }
        Waited::Registered
    }

    /// The head, after [`Self::poll`] returned [`Follow::Head`].
    #[must_use]
    pub fn head(&self) -> Option<&ObjectHead> {
        if self.begun { self.growing.head() } else { None }
    }

    /// Whether this response is public or belongs to `session`.
    #[must_use]
    pub fn is_for(&self, session: Option<SessionKey<'_>>) -> bool {
        let own = self.growing.key.key().session;
        own.is_none() || own == session
    }

    /// The next piece of the body.
    pub fn read(&mut self) -> GrowthRead {
        // The state is loaded first: a reader that sees the end must see every piece.
        let state = self.growing.state.load(Ordering::Acquire);
        let come = self.growing.count.load(Ordering::Acquire) as usize;
        if self.begun && self.piece < come {
            let stored = self.growing.pieces.get(self.piece).and_then(OnceLock::get).cloned();
            let readers = &self.growing.readers;
            let taken = match stored {
                Some(bytes) => {
                    readers.count_stored();
                    TakenPiece::Piece(bytes)
                }
                None => readers.take(self.piece),
            };
            match taken {
                TakenPiece::Piece(bytes) => {
                    self.piece += 1;
                    return GrowthRead::Bytes(bytes);
                }
                TakenPiece::Gone => return GrowthRead::Broken,
                TakenPiece::Pending => debug_assert!(false, "a piece that is counted has come"),
            }
        }
        match state {
            COMPLETE => GrowthRead::End,
            ABANDONED => GrowthRead::Broken,
            _ => GrowthRead::Pending,
        }
    }

    /// Registers a waiter, unless there is something new for this follower.
    pub fn wait(&self, waiter: Waiter) -> Waited {
        let mut waiters = lock(&self.growing.waiters);
        let state = self.growing.state.load(Ordering::Acquire);
        let come = self.growing.count.load(Ordering::Acquire) as usize;
        let nothing_new = match state {
            ASKED => true,
            BEGUN => self.begun && self.piece >= come,
            _ => false,
        };
        if !nothing_new {
            return Waited::Moved;
        }
        if !waiters.contains(&waiter) {
            waiters.push(waiter);
        }
        Waited::Registered
    }

    /// The fill.
    #[must_use]
    pub const fn growing(&self) -> &Arc<GrowingObject> {
        &self.growing
    }
}
