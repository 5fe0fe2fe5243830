//! The watched directories, the paths they are watched for, and the results that a change
//! invalidates.
//!
//! Owns the numbers of the watches and the trails: all directories that a path leads through, links
//! resolved, each with the name that is looked up in it. A change of any such name ends the trail.
//! It does not call the kernel: the caller reports which watches exist, and removes those of
//! [`Watches::take_useless`].

use std::collections::{HashMap, HashSet};
use std::rc::Rc;
use std::time::Duration;

use bolide_base::Instant;
use bolide_base::limits::DIRECTORIES_WATCHED_MAX;

use crate::hash::Seeded;

/// How long not to retry a directory that cannot be watched.
const REFUSED_FOR: Duration = Duration::from_mins(1);
/// LIMIT: changes per second of one directory above which it is not watched.
const REPORTS_MAX: u32 = 1000;

/// The directories that a path leads through.
#[derive(Clone, Debug, Default)]
pub struct Trail {
    /// The watch of each directory, and the name that is looked up in it.
    pub steps: Vec<(u32, Box<[u8]>)>,
    /// The watch of the last one.
    pub last: u32,
}

/// Whether the directories of a path are watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrailStanding {
    /// All of them are watched.
    Watched,
    /// They cannot be watched, at least for now.
    Refused,
    /// Unknown.
    Unknown,
}

#[derive(Debug)]
enum Place {
    Watched(Trail),
    Refused(Instant),
}

/// Names of trails.
pub(crate) type Trails = HashSet<Rc<[u8]>, Seeded>;

/// A directory that is watched.
#[derive(Debug)]
struct WatchedDir {
    /// The trails that continue from it, by the name in it.
    names: HashMap<Box<[u8]>, Trails, Seeded>,
    /// The trails that end in it.
    ends: Trails,
    /// The number of changes in the second that began then.
    reports: (Instant, u32),
}

/// The trails that a change affects.
#[derive(Debug)]
pub(crate) struct Doubts {
    /// These may lead elsewhere now; their results are invalid.
    pub(crate) lost: Trails,
    /// The changed name is at the end of these.
    pub(crate) behind: Trails,
}

/// The watched directories of one worker. The key of a trail is the prefix of its paths, up to the
/// last slash.
#[derive(Debug)]
pub struct Watches {
    places: HashMap<Rc<[u8]>, Place, Seeded>,
    dirs: HashMap<u32, WatchedDir, Seeded>,
    useless: Vec<u32>,
    hasher: Seeded,
}

impl Watches {
    /// No watches; `seed` as for [`crate::FileTable`].
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let hasher = Seeded::new(seed);
        Self {
            places: HashMap::with_hasher(hasher),
            dirs: HashMap::with_hasher(hasher),
            useless: Vec::new(),
            hasher,
        }
    }

    /// Whether no directory is watched.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.dirs.is_empty()
    }

    /// Whether another trail of `steps` directories could exceed the limit.
    #[must_use]
    pub fn is_full(&self, steps: usize) -> bool {
        self.dirs.len() + steps > DIRECTORIES_WATCHED_MAX
    }

    /// Whether the trail of paths with `prefix` is watched.
    #[must_use]
    pub fn standing(&self, prefix: &[u8], now: Instant) -> TrailStanding {
        match self.places.get(prefix) {
            Some(Place::Watched(_)) => TrailStanding::Watched,
            Some(Place::Refused(until)) if now < *until => TrailStanding::Refused,
            Some(Place::Refused(_)) | None => TrailStanding::Unknown,
        }
    }

    /// Adds the trail of `prefix`, which is watched.
    pub fn insert(&mut self, prefix: &[u8], trail: Trail) {
        self.remove(prefix);
        let name: Rc<[u8]> = prefix.into();
        let hasher = self.hasher;
        for (watch, step) in &trail.steps {
            let names = &mut self.dir(*watch).names;
            let users = names.entry(step.clone()).or_insert_with(|| Trails::with_hasher(hasher));
            users.insert(name.clone());
        }
        self.dir(trail.last).ends.insert(name.clone());
        self.places.insert(name, Place::Watched(trail));
    }

    /// The trail of `prefix` cannot be watched; its `watches` are useless.
    pub fn refuse(&mut self, prefix: &[u8], watches: impl IntoIterator<Item = u32>, now: Instant) {
        self.remove(prefix);
        if self.places.len() >= DIRECTORIES_WATCHED_MAX {
            self.places.retain(|_, place| matches!(place, Place::Watched(_)));
        }
        self.places.insert(prefix.into(), Place::Refused(now.after(REFUSED_FOR)));
        let unused = watches.into_iter().filter(|watch| !self.dirs.contains_key(watch));
        self.useless.extend(unused);
    }

    /// Takes the watches to remove.
    pub fn take_useless(&mut self) -> Vec<u32> {
        let mut useless = std::mem::take(&mut self.useless);
        useless.retain(|watch| !self.dirs.contains_key(watch));
        useless
    }

    /// Handles a change of a name in a watched directory.
    pub(crate) fn changed(&mut self, watch: u32, name: &[u8], now: Instant) -> Doubts {
        let none = || Trails::with_hasher(self.hasher);
        let (none, behind) = (none(), none());
        let Some(dir) = self.dirs.get_mut(&watch) else { return Doubts { lost: none, behind } };
        if now.since(dir.reports.0) >= Duration::from_secs(1) {
            dir.reports = (now, 0);
        }
        dir.reports.1 += 1;
        if dir.reports.1 > REPORTS_MAX {
            let lost = self.gone(watch);
            for prefix in &lost {
                self.refuse(prefix, [], now);
            }
            return Doubts { lost, behind };
        }
        let behind = dir.ends.clone();
        let lost = dir.names.get(name).cloned().unwrap_or(none);
        for prefix in &lost {
            self.remove(prefix);
        }
        Doubts { lost, behind }
    }

    /// Handles a watched directory that was moved or removed; returns the ended trails.
    pub(crate) fn gone(&mut self, watch: u32) -> Trails {
        let mut lost = Trails::with_hasher(self.hasher);
        if let Some(dir) = self.dirs.get(&watch) {
            lost.extend(dir.names.values().flatten().chain(&dir.ends).cloned());
        }
        for prefix in &lost {
            self.remove(prefix);
        }
        lost
    }

    /// Removes all trails.
    pub(crate) fn clear(&mut self) {
        self.places.clear();
        self.useless.extend(self.dirs.drain().map(|(watch, _)| watch));
    }

    fn dir(&mut self, watch: u32) -> &mut WatchedDir {
        let hasher = self.hasher;
        self.dirs.entry(watch).or_insert_with(|| WatchedDir {
            names: HashMap::with_hasher(hasher),
            ends: Trails::with_hasher(hasher),
            reports: (Instant::default(), 0),
        })
    }

    fn remove(&mut self, prefix: &[u8]) {
        let Some(Place::Watched(trail)) = self.places.remove(prefix) else { return };
        for (watch, step) in &trail.steps {
            let Some(dir) = self.dirs.get_mut(watch) else { continue };
            if let Some(users) = dir.names.get_mut(step) {
                users.remove(prefix);
                if users.is_empty() {
                    dir.names.remove(step);
                }
            }
            self.drop_unused(*watch);
        }
        if let Some(dir) = self.dirs.get_mut(&trail.last) {
            dir.ends.remove(prefix);
        }
        self.drop_unused(trail.last);
    }

    fn drop_unused(&mut self, watch: u32) {
        if self.dirs.get(&watch).is_some_and(|dir| dir.names.is_empty() && dir.ends.is_empty()) {
            self.dirs.remove(&watch);
            self.useless.push(watch);
        }
    }
}

