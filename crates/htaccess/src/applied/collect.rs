//! Collects the places that apply to one request, in Apache's order.
//!
//! Owns the limit of their number; `Applied` merges them.

use super::{Applied, Heeded, Place};
use crate::effort::Effort;
use crate::expr::Expr;
use crate::pattern::fits_within;
use crate::settings::{FileSection, HtaccessFile, SectionBranch, Settings};
use crate::world::{Evaluation, Stop};

/// LIMIT: sections that apply to one request.
const PLACES_MAX: usize = 10_000;

/// Sections that are still to be evaluated, each with the directory of its file.
#[derive(Debug, Default)]
struct Pending<'a> {
    named: Vec<(&'a [u8], Heeded, &'a FileSection)>,
    branches: Vec<(&'a [u8], Heeded, &'a Vec<SectionBranch>)>,
}

/// The kind of the enclosing section, and where Apache evaluates it.
#[derive(Clone, Copy, Debug)]
enum Within {
    Name(Heeded),
    Condition(Heeded),
}

/// How it is determined whether a section applies.
pub(super) enum ConditionJudge<'b, 'w> {
    /// By evaluation.
    By(&'b mut Evaluation<'w>),
    /// By stored results.
    Known { conditions: std::slice::Iter<'b, bool>, names: std::slice::Iter<'b, bool> },
    /// Names are compared, and no condition holds.
    ByName(Effort),
}

impl ConditionJudge<'_, '_> {
    fn fits(&mut self, section: &FileSection, name: &[u8]) -> Result<bool, Stop> {
        let effort = match self {
            Self::By(by) => by.effort,
            Self::ByName(effort) => effort,
            Self::Known { names, .. } => return Ok(names.next().copied().unwrap_or(false)),
        };
        match section {
            FileSection::Named(glob, _) => fits_within(glob, name, effort),
            FileSection::Matching(pattern, _) => pattern.is_match(name, effort),
            FileSection::Branches(_) => Ok(false),
        }
    }

    fn holds(&mut self, condition: &Expr) -> Result<bool, Stop> {
        match self {
            Self::By(by) => condition.holds(by),
            Self::Known { conditions, .. } => Ok(conditions.next().copied().unwrap_or(false)),
            Self::ByName(_) => Ok(false),
        }
    }
}

impl<'a> Pending<'a> {
    /// Adds the sections within `settings`, which are themselves in a section of kind `within`.
    fn add(&mut self, directory: &'a [u8], settings: &'a Settings, within: Option<Within>) {
        for section in &settings.sections {
            match section {
                FileSection::Branches(all) => {
                    let heeded = match within {
                        None | Some(Within::Name(Heeded::Always)) => Heeded::Always,
                        Some(Within::Condition(Heeded::Always)) => Heeded::InFirstRound,
                        Some(Within::Name(outer) | Within::Condition(outer)) => outer,
                    };
                    self.branches.push((directory, heeded, all));
                }
                section => {
                    let heeded = if within.is_some() { Heeded::Never } else { Heeded::Always };
                    self.named.push((directory, heeded, section));
                }
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
        for (directory, file) in levels {
            own.places.push(Place {
                settings: &file.settings,
                directory: Some(directory),
                file: directory,
                heeded: Heeded::Always,
            });
            pending.add(directory, &file.settings, None);
        }
        own.enter_named(name, &mut pending, &mut judge)?;
        let mut at = 0;
        while let Some((directory, heeded, all)) = pending.branches.get(at).copied() {
            at += 1;
            for branch in all {
                let holds = match &branch.condition {
                    None => true,
                    Some(condition) => {
                        let holds = judge.holds(condition);
                        let holds = holds.map_err(|stop| stop.at(directory, branch.line))?;
                        own.choices.conditions.push(holds);
                        holds
                    }
                };
                if holds {
                    let within = Within::Condition(heeded);
                    own.enter(directory, &branch.settings, within, &mut pending)?;
                    own.enter_named(name, &mut pending, &mut judge)?;
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
        within: Within,
        pending: &mut Pending<'a>,
    ) -> Result<(), Stop> {
        if self.places.len() >= PLACES_MAX {
            return Err(Stop::Refused(500, "too many sections apply"));
        }
        let (Within::Name(heeded) | Within::Condition(heeded)) = within;
        self.places.push(Place { settings, directory: None, file: directory, heeded });
        pending.add(directory, settings, Some(within));
        Ok(())
    }

    /// Adds sections by name; nested ones come after those that contain them.
    fn enter_named(
        &mut self,
        name: &[u8],
        pending: &mut Pending<'a>,
        judge: &mut ConditionJudge<'_, '_>,
    ) -> Result<(), Stop> {
        let mut at = 0;
        while let Some((directory, heeded, section)) = pending.named.get(at).copied() {
            at += 1;
            let fits = judge.fits(section, name)?;
            self.choices.names.push(fits);
            if let FileSection::Named(_, settings) | FileSection::Matching(_, settings) = section
                && fits
            {
                self.enter(directory, settings, Within::Name(heeded), pending)?;
            }
        }
        pending.named.clear();
        Ok(())
    }
}
