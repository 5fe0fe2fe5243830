//! What may be kept, for whom and how long: the rules of LSCache, RFC 9111 and nginx's zones.
//!
//! Owns decisions as pure functions of a request, an answer's head, a [`Policy`] and the time.
//! Touches no store: what is to be purged, tagged or keyed is said, not done. The rule that is
//! easiest to break: an answer that says nothing about caching is not kept unless the
//! configuration says so, and one for a session is never kept for everybody.
//!
//! ```text
//!   request ── gate() ──▶ look-up? in which spaces?      url(), vary_base(), session()
//!   answer ─── decide() ─▶ keep? how long, tags, purges ─▶ vary_base() again if `rekey`
//!   kept ───── Times::state(), judge() ─▶ send, refresh or ask      freshen() after a 304
//! ```

mod asked;
mod claims;
mod decide;
mod fresh;
pub mod fuzz;
mod gate;
mod identity;
mod line_protocol;
mod policy;
mod query;
mod strip;
mod validate;
mod zone;

pub use asked::{PurgeRequest, asked_purges};
pub use claims::ForwardedClaim;
pub use decide::{
    AnswerFacts, AnswerSource, StoreDecision, StoreRefusal, StoreVerdict, decide, is_esi,
};
pub use fresh::{FreshState, Instructions, judge};
pub use gate::{Bypass, Environment, Gate, autoflushes, gate};
pub use identity::{
    Facts, KeyPiece, is_of_address, named, of_address, session, url, url_of, vary_base,
};
pub use line_protocol::{PurgeOrder, PurgeTarget, TagWord, is_lscache, purges, tags};
pub use policy::{CachePolicy, Heuristic, Ignore, Mode, SetCookie, Valid, Valids};
pub use query::QueryRules;
pub use strip::{for_client, for_front, for_store, is_forged};
pub use validate::{conditions, freshen, invalidated, is_same};
pub use zone::grace;

#[cfg(test)]
mod tests;
