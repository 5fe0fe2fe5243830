//! How a node finds its position in the stream, and what it does when it may have missed entries.

use std::collections::HashMap;
use std::pin::pin;
use std::task::Poll;

use bolide_cluster::{EntryId, EntryMark, Loss, Peer, PurgeRecord, StreamFacts};
use bolide_conf::model::LogLevel;
use bolide_valkey::{Line, StreamEntry, ValkeyFault, ValkeyFaultKind};

use super::{ClusterNode, Topic, lock, place, place_from};
use crate::cluster::ClusterMail;
use crate::cluster::objects::Carrier;
use crate::cluster::session::{Session, facts, gone, mark};

/// The position at which a reply was too large, or too late.
#[derive(Debug, Default)]
pub(super) struct Strike(Option<Option<EntryId>>);

impl Strike {
    /// Records such a reply. Returns whether there was one at this position before.
    fn again(&mut self, at: Option<EntryId>) -> bool {
        self.0.replace(at) == Some(at)
    }

    /// Entries after the position can be read.
    pub(super) const fn forget(&mut self) {
        self.0 = None;
    }
}

impl ClusterNode {
    /// Connects, and finds out what this node has missed.
    pub(super) async fn open(&mut self) -> Result<(), ValkeyFault> {
        let lines = self.connect().await?;
        let line = lines.1.clone();
        self.server_ms = line.time().await?;
        let joined = self.join(lines).await;
        if joined.as_ref().is_err_and(|fault| fault.kind == ValkeyFaultKind::Late) {
            self.reduce_reads();
        }
        joined
    }

    /// Entries were not read in time. If it was a single one, it counts as too large.
    pub(super) const fn reduce_reads(&mut self) {
        self.has_oversize |= self.read_size.reduce();
    }

    /// Finds out on a new connection what this node has missed, and begins to read.
    async fn join(&mut self, lines: (Line, Line)) -> Result<(), ValkeyFault> {
        let line = lines.1.clone();
        if self.has_oversize {
            // An entry that is too large is skipped by its reader, if it can be left out of a reply
            // and that has not failed before.
            let can_leave_out = line.can_leave_out().await?;
            let again = self.strike.again(self.machine.position());
            self.has_oversize = !can_leave_out || again;
        }
        let stored = match self.machine.position() {
            None => self.find_stored(&line).await?,
            Some(_) => None,
        };
        if std::mem::take(&mut self.has_oversize) {
            self.skip_oversize(&line, stored).await?;
        } else {
            self.find_place(&line, stored).await?;
        }
        if std::mem::take(&mut self.has_past) {
            let read = self.read_past(&line).await;
            if !matches!(read, Ok(true)) {
                // It is not known what is missing.
                let known = self.machine.mark().unwrap_or_default();
                self.store.sharing().reset(place(known), self.store.generation());
            }
            read?;
        }
        self.sessions += 1;
        let place = line.place().to_string();
        let mut session = Session::new(self.sessions, lines, self.mail.clone());
        session.read_from(self.machine.mark().unwrap_or_default(), self.read_size, false);
        if self.store.sharing().is_open() {
            session.carry(Carrier {
                connector: self.connector.clone(),
                clock: self.clock.clone(),
                like: line,
                store: self.store.clone(),
                setup: self.setup.clone(),
                life: self.machine.life(),
                leases: self.leases.clone(),
                mail: self.mail.clone(),
                number: self.sessions,
            });
        }
        self.session = Some(session);
        (self.is_full, self.is_acknowledging, self.acknowledge_again) = (false, false, false);
        let text = format!("cluster: connected to {place}");
        self.log_limited(Topic::Connected, LogLevel::Notice, &text);
        let mut status = lock(&self.shared.status);
        status.connected = Some(place);
        status.last_fault = None;
        drop(status);
        self.publish();
        Ok(())
    }

    /// The position of this node when its last process ended. Shared objects need proof that no
    /// purge of earlier processes is missing in the stream; otherwise only newer objects count.
    async fn find_stored(&mut self, line: &Line) -> Result<Option<EntryMark>, ValkeyFault> {
        let text = line.node(&self.setup.node).await?;
        let fence = self.last.fence(text.as_deref());
        self.fence = match fence {
            Some(fence) => fence,
            // All entries from now on. The entry at the end of the stream may be too large itself.
            None if self.has_oversize => self.greet(line).await?.id,
            None => line.state().await?.map_or(EntryId::ZERO, |state| state.last.next()),
        };
        if self.store.sharing().is_open() {
            self.begin_sharing();
            self.has_past = fence.is_some();
            if fence.is_none() {
                // So that there is an entry.
                let _id = self.greet(line).await?;
            }
        }
        Ok(text.and_then(|text| Peer::read(&text)).map(|peer| peer.position))
    }

