//! The methods that a location supports, for the `Allow` of a 405.

use bolide_conf::model::{DavMethod, DavMethods};

/// Supported methods, by the kind of content handler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Allowed {
    /// Files, other built-in handlers, and WebDAV.
    Reading(DavMethods),
    /// Upstreams, which decide about methods themselves.
    All,
}

impl Allowed {
    pub(crate) fn methods(self) -> Vec<&'static str> {
        match self {
            Self::Reading(changes) => {
                let named = DavMethod::ALL.into_iter().filter(|method| changes.has(*method));
                ["GET", "HEAD"].into_iter().chain(named.map(DavMethod::name)).collect()
            }
            Self::All => vec!["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"],
        }
    }
}
