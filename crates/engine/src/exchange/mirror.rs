//! `mirror`: copies of a request for other locations of this server.
//!
//! Owns when they begin (after access and `try_files`) and how they end: their responses are
//! discarded. Easiest to break: a copy has no copies, uses no cache and passes no access checks,
//! because the original request has passed its own.

use bolide_conf::model::LogLevel;
use bolide_http::{Name, RequestBody, RequestHead};

use super::parent::SubrequestParent;
use super::{Exchange, ExchangeState, NextStep, RequestStep};
use crate::answer::AnswerBody;
use crate::content::collecting::{collected, holds};
use crate::ctx::{BackgroundCapacity, StepCtx, StepEffect};
use crate::log_lines;
use crate::request::Request;
use crate::site::Site;
use crate::subrequest::Mirrored;

/// Starts the location's mirror subrequests, with the body if `mirror_request_body` says so.
#[cold]
pub(super) fn mirror(request: &mut Request, site: &Site, ctx: &mut StepCtx<'_>) -> NextStep {
    let location = site.location(request.location);
    let content = NextStep::Step(RequestStep::Content);
    if request.role.is_subrequest() || request.role.has_no_client() || request.is_dry() {
        return content;
    }
    let has_body = location.settings.mirror_request_body
        && request.head().body != RequestBody::None
        && !request.upload.is_streamed()
        && !request.upload.is_refused();
    if has_body {
        request.send_continue(ctx);
        if let Some(next) = request.refuse_early(site, ctx) {
            return next;
        }
        if request.upload.spool().is_none() {
            let memory = location.settings.client_body_buffer_size;
            let holds = holds(location, site);
            let progress = request.upload.collect(memory, holds, ctx.effects);
            return collected(request, progress, RequestStep::Mirror, location, ctx);
        }
    }
    if ctx.background != BackgroundCapacity::Available {
        log_omission(request, site, ctx);
        return content;
    }
    let family = request.family();
    family.count.set(family.count.get().saturating_add(1));
    for uri in location.settings.mirrors.iter() {
        let body = request.upload.spool().filter(|_| has_body).cloned();
        let args = request.args();
        let mirrored = Mirrored {
            uri: uri.clone(),
            args: (!args.is_empty()).then(|| args.to_vec()),
            method: request.method,
            body: body.filter(bolide_base::Spool::is_complete),
            known: request.captures.get_mut().clone(),
            id: request.id,
            real: request.real,
            listen: request.listen,
            limits: request.limited.details(),
        };
        ctx.effects.push(StepEffect::Mirror(Box::new(mirrored)));
    }
    content
}

/// Ends a mirror subrequest whose response is there.
pub(super) fn end_mirror(copy: &mut Exchange, site: &Site, ctx: &mut StepCtx<'_>) -> ExchangeState {
    copy.answer.drop_fetch(ctx);
    copy.answer.body = AnswerBody::Empty;
    copy.finish(site, ctx)
}

impl SubrequestParent<'_> {
    /// Writes the head of a copy of this request to `head`.
    pub fn copy_head(&self, head: &mut RequestHead, mirrored: &Mirrored) {
        let own = self.request.head();
        head.clear();
        head.method = own.method;
        head.method_text.extend_from_slice(&own.method_text);
        head.version = own.version;
        head.target.extend_from_slice(&own.target);
        head.authority.extend_from_slice(&own.authority);
        head.line.extend_from_slice(&own.line);
        head.early = own.early;
        let length = mirrored.body.as_ref().map(bolide_base::Spool::received);
        head.body = length.map_or(RequestBody::None, RequestBody::Length);
        let is_kept = |name| match name {
            Name::ContentLength => length.is_some(),
            Name::TransferEncoding | Name::Expect => false,
            _ => true,
        };
        for field in own.fields.iter().filter(|field| is_kept(field.name)) {
            head.fields.push_parsed(field.name, field.text, field.value);
        }
    }
}

impl Request {
    /// Sets the state that a copy shares with its original.
    pub(crate) fn adopt_original(&mut self, mirrored: &Mirrored) {
        debug_assert!(!mirrored.uri.is_empty(), "a copy goes somewhere");
        self.internal = true;
        self.method = mirrored.method;
        self.captures.get_mut().adopt(mirrored.known.clone());
        self.id = mirrored.id;
        self.real = mirrored.real;
        self.listen = mirrored.listen;
        self.limited.adopt(mirrored.limits);
        if let Some(body) = &mirrored.body {
            self.upload.share(body.clone());
        }
    }
}

/// Logs that mirror subrequests are omitted.
fn log_omission(request: &Request, site: &Site, ctx: &mut StepCtx<'_>) {
    let (level, text): (_, &[u8]) = match ctx.background {
        BackgroundCapacity::WorkerFull => {
            (LogLevel::Alert, b"worker_connections are not enough, mirror is left out")
        }
        BackgroundCapacity::ConnectionFull | BackgroundCapacity::Available => {
            (LogLevel::Warn, b"too many mirrors of one connection, mirror is left out")
        }
    };
    log_lines::error_about(request, None, site, ctx, level, |out| out.extend_from_slice(text));
}
