//! The results of rewrite rules, redirects and fallbacks of `.htaccess` files: the next path.

use std::rc::Rc;

use bolide_conf::model::LogLevel;
use bolide_htaccess::{Applied, DirOptions, PassOutcome, RequestVariable, RewritePlace, Rewritten};
use bolide_http::escape::{UriPart, push_uri};

use super::decide::{AdmittedTarget, Decided, HtaccessRequest, stopped};
use super::questions::{AskedText, Question, Reply};
use super::ruling::{HtaccessRuling, next_round};
use super::target::{HtaccessTarget, InsideTarget};
use super::world::push_origin;
use crate::caching::InternalRedirect;
use crate::ctx::StepCtx;
use crate::exchange::NextStep;
use crate::log_lines;
use crate::pages::is_redirect;
use crate::request::Request;
use crate::site::{CompiledLocation, Site};

/// Which results of rules count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RuleScope {
    All,
    /// For an index that is searched for: a rewritten path does not count.
    Answers,
}

/// The permitted `Options`, with and without the sections that Apache ignores here: what only these
/// permit is not permitted.
#[derive(Clone, Copy, Debug)]
pub(super) struct DirOptionsGiven {
    all: DirOptions,
    heeded: Option<DirOptions>,
}

impl DirOptionsGiven {
    pub(super) fn new(
        applied: &Applied<'_>,
        ruling: &HtaccessRuling,
        location: &CompiledLocation,
    ) -> Self {
        let by_location = DirOptions::new(location.settings.autoindex.on);
        let heeded = applied.heeded(!ruling.is_later()).map(|it| it.options(by_location));
        Self { all: applied.options(by_location), heeded }
    }

    pub(super) fn all(self) -> impl Iterator<Item = DirOptions> {
        std::iter::once(self.all).chain(self.heeded)
    }
}

/// Begins another round with an internal path.
pub(super) fn enter_inside(
    request: &mut Request,
    target: &InsideTarget,
    site: &Site,
    ctx: &mut StepCtx<'_>,
) -> NextStep {
    debug_assert_eq!(target.path.first(), Some(&b'/'), "a round begins with a path");
    let next = request.redirect_inside(&target.path, site, ctx);
    if matches!(next, NextStep::Step(_)) {
        // A `?` of the path is part of a name here.
        request.uri.clone_from(&target.path);
        request.mark_dots();
        match &target.args {
            Some(args) => request.set_args(args),
            None => request.drop_args(),
        }
        request.arrival.turn(InternalRedirect::Htaccess);
    }
    next
}

