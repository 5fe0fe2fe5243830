//! `…_pass`: the upstream request.
//!
//! Owns the state of the upstream requests of a response; `bolide_upstream` chooses servers and
//! retries.

use std::sync::Arc;

use bolide_base::Spool;
use bolide_cache::rules::Environment;
use bolide_conf::model::{Balance, LogLevel, OriginSettings, PassTo, Protocol, UpstreamId};
use bolide_http::{Method, Name, RequestBody, UpstreamMessage};
use bolide_upstream::{OriginRequest, request::PassTarget};

use crate::answer::Answer;
use crate::body::FileHolds;
use crate::caching::UpstreamCacheStatus;
use crate::caching::magento;
use crate::caching::{CacheTransaction, Caching};
use crate::content::bind::bind_to;
use crate::content::collecting::{collected, holds};
use crate::content::esi::answer_without_origin;
use crate::content::file::FileLookup;
use crate::content::search::FileSearch;
use crate::content::target::{self, NoTarget};
use crate::content::{app, grpc, memcached, params, proxied, sticky, upstream_tls};
use crate::ctx::{ClientAddress, StepCtx, StepEffect};
use crate::exchange::{Exchange, NextStep, RequestStep, refuse_rest};
use crate::log_lines;
use crate::request::Request;
use crate::site::{CompiledLocation, Site, UpstreamPass};
use crate::vars::VariableScope;
use crate::vars::preview::preview;

/// The log line of a request without a script.
const SCRIPTLESS: &[u8] = b"the parameters of the pool have no \"SCRIPT_FILENAME\"";

/// Clears the previous upstream response: as in nginx, variables show nothing of it once the next
/// request is prepared. The cache status stays if `is_begun`, because it belongs to the next
/// request already.
fn forget_origin_answer(answer: &mut Answer, is_begun: bool) {
    if let Some(asked) = &mut answer.origin {
        debug_assert!(!asked.is_running(), "one origin is asked at a time");
        asked.fields.clear();
        asked.trailers.clear();
    }
    if !is_begun {
        answer.cached = UpstreamCacheStatus::No;
    }
}

impl Exchange {
    /// Prepares an upstream request: checks the script, looks into the cache, reads the request
    /// body.
    pub(crate) fn origin(&mut self, site: &Site, ctx: &mut StepCtx<'_>) -> NextStep {
        let location = site.location(self.request.location);
        let Some(pass) = &location.pass else { return NextStep::Fail(500) };
        self.request.last_origin.take();
        if pass.conf.protocol == Protocol::Memcached
            && !matches!(self.request.method, Method::Get | Method::Head)
        {
            return NextStep::Fail(405);
        }
        let is_begun = self.cache.asked().0 == Some(self.request.location);
        forget_origin_answer(&mut self.answer, is_begun);
        self.request.send_continue(ctx);
        if let Some(caching) = &location.caching {
            magento::clean(&mut self.cache, &mut self.request, caching);
        }
        // As in nginx, before the cache key and the conditions of the cache: they may need it, and
        // a regular expression in them may replace `$1`, which the address may need.
        if let Err(next) = read_address(&mut self.request, &self.answer, pass, site, ctx) {
            return next;
        }
        if location.caching.as_ref().is_some_and(|caching| awaits_body(&self.request, caching))
            && !self.request.upload.is_streamed()
            && let Some(next) = collect_body(&mut self.request, RequestStep::Origin, site, ctx)
        {
            return next;
        }
        if location.caching.is_some()
            && let Some(next) =
                self.cache.look_up_cached(&mut self.request, &mut self.answer, site, ctx)
        {
            return next;
        }
        if pass.is_pool
            && let Some(next) =
                self.search.check_script(&self.request, &self.answer, pass, site, ctx)
        {
            return next;
        }
        let next = collect_body(&mut self.request, RequestStep::Ask, site, ctx);
        next.unwrap_or(NextStep::Step(RequestStep::Ask))
    }
}

