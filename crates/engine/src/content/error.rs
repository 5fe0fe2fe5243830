//! `error_page` in all its forms, and the built-in error pages.

use bolide_conf::model::{ErrorPage, Overwrite};
use bolide_htaccess::ErrorAnswer;
use bolide_http::{HttpVersion, Method};

use crate::answer::Answer;
use crate::caching::CacheTransaction;
use crate::caching::InternalRedirect;
use crate::caching::cache_status::push_for_error;
use crate::content::allow::record_refused_method;
use crate::content::listing::compress_text;
use crate::ctx::StepCtx;
use crate::exchange::{NextStep, RequestStep};
use crate::explain::trace::{trace_failure, trace_jump, trace_named};
use crate::filter::headers::HeadDraft;
use crate::htaccess::effects::{error_answer, first_error};
use crate::pages::{closes, is_redirect, shown_status};
use crate::request::Request;
use crate::site::Site;
use crate::subrequest::Slicing;
use crate::vars::VariableScope;

impl Request {
    /// Gives a method to a request that came without one and is answered by another location.
    fn name_method(&mut self) {
        if let Some(head) = self.head_mut().filter(|head| head.method_text.is_empty()) {
            head.method_text.extend_from_slice(b"GET");
        }
    }

    /// Counts one internal redirect; false when none is left.
    pub(crate) fn spend_redirect(&mut self) -> bool {
        self.slicing.set(Slicing::No);
        self.redirects_left = self.redirects_left.saturating_sub(1);
        self.redirects_left > 0
    }
}

impl Answer {
    /// Responds with `status`: by the location's `error_page` if one names it, else by the built-in
    /// page.
    pub(crate) fn fail(
        &mut self,
        request: &mut Request,
        cache: &CacheTransaction,
        status: u16,
        site: &Site,
        ctx: &mut StepCtx<'_>,
    ) -> NextStep {
        debug_assert!(
            !self.is_responded || request.role.post_action().is_some(),
            "an answer is given once"
        );
        if let Some(next) = self.fail_part(request, status, site, ctx) {
            return next;
        }
        trace_failure(request, status, site);
        request.take_expectation();
        let first = if request.in_error_page { first_error(request) } else { None };
        if first.is_some() {
            self.location.clear();
            (self.location_origin, self.is_to_nowhere) = (0, false);
            self.is_without_location = true;
        }
        let status = first.unwrap_or(status);
        if status == 405 {
            record_refused_method(request, self, site);
        }
        self.head.close |= closes(status);
        self.forced_status = 0;
        // As in nginx, the type is that of the page, not of the response with `X-Accel-Redirect`.
        self.carried.remove(bolide_http::Name::ContentType);
        request.is_straight = false;
        let settings = &site.location(request.location).settings;
        let is_first = !request.in_error_page;
        let may_recurse = is_first && request.redirects_left > 0;
        if may_recurse && !settings.error_pages.is_empty() {
            request.in_error_page = !settings.recursive_error_pages;
            if let Some(page) = settings.error_pages.iter().find(|page| page.status == status) {
                return self.error_page(request, cache, page, status, site, ctx);
            }
        }
        let location = site.location(request.location);
        if location.htaccess.is_some()
            && is_first
            && let Some(document) = error_answer(request, location, status, may_recurse)
        {
            return error_document((request, self), cache, document, status, site, ctx);
        }
        self.own_page(request, cache, status, site, ctx)
    }

    fn error_page(
        &mut self,
        request: &mut Request,
        cache: &CacheTransaction,
        page: &ErrorPage,
        status: u16,
        site: &Site,
        ctx: &mut StepCtx<'_>,
    ) -> NextStep {
        debug_assert_eq!(page.status, status, "a page is for its status");
        request.arrival.turn(InternalRedirect::ErrorPage(status));
        // The replacement would be stored under the key of the request.
        if cache.asked().0.is_some() {
            request.replaces_failed = true;
            request.arrival.leave();
        }
        self.forced_status = match page.overwrite {
            Overwrite::Keep => shown_status(status),
            Overwrite::Target => 0,
            Overwrite::Status(status) => status,
        };
        if self.forced_status != 0 {
            // `return` has set the status.
            self.head.status = 0;
        }
        let mut target = std::mem::take(&mut self.scratch);
        target.clear();
        VariableScope::new(request, self, site, ctx).expand(&page.target, &mut target);
        let next = match target.first() {
            Some(b'/') => {
                if request.method != Method::Head {
                    request.method = Method::Get;
                    request.name_method();
                }
                request.redirect_inside(&target, site, ctx)
            }
            Some(b'@') => request.enter_named(&target, site, ctx),
            _ => {
                self.location.clear();
                (self.location_origin, self.is_without_location) = (0, false);
                self.location.extend_from_slice(&target);
                self.is_to_nowhere = false;
                NextStep::Page(match page.overwrite {
                    Overwrite::Status(status) if is_redirect(status) => status,
                    _ => 302,
                })
            }
        };
        self.scratch = target;
        next
    }

