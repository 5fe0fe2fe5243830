//! One request from its head to its log line.
//!
//! ```text
//!            start            Start, Refused
//!   Idle ──────────▶ Received ─────────────┐
//!    ▲                                     ▼
//!    │               ┌──────────────▶ (steps) ◀──────────────┐
//!    │        Probed │   a look at the │  │  │ a compressed   │ Compressed
//!    │               │   disk is due   │  │  │ form is due    │
//!    │             Probing ◀───────────┘  │  └──────────▶ Compressing, Checking
//!    │                                    │ an answer is ready
//!    │  reuse          Sent               ▼
//!   Done ◀──────────────────────────── Delivering
//!    ▲  ClientGone from everywhere; 444 from the steps
//! ```
//!
//! Only `step` assigns the state; everything else computes. The invariant that is easiest to
//! break: an exchange asks for `Respond` at most once, and for `Finish` exactly once.

mod admit;
mod client;
mod end;
mod pace;
mod post_action;

use bolide_base::{SendChain, Spool};
use bolide_conf::model::LogLevel;
use bolide_http::{HttpVersion, Method, Name, RequestBody, RequestHead, ResponseHead, Scheme};

use crate::answer::{Answer, AnswerBody, BodyPiece, Inflow};
use crate::content::page::Page;
use crate::ctx::{RequestRefusal, SiteRef, StepCtx, StepEffect, Wake};
use crate::explain::{ExplainTrial, Trace};
use crate::filter::headers::{self, FieldPlace, HeadDraft};
use crate::log_lines;
use crate::media_types::MediaType;
use crate::phase::auth_request::AuthVerdict;
use crate::phase::rewrite::RewriteCursor;
use crate::request::Request;
use crate::route::LocationMatch;

use crate::site::{CompiledLocation, Site};
use crate::vars::VariableScope;

pub(crate) use client::stays;
pub use pace::Rate;

/// Looks at the disk that one request may cost.
const PROBES_MAX: u8 = 64;

/// Where an exchange stands between two wakes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum ExchangeState {
    /// In the pool.
    #[default]
    Idle,
    /// A head was given; nothing was done with it.
    Received,
    /// A look at the disk is under way; then this step is made again.
    Probing(RequestStep),
    /// A compressed form is being made; then this step is made again.
    Compressing(RequestStep),
    /// A password is being checked; then this step is made again.
    Checking(RequestStep),
    /// The request or its refusal is held back.
    Delaying,
    /// The request body is on its way; then this step is made.
    Collecting(RequestStep),
    /// An origin was asked; its head is on its way.
    Fetching,
    /// Somebody else asked for the same; the head is on its way.
    Coalescing,
    /// Heads of fragments are on their way, which the page's own waits for.
    Assembling,
    /// Another location was asked whether the request may come in.
    AwaitingAuth,
    /// The head was handed over; the body is pulled.
    Delivering,
    /// The answer was handed over; the origin has not said that it is done.
    Settling,
    /// The log lines are written.
    Done,
}

/// What is to be done next with a request, in nginx's order of phases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequestStep {
    /// The server block's own rewrite phase, if it has one.
    Server,
    /// The search for a location.
    Find,
    /// The location is known: `internal`, body size.
    Location,
    /// The rewrite phase of a server block or location, from an instruction on.
    Rewrite(RewriteCursor),
    /// `allow`, `deny`, `auth_basic`, `auth_request`
    Access,
    /// `try_files`, from this candidate on.
    TryFiles(usize),
    /// Files: what kind of path is it?
    Content,
    /// `index`, from this name on.
    Index(usize),
    /// Whether the directory is there whose index is not.
    IndexDirectory(usize),
    /// `autoindex`
    Listing,
    /// A file.
    File,
    /// An origin: what has to be known and had before it is asked.
    Origin,
    /// The origin is asked.
    Ask,
}

