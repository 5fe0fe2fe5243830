//! What a block and the `http` block remember of their directives beside the settings that they
//! make.
//!
//! Each type is filled and read by the directives of its feature; the reader only keeps it.

use std::collections::HashSet;

use crate::ast::DirectiveNode;
use crate::model::SourcePlace;

/// The cache directives of one block so far.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CacheDraft {
    /// Words of `fastcgi_cache_methods`, by their place in that directive's table.
    pub(crate) methods: u16,
    /// Words of `fastcgi_cache_use_stale`, by their place in that directive's table.
    pub(crate) stale: u16,
    /// Whether the block has `page_cache`.
    pub(crate) has_mode: bool,
    /// Whether the block has `page_cache_default_ttl`.
    pub(crate) has_ttl: bool,
}

/// Sizes as written; twice the larger buffer is the default.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct OriginDraft {
    pub(crate) busy_buffers_size: Option<usize>,
    pub(crate) temp_file_write_size: Option<usize>,
    /// Whether the last block with the directive has `fastcgi_next_upstream off`.
    pub(crate) next_off: bool,
}

/// The forms that a block uses.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LinkForms {
    /// `secure_link`, `secure_link_md5`
    pub(crate) texts: bool,
    /// `secure_link_secret`
    pub(crate) secret: bool,
}

/// The parameters that `listen` directives gave for an address, beside its present state.
#[derive(Clone, Debug, Default)]
pub(crate) struct ListenedParams {
    /// Whether socket options were given.
    pub(crate) options: bool,
    /// Whether `default_server` was given.
    pub(crate) default_server: bool,
    /// `proxy_protocol`, `ssl`, `http2` as bits: those of the last `listen` that counts.
    pub(crate) protocols: u8,
    pub(crate) protocols_set: bool,
    pub(crate) protocols_changed: bool,
}

/// The identity of a group.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct GroupKey {
    pub(crate) host: Box<[u8]>,
    pub(crate) port: Option<u16>,
    /// The port of an address without one.
    pub(crate) default_port: Option<u16>,
}

/// The keys of a table, to find duplicates.
#[derive(Clone, Debug, Default)]
pub(crate) struct MapKeys {
    pub(crate) exact: HashSet<Box<[u8]>>,
    pub(crate) suffixes: HashSet<Box<[u8]>>,
    pub(crate) prefixes: HashSet<Box<[u8]>>,
}

/// Shared memory that was named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SharedZone {
    /// Its size; 0 while none was written.
    pub(crate) size: u64,
    /// Its purpose.
    pub(crate) used_by: SharedZoneUse,
}

/// The purposes of shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SharedZoneUse {
    /// A cache of `fastcgi_cache`.
    Cache,
    /// A cache of `proxy_cache`.
    ProxyCache,
    /// An upstream group.
    Group,
    /// `limit_req`
    Requests,
    /// `limit_conn`
    Connections,
    /// `ssl_session_cache`
    Sessions,
    /// `ssl_ocsp_cache`
    Revocations,
}

/// A directory that was named.
#[derive(Clone, Debug)]
pub(crate) struct HeldPath {
    /// Whether a cache stores responses in it.
    pub(crate) is_cache: bool,
    pub(crate) levels: Vec<u8>,
    pub(crate) order: DirectiveNode,
    pub(crate) place: SourcePlace,
}