#[cfg(test)]
mod tests {
    use bolide_base::Instant;

    use super::{REPORTS_MAX, Trail, TrailStanding, Trails, Watches};

    fn trail(steps: &[(u32, &str)], last: u32) -> Trail {
        let steps = steps.iter().map(|(watch, name)| (*watch, name.as_bytes().into())).collect();
        Trail { steps, last }
    }

    fn watches() -> Watches {
        let mut watches = Watches::new(1);
        watches.insert(b"/a/b/", trail(&[(1, "a"), (2, "b")], 3));
        watches.insert(b"/a/c/", trail(&[(1, "a"), (2, "c")], 4));
        watches
    }

    fn names(trails: &Trails) -> Vec<&[u8]> {
        let mut names: Vec<&[u8]> = trails.iter().map(|name| &**name).collect();
        names.sort_unstable();
        names
    }

    const NOW: Instant = Instant::from_nanos(5_000_000_000);

    #[test]
    fn a_name_on_the_way_ends_the_trails_that_lead_through_it() {
        let mut watches = watches();
        let doubts = watches.changed(2, b"b", NOW);
        assert_eq!(names(&doubts.lost), [b"/a/b/"]);
        assert_eq!(watches.standing(b"/a/b/", NOW), TrailStanding::Unknown);
        assert_eq!(watches.standing(b"/a/c/", NOW), TrailStanding::Watched);
        assert_eq!(watches.take_useless(), [3]);
        assert_eq!(names(&watches.changed(1, b"a", NOW).lost), [b"/a/c/"]);
        assert!(watches.is_empty());
    }

    #[test]
    fn a_name_at_the_end_makes_only_itself_doubtful() {
        let mut watches = watches();
        let doubts = watches.changed(3, b"x.html", NOW);
        assert_eq!((doubts.lost.len(), names(&doubts.behind)), (0, vec![&b"/a/b/"[..]]));
        let doubts = watches.changed(2, b"other", NOW);
        assert_eq!((doubts.lost.len(), doubts.behind.len()), (0, 0));
        assert_eq!(watches.standing(b"/a/b/", NOW), TrailStanding::Watched);
    }

    #[test]
    fn a_directory_that_is_gone_ends_all_that_leads_through_it() {
        let mut watches = watches();
        assert_eq!(watches.gone(2).len(), 2);
        assert!(watches.is_empty() && watches.gone(2).is_empty());
        let mut useless = watches.take_useless();
        useless.sort_unstable();
        assert_eq!(useless, [1, 2, 3, 4]);
    }

    #[test]
    fn a_directory_without_rest_is_not_watched_for_a_while() {
        let mut watches = watches();
        for _ in 0..REPORTS_MAX {
            assert!(watches.changed(3, b"log", NOW).lost.is_empty());
        }
        assert_eq!(names(&watches.changed(3, b"log", NOW).lost), [b"/a/b/"]);
        assert_eq!(watches.standing(b"/a/b/", NOW), TrailStanding::Refused);
        let later = NOW.after(super::REFUSED_FOR);
        assert_eq!(watches.standing(b"/a/b/", later), TrailStanding::Unknown);
    }

    #[test]
    fn watches_made_in_vain_are_of_no_use() {
        let mut watches = watches();
        watches.refuse(b"/a/d/", [1, 2, 9], NOW);
        assert_eq!(watches.take_useless(), [9], "the others are used");
        assert_eq!(watches.standing(b"/a/d/", NOW), TrailStanding::Refused);
    }
}