/// Where a step leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NextStep {
    /// To another step.
    Step(RequestStep),
    /// Nowhere until a look at the disk is done; then this step again.
    Probe(RequestStep),
    /// Nowhere until a compressed form is made; then this step again.
    Compress(RequestStep),
    /// Nowhere until a password is checked; then this step again.
    CheckPassword(RequestStep),
    /// Nowhere until the deadline.
    Delay,
    /// Nowhere until the request body is here; then to this step.
    Collect(RequestStep),
    /// Nowhere until the origin says more.
    Fetch,
    /// Nowhere until the fill that is waited for moves.
    Coalesce,
    /// Nowhere until the heads of the page's fragments are there.
    Assemble,
    /// Nowhere until it is known whether the request may come in.
    AwaitAuth,
    /// To an error answer.
    Fail(u16),
    /// To a redirect to the address in `Exchange::location`; error pages may apply.
    Redirect(u16),
    /// To the server's own page for this status, whatever `error_page` says.
    Page(u16),
    /// The answer is complete.
    Respond,
    /// The connection is closed without an answer.
    /// It is logged with this status.
    CloseWithoutResponse(u16),
}

/// One request in work, and its answer. Exchanges are pooled: all buffers are kept.
#[derive(Debug, Default)]
pub struct Exchange {
    state: ExchangeState,
    probes_left: u8,
    pub(crate) request: Request,
    pub(crate) answer: Answer,
    /// A path on disk.
    pub(crate) path: Vec<u8>,
    /// The address of a redirect; empty if there is none.
    pub(crate) location: Vec<u8>,
    /// What came of checking a password, until it is looked at.
    pub(crate) password: Option<bool>,
    /// What came of asking another location, until it is looked at.
    pub(crate) verdict: Option<Box<AuthVerdict>>,
    /// `WWW-Authenticate`; empty if there is none.
    pub(crate) challenge: Vec<u8>,
    /// For whatever a step needs.
    pub(crate) scratch: Vec<u8>,
    /// For ranges.
    pub(crate) ranges: Vec<bolide_http::range::ByteRange>,
    /// Whether a compressed form was waited for already.
    pub(crate) waited_for_form: bool,
    /// Whether a listing was asked for already.
    pub(crate) waited_for_listing: bool,
    /// Bytes of the file of which impossible ranges were asked.
    pub(crate) unsatisfied: Option<u64>,
    /// What it knows of the store.
    pub(crate) page: Page,
    /// Where a trial run writes its way down; none for requests of clients.
    pub(crate) trace: Option<Box<Trace>>,
    /// A trial that waits for a look at the disk.
    pub(crate) trial: Option<Box<ExplainTrial>>,
    /// What the client got, once `post_action` goes on behind it.
    post_action: Option<Box<post_action::PostActionState>>,
}

impl Exchange {
    /// An idle exchange.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Gives a new request to an idle or finished exchange; wake it with `Start` or `Refused`.
    pub fn start(&mut self, head: Box<RequestHead>, site: SiteRef) {
        debug_assert!(
            matches!(self.state, ExchangeState::Idle | ExchangeState::Done),
            "an exchange serves one request at a time"
        );
        self.request.begin(head, site);
        self.answer.clear();
        self.location.clear();
        self.challenge.clear();
        self.password = None;
        self.verdict = None;
        self.probes_left = PROBES_MAX;
        self.waited_for_form = false;
        self.waited_for_listing = false;
        self.unsatisfied = None;
        self.page.clear();
        self.post_action = None;
        self.state = ExchangeState::Received;
    }

