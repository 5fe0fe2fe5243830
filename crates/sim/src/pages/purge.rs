//! The scopes of purges: which versions each kind of purge covers.

use super::{PageAudience, PageLocation, PageVersion};

/// The objects that a purge covers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PurgeScope {
    /// A public page of the page cache.
    Tag(usize),
    /// All public pages of the page cache.
    All,
    /// One URL: its port, and the session of the client.
    Url(PageLocation, usize, u16, Option<String>),
    /// A private page of a session.
    SessionTag(usize, String),
    /// All private pages of a session.
    Session(String),
    /// A private page of any session.
    AnySessionTag(usize),
    /// A key of a zone.
    Key(PageLocation, usize),
}

impl PurgeScope {
    pub(super) fn covers(&self, version: &PageVersion, port: u16) -> bool {
        let PageVersion { place, page, audience, .. } = version;
        let is_public = *audience == PageAudience::All;
        let is_of = |session: &String| *audience == PageAudience::Session(session.clone());
        if let Self::Key(zone, wanted) = self {
            return zone == place && wanted == page;
        }
        if place.is_zone() {
            return false;
        }
        match self {
            Self::Tag(wanted) => is_public && wanted == page,
            Self::All => is_public,
            Self::Url(wanted, number, at, session) => {
                let here = (wanted, number, *at) == (place, page, port);
                here && (is_public || session.as_ref().is_some_and(is_of))
            }
            Self::SessionTag(wanted, session) => wanted == page && is_of(session),
            Self::Session(session) => is_of(session),
            Self::AnySessionTag(wanted) => {
                wanted == page && matches!(audience, PageAudience::Session(_))
            }
            Self::Key(..) => false,
        }
    }
}

/// The kinds of purges that an edit requests.
pub const PURGE_KINDS: u64 = 8;

/// The application's purge header for an edit, and the scope of the purge.
#[must_use]
pub fn purge_header(
    number: u64,
    page: usize,
    session: Option<&str>,
) -> (String, Option<PurgeScope>) {
    let own = session.map(str::to_owned);
    match number {
        0 => (format!("public, tag=p{page}"), Some(PurgeScope::Tag(page))),
        1 => (format!("p{page}"), Some(PurgeScope::Tag(page))),
        2 => ("*".to_owned(), Some(PurgeScope::All)),
        3 => ("p*".to_owned(), Some(PurgeScope::All)),
        4 => (format!("private, tag=p{page}"), own.map(|own| PurgeScope::SessionTag(page, own))),
        5 => ("private, *".to_owned(), own.map(PurgeScope::Session)),
        6 => (format!("tag=g{page}"), Some(PurgeScope::AnySessionTag(page))),
        _ => (format!("public, stale, p{page}"), None),
    }
}
