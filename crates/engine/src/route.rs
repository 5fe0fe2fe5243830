//! Which location a path belongs to (exact, longest prefix, regexes in order, nesting).
//!
//! Works on the decoded, resolved path without query. Knows locations only as indices.

use bolide_conf::model::LocationConf;

use crate::hash::NameTable;
use bolide_patterns::{CapturePattern, Captures};
use bolide_patterns::{Patterns, Sieves};

/// The index of a location in its site.
pub(crate) type LocationIndex = u32;

/// The locations of one nesting level, compiled for searches.
#[derive(Debug, Default)]
pub(crate) struct RouteLevel {
    exact: NameTable<LocationIndex>,
    /// Sorted by text.
    prefixes: Vec<Prefix>,
    regexes: Patterns<Nested>,
    /// Paths that match a location only with a slash appended.
    slashless: NameTable<LocationIndex>,
}

/// The result of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LocationMatch {
    /// This location.
    Location(LocationIndex),
    /// This location, but the path lacks its final slash: redirect.
    LacksSlash(LocationIndex),
    /// None; the server block itself answers.
    Nothing,
}

#[derive(Debug)]
struct Nested {
    location: LocationIndex,
    inner: RouteLevel,
}

#[derive(Debug)]
struct Prefix {
    key: Box<[u8]>,
    nested: Nested,
    /// `^~`: the regexes of this level are not tried.
    final_: bool,
    /// The longest other prefix of the same level that this one starts with.
    shorter: Option<u32>,
}

/// How a location matches paths.
#[derive(Debug)]
pub(crate) enum RouteClaim {
    /// `= /path`
    Exact(Box<[u8]>),
    /// `/path`
    Prefix(Box<[u8]>),
    /// `^~ /path`
    FinalPrefix(Box<[u8]>),
    /// `~ regex` and `~* regex`
    Regex(CapturePattern),
}

impl RouteLevel {
    /// Adds a location with its nested locations. The reader has refused duplicates.
    pub(crate) fn add(&mut self, claim: RouteClaim, location: LocationIndex, inner: Self) {
        let (key, final_) = match claim {
            RouteClaim::Exact(path) => {
                self.exact.insert(path, location);
                return;
            }
            RouteClaim::Regex(key) => return self.regexes.push(key, Nested { location, inner }),
            RouteClaim::Prefix(path) => (path, false),
            RouteClaim::FinalPrefix(path) => (path, true),
        };
        let nested = Nested { location, inner };
        self.prefixes.push(Prefix { key, nested, final_, shorter: None });
    }

    /// Redirects requests for `path` without its final slash, as nginx does where an upstream
    /// answers.
    pub(crate) fn add_slash(&mut self, path: &[u8], location: LocationIndex) {
        if let Some(slashless) = path.strip_suffix(b"/")
            && !slashless.is_empty()
        {
            self.slashless.insert_new(slashless.into(), location);
        }
    }

    /// Sorts the entries; call it once, when the level is complete.
    pub(crate) fn seal(mut self, sieves: &mut Sieves) -> Self {
        self.regexes.seal(sieves);
        self.prefixes.shrink_to_fit();
        self.prefixes.sort_by(|a, b| a.key.cmp(&b.key));
        for index in 1..self.prefixes.len() {
            let (before, rest) = self.prefixes.split_at_mut(index);
            let key = &rest[0].key;
            let shorter = before.iter().rposition(|prefix| key.starts_with(&prefix.key));
            debug_assert!(
                before.iter().all(|prefix| prefix.key != *key),
                "duplicates were refused"
            );
            rest[0].shorter = shorter.map(|index| index as u32);
        }
        self
    }

    /// The location of `path`. The captures of matching regexes stay in `captures`.
    pub(crate) fn find(&self, path: &[u8], captures: &mut Captures) -> LocationMatch {
        match self.search(path, captures) {
            Search::Final(location) | Search::Prefix(Some(location)) => {
                LocationMatch::Location(location)
            }
            Search::Slash(location) => LocationMatch::LacksSlash(location),
            Search::Prefix(None) => LocationMatch::Nothing,
        }
    }

