//! The directives that apply to one request: the places in Apache's order, merged.
//!
//! Order: the file of each directory from the root down, then the `<Files>` sections of all files,
//! then the `<If>` sections. Lists are concatenated; of other settings the last counts.

mod age;
mod bodies;
mod collect;
mod fields;
mod programs;

use std::collections::HashMap;

use self::collect::ConditionJudge;
use crate::access::{AuthzStatus, Requirement, Satisfies};
use crate::effort::Effort;
use crate::mime::{self, FileNature};
use crate::options::DirOptions;
use crate::pattern::fits_within;
use crate::redirect::{ErrorAnswer, RedirectTo};
use crate::rewrite::{EffectiveRewriting, PassOutcome, RewritePlace};
use crate::setenv::EnvRule;
use crate::settings::{AuthMerging, AuthScheme, EtagParts, HtaccessFile, PathInfoRule, Settings};
use crate::tls::{self, TlsVerdict};
use crate::world::{Evaluation, Stop};

#[derive(Clone, Copy, Debug)]
struct Place<'a> {
    settings: &'a Settings,
    /// The directory of the file; none for a section.
    directory: Option<&'a [u8]>,
    /// The directory of the file that contains it.
    file: &'a [u8],
    heeded: Heeded,
}

/// Where Apache evaluates a section within another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Heeded {
    Always,
    /// Not for an index, and not for a rewritten path.
    InFirstRound,
    Never,
}

/// The directives that apply to one request.
#[derive(Clone, Debug, Default)]
pub struct Applied<'a> {
    places: Vec<Place<'a>>,
    choices: SectionChoices,
}

/// The sections that apply, in the order of their evaluation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SectionChoices {
    /// The results of the conditions of `<If>` and its kin.
    pub conditions: Vec<bool>,
    /// The results of `<Files>` and `<FilesMatch>`.
    pub names: Vec<bool>,
}

/// The names that a listing omits.
#[derive(Debug)]
pub struct HiddenNames<'a> {
    globs: Vec<&'a [u8]>,
    effort: Effort,
}

impl HiddenNames<'_> {
    /// Whether it omits a name, also if the match exceeded its limit.
    #[must_use]
    pub fn has(&self, name: &[u8]) -> bool {
        self.globs.iter().any(|glob| fits_within(glob, name, &self.effort).unwrap_or(true))
    }
}

/// The decision about access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// Access is granted.
    Open,
    /// Access is denied, with any user.
    Forbidden,
    /// The client has to authenticate.
    AsksWho,
    /// The client has to authenticate, but the method is not configured.
    Unclear,
}

impl Admission {
    /// Combines two decisions, both of which have to grant access.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        let all = [Self::Forbidden, Self::Unclear, Self::AsksWho];
        all.into_iter().find(|one| [self, other].contains(one)).unwrap_or(Self::Open)
    }
}

/// The authentication method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AuthSetup<'a> {
    /// The realm.
    pub realm: &'a [u8],
    /// The password file; without one, no password is right.
    pub user_file: Option<&'a [u8]>,
    /// The file of groups.
    pub group_file: Option<&'a [u8]>,
}

impl<'a> Applied<'a> {
    /// The directives of `levels` for a file called `name`: each directory (with a final slash)
    /// with its file, from the root down.
    ///
    /// # Errors
    ///
    /// A condition could not be evaluated.
    pub fn new(
        levels: impl Iterator<Item = (&'a [u8], &'a HtaccessFile)>,
        name: &[u8],
        by: &mut Evaluation<'_>,
    ) -> Result<Self, Stop> {
        Self::collect(levels, name, ConditionJudge::By(by))
    }

