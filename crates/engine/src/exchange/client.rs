//! Events of the client after its request: body bytes, invalid bodies, disconnects.
//!
//! Easiest to break: unused body bytes are credited to the client's window all the same, or the
//! client stalls.

use bolide_conf::model::{CloseSettings, LogLevel};
use bolide_http::{HttpVersion, RequestBody};
use bytes::Bytes;

use super::body_size::is_too_large;
use super::searched::withdraw;
use super::steps::begin_request;
use super::{Exchange, ExchangeState, NextStep, RequestStep, admit};
use crate::answer::Answer;
use crate::content::origin_news::cut_answer;
use crate::content::origin_news::detach_fetch;
use crate::content::sticky;
use crate::ctx::{RequestRefusal, StepCtx, StepEffect};
use crate::log_lines;
use crate::request::Request;
use crate::site::Site;

/// Sends `100 Continue` before a body is discarded; HTTP/1 only: over HTTP/2 and HTTP/3 the client
/// needs nothing but the response.
#[inline]
pub(crate) fn send_continue_unread(request: &mut Request, ctx: &mut StepCtx<'_>) {
    let head = request.head();
    if head.expects_continue && head.version < HttpVersion::Http2 {
        request.send_continue(ctx);
    }
}

impl Request {
    /// Sends `100 Continue` if the client waits for it. As in nginx, a handler that reads or
    /// discards the body does so, even if there is none; an error never does.
    pub(crate) fn send_continue(&mut self, ctx: &mut StepCtx<'_>) {
        if self.take_expectation() {
            ctx.effects.push(StepEffect::Continue);
        }
    }

    /// Discards the body before a response that another one may replace. As in nginx, over HTTP/3
    /// the other one may still read it.
    #[cold]
    pub(crate) fn drop_body(&mut self, ctx: &mut StepCtx<'_>) {
        let is_kept = self.head().version == HttpVersion::Http3;
        if self.head().body != RequestBody::None && !self.upload.is_wanted() && !is_kept {
            self.upload.refuse(ctx.effects);
            // As in nginx, unread bytes do not count.
            self.body_received = 0;
        }
    }

    /// Discards the rest of the request body, unless an upstream still reads it.
    #[inline]
    pub(super) fn discard_rest(&mut self, answer: &Answer, ctx: &mut StepCtx<'_>) {
        if self.head().body == RequestBody::None || self.upload.is_refused() {
            return;
        }
        self.upload.give_back(ctx.effects);
        if !self.upload.is_wanted() {
            // As in nginx, unread bytes do not count.
            self.body_received = 0;
        }
        let goes_on = self.upload.is_streamed() && answer.is_fetching();
        if !self.upload.is_complete() && !goes_on {
            ctx.effects.push(StepEffect::DiscardBody);
        }
    }
}

impl Exchange {
    /// Takes bytes of the request body: stores them until their use is decided, streams them to the
    /// upstream, or discards them. They count in `$request_length` until there is a response.
    pub(super) fn take_body(
        &mut self,
        state: ExchangeState,
        bytes: Bytes,
        ctx: &mut StepCtx<'_>,
    ) -> ExchangeState {
        debug_assert!(!self.request.upload.is_complete(), "nothing comes behind the end of a body");
        if self.request.upload.is_refused() {
            return state;
        }
        if self.answer.is_responded && !self.request.upload.is_wanted() {
            ctx.effects.push(StepEffect::BodyConsumed(bytes.len()));
            return state;
        }
        self.request.body_received += bytes.len() as u64;
        if self.request.upload.is_streamed() && self.answer.is_fetching() {
            return self.forward_piece(state, bytes, ctx);
        }
        if self.answer.is_responded {
            ctx.effects.push(StepEffect::BodyConsumed(bytes.len()));
            return state;
        }
        let Some(site) = self.request.site.clone() else { return state };
        let len = bytes.len();
        self.request.upload.keep(bytes);
        // As in nginx, the limit is checked when the body is read.
        if self.request.upload.is_wanted()
            && self.request.is_body_too_large(&self.answer, len, &site, ctx)
        {
            return self.run(NextStep::Page(413), ctx);
        }
        state
    }

