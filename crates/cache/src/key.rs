//! The cache key of an object: namespace, URL, vary part and session.
//!
//! A key is hashed once, and compared in full. INVARIANT: the lengths of the parts are hashed and
//! compared, too, so that no vary value can imitate a longer URL or another session.

/// A separate cache: of a virtual host, or a zone of `fastcgi_cache_path`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NamespaceId(pub(crate) u32);

/// LIMIT: bytes of a whole key. A request with a longer key passes.
pub const KEY_SIZE_MAX: usize = 16 * 1024;

/// The session of private objects, by the site's session identifier. Never empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionKey<'a>(&'a [u8]);

impl<'a> SessionKey<'a> {
    /// The session with this identifier. `None` if it is empty or longer than 1 KiB: such a request
    /// has no private cache.
    #[must_use]
    pub const fn new(text: &'a [u8]) -> Option<Self> {
        if text.is_empty() || text.len() > 1024 { None } else { Some(Self(text)) }
    }

    /// The session identifier.
    #[must_use]
    pub const fn text(self) -> &'a [u8] {
        self.0
    }
}

/// A key that its builder owns.
#[derive(Clone, Copy, Debug)]
pub struct CacheKey<'a> {
    pub(crate) namespace: NamespaceId,
    pub(crate) hash: [u64; 2],
    /// The hash of namespace, URL and session, which all variants share.
    pub(crate) url_hash: u64,
    /// The URL, then the vary part.
    pub(crate) text: &'a [u8],
    pub(crate) url_len: u32,
    pub(crate) session: Option<SessionKey<'a>>,
}

impl<'a> CacheKey<'a> {
    /// The 128-bit hash; stable within one process.
    #[must_use]
    pub const fn hash(&self) -> u128 {
        (self.hash[0] as u128) << 64 | self.hash[1] as u128
    }

    /// The namespace.
    #[must_use]
    pub const fn namespace(&self) -> NamespaceId {
        self.namespace
    }

    /// The URL part.
    #[must_use]
    pub fn url(&self) -> &'a [u8] {
        &self.text[..self.url_len as usize]
    }

    /// The vary part.
    #[must_use]
    pub fn vary(&self) -> &'a [u8] {
        &self.text[self.url_len as usize..]
    }

    /// The session of a private key.
    #[must_use]
    pub const fn session(&self) -> Option<SessionKey<'a>> {
        self.session
    }
}

/// Builds keys, and keeps its memory between requests.
#[derive(Clone, Debug, Default)]
pub struct KeyBuilder {
    namespace: u32,
    text: Vec<u8>,
    url_len: u32,
}

impl KeyBuilder {
    /// Begins a key in `namespace`.
    pub fn start(&mut self, namespace: NamespaceId) {
        self.namespace = namespace.0;
        self.text.clear();
        self.url_len = 0;
    }

    /// The namespace of the key.
    #[must_use]
    pub const fn namespace(&self) -> NamespaceId {
        NamespaceId(self.namespace)
    }

    /// Appends to the URL part and clears the vary part.
    pub fn push_url(&mut self, text: &[u8]) {
        self.text.truncate(self.url_len as usize);
        self.text.extend_from_slice(text);
        self.url_len = self.text.len() as u32;
    }

    /// Appends a value to the vary part. Its length goes first, so that adjacent values stay
    /// distinct.
    pub fn push_vary(&mut self, value: &[u8]) {
        self.text.extend_from_slice(&(value.len() as u32).to_le_bytes());
        self.text.extend_from_slice(value);
    }

    /// The same for a value that `write` appends in place.
    pub fn push_vary_writing(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        let at = self.text.len();
        self.text.extend_from_slice(&[0; 4]);
        write(&mut self.text);
        let len = (self.text.len() - at - 4) as u32;
        self.text[at..at + 4].copy_from_slice(&len.to_le_bytes());
    }

    /// The current length, for [`Self::rewind`].
    #[must_use]
    pub const fn mark(&self) -> usize {
        self.text.len()
    }

    /// Drops the vary values that were pushed after `mark`.
    pub fn rewind(&mut self, mark: usize) {
        debug_assert!(mark <= self.text.len(), "a mark belongs to the key under construction");
        self.text.truncate(mark.max(self.url_len as usize));
    }

    /// Clears the vary part (`no-vary`).
    pub fn clear_vary(&mut self) {
        self.text.truncate(self.url_len as usize);
    }

    /// Whether the key is within [`KEY_SIZE_MAX`]; if not, the request passes.
    #[must_use]
    pub fn is_usable(&self) -> bool {
        self.text.len() <= KEY_SIZE_MAX
    }

    /// The key of a public response.
    #[must_use]
    pub fn public(&self) -> CacheKey<'_> {
        self.key(None)
    }

    /// The key of a private response.
    #[must_use]
    pub fn private<'a>(&'a self, session: SessionKey<'a>) -> CacheKey<'a> {
        self.key(Some(session))
    }

    fn key<'a>(&'a self, session: Option<SessionKey<'a>>) -> CacheKey<'a> {
        let (url, vary) = self.text.split_at(self.url_len as usize);
        debug_assert!(
            is_sequence(vary),
            "the URL comes first, then values that their lengths keep apart"
        );
        let mut hash = start(NamespaceId(self.namespace), session, url);
        let url_hash = hash.finish()[0];
        hash.add(vary);
        CacheKey {
            namespace: NamespaceId(self.namespace),
            hash: hash.finish(),
            url_hash,
            text: &self.text,
            url_len: self.url_len,
            session,
        }
    }
}

