//! What an origin does that was asked: before its head, and while its answer leaves.
//!
//! Easiest to break: a fetch that runs when an exchange turns to something else is dropped exactly
//! once.

use std::sync::Arc;

use bolide_conf::model::LogLevel;
use bolide_upstream::{Cause, ConnectRefused, OriginLogLine, OriginNews};

use crate::answer::{Answer, AnswerBody};
use crate::caching::{CacheTransaction, StaleCause};
use crate::ctx::{SpoolPlace, StepCtx, StepEffect};
use crate::exchange::NextStep;
use crate::log_lines;
use crate::request::Request;
use crate::site::Site;

impl Answer {
    /// Whether more of the origin's answer may be read now.
    pub(crate) fn wants_origin(&self) -> bool {
        self.body.inflow().is_none_or(|inflow| !inflow.spool().is_full())
    }

    /// Lets go of the fetch that is under way, if there is one.
    pub(crate) fn drop_fetch(&mut self, ctx: &mut StepCtx<'_>) {
        if let Some(asked) = &mut self.origin
            && std::mem::take(&mut asked.is_running)
        {
            asked.close_attempt(ctx.now);
            ctx.effects.push(StepEffect::FetchDrop);
        }
    }

    /// Who is asked, with the protocol's name.
    pub(crate) fn peer(&self) -> Option<(&'static str, Arc<str>)> {
        let asked = self.origin.as_ref()?;
        Some((asked.scheme, asked.attempts.last()?.peer.clone()))
    }

    /// Whether a fetch is under way.
    pub(crate) fn is_fetching(&self) -> bool {
        self.origin.as_ref().is_some_and(|asked| asked.is_running())
    }

    /// What the origin did before there was an answer.
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
            OriginNews::Head(head) => self.take_origin_head(request, cache, &head, site, ctx),
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
            OriginNews::Body(_) | OriginNews::Trailers(_) => NextStep::Fetch,
            news @ (OriginNews::Attempt(_) | OriginNews::Log(_)) => {
                note_news(request, self, news, site, ctx);
                NextStep::Fetch
            }
        }
    }

    /// Part of the answer was written to its file.
    pub(crate) fn answer_spooled(&self, ctx: &mut StepCtx<'_>) {
        if self.wants_origin() && self.is_fetching() {
            ctx.effects.push(StepEffect::FetchMayRead(true));
        }
        tell_ready(self, ctx);
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

/// The body may have bytes, unless its last one has left.
fn tell_ready(answer: &Answer, ctx: &mut StepCtx<'_>) {
    if answer.is_responded && !answer.is_complete {
        ctx.effects.push(StepEffect::BodyReady);
    }
}

/// Lets something be done to the body; what it holds too much of goes to a file, and when it is
/// full the origin has to wait.
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
    tell_ready(answer, ctx);
}

fn note_news(
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
                asked.note(*attempt);
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

/// What the origin did while its answer leaves.
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
            // A tunnel just ends.
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
            if let AnswerBody::Origin(inflow) = &answer.body {
                answer.compression = inflow.compression();
            }
        }
        OriginNews::Trailers(fields) => {
            if let Some(asked) = &mut answer.origin {
                asked.trailers.copy_from(&fields);
            }
        }
        OriginNews::Early(_) | OriginNews::Head(_) => {}
        news @ (OriginNews::Attempt(_) | OriginNews::Log(_)) => {
            note_news(request, answer, news, site, ctx);
        }
    }
}

/// The answer ends where it is, visibly.
pub(crate) fn cut_answer(answer: &mut Answer, ctx: &mut StepCtx<'_>) {
    answer.drop_fetch(ctx);
    answer.body.fail();
    tell_ready(answer, ctx);
}

/// Leaves the fetch that is under way to itself.
pub(crate) fn detach_fetch(answer: &mut Answer, ctx: &StepCtx<'_>) {
    if let Some(asked) = &mut answer.origin {
        asked.is_running = false;
        asked.close_attempt(ctx.now);
    }
}
