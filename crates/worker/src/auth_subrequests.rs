//! Questions: exchanges that say whether another one may come in.
//!
//! Owns their beginning and what is told of their end; whose they are is kept with the fragments.

use bolide_base::SlabKey;
use bolide_engine::{Exchange, Wake};
use bolide_io::Io;

use crate::exchanges::ActiveExchange;
use crate::worker::Worker;

impl<I: Io> Worker<I> {
    /// Asks what an exchange wants to know; the wake that it leads to at once, if any.
    pub(crate) fn start_question(&mut self, asker: SlabKey<ActiveExchange>) -> Option<Wake> {
        let mut head = self.core.heads.take();
        let found = self.core.exchanges.get_mut(asker).and_then(|live| {
            let question = live.exchange.pose(&mut head)?;
            Some((question, live.exchange.site()?.clone()))
        });
        let Some((question, site)) = found else {
            self.core.heads.put(head);
            return Some(Wake::Fragment);
        };
        let mut exchange = self.core.spare.pop().unwrap_or_else(|| Box::new(Exchange::new()));
        exchange.start_question(head, site, question);
        let Ok(child) = self.core.exchanges.insert(self.part_of(asker, exchange)) else {
            return Some(Wake::Fragment);
        };
        self.core.exchanges.get_mut(asker)?.children.push(child);
        self.step(child, Wake::Start);
        None
    }

    /// The head of an answer to a question is there; nobody wants the rest.
    pub(crate) fn answer_question(
        &mut self,
        child: SlabKey<ActiveExchange>,
        asker: SlabKey<ActiveExchange>,
    ) -> Option<Wake> {
        let (live, ctx) = self.lend(child)?;
        let verdict = live.exchange.verdict(&ctx)?;
        self.core.exchanges.get_mut(asker)?.exchange.take_verdict(verdict);
        Some(Wake::SendTimeout)
    }
}
