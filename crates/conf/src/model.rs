//! The typed model of a configuration: every default explicit, inheritance resolved, plain data.
//!
//! It does not know the text, except the places that messages need. The engine makes it fast
//! (lookup tables, compiled templates).

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

pub mod access;
pub mod acme;
mod apache;
pub mod body;
pub mod browsers;
pub mod cache;
pub mod charset;
pub mod cluster;
pub mod compress;
pub mod console;
pub mod derived;
pub mod edits;
mod families;
mod family;
pub mod filters;
pub mod geoip;
pub mod limits;
pub mod listen;
pub mod location;
pub mod log;
pub mod mp4;
pub mod origin;
pub mod origin_tls;
pub mod otel;
pub mod place;
pub mod proxy;
pub mod resolver;
pub mod rewrite;
pub mod server;
pub mod settings;
pub mod spans;
pub mod tls;
pub mod upstream;
pub mod user_id;
pub mod written;

pub use access::{
    AccessRule, AccessVerdict, AuthRequest, Network, RealIp, RealIpHeader, Referers, SecureLink,
    Who,
};
pub use acme::{
    AcmeConf, DemandedRate, IssuedConf, IssuedId, IssuedKey, IssuerAccount, IssuerAuthority,
    IssuerChallenge, IssuerConf, IssuerKey,
};
pub use apache::{ApacheDirectory, ApacheHandler, ApacheProxy};
pub use body::{BodyFiles, TempPath};
pub use browsers::{BrowserName, Browsers, browser_version};
pub use cache::{
    CacheMethods, CachePace, CachePurge, CacheSettings, CacheValid, CacheZone, CacheZoneId,
    DropQuery, HeuristicFreshness, NeverCached, PageCache, PageMode, PagePrefix, PageScopes,
    PageStore, QueryPattern, StatusHeader, UseStale, VaryBy, ZoneUse,
};
pub use charset::{
    CharsetCodes, CharsetMap, Charsets, MapDirection, Utf8Step, Utf8Text, utf8_step,
};
pub use cluster::{ClusterAddress, ClusterConf, Secret, SharedObjects};
pub use compress::{Brotli, Gzip, GzipProxied, Precompressed, TypeSet, Zstd};
pub use console::ConsoleGuard;
pub use derived::{Definition, Geo, MapConf, MapKey, SplitClients};
pub use edits::{HeaderEdit, HeaderEditMode, HeaderEdits};
pub use families::{FamilySettings, OtherFamilies};
pub use family::DirectiveFamily;
pub use filters::{Addition, Filters, Ssi, Substitution};
pub use geoip::{ClassicGeo, GeoIp, GeoIpFile, GeoIpMetadata, GeoIpProxies, GeoIpValue, GeoIpVar};
pub use limits::{
    ConnLimit, LimitKind, LimitRules, LimitTerms, LimitZone, LimitZoneId, RequestLimit,
};
pub use listen::{Listen, ListenAddress, ListenId, ListenTransport, SocketOptions, TcpKeepAlive};
pub use location::{
    Except, Fallback, Handler, HealthProbe, LocationConf, LocationId, Matcher, Return, ReturnBody,
    TryFiles, WrittenLocation,
};
pub use log::{
    AccessLog, AccessLogs, AccessTarget, ErrorLog, Escape, LogBuffer, LogFileCache, LogFormat,
    LogLevel, LogTargetConf, Syslog, SyslogServer,
};
pub use mp4::Mp4Settings;
pub use origin::{
    Bind, IgnoreHeaders, NextUpstream, OriginSettings, Param, Pass, PassTo, PhpLimit, PhpPool,
    PhpProtocol, PhpResource, Protocol,
};
pub use origin_tls::{OriginTlsConf, PemName};
pub use otel::{Otel, OtelContext, OtelEndpoint, OtelExporter, OtelSettings};
pub use place::SourcePlace;
pub use proxy::{
    CookieFlags, CookieName, ProxyField, ProxySettings, ProxyUrl, ProxyVersion, Redirect,
    Replacement,
};
pub use resolver::NameServers;
pub use rewrite::{FileTest, IfTest, RewriteOp, RewriteRule, SetTarget, Then};
pub use server::{AltSvc, Http2, Http3, ServerConf, ServerId, ServerName, ServerSettings};
pub use settings::{
    AddHeader, Autoindex, AutoindexFormat, Charset, CharsetOf, CloseSettings, DocumentRoot,
    ErrorPage, Expires, ExpiresRule, IfModifiedSince, KeepaliveDisable, LingeringClose,
    ListInherit, LocationSettings, Mapping, OpenFileCache, Overwrite, PortInRedirect, Satisfy,
    ServerTokens, SymlinksConf, TypesMap,
};
pub use spans::Spans;
pub use tls::{
    CertificateCache, CertificateConf, ConfCommands, OPENSSL_COMMANDS, Pem, Protocols,
    SessionCache, TlsConf, VerifyClient,
};
pub use upstream::{
    Balance, Keepalive, PeerAddress, Queue, RunTimeName, SAME_SITES, Sticky, StickyCookie,
    StickyExpires, StickyLearn, Upstream, UpstreamId, UpstreamKind, UpstreamServer,
};
pub use user_id::{UserId, UserIdExpires, UserIdFlags, UserIdMode};
pub use written::{DavMethod, DavMethods, DavSettings, FileAccess, StorePlace};

