//! Cache controls of one request: from the configuration, from a cache in front, from the client;
//! and whether it may be looked up and stored.
//!
//! Easiest to break: rules that exclude a request match the path as the application understands it,
//! not as the client spelled it.

use bolide_cache::SessionKey;
use bolide_cache::rules::{self, CacheGate, Environment};
use bolide_conf::model::{PageCache, PageMode, VaryBy};
use bolide_htaccess::CacheOrders;
use bolide_http::cookies::{Cookies, php_name};
use bolide_http::lscache::{CacheScope as Whose, LsCacheControl};
use bolide_http::{FieldMap, Method, Name};

use crate::answer::Answer;
use crate::caching::CacheTransaction;
use crate::caching::Caching;
use crate::caching::UpstreamCacheStatus;
use crate::caching::fronts::is_trusted;
use crate::caching::identity::push_session;
use crate::caching::lookup::is_any;
use crate::ctx::StepCtx;
use crate::explain::Why;
use crate::request::Request;
use crate::site::Site;
use crate::vars::VariableScope;

impl Request {
    /// Whether the request comes from a cache in front of this server.
    pub(crate) fn is_for_front(&self, page: &PageCache, ctx: &StepCtx<'_>) -> bool {
        is_trusted(page, ctx.conn) && self.head().fields.get_text(b"X-LSCACHE").is_some()
    }

    /// Whether the client is a plugin's crawler, which has to learn that this page is not cached.
    pub(crate) fn is_crawler(&self) -> bool {
        let agent = self.head().fields.get(Name::UserAgent).unwrap_or_default();
        let begins = |name: &[u8]| {
            agent.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name))
        };
        self.head().method == Method::Get
            && (begins(b"lscache_runner") || begins(b"lscache_walker"))
    }
}

impl CacheTransaction {
    /// Where it may be looked up and stored; none if the cache is not involved.
    pub(super) fn open_gate(
        &mut self,
        request: &Request,
        answer: &mut Answer,
        caching: &Caching,
        site: &Site,
        ctx: &StepCtx<'_>,
    ) -> Option<CacheGate> {
        let has_session = SessionKey::new(&self.session).is_some();
        let facts = self.facts(request, site, ctx);
        let gate = match rules::gate(&caching.policy, &facts, has_session) {
            Ok(gate) => gate,
            Err(bypass) => {
                self.why = Why::Rule(bypass);
                return None;
            }
        };
        if !caching.is_page() {
            return Some(gate);
        }
        let Some(why) = excludes(request, answer, caching, site, ctx) else { return Some(gate) };
        self.why = why;
        if why == Why::Condition {
            answer.cached = UpstreamCacheStatus::Bypass;
        }
        None
    }
}

/// Why `page_cache_preset` or `page_cache_bypass` excludes a request from the page cache, if they
/// do.
pub(super) fn excludes(
    request: &Request,
    answer: &Answer,
    caching: &Caching,
    site: &Site,
    ctx: &StepCtx<'_>,
) -> Option<Why> {
    let page = &caching.conf.page;
    if let Some(never) = &page.never
        && is_never(never, request.address(), &request.head().fields)
    {
        return Some(Why::Preset);
    }
    is_any(request, answer, &page.bypass, site, ctx).then_some(Why::Condition)
}

/// The cache orders of `.htaccess` files. Their vary value is added to that of the configuration,
/// even to an empty one: a file cannot join pages that the configuration separates.
fn set_by_files(orders: &CacheOrders, page: &PageCache, environment: &mut Environment) {
    environment.is_off |= orders.is_off();
    let control = orders.control();
    let words = [
        (&b"cache-control"[..], &control[..]),
        (b"cache-vary", orders.vary_cookies()),
        (b"cache-key-mod", orders.key_words()),
    ];
    for (name, value) in words {
        let is_known = value.is_empty() || environment.set(name, value);
        debug_assert!(is_known, "these are variables of LiteSpeed");
    }
    let files = orders.vary_value();
    if !files.is_empty() {
        let configured = environment.vary_value.take().unwrap_or_default();
        let is_alone = !page.vary.iter().any(|by| matches!(by, VaryBy::Value(_)));
        environment.vary_value = Some(match is_alone {
            true => files.into(),
            false => joined(&[configured.into(), files.into_owned()]).into(),
        });
    }
    environment.lookup = orders.lookup();
    environment.litemage = orders.litemage();
    environment.times_max = orders.times_max();
}

