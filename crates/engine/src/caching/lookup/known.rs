//! What memory knows under a key, without the right to fill it.

use std::sync::Arc;

use bolide_cache::{KeyBuilder, Object, ObjectKind, SessionKey};
use bolide_http::FieldMap;
use bolide_http::cookies::Cookies;

use crate::caching::identity::{key_of, push_named};
use crate::ctx::StepCtx;

/// LIMIT: repeated lookups because of `Vary`.
pub(super) const VARY_ROUNDS: usize = 3;

/// Adds the vary values of a page, public or of a session, to its key, as far as memory knows them;
/// the page, if a fresh one is there. None after too many rounds, or if nothing is stored.
pub(crate) fn follow_known(
    keys: &mut KeyBuilder,
    session: Option<SessionKey<'_>>,
    fields: &FieldMap,
    ctx: &mut StepCtx<'_>,
) -> Option<Option<Arc<Object>>> {
    let front = ctx.cache.as_deref_mut()?;
    for _ in 0..VARY_ROUNDS {
        match front.find_known(&key_of(keys, session), ctx.now.unix_millis) {
            Some(names) if names.kind() == ObjectKind::Vary => {
                push_named(keys, names.vary_names(), fields, &Cookies::of(fields));
            }
            found => return Some(found),
        }
    }
    None
}