impl HtaccessRequest<'_> {
    /// Applies rewrite rules and `Redirect`; returns where they send the request, if they do.
    pub(super) fn send_on(
        &mut self,
        ruling: &mut HtaccessRuling,
        target: &HtaccessTarget,
        applied: &Applied<'_>,
        scope: RuleScope,
        site: &Site,
        ctx: &mut StepCtx<'_>,
    ) -> Decided<Option<AdmittedTarget>> {
        // As in Apache, `END` does not hold for an index that is searched for.
        let has_ended = ruling.is_final && !ruling.is_looked_for();
        if applied.rewrites(&target.file) && !has_ended {
            let location = site.location(self.request.location);
            let options = DirOptionsGiven::new(applied, ruling, location);
            if !options.all().all(DirOptions::follows_own) {
                self.request.log_error(site, ctx, |out| {
                    out.extend_from_slice(
                        b"Options FollowSymLinks and SymLinksIfOwnerMatch are both off, so the \
                          RewriteRule directive is also forbidden",
                    );
                });
                return Err(NextStep::Fail(403));
            }
            let outcome = self.pass_of_rules(ruling, target, applied, site, ctx);
            if matches!(outcome, Err(NextStep::Fail(500))) {
                self.begin_error(ruling);
            }
            let mut outcome = outcome?;
            let is_answer =
                matches!(outcome.result, Rewritten::Status(_) | Rewritten::Redirect(..));
            self.record_outcome(&outcome);
            ruling.add_cookies(outcome.cookies.drain(..), self.effort);
            if (scope == RuleScope::All || is_answer)
                && let Some(onward) = self.follow_pass(ruling, target, applied, outcome, site, ctx)
            {
                return Ok(Some(onward));
            }
        }
        let args = self.request.args.clone();
        match self.redirected(applied, args.as_deref(), site, ctx) {
            Some(next) => next.map(|next| Some(AdmittedTarget::Elsewhere(next))),
            None => Ok(None),
        }
    }

    /// Records what a pass relied on without a rule's question.
    fn record_outcome(&self, outcome: &PassOutcome) {
        let is_path = matches!(outcome.result, Rewritten::Inside { .. });
        if outcome.is_particular || outcome.is_changed && !is_path {
            self.reliance.depends();
        }
        if is_path {
            // It is part of the environment of the next round.
            let args = self.request.args.as_deref();
            let of = AskedText::Variable(RequestVariable::QueryString);
            let text = Some(args.unwrap_or_default().into());
            self.reliance.asked(|| Question::Text(of), || Reply::Text(text));
        }
    }

    /// Runs the rewrite rules once.
    pub(super) fn pass_of_rules(
        &mut self,
        ruling: &mut HtaccessRuling,
        target: &HtaccessTarget,
        applied: &Applied<'_>,
        site: &Site,
        ctx: &mut StepCtx<'_>,
    ) -> Decided<PassOutcome> {
        match applied.looks_ahead() {
            true => self.rewrite_ahead(ruling, target, applied, site, ctx),
            false => self.rewrite_once(ruling, target, applied, site, ctx),
        }
    }

    pub(super) fn rewrite_once(
        &self,
        ruling: &mut HtaccessRuling,
        target: &HtaccessTarget,
        applied: &Applied<'_>,
        site: &Site,
        ctx: &mut StepCtx<'_>,
    ) -> Decided<PassOutcome> {
        let mut origin = Vec::new();
        push_origin(self.request, ctx.conn, &mut origin);
        let place = RewritePlace {
            file: &target.file,
            path_info: &target.path_info,
            args: self.request.args.as_deref(),
            target: &self.request.head().target,
            root: &target.root,
            prefix: &target.prefix,
            origin: &origin,
            is_inside: ruling.is_part() || self.request.role.is_inside(),
            now: ctx.now.unix_seconds(),
        };
        let user = ruling.user.clone();
        let whose = (user.as_deref(), None);
        self.evaluate(ruling, target, whose, site, ctx, |by| applied.rewrite(&place, by))
    }

    /// Carries out the result of a pass; none if the request continues. As in Apache, `Redirect`
    /// applies to the path before an internal rewrite.
    pub(super) fn follow_pass(
        &mut self,
        ruling: &mut HtaccessRuling,
        target: &HtaccessTarget,
        applied: &Applied<'_>,
        outcome: PassOutcome,
        site: &Site,
        ctx: &mut StepCtx<'_>,
    ) -> Option<AdmittedTarget> {
        if let Rewritten::Inside { args, .. } | Rewritten::Proxied { args, .. } = &outcome.result
            && let Some(next) = self.redirected(applied, args.as_deref(), site, ctx)
        {
            return Some(AdmittedTarget::Elsewhere(next.unwrap_or_else(|next| next)));
        }
        let outcome = match target.lacks_slash() && applied.redirects_to_slash() {
            true => Self::before_slash(outcome),
            false => outcome,
        };
        self.follow(ruling, outcome, site, ctx)
    }

    /// Ends the state of a previous error: as in Apache, rules may replace its error document.
    pub(super) fn begin_error(&mut self, ruling: &mut HtaccessRuling) {
        if ruling.stands_for.take().is_some() {
            self.request.in_error_page = false;
        }
    }

    /// Applies `Redirect`: its target, or its status.
    pub(super) fn redirected(
        &mut self,
        applied: &Applied<'_>,
        args: Option<&[u8]>,
        site: &Site,
        ctx: &mut StepCtx<'_>,
    ) -> Option<Decided<NextStep>> {
        let args = args.filter(|args| !args.is_empty());
        let to = match applied.redirect(&self.request.uri, args, self.effort) {
            Ok(to) => to?,
            Err(stop) => return Some(Err(stopped(self.request, stop, None, site, ctx))),
        };
        let Some(address) = to.to else { return Some(Err(NextStep::Fail(to.status))) };
        let mut whole = Vec::new();
        if address.first() == Some(&b'/') {
            push_origin(self.request, ctx.conn, &mut whole);
        }
        whole.extend_from_slice(&address);
        (self.answer.location, self.answer.location_origin) = (whole, 0);
        Some(Ok(NextStep::Redirect(to.status)))
    }

    /// The part of a result that remains before the redirect to a directory's final slash: as in
    /// Apache, only the query is rewritten.
    fn before_slash(mut outcome: PassOutcome) -> PassOutcome {
        outcome.result = match outcome.result {
            Rewritten::Inside { args, .. } => Rewritten::Query(args),
            Rewritten::Proxied { .. } => Rewritten::Nothing,
            other => other,
        };
        outcome
    }

    /// Carries out the result of rules; none if the request continues.
    fn follow(
        &mut self,
        ruling: &mut HtaccessRuling,
        outcome: PassOutcome,
        site: &Site,
        ctx: &mut StepCtx<'_>,
    ) -> Option<AdmittedTarget> {
        // As in Apache, `END` for an index does not hold for the path that it is rewritten to.
        ruling.is_final |= outcome.ends && !ruling.is_looked_for();
        if matches!(outcome.result, Rewritten::Status(_) | Rewritten::Redirect(..)) {
            self.begin_error(ruling);
        }
        ruling.drops_path_info = outcome.drops_path_info;
        ruling.media_type = outcome.media_type.or(ruling.media_type.take());
        ruling.handler = outcome.handler.map(|handler| handler.to_ascii_lowercase());
        let next = match outcome.result {
            Rewritten::Nothing => return None,
            Rewritten::Query(args) => {
                // A stored ruling leaves the query alone.
                self.reliance.depends();
                match args {
                    Some(args) => self.request.set_args(&args),
                    None => self.request.drop_args(),
                }
                self.request.arrival.turn(InternalRedirect::Htaccess);
                return None;
            }
            Rewritten::Proxied { origin, path, args } => {
                self.pass_on(&origin, path, args.as_deref(), site, ctx)
            }
            Rewritten::Status(status) => {
                // As in Apache, an error document gets the rewritten query; an index has that of
                // its directory.
                if let Some(args) = outcome.args.filter(|_| !ruling.is_part()) {
                    self.request.set_args(&args);
                }
                NextStep::Fail(status)
            }
            Rewritten::Redirect(status, address) => {
                (self.answer.location, self.answer.location_origin) = (address, 0);
                NextStep::Redirect(if is_redirect(status) { status } else { 302 })
            }
            Rewritten::Inside { path, args } => {
                ruling.next_env = next_round(&ruling.env, self.request, args.as_deref(), 200);
                return Some(AdmittedTarget::Inside(Rc::new(InsideTarget { path, args })));
            }
        };
        Some(AdmittedTarget::Elsewhere(next))
    }

    /// Serves the file whose path continues after it (`PATH_INFO`); no rule applies to its path.
    pub(super) fn cut_path(
        &mut self,
        ruling: &mut HtaccessRuling,
        target: &HtaccessTarget,
        site: &Site,
        ctx: &mut StepCtx<'_>,
    ) -> NextStep {
        let uri = self.request.uri.strip_suffix(&target.path_info[..]);
        let Some(uri) = uri.map(<[u8]>::to_vec) else { return NextStep::Fail(404) };
        debug_assert!(!target.path_info.is_empty(), "only what goes on behind a file is cut");
        ruling.is_final = true;
        self.fall_back(ruling, &uri, site, ctx)
    }

    /// Passes the request to the location that the configuration has for the URL of a rule.
    fn pass_on(
        &mut self,
        origin: &[u8],
        path: Vec<u8>,
        args: Option<&[u8]>,
        site: &Site,
        ctx: &mut StepCtx<'_>,
    ) -> NextStep {
        let proxies = &site.location(self.request.location).settings.apache_proxies;
        let found = proxies.iter().filter(|proxy| proxy.allows(origin, &path));
        let Some(proxy) = found.max_by_key(|proxy| proxy.path.len()) else {
            log_lines::error(self.request, site, ctx, LogLevel::Error, |out| {
                out.extend_from_slice(
                    b".htaccess: no \"apache_proxy\" allows RewriteRule [P] to \"",
                );
                push_uri(out, &[origin, &path].concat(), UriPart::Path);
                out.push(b'"');
            });
            return NextStep::Fail(500);
        };
        debug_assert!(!proxy.location.is_empty(), "an address that is allowed has its location");
        let next = self.request.redirect_inside(&path, site, ctx);
        if !matches!(next, NextStep::Step(_)) {
            return next;
        }
        self.request.uri = path;
        self.request.mark_dots();
        match args {
            Some(args) => self.request.set_args(args),
            None => self.request.drop_args(),
        }
        self.request.arrival.turn(InternalRedirect::Htaccess);
        self.request.enter_named(&proxy.location, site, ctx)
    }

    pub(super) fn fall_back(
        &mut self,
        ruling: &mut HtaccessRuling,
        fallback: &[u8],
        site: &Site,
        ctx: &mut StepCtx<'_>,
    ) -> NextStep {
        ruling.next_env = ruling.env.clone();
        let args = self.request.args.take();
        let next = self.request.redirect_inside(fallback, site, ctx);
        if self.request.args.is_none() {
            self.request.args = args;
        }
        self.request.arrival.turn(InternalRedirect::Htaccess);
        next
    }
}
