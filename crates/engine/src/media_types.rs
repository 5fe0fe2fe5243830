//! Content types by file name, with the charset and codings that a location gives them.

use std::borrow::Cow;
use std::sync::Arc;

use bolide_conf::model::{CharsetOf, LocationSettings, Precompressed};

use crate::hash::{NameTable, WordTable};

/// The bytes of an extension that fits a word.
const SHORT_MAX: usize = 7;
/// Longer extensions have no type of their own.
const EXTENSION_MAX: usize = 32;

/// One content type in one location.
#[derive(Clone, Debug)]
pub(crate) struct MediaType {
    /// The type as configured; empty if there is none.
    pub(crate) media: Arc<[u8]>,
    /// `Content-Type` as it leaves.
    pub(crate) value: Box<[u8]>,
    /// Whether a charset that depends on the request is appended, or one is left out since the
    /// body cannot be recoded.
    pub(crate) charset_varies: bool,
    /// Whether gzip applies to it.
    pub(crate) gzip: bool,
    /// Whether brotli applies to it.
    pub(crate) brotli: bool,
    /// Whether zstd applies to it.
    pub(crate) zstd: bool,
    /// Whether `sub_filter`, `ssi` or `addition` apply to it: bodies change while they are sent, so
    /// that neither precompressed forms nor ranges of the source are of use.
    pub(crate) rewritten: bool,
    /// Whether `sub_filter` applies to it.
    pub(crate) replaced: bool,
    /// Whether `ssi` applies to it.
    pub(crate) included: bool,
    /// Whether `addition` applies to it.
    pub(crate) added: bool,
    /// Whether it may be recoded to another charset, so that compression comes after that.
    pub(crate) recoded: bool,
}

impl MediaType {
    /// Whether its bodies are changed first and compressed afterwards.
    pub(crate) const fn is_coded_last(&self) -> bool {
        self.rewritten || self.recoded
    }
}

/// The extension of a path, packed into a word if it is short, so that a lookup needs no copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ShortExtension {
    /// The last segment has none, or its only dot is its first byte.
    None,
    /// The bytes in lower case, the last one in the highest byte, below a bit that marks the
    /// length.
    Word(u64),
    /// It has more than [`SHORT_MAX`] bytes.
    Longer,
}

impl ShortExtension {
    #[inline]
    fn of_path(path: &[u8]) -> Self {
        let mut word = 1;
        for (at, &byte) in path.iter().enumerate().rev().take(SHORT_MAX + 1) {
            match byte {
                b'.' if at == 0 || path[at - 1] == b'/' || word == 1 => return Self::None,
                b'.' => return Self::Word(word),
                b'/' => return Self::None,
                _ => word = word << 8 | u64::from(byte.to_ascii_lowercase()),
            }
        }
        if path.len() > SHORT_MAX { Self::Longer } else { Self::None }
    }

    /// The word of an extension, if it fits.
    fn of(extension: &[u8]) -> Option<u64> {
        let lower = extension.iter().rev().map(u8::to_ascii_lowercase).map(u64::from);
        (extension.len() <= SHORT_MAX).then(|| lower.fold(1, |word, byte| word << 8 | byte))
    }
}

/// The content types of a location.
#[derive(Debug)]
pub(crate) struct MediaTypes {
    by_short_extension: WordTable<u16>,
    /// By extensions of more than [`SHORT_MAX`] bytes.
    by_extension: NameTable<u16>,
    kinds: Vec<MediaType>,
}

/// The index of the default type.
const DEFAULT: u16 = 0;
/// The index of `text/html`, the type of the built-in pages.
const HTML: u16 = 1;

impl MediaTypes {
    fn new(settings: &LocationSettings) -> Self {
        let mut made = Self {
            by_short_extension: WordTable::default(),
            by_extension: NameTable::default(),
            kinds: Vec::new(),
        };
        made.kinds.push(kind(settings, &settings.default_type));
        made.kinds.push(kind(settings, &Arc::from(&b"text/html"[..])));
        for (extension, media) in settings.types.iter() {
            let known = made.kinds.iter().position(|kind| kind.media == *media);
            let place = known.unwrap_or_else(|| {
                made.kinds.push(kind(settings, media));
                made.kinds.len() - 1
            });
            match ShortExtension::of(extension) {
                Some(word) => drop(made.by_short_extension.insert(word, place as u16)),
                None => made.by_extension.insert(extension.clone(), place as u16),
            }
        }
        made
    }

    /// The type of a path, by the extension of its last segment.
    #[inline]
    pub(crate) fn of_path(&self, path: &[u8]) -> &MediaType {
        let place = match ShortExtension::of_path(path) {
            ShortExtension::None => DEFAULT,
            ShortExtension::Word(word) => {
                self.by_short_extension.get(&word).copied().unwrap_or(DEFAULT)
            }
            ShortExtension::Longer => self.by_longer_extension(path),
        };
        &self.kinds[usize::from(place)]
    }

    /// The type of the last extension of `name` that has one.
    pub(crate) fn of_any_extension(&self, name: &[u8]) -> &MediaType {
        let mut rest = name;
        loop {
            let kind = self.of_path(rest);
            match rest.iter().rposition(|byte| *byte == b'.') {
                Some(at) if at > 0 && std::ptr::eq(kind, &self.kinds[usize::from(DEFAULT)]) => {
                    rest = &rest[..at];
                }
                _ => return kind,
            }
        }
    }

