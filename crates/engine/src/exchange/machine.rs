//! The transitions of an exchange, and what the worker may read of it between steps.

use bolide_base::{Now, Spool};
use bolide_conf::model::LogLevel;
use bolide_http::{Method, RequestHead, ResponseHead};
use bolide_upstream::OriginNews;

use crate::answer::{Answer, Inflow, drop_any};
use crate::body::RequestUpload;
use crate::caching::CacheTransaction;
use crate::content::console::ConsoleRequest;
use crate::content::dav::DavRequest;
use crate::ctx::{SiteRef, StepCtx, StepEffect, Wake};
use crate::log_lines;
use crate::phase::limits::delayed;
use crate::request::Request;
use crate::site::Site;

use super::child::SubrequestChild;
use super::client::handle_truncated_file;
use super::parent::SubrequestParent;
use super::response_body::ResponseBody;
use super::searched::begin_on;
use super::steps::PROBES_MAX;
use super::{Exchange, ExchangeState, NextStep, RequestStep};

impl Exchange {
    /// An idle exchange.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Gives a new request to an idle or finished exchange; step it with `Start` or `Refused` next.
    pub fn start(&mut self, head: Box<RequestHead>, site: SiteRef, head_began: Option<Now>) {
        debug_assert!(
            matches!(self.state, ExchangeState::Idle | ExchangeState::Done),
            "an exchange serves one request at a time"
        );
        self.request.begin(head, site);
        self.request.head_began = head_began;
        self.answer.clear();
        self.access.clear();
        self.probes_left = PROBES_MAX;
        self.search.begin();
        self.cache.clear();
        self.state = ExchangeState::Received;
    }

    /// Performs the transition for `wake`. All transitions are here; other functions only compute.
    pub fn step(&mut self, wake: Wake, ctx: &mut StepCtx<'_>) {
        let was = std::mem::replace(&mut self.state, ExchangeState::Done);
        let before = ctx.effects.len();
        if let Wake::Spooled(Some(trouble)) = &wake {
            log_spool_failure(self, trouble, ctx);
        }
        self.state = match (was, wake) {
            (ExchangeState::Received, Wake::Start) => self.begin(ctx),
            (ExchangeState::Received, Wake::Refused(refusal)) => self.refuse(refusal, ctx),
            (ExchangeState::Probing(step), Wake::Probed)
            | (ExchangeState::Compressing(step), Wake::Compressed) => {
                self.run(NextStep::Step(step), ctx)
            }
            (ExchangeState::RunningJob(step), Wake::JobDone(made)) => {
                self.search.made = Some(made);
                self.run(NextStep::Step(step), ctx)
            }
            (ExchangeState::Checking(step), Wake::PasswordChecked(is_right)) => {
                self.access.password = Some(is_right);
                self.run(NextStep::Step(step), ctx)
            }
            (ExchangeState::Checking(_), Wake::PasswordUnchecked) => self.go_on(unchecked, ctx),
            (ExchangeState::Changing, Wake::FilesChanged(outcome)) => {
                self.go_on(|own, site, ctx| DavRequest::of(own).changed(&outcome, site, ctx), ctx)
            }
            (ExchangeState::Commanding, Wake::Commanded(outcome)) => self
                .go_on(|own, site, ctx| ConsoleRequest::of(own).report(&outcome, site, ctx), ctx),
            (ExchangeState::Delaying, Wake::Deadline) => {
                self.go_on(|own, _, _| delayed(&mut own.request), ctx)
            }
            (ExchangeState::Delivering, Wake::Sent { body_bytes, head_bytes }) => {
                self.sent(body_bytes, head_bytes, ctx)
            }
            (over @ (ExchangeState::Idle | ExchangeState::Done), _) => over,
            (_, Wake::TimeUp) => self.cut(ctx),
            (state, wake) if self.request.role.has_no_client() && wake.is_of_client() => state,
            (state, Wake::ClientGone) => self.abandon(state, false, ctx),
            (state, Wake::ClientReset) => self.abandon(state, true, ctx),
            (state, Wake::SendTimeout) => self.send_away(state, ctx),
            (_, Wake::FileTruncated(what)) => handle_truncated_file(self, &what, ctx),
            (
                ExchangeState::Collecting(step),
                wake @ (Wake::Body(_) | Wake::BodyEnd | Wake::Spooled(_)),
            ) => self.collect(step, wake, ctx),
            (ExchangeState::Fetching, Wake::Origin(news)) => self.take_news(news, ctx),
            (state @ (ExchangeState::Delivering | ExchangeState::Settling), Wake::Origin(news)) => {
                self.handle_news(state, news, ctx)
            }
            (
                ExchangeState::AwaitingBody,
                wake @ (Wake::Origin(_) | Wake::Filled | Wake::Deadline | Wake::Spooled(_)),
            ) => begin_on(self, wake, ctx),
            (ExchangeState::Coalescing, Wake::Filled) => {
                self.step_cache(CacheTransaction::follow, ctx)
            }
            (ExchangeState::Coalescing, Wake::Recalled(what)) => self.step_cache(
                |cache, request, answer, site, ctx| {
                    cache.recalled(request, answer, *what, site, ctx)
                },
                ctx,
            ),
            (ExchangeState::Coalescing, Wake::Deadline) => {
                self.step_cache(CacheTransaction::stop_waiting, ctx)
            }
            (
                ExchangeState::Assembling,
                wake @ (Wake::Fragment | Wake::Filled | Wake::Origin(_)),
            ) => self.step_cache(
                |cache, request, answer, site, ctx| {
                    cache.assemble_on(request, answer, wake, site, ctx)
                },
                ctx,
            ),
            (ExchangeState::AwaitingAuth, Wake::Fragment) => self.handle_auth_result(ctx),
            (ExchangeState::Delivering, Wake::Filled | Wake::Fragment) => {
                ctx.effects.push(StepEffect::BodyReady);
                ExchangeState::Delivering
            }
            (state @ (ExchangeState::Delivering | ExchangeState::Assembling), Wake::Spooled(_)) => {
                self.answer.answer_spooled(ctx);
                state
            }
            (state, Wake::Body(bytes)) => self.take_body(state, bytes, ctx),
            (state, Wake::BodyEnd) => self.end_body(state, ctx),
            (state, Wake::BodyRefused(refusal)) if reads_body(self, state) => {
                self.refuse_body(state, refusal, ctx)
            }
            (state, _) => state,
        };
        self.assert_step(&ctx.effects[before..], was);
    }

