//! Errors: `error_page` in all its forms, and the pages that the server writes itself.

use bolide_conf::model::{ErrorPage, Overwrite};
use bolide_http::Method;

use crate::caching::InternalTurn;
use crate::caching::cache_status::tell_failed;
use crate::content::allow::note_refused_method;
use crate::content::listing::compress_text;
use crate::ctx::StepCtx;
use crate::exchange::{Exchange, NextStep, RequestStep};
use crate::filter::headers::HeadDraft;
use crate::pages::{closes, is_redirect, shown_status};
use crate::request::Request;
use crate::site::Site;
use crate::vars::VariableScope;

impl Request {
    /// Counts one redirect inside the server; the one that brings the count to zero fails.
    pub(crate) fn spend_redirect(&mut self) -> bool {
        self.redirects_left = self.redirects_left.saturating_sub(1);
        self.redirects_left > 0
    }
}

impl Exchange {
    /// Answers with `status`: by the location's `error_page`, if there is one for it, else by the
    /// server's own page.
    pub(crate) fn fail(&mut self, status: u16, site: &Site, ctx: &mut StepCtx<'_>) -> NextStep {
        debug_assert!(
            !self.answer.is_responded || self.request.role.post_action().is_some(),
            "an answer is given once"
        );
        if let Some(next) = self.fail_part(status, site, ctx) {
            return next;
        }
        self.trace_failure(status, site);
        if status == 405 {
            note_refused_method(&mut self.request, &mut self.answer, site);
        }
        self.answer.head.close |= closes(status);
        self.answer.forced_status = 0;
        self.request.is_straight = false;
        let settings = &site.location(self.request.location).settings;
        let may_recurse = !self.request.in_error_page && self.request.redirects_left > 0;
        if may_recurse && !settings.error_pages.is_empty() {
            self.request.in_error_page = !settings.recursive_error_pages;
            if let Some(page) = settings.error_pages.iter().find(|page| page.status == status) {
                return self.error_page(page, status, site, ctx);
            }
        }
        self.own_page(status, site, ctx)
    }

    fn error_page(
        &mut self,
        page: &ErrorPage,
        status: u16,
        site: &Site,
        ctx: &mut StepCtx<'_>,
    ) -> NextStep {
        self.request.arrival.turn(InternalTurn::ErrorPage(status));
        // What comes instead would be kept as what was asked for.
        self.request.stands_in |= self.cache.asked().0.is_some();
        self.answer.forced_status = match page.overwrite {
            Overwrite::Keep => shown_status(status),
            Overwrite::Target => 0,
            Overwrite::Status(status) => status,
        };
        let mut target = std::mem::take(&mut self.scratch);
        target.clear();
        VariableScope::new(&self.request, &self.answer, site, ctx)
            .expand(&page.target, &mut target);
        let next = match target.first() {
            Some(b'/') => {
                if self.request.method != Method::Head {
                    self.request.method = Method::Get;
                }
                self.redirect_inside(&target, site, ctx)
            }
            Some(b'@') => self.enter_named(&target, site, ctx),
            _ => {
                self.location.clear();
                self.location.extend_from_slice(&target);
                let forced = self.answer.forced_status;
                NextStep::Page(if is_redirect(forced) { forced } else { 302 })
            }
        };
        self.scratch = target;
        next
    }

    /// Answers with the server's own page for `status`.
    pub(crate) fn own_page(&mut self, status: u16, site: &Site, ctx: &mut StepCtx<'_>) -> NextStep {
        self.answer.carried.remove(bolide_http::Name::ContentType);
        self.answer.carried.remove(bolide_http::Name::AcceptRanges);
        let location = site.location(self.request.location);
        let mut page = site.pages(location.signature).of(status);
        let shown = shown_status(status);
        let target = std::mem::take(&mut self.location);
        let has_target = is_redirect(shown) || !target.is_empty();
        let mut draft =
            HeadDraft { location: has_target.then_some(&target[..]), ..HeadDraft::default() };
        let html = location.kinds.html();
        // As in nginx, `add_header` sees the length of the page before it is compressed.
        self.answer.head.status = shown;
        self.give_text(page.clone());
        if page.is_empty() {
            self.fill(shown, &draft, site, ctx);
        } else if is_redirect(shown) {
            // As in nginx, `charset` does not apply to these pages.
            self.fill(shown, &HeadDraft { content_type: &html.media, ..draft }, site, ctx);
        } else {
            page = compress_text(
                &mut self.request,
                &mut self.answer,
                html,
                shown,
                page,
                &mut draft,
                location,
            );
            self.fill_typed(html, shown, &draft, site, ctx);
        }
        self.location = target;
        tell_failed(&mut self.request, &mut self.answer, &mut self.cache, location);
        self.push_unsatisfied();
        // As in nginx, the status of an error stays with what `post_action` does behind it.
        self.answer.forced_status = shown;
        self.give_text(page);
        NextStep::Respond
    }

    /// Starts over inside the server with `target`, a path with an optional query.
    pub(crate) fn redirect_inside(
        &mut self,
        target: &[u8],
        site: &Site,
        ctx: &mut StepCtx<'_>,
    ) -> NextStep {
        if !self.request.spend_redirect() {
            self.request.log_error(site, ctx, |out| {
                out.extend_from_slice(
                    b"rewrite or internal redirection cycle while internally redirecting to \"",
                );
                out.extend_from_slice(target);
                out.push(b'"');
            });
            return NextStep::Fail(500);
        }
        self.trace_jump(target);
        self.request.redirect_to(target);
        NextStep::Step(RequestStep::Server)
    }

    /// Goes to the named location `name` (with its `@`) with the path as it is.
    pub(crate) fn enter_named(
        &mut self,
        name: &[u8],
        site: &Site,
        ctx: &mut StepCtx<'_>,
    ) -> NextStep {
        if !self.request.spend_redirect() {
            self.request.log_error(site, ctx, |out| {
                out.extend_from_slice(
                    b"rewrite or internal redirection cycle while redirect to named location \"",
                );
                out.extend_from_slice(name);
                out.push(b'"');
            });
            return NextStep::Fail(500);
        }
        let server = site.server(self.request.server);
        let found = server.named.iter().find(|(known, _)| **known == *name);
        let Some((_, location)) = found else {
            self.request.log_error(site, ctx, |out| {
                out.extend_from_slice(b"could not find named location \"");
                out.extend_from_slice(name);
                out.push(b'"');
            });
            return NextStep::Fail(500);
        };
        self.request.location = *location;
        self.trace_named(site);
        self.request.uri_changed = false;
        self.request.internal = true;
        self.request.appends_uri = false;
        NextStep::Step(RequestStep::Location)
    }
}
