//! Fills that no client waits for: the client left, or the fill revalidates a stale object in the
//! background.
//!
//! One such fill serves the next visitor; many are an attack on the upstream by clients that send a
//! request and disconnect. Owns how many there may be and which end first. A fill that another
//! request follows is not ended: the client of that request counts already.

use bolide_base::SlabKey;
use bolide_base::limits::{UNWAITED_FILLS_MAX, UNWAITED_FILLS_PER_ORIGIN_MAX};
use bolide_io::Io;
use bolide_upstream::PassTarget;

use crate::env::WorkerEnv;
use crate::exchange_table::Exchanges;
use crate::fetches::LiveFetch;
use crate::upstream_groups::Origins;

impl Origins {
    /// Counts the fills that no client of any worker waits for.
    pub(crate) fn unwaited_fills(&self) -> usize {
        let counts = |key: &&SlabKey<LiveFetch>| self.fetches.get(**key).is_some_and(is_unwaited);
        self.unwaited.all.iter().filter(counts).count()
    }
}

impl Origins {
    /// Ends the fills beyond the limits: of one upstream, or of all. The oldest ones are the
    /// furthest, and stay.
    pub(crate) fn end_unwaited<I: Io>(
        &mut self,
        env: &mut WorkerEnv<I>,
        exchanges: &mut Exchanges,
    ) {
        let Self { unwaited, fetches, .. } = self;
        unwaited.has_grown = false;
        unwaited.all.retain(|key| fetches.get(*key).is_some_and(is_left));
        let mut counts: Vec<(&PassTarget, usize)> = Vec::new();
        let (mut total, mut surplus) = (0, Vec::new());
        for key in &unwaited.all {
            let Some(live) = fetches.get(*key).filter(|live| is_unwaited(live)) else { continue };
            let target = &live.fetch.request().target;
            let place = counts.iter().position(|(known, _)| *known == target);
            let count = place.map_or(0, |place| counts[place].1);
            if total >= UNWAITED_FILLS_MAX || count >= UNWAITED_FILLS_PER_ORIGIN_MAX {
                surplus.push(*key);
                continue;
            }
            total += 1;
            match place {
                Some(place) => counts[place].1 += 1,
                None => counts.push((target, 1)),
            }
        }
        surplus.into_iter().for_each(|key| self.end_fill(key, env, exchanges));
        debug_assert!(self.unwaited_fills() <= UNWAITED_FILLS_MAX, "what is too many has ended");
        let unwaited = &mut self.unwaited;
        unwaited.is_due = unwaited.has_grown || unwaited.all.len() > UNWAITED_FILLS_PER_ORIGIN_MAX;
    }

    /// Ends the newest such fill to make room for a client; returns whether there was one.
    pub(crate) fn end_last_unwaited<I: Io>(
        &mut self,
        env: &mut WorkerEnv<I>,
        exchanges: &mut Exchanges,
    ) -> bool {
        let Self { unwaited, fetches, .. } = self;
        let is_one = |key: &&SlabKey<LiveFetch>| fetches.get(**key).is_some_and(is_unwaited);
        let Some(key) = unwaited.all.iter().rfind(is_one).copied() else { return false };
        self.end_fill(key, env, exchanges);
        true
    }

    fn end_fill<I: Io>(
        &mut self,
        key: SlabKey<LiveFetch>,
        env: &mut WorkerEnv<I>,
        exchanges: &mut Exchanges,
    ) {
        self.unwaited.all.retain(|known| *known != key);
        self.unwaited.ended += 1;
        let Some(live) = self.fetches.get_mut(key) else { return };
        let wakes = live.fill.as_mut().map(|fill| fill.let_go()).unwrap_or_default();
        env.news.post(wakes);
        if let Some(stored) = &mut live.stored {
            stored.forget(&mut env.io);
        }
        self.abandon_fetch(key, env, exchanges);
    }
}

/// Whether a fetch continues without its client.
fn is_left(live: &LiveFetch) -> bool {
    live.exchange.is_none() && live.is_needed()
}

/// Whether no request on any worker follows its fill either.
fn is_unwaited(live: &LiveFetch) -> bool {
    is_left(live) && !live.fill.as_ref().is_some_and(|fill| fill.is_joined())
}