    /// Asserts the invariants of a step from `was` that requested the effects `wishes`.
    fn assert_step(&self, wishes: &[StepEffect], was: ExchangeState) {
        debug_assert!(
            is_orderly(wishes, was, self.state),
            "a step that ends the exchange asks for Finish once, as its last wish"
        );
        debug_assert!(
            self.state != ExchangeState::Delivering || self.answer.is_responded,
            "what is delivered was handed over"
        );
        debug_assert!(
            self.state != ExchangeState::Settling || self.answer.is_fetching(),
            "only a fetch that runs is waited for behind an answer"
        );
    }

    /// Continues to buffer the request body.
    fn collect(&mut self, step: RequestStep, wake: Wake, ctx: &mut StepCtx<'_>) -> ExchangeState {
        self.go_on(
            |Self { request, answer, .. }, site, ctx| {
                request.collect(answer, step, wake, site, ctx)
            },
            ctx,
        )
    }

    /// Takes an event of the fetch before there is a response.
    fn take_news(&mut self, news: OriginNews, ctx: &mut StepCtx<'_>) -> ExchangeState {
        self.go_on(
            |Self { answer, request, cache, .. }, site, ctx| {
                answer.take_news(request, cache, news, site, ctx)
            },
            ctx,
        )
    }

    /// Continues after an authorization subrequest. As in nginx, one without a response closes the
    /// connection.
    fn handle_auth_result(&mut self, ctx: &mut StepCtx<'_>) -> ExchangeState {
        let next = match self.access.verdict {
            Some(_) => NextStep::Step(RequestStep::Access),
            None => NextStep::CloseWithoutResponse(444),
        };
        self.run(next, ctx)
    }

    /// Runs one step of the cache transaction.
    fn step_cache(
        &mut self,
        step: impl FnOnce(
            &mut CacheTransaction,
            &mut Request,
            &mut Answer,
            &Site,
            &mut StepCtx<'_>,
        ) -> NextStep,
        ctx: &mut StepCtx<'_>,
    ) -> ExchangeState {
        self.go_on(
            |Self { cache, request, answer, .. }, site, ctx| {
                step(cache, request, answer, site, ctx)
            },
            ctx,
        )
    }

    /// Runs `step`, then the steps that follow its result.
    fn go_on(
        &mut self,
        step: impl FnOnce(&mut Self, &Site, &mut StepCtx<'_>) -> NextStep,
        ctx: &mut StepCtx<'_>,
    ) -> ExchangeState {
        let Some(site) = self.request.site.clone() else { return ExchangeState::Done };
        let next = step(self, &site, ctx);
        self.run(next, ctx)
    }

    /// Whether it waits for heads of its fragments, or for its authorization subrequest.
    #[must_use]
    pub fn is_assembling(&self) -> bool {
        matches!(self.state, ExchangeState::Assembling | ExchangeState::AwaitingAuth)
    }

    /// The exchange as the parent of subrequests.
    #[must_use]
    pub const fn as_parent(&mut self) -> SubrequestParent<'_> {
        SubrequestParent {
            request: &mut self.request,
            answer: &mut self.answer,
            cache: &self.cache,
            access: &mut self.access,
        }
    }

