//! What the configuration says about directories in Apache's words, and where their rules may lead.

use std::sync::Arc;

use bolide_htaccess::ServerPlace;

/// An `apache_directory`: what the configuration says about a directory, in Apache's words.
#[derive(Clone, Debug)]
pub struct ApacheDirectory {
    /// As written, which is what two of them are compared by.
    pub words: Box<[Box<[u8]>]>,
    /// As read.
    pub place: Arc<ServerPlace>,
}

/// `apache_proxy`: where rules with `[P]` may lead, and what answers there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApacheProxy {
    /// `scheme://host:port`, in lower case.
    pub origin: Box<[u8]>,
    /// How paths begin: empty, or with a slash.
    pub path: Box<[u8]>,
    /// The named location, with its `@`.
    pub location: Box<[u8]>,
}

impl ApacheProxy {
    /// Whether it is for `path` at `origin`.
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
