//! Notes to workers: bounded mailboxes with a bell.

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

/// LIMIT: notes in a mailbox that takes another datagram.
const DATAGRAMS_BELOW: usize = 4096;
/// LIMIT: notes in a mailbox that takes word of another free place.
const TURNS_BELOW: usize = 2 * DATAGRAMS_BELOW;

/// One note.
#[derive(Debug)]
pub enum Mail {
    /// From now on requests are answered by this configuration, and logged in these files.
    Configure(Arc<Generation>, OpenLogs),
    /// A configuration that was replaced is gone, with all requests that went by it.
    Tidy,
    /// Write out what is buffered and open the logs again.
    Reopen(OpenLogs),
    /// Take no new connections, finish requests, then end. Told twice: end also those connections
    /// that have asked nothing yet.
    Quit,
    /// End now.
    Stop,
    /// End now, and log what is cut.
    Cut,
    /// A background job is done.
    Finished(FinishedJob),
    /// Tell what you hold.
    Tell(SyncSender<Holdings>),
    /// What the exchange with this key waits for has moved.
    News {
        /// Names it on the worker that gets this.
        exchange: u64,
    },
    /// What came of an order of a console.
    Commanded {
        /// The exchange that waits for it.
        exchange: u64,
        /// What was done, or why not.
        outcome: Box<ConsoleOutcome>,
    },
    /// What other nodes have for the exchange with this key.
    Shared {
        /// The exchange that waits for it.
        exchange: u64,
        /// It, or the permit to fetch it.
        answer: Box<bolide_cache::SharedAnswer>,
    },
    /// A place at an origin of the group with this number may be free for one of ours.
    Turn {
        /// Names the group in all configurations.
        group: u32,
    },
    /// A datagram that the kernel gave to the wrong worker.
    Datagram(Box<Strayed>),
}

/// A datagram on its way to the worker that owns its connection.
#[derive(Debug)]
pub struct Strayed {
    /// The address of the socket that it came to.
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

/// Sends notes to one worker. Cheap to copy.
#[derive(Clone, Debug)]
pub struct Post(Arc<Slot>);

impl Mail {
    /// How many notes may lie in a box that still takes this one. Orders, and notes that an
    /// exchange waits for, are always taken: their senders bound their number.
    const fn room(&self) -> usize {
        match self {
            Self::Datagram(_) => DATAGRAMS_BELOW,
            Self::Turn { .. } => TURNS_BELOW,
            Self::Configure(..)
            | Self::Tidy
            | Self::Reopen(_)
            | Self::Quit
            | Self::Stop
            | Self::Cut
            | Self::Finished(_)
            | Self::Tell(_)
            | Self::Commanded { .. }
            | Self::Shared { .. }
            | Self::News { .. } => usize::MAX,
        }
    }
}

/// The worker's end.
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

    /// The oldest note.
    pub(crate) fn take(&self) -> Option<Mail> {
        self.0.notes.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
    }
}

impl Post {
    /// What the worker counts.
    #[must_use]
    pub fn tally(&self) -> Arc<Tally> {
        self.0.tally.clone()
    }

    /// What the worker does.
    #[must_use]
    pub fn pulse(&self) -> Arc<Pulse> {
        self.0.pulse.clone()
    }

    /// Whether a note waits, for the simulator, which hears no bells.
    #[must_use]
    pub fn has_mail(&self) -> bool {
        !self.0.notes.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    /// Drops a note into the box and rings.
    ///
    /// # Errors
    ///
    /// Gives back a datagram, or word of a free place, when the box is full.
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
