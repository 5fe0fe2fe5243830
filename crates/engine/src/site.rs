//! The compiled configuration: name tables, location trees, content types, prepared texts.
//!
//! Owns every decision that can be made once per configuration. It knows no request.

use std::sync::Arc;

use bolide_conf::model::{
    self, Config, HealthProbe, Http, ListenId, LocationSettings, OnDemandVars,
};
use bolide_geoip::LiveGeoDatabase;

use crate::caching::{CacheNamespaces, Caching};
use crate::challenges::{CertifiedNames, HttpChallenges};
use crate::content::params::ParamPlan;
use crate::ctx::ClientAddress;
use crate::derived::Derived;
use crate::forwarded::is_trusted;
use crate::media_types::MediaTypes;
use crate::metrics::process::SharedFigures;
use crate::metrics::rows::MetricRow;
use crate::names::ServerNames;
use crate::pages::{ErrorPages, Signature};
use crate::phase::rewrite::Op;
use crate::route::{LocationIndex, Precontent, RouteLevel};
use crate::tracing::queue::SpanQueue;
use bolide_limit::Zone;
use bolide_patterns::Captures;

mod compile;
mod databases;
mod figures;
mod listening;
mod passed_fields;
mod shared;
mod zones;

pub(crate) use figures::location_label;
pub use shared::SiteRef;

/// A compiled configuration: immutable, one per generation, shared by all workers.
#[derive(Debug)]
pub struct Site {
    config: Arc<Config>,
    listens: Vec<Listening>,
    pub(crate) servers: Vec<CompiledServer>,
    locations: Vec<CompiledLocation>,
    origin_tls: Vec<Arc<model::OriginTlsConf>>,
    derived: Vec<Derived>,
    redefined: Vec<(bolide_conf::Var, u16)>,
    /// Whether reading a variable may change `$1`.
    pub(crate) maps_capture: bool,
    pages: [ErrorPages; 2],
    hostname: Box<str>,
    on_demand_vars: OnDemandVars,
    /// Whether `$request_body_file` is used anywhere.
    pub(crate) names_body_file: bool,
    /// Whether locations differ in how they close connections (`lingering_*`, `send_timeout`).
    manners_vary: bool,
    /// The store and its namespaces, if anything is cached.
    kept: Option<CacheNamespaces>,
    /// The zones of `limit_req` and `limit_conn`.
    limit_zones: Vec<Arc<Zone>>,
    /// The databases of `geoip2` and `geoip_*`, in the order of the configuration.
    geo_databases: Vec<Arc<LiveGeoDatabase>>,
    /// The metrics registry, which all configurations of the process share.
    figures: SharedFigures,
    /// Pending ACME challenges and certified names, if an issuer validates by `http-01`.
    pub(crate) challenges: Option<(HttpChallenges, CertifiedNames)>,
    /// The queue of finished spans for `otel_exporter`.
    spans: Option<Arc<SpanQueue>>,
    serial: u64,
}

/// One listening address.
#[derive(Debug)]
struct Listening {
    names: ServerNames,
    /// The `Alt-Svc` values of its servers, sorted by server.
    alt_svc: Box<[(u32, Box<[u8]>)]>,
}

/// Which HTTP versions are disabled in a server that shares its address.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DisabledProtocols {
    pub(crate) http2: bool,
    pub(crate) http3: bool,
}

/// A compiled server block.
#[derive(Debug)]
pub(crate) struct CompiledServer {
    /// Its outer locations.
    pub(crate) level: RouteLevel,
    /// Its named locations, with the `@`.
    pub(crate) named: Vec<(Arc<[u8]>, LocationIndex)>,
    /// The pseudo-location that stands for the server block itself.
    pub(crate) root: LocationIndex,
    /// `$server_name`
    pub(crate) name: Arc<str>,
    /// Whether the server block has `set_real_ip_from`.
    pub(crate) has_real_ip: bool,
    /// Whether anything is decided before its rewrite phase: the real client, ACME challenges, the
    /// redirect to HTTPS.
    pub(crate) decides_early: bool,
    /// The redirect of `auto_https` for requests without TLS.
    pub(crate) redirect: Option<model::Return>,
    /// `merge_slashes`
    pub(crate) merge_slashes: bolide_http::uri::MergeSlashes,
    /// Whether HTTP/2 or HTTP/3 is disabled.
    pub(crate) disabled: DisabledProtocols,
    /// `ssl_verify_client`
    pub(crate) verify_client: model::VerifyClient,
    /// The CAs and lists that verify client certificates.
    pub(crate) trust: ClientTrust,
}

