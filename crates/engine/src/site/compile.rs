//! Compiles the model of a configuration to a [`Site`].

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bolide_conf::model::{
    self, Config, Http, IfModifiedSince, LocationSettings, Mapping, Matcher, Protocol,
    ServerTokens, SymlinksConf,
};
use bolide_conf::vars::{Template, TemplatePart, Var};
use bolide_http::Name;
use bolide_http::conditional::ModifiedSince;
use bolide_http::uri::MergeSlashes;

use super::listening::listening;
use super::{
    Builtin, ClientTrust, CompiledLocation, CompiledServer, DisabledProtocols, HeaderRule, Hidden,
    Site, UpstreamPass,
};
use crate::caching::{Caching, SentTexts, varying_origin};
use crate::content::params::ParamPlan;
use crate::content::proxied::ProxyPlan;
use crate::delivery::DeliveryRules;
use crate::derived::Derived;
use crate::filter::proxied::Rewriter;
use crate::media_types::{MediaTypeCache, MediaTypes};
use crate::pages::{ErrorPages, Signature};
use crate::phase::rewrite::Op;
use crate::route::{Precontent, RouteClaim, RouteLevel};
use bolide_limit::Zone;
use bolide_patterns::CapturePattern;
use bolide_patterns::Sieves;

/// Compiles a configuration.
pub(super) fn site(config: Arc<Config>) -> Site {
    let mut sieves = Sieves::default();
    let (listens, servers, mut locations) = match &config.http {
        Some(http) => (
            http.listens.iter().map(|listen| listening(http, listen, &mut sieves)).collect(),
            http.servers.iter().map(|conf| server(http, conf, &mut sieves)).collect(),
            locations(http, &config.events),
        ),
        None => Default::default(),
    };
    let origin_tls = secure(&mut locations);
    let limit_zones = config.http.iter().flat_map(|http| &http.limit_zones);
    let limit_zones = limit_zones.map(|zone| Arc::new(Zone::new(zone))).collect();
    let pages = [ErrorPages::new(Signature::Name), ErrorPages::new(Signature::Version)];
    let servers: Vec<CompiledServer> = servers;
    debug_assert!(
        servers.iter().all(|server| (server.root as usize) < locations.len()),
        "every server has the location that stands for it"
    );
    let manners_vary = config.http.as_ref().is_some_and(|http| {
        let mut manners = http.locations.iter().map(|location| location.settings.manners());
        let first = manners.next();
        manners.any(|other| Some(other) != first)
    });
    let names_body_file = config.http.as_ref().is_some_and(names_body_file);
    let on_demand_vars = config.http.as_ref().map(|http| http.on_demand_vars).unwrap_or_default();
    let derived = config.http.as_ref();
    let derived = derived.map_or_else(Vec::new, |http| Derived::all(http, &mut sieves));
    Site {
        listens,
        servers,
        locations,
        origin_tls,
        maps_capture: derived.iter().any(Derived::captures),
        derived,
        redefined: config.http.as_ref().map_or_else(Vec::new, |http| http.redefined.clone()),
        config,
        pages,
        hostname: Box::default(),
        on_demand_vars,
        names_body_file,
        manners_vary,
        kept: None,
        limit_zones,
        geo_databases: Vec::new(),
        figures: crate::metrics::SharedFigures::default(),
        challenges: None,
        spans: None,
        serial: SERIAL.fetch_add(1, Ordering::Relaxed),
    }
}

/// The serial number of the next site.
static SERIAL: AtomicU64 = AtomicU64::new(1);

/// Whether `$request_body_file` is used by a directive of requests.
fn names_body_file(http: &Http) -> bool {
    let is_named = |text: &Template| text.vars().any(|var| matches!(var, Var::RequestBodyFile));
    http.log_formats.iter().any(|format| is_named(&format.line))
        || http.locations.iter().any(|location| {
            let settings = &location.settings;
            settings.origin.params.iter().any(|param| is_named(&param.value))
                || settings.origin.proxy.fields.iter().any(|field| is_named(&field.value))
                || settings.add_headers.iter().any(|header| is_named(&header.value))
                || settings.edits.iter().chain(&*settings.input_edits).any(|edits| {
                    edits.edits.iter().any(|edit| {
                        matches!(edit, model::HeaderEdit::Set { value, .. } if is_named(value))
                    })
                })
        })
}