/// Whether a lookup needs the request body. As in nginx, the key of a zone, and its conditions, may
/// depend on it. A page is not looked up for a request with content; whether a request of unknown
/// length has any is known at its end, which over HTTP/2 and HTTP/3 may come behind the head.
fn awaits_body(request: &Request, caching: &Caching) -> bool {
    match request.head().body {
        RequestBody::None => false,
        _ if !caching.is_page() => true,
        body => {
            body == RequestBody::Unknown && matches!(request.method, Method::Get | Method::Head)
        }
    }
}

/// Reads the request body for the upstream request; `step` follows. None if there is none to
/// read, or if it is streamed.
fn collect_body(
    request: &mut Request,
    step: RequestStep,
    site: &Site,
    ctx: &mut StepCtx<'_>,
) -> Option<NextStep> {
    let location = site.location(request.location);
    let pass = location.pass.as_ref()?;
    if passes_body(pass, location)
        && let Some(next) = refuse_rest(request, site, ctx)
    {
        return Some(next);
    }
    let streams = streams_body(pass, location, request.head().body);
    let memory = location.settings.client_body_buffer_size;
    let is_at_hand = streams && request.upload.is_at_hand(request.head().body, memory);
    // As in nginx, a body for streaming is in memory or nowhere.
    let holds = if streams { FileHolds::Rest } else { holds(location, site) };
    let head = request.head();
    let is_empty = head.body == RequestBody::None;
    // A length of zero makes an empty file.
    let has_body = (!is_empty
        || matches!(holds, FileHolds::Always { .. })
            && head.fields.get(Name::ContentLength).is_some())
        && !request.upload.is_refused();
    if has_body && let Some(next) = request.refuse_early(site, ctx) {
        return Some(next);
    }
    if !has_body || streams && !is_at_hand || request.upload.spool().is_some() {
        return None;
    }
    if is_empty {
        request.upload.finish();
    }
    let memory = if streams { usize::MAX } else { memory };
    let progress = request.upload.collect(memory, holds, ctx.effects);
    Some(collected(request, progress, step, location, ctx))
}

impl FileSearch {
    /// A pool runs existing files and nothing else. What is checked is what PHP is told to run.
    fn check_script(
        &mut self,
        request: &Request,
        answer: &Answer,
        pass: &UpstreamPass,
        site: &Site,
        ctx: &mut StepCtx<'_>,
    ) -> Option<NextStep> {
        let location = site.location(request.location);
        self.path.clear();
        let scope = VariableScope::new(request, answer, site, ctx);
        // The parameters are written later, all of them in their order.
        let path = &mut self.path;
        if preview(&scope, |scope| params::push_script(scope, pass, path)).is_none() {
            request.log_error(site, ctx, |out| out.extend_from_slice(SCRIPTLESS));
            return Some(NextStep::Fail(404));
        }
        match self.look(request, answer, location, bolide_files::Want::Stat, site, ctx) {
            FileLookup::Asked => Some(NextStep::Probe(RequestStep::Origin)),
            FileLookup::File(_) => None,
            FileLookup::Other if self.is_regular(location, ctx) => None,
            FileLookup::Failed(failure) | FileLookup::Closed(_, failure) => {
                Some(self.open_failed(request, failure, site, ctx))
            }
            FileLookup::Directory | FileLookup::Other => {
                let path = &self.path;
                request.log_error(site, ctx, |out| {
                    out.push(b'"');
                    out.extend_from_slice(path);
                    out.extend_from_slice(b"\" is not a regular file");
                });
                Some(NextStep::Fail(403))
            }
        }
    }
}

