//! `auth_request`: another location of this server is asked whether a request may come in.
//!
//! Owns the question, a request inside the server with the fields of the one that it is about, and
//! what follows from its verdict. Easiest to break: the question passes no checks of its own,
//! shares no key with the page that it is about, and of its answer only the head counts.

use bolide_conf::model::Satisfy;
use bolide_http::{Name, RequestHead};

use crate::answer::Answer;
use crate::caching::Caching;
use crate::content::parts::inherit;
use crate::ctx::{SiteRef, StepCtx, StepEffect};
use crate::exchange::{Exchange, NextStep};
use crate::phase::access::admitted;
use crate::phase::access::forbid;
use crate::phase::access::refuse_stranger;
use crate::phase::checks::AccessChecks;
use crate::phase::rewrite::assign;
use crate::request::Request;
use crate::site::{CompiledLocation, Site};
use crate::subrequest::{AuthSubrequest, AuthVerdict, RequestRole, Subrequest};
use crate::vars::VariableScope;

impl Request {
    /// What is kept of answers to this request. Questions have the target of what they are about:
    /// they have no place among pages, and none in a zone that has no key of its own, where a kept
    /// page would say who may come in.
    pub(crate) fn caching<'a>(&self, site: &'a Site) -> Option<&'a Caching> {
        let caching = site.location(self.location).caching.as_ref();
        caching.filter(|caching| {
            let conf = &caching.conf;
            let has_key = conf.key.is_some() || conf.page.key.is_some();
            // As in nginx, an answer without a client is not stored, or it would be asked for once.
            self.role.post_action().is_none()
                && (self.role.auth().is_none() || !caching.is_page() && has_key)
        })
    }
}

impl Exchange {
    /// Whether it only says if another one may come in.
    #[must_use]
    pub const fn is_auth_subrequest(&self) -> bool {
        self.request.role.auth().is_some()
    }
}

/// Asks whether the request may come in.
pub(super) fn ask_whether(ctx: &mut StepCtx<'_>) -> NextStep {
    ctx.effects.push(StepEffect::AuthSubrequest);
    NextStep::AwaitAuth
}

impl Exchange {
    /// Makes `head` the question that [`StepEffect::AuthSubrequest`] is about.
    pub fn next_auth(&mut self, head: &mut RequestHead) -> Option<Subrequest> {
        let settings = self.settings()?;
        let rule = settings.auth_request.clone();
        let uri = rule.uri.clone()?;
        inherit(head, self.request.head());
        let known = self.request.captures.get_mut().clone();
        Some(Subrequest::Auth(Box::new(AuthSubrequest {
            uri,
            rule,
            known,
            id: self.request.id,
            real: self.request.real,
            listen: self.request.listen,
            told: self.request.limited.details(),
        })))
    }

    /// Gives a question to an idle exchange; wake it with `Start`.
    pub(crate) fn start_auth(
        &mut self,
        head: Box<RequestHead>,
        site: SiteRef,
        question: Box<AuthSubrequest>,
    ) {
        self.start(head, site);
        self.request.internal = true;
        self.request.captures.get_mut().adopt(question.known.clone());
        self.request.id = question.id;
        self.request.real = question.real;
        self.request.listen = question.listen;
        self.request.limited.tell(question.told);
        self.request.role = RequestRole::Subrequest(Subrequest::Auth(question));
    }

    /// What the answer to a question, whose head is there, says.
    pub fn verdict(&mut self, ctx: &StepCtx<'_>) -> Option<Box<AuthVerdict>> {
        let site = self.request.site.clone()?;
        let rule = self.request.role.auth()?.rule.clone();
        let scope = VariableScope::new(&self.request, &self.answer, &site, ctx);
        let mut values = Vec::with_capacity(rule.set.len());
        for (target, template) in rule.set.iter() {
            let mut value = Vec::new();
            scope.expand(template, &mut value);
            values.push((*target, value));
        }
        let head = &self.answer.head;
        let fields = head.fields.all(Name::WwwAuthenticate);
        let challenges = fields.map(<[u8]>::to_vec).collect();
        let status = head.status;
        let known = std::mem::take(self.request.captures.get_mut());
        let (told, held) = (self.request.limited.details(), self.held());
        Some(Box::new(AuthVerdict { status, challenges, values, known, told, held }))
    }

    /// Takes the answer to its question; to be woken with `Wake::Fragment` then, or when there will
    /// be none.
    pub fn take_verdict(&mut self, mut verdict: Box<AuthVerdict>) {
        self.request.limited.tell(verdict.told);
        self.request.limited.hold(std::mem::take(&mut verdict.held));
        self.access.verdict = Some(verdict);
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
    /// Goes on with the checks of access.
    pub(super) fn heed(
        &mut self,
        request: &mut Request,
        verdict: AuthVerdict,
        location: &CompiledLocation,
        site: &Site,
        ctx: &mut StepCtx<'_>,
    ) -> NextStep {
        let any = location.settings.satisfy == Satisfy::Any;
        request.captures.get_mut().adopt(verdict.known);
        request.is_vouched_for = true;
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
            // A password that was asked for in vain may still be given.
            403 if any && !self.challenge.is_empty() => {
                refuse_stranger(request, location, site, ctx)
            }
            403 if any => forbid(request, site, ctx),
            403 => NextStep::Fail(403),
            status => {
                request.log_error(site, ctx, |out| {
                    out.extend_from_slice(b"auth request unexpected status: ");
                    bolide_http::digits::push_decimal(out, u64::from(status));
                });
                NextStep::Fail(500)
            }
        }
    }
}
