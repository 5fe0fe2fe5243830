//! News find their exchanges, and what upstream servers are owed is done, between two reports.

use bolide_base::{Bound, SlabKey};
use bolide_io::Io;

use crate::framing::StreamAct;
use crate::links::UpstreamLink;
use crate::worker::Worker;

impl<I: Io> Worker<I> {
    /// Wakes the exchanges that origins have news for, and the fetches whose turn it is.
    #[inline]
    pub(crate) fn settle_origins(&mut self) {
        let mut bound = Bound::new();
        while self.is_unsettled() && bound.goes_on() {
            self.settle_some();
        }
    }

    /// Whether news waits for an exchange before the turn goes on.
    #[inline]
    fn is_unsettled(&self) -> bool {
        !self.env.news.is_empty() || self.exchanges.is_unsettled() || self.origins.is_unsettled()
    }

    /// Whether the next turn has something to do for requests though nothing is reported.
    pub(crate) fn is_busy(&self) -> bool {
        self.origins.is_busy()
            || !self.spooling.is_idle()
            || self.exchanges.is_busy()
            || !(self.env.news.is_empty() && self.env.news.is_sent())
    }

    fn settle_some(&mut self) {
        let mut bound = Bound::new();
        while bound.goes_on()
            && let Some((key, wake)) = self.env.news.take()
        {
            self.step(key, wake);
        }
        while let Some(key) = self.exchanges.left.pop() {
            self.leave_if_alone(key);
        }
        while let Some(fetch) = self.origins.unheard.pop() {
            self.origins.abandon_fetch(fetch, &mut self.env, &mut self.exchanges);
        }
        if !self.exchanges.family.is_idle() {
            self.settle_family();
        }
        if std::mem::take(&mut self.origins.stepped) {
            self.origins.take_turns(&mut self.env, &mut self.exchanges);
        }
    }

    /// Writes to an upstream server, and gives clients the room back of what left.
    fn transmit_link(&mut self, key: SlabKey<UpstreamLink>) {
        self.origins.transmit_link(key, &mut self.env, &mut self.exchanges);
        while let Some((exchange, bytes)) = self.origins.freed.pop() {
            self.with_stream(exchange, StreamAct::Consumed(bytes));
        }
    }

    /// What origins are owed in this turn: reads that were put off, files, writes.
    pub(crate) fn turn_origins(&mut self) {
        if self.origins.unwaited.is_due() {
            self.origins.end_unwaited(&mut self.env, &mut self.exchanges);
        }
        self.settle_origins();
        if !self.is_busy() {
            return;
        }
        for key in std::mem::take(&mut self.exchanges.roomy) {
            self.origins.resume_fetch(key, &mut self.env, &mut self.exchanges);
        }
        for key in std::mem::take(&mut self.origins.again) {
            if let Some(link) = self.origins.links.get_mut(key) {
                link.queued = false;
            }
            self.origins.read_link(key, &mut self.env, &mut self.exchanges);
        }
        self.settle_origins();
        for (key, place) in self.spooling.take() {
            self.spool(key, place);
        }
        self.settle_origins();
        for key in std::mem::take(&mut self.origins.dirty) {
            self.transmit_link(key);
        }
        self.settle_origins();
    }
}