impl Answer {
    /// Starts the fetch.
    pub(crate) fn ask(
        &mut self,
        request: &mut Request,
        cache: &mut CacheTransaction,
        site: &Site,
        ctx: &mut StepCtx<'_>,
    ) -> NextStep {
        let location = site.location(request.location);
        let Some(pass) = &location.pass else { return NextStep::Fail(500) };
        if let Some(next) = answer_without_origin(self, request, cache, site, ctx) {
            return next;
        }
        if passes_body(pass, location)
            && let Some(next) = refuse_rest(request, site, ctx)
        {
            return next;
        }
        let old = cache.to_revalidate().cloned();
        let question = match self.origin_request(
            request,
            &cache.environment,
            cache.is_to_keep(),
            old.as_ref(),
            site,
            ctx,
        ) {
            Ok(question) => question,
            Err(next) => return next,
        };
        let fill = match &location.caching {
            Some(_) => cache.take_fill(request, self, site, ctx),
            None => None,
        };
        if location.caching.is_none() {
            self.object = None;
        }
        let scheme = match pass.conf.protocol {
            Protocol::FastCgi => "fastcgi",
            Protocol::Lsapi => "lsapi",
            Protocol::Http if question.secure.is_some() => "https",
            Protocol::Http => "http",
            Protocol::Uwsgi if question.secure.is_some() => "suwsgi",
            Protocol::Uwsgi => "uwsgi",
            Protocol::Scgi => "scgi",
            Protocol::Memcached => "memcached",
            Protocol::Http2 if question.secure.is_some() => "grpcs",
            Protocol::Http2 => "grpc",
        };
        let asked = self.origin.get_or_insert_default();
        asked.begin(scheme, ctx.now);
        asked.has_http2 = question.protocol == Protocol::Http2;
        asked.group = match question.target {
            PassTarget::Group(id) => Some(id),
            PassTarget::Address(_) | PassTarget::Name(_) => None,
        };
        asked.is_whole = location.caching.is_some() && cache.is_whole;
        if let Some(fill) = fill {
            ctx.effects.push(StepEffect::Fill(fill));
        }
        if let Some(order) = self.store_order(request, site, ctx) {
            ctx.effects.push(StepEffect::StoreFile(order));
        }
        ctx.effects.push(StepEffect::Fetch(Box::new(question)));
        NextStep::Fetch
    }