/// What the last line says of public and of private pages.
fn last_of_each(lines: impl Iterator<Item = ([bool; 2], bool)>) -> [Option<bool>; 2] {
    let mut said = [None; 2];
    for (are_meant, enabled) in lines {
        for (said, is_meant) in said.iter_mut().zip(are_meant) {
            *said = if is_meant { Some(enabled) } else { *said };
        }
    }
    said
}

/// `CacheEnable` and `CacheDisable`: of each kind, the last that matches applies; those of
/// `.htaccess` files come after those of the configuration. What the files of one round forbid,
/// those of another cannot permit.
fn set_by_prefix(page: &PageCache, request: &Request, site: &Site, environment: &mut Environment) {
    let files = request.htaccess.as_ref().map(|files| files.cache_orders().prefixes());
    let mut rounds = files.into_iter().flatten().peekable();
    if page.prefixes.is_empty() && rounds.peek().is_none() {
        return;
    }
    let target = request.address();
    let mut decoded = Vec::new();
    let merge = site.server(request.server).merge_slashes;
    let Ok(parsed) = bolide_http::uri::normalise(target, merge, &mut decoded) else { return };
    let path = parsed.path(target, &decoded);
    let configured = page.prefixes.iter().filter(|one| path.starts_with(&one.path));
    let configured =
        last_of_each(configured.map(|one| ([one.scopes.public, one.scopes.private], one.enabled)));
    let mut said = [None; 2];
    for list in rounds {
        let own = list.iter().filter(|one| path.starts_with(&one.path));
        let own =
            last_of_each(own.map(|one| ([one.scopes.public, one.scopes.private], one.enabled)));
        for (said, own) in said.iter_mut().zip(own) {
            *said = if own == Some(false) { own } else { said.or(own) };
        }
    }
    let [public, private] = [said[0].or(configured[0]), said[1].or(configured[1])];
    environment.no_public = public == Some(false);
    environment.no_private = private == Some(false);
    environment.by_default = match (public, private) {
        (Some(true), _) => Some(Whose::Public),
        (_, Some(true)) => Some(Whose::Private),
        _ => None,
    };
}

/// Whether a preset excludes a request, however its path and names are spelled.
fn is_never(never: &bolide_conf::model::NeverCached, target: &[u8], fields: &FieldMap) -> bool {
    let (path, query) = match memchr::memchr(b'?', target) {
        Some(at) => (&target[..at], &target[at + 1..]),
        None => (target, &[][..]),
    };
    let mut text = Vec::new();
    bolide_http::uri::push_decoded(&mut text, path);
    if never.covers_path(&text) {
        return true;
    }
    let mut as_seen = |name: &[u8], covers: &dyn Fn(&[u8]) -> bool| {
        text.clear();
        text.extend(php_name(name));
        covers(name) || covers(&text)
    };
    let names = query.split(|byte| *byte == b'&');
    let mut names = names.map(|arg| arg.split(|byte| *byte == b'=').next().unwrap_or_default());
    names.any(|name| as_seen(name, &|name| never.covers_arg(name)))
        || Cookies::of(fields).iter().any(|pair| as_seen(pair.0, &|name| never.covers_cookie(name)))
}

