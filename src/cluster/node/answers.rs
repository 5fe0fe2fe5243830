//! What commands ask of a node and of Valkey.

use std::sync::mpsc::SyncSender;

use bolide_cluster::Peer;
use bolide_valkey::{StreamEntry, ValkeyFault};

use super::{Node, lock};
use crate::cluster::Told;
use crate::cluster::report::{ClusterPeer, ClusterPurge};
use crate::cluster::session::Session;

impl Node {
    /// The number up to which purges of this process are in the stream, and where the node stands.
    pub(super) fn progress(&self) -> Told<(u64, String)> {
        let position = self.machine.position().unwrap_or_default().to_string();
        self.connected().map(|_| (self.machine.confirmed(), position))
    }

    fn connected(&self) -> Result<&Session, String> {
        self.session.as_ref().ok_or_else(|| {
            let status = lock(&self.shared.status);
            let why = status.last_fault.as_deref().unwrap_or("the connection is being made");
            format!("this node is not connected to Valkey: {why}")
        })
    }

    pub(super) fn tell_peers(&mut self, reply: SyncSender<Told<Vec<ClusterPeer>>>) {
        let line = match self.connected() {
            Ok(session) => session.line().clone(),
            Err(why) => return drop(reply.try_send(Err(why))),
        };
        let own = self.setup.node.clone();
        let asked = async move {
            let now = line.time().await?;
            let nodes = line.nodes().await?;
            let read = |(name, text): (String, String)| {
                let peer = Peer::read(&text)?;
                let silent_ms = now.saturating_sub(peer.seen_ms);
                Some(ClusterPeer { is_self: name == own, name, position: peer.position, silent_ms })
            };
            let mut peers: Vec<_> = nodes.into_iter().filter_map(read).collect();
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

    pub(super) fn tell_purges(&mut self, count: usize, reply: SyncSender<Told<Vec<ClusterPurge>>>) {
        let line = match self.connected() {
            Ok(session) => session.line().clone(),
            Err(why) => return drop(reply.try_send(Err(why))),
        };
        if let Some(session) = &mut self.session {
            session.run(async move {
                let read = line.read_newest(count).await.map_err(|fault| fault.text);
                let told = read.map(|entries| {
                    let of = |entry: &StreamEntry| match entry.too_large {
                        Some(size) => ClusterPurge::too_large(entry.id, size),
                        None => ClusterPurge::of(entry.id, entry.bytes.as_deref()),
                    };
                    entries.iter().map(of).filter(|one| !one.purges.is_empty()).collect()
                });
                let _gone = reply.try_send(told);
                None
            });
        }
    }
}