    /// Builds the upstream request: unconditional if the response may be stored, or conditional on
    /// the validators of `old`.
    pub(crate) fn origin_request(
        &self,
        request: &mut Request,
        environment: &Environment,
        is_to_keep: bool,
        old: Option<&Arc<bolide_cache::Object>>,
        site: &Site,
        ctx: &mut StepCtx<'_>,
    ) -> Result<OriginRequest, NextStep> {
        let location = site.location(request.location);
        let Some(pass) = &location.pass else { return Err(NextStep::Fail(500)) };
        let target = request.target(pass, site, ctx)?;
        let settings = &location.settings;
        let (body, body_len) = body_to_send(request, self, location, site, ctx);
        if request.upload.is_streamed() && !request.upload.is_complete() {
            ctx.effects.push(StepEffect::WantBody(bolide_base::limits::BODY_WINDOW));
        }
        // As in nginx, whether the response will be stored or not.
        let as_get =
            location.caching.as_ref().is_some_and(|caching| request.asks_for_whole(caching));
        let old = old.map(|old| &**old);
        let scope = VariableScope::new(request, self, site, ctx);
        let message: UpstreamMessage = match pass.conf.protocol {
            Protocol::Http => {
                let (Some(plan), Some(url)) = (pass.proxied.as_deref(), scope.proxy_url()) else {
                    debug_assert!(false, "what is asked over HTTP has a URL");
                    return Err(NextStep::Fail(500));
                };
                let asking = proxied::Asking { is_to_keep, as_get, old, body_len };
                match proxied::message(&scope, plan, url, asking) {
                    Some(message) => message,
                    None => return Err(proxied::refuse_unsendable(request, site, ctx)),
                }
            }
            Protocol::Http2 => {
                let Some(url) = proxied::pass_url(&scope) else { return Err(NextStep::Fail(500)) };
                let head = grpc::write(&scope, url, body_len);
                if !head.is_encodable() {
                    return Err(proxied::refuse_unsendable(request, site, ctx));
                }
                head.into()
            }
            Protocol::Memcached => {
                let Some(get) = memcached::write(&scope) else {
                    request.log_error(site, ctx, |out| out.extend_from_slice(memcached::KEYLESS));
                    return Err(NextStep::Fail(500));
                };
                get.into()
            }
            Protocol::FastCgi | Protocol::Lsapi | Protocol::Uwsgi | Protocol::Scgi => {
                let asking = proxied::Asking { is_to_keep, as_get, old, body_len };
                app::write(&scope, pass, environment, asking).map_err(|line| {
                    log_lines::error(request, site, ctx, LogLevel::Alert, |out| {
                        out.extend_from_slice(&line);
                    });
                    NextStep::Fail(500)
                })?
            }
        };
        let from = bind_to(request, self, &settings.origin, site, ctx);
        let scope = VariableScope::new(request, self, site, ctx);
        let affinity = match &target {
            PassTarget::Group(id) => affinity(&scope, *id),
            PassTarget::Address(_) | PassTarget::Name(_) => Vec::new(),
        };
        let bound_by = match &target {
            PassTarget::Group(id) => sticky::bound_by(&scope, *id),
            PassTarget::Address(_) | PassTarget::Name(_) => Vec::new(),
        };
        let secure = upstream_tls::of(&scope, pass)?;
        let rate = rate(&scope, settings.origin.limit_rate.as_ref());
        request.origin_target.clear();
        // As in nginx, lines about HTTP/2 upstreams have no target.
        if let UpstreamMessage::Http(head) = &message {
            request.origin_target.extend_from_slice(head.target());
        }
        Ok(OriginRequest {
            affinity,
            bound_by,
            target,
            protocol: pass.protocol(),
            settings: origin_settings(request, &settings.origin),
            message,
            body,
            body_len,
            is_idempotent: !matches!(request.method, Method::Post | Method::Patch)
                && request.head().method_text != b"LOCK",
            from,
            rate,
            secure,
        })
    }
}

/// The upstream settings of a request, with the changes of `.htaccess` files.
fn origin_settings(request: &Request, settings: &Arc<OriginSettings>) -> Arc<OriginSettings> {
    let files = request.htaccess.as_ref();
    match files.is_some_and(|files| files.ignores_client_abort()) {
        true => Arc::new(OriginSettings { ignore_client_abort: true, ..(**settings).clone() }),
        false => settings.clone(),
    }
}

impl Request {
    fn target(
        &self,
        pass: &UpstreamPass,
        site: &Site,
        ctx: &mut StepCtx<'_>,
    ) -> Result<PassTarget, NextStep> {
        if let PassTo::Group(id) = &pass.conf.to {
            return Ok(PassTarget::Group(*id));
        }
        let text = &self.pass_address[..];
        let location = site.location(self.location);
        let found = match self.proxy_url.as_deref().filter(|_| pass.proxied.is_some()) {
            Some(url) => proxied::target(url, location, site),
            None => target::find(text, text, None, pass.conf.protocol, location, site),
        };
        found.map_err(|no| find_no_target(self, &no, site, ctx))
    }
}

/// The key of `hash` and `ip_hash` in an upstream group.
fn affinity(scope: &VariableScope<'_>, id: UpstreamId) -> Vec<u8> {
    let mut out = Vec::new();
    let group = scope.site.http().and_then(|http| http.upstreams.get(id.index()));
    match group.map(|group| &group.balance) {
        Some(Balance::Hash { key, .. }) => scope.expand(key, &mut out),
        Some(Balance::IpHash) => match scope.client() {
            ClientAddress::Inet(addr) => match addr.ip() {
                // As in nginx, the first three octets.
                std::net::IpAddr::V4(ip) => out.extend_from_slice(&ip.octets()[..3]),
                std::net::IpAddr::V6(ip) => out.extend_from_slice(&ip.octets()),
            },
            ClientAddress::Unix => out.extend_from_slice(&[0; 3]),
        },
        _ => {}
    }
    out
}

