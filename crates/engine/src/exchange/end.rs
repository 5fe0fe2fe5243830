//! How an exchange ends: its answer has left, and it is logged.
//!
//! Easiest to break: whatever ends an exchange comes through `finish`, where `post_action` takes
//! it over, but for 444 and heads that are late.

use upstream::OriginNews;

use super::{Exchange, State};
use crate::answer::Body;
use crate::ctx::{Ctx, Effect};
use crate::record;
use crate::site::Site;
use crate::vars::Scope;

impl Exchange {
    pub(super) fn sent(&mut self, body_bytes: u64, head_bytes: u64, ctx: &mut Ctx<'_>) -> State {
        let Some(site) = self.request.site.clone() else { return State::Done };
        self.answer.body_sent = body_bytes;
        self.answer.head_sent = head_bytes;
        self.answer.is_complete = true;
        if self.is_fetching() {
            return State::Settling;
        }
        self.finish(&site, ctx)
    }

    /// News of an origin whose answer leaves or has left.
    pub(super) fn hear(&mut self, state: State, news: OriginNews, ctx: &mut Ctx<'_>) -> State {
        let Some(site) = self.request.site.clone() else { return State::Done };
        self.take_more(news, &site, ctx);
        if self.is_fetching() {
            return state;
        }
        if self.request.upload.is_streamed() && state == State::Delivering {
            self.discard_rest(ctx);
        }
        if state == State::Settling { self.finish(&site, ctx) } else { state }
    }

    /// Nothing more is said to the client: `post_action` may go on behind it.
    pub(super) fn finish(&mut self, site: &Site, ctx: &mut Ctx<'_>) -> State {
        if site.location(self.request.location).goes_on
            && let Some(state) = self.go_on_behind(site, ctx)
        {
            return state;
        }
        self.conclude(site, ctx)
    }

    /// Nothing at all is said to the client.
    pub(super) fn silence(&mut self, status: u16, site: &Site, ctx: &mut Ctx<'_>) -> State {
        if self.is_epilogue() {
            return self.silence_epilogue(status, site, ctx);
        }
        self.answer.bare_status = status;
        ctx.effects.push(Effect::CloseSilently);
        self.conclude(site, ctx)
    }

    /// As in nginx, what the server does not wait for is logged as it stands, and not acted upon.
    pub(super) fn cut(&mut self, ctx: &mut Ctx<'_>) -> State {
        let Some(site) = self.request.site.clone() else { return State::Done };
        self.drop_fetch(ctx);
        self.conclude(&site, ctx)
    }

    /// Writes the log lines; nothing comes behind it.
    pub(super) fn conclude(&mut self, site: &Site, ctx: &mut Ctx<'_>) -> State {
        self.note_decision(ctx);
        let mut scratch = std::mem::take(&mut self.scratch);
        let scope = Scope::new(&self.request, &self.answer, site, ctx);
        if !self.request.is_fragment || scope.location().settings.log_subrequest {
            record::access(&scope, ctx, &mut scratch);
        }
        self.scratch = scratch;
        if !self.request.notes.get_mut().is_empty() {
            self.log_notes(site, ctx);
        }
        self.answer.body = Body::Empty;
        self.request.limited.let_go();
        ctx.effects.push(Effect::Finish);
        State::Done
    }
}
