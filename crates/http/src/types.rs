//! Media types by file name extension: the contents of a `types` block, ready for lookup.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;

/// The longest extension that has a type.
const EXTENSION_MAX: usize = 32;

/// Extensions come from the configuration, so a plain multiplicative hash is safe here.
#[derive(Clone, Copy, Debug, Default)]
struct ExtensionHasher(u64);

impl Hasher for ExtensionHasher {
    fn finish(&self) -> u64 {
        self.0 ^ self.0 >> 29
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        }
    }
}

/// A map from extension, case-insensitive, to media type.
#[derive(Clone, Debug, Default)]
pub struct Types {
    map: HashMap<Box<[u8]>, Arc<[u8]>, BuildHasherDefault<ExtensionHasher>>,
}

impl Types {
    /// An empty map: every file gets the default type.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The three default types, used without a `types` block.
    #[must_use]
    pub fn built_in() -> Self {
        let mut types = Self::new();
        for (extension, media) in
            [("html", "text/html"), ("gif", "image/gif"), ("jpg", "image/jpeg")]
        {
            types.insert(extension.as_bytes(), Arc::from(media.as_bytes()));
        }
        types
    }

    /// Sets the type of `extension` (without dot) and returns the previous one.
    pub fn insert(&mut self, extension: &[u8], media: Arc<[u8]>) -> Option<Arc<[u8]>> {
        self.map.insert(extension.to_ascii_lowercase().into(), media)
    }

    /// The type of the file at `path`, by the extension of its last segment.
    #[must_use]
    pub fn of_path(&self, path: &[u8]) -> Option<&Arc<[u8]>> {
        self.of_extension(extension(path))
    }

    /// The type of `extension` (without dot, case-insensitive).
    #[must_use]
    pub fn of_extension(&self, extension: &[u8]) -> Option<&Arc<[u8]>> {
        let mut lower = [0; EXTENSION_MAX];
        let lower = lower.get_mut(..extension.len())?;
        for (to, from) in lower.iter_mut().zip(extension) {
            *to = from.to_ascii_lowercase();
        }
        self.map.get(&*lower)
    }

    /// How many extensions have a type.
    #[must_use]
    pub fn len(&self) -> usize {
        self.map.len()
    }

    /// Whether no extension has a type.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.map.is_empty()
    }
}

impl<E: AsRef<[u8]>> FromIterator<(E, Arc<[u8]>)> for Types {
    fn from_iter<I: IntoIterator<Item = (E, Arc<[u8]>)>>(entries: I) -> Self {
        let mut types = Self::new();
        for (extension, media) in entries {
            types.insert(extension.as_ref(), media);
        }
        types
    }
}

/// The text after the last dot of the last segment; empty for `.name` and `name`.
#[must_use]
pub fn extension(path: &[u8]) -> &[u8] {
    let Some(at) = memchr::memrchr2(b'.', b'/', path) else { return &[] };
    let is_extension = path[at] == b'.' && at > 0 && path[at - 1] != b'/';
    if is_extension { &path[at + 1..] } else { &[] }
}

#[cfg(test)]
mod tests {
    use super::{Types, extension};
    use std::sync::Arc;

    #[test]
    fn the_extension_is_that_of_the_last_segment_and_dot_files_have_none() {
        let cases = [
            ("/a.html", "html"),
            ("/a.tar.gz", "gz"),
            ("/a.b/c", ""),
            ("/.htaccess", ""),
            ("/a/.x.css", "css"),
            ("/a.", ""),
            ("a", ""),
            ("", ""),
        ];
        for (path, wanted) in cases {
            assert_eq!(extension(path.as_bytes()), wanted.as_bytes(), "{path}");
        }
    }

    #[test]
    fn types_are_found_in_any_case() {
        let mut types = Types::built_in();
        assert_eq!(types.of_path(b"/A.HTML").map(|media| &**media), Some(&b"text/html"[..]));
        assert_eq!(types.of_path(b"/a.css"), None);
        assert_eq!(types.insert(b"CSS", Arc::from(&b"text/css"[..])), None);
        assert_eq!(types.of_path(b"/a.Css").map(|media| &**media), Some(&b"text/css"[..]));
        let copy: Types = [("css", Arc::from(&b"text/css"[..]))].into_iter().collect();
        assert_eq!(copy.of_extension(b"css"), types.of_extension(b"css"));
        let long = [b"/a.".as_slice(), &[b'x'; 100]].concat();
        assert_eq!((types.of_path(&long), types.len(), types.is_empty()), (None, 4, false));
    }

    #[test]
    fn the_shipped_types_file_names_each_extension_once() {
        let text = include_str!("../../../conf/mime.types");
        let body: String = text.lines().map(|line| line.split('#').next().unwrap()).collect();
        let (open, close) = (body.find('{').unwrap(), body.rfind('}').unwrap());
        assert_eq!(body[..open].trim(), "types");
        let mut types = Types::new();
        for entry in body[open + 1..close].split(';').filter(|entry| !entry.trim().is_empty()) {
            let mut words = entry.split_whitespace();
            let media = words.next().unwrap();
            assert_eq!(media.matches('/').count(), 1, "{media}");
            let mut extensions = 0;
            for extension in words {
                let earlier = types.insert(extension.as_bytes(), Arc::from(media.as_bytes()));
                assert_eq!(earlier, None, "{extension} twice");
                extensions += 1;
            }
            assert!(extensions > 0, "{media} has no extension");
        }
        for name in ["a.css", "a.js", "a.html", "a.svg", "a.woff2", "a.json", "a.webp", "a.wasm"] {
            assert!(types.of_path(name.as_bytes()).is_some(), "{name}");
        }
        assert!(types.len() > 150);
    }
}
