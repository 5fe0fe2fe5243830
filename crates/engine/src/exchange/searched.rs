//! Responses whose bodies `SUBSTITUTE` or `INFLATE` of `.htaccess` files change: the head waits
//! until the first bytes are processed, or an error is found.
//!
//! Owns how a response is withdrawn before its head was sent. Easiest to break: a waiting head is
//! not sent, so whatever ends the request needs a new response.

use bolide_conf::model::LogLevel;

use super::{Exchange, ExchangeState, NextStep};
use crate::answer::{Answer, AnswerBody, AnswerHold, BodyStart};
use crate::content::origin_news::take_more;
use crate::ctx::{StepCtx, StepEffect, Wake};
use crate::log_lines;
use crate::request::Request;
use crate::site::Site;

/// Processes the first bytes of the body; returns the next state or step if they are not ready.
#[cold]
pub(super) fn begin_body(
    exchange: &mut Exchange,
    site: &Site,
    ctx: &mut StepCtx<'_>,
) -> Option<Result<ExchangeState, NextStep>> {
    let Exchange { request, answer, cache, .. } = exchange;
    answer.held = AnswerHold::No;
    match answer.body.begin() {
        BodyStart::Waits if answer.is_fetching() || answer.body.is_growing() => {
            answer.held = AnswerHold::ForMore;
            if answer.is_fetching() && answer.wants_origin() {
                ctx.effects.push(StepEffect::FetchMayRead(true));
            }
            Some(Ok(ExchangeState::AwaitingBody))
        }
        BodyStart::Rests => {
            answer.held = AnswerHold::ForTurn;
            ctx.effects.push(StepEffect::Deadline(ctx.now.mono));
            Some(Ok(ExchangeState::AwaitingBody))
        }
        BodyStart::Ready | BodyStart::Waits => None,
        BodyStart::Failed(fault) => {
            log_fault(request, fault, site, ctx);
            withdraw(answer, ctx);
            cache.let_go();
            Some(Err(NextStep::Fail(500)))
        }
        BodyStart::CutOff => {
            let is_of_origin = answer.is_from_origin() || answer.body.is_growing();
            let refused = answer.origin.as_ref().and_then(|asked| asked.refused);
            let status = if is_of_origin { refused.unwrap_or(502) } else { 500 };
            log_fault(request, "a body broke off before its first line", site, ctx);
            withdraw(answer, ctx);
            cache.let_go();
            Some(Err(NextStep::Fail(status)))
        }
    }
}

/// Continues a response whose head waits.
pub(super) fn begin_on(
    exchange: &mut Exchange,
    wake: Wake,
    ctx: &mut StepCtx<'_>,
) -> ExchangeState {
    let Exchange { request, answer, .. } = exchange;
    debug_assert!(!answer.is_responded, "the head of what begins waits");
    debug_assert_ne!(answer.held, AnswerHold::No, "the head of what begins waits");
    match wake {
        Wake::Origin(news) => {
            let Some(site) = request.site.clone() else { return ExchangeState::Done };
            take_more(request, answer, news, &site, ctx);
        }
        Wake::Spooled(_) => answer.answer_spooled(ctx),
        Wake::Deadline => {
            // A new turn, with its full limit of work.
            answer.body.take_work();
            answer.held = AnswerHold::ForMore;
        }
        _ => {}
    }
    match answer.held {
        AnswerHold::ForTurn => ExchangeState::AwaitingBody,
        AnswerHold::ForMore | AnswerHold::No => exchange.run(NextStep::Respond, ctx),
    }
}

/// Drops the fetch, and withdraws a response whose head was not sent.
pub(super) fn withdraw(answer: &mut Answer, ctx: &mut StepCtx<'_>) {
    answer.drop_fetch(ctx);
    if answer.is_responded {
        return;
    }
    answer.body = AnswerBody::Empty;
    answer.forget_draft();
    if let Some(asked) = &mut answer.origin {
        asked.is_answering = false;
    }
}

/// Logs why a changed body cannot be sent, once: the filters may fail on the page that
/// `ErrorDocument` names as well.
#[cold]
pub(super) fn log_fault(request: &Request, fault: &str, site: &Site, ctx: &mut StepCtx<'_>) {
    if request.has_logged_search.replace(true) {
        return;
    }
    log_lines::error(request, site, ctx, LogLevel::Error, |out| {
        out.extend_from_slice(b".htaccess: ");
        out.extend_from_slice(fault.as_bytes());
    });
}
