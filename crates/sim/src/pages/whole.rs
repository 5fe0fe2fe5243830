//! Pages that are assembled from fragments: their text, and whether a received body is made of it.

use super::{PageModel, PagePlace, PageVersion};
use crate::ask::SimAsk;
use crate::deeds::Deeds;

/// What the pages of [`PagePlace::Whole`] are made of.
const PARTS: [&[(PagePlace, usize)]; 4] = [
    &[(PagePlace::Page, 1)],
    &[(PagePlace::Own, 0), (PagePlace::Page, 2), (PagePlace::Own, 0)],
    &[(PagePlace::Never, 0), (PagePlace::Flip, 1), (PagePlace::Mixed, 1), (PagePlace::Brief, 3)],
    &[(PagePlace::Whole, 1), (PagePlace::Http, 2)],
];

/// The address of a page.
#[must_use]
pub fn target((place, page): (PagePlace, usize)) -> String {
    let name = place.name();
    format!("/{name}?{name}&{page}")
}

/// The addresses that an answer of this page is made of, its own first.
#[must_use]
pub fn targets(which: (PagePlace, usize)) -> Vec<String> {
    let mut all = vec![target(which)];
    if which.0 == PagePlace::Whole {
        all.extend(PARTS[which.1].iter().flat_map(|part| targets(*part)));
    }
    all
}

/// What stands before a part, and behind the last one. No part begins so.
fn literal(number: u64, at: usize) -> String {
    format!("[{number}.{at} {}]", "abcdefgh".repeat(at * 40 + 1))
}

/// The text of a version behind its first line, as the application says it.
pub(super) fn text(number: u64, page: usize) -> String {
    let mut text = String::new();
    for (at, part) in PARTS[page].iter().enumerate() {
        let source = target(*part).replace('&', "&amp;");
        let control = match part.0 {
            PagePlace::Own => " cache-control=\"private\"",
            _ => "",
        };
        text.push_str(&literal(number, at));
        text.push_str(&format!("<esi:include src=\"{source}\"{control}/>"));
    }
    text.push_str(&literal(number, PARTS[page].len()));
    text
}

impl PageModel {
    /// Whether `body` is an answer of this page, with all that it is made of.
    pub(super) fn judge_whole(
        &self,
        which: (PagePlace, usize),
        body: &[u8],
        ask: &SimAsk,
        deeds: &Deeds,
    ) -> Result<(), String> {
        let mut rest = body;
        self.take_page(which, &mut rest, ask, deeds)?;
        match rest {
            [] => Ok(()),
            _ => Err(format!("behind its end: {}", crate::scenario_log::excerpt(rest))),
        }
    }

    /// Takes one page, whole, off the front of `rest`.
    fn take_page(
        &self,
        which: (PagePlace, usize),
        rest: &mut &[u8],
        ask: &SimAsk,
        deeds: &Deeds,
    ) -> Result<(), String> {
        let number = rest.split(|byte| *byte == b' ').next().unwrap_or_default();
        let number = std::str::from_utf8(number).ok().and_then(|text| text.parse().ok());
        let Some(version) = number.and_then(|number: u64| self.versions.get(&number)) else {
            return Err(format!("nobody made {}", crate::scenario_log::excerpt(rest)));
        };
        self.judge_version(which, version, ask)?;
        if which.0 != PagePlace::Whole {
            return take(rest, &version.body(), version);
        }
        take(rest, version.line().as_bytes(), version)?;
        for (at, part) in PARTS[which.1].iter().enumerate() {
            take(rest, literal(version.number, at).as_bytes(), version)?;
            // A part that failed is left out.
            if rest.starts_with(b"[") && targets(*part).iter().any(|own| deeds.spoils(own)) {
                continue;
            }
            self.take_page(*part, rest, ask, deeds)?;
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
            let found = crate::scenario_log::excerpt(rest);
            let wanted = crate::scenario_log::excerpt(wanted);
            Err(format!("in {version:?}: {found} in place of {wanted}"))
        }
    }
}
