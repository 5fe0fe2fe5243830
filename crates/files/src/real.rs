//! Real paths of directories, as far as they were resolved lately.
//!
//! Owns the cache of results: each holds as results of file lookups do.

use std::time::Duration;

use bolide_base::Instant;

/// Paths remembered.
const PATHS_MAX: usize = 64;
/// How long a result is valid.
const VALID: Duration = Duration::from_secs(1);

/// The real path, or the error number of the system.
pub type Real = Result<Box<[u8]>, i32>;

/// A path that was resolved.
#[derive(Debug)]
struct Resolved {
    path: Box<[u8]>,
    real: Real,
    at: Instant,
    /// The directories on its way are watched, and told of no change.
    watched: bool,
}

/// Paths that were resolved, the latest last.
#[derive(Debug, Default)]
pub struct RealPaths(Vec<Resolved>);

impl RealPaths {
    /// The real path of `path`, if it is known and nothing has changed since.
    #[must_use]
    pub fn find(&self, path: &[u8], now: Instant) -> Option<&Real> {
        let known = self.0.iter().find(|known| *known.path == *path)?;
        let holds = known.watched && now.since(known.at) < VALID || known.at == now;
        holds.then_some(&known.real)
    }

    /// Stores a result. It holds for this turn, and longer if the directories on its way are
    /// watched.
    pub fn insert(&mut self, path: Box<[u8]>, real: Real, watched: bool, now: Instant) {
        self.0.retain(|known| known.path != path);
        if self.0.len() == PATHS_MAX {
            self.0.drain(..1);
        }
        self.0.push(Resolved { path, real, at: now, watched });
    }

    /// Forgets what was found by trails that are lost.
    pub(crate) fn doubt(&mut self, is_lost: impl Fn(&[u8]) -> bool) {
        self.0.retain(|known| !is_lost(&trail(&known.path)));
    }

    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    /// Forgets what holds for this turn only.
    pub(crate) fn part_turn(&mut self) {
        self.0.retain(|known| known.watched);
    }
}

/// What a trail through the directory at `path` is named by.
#[must_use]
pub fn trail(path: &[u8]) -> Vec<u8> {
    [path.strip_suffix(b"/").unwrap_or(path), b"/"].concat()
}

#[cfg(test)]
mod tests {
    use bolide_base::Now;

    use super::{PATHS_MAX, RealPaths, VALID};

    #[test]
    fn an_answer_holds_for_a_while_and_the_oldest_is_forgotten_first() {
        let start = Now::default().mono;
        let mut paths = RealPaths::default();
        paths.insert(b"/a"[..].into(), Ok(b"/b"[..].into()), true, start);
        assert_eq!(paths.find(b"/a", start), Some(&Ok(b"/b"[..].into())));
        assert_eq!(paths.find(b"/a", start.after(VALID)), None);
        paths.insert(b"/a"[..].into(), Err(2), true, start);
        assert_eq!(paths.find(b"/a", start), Some(&Err(2)));
        for n in 0..PATHS_MAX {
            paths.insert(n.to_string().into_bytes().into(), Err(n as i32), false, start);
        }
        assert_eq!((paths.find(b"/a", start), paths.find(b"0", start)), (None, Some(&Err(0))));
        assert_eq!(paths.find(b"0", start.after(VALID / 2)), None, "nothing vouches for it");
    }

    #[test]
    fn a_change_on_the_way_or_a_request_that_comes_later_ends_an_answer() {
        let now = Now::default().mono;
        let mut paths = RealPaths::default();
        for path in [&b"/srv/app"[..], b"/srv/app/deep", b"/srv/apple"] {
            paths.insert(path.into(), Ok(path.into()), path.len() != 10, now);
        }
        paths.part_turn();
        assert_eq!(paths.find(b"/srv/apple", now), None);
        paths.doubt(|trail| trail == b"/srv/app/deep/");
        assert!(paths.find(b"/srv/app", now).is_some());
        assert_eq!(paths.find(b"/srv/app/deep", now), None);
        paths.doubt(|trail| trail == b"/srv/app/");
        assert_eq!(paths.find(b"/srv/app", now), None);
    }
}
