//! Messages to workers: bounded mailboxes with a bell.

use std::collections::VecDeque;
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Mutex, PoisonError};

use bolide_engine::Tally;
use bolide_engine::console::ConsoleOutcome;
use bolide_io::wake::Bell;

use crate::heartbeat::Pulse;
use crate::jobs::FinishedJob;
use crate::log::OpenLogs;
use crate::{Generation, Holdings};

/// LIMIT: messages in a mailbox that accepts another datagram.
const DATAGRAMS_BELOW: usize = 4096;
/// LIMIT: messages in a mailbox that accepts another notice of a free place.
const TURNS_BELOW: usize = 2 * DATAGRAMS_BELOW;

/// A message to a worker.
#[derive(Debug)]
pub enum Mail {
    /// Use this configuration for new requests, and these log files. A worker that was told to
    /// yield serves again.
    Configure(Arc<Generation>, OpenLogs),
    /// Release the files of a configuration that no request uses any more.
    Tidy,
    /// Write buffered lines and reopen the logs.
    Reopen(OpenLogs),
    /// Accept no new connections, finish requests, then wait.
    Yield,
    /// Serve again after [`Self::Yield`]; the configuration has its sockets anew.
    Resume,
    /// Accept no new connections, finish requests, then end.
    Quit,
    /// After an order to yield or quit: also end connections without a request so far.
    EndFresh,
    /// End now.
    Stop,
    /// After an order to yield or quit: end all requests now, and log them.
    Cut,
    /// A background job is done.
    Finished(FinishedJob),
    /// Report the resources that you hold.
    ReportHoldings(SyncSender<Holdings>),
    /// The exchange with this key waits for a fill that has progressed.
    FillProgress {
        /// Its key on the receiving worker.
        exchange: u64,
    },
    /// The result of a console's order.
    Commanded {
        /// The exchange that waits for it.
        exchange: u64,
        /// The result.
        outcome: Box<ConsoleOutcome>,
    },
    /// The result of a lookup at other nodes.
    Shared {
        /// The exchange that waits for it.
        exchange: u64,
        /// The object, or the permit to fetch it.
        answer: Box<bolide_cache::SharedAnswer>,
    },
    /// A place in the group with this number may be free for a waiting fetch of this worker.
    Turn {
        /// The number of the group in all configurations.
        group: u32,
    },
    /// A datagram that the kernel gave to the wrong worker.
    Datagram(Box<Strayed>),
}

/// A datagram for the worker that owns its connection.
#[derive(Debug)]
pub struct Strayed {
    /// The address of the receiving socket.
    pub(crate) at: Option<std::net::SocketAddr>,
    pub(crate) message: bolide_io::DatagramIn,
    pub(crate) bytes: Vec<u8>,
}

#[derive(Debug)]
struct Slot {
    notes: Mutex<VecDeque<Mail>>,
    bell: Bell,
    tally: Arc<Tally>,
    pulse: Arc<Pulse>,
}

/// The sender of a mailbox; a clone is cheap.
#[derive(Clone, Debug)]
pub struct Post(Arc<Slot>);

impl Mail {
    /// The most messages in a mailbox that still accepts this one. Orders, and messages that an
    /// exchange waits for, are always accepted: their senders limit their number.
    const fn room(&self) -> usize {
        match self {
            Self::Datagram(_) => DATAGRAMS_BELOW,
            Self::Turn { .. } => TURNS_BELOW,
            Self::Configure(..)
            | Self::Tidy
            | Self::Reopen(_)
            | Self::Yield
            | Self::Resume
            | Self::Quit
            | Self::EndFresh
            | Self::Stop
            | Self::Cut
            | Self::Finished(_)
            | Self::ReportHoldings(_)
            | Self::Commanded { .. }
            | Self::Shared { .. }
            | Self::FillProgress { .. } => usize::MAX,
        }
    }
}

/// The worker's end of a mailbox.
#[derive(Debug)]
pub struct Inbox(Arc<Slot>);

impl Inbox {
    /// A new mailbox.
    ///
    /// # Errors
    ///
    /// No descriptor is left for the bell.
    pub fn new() -> std::io::Result<(Post, Self)> {
        let (tally, pulse) = (Arc::default(), Arc::default());
        let slot = Arc::new(Slot { notes: Mutex::default(), bell: Bell::new()?, tally, pulse });
        Ok((Post(slot.clone()), Self(slot)))
    }

    pub(crate) fn bell(&self) -> &Bell {
        &self.0.bell
    }

    pub(crate) fn pulse(&self) -> Arc<Pulse> {
        self.0.pulse.clone()
    }

    /// Takes the oldest message.
    pub(crate) fn take(&self) -> Option<Mail> {
        self.0.notes.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
    }
}

impl Post {
    /// The worker's counters.
    #[must_use]
    pub fn tally(&self) -> Arc<Tally> {
        self.0.tally.clone()
    }

    /// The worker's activity.
    #[must_use]
    pub fn pulse(&self) -> Arc<Pulse> {
        self.0.pulse.clone()
    }

    /// Whether a message is waiting, for the simulator, which has no bells.
    #[must_use]
    pub fn has_mail(&self) -> bool {
        !self.0.notes.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    /// Puts a message into the mailbox and rings.
    ///
    /// # Errors
    ///
    /// Returns a datagram, or a notice of a free place, if the mailbox is full.
    pub fn send(&self, mail: Mail) -> Result<(), Mail> {
        let mut notes = self.0.notes.lock().unwrap_or_else(PoisonError::into_inner);
        if notes.len() >= mail.room() {
            return Err(mail);
        }
        let first = notes.is_empty();
        notes.push_back(mail);
        drop(notes);
        if first {
            self.0.bell.ring();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{DATAGRAMS_BELOW, Inbox, Mail, TURNS_BELOW};
    use crate::jobs::{FinishedJob, Output};

    #[test]
    fn a_full_box_takes_orders_and_results_and_nothing_else() {
        let (post, inbox) = Inbox::new().unwrap();
        let turn = || Mail::Turn { group: 1 };
        (0..TURNS_BELOW).for_each(|_| assert!(post.send(turn()).is_ok()));
        assert!(post.send(turn()).is_err());
        let result = FinishedJob { ticket: 7, output: Output::Checked(true) };
        assert!(post.send(Mail::Finished(result)).is_ok());
        assert!(post.send(Mail::Stop).is_ok());
        (0..TURNS_BELOW).for_each(|_| assert!(matches!(inbox.take(), Some(Mail::Turn { .. }))));
        assert!(matches!(inbox.take(), Some(Mail::Finished(FinishedJob { ticket: 7, .. }))));
        assert!(matches!(inbox.take(), Some(Mail::Stop)));
        assert!(inbox.take().is_none() && DATAGRAMS_BELOW < TURNS_BELOW);
    }
}
