//! `…_pass`: events of the upstream request, before its response head and during its body.
//!
//! Easiest to break: a running fetch of an exchange that turns to another response is dropped
//! exactly once.

use std::sync::Arc;

use bolide_conf::model::LogLevel;
use bolide_upstream::{Cause, ConnectRefused, OriginLogLine, OriginNews};

use crate::answer::{Answer, AnswerBody};
use crate::caching::{CacheTransaction, StaleCause};
use crate::content::sticky::{self, LearnMoment};
use crate::ctx::{SpoolPlace, StepCtx, StepEffect};
use crate::exchange::NextStep;
use crate::log_lines;
use crate::request::Request;
use crate::site::Site;

impl Answer {
    /// Whether more of the upstream response may be read now.
    pub(crate) fn wants_origin(&self) -> bool {
        self.body.inflow().is_none_or(|inflow| !inflow.spool().is_full())
    }

    /// Drops the running fetch, if there is one.
    pub(crate) fn drop_fetch(&mut self, ctx: &mut StepCtx<'_>) {
        if let Some(asked) = &mut self.origin
            && std::mem::take(&mut asked.is_running)
        {
            asked.close_attempt(ctx.now);
            ctx.effects.push(StepEffect::FetchDrop);
        }
    }

    /// The current upstream server, with the protocol's name.
    pub(crate) fn peer(&self) -> Option<(&'static str, Arc<str>)> {
        let asked = self.origin.as_ref()?;
        Some((asked.scheme, asked.attempts.last()?.peer.clone()))
    }

    /// Whether a fetch is running.
    pub(crate) fn is_fetching(&self) -> bool {
        self.origin.as_ref().is_some_and(|asked| asked.is_running())
    }

    /// Takes an event of the fetch before there is a response.
    pub(crate) fn take_news(
        &mut self,
        request: &mut Request,
        cache: &mut CacheTransaction,
        news: OriginNews,
        site: &Site,
        ctx: &mut StepCtx<'_>,
    ) -> NextStep {
        match news {
            OriginNews::Early(head) => {
                self.pass_early(request, &head, site, ctx);
                NextStep::Fetch
            }
            OriginNews::Head(head) => {
                let next = self.take_origin_head(request, cache, &head, site, ctx);
                // The rest of the response is not read.
                if !self.is_fetching() {
                    sticky::learn(request, self, LearnMoment::End, site, ctx);
                }
                next
            }
            OriginNews::Failed(refused) => {
                if let Some(asked) = &mut self.origin {
                    asked.is_running = false;
                }
                match cache.stale_if_error(
                    request,
                    self,
                    StaleCause::Failed(refused.cause),
                    site,
                    ctx,
                ) {
                    Some(next) => next,
                    None => take_refusal(self, refused),
                }
            }
            OriginNews::End => {
                debug_assert!(false, "a head comes before the end");
                take_refusal(
                    self,
                    ConnectRefused { status: 502, retry_after: None, cause: Cause::Error },
                )
            }
            OriginNews::Body(_) | OriginNews::Trailers(_) | OriginNews::Unused(_) => {
                NextStep::Fetch
            }
            news @ (OriginNews::Attempt(_) | OriginNews::Log(_)) => {
                record_news(request, self, news, site, ctx);
                NextStep::Fetch
            }
        }
    }

    /// Continues after a part of the response was written to its file.
    pub(crate) fn answer_spooled(&self, ctx: &mut StepCtx<'_>) {
        if self.wants_origin() && self.is_fetching() {
            ctx.effects.push(StepEffect::FetchMayRead(true));
        }
        report_ready(self, ctx);
    }
}

fn take_refusal(answer: &mut Answer, refused: ConnectRefused) -> NextStep {
    debug_assert!((400..600).contains(&refused.status), "a fetch that failed is an error");
    if let Some(asked) = &mut answer.origin {
        asked.is_running = false;
    }
    answer.retry_after = refused.retry_after;
    NextStep::Fail(refused.status)
}

/// Reports that the body may have bytes, unless its last one was sent.
fn report_ready(answer: &Answer, ctx: &mut StepCtx<'_>) {
    if answer.is_responded && !answer.is_complete {
        ctx.effects.push(StepEffect::BodyReady);
    }
}