    /// Streams a piece to the upstream.
    pub(super) fn forward_piece(
        &mut self,
        state: ExchangeState,
        bytes: Bytes,
        ctx: &mut StepCtx<'_>,
    ) -> ExchangeState {
        let Some(site) = self.request.site.clone() else { return state };
        if !self.request.is_body_too_large(&self.answer, bytes.len(), &site, ctx) {
            ctx.effects.push(StepEffect::FetchBody(bytes));
            return state;
        }
        self.request.upload.refuse(ctx.effects);
        if self.answer.is_responded {
            return cut_off(self, state, &site, ctx);
        }
        withdraw(&mut self.answer, ctx);
        self.run(NextStep::Fail(413), ctx)
    }

    pub(super) fn end_body(
        &mut self,
        state: ExchangeState,
        ctx: &mut StepCtx<'_>,
    ) -> ExchangeState {
        debug_assert!(!self.request.upload.is_complete(), "a body ends once");
        self.request.upload.finish();
        if self.request.upload.is_streamed() && self.answer.is_fetching() {
            ctx.effects.push(StepEffect::FetchBodyEnd);
        }
        state
    }
}

impl Request {
    /// Whether the request body exceeds its limit; `len` bytes have just arrived. Logs it.
    pub(crate) fn is_body_too_large(
        &self,
        answer: &Answer,
        len: usize,
        site: &Site,
        ctx: &mut StepCtx<'_>,
    ) -> bool {
        let received = self.body_received;
        // The bytes of a tunnel are no request body.
        if answer.is_tunnel() || !is_too_large(self, site.location(self.location), received) {
            return false;
        }
        log_too_large(self, received, len as u64, site, ctx);
        true
    }
}

impl Exchange {
    /// How to close the connection, if that depends on the location.
    #[inline]
    #[must_use]
    pub fn manners(&self) -> Option<CloseSettings> {
        let site = self.request.site.as_deref()?;
        site.manners_vary().then(|| site.location(self.request.location).settings.manners())
    }

    /// Sends an error for a head that framing refused.
    pub(super) fn refuse(
        &mut self,
        refusal: RequestRefusal,
        ctx: &mut StepCtx<'_>,
    ) -> ExchangeState {
        let Some(site) = self.request.site.clone() else { return ExchangeState::Done };
        begin_request(&mut self.request, ctx);
        let has_line = !log_lines::reading(&self.request, refusal).ends_with(" line");
        let refusal = admit::refused(&mut self.request, refusal, has_line, &site, ctx.conn);
        let reading = log_lines::reading(&self.request, refusal);
        log_lines::log_refusal(&self.request, refusal, reading, &site, ctx);
        // As in nginx, a client that does not complete its head gets no response.
        let unanswered = match refusal.status {
            408 => Some(408),
            499 => Some(400),
            _ => None,
        };
        if let Some(status) = unanswered {
            self.answer.bare_status = status;
            ctx.effects.push(StepEffect::CloseSilently);
            return self.conclude(&site, ctx);
        }
        self.answer.head.close = true;
        self.run(NextStep::Step(RequestStep::Refusal(refusal.status)), ctx)
    }

    pub(super) fn refuse_body(
        &mut self,
        state: ExchangeState,
        refusal: RequestRefusal,
        ctx: &mut StepCtx<'_>,
    ) -> ExchangeState {
        debug_assert!(
            self.request.head().body != RequestBody::None,
            "only a body that was declared is refused"
        );
        let Some(site) = self.request.site.clone() else { return state };
        let is_late = refusal.status == 408;
        if !is_late && self.request.head().version >= HttpVersion::Http2 {
            return refuse_length(self, state, refusal, &site, ctx);
        }
        // As in nginx, a late body is logged over HTTP/2 only.
        if !is_late || self.request.head().version == HttpVersion::Http2 {
            log_lines::log_refusal(&self.request, refusal, "", &site, ctx);
        }
        withdraw(&mut self.answer, ctx);
        if is_late {
            // As in nginx, a client that does not complete its body gets no response.
            self.answer.bare_status = 408;
            return self.finish(&site, ctx);
        }
        self.answer.head.close = true;
        self.run(NextStep::Page(refusal.status), ctx)
    }

