//! Delivers queued wakes to exchanges, and does pending work for upstreams, between two reports.

use bolide_base::Bound;
use bolide_io::Io;

use crate::framing::StreamAct;
use crate::requests::Requests;

impl<I: Io> Requests<I> {
    /// Wakes exchanges with queued events, and fetches whose turn it is.
    #[inline]
    pub(crate) fn settle_origins(&mut self) {
        let mut bound = Bound::new();
        while (!self.env.news.is_empty()
            || self.exchanges.is_unsettled()
            || self.origins.is_unsettled())
            && bound.goes_on()
        {
            self.settle_some();
        }
    }

    /// Whether the next turn has work without a report.
    pub(crate) fn is_busy(&self) -> bool {
        self.clients.tcp.is_busy()
            || !self.clients.quic.dirty.is_empty()
            || !self.exchanges.resting.is_empty()
            || self.owes_origins()
    }

    /// Whether there is pending work for upstreams, or for exchanges because of them.
    fn owes_origins(&self) -> bool {
        self.origins.is_busy()
            || !self.spooling.is_idle()
            || self.exchanges.is_busy()
            || !(self.env.news.is_empty() && self.env.news.is_sent())
    }

    // PERF: out of line, as most turns have nothing to settle.
    #[inline(never)]
    fn settle_some(&mut self) {
        let mut bound = Bound::new();
        while bound.goes_on()
            && let Some((key, wake)) = self.env.news.take()
        {
            self.step(key, wake);
        }
        while let Some((key, wake)) = self.origins.named.pop_front() {
            self.origins.step_fetch(key, wake, &mut self.env, &mut self.exchanges);
        }
        while let Some(key) = self.exchanges.left.pop() {
            self.leave_if_alone(key);
        }
        while let Some(placement) = self.origins.placing.pop() {
            self.background.place(placement, &mut self.env);
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

    /// Does the upstream work of this turn: deferred reads, files, writes.
    pub(crate) fn turn_origins(&mut self) {
        if self.origins.unwaited.is_due() {
            self.origins.end_unwaited(&mut self.env, &mut self.exchanges);
        }
        self.settle_origins();
        if self.owes_origins() {
            self.serve_origins();
        }
    }

    // PERF: out of line, as most turns owe nothing.
    #[inline(never)]
    fn serve_origins(&mut self) {
        // Before anything is read: what comes in this turn is for the connection first.
        for (key, place) in self.spooling.take() {
            self.spool(key, place);
        }
        for key in std::mem::take(&mut self.exchanges.roomy) {
            self.origins.resume_fetch(key, &mut self.env, &mut self.exchanges);
        }
        for key in std::mem::take(&mut self.origins.links.again) {
            if let Some(link) = self.origins.links.table.get_mut(key) {
                link.queued = false;
            }
            self.origins.read_link(key, &mut self.env, &mut self.exchanges);
        }
        self.settle_origins();
        for key in std::mem::take(&mut self.origins.links.dirty) {
            self.origins.transmit_link(key, &mut self.env, &mut self.exchanges);
            // Credits sent bytes of request bodies to the clients' windows.
            while let Some((exchange, bytes)) = self.origins.freed.pop() {
                self.with_stream(exchange, StreamAct::Consumed(bytes));
            }
        }
        self.settle_origins();
    }
}
