//! Processing of the stream's entries: purges of others are carried out, and an unreadable entry
//! counts as any purge.

use bolide_cluster::EntryOutcome;
use bolide_conf::model::LogLevel;
use bolide_valkey::StreamEntry;

use super::{ClusterNode, Topic, lock, place};
use crate::cluster::session::mark;

impl ClusterNode {
    /// Carries out the purges of others.
    pub(super) fn receive(&mut self, entries: &[StreamEntry]) {
        let (mut lost, mut done) = (None, 0);
        let store = &self.store;
        let (mut is_elsewhere, mut lacks, mut too_large) = (false, None, None);
        for entry in entries {
            let (before, had) = (store.generation(), self.machine.confirmed());
            let received = match entry.too_large {
                Some(size) => {
                    too_large = Some((entry.id, size));
                    self.machine.receive_too_large(entry.id)
                }
                None => self.machine.receive(entry.id, entry.bytes.as_deref(), |order| {
                    done += 1;
                    if !store.nodes().repeat(order) {
                        let space = String::from_utf8_lossy(order.namespace);
                        lacks = Some(space.escape_debug().to_string());
                    }
                }),
            };
            match received {
                EntryOutcome::Good | EntryOutcome::Known => {}
                EntryOutcome::Elsewhere => is_elsewhere = true,
                EntryOutcome::Lost(loss) => lost = Some(loss),
            }
            if received != EntryOutcome::Known {
                let confirmed = self.machine.confirmed();
                let before = (confirmed == had).then_some(before);
                store.nodes().record_entry(place(mark(entry)), before, confirmed);
            }
        }
        if let Some((id, size)) = too_large {
            let text = format!(
                "cluster: the entry {id} of the stream is too large to be read, and was skipped: \
                 it has {size} bytes"
            );
            self.log_limited(Topic::TooLarge, LogLevel::Error, &text);
        }
        if let Some(loss) = lost {
            self.lose(loss);
        }
        if is_elsewhere {
            let text = "cluster: an entry of another cluster is in the stream, and was skipped";
            self.log_limited(Topic::Elsewhere, LogLevel::Warn, text);
        }
        if let Some(space) = lacks {
            let text = format!(
                "cluster: a purge is of a part of the cache that this node has not: {space}; \
                 server_name, root and zones are to be the same on all nodes"
            );
            self.log_limited(Topic::NoSpace, LogLevel::Notice, &text);
        }
        self.write_purges();
        lock(&self.shared.status).received += done;
        self.acknowledge();
        // An own entry may have come back.
        self.send();
    }

    pub(super) fn write_purges(&mut self) {
        if self.store.disk().has_unwritten_purges() {
            bolide_worker::write_purges(&mut self.door, &self.store);
        }
    }
}