    /// Advances as far as `wake` allows. All transitions are here; everything else only computes.
    pub fn step(&mut self, wake: Wake, ctx: &mut StepCtx<'_>) {
        let state = std::mem::replace(&mut self.state, ExchangeState::Done);
        self.state = match (state, wake) {
            (ExchangeState::Received, Wake::Start) => self.begin(ctx),
            (ExchangeState::Received, Wake::Refused(refusal)) => self.refuse(refusal, ctx),
            (ExchangeState::Probing(step), Wake::Probed) => self.run(NextStep::Step(step), ctx),
            (ExchangeState::Compressing(step), Wake::Compressed) => {
                self.run(NextStep::Step(step), ctx)
            }
            (ExchangeState::Checking(step), Wake::PasswordChecked(is_right)) => {
                self.password = Some(is_right);
                self.run(NextStep::Step(step), ctx)
            }
            (ExchangeState::Delaying, Wake::Deadline) => self.end_delay(ctx),
            (ExchangeState::Delivering, Wake::Sent { body_bytes, head_bytes }) => {
                self.sent(body_bytes, head_bytes, ctx)
            }
            (ExchangeState::Idle, _) => ExchangeState::Idle,
            (ExchangeState::Done, _) => ExchangeState::Done,
            (_, Wake::TimeUp) => self.cut(ctx),
            (state, wake) if self.is_post_action() && wake.is_of_client() => state,
            (state, Wake::ClientGone) => self.abandon(state, ctx),
            (state, Wake::SendTimeout) => self.send_away(state, ctx),
            (
                ExchangeState::Collecting(step),
                wake @ (Wake::Body(_) | Wake::BodyEnd | Wake::Spooled),
            ) => self.go_on(|exchange, site, ctx| exchange.collect(step, wake, site, ctx), ctx),
            (ExchangeState::Fetching, Wake::Origin(news)) => {
                self.go_on(|exchange, site, ctx| exchange.take_news(news, site, ctx), ctx)
            }
            (state @ (ExchangeState::Delivering | ExchangeState::Settling), Wake::Origin(news)) => {
                self.hear(state, news, ctx)
            }
            (ExchangeState::Coalescing, Wake::Filled) => {
                self.go_on(|exchange, site, ctx| exchange.follow(site, ctx), ctx)
            }
            (ExchangeState::Coalescing, Wake::Recalled(what)) => {
                self.go_on(|exchange, site, ctx| exchange.recalled(*what, site, ctx), ctx)
            }
            (ExchangeState::Coalescing, Wake::Deadline) => {
                self.go_on(|exchange, site, ctx| exchange.stop_waiting(site, ctx), ctx)
            }
            (
                ExchangeState::Assembling,
                wake @ (Wake::Fragment | Wake::Filled | Wake::Origin(_)),
            ) => self.go_on(|exchange, site, ctx| exchange.assemble_on(wake, site, ctx), ctx),
            (ExchangeState::AwaitingAuth, Wake::Fragment) => {
                // As in nginx, a question that is not answered ends the connection.
                let lost = self.verdict.is_none();
                self.run(
                    if lost {
                        NextStep::CloseWithoutResponse(444)
                    } else {
                        NextStep::Step(RequestStep::Access)
                    },
                    ctx,
                )
            }
            (ExchangeState::Delivering, Wake::Filled | Wake::Fragment) => {
                ctx.effects.push(StepEffect::Ready);
                ExchangeState::Delivering
            }
            (state @ (ExchangeState::Delivering | ExchangeState::Assembling), Wake::Spooled) => {
                self.answer_spooled(ctx);
                state
            }
            (state, Wake::Body(bytes)) => self.take_body(state, bytes, ctx),
            (state, Wake::BodyEnd) => self.end_body(state, ctx),
            (
                state @ (ExchangeState::Probing(_)
                | ExchangeState::Compressing(_)
                | ExchangeState::Checking(_)
                | ExchangeState::Delaying
                | ExchangeState::Collecting(_)
                | ExchangeState::Fetching
                | ExchangeState::Coalescing
                | ExchangeState::AwaitingAuth
                | ExchangeState::Assembling),
                Wake::BodyRefused(refusal),
            ) => self.refuse_body(state, refusal, ctx),
            (state, _) => state,
        };
    }

    /// Makes a step that leads somewhere.
    fn go_on(
        &mut self,
        step: impl FnOnce(&mut Self, &Site, &mut StepCtx<'_>) -> NextStep,
        ctx: &mut StepCtx<'_>,
    ) -> ExchangeState {
        let Some(site) = self.request.site.clone() else { return ExchangeState::Done };
        let next = step(self, &site, ctx);
        self.run(next, ctx)
    }

    /// Whether the heads of its fragments, or of its question, are waited for.
    #[must_use]
    pub fn is_assembling(&self) -> bool {
        matches!(self.state, ExchangeState::Assembling | ExchangeState::AwaitingAuth)
    }

    /// The head of the answer; to be read when `Effect::Respond` was asked for.
    #[must_use]
    pub const fn head(&self) -> &ResponseHead {
        &self.answer.head
    }

    /// Appends at most `max` bytes of the body to `out`, or describes a part of a file.
    pub fn pull(&mut self, max: usize, out: &mut SendChain) -> BodyPiece {
        let before = out.len();
        let piece = self.answer.body.pull(max, out);
        self.answer.body_sent += out.len() - before;
        piece
    }

    /// Notes that `len` bytes of the file part described by the last pull were sent.
    pub fn advanced(&mut self, len: u64) {
        self.answer.body.advance(len);
        self.answer.body_sent += len;
    }

    /// Takes what was read of the file part described by the last pull; an empty slice tells that
    /// reading failed or that the file is not what it was, and breaks the body.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.answer.body.feed(bytes);
    }