fn server(http: &Http, conf: &model::ServerConf, sieves: &mut Sieves) -> CompiledServer {
    let outer = &http.location(conf.root).nested;
    let mut named = Vec::new();
    for &id in outer {
        if let Matcher::Named(name) = &http.location(id).matcher {
            named.push((name.clone(), id.0));
        }
    }
    let has_real_ip = !http.location(conf.root).settings.real_ip.from.is_empty();
    CompiledServer {
        level: level(http, outer, sieves),
        named,
        root: conf.root.0,
        has_real_ip,
        decides_early: has_real_ip || conf.redirects_to.is_some(),
        redirect: conf.redirects_to.map(redirect_to_https),
        name: conf.primary_name.clone(),
        merge_slashes: match conf.settings.merge_slashes {
            true => MergeSlashes::On,
            false => MergeSlashes::Off,
        },
        disabled: DisabledProtocols { http2: !conf.http2, http3: !conf.http3 },
        verify_client: conf.tls.verify_client,
        trust: ClientTrust {
            files: [
                conf.tls.client_certificate.clone(),
                conf.tls.trusted_certificate.clone(),
                conf.tls.crl.clone(),
            ],
            depth: conf.tls.verify_depth,
        },
    }
}

/// RFC 9110 §15.4.9: method and content stay.
fn redirect_to_https(port: u16) -> model::Return {
    let text = |text: &str| TemplatePart::Text(text.as_bytes().into());
    let mut parts = vec![text("https://"), TemplatePart::Var(Var::Host)];
    if port != 443 {
        parts.push(text(&format!(":{port}")));
    }
    parts.push(TemplatePart::Var(Var::RequestUri));
    model::Return { status: 308, body: model::ReturnBody::Location(Template::new(parts)) }
}

fn level(http: &Http, ids: &[model::LocationId], sieves: &mut Sieves) -> RouteLevel {
    let mut built = RouteLevel::default();
    for &id in ids {
        let conf = http.location(id);
        let claim = match &conf.matcher {
            Matcher::Root | Matcher::If | Matcher::Named(_) => continue,
            Matcher::Exact(path) => RouteClaim::Exact(path[..].into()),
            Matcher::Prefix { path, no_regex: false } => RouteClaim::Prefix(path[..].into()),
            Matcher::Prefix { path, no_regex: true } => RouteClaim::FinalPrefix(path[..].into()),
            Matcher::Regex(regex) => RouteClaim::Regex(CapturePattern::new(regex, &http.named)),
        };
        if matches!(conf.handler, model::Handler::Pass(_) | model::Handler::Console)
            && let RouteClaim::Exact(path)
            | RouteClaim::Prefix(path)
            | RouteClaim::FinalPrefix(path) = &claim
        {
            built.add_slash(path, id.0);
        }
        built.add(claim, id.0, level(http, &conf.nested, sieves));
    }
    built.seal(sieves)
}

fn locations(http: &Http, events: &model::Events) -> Vec<CompiledLocation> {
    let mut cache = MediaTypeCache::default();
    let mut parts = CompiledTimes::new();
    let mut all: Vec<CompiledLocation> =
        http.locations.iter().map(|conf| location(conf, http, &mut cache, &mut parts)).collect();
    if !events.debug_connection.is_empty() {
        all.iter_mut().for_each(|location| location.notes_end = true);
    }
    name_tests(http, &mut all);
    all
}

/// Fields for this server and not for clients, as in nginx.
const HIDDEN: [&[u8]; 5] = [
    b"x-accel-expires",
    b"x-accel-redirect",
    b"x-accel-limit-rate",
    b"x-accel-buffering",
    b"x-accel-charset",
];

/// The same where a field of scripts is their status.
const HIDDEN_OF_SCRIPTS: [&[u8]; 1] = [b"status"];
/// The same for HTTP upstreams.
const HIDDEN_OF_HTTP: [&[u8]; 3] = [b"date", b"server", b"x-pad"];