    /// The client disconnected; `is_reset` if by a reset.
    pub(super) fn abandon(
        &mut self,
        state: ExchangeState,
        is_reset: bool,
        ctx: &mut StepCtx<'_>,
    ) -> ExchangeState {
        debug_assert!(
            !matches!(state, ExchangeState::Idle | ExchangeState::Done),
            "what is over has no client"
        );
        let Some(site) = self.request.site.clone() else { return ExchangeState::Done };
        if state == ExchangeState::Settling {
            // The client has the whole response; the application may finish in the background.
            sticky::learn_of_rest(&self.request, &self.answer, &site, ctx);
            detach_fetch(&mut self.answer, ctx);
            return self.finish(&site, ctx);
        }
        if state == ExchangeState::Received {
            // The location, and so its logs, are not known yet.
            return self.conclude(&site, ctx);
        }
        log_disconnect(&self.request, &mut self.answer, (state, is_reset), &site, ctx);
        self.leave(&site, ctx)
    }

    pub(super) fn send_away(
        &mut self,
        state: ExchangeState,
        ctx: &mut StepCtx<'_>,
    ) -> ExchangeState {
        if state == ExchangeState::Settling {
            return self.abandon(state, false, ctx);
        }
        let Some(site) = self.request.site.clone() else { return ExchangeState::Done };
        if !self.answer.is_responded {
            self.answer.bare_status = 408;
        }
        self.leave(&site, ctx)
    }

    fn leave(&mut self, site: &Site, ctx: &mut StepCtx<'_>) -> ExchangeState {
        sticky::learn_of_rest(&self.request, &self.answer, site, ctx);
        // `fastcgi_ignore_client_abort`: let the fetch end by itself.
        if !ignores_client_abort(&self.request, site) {
            self.answer.drop_fetch(ctx);
        }
        self.finish(site, ctx)
    }
}

/// Ends a response whose file became shorter than its stated length.
pub(super) fn handle_truncated_file(
    exchange: &mut Exchange,
    what: &str,
    ctx: &mut StepCtx<'_>,
) -> ExchangeState {
    let Some(site) = exchange.request.site.clone() else { return ExchangeState::Done };
    log_lines::error(&exchange.request, &site, ctx, LogLevel::Alert, |out| {
        out.extend_from_slice(what.as_bytes());
        out.extend_from_slice(b" while sending response to client");
    });
    exchange.leave(&site, ctx)
}

/// Whether the upstream request continues when the client disconnects.
fn ignores_client_abort(request: &Request, site: &Site) -> bool {
    let files = request.htaccess.as_ref();
    site.location(request.location).settings.origin.ignore_client_abort
        || files.is_some_and(|files| files.ignores_client_abort())
}

/// Logs a disconnect as nginx does, and sets the logged status.
fn log_disconnect(
    request: &Request,
    answer: &mut Answer,
    (state, is_reset): (ExchangeState, bool),
    site: &Site,
    ctx: &mut StepCtx<'_>,
) {
    let sends = request.head().body != RequestBody::None
        && !request.upload.is_complete()
        && (matches!(state, ExchangeState::Collecting(_)) || request.upload.is_streamed());
    let asks = answer.is_fetching();
    if !answer.is_responded {
        // As in nginx, over HTTP/2 a body that is read as a whole is no request cut short.
        let is_stream = request.head().version == HttpVersion::Http2;
        let is_whole_wanted = is_stream && !request.upload.is_streamed();
        answer.bare_status = if sends && !is_whole_wanted { 400 } else { 499 };
    }
    let closed = "client prematurely closed connection";
    let (what, doing) = match (sends && !answer.is_responded, asks) {
        (true, _) => {
            let what = if is_reset { "recv() failed" } else { closed };
            (what, if asks { " while sending request to upstream" } else { "" })
        }
        (false, true) if answer.is_responded => (
            "client prematurely closed connection, so upstream connection is closed too",
            " while reading upstream",
        ),
        (false, true) => (
            "epoll_wait() reported that client prematurely closed connection, so upstream \
             connection is closed too",
            " while sending request to upstream",
        ),
        // An upstream's failure was logged when it happened.
        (false, false) if answer.is_cut_short && !answer.is_from_origin() => {
            return log_cut_short(request, answer, site, ctx);
        }
        (false, false) if state == ExchangeState::Delaying => (closed, ""),
        (false, false) if state == ExchangeState::Delivering && !answer.is_from_origin() => {
            (closed, " while sending response to client")
        }
        (false, false) => return,
    };
    let why = if is_reset { " (104: Connection reset by peer)" } else { "" };
    if !ignores_client_abort(request, site) || sends {
        let peer = answer.peer().filter(|_| asks);
        let origin = peer.as_ref().map(|(scheme, peer)| (*scheme, &**peer));
        log_lines::error_about(request, origin, site, ctx, LogLevel::Info, |out| {
            [what, why, doing].iter().for_each(|part| out.extend_from_slice(part.as_bytes()));
        });
    }
}