    fn by_longer_extension(&self, path: &[u8]) -> u16 {
        let extension = bolide_http::types::extension(path);
        let mut lower = [0_u8; EXTENSION_MAX];
        let Some(lower) = lower.get_mut(..extension.len()) else { return DEFAULT };
        for (to, from) in lower.iter_mut().zip(extension) {
            *to = from.to_ascii_lowercase();
        }
        self.by_extension.get(&*lower).copied().unwrap_or(DEFAULT)
    }

    /// The type `media`, if files here can have it.
    pub(crate) fn of_media(&self, media: &[u8]) -> Option<&MediaType> {
        let html = self.html();
        if media.eq_ignore_ascii_case(&html.media) {
            return Some(html);
        }
        self.kinds.iter().find(|kind| kind.media.eq_ignore_ascii_case(media))
    }

    /// The type of a response with this `Content-Type`.
    pub(crate) fn of_value(&self, value: &[u8], settings: &LocationSettings) -> Cow<'_, MediaType> {
        let media = media(value);
        match self.of_media(media) {
            Some(kind) => Cow::Borrowed(kind),
            None => Cow::Owned(kind(settings, &media.to_ascii_lowercase().into())),
        }
    }

    /// `text/html`
    pub(crate) fn html(&self) -> &MediaType {
        &self.kinds[usize::from(HTML)]
    }

    /// Whether any coding, made or stored, is on.
    pub(crate) fn is_coded(settings: &LocationSettings) -> bool {
        let stored = [
            settings.gzip.precompressed,
            settings.brotli.precompressed,
            settings.zstd.precompressed,
        ];
        settings.gzip.on
            || settings.brotli.on
            || settings.zstd.on
            || stored.iter().any(|stored| *stored != Precompressed::Off)
    }
}

/// A type without its parameters.
pub(crate) fn media(value: &[u8]) -> &[u8] {
    let end = memchr::memchr(b';', value).unwrap_or(value.len());
    value[..end].trim_ascii_end()
}

/// The treatment of type `media` in a location.
pub(crate) fn kind(settings: &LocationSettings, media: &Arc<[u8]>) -> MediaType {
    let lower = media.to_ascii_lowercase();
    let mut value = media.to_vec();
    let mut charset_varies = false;
    let recoded = settings.charset.recodes && !media.is_empty();
    if recoded {
        charset_varies = true;
    } else if !media.is_empty()
        && settings.charset.types.contains(&lower)
        && let CharsetOf::Name(name) = &settings.charset.charset
    {
        match name.as_text() {
            Some(b"") => {}
            Some(name) => {
                value.extend_from_slice(b"; charset=");
                value.extend_from_slice(name);
            }
            None => charset_varies = true,
        }
    }
    let (gzip, brotli, zstd) = (&settings.gzip, &settings.brotli, &settings.zstd);
    let filters = &settings.filters;
    let (replaced, included) = (filters.rewrites(&lower), filters.includes(&lower));
    let added = filters.adds(&lower);
    MediaType {
        media: media.clone(),
        value: value.into_boxed_slice(),
        charset_varies,
        gzip: gzip.on && gzip.types.contains(&lower),
        brotli: brotli.on && brotli.types.contains(&lower),
        zstd: zstd.on && zstd.types.contains(&lower),
        rewritten: replaced || included || added,
        replaced,
        included,
        added,
        recoded,
    }
}

/// Locations that share their settings share their types, too.
#[derive(Default)]
pub(crate) struct MediaTypeCache(Vec<(Arc<LocationSettings>, Arc<MediaTypes>)>);

impl MediaTypeCache {
    /// The types under `settings`.
    pub(crate) fn of(&mut self, settings: &Arc<LocationSettings>) -> Arc<MediaTypes> {
        let same = |known: &LocationSettings| {
            Arc::ptr_eq(&known.types, &settings.types)
                && known.default_type == settings.default_type
                && known.charset == settings.charset
                && known.gzip == settings.gzip
                && known.brotli == settings.brotli
                && known.zstd == settings.zstd
                && known.filters == settings.filters
        };
        if let Some((_, kinds)) = self.0.iter().find(|(known, _)| same(known)) {
            return kinds.clone();
        }
        let kinds = Arc::new(MediaTypes::new(settings));
        self.0.push((settings.clone(), kinds.clone()));
        kinds
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{SHORT_MAX, ShortExtension, media};

    proptest! {
        /// Paths of few characters, so that dots, slashes and long names meet.
        #[test]
        fn a_short_extension_is_that_of_the_path(path in "[a-cA-C./]{0,14}") {
            let extension = bolide_http::types::extension(path.as_bytes());
            match ShortExtension::of_path(path.as_bytes()) {
                ShortExtension::None => prop_assert!(extension.is_empty()),
                ShortExtension::Word(word) => {
                    prop_assert!(!extension.is_empty());
                    prop_assert_eq!(ShortExtension::of(extension), Some(word));
                }
                ShortExtension::Longer => {
                    prop_assert!(extension.is_empty() || extension.len() > SHORT_MAX);
                }
            }
        }
    }

    #[test]
    fn no_two_extensions_share_a_word() {
        let words = [&b"gz"[..], b"zg", b"g", b"\0g", b"g\0", b"", b"\0"];
        let words = words.map(|extension| ShortExtension::of(extension).unwrap());
        let all: std::collections::HashSet<u64> = words.into_iter().collect();
        assert_eq!(all.len(), words.len());
        assert_eq!(ShortExtension::of(b"GZ"), ShortExtension::of(b"gz"));
    }

    #[test]
    fn a_type_ends_at_its_parameters() {
        assert_eq!(media(b"text/html ; charset=x"), b"text/html");
        assert_eq!(media(b"text/html"), b"text/html");
    }
}
