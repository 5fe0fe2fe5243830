//! The last step before any response is sent, and the head of those that this server generates.

use bolide_http::status::ends_exchange;
use bolide_http::{Method, Name};

use crate::answer::Answer;
use crate::answer::{AnswerBody, AnswerHold};
use crate::content::allow::say_allowed;
use crate::content::sticky;
use crate::ctx::{StepCtx, StepEffect};
use crate::delivery::has_no_content;
use crate::filter::body::filter_body;
use crate::filter::charset::{DescribedType, complain, is_inflated, rule_charset};
use crate::filter::esi::take_cookies;
use crate::filter::headers::{self, FieldPlace, HeadDraft};
use crate::media_types::MediaType;
use crate::request::Request;
use crate::site::{CompiledLocation, Site};
use crate::subrequest::{RequestRole, Subrequest};
use crate::vars::VariableScope;

use super::client::send_continue_unread;
use super::mirror::end_mirror;
use super::searched::begin_body;
use super::{Exchange, ExchangeState, NextStep};
use crate::persistence::{is_distrusted, stays};

impl Exchange {
    /// Hands the response to the worker; returns the step that replaces it if `.htaccess` filters
    /// cannot process its body.
    pub(super) fn respond(
        &mut self,
        site: &Site,
        ctx: &mut StepCtx<'_>,
    ) -> Result<ExchangeState, NextStep> {
        if self.request.role.post_action().is_some() {
            return Ok(self.end_post_action(site, ctx));
        }
        if matches!(self.request.role, RequestRole::Subrequest(Subrequest::Mirror(_))) {
            return Ok(end_mirror(self, site, ctx));
        }
        debug_assert!(!self.answer.is_responded, "an answer is given once");
        debug_assert!(
            ends_exchange(self.answer.head.status),
            "{} is no status of a response",
            self.answer.head.status
        );
        if self.answer.held == AnswerHold::No {
            finish_body(&mut self.request, &mut self.answer, site, ctx);
        }
        if self.answer.may_be_searched
            && let Some(instead) = begin_body(self, site, ctx)
        {
            return instead;
        }
        if self.answer.head.status == 405 {
            say_allowed(&self.request, &mut self.answer, site);
        }
        self.answer.announce_end(&self.request, site);
        let settings = &site.location(self.request.location).settings;
        let age = self.request.started.mono.since(ctx.conn.started.mono);
        self.answer.head.close |= settings.keepalive_timeout.is_zero()
            || self.request.number_on_conn >= settings.keepalive_requests
            || age >= settings.keepalive_time
            || is_distrusted(settings.keepalive_disable, self.request.head());
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
        if self.answer.is_fetching() && !self.answer.is_from_origin() {
            self.answer.drop_fetch(ctx);
        }
        send_continue_unread(&mut self.request, ctx);
        self.request.discard_rest(&self.answer, ctx);
        take_cookies(&mut self.answer);
        self.cache.let_go();
        debug_assert!(
            !has_no_content(self.answer.head.status)
                || matches!(self.answer.body, AnswerBody::Empty),
            "RFC 9110 §15.3.5, §15.4.5: these have no content"
        );
        self.answer.is_responded = true;
        ctx.effects.push(StepEffect::Respond);
        if self.wants_fragments() {
            ctx.effects.push(StepEffect::Fragments);
        }
        Ok(ExchangeState::Delivering)
    }
}

/// Puts the body behind its filters.
#[inline]
fn finish_body(request: &mut Request, answer: &mut Answer, site: &Site, ctx: &mut StepCtx<'_>) {
    if let RequestRole::Subrequest(Subrequest::Slice(slice)) = &request.role {
        answer.body.keep_of_slice(slice.wanted);
    }
    let filters = site.location(request.location).filters_bodies;
    if filters || answer.may_be_searched || answer.body.is_put_together() {
        filter_body(request, answer, site, ctx);
        if let Some(outcome) = answer.charset.take() {
            complain(request, answer, &outcome, site, ctx);
        }
    }
}

