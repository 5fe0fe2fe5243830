//! What may be stored, for which clients, and how long: the rules of LSCache, RFC 9111 and nginx's
//! cache zones.
//!
//! All decisions are pure functions of a request, a response head, a [`CachePolicy`] and the time.
//! They touch no store: they return what to purge, tag or key. INVARIANT: a response without cache
//! directives is stored only if the configuration says so, and a private response is never stored
//! as public.
//!
//! ```text
//!   request ── gate() ──▶ look up? public, private?       url(), vary_base(), session()
//!   response ─ decide() ─▶ store? how long, tags, purges ─▶ vary_base() again if `rekey`
//!   stored ─── Times::state(), judge() ─▶ send, revalidate or fetch    freshen() after a 304
//! ```

mod asked;
mod ban;
mod claims;
pub(crate) mod controls;
mod decide;
mod decision;
mod fresh;
mod gate;
mod identity;
mod line_protocol;
pub mod magento;
mod part;
mod policy;
mod query;
mod redirect;
mod strip;
mod validate;
mod zone;

pub use asked::{PurgeRequest, asked_purges};
pub use ban::asked_bans;
pub use claims::{ForwardedClaim, states_address};
pub use decide::{AnswerFacts, decide, is_esi};
pub use decision::{AnswerSource, StoreDecision, StoreRefusal, StoreVerdict};
pub use fresh::{FreshState, Instructions, judge};
pub use gate::{Bypass, CacheGate, Environment, autoflushes, gate};
pub use identity::{
    Facts, KeyPiece, is_narrowed, is_of_address, named, of_address, push_origin, push_target,
    query_of, session, url, url_of, vary_base,
};
pub use line_protocol::{PurgeOrder, PurgeTarget, TagWord, is_lscache, purges, tags};
pub use part::{DISTINGUISHING, is_part_for_all, part_control, varies};
pub use policy::{CachePolicy, Heuristic, Ignore, Mode, SetCookie, Valid, Valids};
pub use query::QueryRules;
pub use strip::{controls, for_client, for_front, for_store, is_forged};
pub use validate::{conditions, freshen, invalidated, is_keyed_by_more, is_same, varies_by_more};
pub use zone::grace;

#[cfg(test)]
mod tests;
