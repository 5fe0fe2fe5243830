//! Reports of a fetch to the exchange beside the response: log lines and attempts.

use std::sync::Arc;

use bolide_conf::model::LogLevel;

use super::{Audience, Fetch, FetchState};
use crate::ctx::{FetchCtx, FetchEffect};
use crate::groups::Group;
use crate::messages;
use crate::request::{Attempt, OriginLogLine, OriginNews};
use crate::trial::UpstreamTrial;

impl Fetch {
    pub(super) const fn reading_what(&self) -> &'static str {
        match self.state {
            FetchState::Answering => messages::READING,
            _ => messages::READING_HEAD,
        }
    }

    pub(super) fn notify(&self, news: OriginNews, ctx: &mut FetchCtx<'_>) {
        if self.audience == Audience::Listening {
            ctx.effects.push(FetchEffect::Notify(news));
        }
    }

    pub(super) fn log(
        &self,
        level: LogLevel,
        text: &[u8],
        doing: &'static str,
        ctx: &mut FetchCtx<'_>,
    ) {
        let peer = self.group.as_ref().map(|group| match &self.trial {
            Some(trial) => Arc::clone(&group.peers[trial.peer].name),
            None => Arc::clone(group.name()),
        });
        self.log_of(level, text, doing, peer, ctx);
    }

    pub(super) fn log_of(
        &self,
        level: LogLevel,
        text: &[u8],
        doing: &'static str,
        peer: Option<Arc<str>>,
        ctx: &mut FetchCtx<'_>,
    ) {
        let line = OriginLogLine { level, text: text.to_vec(), doing, peer };
        self.notify(OriginNews::Log(Box::new(line)), ctx);
    }

    /// Ends the attempt: frees its place and reports its result.
    pub(super) fn report_attempt(
        &self,
        trial: UpstreamTrial,
        status: u16,
        group: &Group,
        ctx: &mut FetchCtx<'_>,
    ) {
        let now = ctx.now.mono;
        let attempt = Attempt { status, is_over: true, ..trial.attempt(group, now) };
        drop(trial);
        ctx.pools.release(group);
        self.notify(OriginNews::Attempt(Box::new(attempt)), ctx);
    }

    /// Reports the result of the attempt, whose place stays taken.
    pub(super) fn report_end_of_attempt(
        &self,
        trial: &UpstreamTrial,
        status: u16,
        group: &Group,
        ctx: &mut FetchCtx<'_>,
    ) {
        let attempt = trial.attempt(group, ctx.now.mono);
        let attempt = Attempt { status, is_over: true, ..attempt };
        self.notify(OriginNews::Attempt(Box::new(attempt)), ctx);
    }

    /// No server of the group was tried.
    pub(super) fn report_group_attempt(&self, status: u16, ctx: &mut FetchCtx<'_>) {
        let Some(group) = &self.group else { return };
        let attempt = Attempt {
            peer: Arc::clone(group.name()),
            bond: None,
            status,
            connect_ms: None,
            header_ms: None,
            response_ms: 0,
            response_len: 0,
            bytes_received: 0,
            bytes_sent: 0,
            is_over: true,
        };
        self.notify(OriginNews::Attempt(Box::new(attempt)), ctx);
    }
}