    /// Responds with the built-in page for `status`.
    pub(crate) fn own_page(
        &mut self,
        request: &Request,
        cache: &CacheTransaction,
        status: u16,
        site: &Site,
        ctx: &StepCtx<'_>,
    ) -> NextStep {
        self.is_own_page = true;
        self.carried.remove(bolide_http::Name::AcceptRanges);
        let location = site.location(request.location);
        let mut page = site.pages(location.signature).of(status);
        let shown = shown_status(status);
        let is_blank = self.location.is_empty() && is_redirect(shown) && !self.is_without_location;
        let mut draft =
            HeadDraft { location: is_blank.then_some(&b""[..]), ..HeadDraft::default() };
        draft.varies = self.unsatisfied.is_some_and(|range| range.varies);
        let html = location.kinds.html();
        // As in nginx, `add_header` sees the length before compression.
        self.head.status = shown;
        self.give_text(request, page.clone());
        if page.is_empty() {
            self.fill(request, shown, &draft, site, ctx);
        } else if matches!(shown, 301 | 302) && !html.recoded {
            // As in nginx, `charset` does not apply to these pages.
            self.fill(request, shown, &HeadDraft { content_type: &html.media, ..draft }, site, ctx);
        } else {
            page = compress_text(request, self, html, shown, page, &mut draft, location);
            self.fill_typed(request, html, shown, &mut draft, site, ctx);
        }
        push_for_error(request, self, cache, location);
        self.push_unsatisfied();
        // As in nginx, an error status stays forced in `post_action`.
        self.forced_status = shown;
        self.give_text(request, page);
        NextStep::Respond
    }
}

/// Responds as `ErrorDocument` of a `.htaccess` file says.
#[cold]
fn error_document(
    (request, answer): (&mut Request, &mut Answer),
    cache: &CacheTransaction,
    document: ErrorAnswer,
    status: u16,
    site: &Site,
    ctx: &mut StepCtx<'_>,
) -> NextStep {
    request.in_error_page = true;
    match document {
        ErrorAnswer::Inside(path) => {
            request.arrival.turn(InternalRedirect::ErrorPage(status));
            if cache.asked().0.is_some() {
                request.replaces_failed = true;
                request.arrival.leave();
            }
            answer.forced_status = shown_status(status);
            if request.method != Method::Head {
                request.method = Method::Get;
                request.name_method();
            }
            request.redirect_inside(&path, site, ctx)
        }
        ErrorAnswer::Elsewhere(address) => {
            answer.location.clear();
            (answer.location_origin, answer.is_without_location) = (0, false);
            answer.location.extend_from_slice(&address);
            NextStep::Page(302)
        }
        ErrorAnswer::Text(text) => {
            let shown = shown_status(status);
            answer.is_own_page = true;
            answer.head.status = shown;
            let text = bytes::Bytes::from(text);
            answer.give_text(request, text.clone());
            let content_type = b"text/html; charset=iso-8859-1";
            let draft = HeadDraft { content_type, ..HeadDraft::default() };
            answer.fill(request, shown, &draft, site, ctx);
            answer.forced_status = shown;
            answer.give_text(request, text);
            NextStep::Respond
        }
        ErrorAnswer::Default => NextStep::Page(status),
    }
}

impl Request {
    /// Internal redirect to `target`, a path with an optional query.
    pub(crate) fn redirect_inside(
        &mut self,
        target: &[u8],
        site: &Site,
        ctx: &mut StepCtx<'_>,
    ) -> NextStep {
        if !self.spend_redirect() {
            self.log_error(site, ctx, |out| {
                out.extend_from_slice(
                    b"rewrite or internal redirection cycle while internally redirecting to \"",
                );
                let end = memchr::memchr(b'?', target).unwrap_or(target.len());
                out.extend_from_slice(&target[..end]);
                out.push(b'"');
            });
            return NextStep::Fail(500);
        }
        trace_jump(self, target);
        self.redirect_to(target);
        NextStep::Step(RequestStep::Server)
    }

    /// Internal redirect to the named location `name` (with its `@`); the path stays.
    pub(crate) fn enter_named(
        &mut self,
        name: &[u8],
        site: &Site,
        ctx: &mut StepCtx<'_>,
    ) -> NextStep {
        if !self.spend_redirect() {
            self.log_error(site, ctx, |out| {
                out.extend_from_slice(
                    b"rewrite or internal redirection cycle while redirect to named location \"",
                );
                out.extend_from_slice(name);
                out.push(b'"');
            });
            return NextStep::Fail(500);
        }
        if self.uri.is_empty() {
            self.log_error(site, ctx, |out| {
                out.extend_from_slice(b"empty URI in redirect to named location \"");
                out.extend_from_slice(name);
                // Only a request without a target has no request line.
                out.extend_from_slice(match self.head().version {
                    HttpVersion::Http2 => b"\"",
                    HttpVersion::Http3 => b"\" while reading client request",
                    _ => b"\" while reading client request line",
                });
            });
            return NextStep::Fail(500);
        }
        let server = site.server(self.server);
        let found = server.named.iter().find(|(known, _)| **known == *name);
        let Some((_, location)) = found else {
            self.log_error(site, ctx, |out| {
                out.extend_from_slice(b"could not find named location \"");
                out.extend_from_slice(name);
                out.push(b'"');
            });
            return NextStep::Fail(500);
        };
        self.location = *location;
        trace_named(self, site);
        self.uri_changed = false;
        self.internal = true;
        self.appends_uri = false;
        NextStep::Step(RequestStep::Location)
    }
}