    /// The same again, with stored results of sections ([`Self::choices`]); none if the levels
    /// differ. Without stored results, no condition holds.
    #[must_use]
    pub fn again(
        levels: impl Iterator<Item = (&'a [u8], &'a HtaccessFile)>,
        name: &[u8],
        choices: Option<&SectionChoices>,
    ) -> Self {
        let judge = match choices {
            Some(choices) => ConditionJudge::Known {
                conditions: choices.conditions.iter(),
                names: choices.names.iter(),
            },
            None => ConditionJudge::ByName(Effort::of_request(usize::MAX)),
        };
        Self::collect(levels, name, judge).unwrap_or_default()
    }

    /// The sections that apply.
    #[must_use]
    pub const fn choices(&self) -> &SectionChoices {
        &self.choices
    }

    /// Whether a directive concerns the response fields of a file called `name`.
    #[must_use]
    pub fn describes(&self, name: &[u8]) -> bool {
        self.edits_response()
            || self.etag() != EtagParts::Usual
            || self.last(|settings| settings.expiry.active) == Some(true)
            || self.has_output_filters()
            || self.nature(name) != FileNature::default()
            || !self.languages(name).is_empty()
    }

    fn last<T>(&self, of: impl Fn(&'a Settings) -> Option<T>) -> Option<T> {
        self.places.iter().rev().find_map(|place| of(place.settings))
    }

    fn all(&self) -> impl DoubleEndedIterator<Item = &'a Settings> {
        self.places.iter().map(|place| place.settings)
    }

    /// Applies `SetEnvIf` and its kin.
    ///
    /// # Errors
    ///
    /// A condition could not be evaluated.
    pub fn set_conditional_env(&self, by: &mut Evaluation<'_>) -> Result<(), Stop> {
        for place in &self.places {
            place.settings.env_if.iter().try_for_each(|line| line.apply(place.file, by))?;
        }
        Ok(())
    }

    /// Applies `SetEnv` and `UnsetEnv`.
    pub fn set_env(&self, by: &mut Evaluation<'_>) {
        // As in Apache, `UnsetEnv` only cancels earlier `SetEnv` lines.
        let rules = || self.all().flat_map(|settings| &settings.env).enumerate();
        let unsets = rules().filter_map(|(at, rule)| match rule {
            EnvRule::Unset(name) => Some((&**name, at)),
            EnvRule::Set(..) => None,
        });
        let last_unset: HashMap<&[u8], usize> = unsets.collect();
        for (at, rule) in rules() {
            if let EnvRule::Set(name, value) = rule
                && last_unset.get(&**name).is_none_or(|unset| *unset < at)
            {
                by.env.set(name, value);
            }
        }
    }

    /// Decides about access with `method`: evaluates both kinds of rules, and combines them by
    /// `Satisfy`.
    ///
    /// # Errors
    ///
    /// A condition could not be evaluated.
    pub fn admission(&self, method: &[u8], by: &mut Evaluation<'_>) -> Result<Admission, Stop> {
        let of_tls = self.places.iter().map(|place| &place.settings.tls);
        let of_tls = tls::judge(of_tls, by)?;
        if of_tls == TlsVerdict::Refused {
            return Ok(Admission::Forbidden);
        }
        let hosts = self.last(|settings| settings.hosts.is_given.then_some(&settings.hosts));
        let host_admits =
            of_tls == TlsVerdict::Good && hosts.is_none_or(|hosts| hosts.admits(method, by));
        let satisfies = hosts.map_or(Satisfies::All, |hosts| hosts.satisfies(method));
        match (satisfies, host_admits) {
            (Satisfies::All, false) => return Ok(Admission::Forbidden),
            (Satisfies::Any, true) => return Ok(Admission::Open),
            _ => {}
        }
        let Some((verdict, is_limited)) = self.judge(method, by)? else {
            // If one is enough and the other denies access, nothing is left that grants it.
            return Ok(match satisfies {
                Satisfies::All => Admission::Open,
                Satisfies::Any => Admission::Forbidden,
            });
        };
        Ok(match verdict {
            AuthzStatus::Granted => Admission::Open,
            AuthzStatus::Denied => Admission::Forbidden,
            // Rules for other methods.
            AuthzStatus::Neutral if is_limited => Admission::Open,
            AuthzStatus::Neutral => Admission::Forbidden,
            AuthzStatus::NeedsUser if self.auth_setup().is_none() => Admission::Unclear,
            AuthzStatus::NeedsUser => Admission::AsksWho,
        })
    }