    fn search(&self, path: &[u8], captures: &mut Captures) -> Search {
        if let Some(&location) = self.exact.get(path) {
            return Search::Final(location);
        }
        let mut found = None;
        let mut regexes = true;
        let prefix = self.longest_prefix(path);
        if let Some(&location) = self.slashless.get(path)
            && prefix.is_none_or(|prefix| prefix.key.len() < path.len())
        {
            // As in nginx, if two locations have that name, the exact one decides.
            let whole = [path, b"/"].concat();
            return Search::Slash(self.exact.get(&whole).copied().unwrap_or(location));
        }
        if let Some(prefix) = prefix {
            regexes = !prefix.final_;
            found = Some(prefix.nested.location);
            match prefix.nested.inner.search_nested(path, captures) {
                Search::Prefix(inner) => found = inner.or(found),
                done @ (Search::Final(_) | Search::Slash(_)) => return done,
            }
        }
        if regexes && let Some(regex) = self.regexes.capture(path, captures) {
            return match regex.inner.search_nested(path, captures) {
                Search::Prefix(inner) => Search::Final(inner.unwrap_or(regex.location)),
                done @ (Search::Final(_) | Search::Slash(_)) => done,
            };
        }
        Search::Prefix(found)
    }

    fn search_nested(&self, path: &[u8], captures: &mut Captures) -> Search {
        if self.is_empty() { Search::Prefix(None) } else { self.search(path, captures) }
    }

    fn is_empty(&self) -> bool {
        self.exact.is_empty() && self.prefixes.is_empty() && self.regexes.is_empty()
    }

    /// The greatest text not above `path` either is the longest prefix of `path` or starts with it,
    /// because every text between a prefix of `path` and `path` itself starts with that prefix.
    fn longest_prefix(&self, path: &[u8]) -> Option<&Prefix> {
        let above = self.prefixes.partition_point(|prefix| *prefix.key <= *path);
        let mut candidate = self.prefixes.get(above.checked_sub(1)?)?;
        while !path.starts_with(&candidate.key) {
            candidate = self.prefixes.get(candidate.shorter? as usize)?;
        }
        debug_assert!(
            self.prefixes.iter().all(|other| {
                other.key.len() <= candidate.key.len() || !path.starts_with(&other.key)
            }),
            "no longer prefix fits"
        );
        Some(candidate)
    }
}

enum Search {
    /// An exact or regex match: outer regexes are not tried.
    Final(LocationIndex),
    /// The path lacks the final slash of this one, which ends the search as well.
    Slash(LocationIndex),
    /// The longest prefix so far, if any.
    Prefix(Option<LocationIndex>),
}

/// The steps between access and content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Precontent {
    Nothing,
    /// `try_files`
    Files,
    /// `mirror`
    Mirrors,
    /// Both, in this order.
    FilesAndMirrors,
    /// `apache_htaccess`; the result of [`Self::of`] follows it.
    Htaccess,
}

impl Precontent {
    /// The first step after access.
    pub(crate) fn first(conf: &LocationConf) -> Self {
        if conf.settings.obeys_apache() { Self::Htaccess } else { Self::of(conf) }
    }

    /// The step after `.htaccess` files.
    pub(crate) fn of(conf: &LocationConf) -> Self {
        match (conf.try_files.is_some(), !conf.settings.mirrors.is_empty()) {
            (false, false) => Self::Nothing,
            (true, false) => Self::Files,
            (false, true) => Self::Mirrors,
            (true, true) => Self::FilesAndMirrors,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{ProptestConfig, Strategy, prop_assert_eq, proptest};

    use super::{LocationMatch, RouteClaim, RouteLevel};
    use bolide_patterns::Captures;
    use bolide_patterns::Sieves;

    fn level(paths: &[String]) -> RouteLevel {
        let mut level = RouteLevel::default();
        for (index, path) in paths.iter().enumerate() {
            level.add(
                RouteClaim::Prefix(path.as_bytes().into()),
                index as u32,
                RouteLevel::default(),
            );
        }
        level.seal(&mut Sieves::default())
    }

    fn path() -> impl Strategy<Value = String> {
        "/[ab/]{0,6}"
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(512))]
        #[test]
        fn the_sorted_search_finds_what_a_scan_finds(
            paths in proptest::collection::hash_set(path(), 0..12),
            asked in path(),
        ) {
            let paths: Vec<String> = paths.into_iter().collect();
            let scanned = (0..paths.len() as u32)
                .filter(|index| asked.starts_with(&paths[*index as usize]))
                .max_by_key(|index| paths[*index as usize].len())
                .map_or(LocationMatch::Nothing, LocationMatch::Location);
            let found = level(&paths).find(asked.as_bytes(), &mut Captures::default());
            prop_assert_eq!(found, scanned);
        }
    }
}
