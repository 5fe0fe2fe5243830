//! Pages that ESI assembles from fragments: their source, and the check of a received body.

use super::{PageLocation, PageModel, PageVersion};
use crate::fault_record::FaultRecord;
use crate::request::SimRequest;

/// The fragments of the pages of [`PageLocation::Esi`].
const PARTS: [&[(PageLocation, usize)]; 4] = [
    &[(PageLocation::Page, 1)],
    &[(PageLocation::Private, 0), (PageLocation::Page, 2), (PageLocation::Private, 0)],
    &[
        (PageLocation::NoStore, 0),
        (PageLocation::Flip, 1),
        (PageLocation::Mixed, 1),
        (PageLocation::Brief, 3),
    ],
    &[(PageLocation::Esi, 1), (PageLocation::Http, 2)],
];

/// The target of a page.
#[must_use]
pub fn target((place, page): (PageLocation, usize)) -> String {
    let name = place.name();
    format!("/{name}?{name}&{page}")
}

/// The targets that a response of this page is made of, its own first.
#[must_use]
pub fn targets(which: (PageLocation, usize)) -> Vec<String> {
    let mut all = vec![target(which)];
    if which.0 == PageLocation::Esi {
        all.extend(PARTS[which.1].iter().flat_map(|part| targets(*part)));
    }
    all
}

/// The text before a fragment, and after the last one. No fragment begins like it.
fn literal(number: u64, at: usize) -> String {
    format!("[{number}.{at} {}]", "abcdefgh".repeat(at * 40 + 1))
}

/// The source of a version behind its first line, as the application sends it.
pub(super) fn text(number: u64, page: usize) -> String {
    let mut text = String::new();
    for (at, part) in PARTS[page].iter().enumerate() {
        let source = target(*part).replace('&', "&amp;");
        let control = match part.0 {
            PageLocation::Private => " cache-control=\"private\"",
            _ => "",
        };
        text.push_str(&literal(number, at));
        text.push_str(&format!("<esi:include src=\"{source}\"{control}/>"));
    }
    text.push_str(&literal(number, PARTS[page].len()));
    text
}

impl PageModel {
    /// Checks that `body` is the page with all its fragments.
    pub(super) fn check_esi_page(
        &self,
        which: (PageLocation, usize),
        body: &[u8],
        request: &SimRequest,
        fault_record: &FaultRecord,
    ) -> Result<(), String> {
        let mut rest = body;
        self.take_page(which, &mut rest, request, fault_record)?;
        match rest {
            [] => Ok(()),
            _ => Err(format!("behind its end: {}", crate::run_trace::excerpt(rest))),
        }
    }

    /// Takes one complete page from the front of `rest`.
    fn take_page(
        &self,
        which: (PageLocation, usize),
        rest: &mut &[u8],
        request: &SimRequest,
        fault_record: &FaultRecord,
    ) -> Result<(), String> {
        let number = rest.split(|byte| *byte == b' ').next().unwrap_or_default();
        let number = std::str::from_utf8(number).ok().and_then(|text| text.parse().ok());
        let Some(version) = number.and_then(|number: u64| self.versions.get(&number)) else {
            return Err(format!("no version is {}", crate::run_trace::excerpt(rest)));
        };
        self.check_version(which, version, request)?;
        if which.0 != PageLocation::Esi {
            return take(rest, &version.body(), version);
        }
        take(rest, version.line().as_bytes(), version)?;
        for (at, part) in PARTS[which.1].iter().enumerate() {
            take(rest, literal(version.number, at).as_bytes(), version)?;
            // A failed fragment is left out.
            if rest.starts_with(b"[") && targets(*part).iter().any(|own| fault_record.may_fail(own))
            {
                continue;
            }
            self.take_page(*part, rest, request, fault_record)?;
        }
        take(rest, literal(version.number, PARTS[which.1].len()).as_bytes(), version)
    }
}

fn take(rest: &mut &[u8], wanted: &[u8], version: &PageVersion) -> Result<(), String> {
    match rest.strip_prefix(wanted) {
        Some(behind) => {
            *rest = behind;
            Ok(())
        }
        None => {
            let found = crate::run_trace::excerpt(rest);
            let wanted = crate::run_trace::excerpt(wanted);
            Err(format!("in {version:?}: {found} in place of {wanted}"))
        }
    }
}
