//! How old an answer is and what may still be done with it (RFC 9111 §4.2, RFC 5861).

use bolide_http::cache_control::{self, RequestControl};
use bolide_http::{FieldMap, Name, date};

use crate::object::Times;

/// The current age of an answer when it arrives, in seconds (RFC 9111 §4.2.3). `asked` and
/// `arrived` are in milliseconds since 1970.
pub(crate) fn initial_age(answer: &FieldMap, asked: u64, arrived: u64) -> u32 {
    let date = answer.get(Name::Date).and_then(date::parse);
    let apparent = date.map_or(0, |date| (arrived / 1000).saturating_sub(date));
    let delay = arrived.saturating_sub(asked).div_ceil(1000);
    let corrected = u64::from(cache_control::age(answer)) + delay;
    // Without an `Age` nothing was cached before us, and a delay is no age.
    let corrected = if answer.get(Name::Age).is_some() { corrected } else { 0 };
    let age = apparent.max(corrected).min(cache_control::SECONDS_MAX.into());
    age as u32
}

/// What an object is good for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FreshState {
    /// To be sent.
    Fresh,
    /// To be sent while one request makes it anew.
    Refreshable,
    /// To be sent only if the origin fails.
    ForErrors,
    /// For nothing but its validators.
    Expired,
}

impl Times {
    /// What the object is good for at `now_ms`.
    #[must_use]
    pub const fn state(&self, now_ms: u64) -> FreshState {
        if now_ms < self.expires_ms {
            FreshState::Fresh
        } else if now_ms < self.stale_until_ms() {
            FreshState::Refreshable
        } else if now_ms < self.error_until_ms() {
            FreshState::ForErrors
        } else {
            FreshState::Expired
        }
    }

    /// Seconds of freshness left at `now_ms`; negative when it is stale.
    #[must_use]
    pub const fn ttl_seconds(&self, now_ms: u64) -> i64 {
        (self.expires_ms as i64).saturating_sub(now_ms as i64).div_euclid(1000)
    }
}

/// What a request that is allowed to speak wants of an object (RFC 9111 §5.2.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Instructions {
    /// The object will do.
    Serve,
    /// The origin is to be asked.
    Ask,
    /// Nobody is to be asked: 504.
    Refuse,
}

/// Judges an object, or its absence, by the request's own directives; for locations where those
/// count. `must_revalidate` is the object's.
#[must_use]
pub fn judge(
    request: &RequestControl,
    object: Option<&Times>,
    must_revalidate: bool,
    now: u64,
) -> Instructions {
    let serves = object.is_some_and(|times| {
        let (age, ttl) = (times.age_seconds(now), times.ttl_seconds(now));
        let is_stale_allowed = times.state(now) == FreshState::Refreshable
            || request.max_stale.is_some_and(|max| !must_revalidate && -ttl <= i64::from(max));
        !request.no_cache
            && request.max_age.is_none_or(|max| age <= u64::from(max))
            && request.min_fresh.is_none_or(|min| ttl >= i64::from(min))
            && (times.state(now) == FreshState::Fresh || is_stale_allowed)
    });
    match (serves, request.only_if_cached) {
        (true, _) => Instructions::Serve,
        (false, true) => Instructions::Refuse,
        (false, false) => Instructions::Ask,
    }
}