    fn begin_sharing(&self) {
        // Queued purges may be from before objects were shared.
        let counts = self.store.outbox().counts();
        let barrier = if counts.waiting > 0 { counts.last } else { 0 };
        self.store.sharing().begin(place_from(self.fence), barrier);
    }

    /// Reads the retained purges that were carried out, or made unnecessary by dropping everything,
    /// before this process: objects of other nodes may be from that time. Returns whether all up to
    /// the position of this node were there.
    async fn read_past(&self, line: &Line) -> Result<bool, ValkeyFault> {
        let Some(until) = self.machine.mark() else { return Ok(false) };
        let first = line.state().await?.and_then(|state| state.first);
        let Some(first) = first else { return Ok(false) };
        self.begin_sharing();
        let mut sequences = HashMap::new();
        let mut last = None;
        loop {
            let from = last.map_or(first, |last: EntryMark| last.id);
            let entries = line.read(from, self.read_size.past()).await?;
            let known = usize::from(last.is_some());
            let is_whole =
                last.is_none_or(|last| entries.first().is_some_and(|it| mark(it) == last));
            let new = entries.get(known..).unwrap_or_default();
            let new = new.iter().take_while(|entry| entry.id <= until.id);
            let before = last;
            for entry in new {
                self.record_past(entry, &mut sequences);
                last = Some(mark(entry));
            }
            if !is_whole {
                // Entries were trimmed meanwhile, perhaps unread ones.
                return Ok(false);
            }
            if last == before {
                return Ok(last == Some(until));
            }
        }
    }

    fn record_past(&self, entry: &StreamEntry, sequences: &mut HashMap<u64, u64>) {
        let before = self.store.generation();
        let record = entry.bytes.as_deref().and_then(|bytes| PurgeRecord::read(bytes).ok());
        let is_elsewhere =
            record.is_some_and(|record| record.cluster != self.setup.conf.namespace.as_bytes());
        let purges = record.filter(|_| !is_elsewhere).and_then(|it| Some((it.life, it.purges()?)));
        let mut is_whole = is_elsewhere || purges.is_some();
        if let Some((life, purges)) = purges
            && let [first, ..] = &*purges
        {
            let known = sequences.insert(life, purges.last().unwrap_or(first).sequence);
            is_whole = known.is_none_or(|known| is_next(known, first.sequence));
            purges.iter().for_each(|order| self.store.nodes().record_past_purge(order));
        }
        self.store.nodes().record_entry(place(mark(entry)), Some(before), 0);
        if !is_whole {
            self.store.sharing().reset(place(mark(entry)), self.store.generation());
        }
    }

    /// Whether no purge of this process is missing in the stream.
    fn is_all_sent(&self) -> bool {
        let counts = self.store.outbox().counts();
        counts.waiting == 0 && !self.machine.is_sending() && !self.is_owing()
    }

    /// Records that all purges of this process are in the stream: in Valkey, and on this machine.
    pub(super) async fn publish_end(&mut self) {
        let place = self.machine.mark().filter(|_| self.is_all_sent());
        if let (Some(session), Some(position)) = (&self.session, place) {
            let (life, seen_ms, fence) = (self.machine.life(), self.server_ms, self.fence);
            let peer = Peer { life, position, seen_ms, fence, has_ended: true };
            let stored = session.line().set_node(&self.setup.node, &peer.line()).await;
            if stored.is_ok() && self.is_all_sent() {
                lock(&self.shared.mark).end(life);
            }
        }
    }

    /// Releases the leases of this server, because this thread does not offer what is fetched.
    /// Without an answer they last for their time.
    pub(super) async fn release_leases(&self) {
        let Some(session) = &self.session else { return };
        for (key, token) in self.store.sharing().take_leases() {
            if session.line().release(key, &token).await.is_err() {
                return;
            }
        }
    }

    /// Connects, unless the thread is told to end.
    async fn connect(&mut self) -> Result<(Line, Line), ValkeyFault> {
        let mut opening = pin!(self.connector.open());
        let (orders, kept) = (&mut self.orders, &mut self.kept);
        std::future::poll_fn(|context| {
            while let Poll::Ready(Some(mail)) = orders.poll_recv(context) {
                let is_end = matches!(mail, ClusterMail::End | ClusterMail::Replace);
                kept.push_back(mail);
                if is_end {
                    let text = "the server ends, or its configuration is another one".to_owned();
                    return Poll::Ready(Err(ValkeyFault { kind: ValkeyFaultKind::Broken, text }));
                }
            }
            opening.as_mut().poll(context)
        })
        .await
    }

