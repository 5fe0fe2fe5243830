//! A stored response: key, head, tags and a small body in one allocation; rare parts are separate.
//!
//! The contents of an object never change. Only its marks do (stale, retired, the generation of its
//! tags), and compressed variants are added once. A changed response replaces the object.
//!
//! INVARIANT: an object is marked retired before its tags are released, because the tables of
//! workers may still hold it and would read slots that belong to other tags by then.

mod body;
mod confirmation;
mod marks;
mod outside;
mod packed;
mod times;

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering};

use bolide_http::FieldMap;
use bytes::Bytes;

use crate::held::HeldBytes;
use crate::key::{CacheKey, NamespaceId, SessionKey};
use crate::tags::{TagTable, TagVerdict};
use marks::ObjectMarks;
pub use outside::Outside;
use packed::control_fields;
use packed::gather;
pub use packed::{EARLIER_TAGS, PAGE_ID, is_marked};
pub(crate) use packed::{pack_head, sent_fields, split_field};
use times::PackedMillis;
pub use times::Times;

/// LIMIT: bytes of a body that shares an allocation with key and head.
const PACKED_MAX: usize = 16 * 1024;
/// Bytes that an object counts beyond its contents: the struct, its place in the index, the
/// allocator's overhead.
pub(crate) const OVERHEAD: u64 = 200;

/// The field that marks a stored head whose body is ESI. Clients never get it.
pub const ESI_MARK: (&[u8], &[u8]) = (b"Surrogate-Control", b"content=\"ESI/1.0\"");

const STATUS_VARY: u16 = 0;
const STATUS_PASS: u16 = 1;
const STATUS_FAILED: u16 = 2;

/// The head of a response to store, without hop-by-hop fields, `Set-Cookie` and validators.
#[derive(Clone, Debug, Default)]
pub struct ObjectHead {
    /// Status code.
    pub status: u16,
    /// The fields to send, in their order.
    pub fields: FieldMap,
    /// What the application said to the cache alone, for a 304 to update; no client gets it.
    pub controls: FieldMap,
    /// `ETag` with quotes and `W/`; empty if none.
    pub etag: Vec<u8>,
    /// `Last-Modified`, seconds since 1970.
    pub last_modified: Option<u64>,
    /// Creation time and freshness.
    pub times: Times,
    /// The declared length of the body, if the response has one.
    pub length: Option<u64>,
}

/// A compressed variant of a body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ObjectVariant {
    /// The whole body in that coding.
    Ready(Bytes),
    /// Compression would not make it smaller.
    NotWorth,
}

/// The kind of an index entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ObjectKind {
    /// A response.
    Content,
    /// The names of the request fields that select a variant (RFC 9111 §4.1).
    Vary,
    /// A marker for an uncacheable response (Varnish: hit-for-pass).
    Pass,
    /// A marker for a failed upstream, with the status to send.
    Failed,
}

/// The parts that few objects have.
#[derive(Debug, Default)]
struct Extra {
    pieces: Vec<Bytes>,
    variants: [OnceLock<ObjectVariant>; 3],
    prepared: OnceLock<Box<bolide_esi::Prepared>>,
    outside: OnceLock<Outside>,
    is_disowned: AtomicBool,
}

/// A stored response.
#[derive(Debug)]
pub struct Object {
    /// The half of the key's hash that selects the bucket. The key text is compared, too.
    hash: u64,
    /// URL, vary part, session, validator, tags, head, small body.
    packed: Bytes,
    extra: OnceLock<Box<Extra>>,
    created: PackedMillis,
    expires: PackedMillis,
    stale_seconds: u32,
    error_seconds: u32,
    namespace: NamespaceId,
    url_len: u16,
    vary_len: u16,
    session_len: u16,
    etag_len: u16,
    tag_count: u16,
    status: u16,
    head_len: u32,
    /// The last use, in seconds since 1970; 0 if it is unknown.
    used: AtomicU32,
    hits: AtomicU16,
    marks: ObjectMarks,
    warmth: AtomicU8,
    /// The purge generation at which its tags were last checked.
    known: AtomicU64,
}