/// The same for gRPC.
const HIDDEN_OF_GRPC: [&[u8]; 2] = [b"date", b"server"];

/// Compiled parts that locations with equal upstream settings share; the key also has whether a PHP
/// pool answers and the protocol.
type CompiledTimes =
    HashMap<(*const model::OriginSettings, bool, Protocol), (Arc<ParamPlan>, Arc<Hidden>)>;

fn origin(
    pass: &model::Pass,
    settings: &LocationSettings,
    http: &Http,
    parts: &mut CompiledTimes,
) -> UpstreamPass {
    let group = match &pass.to {
        model::PassTo::Group(id) => http.upstreams.get(id.index()),
        model::PassTo::Text(_) => None,
    };
    let pool = group.and_then(|group| match group.kind {
        model::UpstreamKind::Pool(number) => http.php_pools.get(number as usize),
        _ => None,
    });
    let is_pool = pool.is_some();
    let protocol = pass.protocol;
    let is_php = is_pool || protocol == Protocol::Lsapi;
    let settings = &settings.origin;
    let make = || {
        (Arc::new(ParamPlan::new(&settings.params, is_php)), Arc::new(hidden(settings, protocol)))
    };
    let key = (Arc::as_ptr(settings), is_php, protocol);
    let (plan, hidden) = parts.entry(key).or_insert_with(make).clone();
    UpstreamPass {
        conf: pass.clone(),
        is_pool,
        fixed_ini: pool
            .iter()
            .flat_map(|pool| &pool.ini)
            .map(|(name, _)| name[..].into())
            .collect(),
        plan,
        proxied: (protocol == Protocol::Http).then(|| {
            let rewriter = Rewriter::new(&settings.proxy, pass.url.as_ref(), http);
            Box::new(ProxyPlan::new(&settings.proxy, rewriter))
        }),
        secure: None,
        hidden,
    }
}

/// Gives locations that may use TLS to upstreams their index into the TLS settings.
fn secure(locations: &mut [CompiledLocation]) -> Vec<Arc<model::OriginTlsConf>> {
    let mut all: Vec<Arc<model::OriginTlsConf>> = Vec::new();
    let mut known: HashMap<(*const model::OriginTlsConf, bool), u32> = HashMap::new();
    for location in locations {
        let Some(pass) = location.pass.as_mut().and_then(Arc::get_mut) else { continue };
        // The scheme of a text with variables is unknown.
        let may_be_secure = pass.conf.url.as_ref().is_none_or(|url| url.secure);
        if !pass.conf.protocol.has_tls() || !may_be_secure {
            continue;
        }
        let conf = &location.settings.origin.proxy.tls;
        let offers_http2 = pass.protocol() == Protocol::Http2;
        pass.secure = Some(*known.entry((Arc::as_ptr(conf), offers_http2)).or_insert_with(|| {
            let conf = match offers_http2 {
                true => Arc::new(model::OriginTlsConf { offers_http2, ..(**conf).clone() }),
                false => Arc::clone(conf),
            };
            if all.last() != Some(&conf) {
                all.push(conf);
            }
            all.len() as u32 - 1
        }));
    }
    all
}

fn hidden(settings: &model::OriginSettings, protocol: Protocol) -> Hidden {
    let own = match protocol {
        Protocol::Http => &HIDDEN_OF_HTTP[..],
        Protocol::FastCgi | Protocol::Lsapi | Protocol::Scgi | Protocol::Memcached => {
            &HIDDEN_OF_SCRIPTS[..]
        }
        Protocol::Http2 => &HIDDEN_OF_GRPC,
        Protocol::Uwsgi => &[],
    };
    let hidden: Vec<&[u8]> = HIDDEN
        .iter()
        .chain(own)
        .copied()
        .chain(settings.hide_headers.iter().map(|name| &**name))
        .filter(|name| !settings.pass_headers.iter().any(|passed| **passed == **name))
        .collect();
    Hidden {
        names: hidden.iter().map(|n| Name::parse(n)).filter(|n| *n != Name::Other).collect(),
        texts: hidden.into_iter().map(Box::from).collect(),
    }
}

