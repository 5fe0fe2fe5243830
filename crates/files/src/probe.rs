//! A file lookup as a value: the request and its result.
//!
//! How an `Io` backend performs a [`Probe`]: `Want::Stat` is `stat`. `Want::Open` with `known`
//! begins with `stat`: equal meta means `Probed::Unchanged`. Otherwise `open(O_RDONLY | O_NONBLOCK
//! | O_CLOEXEC)` and `fstat`. A directory or special file is closed again and reported as `Seen`; a
//! regular file of at most `content_max` bytes is read whole (exactly `size` bytes, else its meta
//! is taken again) and closed; a larger one stays open. Where `open` fails by what is no absence,
//! `stat` tells whether something lies there: it takes neither a descriptor nor the right to read,
//! and what was not looked at must not be taken for what is not there. `Want::List` reads the
//! names. A path that contains a NUL is `NotFound`.

use std::rc::Rc;
use std::time::Duration;

use bolide_base::limits;
use bytes::Bytes;

use crate::{DirEntry, Meta, OpenFailure};

/// The kind of lookup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Want {
    /// The file itself, with its content if it has at most `content_max` bytes.
    Open {
        /// Bytes.
        content_max: u64,
    },
    /// Only whether it exists, and its type.
    Stat,
    /// The names in a directory, each with a `stat` that follows links; names that begin with a dot
    /// are omitted.
    List,
}

impl Want {
    /// The file, with a content as large as the limits allow.
    pub const OPEN: Self = Self::Open { content_max: limits::FILE_CONTENT_MAX };
}

/// Which symbolic links in the path are refused (`disable_symlinks`); a refusal is ELOOP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SymlinkPolicy {
    /// None.
    #[default]
    Follow,
    /// All after the first `from` bytes of the path.
    Refuse {
        /// Bytes of the path that are not checked.
        from: usize,
    },
    /// Those after the first `from` bytes whose owner differs from their target's.
    RefuseForeign {
        /// Bytes of the path that are not checked.
        from: usize,
    },
}

impl SymlinkPolicy {
    /// The same rule, except that the part of `path` inside the directory `from` is not checked.
    #[must_use]
    pub fn beginning_at(self, path: &[u8], from: &[u8]) -> Self {
        if from.is_empty() || !path.starts_with(from) {
            return self;
        }
        if from.len() == path.len() {
            return Self::Follow;
        }
        let skip = match (path[from.len()], from.len() - 1) {
            (b'/', _) => from.len(),
            (_, last) if from[last] == b'/' => last,
            _ => return self,
        };
        match self {
            Self::Follow => Self::Follow,
            Self::Refuse { .. } => Self::Refuse { from: skip },
            Self::RefuseForeign { .. } => Self::RefuseForeign { from: skip },
        }
    }
}

/// Whether failed lookups are cached (`open_file_cache_errors`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Remember {
    /// Only until the end of the turn.
    #[default]
    Nothing,
    /// As long as successful ones.
    Failures,
}

/// The condition under which a result may be used for another request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Trust {
    /// Unchanged: the directories on its path are watched.
    #[default]
    Watched,
    /// Young enough, whether or not it has changed (`open_file_cache`).
    Young,
}

/// How long a result stays valid (`open_file_cache*`, `disable_symlinks`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProbePolicy {
    /// Age at which an entry is checked again.
    pub valid: Duration,
    /// Time without use after which an entry is dropped.
    pub inactive: Duration,
    /// Entries above which a new one replaces an old one.
    pub max: usize,
    /// Uses within `inactive` that an entry needs before it is trusted.
    pub min_uses: u32,
    /// How failures are cached.
    pub failures: Remember,
    /// Which links are refused.
    pub symlinks: SymlinkPolicy,
    /// The condition within that age.
    pub trust: Trust,
}

impl Default for ProbePolicy {
    /// A lookup for each request, unless the directories are watched; then once a second, for
    /// changes that inotify does not report (mapped memory, mounts).
    fn default() -> Self {
        Self {
            valid: Duration::from_secs(1),
            inactive: Duration::from_mins(1),
            max: limits::FILES_KNOWN_MAX,
            min_uses: 1,
            failures: Remember::Nothing,
            symlinks: SymlinkPolicy::Follow,
            trust: Trust::Watched,
        }
    }
}

/// A requested file lookup.
#[derive(Clone, Debug)]
pub struct Probe {
    /// The path.
    pub path: Rc<[u8]>,
    /// Its kind.
    pub want: Want,
    /// The attributes in the table; if the file still has them, `Probed::Unchanged` is enough.
    pub known: Option<Meta>,
    /// The caching rules for the result; the backend needs only `symlinks`.
    pub policy: ProbePolicy,
}

/// The result of a file lookup.
#[derive(Clone, Debug)]
pub enum Probed {
    /// The file still has the attributes that the probe knew.
    Unchanged,
    /// A regular file was opened and read whole; its descriptor is closed.
    Content(Meta, Bytes),
    /// A regular file was opened and stays open.
    Open(Meta, bolide_base::FileRef),
    /// It exists: a directory, a special file, or a file that was not to be opened.
    Seen(Meta),
    /// The entries of a directory: directories first, names in byte order.
    Listing(Meta, Vec<DirEntry>),
    /// It exists, but opening it failed.
    Closed(Meta, OpenFailure),
    /// It failed.
    Failed(OpenFailure),
}

impl Probed {
    /// Whether there was no descriptor for it.
    #[must_use]
    pub const fn is_out_of_descriptors(&self) -> bool {
        match self {
            Self::Closed(_, failure) | Self::Failed(failure) => failure.is_out_of_descriptors(),
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::SymlinkPolicy;

    #[test]
    fn the_part_before_from_is_not_checked() {
        let rule = SymlinkPolicy::Refuse { from: 0 };
        let at = |path: &[u8], from: &[u8]| rule.beginning_at(path, from);
        assert_eq!(at(b"/srv/www/a", b"/srv/www"), SymlinkPolicy::Refuse { from: 8 });
        assert_eq!(at(b"/srv/www/a", b"/srv/www/"), SymlinkPolicy::Refuse { from: 8 });
        assert_eq!(at(b"/srv/wwwx/a", b"/srv/www"), rule);
        assert_eq!(at(b"/other/a", b"/srv/www"), rule);
        assert_eq!(at(b"/srv/www", b"/srv/www"), SymlinkPolicy::Follow);
        assert_eq!(at(b"/srv/www", b""), rule);
        let foreign = SymlinkPolicy::RefuseForeign { from: 0 }.beginning_at(b"/a/b", b"/a");
        assert_eq!(foreign, SymlinkPolicy::RefuseForeign { from: 2 });
    }
}
