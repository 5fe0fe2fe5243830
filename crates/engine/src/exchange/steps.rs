//! The steps of a request in nginx's order, from the choice of its server to its content.

use bolide_http::{HttpVersion, RequestBody};

use crate::answer::Answer;
use crate::caching::CacheTransaction;
use crate::content::confine::leaves_alias;
use crate::content::dav::DavRequest;
use crate::ctx::{RequestRefusal, StepCtx};
use crate::debug_lines;
use crate::exchange::mirror::mirror;
use crate::exchange::post_action::is_bodiless;
use crate::explain::trace::trace_location;
use crate::filter::edits::edit_request;
use crate::htaccess::decide::obey;
use crate::htaccess::unindexed::judge_missing_index;
use crate::log_lines;
use crate::phase::reception::receive;
use crate::phase::rewrite::{begin_rewrite, rewrite};
use crate::request::Request;
use crate::route::LocationMatch;
use crate::site::Site;
use crate::tracing;

use super::admit;
use super::body_size::{is_too_large, refuse_body};
use super::searched::withdraw;
use super::{Exchange, ExchangeState, NextStep, RequestStep};

/// LIMIT: file lookups of one request, and of one entry of its listing.
pub(super) const PROBES_MAX: u8 = 64;

impl Exchange {
    pub(super) fn begin(&mut self, ctx: &mut StepCtx<'_>) -> ExchangeState {
        let Some(site) = self.request.site.clone() else { return ExchangeState::Done };
        let next = match choose_server(&mut self.request, &site, ctx) {
            Ok(()) => match self.request.role.slice().map(|slice| slice.location) {
                Some(location) => {
                    self.request.location = location;
                    NextStep::Step(RequestStep::Slice)
                }
                None => receive(&mut self.request, &mut self.answer, &site, ctx),
            },
            Err(refusal) => {
                let reading = log_lines::reading(&self.request, refusal);
                log_lines::log_refusal(&self.request, refusal, reading, &site, ctx);
                // This is known before the head is complete; nginx then closes the connection.
                self.answer.head.close |= refusal.status == 421;
                NextStep::Step(RequestStep::Refusal(refusal.status))
            }
        };
        self.run(next, ctx)
    }

    /// Runs steps until one has to wait.
    pub(super) fn run(&mut self, mut next: NextStep, ctx: &mut StepCtx<'_>) -> ExchangeState {
        let Some(site) = self.request.site.clone() else { return ExchangeState::Done };
        loop {
            if !self.request.notes.get_mut().is_empty() {
                // As in nginx, the response head is built while an upstream's is read.
                let doing: &[u8] = match self.answer.is_from_origin() {
                    true => b" while reading response header from upstream",
                    false => b"",
                };
                self.request.log_notes(doing, &site, ctx);
                next = fail_undecided(&self.request, &mut self.answer, &mut self.cache, next, ctx);
            }
            next = match next {
                NextStep::Step(step) => self.perform(step, &site, ctx),
                NextStep::Fail(444) => NextStep::CloseWithoutResponse(444),
                // For redirects of content handlers as well: nginx lets `error_page` catch their
                // statuses.
                NextStep::Fail(status) | NextStep::Redirect(status) => {
                    self.answer.fail(&mut self.request, &self.cache, status, &site, ctx)
                }
                NextStep::Page(status) => {
                    self.answer.own_page(&self.request, &self.cache, status, &site, ctx)
                }
                NextStep::Probe(step) => match self.probes_left.checked_sub(1) {
                    Some(left) => {
                        self.probes_left = left;
                        return ExchangeState::Probing(step);
                    }
                    None => NextStep::Fail(500),
                },
                NextStep::Compress(step) => return ExchangeState::Compressing(step),
                NextStep::Make(step) => return ExchangeState::RunningJob(step),
                NextStep::CheckPassword(step) => return ExchangeState::Checking(step),
                NextStep::ChangeFiles => return ExchangeState::Changing,
                NextStep::Command => return ExchangeState::Commanding,
                NextStep::Delay => return ExchangeState::Delaying,
                NextStep::Collect(step) => return ExchangeState::Collecting(step),
                NextStep::Fetch => return ExchangeState::Fetching,
                NextStep::Coalesce => return ExchangeState::Coalescing,
                NextStep::Assemble => return ExchangeState::Assembling,
                NextStep::AwaitAuth => return ExchangeState::AwaitingAuth,
                NextStep::Respond => match self.respond(&site, ctx) {
                    Ok(state) => return state,
                    Err(next) => next,
                },
                NextStep::CloseWithoutResponse(status) => {
                    return self.close_without_response(status, &site, ctx);
                }
            };
        }
    }