    /// What it is answered by, while it is in work.
    #[must_use]
    pub const fn site(&self) -> Option<&SiteRef> {
        self.request.site.as_ref()
    }

    /// Whether the client waits to be told that it may send the request body.
    #[must_use]
    pub fn expects_continue(&self) -> bool {
        self.state != ExchangeState::Idle && self.request.head().expects_continue
    }

    /// What has bytes for a file, when `Effect::Spool` was asked for.
    pub fn spool_mut(&mut self) -> Option<&mut Spool> {
        match (self.state, &mut self.answer.body) {
            (ExchangeState::Collecting(_), _) => self.request.upload.spool_mut(),
            (_, body) => body.inflow_mut().map(Inflow::spool_mut),
        }
    }

    /// Whether more of the origin's answer may be read now; to be asked after pulls, when
    /// `Effect::FetchMore` had forbidden it.
    #[must_use]
    pub fn wants_origin(&self) -> bool {
        self.answer.body.inflow().is_none_or(|inflow| !inflow.spool().is_full())
    }

    /// The request's method as sent; a `HEAD` answer has no body.
    #[must_use]
    pub fn method(&self) -> Method {
        self.request.head().method
    }

    /// Settings of the location that answers, for timeouts and rates of the connection.
    #[must_use]
    pub fn settings(&self) -> Option<&bolide_conf::model::LocationSettings> {
        let site = self.request.site.as_deref()?;
        site.http()?;
        Some(&site.location(self.request.location).settings)
    }

    /// Takes the head back for its pool and lets go of the site and the body.
    pub fn take_request(&mut self) -> Box<RequestHead> {
        self.answer.body = AnswerBody::Empty;
        self.answer.origin = None;
        self.answer.object = None;
        self.page.clear();
        self.request.upload.clear();
        self.request.site = None;
        self.state = ExchangeState::Idle;
        self.request.take_head()
    }

    fn begin(&mut self, ctx: &mut StepCtx<'_>) -> ExchangeState {
        let Some(site) = self.request.site.clone() else { return ExchangeState::Done };
        let next = match self.choose_server(&site, ctx) {
            Ok(()) => self.resolve_real_ip(&site, ctx),
            Err(refusal) => {
                self.log_refusal(refusal, self.reading(refusal), &site, ctx);
                // Known before the head was read to its end; nginx then keeps no connection.
                self.answer.head.close |= refusal.status == 421;
                NextStep::Fail(refusal.status)
            }
        };
        self.run(next, ctx)
    }

    fn note_request(&mut self, ctx: &mut StepCtx<'_>) {
        self.request.started = ctx.now;
        self.request.number_on_conn = ctx.requests_on_conn;
        if !self.request.is_fragment {
            self.request.listen = ctx.conn.listen;
        }
        if !self.is_question() && self.request.inclusion.is_none() {
            self.request.id = [ctx.prng.next_u64(), ctx.prng.next_u64()];
        }
    }

    /// Finds the server and decodes the path; in nginx's order, so that errors are its, too.
    fn choose_server(&mut self, site: &Site, ctx: &mut StepCtx<'_>) -> Result<(), RequestRefusal> {
        self.note_request(ctx);
        let bad = |reason| RequestRefusal { status: 400, reason };
        let request = &mut self.request;
        let host = request.settle_host();
        let first = admit::first_server(request, site, ctx.conn);
        request.server = first.unwrap_or_else(|| site.default_server(request.listen));
        request.location = site.server(request.server).root;
        host.map_err(|error| bad(error.reason()))?;
        if request.host.is_empty() {
            match request.head().version {
                HttpVersion::Http09 | HttpVersion::Http10 => {}
                HttpVersion::Http11 => {
                    return Err(bad("client sent HTTP/1.1 request without hostname"));
                }
                HttpVersion::Http2 | HttpVersion::Http3 => {
                    return Err(bad("client sent neither \":authority\" nor \"Host\" header"));
                }
            }
        }
        let captures = request.captures.get_mut();
        request.server = site.server_of_host(request.listen, &request.host, captures);
        let first = first.unwrap_or(request.server);
        admit::settle_target(request, first, site).map_err(|error| bad(error.reason()))?;
        admit::admit(&mut self.request, site, ctx.conn)
    }

