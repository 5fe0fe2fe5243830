//! The state of a block and of the `http` block while they are read, beside their settings.
//!
//! The directives of a feature read and write the type of that feature; the reader only stores it.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crate::ast::DirectiveNode;
use crate::identifiers::drop_covered;
use crate::model::{
    AcmeConf, DirectiveFamily, IssuedConf, IssuedId, IssuedKey, SourcePlace, TlsConf,
};

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

/// The forms of `secure_link` that a block uses.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LinkForms {
    /// `secure_link`, `secure_link_md5`
    pub(crate) texts: bool,
    /// `secure_link_secret`
    pub(crate) secret: bool,
}

/// The parameters that `listen` directives set for an address, beside its settings.
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

/// A named zone of shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SharedZone {
    /// Its size; 0 if none is known yet.
    pub(crate) size: u64,
    /// Its purpose.
    pub(crate) used_by: SharedZoneUse,
}

/// The purposes of shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SharedZoneUse {
    /// A cache of this family.
    Cache(DirectiveFamily),
    /// An upstream group.
    Group,
    /// `sticky learn`
    Sticky,
    /// `limit_req`
    Requests,
    /// `limit_conn`
    Connections,
    /// `ssl_session_cache`
    Sessions,
    /// `ssl_ocsp_cache`
    Revocations,
}

/// The source of a block's certificates.
#[derive(Clone, Debug, Default)]
pub(crate) struct AcmeDraft {
    /// `acme_certificate`
    pub(crate) wanted: Option<Arc<WantedCertificate>>,
    /// `auto_https`
    pub(crate) auto: Option<Arc<AutoHttps>>,
}

/// A parsed `acme_certificate`.
#[derive(Clone, Debug)]
pub(crate) struct WantedCertificate {
    pub(crate) issuers: Vec<usize>,
    /// Empty: those of the server.
    pub(crate) names: Vec<Box<str>>,
    /// `on_demand`: the names that clients request.
    pub(crate) on_demand: bool,
    pub(crate) key: IssuedKey,
    pub(crate) place: SourcePlace,
}

/// The identity of an order: issuers, names, the kind of key.
pub(crate) type WantedKey = (Vec<usize>, Vec<Box<str>>, IssuedKey);

/// `auto_https`
#[derive(Clone, Debug)]
pub(crate) struct AutoHttps {
    pub(crate) issuers: AutoIssuers,
    /// `on local`: the issuer if no name of a server is public.
    pub(crate) private: Option<usize>,
    pub(crate) place: SourcePlace,
    /// Whether it was set in a server block.
    pub(crate) is_own: bool,
}

/// The issuers.
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

/// Certificates and keys in the order of their directives, paired at the end of the server.
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
    /// The id of each certificate.
    pub(crate) index: HashMap<WantedKey, IssuedId>,
    pub(crate) auto_servers: Vec<AutoServer>,
    /// Servers with `$acme_certificate` and no `acme_certificate`, and where.
    pub(crate) unissued: Vec<(usize, SourcePlace)>,
}

impl AcmeDrafts {
    /// The id of a certificate; equal ones are ordered once.
    pub(crate) fn order(&mut self, mut wanted: IssuedConf) -> IssuedId {
        drop_covered(&mut wanted.names);
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

/// A directory that a directive names.
#[derive(Clone, Debug)]
pub(crate) struct HeldPath {
    /// Whether a cache stores responses in it.
    pub(crate) is_cache: bool,
    pub(crate) levels: Vec<u8>,
    pub(crate) order: DirectiveNode,
    pub(crate) place: SourcePlace,
}