/// Logs a response that this server has cut off: its client did not leave.
#[cold]
fn log_cut_short(request: &Request, answer: &Answer, site: &Site, ctx: &mut StepCtx<'_>) {
    log_lines::error(request, site, ctx, LogLevel::Error, |out| {
        out.extend_from_slice(b"response is incomplete: ");
        out.extend_from_slice(answer.body.failure().as_bytes());
        out.extend_from_slice(b" while sending response to client");
    });
}

/// The rest of the request cannot be sent to the upstream, whose response has begun.
fn cut_off(
    exchange: &mut Exchange,
    state: ExchangeState,
    site: &Site,
    ctx: &mut StepCtx<'_>,
) -> ExchangeState {
    cut_answer(&mut exchange.answer, ctx);
    if state == ExchangeState::Settling { exchange.finish(site, ctx) } else { state }
}

/// Refuses an HTTP/2 or HTTP/3 body that differs from its declared length: 400, if the body is read
/// at all.
fn refuse_length(
    exchange: &mut Exchange,
    state: ExchangeState,
    refusal: RequestRefusal,
    site: &Site,
    ctx: &mut StepCtx<'_>,
) -> ExchangeState {
    let Exchange { request, answer, .. } = exchange;
    if !request.upload.is_wanted() {
        request.upload.record_refusal(refusal);
        return state;
    }
    log_length(request, refusal, site, ctx);
    request.upload.refuse(ctx.effects);
    if answer.is_responded {
        return cut_off(exchange, state, site, ctx);
    }
    withdraw(answer, ctx);
    exchange.run(NextStep::Fail(refusal.status), ctx)
}

/// Logs that `received` bytes of the body exceed the limit; `len` of them have just arrived.
fn log_too_large(request: &Request, received: u64, len: u64, site: &Site, ctx: &mut StepCtx<'_>) {
    debug_assert!(len <= received, "what came just now has come");
    request.log_error(site, ctx, |out| {
        out.extend_from_slice(b"client intended to send too large chunked body: ");
        // As in nginx, which counts chunks: the bytes before, and the announced ones.
        if request.head().version < HttpVersion::Http2 {
            bolide_http::digits::push_decimal(out, received - len);
            out.push(b'+');
            bolide_http::digits::push_decimal(out, len);
        } else {
            bolide_http::digits::push_decimal(out, received);
        }
        out.extend_from_slice(b" bytes");
    });
}

/// The bytes of a body of unknown length before the piece that exceeds the limit, and the length of
/// that piece.
fn excess(request: &Request, site: &Site) -> Option<(u64, u64)> {
    if request.head().body != RequestBody::Unknown {
        return None;
    }
    let location = site.location(request.location);
    let mut received = 0;
    request.upload.early_lengths().find_map(|len| {
        received += len;
        is_too_large(request, location, received).then_some((received, len))
    })
}

/// Logs a wrong length of the body; nginx reports how many bytes arrived.
fn log_length(request: &Request, refusal: RequestRefusal, site: &Site, ctx: &mut StepCtx<'_>) {
    let mut reading = String::new();
    if let RequestBody::Length(declared) = request.head().body
        && request.body_received < declared
    {
        let received = request.body_received;
        reading = format!(": only {received} out of {declared} bytes of request body received");
    }
    log_lines::log_refusal(request, refusal, &reading, site, ctx);
}

impl Request {
    /// Fails a request whose body is needed and was refused before.
    pub(crate) fn refuse_early(&mut self, site: &Site, ctx: &mut StepCtx<'_>) -> Option<NextStep> {
        let status = match self.upload.take_refusal() {
            Some(refusal) => {
                log_length(self, refusal, site, ctx);
                refusal.status
            }
            None => {
                let (received, len) = excess(self, site)?;
                log_too_large(self, received, len, site, ctx);
                413
            }
        };
        self.upload.refuse(ctx.effects);
        Some(NextStep::Fail(status))
    }
}
