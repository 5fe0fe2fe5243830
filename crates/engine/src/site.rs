//! A configuration made fast: name tables, location trees, content types, ready-made texts.
//!
//! Owns what is decided once per configuration; refuses to know any request.

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
    /// Whether reading a variable may change what `$1` is.
    pub(crate) maps_capture: bool,
    pages: [ErrorPages; 2],
    hostname: Box<str>,
    on_demand_vars: OnDemandVars,
    /// Whether `$request_body_file` is used anywhere.
    pub(crate) names_body_file: bool,
    /// Whether not all locations say the same about ends of connections.
    manners_vary: bool,
    /// Where answers are kept.
    kept: Option<CacheNamespaces>,
    /// Where requests are counted.
    limit_zones: Vec<Arc<Zone>>,
    /// Databases of addresses, in the order of the configuration.
    geo_databases: Vec<Arc<LiveGeoDatabase>>,
    /// What all configurations of the process share of its figures.
    figures: SharedFigures,
    /// What issuers ask for, if one validates names by requests.
    pub(crate) challenges: Option<(HttpChallenges, CertifiedNames)>,
    /// Where spans go.
    spans: Option<Arc<SpanQueue>>,
    serial: u64,
}

/// One listening address.
#[derive(Debug)]
struct Listening {
    names: ServerNames,
    /// The `Alt-Svc` that answers of these servers over this address carry, in order of servers.
    alt_svc: Box<[(u32, Box<[u8]>)]>,
}

/// Which newer versions a server does not speak.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DisabledProtocols {
    pub(crate) http2: bool,
    pub(crate) http3: bool,
}

/// A server, as requests need it.
#[derive(Debug)]
pub(crate) struct CompiledServer {
    /// Its outer locations.
    pub(crate) level: RouteLevel,
    /// Its named locations, with the `@`.
    pub(crate) named: Vec<(Arc<[u8]>, LocationIndex)>,
    /// The server block itself in the part of a location.
    pub(crate) root: LocationIndex,
    /// `$server_name`
    pub(crate) name: Arc<str>,
    /// Whether the server block itself believes who says on whose behalf it asks.
    pub(crate) has_real_ip: bool,
    /// Whether anything is to be done before its rewrite phase: `has_real_ip`, challenges of issuers,
    /// a redirect to HTTPS.
    pub(crate) decides_early: bool,
    /// Where requests without TLS are sent.
    pub(crate) redirect: Option<model::Return>,
    /// `merge_slashes`
    pub(crate) merge_slashes: bolide_http::uri::MergeSlashes,
    /// Which of HTTP/2 and HTTP/3 it does not speak.
    pub(crate) disabled: DisabledProtocols,
    /// `ssl_verify_client`
    pub(crate) verify_client: model::VerifyClient,
    /// The authorities by which it verifies client certificates.
    pub(crate) trust: ClientTrust,
}

/// What a server verifies client certificates by; equal ones come to the same verdict.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ClientTrust {
    /// `ssl_client_certificate`, `ssl_trusted_certificate`, `ssl_crl`
    pub(crate) files: [Option<std::path::PathBuf>; 3],
    /// `ssl_verify_depth`
    pub(crate) depth: u32,
}

