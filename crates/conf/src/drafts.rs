//! What a block and the `http` block remember of their directives beside the settings that they
//! make.
//!
//! Each type is filled and read by the directives of its feature; the reader only keeps it.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crate::ast::DirectiveNode;
use crate::model::{AcmeConf, IssuedConf, IssuedId, IssuedKey, SourcePlace, TlsConf};

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

/// Where the certificates of a block come from.
#[derive(Clone, Debug, Default)]
pub(crate) struct AcmeDraft {
    /// `acme_certificate`
    pub(crate) wanted: Option<Arc<WantedCertificate>>,
    /// `auto_https`
    pub(crate) auto: Option<Arc<AutoHttps>>,
}

/// `acme_certificate` as it was read.
#[derive(Clone, Debug)]
pub(crate) struct WantedCertificate {
    pub(crate) issuers: Vec<usize>,
    /// Empty: those of the server.
    pub(crate) names: Vec<Box<str>>,
    /// `on_demand`: those that clients ask for.
    pub(crate) on_demand: bool,
    pub(crate) key: IssuedKey,
    pub(crate) place: SourcePlace,
}

/// What makes two orders one: issuers, names, the kind of key.
pub(crate) type WantedKey = (Vec<usize>, Vec<Box<str>>, IssuedKey);

/// `auto_https`
#[derive(Clone, Debug)]
pub(crate) struct AutoHttps {
    pub(crate) issuers: AutoIssuers,
    /// `on local`: who is asked where no name of a server is public.
    pub(crate) private: Option<usize>,
    pub(crate) place: SourcePlace,
    /// Whether it stands in a server block.
    pub(crate) is_own: bool,
}

/// Who is asked for certificates.
#[derive(Clone, Debug)]
pub(crate) enum AutoIssuers {
    /// Let's Encrypt: `on`.
    Implied,
    /// In this order.
    Named(Vec<usize>),
}

/// A server block with `auto_https`, until all of them are known.
#[derive(Clone, Debug)]
pub(crate) struct AutoServer {
    /// Its index.
    pub(crate) server: usize,
    pub(crate) auto: Arc<AutoHttps>,
}

/// Certificates and keys as they come, paired when the server ends.
#[derive(Clone, Debug)]
pub(crate) struct TlsDraft {
    pub(crate) conf: TlsConf,
    pub(crate) certificates: Vec<(Vec<u8>, SourcePlace)>,
    pub(crate) keys: Vec<Vec<u8>>,
}

/// The certificates of all blocks.
#[derive(Debug, Default)]
pub(crate) struct AcmeDrafts {
    pub(crate) conf: AcmeConf,
    /// Which certificate each of them is.
    pub(crate) index: HashMap<WantedKey, IssuedId>,
    pub(crate) auto_servers: Vec<AutoServer>,
    /// Servers with `$acme_certificate` and no `acme_certificate`, and where.
    pub(crate) unissued: Vec<(usize, SourcePlace)>,
}

impl AcmeDrafts {
    /// The id of a certificate; one that is wanted already is not ordered twice.
    pub(crate) fn order(&mut self, wanted: IssuedConf) -> IssuedId {
        let mut names = wanted.names.clone();
        names.sort_unstable();
        let key = (wanted.issuers.clone(), names, wanted.key);
        let all = &mut self.conf.certificates;
        *self.index.entry(key).or_insert_with(|| {
            all.push(wanted);
            IssuedId((all.len() - 1) as u32)
        })
    }
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