fn rate(scope: &VariableScope<'_>, template: Option<&bolide_conf::Template>) -> u64 {
    let Some(template) = template else { return 0 };
    let mut text = Vec::new();
    scope.expand(template, &mut text);
    bolide_conf::value::size(&text).unwrap_or(0)
}

/// Whether the request body is sent to the upstream.
fn passes_body(pass: &UpstreamPass, location: &CompiledLocation) -> bool {
    let has_own = pass.proxied.as_ref().is_some_and(|proxied| proxied.body().is_some());
    location.settings.origin.pass_request_body && !has_own
}

/// Whether the request body is streamed. A body of unknown length is not, where the protocol, or
/// the scripts of a pool, need its length (RFC 3875 §4.1.2).
fn streams_body(pass: &UpstreamPass, location: &CompiledLocation, body: RequestBody) -> bool {
    let takes_unknown = match &pass.proxied {
        Some(proxied) => proxied.sends_chunks(),
        None => match pass.conf.protocol {
            Protocol::FastCgi => !pass.is_pool,
            protocol => protocol == Protocol::Http2,
        },
    };
    !location.settings.origin.request_buffering
        && passes_body(pass, location)
        && (takes_unknown || body != RequestBody::Unknown)
}

/// The body of the upstream request, and its length if known.
fn body_to_send(
    request: &mut Request,
    answer: &Answer,
    location: &CompiledLocation,
    site: &Site,
    ctx: &StepCtx<'_>,
) -> (Spool, Option<u64>) {
    if let Some(template) = location.pass.as_ref().and_then(|pass| pass.proxied.as_ref()?.body()) {
        let mut text = Vec::new();
        VariableScope::new(request, answer, site, ctx).expand(template, &mut text);
        let len = text.len() as u64;
        return (Spool::of(text.into()), Some(len));
    }
    if !location.settings.origin.pass_request_body || request.upload.is_refused() {
        return (Spool::empty(), Some(0));
    }
    if let Some(spool) = request.upload.spool() {
        let len = spool.received();
        return (spool.clone(), Some(len));
    }
    match request.head().body {
        RequestBody::None => (Spool::empty(), Some(0)),
        body => {
            let len = match body {
                RequestBody::Length(len) => Some(len),
                _ => None,
            };
            (request.upload.stream(location.settings.client_body_buffer_size), len)
        }
    }
}

/// Evaluates an address with variables, and keeps its parts.
fn read_address(
    request: &mut Request,
    answer: &Answer,
    pass: &UpstreamPass,
    site: &Site,
    ctx: &mut StepCtx<'_>,
) -> Result<(), NextStep> {
    let PassTo::Text(template) = &pass.conf.to else { return Ok(()) };
    let mut text = std::mem::take(&mut request.pass_address);
    text.clear();
    VariableScope::new(request, answer, site, ctx).expand(template, &mut text);
    request.pass_address = text;
    let read = match pass.conf.protocol {
        Protocol::Uwsgi => Some(bolide_conf::uwsgi_url::read(&request.pass_address)),
        Protocol::Http2 => Some(grpc::read_url(&request.pass_address)),
        _ => None,
    };
    if let Some(url) = read {
        request.pass_address = url.written.to_vec();
        request.proxy_url = Some(Arc::new(url));
    } else if pass.proxied.is_some() {
        match proxied::read_url(&request.pass_address) {
            Ok(url) => request.proxy_url = Some(Arc::new(url)),
            Err(no) => return Err(find_no_target(request, &no, site, ctx)),
        }
    }
    Ok(())
}

fn find_no_target(
    request: &Request,
    no: &NoTarget,
    site: &Site,
    ctx: &mut StepCtx<'_>,
) -> NextStep {
    request.log_error(site, ctx, |out| out.extend_from_slice(&no.line));
    NextStep::Fail(no.status)
}