    /// Finds out whether this node has missed entries that cannot be read any more.
    async fn find_place(
        &mut self,
        line: &Line,
        stored: Option<EntryMark>,
    ) -> Result<(), ValkeyFault> {
        let mut state = line.state().await?;
        if state.is_none_or(|state| state.newest.is_none()) {
            self.greet(line).await?;
            state = line.state().await?;
        }
        let state = state.ok_or_else(gone)?;
        let position = self.machine.attach(stored);
        let found = line.read(position.id, 1).await?;
        let has_position = found.first().is_some_and(|entry| mark(entry) == position);
        let is_good = self.check(&facts(line, &state, has_position).await?);
        if !is_good {
            // So that an entry follows the end.
            let _id = self.greet(line).await?;
        }
        Ok(())
    }

    /// Continues after an entry that is too large, without requesting what may contain it.
    async fn skip_oversize(
        &mut self,
        line: &Line,
        stored: Option<EntryMark>,
    ) -> Result<(), ValkeyFault> {
        self.machine.attach(stored);
        let mark = self.greet(line).await?;
        self.machine.skip_to(mark);
        // The skipped part was not examined: the stream may have lost own purges, too.
        self.fence = mark.id;
        self.lose(Loss::TooLarge);
        Ok(())
    }

    async fn greet(&mut self, line: &Line) -> Result<EntryMark, ValkeyFault> {
        let hello = self.machine.hello();
        let id = line.add(&hello, self.setup.conf.purge_keep_count.into()).await?;
        Ok(EntryMark::of(id, Some(&hello)))
    }

    /// The entry at the position of this node does not exist any more.
    pub(super) fn go_astray(&mut self, facts: &StreamFacts) {
        let is_good = self.check(facts);
        let position = self.machine.mark().unwrap_or_default();
        let (hello, keep) = (self.machine.hello(), self.setup.conf.purge_keep_count);
        let Some(session) = &mut self.session else { return };
        // An empty stream without room for an entry has no position to continue from.
        let is_again = std::mem::replace(&mut self.is_astray, true);
        session.read_from(position, self.read_size, is_again);
        if !is_good {
            session.greet(hello, keep.into());
        }
    }

    /// Whether the stream still has all received entries. If not, own purges may be missing as
    /// well, and objects be from before them: only places from now on count. A fill with such a
    /// place began after all purges of this node so far.
    fn check(&mut self, facts: &StreamFacts) -> bool {
        let Err(loss) = self.machine.check(facts) else { return true };
        if loss.is_of_stream() {
            // The previous fence may belong to another history of the stream, with greater ids.
            self.fence = facts.last.next();
            if self.store.sharing().is_open() {
                self.begin_sharing();
            }
        }
        self.lose(loss);
        !loss.is_of_stream()
    }

    /// Purges may have been missed: no cached object can be trusted.
    pub(super) fn lose(&mut self, loss: Loss) {
        self.store.drop_everything();
        self.write_purges();
        let known = self.machine.mark().unwrap_or_default();
        self.store.sharing().reset(place(known), self.store.generation());
        if loss.concerns_others() {
            self.store.outbox().push_everything();
            self.owes = Some(self.store.outbox().counts().last);
        }
        let text = format!("cluster: all cached pages are dropped: {}", loss.text());
        match loss {
            Loss::NoPosition => self.log_limited(Topic::Joining, LogLevel::Notice, &text),
            _ => self.log_limited(Topic::Loss, LogLevel::Warn, &text),
        }
        let mut status = lock(&self.shared.status);
        status.losses += 1;
        status.last_loss = Some(loss.text().to_owned());
    }
}

/// Whether no purge of a process is missing between the last known one and `first`. Numbers are as
/// large as who wrote the entries made them.
const fn is_next(known: u64, first: u64) -> bool {
    first <= known.saturating_add(1)
}

#[cfg(test)]
mod tests {
    use super::{EntryId, Strike, is_next};

    #[test]
    fn purges_follow_each_other_up_to_the_last_number() {
        for (known, first, wanted) in
            [(0, 1, true), (7, 8, true), (7, 3, true), (7, 9, false), (0, u64::MAX, false)]
        {
            assert_eq!(is_next(known, first), wanted, "{known}, {first}");
        }
        assert!(is_next(u64::MAX, 0) && is_next(u64::MAX, u64::MAX));
        assert!(is_next(u64::MAX - 1, u64::MAX));
    }

    #[test]
    fn a_second_strike_is_at_the_same_place() {
        let (mut strike, here) = (Strike::default(), Some(EntryId { ms: 1, number: 0 }));
        assert!(!strike.again(None), "the first one");
        assert!(!strike.again(here), "it has moved");
        assert!(strike.again(here));
        strike.forget();
        assert!(!strike.again(here), "it was read meanwhile");
    }
}
