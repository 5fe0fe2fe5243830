//! The reports of `bolide cluster`: this node, all nodes, the newest purges.

use bolide_cache::TagPurge;
use bolide_cache::disk::DiskPurgeTarget;
use bolide_cluster::{EntryId, PurgeRecord};
use bolide_engine::metrics::SharedObjectFigures;

use super::setup::{ClusterSetup, address};

/// The status of this node.
#[derive(Clone, Debug, Default)]
pub(crate) struct ClusterStatus {
    /// The address in the configuration; empty without a cluster.
    pub(crate) address: String,
    pub(crate) namespace: String,
    pub(crate) node: String,
    /// The server that it is connected to.
    pub(crate) connected: Option<String>,
    /// Whether it has carried out all purges that are in the stream.
    pub(crate) is_caught_up: bool,
    /// The last entry that it has carried out.
    pub(crate) position: EntryId,
    /// Purges of others that were carried out.
    pub(crate) received: u64,
    /// Purges of this process that are in the stream.
    pub(crate) sent: u64,
    /// Purges that wait to be sent.
    pub(crate) waiting: u64,
    /// How often the queue overflowed.
    pub(crate) overflows: u64,
    /// How often everything was purged, and the last reason.
    pub(crate) losses: u64,
    pub(crate) last_loss: Option<String>,
    /// Why there is no connection, or the last error.
    pub(crate) last_fault: Option<String>,
    /// Objects; none if they are not shared.
    pub(crate) objects: Option<SharedObjectFigures>,
    /// Attempts to connect.
    pub(crate) attempts: u64,
}

impl ClusterStatus {
    pub(super) fn new(setup: &ClusterSetup) -> Self {
        Self {
            address: address(&setup.settings),
            namespace: setup.conf.namespace.clone(),
            node: setup.node.clone(),
            ..Self::default()
        }
    }

    pub(super) const fn is_on(&self) -> bool {
        !self.address.is_empty()
    }

    /// Whether the status is not expected to improve soon.
    pub(super) const fn has_tried(&self) -> bool {
        self.is_caught_up || (self.last_fault.is_some() && self.connected.is_none())
    }
}

/// A node, by its last report.
#[derive(Clone, Debug)]
pub(crate) struct ClusterPeer {
    pub(crate) name: String,
    pub(crate) position: EntryId,
    /// The age of the report in milliseconds, by Valkey's clock.
    pub(crate) silent_ms: u64,
    pub(crate) is_self: bool,
    /// Whether it has the requested entry.
    pub(crate) has_entry: bool,
}

/// An entry of the stream.
#[derive(Clone, Debug)]
pub(crate) struct ClusterPurge {
    pub(crate) id: EntryId,
    /// The node that sent it.
    pub(crate) node: String,
    /// Its purges, a line each.
    pub(crate) purges: Vec<String>,
}

impl ClusterPurge {
    /// Describes an entry that cannot be read.
    pub(super) fn too_large(id: EntryId, size: u64) -> Self {
        let purges = vec![format!("unreadable, as it has {size} bytes")];
        Self { id, node: "?".to_owned(), purges }
    }

    /// Describes an entry.
    pub(super) fn of(id: EntryId, bytes: Option<&[u8]>) -> Self {
        let record = bytes.and_then(|bytes| PurgeRecord::read(bytes).ok());
        let purges = record.and_then(|record| record.purges());
        let (Some(record), Some(purges)) = (record, purges) else {
            return Self { id, node: "?".to_owned(), purges: vec!["unreadable".to_owned()] };
        };
        let line = |order: &bolide_cache::disk::DiskPurge<'_>| {
            let shown = |bytes: &[u8]| String::from_utf8_lossy(bytes).escape_debug().to_string();
            let what = match order.target {
                DiskPurgeTarget::Tag(tag) => format!("tag {}", shown(tag)),
                DiskPurgeTarget::TagsFrom(start) => format!("tag {}*", shown(start)),
                DiskPurgeTarget::Url(url) => format!("url {}", shown(url)),
                DiskPurgeTarget::UrlsFrom(start) => format!("url {}*", shown(start)),
                DiskPurgeTarget::All => "all".to_owned(),
                DiskPurgeTarget::Private => "private".to_owned(),
                DiskPurgeTarget::Everything => "everything".to_owned(),
                DiskPurgeTarget::Matching(_, text) => format!("matching {}", shown(text)),
            };
            let space = shown(order.namespace);
            // Sessions are secrets of visitors.
            let session = if order.session.is_empty() { "" } else { ", of one session" };
            let how = if order.how == TagPurge::Stale { ", stale" } else { "" };
            format!("{what}{session}{how} ({space})")
        };
        let node = String::from_utf8_lossy(record.node).escape_debug().to_string();
        Self { id, node, purges: purges.iter().map(line).collect() }
    }
}
