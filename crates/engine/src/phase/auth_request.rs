//! `auth_request`: the status of a subrequest decides whether access is granted.
//!
//! Owns the subrequest, which has the fields of the main request, and the consequences of its
//! status. Easiest to break: the subrequest passes no access checks of its own, shares no cache key
//! with the page, and only the head of its response counts.

use bolide_conf::model::Satisfy;
use bolide_http::Name;

use crate::answer::Answer;
use crate::caching::Caching;
use crate::ctx::{StepCtx, StepEffect};
use crate::exchange::NextStep;
use crate::phase::access::admitted;
use crate::phase::access::forbid;
use crate::phase::access::refuse_stranger;
use crate::phase::checks::AccessChecks;
use crate::phase::rewrite::assign;
use crate::request::Request;
use crate::site::{CompiledLocation, Site};
use crate::subrequest::{AuthSubrequest, AuthVerdict};

impl Request {
    /// The cache directives that apply to this request. An authorization subrequest has the target
    /// of the main request: so it is not in the page cache, nor in a zone without a key of its own,
    /// where a cached page would decide about access.
    pub(crate) fn caching<'a>(&self, site: &'a Site) -> Option<&'a Caching> {
        let caching = site.location(self.location).caching.as_ref();
        caching.filter(|caching| {
            let conf = &caching.conf;
            let has_key = conf.key.is_some() || conf.page.key.is_some();
            // As in nginx, a response without a client is not stored, or the subrequest would be
            // skipped.
            !self.role.has_no_client()
                && (self.role.auth().is_none() || !caching.is_page() && has_key)
        })
    }
}

/// Starts the authorization subrequest.
pub(super) fn ask_whether(ctx: &mut StepCtx<'_>) -> NextStep {
    ctx.effects.push(StepEffect::AuthSubrequest);
    NextStep::AwaitAuth
}

impl Request {
    /// Sets the state that an authorization subrequest has from the main request.
    pub(crate) fn adopt_asker(&mut self, question: &AuthSubrequest) {
        self.internal = true;
        self.captures.get_mut().adopt(question.known.clone());
        self.id = question.id;
        self.real = question.real;
        self.listen = question.listen;
        self.limited.adopt(question.limits);
    }
}

impl AccessChecks {
    /// A trial starts no subrequest: access is granted.
    pub(crate) fn take_for_granted(&mut self, request: &mut Request) {
        let known = request.captures.get_mut().clone();
        self.verdict = Some(Box::new(AuthVerdict { status: 200, known, ..AuthVerdict::default() }));
    }
}

impl Answer {
    /// Continues with the access checks.
    pub(super) fn heed(
        &mut self,
        request: &mut Request,
        verdict: AuthVerdict,
        location: &CompiledLocation,
        site: &Site,
        ctx: &mut StepCtx<'_>,
    ) -> NextStep {
        debug_assert!(request.role.auth().is_none(), "a question passes no checks of its own");
        debug_assert_ne!(verdict.status, 0, "an answered question has a status");
        let any = location.settings.satisfy == Satisfy::Any;
        request.captures.get_mut().adopt(verdict.known);
        request.is_authorized = true;
        for (target, value) in &verdict.values {
            assign(request, *target, value, site, ctx);
        }
        match verdict.status {
            200..=299 if any => self.satisfied(request, site),
            200..=299 => admitted(location),
            401 => {
                for challenge in &verdict.challenges {
                    self.carried.push(Name::WwwAuthenticate, challenge);
                }
                refuse_stranger(request, location, site, ctx)
            }
            // The challenge of the password check still applies.
            403 if any && !self.challenge.is_empty() => {
                refuse_stranger(request, location, site, ctx)
            }
            403 if any => forbid(request, site, ctx),
            403 => NextStep::Fail(403),
            status => {
                request.log_error(site, ctx, |out| {
                    out.extend_from_slice(b"auth request unexpected status: ");
                    bolide_http::digits::push_decimal(out, u64::from(status));
                    // As in nginx, the last action of the subrequest stays in error-log lines.
                    if verdict.has_asked {
                        out.extend_from_slice(b" while sending to client");
                    }
                });
                NextStep::Fail(500)
            }
        }
    }
}