    /// Makes steps until something has to be waited for.
    fn run(&mut self, mut next: NextStep, ctx: &mut StepCtx<'_>) -> ExchangeState {
        let Some(site) = self.request.site.clone() else { return ExchangeState::Done };
        loop {
            if !self.request.notes.get_mut().is_empty() {
                self.log_notes(&site, ctx);
                next = self.fail_undecided(next, ctx);
            }
            next = match next {
                NextStep::Step(step) => self.perform(step, &site, ctx),
                NextStep::Fail(444) => NextStep::CloseWithoutResponse(444),
                NextStep::Fail(status) => self.fail(status, &site, ctx),
                NextStep::Redirect(status) => self.redirect(status, &site, ctx),
                NextStep::Page(status) => self.own_page(status, &site, ctx),
                NextStep::Probe(step) => match self.probes_left.checked_sub(1) {
                    Some(left) => {
                        self.probes_left = left;
                        return ExchangeState::Probing(step);
                    }
                    None => NextStep::Fail(500),
                },
                NextStep::Compress(step) => return ExchangeState::Compressing(step),
                NextStep::CheckPassword(step) => return ExchangeState::Checking(step),
                NextStep::Delay => return ExchangeState::Delaying,
                NextStep::Collect(step) => return ExchangeState::Collecting(step),
                NextStep::Fetch => return ExchangeState::Fetching,
                NextStep::Coalesce => return ExchangeState::Coalescing,
                NextStep::Assemble => return ExchangeState::Assembling,
                NextStep::AwaitAuth => return ExchangeState::AwaitingAuth,
                NextStep::Respond => return self.respond(&site, ctx),
                NextStep::CloseWithoutResponse(status) => {
                    return self.close_without_response(status, &site, ctx);
                }
            };
        }
    }

    /// Fails a request for which the match of a `map` took too many steps. nginx goes on with the
    /// `default`, which may admit a client that the match would have refused.
    #[cold]
    fn fail_undecided(&mut self, next: NextStep, ctx: &mut StepCtx<'_>) -> NextStep {
        let is_over = self.answer.is_responded
            || matches!(
                next,
                NextStep::Fail(500..) | NextStep::Page(_) | NextStep::CloseWithoutResponse(_)
            );
        if !self.request.is_undecided.take() || is_over {
            return next;
        }
        self.drop_fetch(ctx);
        self.page.let_go();
        NextStep::Fail(500)
    }

    fn perform(&mut self, step: RequestStep, site: &Site, ctx: &mut StepCtx<'_>) -> NextStep {
        match step {
            RequestStep::Server => self.serve(site, ctx),
            RequestStep::Find => self.locate(site, ctx),
            RequestStep::Location => self.enter(site, ctx),
            RequestStep::Rewrite(cursor) => self.rewrite(cursor, site, ctx),
            RequestStep::Access => self.admit(site, ctx),
            RequestStep::TryFiles(index) => self.try_files(index, site, ctx),
            RequestStep::Content => self.content(site, ctx),
            RequestStep::Index(index) => self.index(index, site, ctx),
            RequestStep::IndexDirectory(index) => self.index_directory(index, site, ctx),
            RequestStep::Listing => self.listing(site, ctx),
            RequestStep::File => self.file(site, ctx),
            RequestStep::Origin => self.origin(site, ctx),
            RequestStep::Ask => self.ask(site, ctx),
        }
    }

    /// The server's own rewrite phase, then the location.
    fn serve(&mut self, site: &Site, ctx: &mut StepCtx<'_>) -> NextStep {
        let root = site.server(self.request.server).root;
        if site.location(root).program.is_empty() {
            return self.locate(site, ctx);
        }
        self.request.location = root;
        if self.resolve_root(site, ctx) {
            return NextStep::Probe(RequestStep::Server);
        }
        self.begin_rewrite(root)
    }

