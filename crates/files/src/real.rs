//! Real paths of directories, as far as they were resolved lately.
//!
//! Owns the cache of results: each holds for a second, as results of file lookups do.

use std::time::Duration;

use bolide_base::Instant;

/// Paths remembered.
const PATHS_MAX: usize = 64;
/// How long a result is valid.
const VALID: Duration = Duration::from_secs(1);

/// The real path, or the error number of the system.
pub type Real = Result<Box<[u8]>, i32>;

/// Paths that were resolved, the latest last.
#[derive(Debug, Default)]
pub struct RealPaths(Vec<(Box<[u8]>, Real, Instant)>);

impl RealPaths {
    /// The real path of `path`, if it is known and recent.
    #[must_use]
    pub fn find(&self, path: &[u8], now: Instant) -> Option<&Real> {
        let (_, real, at) = self.0.iter().find(|(asked, ..)| **asked == *path)?;
        (now.since(*at) < VALID).then_some(real)
    }

    /// Stores a result.
    pub fn insert(&mut self, path: Box<[u8]>, real: Real, now: Instant) {
        self.0.retain(|(asked, ..)| *asked != path);
        if self.0.len() == PATHS_MAX {
            self.0.drain(..1);
        }
        self.0.push((path, real, now));
    }
}

#[cfg(test)]
mod tests {
    use bolide_base::Now;

    use super::{PATHS_MAX, RealPaths, VALID};

    #[test]
    fn an_answer_holds_for_a_while_and_the_oldest_is_forgotten_first() {
        let start = Now::default().mono;
        let mut paths = RealPaths::default();
        paths.insert(b"/a"[..].into(), Ok(b"/b"[..].into()), start);
        assert_eq!(paths.find(b"/a", start), Some(&Ok(b"/b"[..].into())));
        assert_eq!(paths.find(b"/a", start.after(VALID)), None);
        paths.insert(b"/a"[..].into(), Err(2), start);
        assert_eq!(paths.find(b"/a", start), Some(&Err(2)));
        for n in 0..PATHS_MAX {
            paths.insert(n.to_string().into_bytes().into(), Err(n as i32), start);
        }
        assert_eq!((paths.find(b"/a", start), paths.find(b"0", start)), (None, Some(&Err(0))));
    }
}
