//! Answers queries of commands about a node and Valkey.

use std::sync::mpsc::SyncSender;

use bolide_cluster::{EntryMark, Peer};
use bolide_valkey::{Line, StreamEntry, ValkeyFault};

use super::{ClusterNode, lock};
use crate::cluster::CommandResult;
use crate::cluster::report::{ClusterPeer, ClusterPurge};
use crate::cluster::session::{Session, mark};

impl ClusterNode {
    /// Up to which number purges of this process are in the stream, and the node's position.
    pub(super) fn progress(&self) -> CommandResult<(u64, EntryMark)> {
        let position = self.machine.mark().unwrap_or_default();
        // Purges that were confirmed before a loss may have disappeared from the stream: others
        // receive them by what this node still has to send.
        let sent = if self.is_owing() { 0 } else { self.machine.confirmed() };
        self.connected().map(|_| (sent, position))
    }

    fn connected(&self) -> Result<&Session, String> {
        self.session.as_ref().ok_or_else(|| {
            let status = lock(&self.shared.status);
            let why = status.last_fault.as_deref().unwrap_or("the connection is being made");
            format!("this node is not connected to Valkey: {why}")
        })
    }

    pub(super) fn answer_peers(
        &mut self,
        entry: Option<EntryMark>,
        reply: SyncSender<CommandResult<Vec<ClusterPeer>>>,
    ) {
        let line = match self.connected() {
            Ok(session) => session.line().clone(),
            Err(why) => return drop(reply.try_send(Err(why))),
        };
        let own = self.setup.node.clone();
        let asked = async move {
            let now = line.time().await?;
            let nodes = line.nodes().await?;
            let read = |(name, text): (String, String)| Some((name, Peer::read(&text)?));
            let found: Vec<_> = nodes.into_iter().filter_map(read).collect();
            let marks = found.iter().map(|(_, peer)| peer.position);
            let behind = marks_behind(&line, entry, marks).await?;
            let peer = |(name, peer): (String, Peer)| ClusterPeer {
                is_self: name == own,
                name,
                position: peer.position.id,
                silent_ms: now.saturating_sub(peer.seen_ms),
                has_entry: behind.contains(&peer.position),
            };
            let mut peers: Vec<_> = found.into_iter().map(peer).collect();
            peers.sort_by(|a, b| a.name.cmp(&b.name));
            Ok::<_, ValkeyFault>(peers)
        };
        if let Some(session) = &mut self.session {
            session.run(async move {
                let _gone = reply.try_send(asked.await.map_err(|fault| fault.text));
                None
            });
        }
    }

    pub(super) fn answer_purges(
        &mut self,
        count: usize,
        reply: SyncSender<CommandResult<Vec<ClusterPurge>>>,
    ) {
        let line = match self.connected() {
            Ok(session) => session.line().clone(),
            Err(why) => return drop(reply.try_send(Err(why))),
        };
        if let Some(session) = &mut self.session {
            session.run(async move {
                let read = line.read_newest(count).await.map_err(|fault| fault.text);
                let purges = read.map(|entries| {
                    let of = |entry: &StreamEntry| match entry.too_large {
                        Some(size) => ClusterPurge::too_large(entry.id, size),
                        None => ClusterPurge::of(entry.id, entry.bytes.as_deref()),
                    };
                    entries.iter().map(of).filter(|one| !one.purges.is_empty()).collect()
                });
                let _gone = reply.try_send(purges);
                None
            });
        }
    }
}

/// Which of these positions show that a node has an entry. After a loss the stream may reuse ids,
/// so that a greater id alone proves nothing: both entries have to exist.
async fn marks_behind(
    line: &Line,
    entry: Option<EntryMark>,
    positions: impl Iterator<Item = EntryMark>,
) -> Result<Vec<EntryMark>, ValkeyFault> {
    let Some(entry) = entry else { return Ok(Vec::new()) };
    let mut behind: Vec<EntryMark> = Vec::new();
    for position in positions.filter(|position| position.id >= entry.id) {
        if !behind.contains(&position) && is_there(line, position).await? {
            behind.push(position);
        }
    }
    if !is_there(line, entry).await? {
        behind.clear();
    }
    Ok(behind)
}

async fn is_there(line: &Line, wanted: EntryMark) -> Result<bool, ValkeyFault> {
    let found = line.read(wanted.id, 1).await?;
    Ok(found.first().is_some_and(|entry| mark(entry) == wanted))
}
