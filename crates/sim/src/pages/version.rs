//! The versions of a page: each has a number that determines its body.

use super::{PageLocation, SIZES, esi};

/// Length of a run of letters; each next run starts one letter later.
const RUN: usize = 97;

/// The runs of letters by their first letter.
static RUNS: [[u8; RUN]; 26] = {
    let mut runs = [[0; RUN]; 26];
    let mut start = 0;
    while start < 26 {
        let mut at = 0;
        while at < RUN {
            runs[start][at] = b'A' + ((start + 5 * at) % 26) as u8;
            at += 1;
        }
        start += 1;
    }
    runs
};

/// The audience of a version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PageAudience {
    /// All clients.
    All,
    /// The session with this cookie.
    Session(String),
    /// The one request with this cookie.
    Visitor(String),
}

/// A version of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageVersion {
    /// Its number.
    pub number: u64,
    /// The location of the page.
    pub place: PageLocation,
    /// The index of the page in [`SIZES`].
    pub page: usize,
    /// The language that it varies by, if it does.
    pub lang: Option<String>,
    /// Its audience.
    pub audience: PageAudience,
    /// When it was made.
    pub created: u64,
    /// When the application last revalidated it.
    pub revalidated_at: u64,
}

impl PageVersion {
    /// The first line of its body.
    pub(super) fn line(&self) -> String {
        let Self { number, place, page, lang, audience, created, .. } = self;
        format!("{number} {} {page} {lang:?} {audience:?} {created}\n", place.name())
    }

    /// The body.
    #[must_use]
    pub fn body(&self) -> Vec<u8> {
        let mut body = self.line().into_bytes();
        if self.place == PageLocation::Esi {
            body.extend_from_slice(esi::text(self.number, self.page).as_bytes());
            return body;
        }
        // The letter at position `at` has the number `start + 5 * at + at / RUN`.
        let (mut start, mut left) = ((self.number * 7) as usize % 26, SIZES[self.page]);
        while left > 0 {
            let run = &RUNS[start][..left.min(RUN)];
            body.extend_from_slice(run);
            left -= run.len();
            start = (start + RUN * 5 + 1) % 26;
        }
        body
    }

    /// Its entity tag.
    #[must_use]
    pub fn etag(&self) -> String {
        format!("\"v{}\"", self.number)
    }
}