/// One value for several: another one for each way to divide them. A single value stays as it is,
/// for applications name it in their responses.
fn joined(values: &[Vec<u8>]) -> Vec<u8> {
    match values {
        [] => Vec::new(),
        [value] => value.clone(),
        values if values.iter().all(Vec::is_empty) => Vec::new(),
        values => {
            // No value of a field, a cookie or a URL has this byte.
            let mut out = vec![0];
            for value in values {
                bolide_http::digits::push_decimal(&mut out, value.len() as u64);
                out.push(b':');
                out.extend_from_slice(value);
            }
            out
        }
    }
}

fn set_by_configuration(
    request: &Request,
    answer: &Answer,
    page: &PageCache,
    environment: &mut Environment,
    site: &Site,
    ctx: &StepCtx<'_>,
) {
    let texts = page.vary.iter().filter_map(|by| match by {
        VaryBy::Value(text) => Some(text),
        VaryBy::Cookie(_) | VaryBy::Cookies(_) | VaryBy::Header(_) => None,
    });
    let values = texts.map(|text| {
        let mut value = Vec::new();
        VariableScope::new(request, answer, site, ctx).expand(text, &mut value);
        value
    });
    let values: Vec<Vec<u8>> = values.collect();
    let mut value = joined(&values);
    environment.vary_value = (!value.is_empty()).then(|| value[..].into());
    let cookies = page.vary.iter().filter_map(|by| match by {
        VaryBy::Cookies(text) => Some((&b"cache-vary"[..], text)),
        VaryBy::Cookie(_) | VaryBy::Value(_) | VaryBy::Header(_) => None,
    });
    let controls = page.control.iter().map(|text| (&b"cache-control"[..], text));
    for (name, text) in cookies.chain(controls) {
        value.clear();
        VariableScope::new(request, answer, site, ctx).expand(text, &mut value);
        let _is_known = environment.set(name, &value);
    }
}

/// Whether the client has proved who it is by a certificate: like `Authorization`, this may be what
/// the response depends on.
fn shows_certificate(ctx: &StepCtx<'_>) -> bool {
    ctx.conn.tls.as_ref().is_some_and(|tls| tls.client.is_some())
}

/// Gathers the cache controls of a request before its lookup.
pub(crate) fn read_controls(
    request: &Request,
    answer: &Answer,
    cache: &mut CacheTransaction,
    caching: &Caching,
    site: &Site,
    ctx: &StepCtx<'_>,
) {
    let page = &caching.conf.page;
    let is_authorized = request.is_authorized || shows_certificate(ctx);
    if !caching.is_page() && request.role.fragment().is_none() {
        // PERF: nothing else is said about a zone.
        debug_assert!(
            cache.environment == Environment::default(),
            "a request begins without cache controls"
        );
        cache.environment.is_authorized = is_authorized;
        cache.session.clear();
        return;
    }
    let mut environment = request.environment();
    environment.is_authorized = is_authorized;
    if caching.is_page() {
        // If the cache is off, only the application's purges count.
        environment.is_off = page.mode == PageMode::Off;
        if page.mode == PageMode::Magento {
            // Varnish ignores an include's attributes besides its URL.
            environment.control = LsCacheControl::default();
        }
        set_by_configuration(request, answer, page, &mut environment, site, ctx);
        if let Some(files) = &request.htaccess {
            set_by_files(files.cache_orders(), page, &mut environment);
        }
        if is_trusted(page, ctx.conn)
            && let Some(value) = request.head().fields.get_text(b"X-LSCACHE-Vary-Value")
        {
            environment.vary_value = (!value.is_empty()).then(|| value.into());
        }
        set_by_prefix(page, request, site, &mut environment);
        // Cookies name the session, but the response may belong to the user of these credentials.
        environment.no_private |= request.head().fields.get(Name::Authorization).is_some();
    }
    cache.environment = environment;
    let mut session = std::mem::take(&mut cache.session);
    session.clear();
    if caching.is_page() {
        let cookies = Cookies::of(&request.head().fields);
        push_session(&mut session, &cookies, &page.session);
    }
    cache.session = session;
}