/// A location with everything hot precomputed.
#[derive(Debug)]
pub(crate) struct CompiledLocation {
    /// Everything that is not hot.
    pub(crate) settings: Arc<LocationSettings>,
    /// What tells it apart in keys where the path does not: `@name`, the condition of an `if`.
    pub(crate) key_name: Box<[u8]>,
    /// `internal`
    pub(crate) internal: bool,
    /// `limit_except`
    pub(crate) except: Option<Box<model::Except>>,
    /// Who answers, if neither files nor an origin do.
    pub(crate) builtin: Option<Builtin>,
    /// The rewrite phase.
    pub(crate) program: Box<[Op]>,
    /// Whether who asks matters in any of the ways below, or has to be found out.
    pub(crate) guarded: bool,
    /// Whether who asks decides which file, page or kept answer is meant.
    pub(crate) selects_by_client: bool,
    /// Whether the configuration itself may refuse access. What `.htaccess` files refuse is judged
    /// in a step of its own.
    pub(crate) may_refuse: bool,
    /// The origin that answers, if one does.
    pub(crate) pass: Option<Arc<UpstreamPass>>,
    /// Whether which origin that is may depend on more than the address.
    pub(crate) varies_origin: bool,
    /// Whether each request purges a key.
    pub(crate) purges_key: bool,
    /// What is kept of its answers.
    pub(crate) caching: Option<Caching>,
    /// `try_files`
    pub(crate) try_files: Option<Arc<model::TryFiles>>,
    /// Whether a log takes lines of level `debug`.
    pub(crate) debugs: bool,
    /// Where its requests are counted, if they are.
    pub(crate) row: Option<MetricRow>,
    /// Whether the end of a request is told in a debug line or a span, counted, or asked why.
    pub(crate) notes_end: bool,
    /// What comes between the checks of access and content.
    pub(crate) precontent: Precontent,
    /// `apache_htaccess`: what comes behind it.
    pub(crate) htaccess: Option<Precontent>,
    /// What `Server` says.
    pub(crate) signature: Signature,
    /// Content types by extension, with charset and codings.
    pub(crate) kinds: Arc<MediaTypes>,
    /// How long what is known of files is relied upon.
    pub(crate) policy: bolide_files::ProbePolicy,
    /// `disable_symlinks … from=`
    pub(crate) links_checked_from: Option<bolide_conf::Template>,
    /// `if_modified_since` and `max_ranges`.
    pub(crate) rules: crate::delivery::DeliveryRules,
    /// `root` or `alias` without variables.
    pub(crate) fixed_root: Option<Arc<[u8]>>,
    /// Whether more than a path of a request, whose dot segments are resolved, decides which file
    /// is meant.
    pub(crate) maps_beyond_root: bool,
    /// Fields to add.
    pub(crate) headers: Arc<[HeaderRule]>,
    /// Fields to add behind the body.
    pub(crate) trailers: Arc<[HeaderRule]>,
    /// Whether answers may have trailers: `add_trailer` or `proxy_pass_trailers`.
    pub(crate) is_trailed: bool,
    /// Whether some `add_header` sets `Last-Modified`.
    pub(crate) sets_last_modified: bool,
    /// Whether some `add_header` sets `Alt-Svc`.
    pub(crate) sets_alt_svc: bool,
    /// Whether any coding, made or stored, is on here.
    pub(crate) coded: bool,
    /// Whether `expires` does anything.
    pub(crate) expires: bool,
    /// Whether bodies may be changed on their way.
    pub(crate) filters_bodies: bool,
    /// Whether answers of upstream servers may be recoded to another charset.
    pub(crate) recodes_passed: bool,
    /// Whether `post_action` goes on behind its answers.
    pub(crate) has_post_action: bool,
    /// Whether a rewrite phase has something to do here: instructions, fields of the request to
    /// edit, or a span to decide about.
    pub(crate) rewrites: bool,
    /// Whether `more_set_headers`, `add_header` or `expires` do anything.
    pub(crate) is_decorated: bool,
}

/// What the server itself answers.
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

/// A `…_pass`, with everything about it that is known beforehand.
#[derive(Debug)]
pub(crate) struct UpstreamPass {
    /// What was written.
    pub(crate) conf: model::Pass,
    /// Whether it is a pool of our own: what it is asked for must be a file then.
    pub(crate) is_pool: bool,
    /// What an application is told.
    pub(crate) plan: Arc<ParamPlan>,
    /// What an origin that speaks HTTP is asked.
    pub(crate) proxied: Option<Box<crate::content::proxied::ProxyPlan>>,
    /// Its settings for TLS, if that may be spoken: an index into those of the site.
    pub(crate) secure: Option<u32>,
    /// What clients do not see of its answers.
    hidden: Arc<Hidden>,
}

/// Fields of an origin's answers that clients do not see.
#[derive(Debug)]
struct Hidden {
    /// Known ones.
    names: Vec<bolide_http::Name>,
    /// All of them, in lower case.
    texts: Vec<Box<[u8]>>,
}

/// One `add_header` or `add_trailer`, its name parsed.
#[derive(Debug)]
pub(crate) struct HeaderRule {
    /// Which name it is.
    pub(crate) name: bolide_http::Name,
    /// What there is to say.
    pub(crate) conf: model::AddHeader,
}

