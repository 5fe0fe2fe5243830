//! Purges that reach every node of a cluster: a machine over the entries of a stream, without I/O.
//!
//! ```text
//!   purged here ──▶ outbox ──▶ batch ──▶ record ──▶ (stream, which orders all entries)
//!   (stream) ──▶ entry ──▶ what is new in it ──▶ the store's purges, once each, in order
//!                    └─ unreadable, missing or lost ──▶ all that this node keeps is dropped
//! ```
//! INVARIANT: a node that cannot know that it has heard of all purges drops what it keeps. So what
//! the machine rests on is evidence: numbers without gaps from each process, and the entry at its
//! own position, which has to be there still: the very entry, not another one with its id.
//!
//! Beside purges it owns what secrets are sealed with, whose turn of the keys it is
//! ([`KeyRing`]), and reports of limits ([`LimitReport`]).

mod machine;
mod peer;
mod position;
mod record;
mod report;
mod ring;
mod vault;

pub use machine::{ClusterMachine, EntryOutcome, Loss};
pub use peer::{LastLife, Peer};
pub use position::{EntryId, EntryMark, StreamFacts};
pub use record::{PurgeRecord, RecordFault};
pub use report::{LimitReport, ReportKind, ReportZone};
pub use ring::{KeyRing, RING_GRACE_MS, TimedKey};
pub use vault::{
    VAULT_KEY_LEN, Vault, VaultFault, VaultKeyId, VaultPurpose, VaultSecret, fresh_secret,
    read_vault_key,
};
