//! Collects the places that apply to one request, in Apache's order.
//!
//! Owns the bound over their number; what they come to is not decided here.

use super::{Applied, Place};
use crate::effort::Effort;
use crate::pattern::fits_within;
use crate::settings::{FileSection, HtaccessFile, SectionBranch, Settings};
use crate::world::{Evaluation, Stop};

/// LIMIT: sections that apply to one request.
const PLACES_MAX: usize = 10_000;

/// Sections that are still to be looked at, each with the directory of its file.
#[derive(Debug, Default)]
struct Pending<'a> {
    named: Vec<(&'a [u8], &'a FileSection)>,
    branches: Vec<(&'a [u8], &'a Vec<SectionBranch>)>,
}

/// By what it is known whether a condition holds.
pub(super) enum ConditionJudge<'b, 'w> {
    /// It is judged.
    By(&'b mut Evaluation<'w>),
    /// It was judged before, with this result.
    Known(std::slice::Iter<'b, bool>),
}

/// What is left to who judges; `own` where all is known.
fn effort_of<'e>(judge: &'e ConditionJudge<'_, '_>, own: &'e Effort) -> &'e Effort {
    match judge {
        ConditionJudge::By(by) => &by.effort,
        ConditionJudge::Known(_) => own,
    }
}

impl<'a> Pending<'a> {
    fn add(&mut self, directory: &'a [u8], settings: &'a Settings) {
        for section in &settings.sections {
            match section {
                FileSection::Branches(all) => self.branches.push((directory, all)),
                section => self.named.push((directory, section)),
            }
        }
    }
}

impl<'a> Applied<'a> {
    pub(super) fn collect(
        levels: impl Iterator<Item = (&'a [u8], &'a HtaccessFile)>,
        name: &[u8],
        mut judge: ConditionJudge<'_, '_>,
    ) -> Result<Self, Stop> {
        let mut own = Self::default();
        let mut pending = Pending::default();
        let effort = Effort::default();
        for (directory, file) in levels {
            own.places.push(Place {
                settings: &file.settings,
                directory: Some(directory),
                file: directory,
            });
            pending.add(directory, &file.settings);
        }
        own.enter_named(name, &mut pending, effort_of(&judge, &effort))?;
        let mut at = 0;
        while let Some((directory, all)) = pending.branches.get(at).copied() {
            at += 1;
            for branch in all {
                let holds = match (&branch.condition, &mut judge) {
                    (None, _) => true,
                    (Some(condition), ConditionJudge::By(by)) => {
                        condition.holds(by).map_err(|stop| stop.at(directory, branch.line))?
                    }
                    (Some(_), ConditionJudge::Known(choices)) => {
                        choices.next().copied().unwrap_or(false)
                    }
                };
                if branch.condition.is_some() {
                    own.choices.push(holds);
                }
                if holds {
                    own.enter(directory, &branch.settings, &mut pending)?;
                    own.enter_named(name, &mut pending, effort_of(&judge, &effort))?;
                    break;
                }
            }
        }
        Ok(own)
    }

    fn enter(
        &mut self,
        directory: &'a [u8],
        settings: &'a Settings,
        pending: &mut Pending<'a>,
    ) -> Result<(), Stop> {
        if self.places.len() >= PLACES_MAX {
            return Err(Stop::Refused(500, "too many sections apply"));
        }
        self.places.push(Place { settings, directory: None, file: directory });
        pending.add(directory, settings);
        Ok(())
    }

    /// Enters sections by name; those within sections come behind those that they stand in.
    fn enter_named(
        &mut self,
        name: &[u8],
        pending: &mut Pending<'a>,
        effort: &Effort,
    ) -> Result<(), Stop> {
        let mut at = 0;
        while let Some((directory, section)) = pending.named.get(at).copied() {
            at += 1;
            let settings = match section {
                FileSection::Named(glob, settings) if fits_within(glob, name, effort)? => settings,
                FileSection::Matching(pattern, settings) if pattern.is_match(name, effort)? => {
                    settings
                }
                _ => continue,
            };
            self.enter(directory, settings, pending)?;
        }
        pending.named.clear();
        Ok(())
    }
}