/// A whole configuration.
#[derive(Clone, Debug)]
pub struct Config {
    /// The main block.
    pub main: Main,
    /// The `events` block.
    pub events: Events,
    /// The `http` block, if there is one.
    pub http: Option<Http>,
}

/// The main block.
#[derive(Clone, Debug)]
pub struct Main {
    /// `daemon`: whether to go to the background.
    pub daemon: bool,
    /// `master_process`
    pub master_process: bool,
    /// `user`: the account to become.
    pub user: Option<String>,
    /// The place of that directive.
    pub user_place: SourcePlace,
    /// `user`: the group to become; without it, the group named like the user.
    pub group: Option<String>,
    /// `pid`
    pub pid: PathBuf,
    /// `lock_file`
    pub lock_file: PathBuf,
    /// `worker_processes`: how many workers.
    pub worker_processes: Workers,
    /// `worker_rlimit_nofile`: open files per worker.
    pub worker_rlimit_nofile: Option<u64>,
    /// `worker_rlimit_core`: bytes of a core file.
    pub worker_rlimit_core: Option<u64>,
    /// `worker_priority`: as `nice`.
    pub worker_priority: i32,
    /// `worker_cpu_affinity`
    pub worker_cpu_affinity: CpuAffinity,
    /// `worker_shutdown_timeout`: how long draining may take.
    pub worker_shutdown_timeout: Option<Duration>,
    /// `worker_watchdog`
    pub worker_watchdog: Watchdog,
    /// `reload_watch`: how long a new configuration is watched after a reload; zero for not.
    pub reload_watch: Duration,
    /// `reload_on_change`
    pub reload_on_change: bool,
    /// `working_directory`
    pub working_directory: Option<PathBuf>,
    /// `error_log` of the main block.
    pub error_log: Arc<Vec<ErrorLog>>,
    /// `env`: names to keep, with a value where one is given.
    pub env: Vec<(String, Option<String>)>,
}

/// The reaction to a worker that hangs in one turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Watchdog {
    /// A line in the log.
    Log,
    /// The process ends by SIGABRT, to leave a core file.
    Abort,
    /// The process exits with status 70, for the service manager to restart it.
    Restart,
}

/// How many workers there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Workers {
    /// One per core.
    Auto,
    /// This many.
    Count(u32),
}

/// Which cores workers run on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CpuAffinity {
    /// Wherever the system puts them.
    None,
    /// One core each, among those allowed (`auto MASK`; `None` means all).
    Auto(Option<u64>),
    /// One mask per worker; the last one is for the rest.
    Masks(Vec<u64>),
}

