//! The rest of the server, as far as fragments of a page with ESI need it.
//!
//! Responses come in the reverse order of the requests, so that a mix-up is detected.

use std::collections::BTreeMap;

use bolide_engine::{ConnInfo, Exchange, Pulled};
use bolide_http::RequestHead;

/// How a fragment is answered.
#[derive(Clone, Debug)]
pub enum FragmentReply {
    /// With this.
    Whole(Vec<u8>),
    /// With this, and then it breaks.
    Broken(Vec<u8>),
    /// With an error.
    Failed,
}

/// What there is to ask for, and what was asked.
#[derive(Debug, Default)]
pub struct Fragments {
    /// By path and query; what is not there fails.
    pub answers: BTreeMap<String, FragmentReply>,
    /// What was asked for, in order.
    pub asked: Vec<String>,
    /// Asked for and not answered: name of the exchange, target.
    open: Vec<(u64, String)>,
    /// On their way: what is left, and how it ends.
    running: BTreeMap<u64, (Vec<u8>, Pulled)>,
    /// How many were under way at once.
    pub most_at_once: usize,
    /// How often commands of SSI were done.
    pub rounds: usize,
    names: u64,
}

impl Fragments {
    /// Asks for what the page wants.
    pub fn begin(&mut self, page: &mut Exchange, conn: &ConnInfo) {
        let mut head = RequestHead::default();
        while page.as_parent().next_fragment(&mut head, conn).is_some() {
            let target = String::from_utf8_lossy(&head.target).into_owned();
            self.names += 1;
            page.as_parent().bind(self.names, false);
            self.asked.push(target.clone());
            self.open.push((self.names, target));
            self.most_at_once = self.most_at_once.max(self.open.len() + self.running.len());
        }
    }

    /// Lets one answer come; whether there was one.
    pub fn go_on(&mut self, page: &mut Exchange) -> bool {
        let Some((name, target)) = self.open.pop() else { return false };
        match self.answers.get(&target) {
            Some(FragmentReply::Whole(body)) => {
                self.running.insert(name, (body.clone(), Pulled::All));
                page.as_parent().accept_fragment(name, Vec::new());
            }
            Some(FragmentReply::Broken(body)) => {
                self.running.insert(name, (body.clone(), Pulled::Broken));
                page.as_parent().accept_fragment(name, Vec::new());
            }
            Some(FragmentReply::Failed) | None => page.as_parent().lose_fragment(name),
        }
        true
    }

    /// Gives the page up to `max` bytes of a fragment.
    ///
    /// # Panics
    ///
    /// When the page pulls from one that is not on its way.
    pub fn give(&mut self, page: &mut Exchange, name: u64, max: usize) {
        let (rest, end) = self.running.get_mut(&name).expect("only what was accepted is pulled");
        let later = rest.split_off(rest.len().min(max));
        let (now, end) = (std::mem::replace(rest, later), *end);
        let pulled = if rest.is_empty() { end } else { Pulled::Some };
        if !page.as_parent().take(name, &now, pulled) || pulled != Pulled::Some {
            self.running.remove(&name);
        }
    }

    /// Whether nothing is under way.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.open.is_empty() && self.running.is_empty()
    }
}