/// Whether the client, and not only the target, selects the file, page or cached object.
fn selects_by_client(conf: &model::LocationConf) -> bool {
    let settings = &conf.settings;
    let fallback = |fallback: &model::Fallback| match fallback {
        model::Fallback::Uri(template) => template.follows_target(),
        model::Fallback::Status(_) | model::Fallback::Named(_) => true,
    };
    let tries = conf.try_files.as_ref().is_none_or(|tries| {
        tries.files.iter().all(|file| file.path.follows_target()) && fallback(&tries.fallback)
    });
    let is_plain = tries
        && settings.root.path.follows_target()
        && settings.index.iter().all(Template::follows_target)
        && settings.cache.page.control.iter().all(|words| words.as_text().is_some());
    !is_plain
}

/// Names the locations of `if` by their conditions, for cache keys.
fn name_tests(http: &Http, all: &mut [CompiledLocation]) {
    for conf in &http.locations {
        for (at, op) in conf.rewrite.iter().enumerate() {
            if let model::RewriteOp::If { test, location: Some(id), .. } = op
                && let Some(inner) = all.get_mut(id.index())
            {
                let name = format!("if {at} {test:?} {}", conf.name.escape_ascii());
                inner.key_name = name.into_bytes().into();
            }
        }
    }
}

/// The built-in handler of a location.
const fn builtin(handler: &model::Handler) -> Option<Builtin> {
    match handler {
        model::Handler::Admin => Some(Builtin::Admin),
        model::Handler::Console => Some(Builtin::Console),
        model::Handler::EmptyGif => Some(Builtin::EmptyGif),
        model::Handler::Flv => Some(Builtin::Flv),
        model::Handler::Health(probe) => Some(Builtin::Health(*probe)),
        model::Handler::Metrics => Some(Builtin::Metrics),
        model::Handler::Mp4 => Some(Builtin::Mp4),
        model::Handler::StubStatus => Some(Builtin::StubStatus),
        model::Handler::Pass(_) | model::Handler::Static => None,
    }
}

