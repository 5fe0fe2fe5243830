//! When an object was created, and how long it is good.

/// The creation time and freshness of an object, in milliseconds of the caller's clock.
///
/// A clock that jumps back makes objects younger, never dead.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// The creation time: the time of the response less its `Age`.
    pub created_ms: u64,
    /// The object is fresh before this time.
    pub expires_ms: u64,
    /// Seconds after that in which it may be served while it is revalidated (RFC 5861 §3).
    pub stale_seconds: u32,
    /// Seconds after `expires_ms` in which it may be served on an error (RFC 5861 §4), and in which
    /// it is kept for revalidation.
    pub error_seconds: u32,
}

impl Times {
    /// The end of stale-while-revalidate.
    #[must_use]
    pub const fn stale_until_ms(&self) -> u64 {
        self.expires_ms.saturating_add(self.stale_seconds as u64 * 1000)
    }

    /// The end of stale-if-error.
    #[must_use]
    pub const fn error_until_ms(&self) -> u64 {
        self.expires_ms.saturating_add(self.error_seconds as u64 * 1000)
    }

    /// Age in whole seconds (RFC 9111 §4.2.3).
    #[must_use]
    pub const fn age_seconds(&self, now_ms: u64) -> u64 {
        now_ms.saturating_sub(self.created_ms) / 1000
    }
}

/// Milliseconds since 1970 in six bytes, enough for 8,900 years. The greatest value means for ever.
#[derive(Clone, Copy, Debug)]
pub(super) struct PackedMillis([u16; 3]);

impl PackedMillis {
    pub(super) const fn new(millis: u64) -> Self {
        let millis = if millis >> 48 == 0 { millis } else { u64::MAX };
        Self([millis as u16, (millis >> 16) as u16, (millis >> 32) as u16])
    }

    pub(super) const fn millis(self) -> u64 {
        let [low, middle, high] = self.0;
        let millis = low as u64 | (middle as u64) << 16 | (high as u64) << 32;
        if millis == (1 << 48) - 1 { u64::MAX } else { millis }
    }
}
