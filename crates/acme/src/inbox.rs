//! Requests of other threads: names that clients request in handshakes, and key changes of
//! accounts.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::Notify;

use crate::demand::is_demanded_name;
use crate::plan::OrderId;

/// LIMIT: waiting names; clients try again.
const WISHES_MAX: usize = 64;
/// LIMIT: waiting key changes.
const ROLLOVERS_MAX: usize = 8;

/// A directive's id, and a name.
type Wish = (OrderId, String);

/// A requested key change of an issuer's account, and the receiver of its result.
pub(crate) struct WantedRollover {
    pub(crate) issuer: String,
    pub(crate) reply: SyncSender<Result<(), String>>,
}

/// All clones share the content.
#[derive(Clone, Default)]
pub struct AcmeInbox {
    wishes: Arc<Mutex<BTreeSet<Wish>>>,
    rollovers: Arc<Mutex<Vec<WantedRollover>>>,
    bell: Arc<Notify>,
}

impl fmt::Debug for AcmeInbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AcmeInbox").finish_non_exhaustive()
    }
}

impl AcmeInbox {
    /// A client requested a certificate of this directive for a name; ignored if it is not a valid
    /// name.
    pub fn wish(&self, demand: &OrderId, name: &str) {
        let name = name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase();
        if !is_demanded_name(&name) {
            return;
        }
        let mut wishes = self.wishes.lock().unwrap_or_else(PoisonError::into_inner);
        let is_new = wishes.len() < WISHES_MAX && wishes.insert((demand.clone(), name));
        drop(wishes);
        if is_new {
            self.bell.notify_one();
        }
    }

    /// Requests a key change of the account at an issuer. The receiver gets the result; it is
    /// closed at once if too many wait.
    #[must_use]
    pub fn roll_over(&self, issuer: &str) -> Receiver<Result<(), String>> {
        let (reply, end) = sync_channel(1);
        let mut waiting = self.rollovers.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.len() < ROLLOVERS_MAX {
            waiting.push(WantedRollover { issuer: issuer.to_owned(), reply });
        }
        drop(waiting);
        self.bell.notify_one();
        end
    }

    pub(crate) fn take_wishes(&self) -> BTreeSet<Wish> {
        std::mem::take(&mut *self.wishes.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Takes those that may begin.
    pub(crate) fn take_rollovers(&self, may_begin: impl Fn(&str) -> bool) -> Vec<WantedRollover> {
        let mut waiting = self.rollovers.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.extract_if(.., |wanted| may_begin(&wanted.issuer)).collect()
    }

    pub(crate) fn bell(&self) -> Arc<Notify> {
        self.bell.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_names_wait_and_each_once() {
        let (inbox, id) = (AcmeInbox::default(), OrderId("a".into()));
        for name in ["A.com.", "a.com", "10.0.0.1", "a_b.com", ""] {
            inbox.wish(&id, name);
        }
        let taken = inbox.take_wishes().into_iter().collect::<Vec<_>>();
        assert_eq!(taken, [(id.clone(), "a.com".into())]);
        for n in 0..1000 {
            inbox.wish(&id, &format!("n{n}.com"));
        }
        assert_eq!(inbox.take_wishes().len(), WISHES_MAX);
    }

    #[test]
    fn few_changes_of_keys_wait_and_the_others_end_at_once() {
        let inbox = AcmeInbox::default();
        let ends: Vec<_> = (0..9).map(|_| inbox.roll_over("a")).collect();
        assert!(ends[8].recv().is_err());
        assert!(inbox.take_rollovers(|_| false).is_empty());
        assert_eq!(inbox.take_rollovers(|_| true).len(), ROLLOVERS_MAX);
    }
}
