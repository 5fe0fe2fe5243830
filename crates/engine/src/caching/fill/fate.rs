//! What becomes of a permit that leads to nothing: what is remembered of it, and for how long.

use bolide_cache::AbandonReason;
use bolide_upstream::ConnectRefused;

use super::Fill;
use crate::caching::{Caching, StaleCause};

/// How long it is remembered that an answer was not to be kept, where others wait in line.
pub(in crate::caching) const PASS_MS: u64 = 2_000;
/// How long an origin that failed is left alone while there is an old answer.
const REST_MS: u64 = 1_000;

impl Fill {
    pub(super) fn caching(&self) -> Option<&Caching> {
        self.site.location(self.location).caching.as_ref()
    }

    /// Whether an old answer is served in place of what there is.
    pub(super) fn is_stood_in(&self, trouble: StaleCause, now_ms: u64) -> bool {
        self.caching()
            .zip(self.stale.as_ref())
            .is_some_and(|(caching, old)| caching.may_serve_stale(old, trouble, now_ms))
    }

    /// What becomes of a permit whose answer is not kept.
    pub(super) fn passing(&self, now_ms: u64) -> AbandonReason {
        let waits = self.caching().is_some_and(|caching| caching.is_page() || caching.conf.lock);
        // Without a lock no exchange waits, and the next answer may be another one.
        match waits && !self.is_past {
            true => AbandonReason::Uncacheable { until_ms: now_ms + self.pass_ms },
            false => AbandonReason::Gone,
        }
    }

    /// What becomes of a permit whose origin failed. nginx's zones ask again at once.
    pub(super) fn rest(&self, now_ms: u64) -> AbandonReason {
        match self.caching() {
            Some(caching) if caching.is_page() => {
                AbandonReason::Failed { now_ms, rest_until_ms: now_ms + REST_MS }
            }
            _ => AbandonReason::Gone,
        }
    }

    /// The same where there is no answer at all, which `fastcgi_cache_valid` may want remembered.
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