/// The inputs of client verification; equal ones give equal verdicts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ClientTrust {
    /// `ssl_client_certificate`, `ssl_trusted_certificate`, `ssl_crl`
    pub(crate) files: [Option<std::path::PathBuf>; 3],
    /// `ssl_verify_depth`
    pub(crate) depth: u32,
}

/// A compiled location; the fields that every request needs are precomputed.
#[derive(Debug)]
pub(crate) struct CompiledLocation {
    /// The settings that are not precomputed.
    pub(crate) settings: Arc<LocationSettings>,
    /// Its name in cache keys where the path does not identify it: `@name`, the condition of an
    /// `if`.
    pub(crate) key_name: Box<[u8]>,
    /// `internal`
    pub(crate) internal: bool,
    /// `limit_except`
    pub(crate) except: Option<Box<model::Except>>,
    /// The built-in handler, if neither files nor an upstream answer.
    pub(crate) builtin: Option<Builtin>,
    /// The rewrite phase.
    pub(crate) program: Box<[Op]>,
    /// Whether it may refuse a client, may answer clients differently, or has to find the real
    /// client.
    pub(crate) guarded: bool,
    /// Whether the client, and not only the target, selects the file, page or cached object.
    pub(crate) selects_by_client: bool,
    /// Whether `allow`, `deny`, `auth_*` or `limit_*` may refuse a request. Refusals by `.htaccess`
    /// files are decided in a step of their own.
    pub(crate) may_refuse: bool,
    /// The `…_pass` that answers, if there is one.
    pub(crate) pass: Option<Arc<UpstreamPass>>,
    /// Whether more than the target may select the upstream, or the page there.
    pub(crate) varies_origin: bool,
    /// What page keys have of upstream requests.
    pub(crate) sent: crate::caching::SentTexts,
    /// Whether `fastcgi_cache_purge` and its kin purge by each request.
    pub(crate) purges_key: bool,
    /// The compiled cache directives.
    pub(crate) caching: Option<Caching>,
    /// `try_files`
    pub(crate) try_files: Option<Arc<model::TryFiles>>,
    /// Whether a log takes lines of level `debug`.
    pub(crate) debugs: bool,
    /// The row of metrics that counts its requests, if there is one.
    pub(crate) row: Option<MetricRow>,
    /// Whether the end of a request is reported: by a debug line, a span, a counter, or
    /// `$page_cache_reason`.
    pub(crate) notes_end: bool,
    /// The step between access and content.
    pub(crate) precontent: Precontent,
    /// `apache_htaccess`: the step after it.
    pub(crate) htaccess: Option<Precontent>,
    /// The text of `Server`.
    pub(crate) signature: Signature,
    /// Content types by extension, with charset and codings.
    pub(crate) kinds: Arc<MediaTypes>,
    /// How long the table of open files trusts its entries.
    pub(crate) policy: bolide_files::ProbePolicy,
    /// `disable_symlinks … from=`
    pub(crate) links_checked_from: Option<bolide_conf::Template>,
    /// `if_modified_since` and `max_ranges`.
    pub(crate) rules: crate::delivery::DeliveryRules,
    /// `root` or `alias` without variables.
    pub(crate) fixed_root: Option<Arc<[u8]>>,
    /// Whether the mapping from a normalised path to a file involves more than `root`: `alias` or
    /// variables.
    pub(crate) maps_beyond_root: bool,
    /// The rules of `add_header`.
    pub(crate) headers: Arc<[HeaderRule]>,
    /// The rules of `add_trailer`.
    pub(crate) trailers: Arc<[HeaderRule]>,
    /// Whether responses may have trailers: `add_trailer` or `proxy_pass_trailers`.
    pub(crate) is_trailed: bool,
    /// Whether some `add_header` sets `Last-Modified`.
    pub(crate) sets_last_modified: bool,
    /// Whether some `add_header` sets `Alt-Svc`.
    pub(crate) sets_alt_svc: bool,
    /// Whether any compression, dynamic or static, is on.
    pub(crate) coded: bool,
    /// Whether `expires` has an effect.
    pub(crate) expires: bool,
    /// Whether body filters may apply.
    pub(crate) filters_bodies: bool,
    /// Whether upstream responses may be recoded to another charset.
    pub(crate) recodes_passed: bool,
    /// Whether `post_action` is set.
    pub(crate) has_post_action: bool,
    /// Whether the rewrite phase has an effect: instructions, edits of request fields, or a
    /// decision about a span.
    pub(crate) rewrites: bool,
    /// Whether `more_set_headers`, `add_header` or `expires` do anything.
    pub(crate) is_decorated: bool,
}

/// The built-in content handlers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Builtin {
    /// `bolide_admin`
    Admin,
    /// `bolide_console`
    Console,
    /// `empty_gif`
    EmptyGif,
    /// `flv`
    Flv,
    /// `health`
    Health(HealthProbe),
    /// `metrics`
    Metrics,
    /// `mp4`
    Mp4,
    /// `stub_status`
    StubStatus,
}

