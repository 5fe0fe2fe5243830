//! The waits between starts of a pool that fail.

use std::time::Duration;

/// The first wait after failures in a row, which doubles.
const RETRY_FIRST: Duration = Duration::from_millis(100);
/// The longest.
pub(super) const RETRY_MAX: Duration = Duration::from_secs(10);

/// How long to wait before the next try after this many consecutive failures.
pub(super) fn retry_delay(failures: u32) -> Duration {
    match failures.checked_sub(1) {
        None => Duration::ZERO,
        Some(doublings) => (RETRY_FIRST * (1 << doublings.min(10))).min(RETRY_MAX),
    }
}

#[cfg(test)]
mod tests {
    use super::retry_delay;

    #[test]
    fn the_first_try_is_at_once_and_the_waits_double_up_to_ten_seconds() {
        let millis: Vec<u128> = (0..10).map(|n| retry_delay(n).as_millis()).collect();
        assert_eq!(millis, [0, 100, 200, 400, 800, 1600, 3200, 6400, 10_000, 10_000]);
        assert_eq!(retry_delay(u32::MAX).as_millis(), 10_000);
    }
}
