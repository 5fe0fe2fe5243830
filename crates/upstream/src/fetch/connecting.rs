//! The connection of an attempt: established, failed, or not made at all.

use std::sync::Arc;

use bolide_conf::model::{LogLevel, PeerAddress};

use super::{Fetch, FetchState};
use crate::ctx::{CallHindrance, FetchCtx, FetchEffect, Left};
use crate::messages;
use crate::request::{Attempt, Cause, ConnectRefused, OriginNews};
use crate::retry::UpstreamFault;
use crate::trial::TrialLink;

impl Fetch {
    pub(super) fn handle_connected(&mut self, name: u64, ctx: &mut FetchCtx<'_>) {
        let Some(trial) = &mut self.trial else { return };
        let now = ctx.now.mono;
        trial.link.name = name;
        trial.connect_ms = Some(messages::millis(trial.began, now));
        trial.last_sent = now;
        trial.last_received = now;
        // Until the worker reports otherwise, the upstream blocks the sending.
        trial.left = Left::Blocked;
        self.state = FetchState::Asking;
        ctx.effects.push(FetchEffect::Send);
    }

    pub(super) fn handle_connect_failed(&mut self, errno: i32, ctx: &mut FetchCtx<'_>) {
        let Some(address) = self.address() else { return };
        if let Some(trial) = &mut self.trial {
            trial.link.held = false;
        }
        let (level, text) = messages::connect_failed(&address, errno);
        self.log(level, &text, messages::CONNECTING, ctx);
        self.fail(UpstreamFault::Error, messages::CONNECTING, ctx);
    }

    /// TLS credentials for the upstream are missing; another server would not help.
    pub(super) fn give_up(&mut self, text: &str, ctx: &mut FetchCtx<'_>) {
        self.log(LogLevel::Error, text.as_bytes(), messages::CONNECTING, ctx);
        if let (Some(trial), Some(group)) = (self.trial.take(), self.group.clone()) {
            self.report_attempt(trial, 0, &group, ctx);
        }
        self.refuse(ConnectRefused { status: 500, retry_after: None, cause: Cause::Error }, ctx);
    }

    /// As in nginx, this is a fault of this side: no server was tried, and none is blamed.
    pub(super) fn handle_not_called(&mut self, hindrance: CallHindrance, ctx: &mut FetchCtx<'_>) {
        let from = self.request.from.as_ref().map(|from| Arc::clone(&from.text));
        let (level, text) = messages::not_called(&from.unwrap_or_default(), hindrance);
        self.log(level, &text, messages::CONNECTING, ctx);
        let (Some(group), Some(trial)) = (self.group.clone(), self.trial.take()) else { return };
        let nobody = Arc::default();
        let began = trial.attempt(&group, ctx.now.mono);
        drop(trial);
        ctx.pools.release(&group);
        let attempt = Attempt { peer: nobody, status: 0, is_over: true, ..began };
        self.notify(OriginNews::Attempt(Box::new(attempt)), ctx);
        self.refuse(ConnectRefused { status: 500, retry_after: None, cause: Cause::Error }, ctx);
    }

    /// The idle connection was unusable: the same server again over a new one.
    pub(super) fn connect_afresh(&mut self, ctx: &mut FetchCtx<'_>) {
        let Some(address) = self.address() else { return };
        let Some(trial) = &mut self.trial else { return };
        trial.dialled = ctx.now.mono;
        trial.link = TrialLink { name: 0, served: 0, born: ctx.now.mono, held: true };
        trial.is_handshaking = false;
        trial.left = Left::Unready;
        trial.connect_ms = None;
        trial.sent = 0;
        self.state = FetchState::Connecting;
        ctx.effects.push(FetchEffect::Connect(address));
    }

    pub(super) fn address(&self) -> Option<PeerAddress> {
        let (group, trial) = (self.group.as_ref()?, self.trial.as_ref()?);
        Some(group.peers[trial.peer].address.clone())
    }
}