/// Applies `fill` to the body. Its excess is written to a file; when that is full, reading from
/// the upstream pauses.
fn fill_body(
    request: &Request,
    answer: &mut Answer,
    site: &Site,
    ctx: &mut StepCtx<'_>,
    fill: impl FnOnce(&mut AnswerBody),
) {
    let Some(inflow) = answer.body.inflow() else { return };
    let was_writing = inflow.spool().wants_writing();
    fill(&mut answer.body);
    let Some(inflow) = answer.body.inflow() else { return };
    if inflow.spool().wants_writing() && !was_writing {
        let settings = &site.location(request.location).settings;
        let place = SpoolPlace::Unnamed(settings.origin.temp_path.path.clone());
        ctx.effects.push(StepEffect::Spool(place));
    }
    if inflow.spool().is_full() && answer.is_fetching() {
        ctx.effects.push(StepEffect::FetchMayRead(false));
    }
    report_ready(answer, ctx);
}

fn record_news(
    request: &Request,
    answer: &mut Answer,
    news: OriginNews,
    site: &Site,
    ctx: &mut StepCtx<'_>,
) {
    match news {
        OriginNews::Attempt(attempt) => {
            if let Some(asked) = &mut answer.origin {
                request.last_origin.replace(Some((asked.scheme, attempt.peer.clone())));
                let bond = attempt.bond.clone();
                if asked.note(*attempt)
                    && let Some(bond) = bond
                {
                    sticky::bind(request, answer, &bond, site, ctx);
                }
            }
        }
        OriginNews::Log(line) => {
            let OriginLogLine { level, text, doing, peer } = *line;
            let (level, doing) = match answer.is_tunnel() {
                true => (LogLevel::Info, "while proxying upgraded connection"),
                false => (level, doing),
            };
            let scheme = answer.origin.as_ref().map_or("", |asked| asked.scheme);
            let origin = peer.as_deref().map(|peer| (scheme, peer));
            log_lines::error_about(request, origin, site, ctx, level, |out| {
                out.extend_from_slice(&text);
                if !doing.is_empty() {
                    out.push(b' ');
                    out.extend_from_slice(doing.as_bytes());
                }
            });
        }
        _ => {}
    }
}

/// Takes an event of the fetch while its response is sent.
pub(crate) fn take_more(
    request: &Request,
    answer: &mut Answer,
    news: OriginNews,
    site: &Site,
    ctx: &mut StepCtx<'_>,
) {
    match news {
        OriginNews::Body(bytes) => fill_body(request, answer, site, ctx, |body| body.push(bytes)),
        OriginNews::End | OriginNews::Failed(_) => {
            // The end of a tunnel is no error.
            let is_whole = matches!(news, OriginNews::End) || answer.is_tunnel();
            if let Some(asked) = &mut answer.origin {
                asked.is_running = false;
                if let OriginNews::Failed(refused) = &news {
                    asked.refused = Some(refused.status);
                }
            }
            fill_body(request, answer, site, ctx, |body| {
                if is_whole { body.finish() } else { body.fail() }
            });
            sticky::learn(request, answer, LearnMoment::End, site, ctx);
            if let AnswerBody::Origin(inflow) = &answer.body {
                answer.compression = inflow.compression();
            }
        }
        OriginNews::Trailers(fields) => {
            if let Some(asked) = &mut answer.origin {
                asked.trailers.copy_from(&fields);
            }
        }
        OriginNews::Early(_) | OriginNews::Head(_) | OriginNews::Unused(_) => {}
        news @ (OriginNews::Attempt(_) | OriginNews::Log(_)) => {
            record_news(request, answer, news, site, ctx);
        }
    }
}

/// Breaks the response off, visibly for the client.
pub(crate) fn cut_answer(answer: &mut Answer, ctx: &mut StepCtx<'_>) {
    answer.drop_fetch(ctx);
    answer.body.fail();
    report_ready(answer, ctx);
}

/// Lets the running fetch end by itself.
pub(crate) fn detach_fetch(answer: &mut Answer, ctx: &StepCtx<'_>) {
    if let Some(asked) = &mut answer.origin {
        asked.is_running = false;
        asked.close_attempt(ctx.now);
    }
}
