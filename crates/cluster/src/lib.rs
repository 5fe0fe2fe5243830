//! Purges that reach every node of a cluster: a state machine over the entries of a stream, without
//! I/O.
//!
//! ```text
//!   purged here ──▶ outbox ──▶ batch ──▶ record ──▶ (stream, which orders all entries)
//!   (stream) ──▶ entry ──▶ new purges in it ──▶ the store's purges, once each, in order
//!                    └─ unreadable, missing or lost ──▶ this node drops its whole cache
//! ```
//! INVARIANT: a node that cannot prove that it has received all purges drops its cache. The proof
//! is numbers without gaps from each process, and that the entry at its own position is still in
//! the stream: the same entry, not another one with its id.
//!
//! Beside purges the crate owns the encryption of shared secrets, the rotation of their keys
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
