//! How a node finds its place in the stream, and what it does when it cannot have heard of all.

use std::pin::pin;
use std::task::Poll;

use bolide_cluster::{EntryId, Loss, Peer};
use bolide_conf::model::LogLevel;
use bolide_valkey::{Line, ValkeyFault, ValkeyFaultKind};

use super::{Node, Topic, lock};
use crate::cluster::ClusterMail;
use crate::cluster::session::{Session, facts, gone};

impl Node {
    /// Connects, and finds out what this node has missed.
    pub(super) async fn open(&mut self) -> Result<(), ValkeyFault> {
        let lines = self.connect().await?;
        let line = lines.1.clone();
        self.server_ms = line.time().await?;
        let stored = match self.machine.position() {
            None => line.node(&self.setup.node).await?.and_then(|text| Peer::read(&text)),
            Some(_) => None,
        };
        let stored = stored.map(|peer| peer.position);
        if std::mem::take(&mut self.has_oversize) {
            self.skip_oversize(&line, stored).await?;
        } else {
            self.find_place(&line, stored).await?;
        }
        self.sessions += 1;
        let place = line.place().to_string();
        let mut session = Session::new(self.sessions, lines, self.mail.clone());
        session.read_from(self.machine.position().unwrap_or_default());
        self.session = Some(session);
        (self.is_full, self.is_acknowledging, self.acknowledge_again) = (false, false, false);
        let text = format!("cluster: connected to {place}");
        self.tell(Topic::Connected, LogLevel::Notice, &text);
        let mut status = lock(&self.shared.status);
        status.connected = Some(place);
        status.last_fault = None;
        drop(status);
        self.publish();
        Ok(())
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

    /// Finds out whether this node has missed something that cannot be heard any more.
    async fn find_place(
        &mut self,
        line: &Line,
        stored: Option<EntryId>,
    ) -> Result<(), ValkeyFault> {
        let mut state = line.state().await?;
        if state.is_none_or(|state| state.newest.is_none()) {
            self.greet(line).await?;
            state = line.state().await?;
        }
        let state = state.ok_or_else(gone)?;
        let position = self.machine.attach(stored);
        let found = line.read(position, 1).await?;
        let has_position = found.first().is_some_and(|entry| entry.id == position);
        if let Err(loss) = self.machine.check(&facts(&state, has_position)) {
            self.lose(loss);
        }
        Ok(())
    }

    /// Goes on behind an entry that is too large, without asking for what may hold it.
    async fn skip_oversize(
        &mut self,
        line: &Line,
        stored: Option<EntryId>,
    ) -> Result<(), ValkeyFault> {
        self.machine.attach(stored);
        let id = self.greet(line).await?;
        self.machine.skip_to(id);
        self.lose(Loss::TooLarge);
        Ok(())
    }

    async fn greet(&self, line: &Line) -> Result<EntryId, ValkeyFault> {
        line.add(&self.machine.hello(), self.setup.conf.purge_keep_count.into()).await
    }

    /// Purges may have been missed: nothing of what is kept can be trusted.
    pub(super) fn lose(&mut self, loss: Loss) {
        self.store.drop_everything();
        self.write_purges();
        if loss.concerns_others() {
            self.store.outbox().push_everything();
            self.owes = Some(self.store.outbox().counts().last);
        }
        let text = format!("cluster: all cached pages are dropped: {}", loss.text());
        match loss {
            Loss::NoPosition => self.tell(Topic::Joining, LogLevel::Notice, &text),
            _ => self.tell(Topic::Loss, LogLevel::Warn, &text),
        }
        let mut status = lock(&self.shared.status);
        status.losses += 1;
        status.last_loss = Some(loss.text().to_owned());
    }
}