/// The parts of a new object.
pub(crate) struct ObjectParts<'a> {
    pub(crate) key: CacheKey<'a>,
    pub(crate) status: u16,
    pub(crate) head: &'a [u8],
    pub(crate) etag: &'a [u8],
    pub(crate) times: Times,
    pub(crate) tags: &'a [u32],
    pub(crate) known: u64,
    pub(crate) body: Vec<Bytes>,
    /// Counts a large body.
    pub(crate) held: Option<&'a HeldBytes>,
}

impl Object {
    pub(crate) fn new(parts: ObjectParts<'_>) -> Self {
        let ObjectParts { key, status, head, etag, times, tags, known, body, held } = parts;
        let session = key.session.map_or(&[][..], SessionKey::text);
        let body_len: usize = body.iter().map(Bytes::len).sum();
        assert!(
            [key.text.len(), session.len(), etag.len(), tags.len()]
                .iter()
                .all(|len| u16::try_from(*len).is_ok()),
            "the parts of an object have lengths of two bytes"
        );
        assert!(u32::try_from(head.len()).is_ok(), "a head has a length of four bytes");
        let small = body_len <= PACKED_MAX;
        let fixed = key.text.len() + session.len() + etag.len() + tags.len() * 4 + head.len();
        let mut packed = Vec::with_capacity(fixed + if small { body_len } else { 0 });
        for part in [key.text, session, etag] {
            packed.extend_from_slice(part);
        }
        for id in tags {
            packed.extend_from_slice(&id.to_le_bytes());
        }
        packed.extend_from_slice(head);
        let extra = OnceLock::new();
        if small {
            body.iter().for_each(|piece| packed.extend_from_slice(piece));
        } else {
            let pieces = gather(body, body_len).into_iter();
            let pieces = pieces.map(|piece| match held {
                Some(held) => held.count(piece),
                None => piece,
            });
            let pieces = pieces.collect();
            extra.get_or_init(|| Box::new(Extra { pieces, ..Extra::default() }));
        }
        Self {
            hash: key.hash[1],
            packed: Bytes::from(packed.into_boxed_slice()),
            extra,
            created: PackedMillis::new(times.created_ms),
            expires: PackedMillis::new(times.expires_ms),
            stale_seconds: times.stale_seconds,
            error_seconds: times.error_seconds,
            namespace: key.namespace,
            url_len: key.url_len as u16,
            vary_len: key.vary().len() as u16,
            session_len: session.len() as u16,
            etag_len: etag.len() as u16,
            tag_count: tags.len() as u16,
            status,
            head_len: head.len() as u32,
            used: AtomicU32::new(0),
            hits: AtomicU16::new(0),
            marks: ObjectMarks::new(is_marked(head)),
            warmth: AtomicU8::new(0),
            known: AtomicU64::new(known),
        }
    }

    pub(crate) fn vary_marker(key: CacheKey<'_>, names: &[u8], known: u64) -> Self {
        let times = Times { expires_ms: u64::MAX, ..Times::default() };
        Self::marker(key, STATUS_VARY, names, times, known)
    }

    pub(crate) fn pass_marker(key: CacheKey<'_>, until_ms: u64, known: u64) -> Self {
        let times = Times { expires_ms: until_ms, ..Times::default() };
        Self::marker(key, STATUS_PASS, &[], times, known)
    }

    /// `status` is sent until then without a request to the failed upstream.
    pub(crate) fn failure_marker(
        key: CacheKey<'_>,
        status: u16,
        until_ms: u64,
        known: u64,
    ) -> Self {
        let times = Times { expires_ms: until_ms, ..Times::default() };
        Self::marker(key, STATUS_FAILED, &status.to_be_bytes(), times, known)
    }

    fn marker(key: CacheKey<'_>, status: u16, head: &[u8], times: Times, known: u64) -> Self {
        let (etag, tags, body) = (&[][..], &[][..], Vec::new());
        let held = None;
        Self::new(ObjectParts { key, status, head, etag, times, tags, known, body, held })
    }

    /// The status of a failure marker.
    #[must_use]
    pub fn failed_status(&self) -> Option<u16> {
        let is_mark = self.kind() == ObjectKind::Failed;
        self.head().try_into().ok().filter(|_| is_mark).map(u16::from_be_bytes)
    }

    /// The kind of this entry.
    #[must_use]
    pub const fn kind(&self) -> ObjectKind {
        match self.status {
            STATUS_VARY => ObjectKind::Vary,
            STATUS_PASS => ObjectKind::Pass,
            STATUS_FAILED => ObjectKind::Failed,
            _ => ObjectKind::Content,
        }
    }

