//! Which methods a location knows that refused another one.

/// Methods by what answers them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Allowed {
    /// Files and what else the server makes itself.
    Reading,
    /// Origins, which decide for themselves about the rest.
    All,
}

impl Allowed {
    pub(crate) const fn methods(self) -> &'static [&'static str] {
        match self {
            Self::Reading => &["GET", "HEAD"],
            Self::All => &["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"],
        }
    }
}