impl Answer {
    /// Writes the head from `draft` and the location's settings.
    #[inline]
    pub(crate) fn fill(
        &mut self,
        request: &Request,
        status: u16,
        draft: &HeadDraft<'_>,
        site: &Site,
        ctx: &StepCtx<'_>,
    ) {
        let location = site.location(request.location);
        let mut fields = std::mem::take(&mut self.head.fields);
        fields.clear();
        let place = FieldPlace { location, date: ctx.clock.http(), carried: &self.carried };
        headers::push_draft(&mut fields, status, draft, place);
        if draft.location.is_none() && (!self.location.is_empty() || self.is_to_nowhere) {
            self.push_location(&mut fields, request, site, ctx);
        }
        if !self.challenge.is_empty() {
            fields.push(Name::WwwAuthenticate, &self.challenge);
        }
        sticky::push_cookies(&mut fields, self);
        self.head.status = status;
        if location.is_decorated {
            let mut scratch = std::mem::take(&mut self.scratch);
            let scope = VariableScope::new(request, self, site, ctx);
            // As in nginx, a 416 gets the fields of the 206 that it might have been.
            let (meant, modified) = match self.unsatisfied {
                Some(range) => (206, range.modified_at),
                None => (status, draft.modified_at),
            };
            headers::push_configured(&mut fields, &scope, meant, modified, &mut scratch);
            self.scratch = scratch;
        } else {
            headers::push_alt_svc(&mut fields, request, site, ctx.conn);
        }
        if status == 204 {
            headers::withhold(&mut fields, location);
        }
        self.head.fields = fields;
    }

    /// As [`Self::fill`], with this content type.
    pub(crate) fn fill_typed<'a>(
        &mut self,
        request: &Request,
        kind: &'a MediaType,
        status: u16,
        draft: &mut HeadDraft<'a>,
        site: &Site,
        ctx: &StepCtx<'_>,
    ) {
        // As in nginx, a redirect has no charset of ours.
        let is_redirect = matches!(status, 301 | 302);
        if is_redirect || !kind.charset_varies {
            draft.content_type = if is_redirect { &kind.media } else { &kind.value };
            return self.fill(request, status, draft, site, ctx);
        }
        draft.content_type = &kind.value;
        show_draft(self, status, draft, site.location(request.location), ctx);
        if kind.recoded {
            return fill_recoded(self, request, kind, status, draft, site, ctx);
        }
        let mut value = kind.value.to_vec();
        let charset = &site.location(request.location).settings.charset.charset;
        if let bolide_conf::model::CharsetOf::Name(name) = charset {
            let mark = value.len();
            value.extend_from_slice(b"; charset=");
            let empty = value.len();
            VariableScope::new(request, self, site, ctx).expand(name, &mut value);
            if value.len() == empty {
                value.truncate(mark);
            }
        }
        self.fill(request, status, &HeadDraft { content_type: &value, ..*draft }, site, ctx);
    }
}

/// Sets status and first fields of a response whose charset is not known yet: it may depend on
/// them (`$sent_http_content_type`, `$status`).
#[cold]
fn show_draft(
    answer: &mut Answer,
    status: u16,
    draft: &HeadDraft<'_>,
    location: &CompiledLocation,
    ctx: &StepCtx<'_>,
) {
    debug_assert!(!answer.is_responded, "a head that has left does not change");
    let mut fields = std::mem::take(&mut answer.head.fields);
    fields.clear();
    let place = FieldPlace { location, date: ctx.clock.http(), carried: &answer.carried };
    headers::push_draft(&mut fields, status, draft, place);
    (answer.head.fields, answer.head.status) = (fields, status);
}

/// As [`Answer::fill_typed`], for a body that may have to be recoded to the charset of its type.
#[cold]
fn fill_recoded(
    answer: &mut Answer,
    request: &Request,
    kind: &MediaType,
    status: u16,
    draft: &HeadDraft<'_>,
    site: &Site,
    ctx: &StepCtx<'_>,
) {
    let location = site.location(request.location);
    let encoding = draft.encoding.as_bytes();
    let is_encoded = !encoding.is_empty() && !is_inflated(request, location, status, encoding);
    let carried = answer.carried.get(Name::ContentType).map(<[u8]>::to_vec);
    let described = match &carried {
        Some(value) => DescribedType::field(value, is_encoded, status),
        None => DescribedType::own(&kind.media, is_encoded, status),
    };
    let ruling = rule_charset(answer, request, described, site, ctx);
    let (value, outcome) = (ruling.value.into_owned(), ruling.outcome);
    if carried.is_some() {
        answer.carried.set(Name::ContentType, &value);
    }
    let draft = HeadDraft { content_type: &value, ..*draft };
    answer.fill(request, status, &draft, site, ctx);
    answer.charset = outcome.map(Box::new);
}