    fn perform(&mut self, step: RequestStep, site: &Site, ctx: &mut StepCtx<'_>) -> NextStep {
        match step {
            RequestStep::Refusal(status) => {
                match self.search.resolve_root(&mut self.request, &self.answer, site, ctx) {
                    true => NextStep::Probe(step),
                    false => NextStep::Fail(status),
                }
            }
            RequestStep::Server => self.serve(site, ctx),
            RequestStep::Find => self.locate(site, ctx),
            RequestStep::Location => self.enter(site, ctx),
            RequestStep::Rewrite(cursor) => {
                rewrite(&mut self.request, &mut self.answer, &mut self.search, cursor, site, ctx)
            }
            RequestStep::Access => {
                // The rewrite phase may have changed the root.
                if self.search.resolve_root(&mut self.request, &self.answer, site, ctx) {
                    return NextStep::Probe(step);
                }
                self.access.admit(&mut self.request, &mut self.answer, &mut self.search, site, ctx)
            }
            RequestStep::Htaccess => {
                let Self { request, answer, search, access, .. } = self;
                obey(request, answer, search, access, site, ctx)
            }
            RequestStep::TryFiles(index) => {
                self.search.try_files(&mut self.request, &mut self.answer, index, site, ctx)
            }
            RequestStep::Mirror => mirror(&mut self.request, site, ctx),
            RequestStep::Slice => {
                match self.search.resolve_root(&mut self.request, &self.answer, site, ctx) {
                    true => NextStep::Probe(RequestStep::Slice),
                    false => self.content(site, ctx),
                }
            }
            RequestStep::Content => self.content(site, ctx),
            RequestStep::RandomIndex => {
                self.search.random_index(&mut self.request, &self.answer, site, ctx)
            }
            RequestStep::Index(index) => {
                self.search.index(&mut self.request, &mut self.answer, index, site, ctx)
            }
            RequestStep::NoIndex => {
                let Self { request, answer, search, access, .. } = self;
                judge_missing_index(request, answer, search, access, site, ctx)
            }
            RequestStep::IndexDirectory(index) => {
                self.search.index_directory(&self.request, &mut self.answer, index, site, ctx)
            }
            RequestStep::Listing => {
                let Self { request, answer, search, access, .. } = self;
                let before = search.judged.considered();
                let next = search.listing(request, answer, access, site, ctx);
                if search.judged.considered() > before {
                    // Each entry has lookups of its own.
                    self.probes_left = PROBES_MAX;
                }
                next
            }
            RequestStep::Flv => self.search.flv(&self.request, &mut self.answer, site, ctx),
            RequestStep::Mp4 => self.search.mp4(&self.request, &mut self.answer, site, ctx),
            RequestStep::File => self.search.file(&self.request, &mut self.answer, site, ctx),
            RequestStep::Dav => DavRequest::of(self).answer(site, ctx),
            RequestStep::Origin => self.origin(site, ctx),
            RequestStep::Ask => self.answer.ask(&mut self.request, &mut self.cache, site, ctx),
        }
    }

    /// Runs the rewrite phase of the server block, then finds the location.
    fn serve(&mut self, site: &Site, ctx: &mut StepCtx<'_>) -> NextStep {
        let root = site.server(self.request.server).root;
        self.request.rewritten_here = false;
        if site.location(root).program.is_empty() {
            return self.locate(site, ctx);
        }
        self.request.location = root;
        if self.search.resolve_root(&mut self.request, &self.answer, site, ctx) {
            return NextStep::Probe(RequestStep::Server);
        }
        begin_rewrite(&mut self.request, root)
    }

    fn locate(&mut self, site: &Site, ctx: &mut StepCtx<'_>) -> NextStep {
        let server = site.server(self.request.server);
        let Request { uri, captures, .. } = &mut self.request;
        let captures = captures.get_mut();
        let found = server.level.find(uri, captures);
        let failure = captures.take_failure();
        self.request.location = match found {
            LocationMatch::Location(id) | LocationMatch::LacksSlash(id) => id,
            LocationMatch::Nothing => server.root,
        };
        self.request.uri_changed = false;
        trace_location(&mut self.request, found, site);
        if debug_lines::are_taken(site.location(self.request.location), site, ctx) {
            debug_lines::found_location(&self.request, site, ctx);
        }
        if let Some(failure) = failure {
            self.request.log_match_failure(&failure, site, ctx);
            return NextStep::Fail(500);
        }
        match found {
            LocationMatch::LacksSlash(_) => {
                if self.search.resolve_root(&mut self.request, &self.answer, site, ctx) {
                    return NextStep::Probe(RequestStep::Find);
                }
                match self.request.check_location(&self.answer, site, ctx) {
                    Some(next) => next,
                    None => self.answer.directory_redirect(&self.request),
                }
            }
            LocationMatch::Location(_) | LocationMatch::Nothing => self.enter(site, ctx),
        }
    }

