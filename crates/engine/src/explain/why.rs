//! The reason of a cache decision, as one byte.

use bolide_cache::rules::{Bypass, StoreRefusal};

use crate::caching::UpstreamCacheStatus;
use crate::counters::DECISION_REASONS;

/// Why the cache was asked, or was not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Why {
    /// It was asked; there is no special reason.
    #[default]
    Asked,
    /// A rule excluded the request.
    Rule(Bypass),
    /// `page_cache_preset` excluded it.
    Preset,
    /// `page_cache_bypass`, `fastcgi_cache_bypass` or its kin.
    Condition,
    /// The request is a purge.
    Purge,
    /// The key is too long.
    LongKey,
    /// There is no such zone.
    NoZone,
    /// Public responses are not looked up here.
    NotPublic,
    /// A response under this key was not storable a short while ago.
    Remembered,
    /// Another exchange is fetching, and this location does not wait.
    Busy,
    /// It reached the limit of fills to wait for.
    Tired,
    /// The client requested a fresh response (`no-cache`, reload).
    Anew,
    /// The request has a body.
    Body,
    /// Its response replaces that of a failed upstream.
    StandsIn,
    /// Access was refused, and this is the error page.
    Refused,
}

/// All reasons in the order of their codes; new ones go to the end.
pub(crate) const WHYS: [Why; DECISION_REASONS] = [
    Why::Asked,
    Why::Preset,
    Why::Condition,
    Why::Purge,
    Why::LongKey,
    Why::NoZone,
    Why::NotPublic,
    Why::Remembered,
    Why::Busy,
    Why::Tired,
    Why::Anew,
    Why::Rule(Bypass::Off),
    Why::Rule(Bypass::Method),
    Why::Rule(Bypass::Query),
    Why::Rule(Bypass::Cookies),
    Why::Rule(Bypass::Environment),
    Why::Rule(Bypass::NoStore),
    Why::Rule(Bypass::NoSpace),
    Why::Body,
    Why::Rule(Bypass::Unkeyed),
    Why::StandsIn,
    Why::Refused,
    Why::Rule(Bypass::Magento),
];

pub(crate) const REFUSALS: [StoreRefusal; 20] = [
    StoreRefusal::Method,
    StoreRefusal::Status,
    StoreRefusal::Environment,
    StoreRefusal::Request,
    StoreRefusal::RequestNoStore,
    StoreRefusal::NoStore,
    StoreRefusal::NoCache,
    StoreRefusal::Private,
    StoreRefusal::Authorization,
    StoreRefusal::SetCookie,
    StoreRefusal::Vary,
    StoreRefusal::NoLifetime,
    StoreRefusal::Stale,
    StoreRefusal::TooLarge,
    StoreRefusal::Empty,
    StoreRefusal::NoSession,
    StoreRefusal::Space,
    StoreRefusal::Unassembled,
    StoreRefusal::Variant,
    StoreRefusal::OwnRedirect,
];

/// All values in declaration order: the index is the code.
const CACHED: [UpstreamCacheStatus; 8] = [
    UpstreamCacheStatus::No,
    UpstreamCacheStatus::Miss,
    UpstreamCacheStatus::Bypass,
    UpstreamCacheStatus::Expired,
    UpstreamCacheStatus::Stale,
    UpstreamCacheStatus::Updating,
    UpstreamCacheStatus::Revalidated,
    UpstreamCacheStatus::Hit,
];

/// The words of all reasons, by code.
pub(super) fn words() -> impl Iterator<Item = &'static str> {
    WHYS.iter().map(|why| why.word())
}

/// The index of `one` in `all`; 0 if it is missing.
fn code<T: PartialEq>(all: &[T], one: &T) -> u8 {
    all.iter().position(|known| known == one).unwrap_or(0) as u8
}

/// Fails to compile if there is a new reason, which must be added to the lists above.
const _: fn(Bypass, StoreRefusal) = |bypass, refusal| {
    match bypass {
        Bypass::Off
        | Bypass::Method
        | Bypass::Query
        | Bypass::Cookies
        | Bypass::Environment
        | Bypass::NoStore
        | Bypass::Unkeyed
        | Bypass::NoSpace
        | Bypass::Magento => {}
    }
    match refusal {
        StoreRefusal::Method
        | StoreRefusal::Status
        | StoreRefusal::Environment
        | StoreRefusal::Request
        | StoreRefusal::RequestNoStore
        | StoreRefusal::NoStore
        | StoreRefusal::NoCache
        | StoreRefusal::Private
        | StoreRefusal::Authorization
        | StoreRefusal::SetCookie
        | StoreRefusal::Vary
        | StoreRefusal::NoLifetime
        | StoreRefusal::Stale
        | StoreRefusal::TooLarge
        | StoreRefusal::Empty
        | StoreRefusal::NoSession
        | StoreRefusal::Space
        | StoreRefusal::Unassembled
        | StoreRefusal::Variant
        | StoreRefusal::OwnRedirect => {}
    }
};

impl Why {
    /// The word for programs.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Asked => "asked",
            Self::Rule(bypass) => bypass.reason(),
            Self::Preset => "preset",
            Self::Condition => "bypass",
            Self::Purge => "purge",
            Self::LongKey => "key-too-long",
            Self::NoZone => "no-zone",
            Self::NotPublic => "not-public",
            Self::Remembered => "hit-for-miss",
            Self::Busy => "no-lock",
            Self::Tired => "waited-enough",
            Self::Anew => "request-cache-control",
            Self::Body => "body",
            Self::StandsIn => "stands-in",
            Self::Refused => "refused",
        }
    }
}

/// The codes of a decision for the ring.
pub(super) fn codes(
    cached: UpstreamCacheStatus,
    why: Why,
    refusal: Option<StoreRefusal>,
    is_kept: bool,
) -> [u8; 4] {
    let refused = refusal.map_or(0, |refusal| 1 + code(&REFUSALS, &refusal));
    [cached as u8, code(&WHYS, &why), refused, u8::from(is_kept)]
}

/// The inverse of [`codes`].
pub(crate) fn decode(codes: [u8; 4]) -> (UpstreamCacheStatus, Why, Option<StoreRefusal>, bool) {
    let refusal = usize::from(codes[2]).checked_sub(1).and_then(|at| REFUSALS.get(at));
    (
        CACHED.get(usize::from(codes[0])).copied().unwrap_or_default(),
        WHYS.get(usize::from(codes[1])).copied().unwrap_or_default(),
        refusal.copied(),
        codes[3] != 0,
    )
}

#[cfg(test)]
mod tests {
    use super::{CACHED, REFUSALS, WHYS, codes, decode};

    #[test]
    fn what_goes_into_a_ring_comes_out_of_it() {
        for cached in CACHED {
            for why in WHYS {
                for refusal in REFUSALS.map(Some).into_iter().chain([None]) {
                    for is_kept in [false, true] {
                        let read = decode(codes(cached, why, refusal, is_kept));
                        assert_eq!(read, (cached, why, refusal, is_kept));
                    }
                }
            }
        }
    }

    #[test]
    fn each_reason_has_its_own_word() {
        let words: std::collections::HashSet<_> = WHYS.iter().map(|why| why.word()).collect();
        assert_eq!(words.len(), WHYS.len());
    }
}