/// Whether `vary` is a sequence of values, each behind its length.
fn is_sequence(mut vary: &[u8]) -> bool {
    while let Some((len, rest)) = vary.split_first_chunk::<4>() {
        let Some(rest) = rest.get(u32::from_le_bytes(*len) as usize..) else { return false };
        vary = rest;
    }
    vary.is_empty()
}

/// The hash that all variants of a URL share.
pub(crate) fn url_hash(namespace: NamespaceId, session: Option<SessionKey<'_>>, url: &[u8]) -> u64 {
    start(namespace, session, url).finish()[0]
}

fn start(namespace: NamespaceId, session: Option<SessionKey<'_>>, url: &[u8]) -> Hash {
    let mut hash = Hash::new(namespace.0);
    hash.add(session.map_or(&[][..], SessionKey::text));
    hash.add(url);
    hash
}

/// Two multiply-and-fold hashes at once. They need only distribute well, because keys are compared
/// in full.
pub(crate) struct Hash([u64; 2]);

const K: [u64; 4] =
    [0x9e37_79b9_7f4a_7c15, 0xd6e8_feb8_6659_fd93, 0xc2b2_ae3d_27d4_eb4f, 0x94d0_49bb_1331_11eb];

#[inline]
pub(crate) const fn fold(a: u64, b: u64) -> u64 {
    let product = a as u128 * b as u128;
    product as u64 ^ (product >> 64) as u64
}

impl Hash {
    pub(crate) fn new(namespace: u32) -> Self {
        let seed = seed();
        Self([fold(seed[0] ^ u64::from(namespace), K[0]), seed[1] ^ u64::from(namespace)])
    }

    #[inline]
    fn word(&mut self, word: u64) {
        let Self([a, b]) = self;
        *a = fold(*a ^ word, K[1]).wrapping_add(K[2]);
        *b = fold(*b ^ word.rotate_left(32), K[3]).wrapping_add(K[0]);
    }

    /// Adds bytes and their length.
    #[inline]
    pub(crate) fn add(&mut self, bytes: &[u8]) {
        let (words, tail) = bytes.as_chunks::<8>();
        for word in words {
            self.word(u64::from_le_bytes(*word));
        }
        if !tail.is_empty() {
            // PERF: copying the tail into a word of its own costs a call.
            self.word(match bytes.last_chunk() {
                Some(last) => u64::from_le_bytes(*last) >> (64 - 8 * tail.len()),
                None => tail.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte)),
            });
        }
        self.word(bytes.len() as u64);
    }

    pub(crate) fn finish(&self) -> [u64; 2] {
        [fold(self.0[0], K[3]), fold(self.0[1], K[1])]
    }
}

static SEED: std::sync::OnceLock<[u64; 2]> = std::sync::OnceLock::new();

fn seed() -> [u64; 2] {
    *SEED.get().unwrap_or(&[K[2], K[3]])
}

/// Sets the hash seed of this process; only the first call has an effect.
pub(crate) fn set_seed(seed: u64) {
    let mut prng = bolide_base::prng::Prng::new(seed);
    SEED.get_or_init(|| [prng.next_u64(), prng.next_u64()]);
}

#[cfg(test)]
mod tests {
    use super::{KeyBuilder, NamespaceId, SessionKey};

    #[test]
    fn parts_do_not_run_together() {
        let mut hashes = std::collections::HashSet::new();
        let mut keys = KeyBuilder::default();
        for (url, vary) in [("ab", ""), ("a", "b"), ("", "ab"), ("a", "")] {
            keys.start(NamespaceId(1));
            keys.push_url(url.as_bytes());
            keys.push_vary(vary.as_bytes());
            assert!(hashes.insert(keys.public().hash()));
            assert!(hashes.insert(keys.private(SessionKey::new(b"ab").unwrap()).hash()));
            keys.clear_vary();
            hashes.insert(keys.public().hash());
        }
        assert_eq!(hashes.len(), 4 * 2 + 3);
        keys.push_vary(b"xy");
        let (hash, mark) = (keys.public().hash(), keys.mark());
        keys.push_vary_writing(|out| out.extend_from_slice(b"z"));
        assert_ne!(keys.public().hash(), hash);
        keys.rewind(mark);
        assert_eq!(keys.public().hash(), hash);
        keys.rewind(0);
        keys.push_vary_writing(|out| out.extend_from_slice(b"xy"));
        assert_eq!(keys.public().hash(), hash);
    }

    #[test]
    fn vary_copies_share_the_hash_of_their_url() {
        let mut keys = KeyBuilder::default();
        keys.start(NamespaceId(1));
        keys.push_url(b"/a");
        let plain = keys.public().url_hash;
        keys.push_vary(b"mobile");
        assert_eq!(keys.public().url_hash, plain);
        assert_eq!(keys.public().vary().len(), 10);
        assert_ne!(keys.private(SessionKey::new(b"s").unwrap()).url_hash, plain);
    }
}