/// A compiled `…_pass`.
#[derive(Debug)]
pub(crate) struct UpstreamPass {
    /// The directive as configured.
    pub(crate) conf: model::Pass,
    /// Whether it is a `php_pool`, which runs existing files only.
    pub(crate) is_pool: bool,
    /// The settings of PHP that the pool fixes (`ini`), by name.
    pub(crate) fixed_ini: Box<[Box<str>]>,
    /// The compiled parameters of CGI-like protocols.
    pub(crate) plan: Arc<ParamPlan>,
    /// The compiled request of `proxy_pass`.
    pub(crate) proxied: Option<Box<crate::content::proxied::ProxyPlan>>,
    /// Its TLS settings (`https`), an index into `Site::origin_tls`.
    pub(crate) secure: Option<u32>,
    /// The fields of its responses that are hidden from clients.
    hidden: Arc<Hidden>,
}

/// Fields of upstream responses that are hidden from clients.
#[derive(Debug)]
struct Hidden {
    /// Those with a known name.
    names: Vec<bolide_http::Name>,
    /// The names of all, in lower case.
    texts: Vec<Box<[u8]>>,
}

/// One `add_header` or `add_trailer`, its name parsed.
#[derive(Debug)]
pub(crate) struct HeaderRule {
    /// The parsed name.
    pub(crate) name: bolide_http::Name,
    /// The directive as configured.
    pub(crate) conf: model::AddHeader,
}

impl Site {
    /// Compiles `config`.
    ///
    /// # Errors
    ///
    /// Conflicts between directives that are valid by themselves.
    pub fn compile(config: Arc<Config>) -> Result<Self, Vec<bolide_conf::Diagnostic>> {
        Ok(compile::site(config))
    }

    /// A number that is unique among the sites of this process.
    pub(crate) const fn serial(&self) -> u64 {
        self.serial
    }

    /// Sets `$hostname`.
    #[must_use]
    pub fn on_host(mut self, name: &str) -> Self {
        self.hostname = name.into();
        self
    }

    /// Gives the site a store, if it caches anything.
    #[must_use]
    pub fn with_store(mut self, store: Arc<bolide_cache::Store>) -> Self {
        if let Some(http) = self.config.http.as_ref().filter(|_| self.keeps_answers()) {
            self.kept = Some(CacheNamespaces::new(http, store));
        }
        self
    }

    /// The zone with this id.
    pub(crate) fn limit_zone(&self, id: model::LimitZoneId) -> &Arc<Zone> {
        &self.limit_zones[id.index()]
    }

    /// The name of the zone with this id.
    pub(crate) fn limit_zone_name(&self, id: model::LimitZoneId) -> &[u8] {
        let zone = self.http().and_then(|http| http.limit_zones.get(id.index()));
        zone.map_or(&[], |zone| &zone.name)
    }

    /// Whether [`Self::with_store`] has an effect: a location caches responses, or there may be
    /// pages on disk, whose directory has to know that no purge reaches them.
    #[must_use]
    pub fn keeps_answers(&self) -> bool {
        let has_files = self.http().is_some_and(|http| http.page_store.path.is_some());
        has_files || self.locations.iter().any(|location| location.caching.is_some())
    }

    /// The store, if anything is cached.
    #[must_use]
    pub fn store(&self) -> Option<&Arc<bolide_cache::Store>> {
        self.kept.as_ref().map(|kept| &kept.store)
    }

    /// Purges the pages that no purge reached while `last` was in force.
    pub fn purge_unattended(&self, last: &Self) {
        if let Some(kept) = &self.kept {
            kept.purge_unattended(last.kept.as_ref());
        }
    }

    /// Makes the store use the directories that this configuration names, and no others.
    pub fn open_trees(&self) {
        if let Some(kept) = &self.kept {
            if let Some(tree) = &kept.page_tree {
                tree.expect_sites(&kept.disk_sites());
            }
            kept.store.set_trees(&kept.trees);
        }
    }

    /// Whether cached responses survive the process.
    #[must_use]
    pub fn has_trees(&self) -> bool {
        self.kept.as_ref().is_some_and(|kept| !kept.trees.is_empty())
    }

    /// The store and its namespaces.
    pub(crate) const fn kept(&self) -> Option<&CacheNamespaces> {
        self.kept.as_ref()
    }

    /// Which variables are used whose values need a system call.
    #[must_use]
    pub const fn on_demand_vars(&self) -> OnDemandVars {
        self.on_demand_vars
    }

    /// `$hostname`; empty if unknown.
    pub(crate) const fn hostname(&self) -> &str {
        &self.hostname
    }

