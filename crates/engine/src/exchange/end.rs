//! The end of an exchange: its response was sent, and it is logged.
//!
//! Easiest to break: every end goes through `finish`, where `post_action` may take over, except for
//! 444 and late heads.

use bolide_upstream::OriginNews;

use super::searched::log_fault;
use super::{Exchange, ExchangeState};
use crate::content::origin_news::take_more;
use crate::counters::ConnProtocol;
use crate::ctx::{StepCtx, StepEffect};
use crate::debug_lines;
use crate::explain::ring::record_decision;
use crate::log_lines;
use crate::metrics::rows::CountedRequest;
use crate::metrics::slow::{SlowRequest, kept};
use crate::site::{CompiledLocation, Site};
use crate::subrequest::RequestRole;
use crate::tracing;
use crate::vars::VariableScope;

impl Exchange {
    pub(super) fn sent(
        &mut self,
        body_bytes: u64,
        head_bytes: u64,
        ctx: &mut StepCtx<'_>,
    ) -> ExchangeState {
        debug_assert!(self.answer.is_responded, "what was sent was handed over");
        debug_assert!(!self.answer.is_complete, "the last byte leaves once");
        let Some(site) = self.request.site.clone() else { return ExchangeState::Done };
        self.answer.body_sent = body_bytes;
        self.answer.head_sent = head_bytes;
        self.answer.is_complete = true;
        if self.answer.is_fetching() {
            return ExchangeState::Settling;
        }
        self.finish(&site, ctx)
    }

    /// Takes an event of the fetch while its response is sent, or after that.
    pub(super) fn handle_news(
        &mut self,
        state: ExchangeState,
        news: OriginNews,
        ctx: &mut StepCtx<'_>,
    ) -> ExchangeState {
        let Some(site) = self.request.site.clone() else { return ExchangeState::Done };
        take_more(&self.request, &mut self.answer, news, &site, ctx);
        if self.answer.is_fetching() {
            return state;
        }
        if self.request.upload.is_streamed() && state == ExchangeState::Delivering {
            self.request.discard_rest(&self.answer, ctx);
        }
        if state == ExchangeState::Settling { self.finish(&site, ctx) } else { state }
    }

    /// The client gets nothing more: continues with `post_action`, or concludes.
    pub(super) fn finish(&mut self, site: &Site, ctx: &mut StepCtx<'_>) -> ExchangeState {
        if site.location(self.request.location).has_post_action
            && let Some(state) = self.continue_with_post_action(site, ctx)
        {
            return state;
        }
        self.conclude(site, ctx)
    }

    /// Closes the connection without a response.
    pub(super) fn close_without_response(
        &mut self,
        status: u16,
        site: &Site,
        ctx: &mut StepCtx<'_>,
    ) -> ExchangeState {
        if self.request.role.post_action().is_some() {
            return self.close_post_action(status, site, ctx);
        }
        self.answer.bare_status = status;
        if self.request.role.mirrored().is_some() {
            return self.conclude(site, ctx);
        }
        debug_assert!(!self.answer.is_responded, "a client that has its head gets the rest");
        ctx.effects.push(StepEffect::CloseSilently);
        self.conclude(site, ctx)
    }

    /// Cuts the request off. As in nginx, it is logged in its current state.
    pub(super) fn cut(&mut self, ctx: &mut StepCtx<'_>) -> ExchangeState {
        let Some(site) = self.request.site.clone() else { return ExchangeState::Done };
        self.answer.drop_fetch(ctx);
        self.conclude(&site, ctx)
    }

    /// Writes the log lines and frees the request.
    pub(super) fn conclude(&mut self, site: &Site, ctx: &mut StepCtx<'_>) -> ExchangeState {
        record_decision(&self.request, &self.answer, &self.cache, ctx);
        self.request.first_values.get_mut().close();
        let location = site.location(self.request.location);
        if location.notes_end {
            debug_assert!(self.answer.cache_reason.is_none(), "a request ends once");
            self.answer.cache_reason = self.cache.reason();
        }
        if !self.request.notes.get_mut().is_empty() {
            self.request.log_notes(b"", site, ctx);
        }
        if self.answer.may_be_searched
            && let Some(fault) = self.answer.body.fault()
        {
            log_fault(&self.request, fault, site, ctx);
        }
        let mut scratch = std::mem::take(&mut self.answer.scratch);
        let scope = VariableScope::new(&self.request, &self.answer, site, ctx);
        if location.notes_end {
            record_end(&scope, location, ctx);
        }
        let is_subrequest = self.request.role.is_subrequest();
        if let Some(part) = self.request.role.part()
            && location.settings.log_subrequest
        {
            part.family.is_logged.set(true);
        }
        if !is_subrequest || location.settings.log_subrequest {
            log_lines::access(&scope, ctx, &mut scratch);
        }
        self.answer.scratch = scratch;
        if !self.request.notes.get_mut().is_empty() {
            self.request.log_notes(b" while logging request", site, ctx);
        }
        self.answer.body.clear();
        self.request.limited.let_go();
        ctx.effects.push(StepEffect::Finish);
        ExchangeState::Done
    }
}

/// The record of a slow request.
#[cold]
fn slow_request(
    scope: &VariableScope<'_>,
    counted: &CountedRequest,
    ctx: &StepCtx<'_>,
) -> SlowRequest {
    let request = scope.request;
    let head = request.head();
    SlowRequest {
        at_ms: ctx.now.unix_millis,
        micros: counted.nanos / 1000,
        status: counted.status,
        protocol: counted.protocol,
        id: request.id,
        method: kept(&head.method_text),
        host: kept(request.asked_host()),
        target: kept(&head.target),
    }
}

/// Counts a client's finished request, exports its span, and writes its debug lines.
fn record_end(scope: &VariableScope<'_>, location: &CompiledLocation, ctx: &mut StepCtx<'_>) {
    let VariableScope { request, answer, .. } = scope;
    let is_client_s = matches!(request.role, RequestRole::Client | RequestRole::PostAction(_));
    if let Some(row) = location.row.filter(|_| is_client_s) {
        let head = request.head();
        let counted = CountedRequest {
            status: answer.logged_status(),
            protocol: ConnProtocol::of(head.version),
            nanos: ctx.now.mono.nanos_since(request.started.mono),
            bytes_in: u64::from(head.wire_size) + request.body_received,
            bytes_out: answer.head_sent + answer.body_sent,
        };
        let tally = ctx.counters.own();
        if tally.rows.count(row, &counted) {
            tally.slow.note(slow_request(scope, &counted, ctx));
        }
    }
    if is_client_s && request.tracing.is_sampled() {
        tracing::span::finish(scope, ctx);
    }
    if debug_lines::are_taken(location, scope.site, ctx) {
        debug_lines::ended(scope, ctx);
    }
}