    /// The result of all lines of `Require` that apply, and whether they concern some methods only;
    /// none without lines.
    fn judge(
        &self,
        method: &[u8],
        by: &mut Evaluation<'_>,
    ) -> Result<Option<(AuthzStatus, bool)>, Stop> {
        let places: Vec<_> = self.all().filter(|settings| !settings.rules.is_empty()).collect();
        let merges = |settings: &Settings| {
            matches!(settings.merging, Some(AuthMerging::And | AuthMerging::Or))
        };
        let first = places.iter().rposition(|settings| !merges(settings)).unwrap_or(0);
        let mut so_far: Option<(AuthzStatus, bool)> = None;
        for settings in places.iter().skip(first) {
            let own = Requirement::judge_any(&settings.rules, method, by)?;
            let is_limited = settings.rules.iter().all(Requirement::is_limited);
            so_far = Some(match (so_far, settings.merging) {
                (Some((above, limited)), Some(AuthMerging::And)) => {
                    (above.and(own), limited && is_limited)
                }
                (Some((above, limited)), Some(AuthMerging::Or)) => {
                    (above.or(own), limited && is_limited)
                }
                _ => (own, is_limited),
            });
        }
        Ok(so_far)
    }

    /// The same without the sections that Apache ignores, in a first round or a later one; none if
    /// it ignores none. Access must be granted by both.
    #[must_use]
    pub fn heeded(&self, is_first: bool) -> Option<Self> {
        let is_heeded = |place: &&Place<'_>| match place.heeded {
            Heeded::Always => true,
            Heeded::InFirstRound => is_first,
            Heeded::Never => false,
        };
        if self.places.iter().all(|place| is_heeded(&place)) {
            return None;
        }
        let places = self.places.iter().filter(is_heeded).copied().collect();
        Some(Self { places, choices: SectionChoices::default() })
    }

    /// Whether a rule may need the user.
    #[must_use]
    pub fn may_ask_for_user(&self) -> bool {
        self.all().any(|settings| settings.rules.iter().any(Requirement::asks_for_user))
    }

    /// The authentication method; none if realm or scheme are missing.
    #[must_use]
    pub fn auth_setup(&self) -> Option<AuthSetup<'a>> {
        let scheme = self.last(|settings| settings.auth_type)?;
        if scheme != AuthScheme::Basic {
            return None;
        }
        Some(AuthSetup {
            realm: self.last(|settings| settings.auth_name.as_deref())?,
            user_file: self.last(|settings| settings.user_file.as_deref()),
            group_file: self.last(|settings| settings.group_file.as_deref()),
        })
    }

    /// Whether the path of `file` may be rewritten: the rules of a directory's own file wait for
    /// its final slash.
    #[must_use]
    pub fn rewrites(&self, file: &[u8]) -> bool {
        let effective = self.rewriting();
        effective.is_on && !effective.waits_for_slash(file)
    }

    fn rewriting(&self) -> EffectiveRewriting<'a> {
        let mut effective = EffectiveRewriting::default();
        for place in &self.places {
            effective.enter(&place.settings.rewriting, place.directory);
        }
        effective
    }

    /// Whether a rule looks ahead to the result of another request.
    #[must_use]
    pub fn looks_ahead(&self) -> bool {
        self.all().any(|settings| settings.rewriting.looks_ahead)
    }

    /// Runs the rewrite rules once.
    ///
    /// # Errors
    ///
    /// A rule could not be evaluated, or refuses the request.
    pub fn rewrite(
        &self,
        place: &RewritePlace<'_>,
        by: &mut Evaluation<'_>,
    ) -> Result<PassOutcome, Stop> {
        let effective = self.rewriting();
        if !effective.is_on || effective.waits_for_slash(place.file) {
            return Ok(PassOutcome::default());
        }
        effective.run(place, by)
    }

    /// Applies `Redirect` to `path` (decoded).
    ///
    /// # Errors
    ///
    /// A match exceeded its limit.
    pub fn redirect(
        &self,
        path: &[u8],
        args: Option<&[u8]>,
        effort: &Effort,
    ) -> Result<Option<RedirectTo>, Stop> {
        // Those of deeper places come first.
        for settings in self.all().rev() {
            for line in &settings.redirects {
                if let Some(to) = line.of(path, args, effort)? {
                    return Ok(Some(to));
                }
            }
        }
        Ok(None)
    }

    /// The options, where `location` are those of the location.
    #[must_use]
    pub fn options(&self, location: DirOptions) -> DirOptions {
        self.all().filter_map(|settings| settings.options).fold(location, DirOptions::changed)
    }

    /// `DirectoryIndex`; none if no place sets it. An empty list disables indexes.
    #[must_use]
    pub fn index(&self) -> Option<&'a [Box<[u8]>]> {
        self.last(|settings| settings.index.as_deref())
    }

    /// `FallbackResource`: the path that answers for a missing file.
    #[must_use]
    pub fn fallback(&self) -> Option<&'a [u8]> {
        self.last(|settings| settings.fallback.as_ref()).and_then(Option::as_deref)
    }

    /// Whether a directory's path gets its final slash by a redirect.
    #[must_use]
    pub fn redirects_to_slash(&self) -> bool {
        self.last(|settings| settings.redirects_to_slash).unwrap_or(true)
    }

    /// The handling of a path that continues after a file.
    #[must_use]
    pub fn path_info(&self) -> PathInfoRule {
        self.last(|settings| settings.path_info).unwrap_or_default()
    }

    /// The names that a listing omits.
    #[must_use]
    pub fn hidden(&self) -> HiddenNames<'a> {
        let globs = self.all().flat_map(|settings| &settings.hidden).map(|glob| &**glob);
        HiddenNames { globs: globs.collect(), effort: Effort::default() }
    }

    /// The properties of a file by its name.
    #[must_use]
    pub fn nature(&self, name: &[u8]) -> FileNature<'a> {
        let places: Vec<_> = self.all().rev().map(|settings| &settings.mime).collect();
        let mut nature = FileNature::new(&places, name);
        // The configuration runs scripts as a `<FilesMatch>` of the server would: a directory's
        // `SetHandler None` comes before that in Apache, a section's after it.
        let is_none_last = self.places.iter().rev().find_map(|place| {
            let handler = place.settings.mime.handler.as_ref()?;
            Some(handler.is_none() && place.directory.is_none())
        });
        nature.is_unhandled |= is_none_last == Some(true) && nature.handler.is_none();
        nature
    }

    /// The value of `Content-Language` that the name of a file gives; empty for none.
    #[must_use]
    pub fn languages(&self, name: &[u8]) -> Vec<u8> {
        let places: Vec<_> = self.all().rev().map(|settings| &settings.mime).collect();
        mime::languages(&places, name)
    }

    /// The `ErrorDocument` for a status.
    #[must_use]
    pub fn error_answer(&self, status: u16) -> Option<&'a ErrorAnswer> {
        let find = |settings: &'a Settings| {
            settings.errors.iter().rfind(|(known, _)| *known == status).map(|(_, answer)| answer)
        };
        self.last(find).filter(|answer| **answer != ErrorAnswer::Default)
    }

    /// The parts of an `ETag`.
    #[must_use]
    pub fn etag(&self) -> EtagParts {
        self.last(|settings| settings.etag).unwrap_or(EtagParts::Usual)
    }

    /// Whether applications get TLS variables.
    #[must_use]
    pub fn exports_tls(&self) -> bool {
        tls::exports(self.all().map(|settings| &settings.tls))
    }
}