impl Site {
    /// Compiles `config`.
    ///
    /// # Errors
    ///
    /// What is wrong with it though every directive was right by itself.
    pub fn compile(config: Arc<Config>) -> Result<Self, Vec<bolide_conf::Diagnostic>> {
        Ok(compile::site(config))
    }

    /// A number that no other site of this process has.
    pub(crate) const fn serial(&self) -> u64 {
        self.serial
    }

    /// The same site on a machine called `name`, for `$hostname`.
    #[must_use]
    pub fn on_host(mut self, name: &str) -> Self {
        self.hostname = name.into();
        self
    }

    /// The same site with a store, if it keeps answers at all.
    #[must_use]
    pub fn with_store(mut self, store: Arc<bolide_cache::Store>) -> Self {
        if let Some(http) = self.config.http.as_ref().filter(|_| self.keeps_answers()) {
            self.kept = Some(CacheNamespaces::new(http, store));
        }
        self
    }

    /// The zone that a limit counts in.
    pub(crate) fn limit_zone(&self, id: model::LimitZoneId) -> &Arc<Zone> {
        &self.limit_zones[id.index()]
    }

    /// Its name.
    pub(crate) fn limit_zone_name(&self, id: model::LimitZoneId) -> &[u8] {
        let zone = self.http().and_then(|http| http.limit_zones.get(id.index()));
        zone.map_or(&[], |zone| &zone.name)
    }

    /// Whether a location keeps answers, so that [`Self::with_store`] has a use.
    #[must_use]
    pub fn keeps_answers(&self) -> bool {
        self.locations.iter().any(|location| location.caching.is_some())
    }

    /// The store of kept answers.
    #[must_use]
    pub fn store(&self) -> Option<&Arc<bolide_cache::Store>> {
        self.kept.as_ref().map(|kept| &kept.store)
    }

    /// Has the store use the directories that this configuration names, and no others.
    pub fn open_trees(&self) {
        if let Some(kept) = &self.kept {
            kept.store.set_trees(&kept.trees);
        }
    }

    /// Whether answers outlive the process.
    #[must_use]
    pub fn has_trees(&self) -> bool {
        self.kept.as_ref().is_some_and(|kept| !kept.trees.is_empty())
    }

    /// The store and its parts.
    pub(crate) const fn kept(&self) -> Option<&CacheNamespaces> {
        self.kept.as_ref()
    }

    /// Which variables that cost a look at the system are named.
    #[must_use]
    pub const fn on_demand_vars(&self) -> OnDemandVars {
        self.on_demand_vars
    }

    /// `$hostname`; empty if unknown.
    pub(crate) const fn hostname(&self) -> &str {
        &self.hostname
    }

    /// Access logs whose lines are gathered.
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

    /// Whether not all locations say the same about ends of connections.
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

    /// The server for a clean `host` on `listen`.
    #[inline]
    pub(crate) fn server_of_host(
        &self,
        listen: usize,
        host: &[u8],
        captures: &mut Captures,
    ) -> u32 {
        self.listens.get(listen).map_or(0, |listening| listening.names.find(host, captures))
    }

    /// The server on `listen` for a name of a TLS handshake.
    #[must_use]
    pub fn server_named(&self, listen: usize, name: &str) -> u32 {
        let name = name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase();
        self.server_of_host(listen, name.as_bytes(), &mut Captures::default())
    }

    /// The server on `listen` for what stands in `Host`, a port behind it or not.
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

    /// What answers of `server` over `listen` carry as `Alt-Svc`; empty if nothing.
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

    /// What the variable of `slot` is worth where nothing was assigned to it.
    pub(crate) fn derived(&self, slot: u16) -> Option<&Derived> {
        self.derived.get(usize::from(slot))
    }

    /// Variables that the configuration defines anew.
    pub(crate) fn redefined(&self) -> &[(bolide_conf::Var, u16)] {
        &self.redefined
    }

    /// All settings for TLS to origins that some location may use.
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

    /// The pages in one signature.
    pub(crate) const fn pages(&self, signature: Signature) -> &ErrorPages {
        match signature {
            Signature::Name => &self.pages[0],
            Signature::Version => &self.pages[1],
        }
    }
}