    /// The exchange as a subrequest.
    #[must_use]
    pub const fn as_child(&self) -> SubrequestChild<'_> {
        SubrequestChild { request: &self.request, answer: &self.answer, cache: &self.cache }
    }

    /// The response head; read it when `StepEffect::Respond` was requested.
    #[must_use]
    pub const fn head(&self) -> &ResponseHead {
        &self.answer.head
    }

    /// The response body, to be pulled after the head was sent.
    #[inline]
    #[must_use]
    pub const fn response_body(&mut self) -> ResponseBody<'_> {
        ResponseBody { request: &self.request, answer: &mut self.answer }
    }

    /// The site that serves it, while it is in progress.
    #[must_use]
    pub const fn site(&self) -> Option<&SiteRef> {
        self.request.site.as_ref()
    }

    /// The request body, for what the worker knows of it.
    #[inline]
    #[must_use]
    pub const fn upload_mut(&mut self) -> &mut RequestUpload {
        &mut self.request.upload
    }

    /// The spool that has bytes for a file, when `StepEffect::Spool` was requested.
    pub fn spool_mut(&mut self) -> Option<&mut Spool> {
        match (self.state, &mut self.answer.body) {
            (ExchangeState::Collecting(_), _) => self.request.upload.spool_mut(),
            (_, body) => body.inflow_mut().map(Inflow::spool_mut),
        }
    }

    /// The request's method as sent; a `HEAD` answer has no body.
    #[must_use]
    pub fn method(&self) -> Method {
        self.request.head().method
    }

    /// The settings of its location, for timeouts and rates of the connection.
    #[must_use]
    #[allow(clippy::inline_always, reason = "measured: 16 instructions of a hit")]
    #[inline(always)]
    pub fn settings(&self) -> Option<&bolide_conf::model::LocationSettings> {
        let site = self.request.site.as_deref()?;
        site.http()?;
        Some(&site.location(self.request.location).settings)
    }

    /// Returns the head to its pool, and releases the site and the body.
    pub fn take_request(&mut self) -> Box<RequestHead> {
        self.answer.body.clear();
        drop_any(&mut self.answer.origin);
        self.answer.object = None;
        self.cache.clear();
        self.request.upload.clear();
        self.request.site = None;
        self.state = ExchangeState::Idle;
        self.request.take_head()
    }
}

/// The password cannot be checked now.
fn unchecked(own: &mut Exchange, site: &Site, ctx: &mut StepCtx<'_>) -> NextStep {
    own.request.log_error(site, ctx, |out| {
        out.extend_from_slice(b"too many passwords are waiting to be checked");
    });
    NextStep::Fail(503)
}

/// Whether anything reads, or will read, the request body.
fn reads_body(exchange: &Exchange, state: ExchangeState) -> bool {
    let answers = matches!(state, ExchangeState::Delivering | ExchangeState::Settling);
    let goes_on = exchange.request.upload.is_streamed() && exchange.answer.is_fetching();
    state.waits_for_response() || answers && goes_on
}

/// Whether the effects of a step from `was` to `is` are in order: `Respond` at most once, and
/// `Finish` last if the exchange ends, and only then.
fn is_orderly(wishes: &[StepEffect], was: ExchangeState, is: ExchangeState) -> bool {
    let count = |wanted: fn(&StepEffect) -> bool| wishes.iter().filter(|wish| wanted(wish)).count();
    let ends = is == ExchangeState::Done && !matches!(was, ExchangeState::Done);
    let finishes = count(|wish| matches!(wish, StepEffect::Finish));
    let is_last = matches!(wishes.last(), Some(StepEffect::Finish));
    let responds = count(|wish| matches!(wish, StepEffect::Respond));
    finishes == usize::from(ends) && is_last == ends && responds <= 1
}

/// Logs why a body could not be written to a file.
#[cold]
fn log_spool_failure(exchange: &Exchange, trouble: &str, ctx: &mut StepCtx<'_>) {
    let Some(site) = &exchange.request.site else { return };
    let peer = exchange.answer.peer();
    let origin = peer.as_ref().map(|(scheme, peer)| (*scheme, &**peer));
    log_lines::error_about(&exchange.request, origin, site, ctx, LogLevel::Crit, |out| {
        out.extend_from_slice(trouble.as_bytes());
    });
}