    fn locate(&mut self, site: &Site, ctx: &mut StepCtx<'_>) -> NextStep {
        let server = site.server(self.request.server);
        let Request { uri, captures, .. } = &mut self.request;
        let captures = captures.get_mut();
        let found = server.level.find(uri, captures);
        let failure = captures.take_failure();
        self.request.location = match found {
            LocationMatch::Location(id) | LocationMatch::WithSlash(id) => id,
            LocationMatch::Nothing => server.root,
        };
        self.request.uri_changed = false;
        self.request.rewritten_here = false;
        self.trace_location(found, site);
        if let Some(failure) = failure {
            self.log_match_failure(&failure, site, ctx);
            return NextStep::Fail(500);
        }
        match found {
            LocationMatch::WithSlash(_) => match self.check_location(site, ctx) {
                Some(next) => next,
                None => self.directory_redirect(site, ctx),
            },
            LocationMatch::Location(_) | LocationMatch::Nothing => self.enter(site, ctx),
        }
    }

    /// Starts at a location.
    fn enter(&mut self, site: &Site, ctx: &mut StepCtx<'_>) -> NextStep {
        if self.resolve_root(site, ctx) {
            return NextStep::Probe(RequestStep::Location);
        }
        if let Some(next) = self.check_location(site, ctx) {
            return next;
        }
        // As in nginx, a server block in the part of a location has no rewrite phase left.
        if site.location(self.request.location).program.is_empty()
            || self.request.location == site.server(self.request.server).root
        {
            return self.admit(site, ctx);
        }
        self.begin_rewrite(self.request.location)
    }

    /// What is checked as soon as the location is known.
    fn check_location(&mut self, site: &Site, ctx: &mut StepCtx<'_>) -> Option<NextStep> {
        let mut location = site.location(self.request.location);
        if location.internal && !self.request.internal {
            return Some(NextStep::Fail(404));
        }
        if let Some(except) = &location.except
            && let Some(other) = self.except(except)
        {
            self.request.location = other;
            location = site.location(other);
        }
        if !self.request.in_error_page
            && !self.is_bodiless()
            && let RequestBody::Length(len) = self.request.head().body
            && is_too_large(location, len)
        {
            self.log_error(site, ctx, |out| {
                out.extend_from_slice(b"client intended to send too large body: ");
                bolide_http::digits::push_decimal(out, len);
                out.extend_from_slice(b" bytes");
            });
            self.request.upload.refuse(ctx.effects);
            return Some(NextStep::Fail(413));
        }
        (location.roams && self.leaves_alias(location, site, ctx)).then_some(NextStep::Fail(404))
    }

    /// What comes after the checks of access.
    pub(crate) const fn admitted(location: &CompiledLocation) -> NextStep {
        match location.try_files {
            Some(_) => NextStep::Step(RequestStep::TryFiles(0)),
            None => NextStep::Step(RequestStep::Content),
        }
    }

    /// A redirect that content asked for; nginx lets `error_page` catch these statuses, too.
    fn redirect(&mut self, status: u16, site: &Site, ctx: &mut StepCtx<'_>) -> NextStep {
        self.fail(status, site, ctx)
    }

    fn respond(&mut self, site: &Site, ctx: &mut StepCtx<'_>) -> ExchangeState {
        if self.is_post_action() {
            return self.end_post_action(site, ctx);
        }
        debug_assert!(!self.answer.is_responded, "an answer is given once");
        if site.location(self.request.location).reworks {
            self.rework(site, ctx);
        }
        if self.answer.head.status == 405 {
            self.say_allowed(site);
        }
        self.announce_end(site);
        let settings = &site.location(self.request.location).settings;
        let age = self.request.started.mono.since(ctx.conn.started.mono);
        self.answer.head.close |= settings.keepalive_timeout.is_zero()
            || self.request.number_on_conn >= settings.keepalive_requests
            || age >= settings.keepalive_time;
        if let Some(timeout) = settings.keepalive_header
            && !timeout.is_zero()
            && !self.answer.head.close
            && stays(self.request.head())
        {
            self.answer.head.fields.push_writing(Name::KeepAlive, |out| {
                out.extend_from_slice(b"timeout=");
                bolide_http::digits::push_decimal(out, timeout.as_secs());
            });
        }
        if let Some(seconds) = self.answer.retry_after.take()
            && self.answer.head.status == 503
        {
            self.answer.head.fields.push_writing(Name::RetryAfter, |out| {
                bolide_http::digits::push_decimal(out, u64::from(seconds));
            });
        }
        if self.request.head().method == Method::Head {
            self.answer.body = AnswerBody::Empty;
        }
        if self.is_fetching() && !self.answer.is_from_origin() {
            self.drop_fetch(ctx);
        }
        self.discard_rest(ctx);
        self.take_cookies();
        self.page.let_go();
        self.answer.is_responded = true;
        ctx.effects.push(StepEffect::Respond);
        if self.wants_fragments() {
            ctx.effects.push(StepEffect::Fragments);
        }
        ExchangeState::Delivering
    }

