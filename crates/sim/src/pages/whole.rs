//! Pages that are put together from fragments: their text, and whether what came is made of it.

use super::{Pages, Place, Version};
use crate::ask::Ask;
use crate::origin::Deeds;

/// What the pages of [`Place::Whole`] are made of.
const PARTS: [&[(Place, usize)]; 4] = [
    &[(Place::Page, 1)],
    &[(Place::Own, 0), (Place::Page, 2), (Place::Own, 0)],
    &[(Place::Never, 0), (Place::Flip, 1), (Place::Mixed, 1), (Place::Brief, 3)],
    &[(Place::Whole, 1), (Place::Http, 2)],
];

/// The address of a page.
#[must_use]
pub fn target((place, page): (Place, usize)) -> String {
    let name = place.name();
    format!("/{name}?{name}&{page}")
}

/// The addresses that an answer of this page is made of, its own first.
#[must_use]
pub fn targets(which: (Place, usize)) -> Vec<String> {
    let mut all = vec![target(which)];
    if which.0 == Place::Whole {
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
            Place::Own => " cache-control=\"private\"",
            _ => "",
        };
        text.push_str(&literal(number, at));
        text.push_str(&format!("<esi:include src=\"{source}\"{control}/>"));
    }
    text.push_str(&literal(number, PARTS[page].len()));
    text
}

impl Pages {
    /// Whether `body` is an answer of this page, with all that it is made of.
    pub(super) fn judge_whole(
        &self,
        which: (Place, usize),
        body: &[u8],
        ask: &Ask,
        deeds: &Deeds,
    ) -> Result<(), String> {
        let mut rest = body;
        self.take_page(which, &mut rest, ask, deeds)?;
        match rest {
            [] => Ok(()),
            _ => Err(format!("behind its end: {}", crate::story::excerpt(rest))),
        }
    }

    /// Takes one page, whole, off the front of `rest`.
    fn take_page(
        &self,
        which: (Place, usize),
        rest: &mut &[u8],
        ask: &Ask,
        deeds: &Deeds,
    ) -> Result<(), String> {
        let number = rest.split(|byte| *byte == b' ').next().unwrap_or_default();
        let number = std::str::from_utf8(number).ok().and_then(|text| text.parse().ok());
        let Some(version) = number.and_then(|number: u64| self.versions.get(&number)) else {
            return Err(format!("nobody made {}", crate::story::excerpt(rest)));
        };
        self.judge_version(which, version, ask)?;
        if which.0 != Place::Whole {
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

fn take(rest: &mut &[u8], wanted: &[u8], version: &Version) -> Result<(), String> {
    match rest.strip_prefix(wanted) {
        Some(behind) => {
            *rest = behind;
            Ok(())
        }
        None => {
            let found = crate::story::excerpt(rest);
            let wanted = crate::story::excerpt(wanted);
            Err(format!("in {version:?}: {found} in place of {wanted}"))
        }
    }
}
