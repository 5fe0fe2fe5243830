//! Which methods a location knows that refused another one.

use bolide_conf::model::{DavMethod, DavMethods};

/// Methods by what answers them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Allowed {
    /// Files and what else the server makes itself, and changes of files.
    Reading(DavMethods),
    /// Origins, which decide for themselves about the rest.
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