    /// Enters a location.
    fn enter(&mut self, site: &Site, ctx: &mut StepCtx<'_>) -> NextStep {
        if self.search.resolve_root(&mut self.request, &self.answer, site, ctx) {
            return NextStep::Probe(RequestStep::Location);
        }
        if let Some(next) = self.request.check_location(&self.answer, site, ctx) {
            return next;
        }
        if site.location(self.request.location).rewrites
            && let Some(next) = enter_rewrite(&mut self.request, &self.answer, site, ctx)
        {
            return next;
        }
        self.access.admit(&mut self.request, &mut self.answer, &mut self.search, site, ctx)
    }
}

/// Starts the rewrite phase of a location that has one; `None` otherwise.
fn enter_rewrite(
    request: &mut Request,
    answer: &Answer,
    site: &Site,
    ctx: &mut StepCtx<'_>,
) -> Option<NextStep> {
    let at = request.location;
    let location = site.location(at);
    if location.settings.otel.is_used() {
        tracing::decide(request, answer, site, ctx);
    }
    // As in nginx, the rewrite phase of the server block is not run again for its pseudo-location.
    if !location.program.is_empty() && at != site.server(request.server).root {
        return Some(begin_rewrite(request, at));
    }
    if !location.settings.input_edits.is_empty() {
        edit_request(request, answer, site, ctx);
    }
    None
}

impl Request {
    /// The checks that need only the location.
    fn check_location(
        &mut self,
        answer: &Answer,
        site: &Site,
        ctx: &mut StepCtx<'_>,
    ) -> Option<NextStep> {
        let mut location = site.location(self.location);
        if location.internal && !self.internal {
            return Some(NextStep::Fail(404));
        }
        if let Some(except) = &location.except
            && let Some(other) = self.except(except)
        {
            self.location = other;
            location = site.location(other);
        }
        if !self.in_error_page
            && !is_bodiless(self)
            && let RequestBody::Length(len) = self.head().body
            && is_too_large(self, location, len)
        {
            return Some(refuse_body(self, len, site, ctx));
        }
        leaves_alias(self, answer, site, ctx).then_some(NextStep::Fail(404))
    }
}

/// Fails a request whose `map` or field edits exceeded the limit of steps. nginx continues with the
/// `default`, which may admit a client that the match would have refused.
#[cold]
fn fail_undecided(
    request: &Request,
    answer: &mut Answer,
    cache: &mut CacheTransaction,
    next: NextStep,
    ctx: &mut StepCtx<'_>,
) -> NextStep {
    let is_over = answer.is_responded
        || matches!(
            next,
            NextStep::Fail(500..) | NextStep::Page(_) | NextStep::CloseWithoutResponse(_)
        );
    if !request.is_undecided.take() || is_over {
        return next;
    }
    withdraw(answer, ctx);
    cache.let_go();
    NextStep::Fail(500)
}

pub(super) fn begin_request(request: &mut Request, ctx: &mut StepCtx<'_>) {
    request.started = request.head_began.take().unwrap_or(ctx.now);
    request.number_on_conn = ctx.requests_on_conn;
    if !request.role.is_subrequest() {
        request.listen = ctx.conn.listen;
    }
    if !request.role.is_inside() {
        request.id = [ctx.prng.next_u64(), ctx.prng.next_u64()];
    }
}

/// Finds the server and decodes the path, in nginx's order, so that errors have the same
/// precedence.
#[inline]
fn choose_server(
    request: &mut Request,
    site: &Site,
    ctx: &mut StepCtx<'_>,
) -> Result<(), RequestRefusal> {
    begin_request(request, ctx);
    let bad = |reason| RequestRefusal { status: 400, reason };
    let host = request.settle_host();
    let first = admit::first_server(request, site, ctx.conn);
    request.server = first.unwrap_or_else(|| site.default_server(request.listen));
    request.location = site.server(request.server).root;
    if let Err(error) = host {
        return Err(bad(admit::refuse_host(request, error, first, site)));
    }
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
    let reader = admit::target_reader(request, first);
    if let Err(error) = admit::settle_target(request, reader, site) {
        admit::forget_unread(request, admit::unread_of_target(request));
        return Err(bad(error.reason()));
    }
    admit::admit(request, site, ctx.conn)
}