    /// Access logs with `buffer=`.
    #[must_use]
    pub fn log_buffers(&self) -> Arc<[model::LogBuffer]> {
        self.http().map_or_else(Arc::default, |http| http.log_buffers.clone())
    }

    /// The configuration that was compiled.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The addresses to listen on; `ConnInfo::listen` is an index.
    #[must_use]
    pub fn listens(&self) -> &[model::Listen] {
        self.http().map_or(&[], |http| &http.listens)
    }

    /// The server (an index into the configuration's servers) whose certificate serves `name`, a
    /// name from SNI in lower case; without a name, the default server.
    #[must_use]
    pub fn server_of_name(&self, listen: ListenId, name: Option<&str>) -> usize {
        let Some(listening) = self.listens.get(listen.index()) else { return 0 };
        let Some(name) = name else { return listening.names.default as usize };
        listening.names.find(name.as_bytes(), &mut Captures::default()) as usize
    }

    /// Whether locations differ in how they close connections.
    pub(crate) const fn manners_vary(&self) -> bool {
        self.manners_vary
    }

    /// Whether `debug_connection` names this client.
    pub(crate) fn debugs_client(&self, client: ClientAddress) -> bool {
        let named = &self.config.events.debug_connection;
        !named.is_empty() && is_trusted(named, client)
    }

    /// The `http` block.
    pub(crate) fn http(&self) -> Option<&Http> {
        self.config.http.as_ref()
    }

    /// The server on `listen` for a normalised `host`.
    #[inline]
    pub(crate) fn server_of_host(
        &self,
        listen: usize,
        host: &[u8],
        captures: &mut Captures,
    ) -> u32 {
        self.listens.get(listen).map_or(0, |listening| listening.names.find(host, captures))
    }

    /// The server on `listen` for the server name of a TLS handshake.
    #[must_use]
    pub fn server_named(&self, listen: usize, name: &str) -> u32 {
        let name = name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase();
        self.server_of_host(listen, name.as_bytes(), &mut Captures::default())
    }

    /// The server on `listen` for a `Host` value, with or without a port.
    #[must_use]
    pub fn server_asked(&self, listen: usize, authority: &[u8]) -> u32 {
        let mut host = Vec::new();
        match bolide_http::host::normalise(authority, &mut host) {
            Ok(_) => self.server_of_host(listen, &host, &mut Captures::default()),
            Err(_) => self.default_server(listen),
        }
    }

    /// Whether some server on `listen` has a name that `host` matches.
    pub(crate) fn is_named(&self, listen: usize, host: &[u8], captures: &mut Captures) -> bool {
        let listening = self.listens.get(listen);
        listening.is_some_and(|listening| listening.names.find_named(host, captures).is_some())
    }

    /// The default server of `listen`.
    pub(crate) fn default_server(&self, listen: usize) -> u32 {
        self.listens.get(listen).map_or(0, |listening| listening.names.default)
    }

    /// The `Alt-Svc` of `server` on `listen`; empty if there is none.
    #[inline]
    pub(crate) fn alt_svc(&self, listen: usize, server: u32) -> &[u8] {
        let Some(listening) = self.listens.get(listen) else { return &[] };
        if listening.alt_svc.is_empty() {
            return &[];
        }
        debug_assert!(
            listening.alt_svc.is_sorted_by_key(|(server, _)| *server),
            "what is searched by halves is in order"
        );
        match listening.alt_svc.binary_search_by_key(&server, |(server, _)| *server) {
            Ok(at) => &listening.alt_svc[at].1,
            Err(_) => &[],
        }
    }

    /// The definition of the variable in `slot`, for when nothing assigned it.
    pub(crate) fn derived(&self, slot: u16) -> Option<&Derived> {
        self.derived.get(usize::from(slot))
    }

    /// Built-in variables that the configuration redefines.
    pub(crate) fn redefined(&self) -> &[(bolide_conf::Var, u16)] {
        &self.redefined
    }

    /// All TLS settings for upstreams.
    #[must_use]
    pub fn origin_tls(&self) -> &[Arc<model::OriginTlsConf>] {
        &self.origin_tls
    }

    /// The server with this index.
    #[inline]
    pub(crate) fn server(&self, index: u32) -> &CompiledServer {
        &self.servers[index as usize]
    }

    /// The location with this index.
    #[inline]
    pub(crate) fn location(&self, index: LocationIndex) -> &CompiledLocation {
        &self.locations[index as usize]
    }

    /// The built-in error pages with this signature.
    pub(crate) const fn pages(&self, signature: Signature) -> &ErrorPages {
        match signature {
            Signature::Name => &self.pages[0],
            Signature::Version => &self.pages[1],
        }
    }
}
