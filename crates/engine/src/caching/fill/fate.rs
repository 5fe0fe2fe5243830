//! The end of a permit without a stored object: what the store remembers, and for how long.

use bolide_cache::AbandonReason;
use bolide_upstream::ConnectRefused;

use super::Fill;
use crate::caching::{Caching, StaleCause};

/// How long the store remembers that a response was not storable, where requests would coalesce.
pub(in crate::caching) const PASS_MS: u64 = 2_000;
/// LIMIT: the same of a response that took long; as Varnish's `uncacheable` objects by default.
const PASS_MS_MAX: u64 = 120_000;
/// How long a failed upstream is not asked while there is a stale object.
const REST_MS: u64 = 1_000;

impl Fill {
    pub(super) fn caching(&self) -> Option<&Caching> {
        self.site.location(self.location).caching.as_ref()
    }

    /// Whether the stale object replaces the response.
    pub(super) fn is_stood_in(&self, trouble: StaleCause, now_ms: u64) -> bool {
        self.caching()
            .zip(self.stale.as_ref())
            .is_some_and(|(caching, old)| caching.may_serve_stale(old, trouble, now_ms))
    }

    /// Why a permit is abandoned whose response is not stored.
    pub(super) fn passing(&self, now_ms: u64) -> AbandonReason {
        let waits = self.caching().is_some_and(|caching| caching.is_page() || caching.conf.lock);
        // Without coalescing no request waits, and the next response may be storable.
        // A response that takes long is remembered for longer than the next one takes.
        let took_ms = now_ms.saturating_sub(self.asked_ms);
        match waits && !self.is_past {
            true => AbandonReason::Uncacheable {
                until_ms: now_ms + self.pass_ms.max((2 * took_ms).min(PASS_MS_MAX)),
            },
            false => AbandonReason::Gone,
        }
    }

    /// Why a permit is abandoned whose upstream failed. nginx's zones retry at once.
    pub(super) fn rest(&self, now_ms: u64) -> AbandonReason {
        let until_ms = now_ms + REST_MS;
        match self.caching() {
            Some(caching) if caching.is_page() && self.stale.is_none() => {
                // Each request that waited fetches for itself: one after the other would wait for
                // as many timeouts.
                AbandonReason::Uncacheable { until_ms }
            }
            Some(caching) if caching.is_page() => {
                AbandonReason::Failed { now_ms, rest_until_ms: until_ms }
            }
            _ => AbandonReason::Gone,
        }
    }

    /// As [`Self::rest`] if there is no response at all, which `fastcgi_cache_valid` may cache.
    pub(super) fn failure(&self, refused: ConnectRefused, now_ms: u64) -> AbandonReason {
        let Some(caching) = self.caching().filter(|caching| !caching.is_page()) else {
            return self.rest(now_ms);
        };
        let is_said = matches!(refused.status, 502 | 504)
            && !self.is_past
            && !self.is_stood_in(StaleCause::Failed(refused.cause), now_ms)
            && self.permit.as_ref().is_some_and(|permit| permit.growing().head().is_none());
        match caching.policy.valid.seconds(refused.status) {
            Some(seconds @ 1..) if is_said => {
                let until_ms = now_ms + u64::from(seconds) * 1000;
                AbandonReason::Refused { status: refused.status, until_ms }
            }
            _ => AbandonReason::Gone,
        }
    }
}
