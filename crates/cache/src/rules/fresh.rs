//! The age and freshness of a response (RFC 9111 §4.2, RFC 5861).

use bolide_http::cache_control::{self, RequestControl};
use bolide_http::{FieldMap, Name, date};

use crate::object::Times;

/// The age of a response on arrival, in seconds (RFC 9111 §4.2.3). `asked` and `arrived` are in
/// milliseconds since 1970.
pub(crate) fn initial_age(answer: &FieldMap, asked: u64, arrived: u64) -> u32 {
    let date = answer.get(Name::Date).and_then(date::parse);
    let apparent = date.map_or(0, |date| (arrived / 1000).saturating_sub(date));
    let delay = arrived.saturating_sub(asked).div_ceil(1000);
    let corrected = u64::from(cache_control::age(answer)) + delay;
    // Without `Age` no cache had stored the response, and the response delay does not count.
    let corrected = if answer.get(Name::Age).is_some() { corrected } else { 0 };
    let age = apparent.max(corrected).min(cache_control::SECONDS_MAX.into());
    debug_assert!(u32::try_from(age).is_ok(), "an age has 31 bits (RFC 9111 §1.2.2)");
    age as u32
}

/// The state of a stored response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FreshState {
    /// It may be sent.
    Fresh,
    /// It may be sent while one request revalidates it.
    Refreshable,
    /// It may be sent only on an upstream error.
    ForErrors,
    /// It may only be revalidated.
    Expired,
}

impl Times {
    /// The state at `now_ms`.
    #[must_use]
    pub const fn state(&self, now_ms: u64) -> FreshState {
        debug_assert!(
            self.expires_ms <= self.stale_until_ms() && self.expires_ms <= self.error_until_ms(),
            "the windows for stale responses follow the freshness lifetime"
        );
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

    /// The remaining freshness lifetime at `now_ms` in seconds; negative if it is stale.
    #[must_use]
    pub const fn ttl_seconds(&self, now_ms: u64) -> i64 {
        (self.expires_ms as i64).saturating_sub(now_ms as i64).div_euclid(1000)
    }
}

/// The result of a request's cache directives for an object (RFC 9111 §5.2.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Instructions {
    /// Serve the object.
    Serve,
    /// Fetch or revalidate.
    Ask,
    /// Respond with 504, because `only-if-cached` forbids to fetch.
    Refuse,
}

/// Applies the cache directives of a request to an object, or to a miss; for locations that honour
/// them. `must_revalidate` belongs to the object.
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
