//! `proxy_store`: writes responses to files.
//!
//! Owns the temporary file until it is complete. A write error is logged once, and the client gets
//! its response all the same.

use std::sync::Arc;

use bolide_base::FileRef;
use bolide_conf::model::LogLevel;
use bolide_engine::{StoreOrder, stored_time};
use bolide_io::{FileFailure, Io};
use bolide_upstream::OriginNews;

use crate::env::WorkerEnv;
use crate::file_work::FileWork;
use crate::spooling::{create_named, describe_at};

/// Steps of a placement within the turn.
const STEPS_AT_ONCE: usize = 16;

/// A placement for the background thread, and the order that it belongs to.
pub(crate) type LongPlacement = (Box<FileWork>, Arc<StoreOrder>);

/// A response that is being stored.
#[derive(Debug)]
pub(crate) struct StoredAnswer {
    order: Arc<StoreOrder>,
    state: StoreState,
    /// Bytes written.
    at: u64,
    /// The declared length.
    declared: Option<u64>,
    modified: Option<i64>,
}

#[derive(Debug)]
enum StoreState {
    /// The head has not arrived.
    Waiting,
    /// Bytes are written; the first one creates the file.
    Writing(Option<(Box<[u8]>, FileRef)>),
    /// It is at its path, or was dropped.
    Over,
}

impl StoredAnswer {
    /// A response whose head has not arrived.
    pub(crate) fn new(order: Box<StoreOrder>) -> Self {
        let order = Arc::from(order);
        Self { order, state: StoreState::Waiting, at: 0, declared: None, modified: None }
    }

    /// Whether the rest of the response is needed.
    pub(crate) const fn is_storing(&self) -> bool {
        !matches!(self.state, StoreState::Over)
    }

    /// Takes an event of the fetch; returns a placement that is too long for the turn.
    pub(crate) fn handle_news<I: Io>(
        &mut self,
        news: &OriginNews,
        last: &mut u32,
        env: &mut WorkerEnv<I>,
    ) -> Option<LongPlacement> {
        match news {
            OriginNews::Head(head) if self.order.wants(head) => {
                debug_assert!(matches!(self.state, StoreState::Waiting), "a head comes once");
                self.declared = head.length();
                self.modified = stored_time(head);
                self.state = StoreState::Writing(None);
            }
            OriginNews::Head(_) | OriginNews::Failed(_) => self.forget(&mut env.io),
            OriginNews::Body(bytes) => {
                let left = self.declared.map_or(u64::MAX, |declared| declared - self.at);
                let len = bytes.len().min(usize::try_from(left).unwrap_or(usize::MAX));
                if let Err(failure) = self.write(&bytes[..len], last, &mut env.io) {
                    self.give_up(failure, env);
                }
            }
            OriginNews::End => return self.end(last, env),
            _ => {}
        }
        None
    }

    /// Removes the temporary file.
    pub(crate) fn forget(&mut self, io: &mut impl Io) {
        if let StoreState::Writing(Some((path, _))) =
            std::mem::replace(&mut self.state, StoreState::Over)
        {
            let _ = io.unlink(&path);
        }
    }

    fn write(&mut self, bytes: &[u8], last: &mut u32, io: &mut impl Io) -> Result<(), FileFailure> {
        let StoreState::Writing(made) = &mut self.state else { return Ok(()) };
        if made.is_none() {
            *made = Some(create_named(io, self.order.temp_path(), last)?);
        }
        let Some((_, file)) = made else { return Ok(()) };
        io.write_all_at(file, &mut self.at, bytes)?;
        debug_assert!(
            self.declared.is_none_or(|declared| self.at <= declared),
            "no more than was declared"
        );
        Ok(())
    }

    fn end<I: Io>(&mut self, last: &mut u32, env: &mut WorkerEnv<I>) -> Option<LongPlacement> {
        if self.declared.is_some_and(|declared| declared != self.at) {
            self.forget(&mut env.io);
            return None;
        }
        // An empty response has a file, too.
        if let Err(failure) = self.write(&[], last, &mut env.io) {
            self.give_up(failure, env);
            return None;
        }
        let state = std::mem::replace(&mut self.state, StoreState::Over);
        let StoreState::Writing(Some((path, file))) = state else { return None };
        let mut work = Box::new(FileWork::new(self.order.place(path, file, self.modified)));
        match work.go_on(&mut env.io, STEPS_AT_ONCE) {
            Some(outcome) => log_notes(&self.order, &outcome.notes, env),
            None => return Some((work, self.order.clone())),
        }
        None
    }

    fn give_up<I: Io>(&mut self, failure: FileFailure, env: &mut WorkerEnv<I>) {
        let text = describe_at(&failure, &self.order.temp_path().path);
        log_notes(&self.order, &[(LogLevel::Crit, text.into_bytes())], env);
        self.forget(&mut env.io);
    }
}

/// Logs an error.
pub(crate) fn log_notes<I: Io>(
    order: &StoreOrder,
    notes: &[(LogLevel, Vec<u8>)],
    env: &mut WorkerEnv<I>,
) {
    for (level, text) in notes {
        order.log(*level, text, env.now, &env.clock, &mut env.logs);
    }
}
