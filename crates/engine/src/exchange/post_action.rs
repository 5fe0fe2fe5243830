//! `post_action`: the request continues after its response, without a client.
//!
//! ```text
//!   finish ──post_action──▶ (steps, waits) ──a response──▶ its own post_action, or conclude
//! ```
//!
//! Owns what the client got, while later locations make responses that are discarded. The exchange
//! is detached from its connection (`StepEffect::Detach`) first, so nothing here may depend on the
//! client. Easiest to break: it continues at most as often as internal redirects are left.

use bolide_conf::model::LogLevel;
use bolide_http::{FieldMap, RequestBody};

use super::steps::PROBES_MAX;
use super::{Exchange, ExchangeState, NextStep};
use crate::answer::Answer;
use crate::answer::AnswerBody;
use crate::caching::CacheTransaction;
use crate::content::origin_news::detach_fetch;
use crate::ctx::{BackgroundCapacity, StepCtx, StepEffect};
use crate::explain::ring::record_decision;
use crate::log_lines;
use crate::request::Request;
use crate::site::Site;
use crate::subrequest::{PostActionState, RequestRole};

impl Exchange {
    /// Continues with the location's `post_action`, if there is one and room for it.
    #[cold]
    pub(super) fn continue_with_post_action(
        &mut self,
        site: &Site,
        ctx: &mut StepCtx<'_>,
    ) -> Option<ExchangeState> {
        let target = site.location(self.request.location).settings.post_action.clone()?;
        if self.request.role.is_subrequest() || self.request.is_dry() {
            return None;
        }
        if self.request.role.post_action().is_none() {
            if ctx.background != BackgroundCapacity::Available {
                log_omission(&self.request, site, ctx);
                return None;
            }
            begin_post_action(&mut self.request, &mut self.answer, &self.cache, ctx);
        } else if self.request.redirects_left == 0 {
            return None;
        }
        debug_assert!(self.request.redirects_left > 0, "it goes on as often as redirects are left");
        self.forget_answer();
        let next = match target.first() {
            Some(b'/') => self.request.follow_path(&target, site, ctx),
            _ => self.request.follow_name(&target, site, ctx),
        };
        Some(self.run(next, ctx))
    }

    /// Prepares for another response. What was logged and counted of the client's one stays.
    fn forget_answer(&mut self) {
        self.answer.body = AnswerBody::Empty;
        self.answer.carried.clear();
        self.answer.retry_after = None;
        self.answer.object = None;
        self.answer.forget_draft();
        self.access.clear();
        self.probes_left = PROBES_MAX;
        self.search.begin();
        self.request.is_authorized = false;
        self.cache.clear();
    }
}

impl Request {
    /// As in nginx, the whole argument is the path, and the query is dropped.
    fn follow_path(&mut self, path: &[u8], site: &Site, ctx: &mut StepCtx<'_>) -> NextStep {
        let next = self.redirect_inside(path, site, ctx);
        if matches!(next, NextStep::Step(_)) {
            self.uri.clear();
            self.uri.extend_from_slice(path);
            self.mark_dots();
            self.drop_args();
        }
        next
    }

    /// Path and query stay.
    fn follow_name(&mut self, name: &[u8], site: &Site, ctx: &mut StepCtx<'_>) -> NextStep {
        if self.head().target.is_empty() && self.redirects_left > 1 {
            let _counted = self.spend_redirect();
            self.log_error(site, ctx, |out| {
                out.extend_from_slice(b"empty URI in redirect to named location \"");
                out.extend_from_slice(name);
                out.push(b'"');
            });
            return NextStep::Fail(500);
        }
        self.enter_named(name, site, ctx)
    }
}

impl Exchange {
    /// Discards the response of `post_action`.
    pub(super) fn end_post_action(&mut self, site: &Site, ctx: &mut StepCtx<'_>) -> ExchangeState {
        self.answer.drop_fetch(ctx);
        self.answer.body = AnswerBody::Empty;
        if let Some(post_action) = self.request.role.post_action() {
            self.answer.head.fields.copy_from(&post_action.fields);
            self.answer.head.body = post_action.body;
        }
        // The status that nginx logs without a head holds until there is one.
        self.answer.bare_status = 0;
        self.finish(site, ctx)
    }

    /// As in nginx, an invalid status is logged only if the client got nothing.
    pub(super) fn close_post_action(
        &mut self,
        status: u16,
        site: &Site,
        ctx: &mut StepCtx<'_>,
    ) -> ExchangeState {
        if self.answer.head.status == 0 || self.answer.head_sent + self.answer.body_sent == 0 {
            self.answer.bare_status = status;
        }
        self.conclude(site, ctx)
    }
}

/// Logs that `post_action` is omitted.
fn log_omission(request: &Request, site: &Site, ctx: &mut StepCtx<'_>) {
    let (level, text): (_, &[u8]) = match ctx.background {
        BackgroundCapacity::WorkerFull => {
            (LogLevel::Alert, b"worker_connections are not enough, post_action is left out")
        }
        BackgroundCapacity::ConnectionFull | BackgroundCapacity::Available => {
            (LogLevel::Warn, b"too many post actions of one connection, post_action is left out")
        }
    };
    log_lines::error_about(request, None, site, ctx, level, |out| {
        out.extend_from_slice(text);
    });
}

/// Whether no rest of the request body is left that could exceed the limit.
pub(crate) fn is_bodiless(request: &Request) -> bool {
    request.role.post_action().is_some() && request.upload.is_refused()
}

fn begin_post_action(
    request: &mut Request,
    answer: &mut Answer,
    cache: &CacheTransaction,
    ctx: &mut StepCtx<'_>,
) {
    debug_assert!(
        matches!(request.role, RequestRole::Client),
        "what goes on behind an answer is a client's"
    );
    record_decision(request, answer, cache, ctx);
    let mut fields = FieldMap::new();
    fields.copy_from(&answer.head.fields);
    let state = PostActionState { fields, body: answer.head.body };
    request.role = RequestRole::PostAction(Box::new(state));
    // The worker lets the fetch end as it would have ended without `post_action`.
    if answer.is_fetching() {
        detach_fetch(answer, ctx);
    }
    if request.head().body != RequestBody::None {
        request.upload.close();
    }
    if request.redirects_left == 0 {
        // As in nginx, whose counter of four bits wraps when it is used up.
        request.redirects_left = 16;
    }
    ctx.effects.push(StepEffect::Detach);
}
