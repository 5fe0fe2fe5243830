//! The state of an `http` block while it is read.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;

use crate::ast::DirectiveNode;
use crate::drafts::{AcmeDrafts, GroupKey, HeldPath, ListenedParams, SharedZone};
use crate::model::{
    CacheZone, Charsets, ClusterConf, Definition, GeoIp, LimitZone, Listen, ListenAddress,
    ListenTransport, LocationConf, LocationSettings, LogBuffer, LogFormat, OnDemandVars,
    OriginSettings, Otel, PageStore, PhpPool, ServerConf, SourcePlace, Upstream, UpstreamId,
    WrittenLocation,
};
use crate::regex::{LetterCase, Regex};
use crate::vars::Var;

/// The `http` block so far.
#[derive(Debug, Default)]
pub(crate) struct HttpDraft {
    pub(crate) servers: Vec<ServerConf>,
    pub(crate) locations: Vec<LocationConf>,
    pub(crate) listens: Vec<Listen>,
    pub(crate) listen_index: HashMap<(ListenTransport, ListenAddress), usize>,
    /// The parameters given for each of `listens`, beside its settings.
    pub(crate) listened: Vec<ListenedParams>,
    pub(crate) log_formats: Vec<LogFormat>,
    /// The index of each format, and when it was read: only later directives see it.
    pub(crate) format_index: HashMap<String, (u32, DirectiveNode)>,
    /// The index of `combined_json`, once it is used.
    pub(crate) json_format: Option<u32>,
    /// Access logs with buffers.
    pub(crate) log_buffers: Vec<LogBuffer>,
    /// Names of variables that only captures can define, in order of first use or definition.
    pub(crate) named: Vec<String>,
    pub(crate) named_index: HashMap<String, u16>,
    /// When each was used first.
    pub(crate) named_first: Vec<DirectiveNode>,
    pub(crate) defined: HashSet<u16>,
    /// The definitions of variables by `set`, `map` and others.
    pub(crate) definitions: HashMap<u16, Definition>,
    /// Redefined variables of the server.
    pub(crate) redefined: Vec<(Var, u16)>,
    /// Whether `$ssl_ciphers` or `$ssl_curves` is used anywhere.
    pub(crate) reads_offers: bool,
    /// When and where the block's `}` was read: checks of the whole block are reported there.
    pub(crate) closed: DirectiveNode,
    pub(crate) closed_at: SourcePlace,
    pub(crate) settings: Option<Arc<LocationSettings>>,
    pub(crate) upstreams: Vec<Upstream>,
    /// Groups by identity.
    pub(crate) upstream_index: HashMap<GroupKey, UpstreamId>,
    pub(crate) php_pools: Vec<PhpPool>,
    /// Whether the current `upstream` block has a balancing method.
    pub(crate) balance_chosen: bool,
    /// Errors of groups, to be reported when the `http` block ends.
    pub(crate) upstream_faults: Vec<(DirectiveNode, String, Option<SourcePlace>)>,
    /// Errors in parameters, to be reported when the `http` block ends.
    pub(crate) param_faults: Vec<String>,
    /// Cache zones by name; `None` where only the name is known yet.
    pub(crate) cache_zones: Vec<(Box<[u8]>, Option<CacheZone>)>,
    /// Limit zones by name; `None` where only the name is known yet.
    pub(crate) limit_zones: Vec<(Box<[u8]>, Option<LimitZone>)>,
    /// The zones that a cluster shares, and where each is configured.
    pub(crate) shared_limits: Vec<(String, SourcePlace)>,
    pub(crate) page_store: PageStore,
    /// Directories for temporary files.
    pub(crate) temp_paths: Vec<PathBuf>,
    /// Which on-demand variables are used.
    pub(crate) on_demand_vars: OnDemandVars,
    pub(crate) charsets: Charsets,
    pub(crate) geoip: GeoIp,
    pub(crate) acme: AcmeDrafts,
    pub(crate) otel: Otel,
    pub(crate) cluster: Option<ClusterConf>,
    /// The directives of the block itself.
    pub(crate) written: Vec<WrittenLocation>,
    /// Sizes of shared memory zones by name; 0 while none was written.
    pub(crate) zones: HashMap<Box<[u8]>, SharedZone>,
    /// Directories in which the server stores files.
    pub(crate) held_paths: HashMap<PathBuf, HeldPath>,
    pub(super) regexes: HashMap<(Box<[u8]>, LetterCase), Regex>,
    /// Recent upstream settings: most servers have the same ones.
    pub(crate) origins: Vec<Arc<OriginSettings>>,
}
