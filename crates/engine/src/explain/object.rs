//! A cached object as `bolide explain` shows it.

use std::sync::Arc;

use bolide_cache::{Freshness, KeyBuilder, Object, ObjectKind, ObjectVariant, SessionKey, Store};
use bolide_http::negotiate::Coding;

use crate::caching::STALE_FOR_EVER;

/// LIMIT: objects of one URL that are shown.
const CANDIDATES_MAX: usize = 32;

/// An entry of the store under the URL of a request.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// A response, or a marker about responses.
    pub kind: ObjectKind,
    /// Whether it has the key of this request.
    pub is_own: bool,
    /// The URL part of its key.
    pub url: Vec<u8>,
    /// The vary values of its key; for a vary marker, the names that responses vary by.
    pub vary: Vec<Vec<u8>>,
    /// Whether it is for one session only.
    pub is_private: bool,
    /// Its current freshness.
    pub freshness: Freshness,
    /// The tags whose purges hit it; `*` is a purge of everything.
    pub purged_by: Vec<Vec<u8>>,
    /// Whether a purge made it stale.
    pub is_softly_purged: bool,
    /// The status.
    pub status: u16,
    /// Seconds since it was made.
    pub age: u64,
    /// The remaining freshness lifetime in seconds; negative when it is over. None: no limit.
    pub ttl: Option<i64>,
    /// Seconds after expiry in which it is served during revalidation, and on errors of the
    /// upstream. None: it is stored until it is evicted, and its location decides.
    pub stale: Option<StaleSeconds>,
    /// Bytes of its body.
    pub size: u64,
    /// Its compressed forms, and the bytes of each.
    pub variants: Vec<(&'static str, u64)>,
    /// Its tags.
    pub tags: Vec<Vec<u8>>,
    /// How often it was served, as far as workers have reported.
    pub hits: u16,
    /// Whether there is a copy on disk.
    pub is_on_disk: bool,
    /// `ETag`; empty if it has none.
    pub etag: Vec<u8>,
}

/// Seconds after expiry.
#[derive(Clone, Copy, Debug)]
pub struct StaleSeconds {
    /// In which an entry is served during its revalidation.
    pub updating: u32,
    /// In which it is served on errors of the upstream.
    pub errors: u32,
}

/// Splits the vary part of a key.
pub(super) fn pieces(vary: &[u8]) -> Vec<Vec<u8>> {
    let (mut rest, mut all) = (vary, Vec::new());
    while let Some((len, more)) = rest.split_first_chunk::<4>() {
        let Some((piece, next)) = more.split_at_checked(u32::from_le_bytes(*len) as usize) else {
            break;
        };
        all.push(piece.to_vec());
        rest = next;
    }
    all
}

impl Candidate {
    /// Describes `object` with these tags; `is_own` if it has the key of the request.
    #[must_use]
    pub fn new(
        store: &Store,
        object: &Object,
        tags: Vec<Vec<u8>>,
        is_own: bool,
        now_ms: u64,
    ) -> Self {
        let times = object.times();
        let vary = match object.kind() {
            ObjectKind::Vary => object.vary_names().map(<[u8]>::to_vec).collect(),
            ObjectKind::Content | ObjectKind::Pass | ObjectKind::Failed => pieces(object.vary()),
        };
        let left = i128::from(times.expires_ms) - i128::from(now_ms);
        let form = |coding: Coding| match object.variant(coding)? {
            ObjectVariant::Ready(bytes) => Some((coding.token(), bytes.len() as u64)),
            ObjectVariant::NotWorth => None,
        };
        Self {
            kind: object.kind(),
            is_own,
            url: object.url().to_vec(),
            vary,
            is_private: object.session().is_some(),
            freshness: store.judge(object, now_ms),
            purged_by: store.tags().purged_by(object),
            is_softly_purged: object.is_softly_purged(),
            status: object.failed_status().unwrap_or_else(|| object.status()),
            age: times.age_seconds(now_ms),
            ttl: (times.expires_ms != u64::MAX).then_some((left / 1000) as i64),
            stale: (times.stale_seconds != STALE_FOR_EVER).then_some(StaleSeconds {
                updating: times.stale_seconds,
                errors: times.error_seconds,
            }),
            size: object.body_len(),
            variants: Coding::ALL.into_iter().filter_map(form).collect(),
            tags,
            hits: object.hits(),
            is_on_disk: store.namespaces().is_on_disk(object),
            etag: object.etag().unwrap_or_default().to_vec(),
        }
    }
}

/// The objects under the URL of `keys`, public and of the session.
pub(super) fn candidates(
    store: &Store,
    keys: &KeyBuilder,
    session: &[u8],
    with_tags: bool,
    now_ms: u64,
) -> Vec<Candidate> {
    let public = keys.public();
    let mut all: Vec<Arc<Object>> = store.index().copies(&public);
    let private = SessionKey::new(session).map(|session| keys.private(session));
    if let Some(key) = &private {
        all.splice(0..0, store.index().copies(key));
    }
    let is_own =
        |object: &Object| object.vary() == public.vary() && object.kind() == ObjectKind::Content;
    all.truncate(CANDIDATES_MAX);
    let tags = match with_tags {
        true => store.tags().texts_of_all(&all),
        false => vec![Vec::new(); all.len()],
    };
    let shown = all.iter().zip(tags);
    shown
        .map(|(object, tags)| Candidate::new(store, object, tags, is_own(object), now_ms))
        .collect()
}
