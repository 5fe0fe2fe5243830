//! Texts and host names with wildcards, found in nginx's order: exact, longest `*.suffix`, longest
//! `prefix.*`.
//!
//! Whoever asks brings the text in lower case.

use conf::model::MapKey;

use crate::hash::Table;

/// Keys and what belongs to them.
#[derive(Debug, Default)]
pub(crate) struct Keys {
    exact: Table<u32>,
    /// Keys begin with their dot: `.example.com` for `*.example.com`.
    suffix: Table<u32>,
    /// Keys end with their dot: `www.` for `www.*`.
    prefix: Table<u32>,
}

impl Keys {
    /// Adds an exact key; the first one keeps its value.
    pub(crate) fn exact(&mut self, key: Box<[u8]>, value: u32) {
        self.exact.entry(key).or_insert(value);
    }

    /// Adds `*.example.com` as `.example.com`; the first one keeps its value.
    pub(crate) fn suffix(&mut self, key: Box<[u8]>, value: u32) {
        self.suffix.entry(key).or_insert(value);
    }

    /// Adds `www.*` as `www.`; the first one keeps its value.
    pub(crate) fn prefix(&mut self, key: Box<[u8]>, value: u32) {
        self.prefix.entry(key).or_insert(value);
    }

    /// Adds a key of the configuration; expressions are the caller's business.
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

    /// What belongs to `text`.
    #[inline]
    pub(crate) fn find(&self, text: &[u8]) -> Option<u32> {
        if let Some(&value) = self.exact.get(text) {
            return Some(value);
        }
        self.find_wildcard(text)
    }

    fn find_wildcard(&self, text: &[u8]) -> Option<u32> {
        if text.is_empty() {
            return None;
        }
        if !self.suffix.is_empty() {
            // From the left, so that the longest suffix is seen first. `*` stands for at least one
            // byte, hence the search starts behind the first.
            for dot in memchr::memchr_iter(b'.', text).filter(|dot| *dot > 0) {
                if let Some(&value) = self.suffix.get(&text[dot..]) {
                    return Some(value);
                }
            }
        }
        if !self.prefix.is_empty() {
            for dot in memchr::memrchr_iter(b'.', text).filter(|dot| dot + 1 < text.len()) {
                if let Some(&value) = self.prefix.get(&text[..=dot]) {
                    return Some(value);
                }
            }
        }
        None
    }
}
