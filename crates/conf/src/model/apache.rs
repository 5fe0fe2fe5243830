//! Apache's directives for directories in the configuration, and the targets of proxied rules.

use std::sync::Arc;

use bolide_htaccess::ServerPlace;

/// An `apache_directory`: Apache's directives for a directory.
#[derive(Clone, Debug)]
pub struct ApacheDirectory {
    /// The text as written, for comparison.
    pub words: Box<[Box<[u8]>]>,
    /// The parsed form.
    pub place: Arc<ServerPlace>,
}

/// `apache_proxy`: an allowed target of rules with `[P]`, and the location that handles it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApacheProxy {
    /// `scheme://host:port`, in lower case.
    pub origin: Box<[u8]>,
    /// The prefix of paths: empty, or with a slash.
    pub path: Box<[u8]>,
    /// The named location, with its `@`.
    pub location: Box<[u8]>,
}

/// `apache_handler`: a handler's name, and the location that answers for files with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApacheHandler {
    /// In lower case.
    pub name: Box<[u8]>,
    /// The named location, with its `@`.
    pub location: Box<[u8]>,
}

impl ApacheProxy {
    /// Whether it allows `path` at `origin`.
    #[must_use]
    pub fn allows(&self, origin: &[u8], path: &[u8]) -> bool {
        let rest = path.strip_prefix(&self.path[..]);
        let is_whole =
            |rest: &[u8]| rest.is_empty() || rest[0] == b'/' || self.path.last() == Some(&b'/');
        self.origin.eq_ignore_ascii_case(origin) && rest.is_some_and(is_whole)
    }
}

impl PartialEq for ApacheDirectory {
    fn eq(&self, other: &Self) -> bool {
        self.words == other.words
    }
}