    /// The status code.
    #[must_use]
    pub const fn status(&self) -> u16 {
        self.status
    }

    /// The namespace.
    #[must_use]
    pub const fn namespace(&self) -> NamespaceId {
        self.namespace
    }

    /// The URL part of its key.
    #[must_use]
    pub fn url(&self) -> &[u8] {
        &self.packed[..usize::from(self.url_len)]
    }

    /// The vary part of its key.
    #[must_use]
    pub fn vary(&self) -> &[u8] {
        &self.packed[usize::from(self.url_len)..self.text_len()]
    }

    /// The session of a private object; `None` for a public one.
    #[must_use]
    pub fn session(&self) -> Option<SessionKey<'_>> {
        let start = self.text_len();
        SessionKey::new(&self.packed[start..start + usize::from(self.session_len)])
    }

    /// Whether it may be sent to `session`. A public object may be sent to every client.
    #[must_use]
    pub fn is_for(&self, session: Option<SessionKey<'_>>) -> bool {
        self.session_len == 0 || self.session() == session
    }

    /// The `ETag`, if it has one.
    #[must_use]
    pub fn etag(&self) -> Option<&[u8]> {
        let start = self.text_len() + usize::from(self.session_len);
        let etag = &self.packed[start..start + usize::from(self.etag_len)];
        (!etag.is_empty()).then_some(etag)
    }

    /// `Last-Modified` in seconds since 1970, if the response had it.
    #[must_use]
    pub fn last_modified(&self) -> Option<u64> {
        let (seconds, _) = self.head().split_first_chunk::<8>()?;
        let seconds = u64::from_le_bytes(*seconds);
        (seconds != u64::MAX).then_some(seconds)
    }

    /// Creation time and freshness.
    #[must_use]
    pub const fn times(&self) -> Times {
        Times {
            created_ms: self.created.millis(),
            expires_ms: self.expires.millis(),
            stale_seconds: self.stale_seconds,
            error_seconds: self.error_seconds,
        }
    }

    /// Appends the fields to `to`, in their order.
    pub fn fields(&self, to: &mut FieldMap) {
        for (name, value) in self.iter_fields() {
            to.push_text(name, value);
        }
    }

    /// The stored fields, name and value.
    pub fn iter_fields(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        sent_fields(self.head())
    }

    /// What the application said to the cache alone, name and value.
    pub fn controls(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        control_fields(self.head())
    }

    /// One of them.
    pub fn control(&self, wanted: &[u8]) -> Option<&[u8]> {
        self.controls().find(|field| field.0 == wanted).map(|field| field.1)
    }

    /// The names of a [`ObjectKind::Vary`] entry: request fields whose values belong to the key, in
    /// order and in lower case.
    pub fn vary_names(&self) -> impl Iterator<Item = &[u8]> {
        let names = if self.kind() == ObjectKind::Vary { self.head() } else { &[] };
        names.split(|byte| *byte == b',').filter(|name| !name.is_empty())
    }

    /// The number of hits that workers have reported; at most 65,535.
    #[must_use]
    pub fn hits(&self) -> u16 {
        self.hits.load(Ordering::Relaxed)
    }

    /// Whether it was removed from the index. A holder may finish serving it.
    #[must_use]
    pub fn is_retired(&self) -> bool {
        self.marks.is_retired()
    }

    /// Whether a soft purge hit it.
    #[must_use]
    pub fn is_softly_purged(&self) -> bool {
        self.marks.is_stale()
    }

    fn text_len(&self) -> usize {
        usize::from(self.url_len) + usize::from(self.vary_len)
    }

    fn tags_start(&self) -> usize {
        self.text_len() + usize::from(self.session_len) + usize::from(self.etag_len)
    }

    fn head_start(&self) -> usize {
        self.tags_start() + usize::from(self.tag_count) * 4
    }

    fn body_start(&self) -> usize {
        self.head_start() + self.head_len as usize
    }

    /// The stored fields, packed.
    pub(crate) fn packed_head(&self) -> &[u8] {
        self.head()
    }

    fn head(&self) -> &[u8] {
        &self.packed[self.head_start()..self.body_start()]
    }

    #[inline]
    pub(crate) fn tags(&self) -> impl Iterator<Item = u32> {
        let bytes = &self.packed[self.tags_start()..self.head_start()];
        bytes.as_chunks::<4>().0.iter().map(|id| u32::from_le_bytes(*id))
    }

    /// Its key, as far as the index needs it.
    pub(crate) fn key(&self, url_hash: u64) -> CacheKey<'_> {
        CacheKey {
            namespace: self.namespace,
            hash: [0, self.hash],
            url_hash,
            text: &self.packed[..self.text_len()],
            url_len: u32::from(self.url_len),
            session: self.session(),
        }
    }

    pub(crate) const fn hash(&self) -> u64 {
        self.hash
    }

    /// The hash that selects its slot in the tables of workers.
    #[inline]
    pub(crate) const fn slot_hash(&self) -> u64 {
        self.hash
    }

    /// Whether its key equals `key`: hash, namespace, URL, vary part and session.
    #[inline]
    pub(crate) fn is_named(&self, key: &CacheKey<'_>) -> bool {
        self.hash == key.hash[1]
            && self.namespace == key.namespace
            && u32::from(self.url_len) == key.url_len
            && self.packed.get(..self.text_len()) == Some(key.text)
            && self.session() == key.session
    }

    /// Whether it has the URL and session of `key`.
    pub(crate) fn is_at(&self, key: &CacheKey<'_>) -> bool {
        self.namespace == key.namespace && self.url() == key.url() && self.session() == key.session
    }

    /// Whether purges allow to serve it. Takes no lock.
    #[inline]
    pub(crate) fn verdict(&self, tags: &TagTable) -> TagVerdict {
        let generation = tags.generation();
        let known = self.known.load(Ordering::Acquire);
        if known < generation {
            for verdict in [tags.verdict(self.tags(), known), tags.bans.verdict(self, known)] {
                match verdict {
                    TagVerdict::Dead => return TagVerdict::Dead,
                    TagVerdict::Stale => self.marks.soften(),
                    TagVerdict::Good => {}
                }
            }
            self.known.fetch_max(generation, Ordering::AcqRel);
        }
        debug_assert!(
            self.known.load(Ordering::Acquire) >= generation,
            "an object is known to be good at the generation that was checked"
        );
        self.marks.verdict()
    }

    pub(crate) fn known(&self) -> u64 {
        self.known.load(Ordering::Acquire)
    }

    /// Its marks, for the index, which alone sets them.
    #[inline]
    pub(crate) const fn marks(&self) -> &ObjectMarks {
        &self.marks
    }

    /// Records a use for eviction. PERF: a hot object is written to at most once per second.
    #[inline]
    pub(crate) fn touch(&self, now_ms: u64) {
        let now = (now_ms / 1000) as u32;
        if self.used.load(Ordering::Relaxed) != now {
            self.used.store(now, Ordering::Relaxed);
        }
        let warmth = self.warmth.load(Ordering::Relaxed);
        if warmth < 3 {
            self.warmth.store(warmth + 1, Ordering::Relaxed);
        }
    }

    /// The last use in seconds; `now` if it is unknown.
    pub(crate) fn used(&self, now: u32) -> u32 {
        let _ = self.used.compare_exchange(0, now, Ordering::Relaxed, Ordering::Relaxed);
        self.used.load(Ordering::Relaxed)
    }

    pub(crate) fn warmth(&self) -> u8 {
        self.warmth.load(Ordering::Relaxed)
    }

    pub(crate) fn set_warmth(&self, warmth: u8) {
        self.warmth.store(warmth, Ordering::Relaxed);
    }

    pub(crate) fn add_hits(&self, hits: u32) {
        let sum = u32::from(self.hits.load(Ordering::Relaxed)).saturating_add(hits);
        self.hits.store(u16::try_from(sum).unwrap_or(u16::MAX), Ordering::Relaxed);
    }

    /// Bytes charged for it, compressed variants included.
    pub(crate) fn charge(&self) -> u64 {
        let extra = self.extra.get().map_or(0, |extra| {
            let pieces = extra.pieces.iter().map(|piece| piece.len() as u64).sum::<u64>();
            let variants =
                extra.variants.iter().filter_map(OnceLock::get).map(|variant| match variant {
                    ObjectVariant::Ready(bytes) => bytes.len() as u64,
                    ObjectVariant::NotWorth => 0,
                });
            pieces + variants.sum::<u64>()
        });
        OVERHEAD + self.packed.len() as u64 + extra
    }
}