fn location(
    conf: &model::LocationConf,
    http: &Http,
    cache: &mut MediaTypeCache,
    parts: &mut CompiledTimes,
) -> CompiledLocation {
    let settings = &conf.settings;
    let recodes_passed = !http.charsets.maps.is_empty() || settings.charset.recodes;
    let parsed = |fields: &[model::AddHeader]| -> Arc<[HeaderRule]> {
        let field = |conf: &model::AddHeader| HeaderRule {
            name: Name::parse(&conf.name),
            conf: conf.clone(),
        };
        fields.iter().map(field).collect()
    };
    let headers = parsed(&settings.add_headers);
    let may_refuse = !settings.limits.is_empty()
        || settings.auth_request.uri.is_some()
        || !settings.access.is_empty()
        || settings.auth_basic.is_some() && settings.auth_basic_user_file.is_some();
    let selects_by_client = selects_by_client(conf);
    let caching = Caching::new(settings);
    let sent = SentTexts::new(conf, caching.as_ref());
    let expires = !matches!(*settings.expires, model::Expires::Fixed(model::ExpiresRule::Off));
    CompiledLocation {
        key_name: match &conf.matcher {
            Matcher::Named(name) => name.to_vec().into(),
            _ => Box::default(),
        },
        is_decorated: expires
            || settings.obeys_apache()
            || !headers.is_empty()
            || !settings.edits.is_empty()
            || settings.user_id.mode != model::UserIdMode::Off,
        rewrites: conf.enters_rewrite(),
        expires,
        settings: settings.clone(),
        internal: conf.internal,
        except: conf.except.clone().map(Box::new),
        builtin: builtin(&conf.handler),
        program: conf.rewrite.iter().map(|op| Op::new(op, &http.named)).collect(),
        guarded: may_refuse || selects_by_client || !settings.real_ip.from.is_empty(),
        selects_by_client,
        may_refuse,
        pass: match &conf.handler {
            model::Handler::Pass(pass) => Some(Arc::new(origin(pass, settings, http, parts))),
            _ => None,
        },
        varies_origin: matches!(&conf.handler, model::Handler::Pass(pass)
            if varying_origin(&pass.to).is_some() || !sent.is_empty()),
        sent,
        purges_key: matches!(settings.cache.purge, model::CachePurge::Key { .. }),
        caching,
        try_files: conf.try_files.clone(),
        debugs: debugs(settings),
        row: None,
        notes_end: debugs(settings)
            || http.on_demand_vars.cache_reason
            || http.otel.exporter.is_some(),
        precontent: Precontent::first(conf),
        htaccess: settings.obeys_apache().then(|| Precontent::of(conf)),
        signature: match settings.server_tokens {
            ServerTokens::Off => Signature::Name,
            ServerTokens::On | ServerTokens::Build => Signature::Version,
        },
        kinds: cache.of(settings),
        policy: policy(settings),
        links_checked_from: match &settings.disable_symlinks {
            SymlinksConf::Follow => None,
            SymlinksConf::Refuse { from } | SymlinksConf::IfNotOwner { from } => from.clone(),
        },
        rules: DeliveryRules {
            since: match settings.if_modified_since {
                IfModifiedSince::Off => ModifiedSince::Off,
                IfModifiedSince::Exact => ModifiedSince::Exact,
                IfModifiedSince::Before => ModifiedSince::Before,
            },
            max_ranges: settings.max_ranges.unwrap_or(u32::MAX),
        },
        fixed_root: settings.root.path.as_text().map(Arc::from),
        maps_beyond_root: settings.root.mapping != Mapping::Whole
            || settings.root.path.as_text().is_none(),
        sets_last_modified: headers.iter().any(|header| header.name == Name::LastModified),
        sets_alt_svc: headers.iter().any(|header| header.name == Name::AltSvc),
        headers,
        trailers: parsed(&settings.add_trailers),
        is_trailed: !settings.add_trailers.is_empty() || settings.origin.proxy.pass_trailers,
        coded: MediaTypes::is_coded(settings) || settings.obeys_apache(),
        filters_bodies: settings.filters.is_any() || settings.charset.recodes || recodes_passed,
        recodes_passed,
        has_post_action: settings.post_action.is_some(),
    }
}

/// Whether a log takes lines of level `debug`.
fn debugs(settings: &LocationSettings) -> bool {
    settings.error_log.iter().any(|log| log.level == model::LogLevel::Debug)
}

/// nginx checks a file at every request unless `open_file_cache` is on; we check at most once a
/// second unless `open_file_cache off` is explicit.
fn policy(settings: &LocationSettings) -> bolide_files::ProbePolicy {
    let cache = &settings.open_file_cache;
    let default = bolide_files::ProbePolicy::default();
    let symlinks = match settings.disable_symlinks {
        SymlinksConf::Follow => bolide_files::SymlinkPolicy::Follow,
        SymlinksConf::Refuse { .. } => bolide_files::SymlinkPolicy::Refuse { from: 0 },
        SymlinksConf::IfNotOwner { .. } => bolide_files::SymlinkPolicy::RefuseForeign { from: 0 },
    };
    if cache.is_off {
        return bolide_files::ProbePolicy { valid: Duration::ZERO, symlinks, ..default };
    }
    let Some(max) = cache.max else {
        let valid = cache.valid.unwrap_or(default.valid);
        return bolide_files::ProbePolicy { valid, symlinks, ..default };
    };
    bolide_files::ProbePolicy {
        valid: cache.valid.unwrap_or(VALID_DEFAULT),
        inactive: cache.inactive,
        max: max as usize,
        min_uses: cache.min_uses,
        failures: if cache.errors {
            bolide_files::Remember::Failures
        } else {
            bolide_files::Remember::Nothing
        },
        symlinks,
        trust: bolide_files::Trust::Young,
    }
}

/// The default of `open_file_cache_valid` where `open_file_cache` is on.
const VALID_DEFAULT: Duration = Duration::from_secs(60);