    /// Fills the head with what `draft` and the location say.
    #[inline]
    pub(crate) fn fill(
        &mut self,
        status: u16,
        draft: &HeadDraft<'_>,
        site: &Site,
        ctx: &StepCtx<'_>,
    ) {
        let location = site.location(self.request.location);
        let mut fields = std::mem::take(&mut self.answer.head.fields);
        fields.clear();
        let place = FieldPlace { location, date: ctx.clock.http(), carried: &self.answer.carried };
        headers::push_draft(&mut fields, status, draft, place);
        if draft.location.is_none() && !self.location.is_empty() {
            // An error page stands in for a redirect.
            fields.push(Name::Location, &self.location);
        }
        if !self.challenge.is_empty() {
            fields.push(Name::WwwAuthenticate, &self.challenge);
        }
        self.answer.head.status = status;
        if location.is_decorated || ctx.conn.scheme == Scheme::Https {
            let mut scratch = std::mem::take(&mut self.scratch);
            let scope = VariableScope::new(&self.request, &self.answer, site, ctx);
            let modified = draft.modified_at;
            // As in nginx, what turns out to be a 416 is furnished like the 206 it might have been.
            let meant = if self.unsatisfied.is_some() { 206 } else { status };
            headers::push_configured(&mut fields, &scope, meant, modified, &mut scratch);
            self.scratch = scratch;
        }
        self.answer.head.fields = fields;
    }

    /// As [`Self::fill`], with the content type of `kind`.
    pub(crate) fn fill_typed(
        &mut self,
        kind: &MediaType,
        status: u16,
        draft: &HeadDraft<'_>,
        site: &Site,
        ctx: &StepCtx<'_>,
    ) {
        if !kind.charset_varies {
            return self.fill(
                status,
                &HeadDraft { content_type: &kind.value, ..*draft },
                site,
                ctx,
            );
        }
        let mut value = kind.value.to_vec();
        let charset = &site.location(self.request.location).settings.charset.charset;
        if let bolide_conf::model::CharsetOf::Name(name) = charset {
            let mark = value.len();
            value.extend_from_slice(b"; charset=");
            let empty = value.len();
            VariableScope::new(&self.request, &self.answer, site, ctx).expand(name, &mut value);
            if value.len() == empty {
                value.truncate(mark);
            }
        }
        self.fill(status, &HeadDraft { content_type: &value, ..*draft }, site, ctx);
    }

    /// Writes an `[error]` line.
    pub(crate) fn log_error(
        &self,
        site: &Site,
        ctx: &mut StepCtx<'_>,
        text: impl Fn(&mut Vec<u8>),
    ) {
        log_lines::error(&self.request, site, ctx, LogLevel::Error, text);
    }

    /// What was being read when a request was refused, as nginx's lines say it.
    fn reading(&self, refusal: RequestRefusal) -> &'static str {
        let line = ["invalid method", "URI", "version", "invalid request", "URL"];
        let head = self.request.head();
        let has_line = !head.line.is_empty() || head.version >= HttpVersion::Http2;
        if line.iter().any(|word| refusal.reason.contains(word)) || !has_line {
            " while reading client request line"
        } else if refusal.reason.contains("body") {
            ""
        } else {
            " while reading client request headers"
        }
    }

    /// What clients do wrong is logged at `info`, as in nginx.
    fn log_refusal(
        &self,
        refusal: RequestRefusal,
        reading: &str,
        site: &Site,
        ctx: &mut StepCtx<'_>,
    ) {
        let level = client::level_of(refusal.reason);
        let fields = if reading.ends_with(" line") {
            log_lines::LogFields::Unread
        } else {
            log_lines::LogFields::Read
        };
        log_lines::error_within(&self.request, (None, fields), site, ctx, level, |out| {
            out.extend_from_slice(refusal.reason.as_bytes());
            out.extend_from_slice(reading.as_bytes());
        });
    }
}

fn is_too_large(location: &CompiledLocation, len: u64) -> bool {
    let max = location.settings.client_max_body_size;
    max != 0 && len > max
}
