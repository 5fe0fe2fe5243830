//! The response cache: one in-memory store for the whole process, with request coalescing.
//!
//! Owns the objects in memory, their index, tags and purges, fills and their followers, eviction
//! and its limits. It uses no socket and no disk and reads no clock. The caller decides whether a
//! response may be stored and for how long, and posts the wakes that the store returns.
//!
//! # How a worker uses it
//!
//! ```text
//! once per process   let store = Store::new(StoreLimits { .. }, seed);      // Arc<Store>
//!                    let site = store.namespace(b"vhost-a");                // at each reload
//! once per worker    let mut front = store.front(worker);                   // hits without a lock
//! each turn          front.poll_orphans() -> Wakes     // waiters of dropped permits: post by mail
//!                    front.tend(budget)                // drops purged and evicted objects
//! when idle          store.sweep(budget, now_ms)       // frees dead objects
//! ```
//!
//! # How an exchange uses it
//!
//! ```text
//! let mut keys = KeyBuilder::default();             // kept by the exchange, memory reused
//! keys.start(site);
//! keys.push_url(b"https://a.test/page?x=1");        // before rewrites, query as modified
//! keys.push_vary(b"_lscache_vary=abc;");            // any number of times, order matters
//! match front.lookup(&keys.private(session), now_ms)  // private first, then
//!       front.lookup(&keys.public(), now_ms) {
//!   Lookup::Hit(object)            object.fields(&mut fields), body(), variant(coding)
//!   Lookup::Stale(object, permit)  serve it; with a permit also revalidate in the background
//!   Lookup::Vary(names)            for name in names.vary_names(): keys.push_vary(value); again
//!   Lookup::Miss(permit)           follow it: permit.follow(), then start a Fill with it
//!   Lookup::Join(follower)         follower.wait(Waiter { worker, exchange }), then poll
//!   Lookup::Pass                   known to be uncacheable: pass the request
//! }
//! front.find_fresh(&keys.private(session), now_ms)  // a lookup that never fetches
//! ```
//! The filler: `permit.stale()` is the object to revalidate or to serve on an error;
//! `permit.begin(ObjectHead, &Tags) -> Wakes`, `permit.append(Bytes) -> Wakes`, then one of
//! `commit() -> Committed { object, wakes }`, `freshen(ObjectHead, &Tags)` (304),
//! `abandon(AbandonReason::{Uncacheable { until_ms }, Failed { .. }, Gone}) -> Wakes`, or
//! `move_to(key, asked_by) -> Moved { permit, wakes }` when the response belongs under another key
//! (`store.remember_vary(base_key, names)` first when the response has a new `Vary`). Dropping a
//! permit abandons the fill.
//!
//! The follower: `poll() -> Follow::{Waiting, Head, Again}`; after `Head`, `head()` and `read() ->
//! GrowthRead::{Bytes, Pending, End, Broken}`; on `Waiting` and `Pending` `wait(Waiter) ->
//! Waited::{Registered, Moved}`. A registration is good for one wake.
//!
//! Purges: `store.purge_tag(site, TagScope::{Public, Session(session)}, tag, TagPurge::{Dead,
//! Stale})` (a trailing `*` is a prefix), `purge_url(key, how)` (all variants), `purge_all(site,
//! how)`, `purge_private(site, Some(session) | None, how)`. Each returns the number of purged
//! objects.

mod bans;
mod decisions;
pub mod disk;
mod fills;
mod front;
mod growing;
mod held;
mod key;
mod namespaces;
mod object;
mod outbox;
mod peek;
mod permit;
mod purging;
mod readers;
mod removed;
pub mod rules;
mod segments;
mod sessions;
mod shard;
mod shared;
mod sharing;
mod stats;
mod store;
mod store_index;
mod tags;
mod whole;

pub use bans::{BanKind, BanTerm, ban_error, ban_text, url_parts};
pub use decisions::{DECISIONS_MAX, DecisionClass, DecisionNote, DecisionRecord};
pub use fills::FillMoment;
pub use front::{Front, Memo};
pub use growing::{Follow, Follower, GrowingObject, GrowthRead, Waited, Waiter, Wakes};
pub use key::{CacheKey, KEY_SIZE_MAX, KeyBuilder, NamespaceId, SessionKey};
pub use namespaces::Namespaces;
pub use object::is_marked as is_esi;
pub use object::{
    EARLIER_TAGS, ESI_MARK, Object, ObjectHead, ObjectKind, ObjectVariant, Outside, PAGE_ID, Times,
};
pub use outbox::{OutboxBatch, OutboxCounts, PurgeOutbox};
pub use peek::Tagged;
pub use permit::{AbandonReason, Committed, FillPermit, Moved};
pub use purging::purge_here;
pub use removed::{purge_emptied, purge_removed};
pub use shared::{
    AskedBy, SharedAnswer, SharedAsk, SharedLease, SharedOffer, SharedOrder, SharedQuestion,
    SharedUnfit, Sharing, SharingCount, SharingCounts, StreamPlace,
};
pub use sharing::Nodes;
pub use stats::{NamespaceStats, StoreStats};
pub use store::{Freshness, Lookup, Store, StoreLimits};
pub use store_index::StoreIndex;
pub use tags::{TAGS_MAX, TAGS_SIZE_MAX, TagPurge, TagScope, TagTable, TagVerdict, Tags};
pub use whole::Whole;
