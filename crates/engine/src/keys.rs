//! Texts and host names with wildcards, found in nginx's order: exact, longest `*.suffix`, longest
//! `prefix.*`.
//!
//! The caller gives the text in lower case.

use bolide_conf::model::MapKey;

use crate::hash::NameTable;

/// Texts with their values.
#[derive(Debug, Default)]
struct Texts(NameTable<u32>);

/// Keys with their values.
#[derive(Debug, Default)]
pub(crate) struct VariableKeys {
    exact: Texts,
    /// Keys begin with their dot: `.example.com` for `*.example.com`.
    suffix: Texts,
    /// Keys end with their dot: `www.` for `www.*`.
    prefix: Texts,
}

impl Texts {
    fn add(&mut self, key: Box<[u8]>, value: u32) {
        debug_assert!(!key.iter().any(u8::is_ascii_uppercase), "keys are looked up in lower case");
        self.0.insert_new(key, value);
    }

    #[inline]
    fn find(&self, text: &[u8]) -> Option<u32> {
        self.0.get(text).copied()
    }
}

impl VariableKeys {
    /// Adds an exact key; the first one keeps its value.
    pub(crate) fn exact(&mut self, key: Box<[u8]>, value: u32) {
        self.exact.add(key, value);
    }

    /// Adds `*.example.com` as `.example.com`; the first one keeps its value.
    pub(crate) fn suffix(&mut self, key: Box<[u8]>, value: u32) {
        self.suffix.add(key, value);
    }

    /// Adds `www.*` as `www.`; the first one keeps its value.
    pub(crate) fn prefix(&mut self, key: Box<[u8]>, value: u32) {
        self.prefix.add(key, value);
    }

    /// Adds a key of the configuration; the caller handles regular expressions.
    pub(crate) fn add(&mut self, key: &MapKey, value: u32) {
        match key {
            MapKey::Exact(key) => self.exact(key.clone(), value),
            MapKey::Suffix(key) => self.suffix(key.clone(), value),
            MapKey::SuffixOrSelf(key) => {
                self.exact(key.get(1..).unwrap_or_default().into(), value);
                self.suffix(key.clone(), value);
            }
            MapKey::Prefix(key) => self.prefix(key.clone(), value),
            MapKey::Regex(_) => {}
        }
    }

    /// The value of `text`.
    #[inline]
    pub(crate) fn find(&self, text: &[u8]) -> Option<u32> {
        if let Some(value) = self.exact.find(text) {
            return Some(value);
        }
        if self.has_wildcards() { self.find_wildcard(text) } else { None }
    }

    /// Whether a text of this length may be a key.
    #[inline]
    pub(crate) const fn may_have(&self, len: usize) -> bool {
        self.exact.0.has_length(len) || self.has_wildcards()
    }

    const fn has_wildcards(&self) -> bool {
        !(self.suffix.0.is_empty() && self.prefix.0.is_empty())
    }

    fn find_wildcard(&self, text: &[u8]) -> Option<u32> {
        if text.is_empty() {
            return None;
        }
        if !self.suffix.0.is_empty() {
            // From the left, so that the longest suffix is seen first. `*` stands for at least one
            // byte, hence the search starts behind the first.
            for dot in memchr::memchr_iter(b'.', text).filter(|dot| *dot > 0) {
                if let Some(value) = self.suffix.find(&text[dot..]) {
                    return Some(value);
                }
            }
        }
        if !self.prefix.0.is_empty() {
            for dot in memchr::memrchr_iter(b'.', text).filter(|dot| dot + 1 < text.len()) {
                if let Some(value) = self.prefix.find(&text[..=dot]) {
                    return Some(value);
                }
            }
        }
        None
    }
}
