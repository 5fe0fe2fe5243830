//! Compression: gzip, brotli, zstd, and files compressed beforehand.

use std::collections::HashSet;
use std::sync::Arc;

/// Content types that something applies to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TypeSet {
    /// `*`
    All,
    /// These, in lower case, without parameters.
    Some(Arc<HashSet<Box<[u8]>>>),
}

impl TypeSet {
    /// A set of these types.
    #[must_use]
    pub fn of(types: &[&str]) -> Self {
        let set = types.iter().map(|text| text.to_ascii_lowercase().into_bytes().into());
        Self::Some(Arc::new(set.collect()))
    }

    /// Whether a type (in lower case, without parameters) is in the set.
    #[must_use]
    pub fn contains(&self, content_type: &[u8]) -> bool {
        match self {
            Self::All => true,
            Self::Some(set) => set.contains(content_type),
        }
    }
}

/// Use of a file `NAME.gz` (`.br`, `.zst`) beside `NAME`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Precompressed {
    /// Not used.
    Off,
    /// Used for clients that accept the coding.
    On,
    /// Used for every client.
    Always,
}

/// `gzip*` and `gzip_static`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gzip {
    /// `gzip`
    pub on: bool,
    /// `gzip_comp_level`, 1 to 9.
    pub level: u8,
    /// `gzip_min_length` in bytes.
    pub min_length: u64,
    /// `gzip_types`; `text/html` is always in.
    pub types: TypeSet,
    /// `gzip_http_version`: whether HTTP/1.0 clients get it too.
    pub http10: bool,
    /// `gzip_proxied`
    pub proxied: GzipProxied,
    /// `gzip_vary`; also for brotli and zstd.
    pub vary: bool,
    /// `gzip_disable`: expressions on `User-Agent`; `msie6` is among them as one.
    pub disable: Arc<Vec<crate::regex::Regex>>,
    /// `gzip_buffers`: number and size; accepted.
    pub buffers: (u32, usize),
    /// `gzip_window` in bytes; accepted.
    pub window: usize,
    /// `gzip_static`
    pub precompressed: Precompressed,
}

/// `gzip_proxied`: which responses to requests with a `Via` field are compressed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools, reason = "these are the words of one directive")]
pub struct GzipProxied {
    /// `any`
    pub any: bool,
    /// `expired`: `Expires` in the past.
    pub expired: bool,
    /// `no-cache`
    pub no_cache: bool,
    /// `no-store`
    pub no_store: bool,
    /// `private`
    pub private: bool,
    /// `no_last_modified`
    pub no_last_modified: bool,
    /// `no_etag`
    pub no_etag: bool,
    /// `auth`: the request has `Authorization`.
    pub auth: bool,
}

/// `brotli*`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Brotli {
    /// `brotli`
    pub on: bool,
    /// `brotli_comp_level`, 0 to 11.
    pub level: u8,
    /// `brotli_min_length` in bytes.
    pub min_length: u64,
    /// `brotli_types`; `text/html` is always in.
    pub types: TypeSet,
    /// `brotli_window` in bytes.
    pub window: usize,
    /// `brotli_buffers`: number and size; accepted.
    pub buffers: (u32, usize),
    /// `brotli_static`
    pub precompressed: Precompressed,
}

/// `zstd*`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Zstd {
    /// `zstd`
    pub on: bool,
    /// `zstd_comp_level`
    pub level: i8,
    /// `zstd_min_length` in bytes.
    pub min_length: u64,
    /// `zstd_types`; `text/html` is always in.
    pub types: TypeSet,
    /// `zstd_buffers`: number and size; accepted.
    pub buffers: (u32, usize),
    /// `zstd_static`
    pub precompressed: Precompressed,
}
