//! Buffers a request body, and reopens the client's window.

use bolide_base::{Retain, Spool, SpoolLimits};
use bytes::Bytes;

use super::{FileHolds, Named, Plan, RequestUpload, UploadProgress};
use crate::ctx::StepEffect;

impl RequestUpload {
    /// Starts to buffer: up to this many bytes in memory, the rest in a file.
    pub(crate) fn collect(
        &mut self,
        memory: usize,
        file: FileHolds,
        effects: &mut Vec<StepEffect>,
    ) -> UploadProgress {
        debug_assert_ne!(self.plan, Plan::Refused, "what is discarded is not collected");
        debug_assert!(self.spool.is_none(), "a body is collected once");
        self.named = match file {
            FileHolds::Always { is_removed } => {
                Some(Box::new(Named { path: Box::default(), is_removed }))
            }
            FileHolds::Rest | FileHolds::Everything => None,
        };
        let memory = if self.named.is_some() { 0 } else { memory };
        let limits = SpoolLimits { memory, file: u64::MAX };
        self.plan = Plan::Collected;
        self.spool = Some(Box::new(Spool::new(limits, Retain::Yes)));
        self.whole_above = (file != FileHolds::Rest).then_some(memory);
        for bytes in std::mem::take(&mut self.early) {
            self.push(bytes);
        }
        if !self.is_complete && !self.foreseen.is_whole {
            effects.push(StepEffect::WantBody(bolide_base::limits::COLLECTED_WINDOW));
        }
        self.settle(effects)
    }

    /// The state of buffering; reopens the window when all bytes are stored.
    pub(crate) fn settle(&mut self, effects: &mut Vec<StepEffect>) -> UploadProgress {
        let Some(spool) = &mut self.spool else { return UploadProgress::Failed };
        if spool.is_broken() {
            return UploadProgress::Failed;
        }
        // A file with a name is created even for an empty body.
        let is_missing = self.is_complete && self.named.is_some() && spool.file().is_none();
        if spool.wants_writing() || is_missing {
            return UploadProgress::Writing;
        }
        if self.owed > 0 {
            effects.push(StepEffect::BodyConsumed(self.owed));
            self.owed = 0;
        }
        if !self.is_complete {
            return UploadProgress::Waiting;
        }
        debug_assert_eq!(self.owed, 0, "all room is given back before a body counts as complete");
        spool.finish();
        UploadProgress::Complete
    }

    /// Reopens the window for discarded bytes.
    pub(crate) fn give_back(&mut self, effects: &mut Vec<StepEffect>) {
        let early: usize = self.early.iter().map(Bytes::len).sum();
        let len = early + std::mem::take(&mut self.owed);
        self.early.clear();
        if len > 0 {
            effects.push(StepEffect::BodyConsumed(len));
        }
    }

    /// Discards the body, whatever happens to the request: drops what has arrived, and what still
    /// arrives.
    pub(crate) fn refuse(&mut self, effects: &mut Vec<StepEffect>) {
        self.give_back(effects);
        self.plan = Plan::Refused;
        self.spool = None;
        if !self.is_complete {
            effects.push(StepEffect::DiscardBody);
        }
    }
}