/// The `events` block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Events {
    /// `worker_connections`: open connections per worker.
    pub worker_connections: u32,
    /// `multi_accept`
    pub multi_accept: bool,
    /// `debug_connection`: clients of which every log takes lines of all levels.
    pub debug_connection: Vec<Who>,
}

/// The `http` block.
#[derive(Clone, Debug)]
pub struct Http {
    /// Settings of the block itself.
    pub settings: Arc<LocationSettings>,
    /// Servers in file order; a [`ServerId`] is an index.
    pub servers: Vec<ServerConf>,
    /// Locations of all servers; a [`LocationId`] is an index.
    pub locations: Vec<LocationConf>,
    /// One per distinct address and transport, in order of first mention; [`ListenId`] is an index.
    pub listens: Vec<Listen>,
    /// Log formats; index 0 is `combined`.
    pub log_formats: Vec<LogFormat>,
    /// Access logs with buffers.
    pub log_buffers: Arc<[LogBuffer]>,
    /// Variables that the configuration defines; [`crate::vars::Var::Named`] is an index.
    pub named: Vec<String>,
    /// The definition of each of `named`, used where no value was assigned.
    pub definitions: Vec<Definition>,
    /// Variables of the server that the configuration redefines, and their index in `named`.
    pub redefined: Vec<(crate::vars::Var, u16)>,
    /// Groups of upstream servers, including those of single addresses and of pools; an
    /// [`UpstreamId`] is an index.
    pub upstreams: Vec<Upstream>,
    /// Pools of PHP processes that the server runs.
    pub php_pools: Vec<PhpPool>,
    /// `fastcgi_cache_path`; a [`CacheZoneId`] is an index.
    pub cache_zones: Vec<CacheZone>,
    /// `limit_req_zone`, `limit_conn_zone`; a [`LimitZoneId`] is an index.
    pub limit_zones: Vec<LimitZone>,
    /// Where the page cache stores responses.
    pub page_store: PageStore,
    /// Whether the configuration uses `$ssl_ciphers`, `$ssl_curves` or `$ssl_session_id`, so that
    /// handshakes must be recorded.
    pub reads_offers: bool,
    /// Directories for temporary files that the configuration names, in any order.
    pub temp_paths: Vec<PathBuf>,
    /// The directives of the block itself, without inner blocks.
    pub written: Vec<WrittenLocation>,
    /// Which variables that need a system call are used anywhere.
    pub on_demand_vars: OnDemandVars,
    /// Where names of files begin that variables gave without a slash.
    pub bases: PathBases,
    /// `charset_map`, and the names of charsets.
    pub charsets: Charsets,
    /// Databases of addresses.
    pub geoip: GeoIp,
    /// Certificates that issuers are asked for.
    pub acme: AcmeConf,
    /// Traces.
    pub otel: Otel,
    /// What is shared with other servers.
    pub cluster: Option<ClusterConf>,
}

/// Variables whose values are computed only if the configuration names them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OnDemandVars {
    /// `$tcpinfo_*`
    pub tcp_info: bool,
    /// `$realpath_root`
    pub real_root: bool,
    /// `$page_cache_reason`
    pub cache_reason: bool,
}

/// Directories below which relative names are.
#[derive(Clone, Debug, Default)]
pub struct PathBases {
    /// The prefix (`-p`): for `root` and `alias`.
    pub prefix: Arc<[u8]>,
    /// The directory of the configuration: for `auth_basic_user_file`.
    pub conf: Arc<[u8]>,
}

impl Http {
    /// The server of `id`.
    #[must_use]
    pub fn server(&self, id: ServerId) -> &ServerConf {
        &self.servers[id.index()]
    }

    /// The location of `id`.
    #[must_use]
    pub fn location(&self, id: LocationId) -> &LocationConf {
        &self.locations[id.index()]
    }
}
