//! What applies to one request: the places in Apache's order, and what they come to.
//!
//! Order: the file of each directory from the root down, then the `<Files>` sections of all files,
//! then the `<If>` sections. Lists add up; the rest is taken from the last place that says it.

mod age;
mod bodies;
mod collect;

use std::collections::HashMap;

use self::collect::ConditionJudge;
use crate::access::{AuthzStatus, Requirement, Satisfies};
use crate::effort::Effort;
use crate::headers::{self, HeaderTable, HeaderTimes};
use crate::mime::{self, FileNature};
use crate::options::DirOptions;
use crate::pattern::fits_within;
use crate::redirect::{ErrorAnswer, RedirectTo};
use crate::rewrite::{EffectiveRewriting, PassOutcome, RewritePlace};
use crate::setenv::EnvRule;
use crate::settings::{
    AuthMerging, AuthScheme, EtagParts, HtaccessFile, PathInfoRule, PhpSetting, Settings,
};
use crate::tls::{self, TlsVerdict};
use crate::world::{Evaluation, Stop};

#[derive(Clone, Copy, Debug)]
struct Place<'a> {
    settings: &'a Settings,
    /// The directory of the file; none for a section.
    directory: Option<&'a [u8]>,
    /// The directory of the file that it stands in.
    file: &'a [u8],
    heeded: Heeded,
}

/// Where Apache heeds a section that stands in another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Heeded {
    Always,
    /// Not for an index, and not for a path that was rewritten.
    InFirstRound,
    Never,
}

/// What applies to one request.
#[derive(Clone, Debug, Default)]
pub struct Applied<'a> {
    places: Vec<Place<'a>>,
    choices: SectionChoices,
}

/// Which sections apply, in the order in which that was asked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SectionChoices {
    /// Which conditions of `<If>` and its kin held.
    pub conditions: Vec<bool>,
    /// Which of `<Files>` and `<FilesMatch>` the name fits.
    pub names: Vec<bool>,
}

/// The names that one listing leaves out.
#[derive(Debug)]
pub struct HiddenNames<'a> {
    globs: Vec<&'a [u8]>,
    effort: Effort,
}

impl HiddenNames<'_> {
    /// Whether it leaves a name out, which it does, too, where that took too many steps.
    #[must_use]
    pub fn has(&self, name: &[u8]) -> bool {
        self.globs.iter().any(|glob| fits_within(glob, name, &self.effort).unwrap_or(true))
    }
}

/// Who may come in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// The request goes on.
    Open,
    /// It is refused, with any name.
    Forbidden,
    /// The client has to show who it is.
    AsksWho,
    /// The client has to show who it is, and nothing says how.
    Unclear,
}

impl Admission {
    /// What two judgements come to, both of which have to let it in.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        let all = [Self::Forbidden, Self::Unclear, Self::AsksWho];
        all.into_iter().find(|one| [self, other].contains(one)).unwrap_or(Self::Open)
    }
}

/// How a client shows who it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AuthSetup<'a> {
    /// The realm.
    pub realm: &'a [u8],
    /// The file of names and passwords, without which none is right.
    pub user_file: Option<&'a [u8]>,
    /// The file of groups.
    pub group_file: Option<&'a [u8]>,
}

impl<'a> Applied<'a> {
    /// What `levels` say about a file whose name is `name`: each directory (with a slash at its
    /// end) with its file, from the root down.
    ///
    /// # Errors
    ///
    /// A condition could not be judged.
    pub fn new(
        levels: impl Iterator<Item = (&'a [u8], &'a HtaccessFile)>,
        name: &[u8],
        by: &mut Evaluation<'_>,
    ) -> Result<Self, Stop> {
        Self::collect(levels, name, ConditionJudge::By(by))
    }

    /// The same again, with the results that sections had ([`Self::choices`]); nothing where the
    /// levels are others. Where nothing was asked yet, no condition holds.
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

    /// Which sections apply.
    #[must_use]
    pub const fn choices(&self) -> &SectionChoices {
        &self.choices
    }

    /// Whether anything is said about the fields of an answer for a file called `name`.
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

    /// Sets what `SetEnvIf` and its kin set.
    ///
    /// # Errors
    ///
    /// A condition could not be judged.
    pub fn set_conditional_env(&self, by: &mut Evaluation<'_>) -> Result<(), Stop> {
        for place in &self.places {
            place.settings.env_if.iter().try_for_each(|line| line.apply(place.file, by))?;
        }
        Ok(())
    }

    /// Sets what `SetEnv` sets and `UnsetEnv` leaves.
    pub fn set_env(&self, by: &mut Evaluation<'_>) {
        // As in Apache, `UnsetEnv` is about what `SetEnv` says before it, and about nothing else.
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

    /// Who may come in with `method`: both kinds of rules are judged, and `Satisfy` puts them
    /// together.
    ///
    /// # Errors
    ///
    /// A condition could not be judged.
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
            // Where one of two is enough and the other one says no, nothing is left that says yes.
            return Ok(match satisfies {
                Satisfies::All => Admission::Open,
                Satisfies::Any => Admission::Forbidden,
            });
        };
        Ok(match verdict {
            AuthzStatus::Granted => Admission::Open,
            AuthzStatus::Denied => Admission::Forbidden,
            // Rules that are about other methods.
            AuthzStatus::Neutral if is_limited => Admission::Open,
            AuthzStatus::Neutral => Admission::Forbidden,
            AuthzStatus::NeedsUser if self.auth_setup().is_none() => Admission::Unclear,
            AuthzStatus::NeedsUser => Admission::AsksWho,
        })
    }

    /// What all lines of `Require` that count say, and whether they are about some methods only;
    /// none where there are none.
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

    /// What is left without the sections that Apache does not heed, in a first round or a later
    /// one; none where it heeds them all. Who does not come in there does not come in here.
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

    /// Whether a rule may ask who the client is.
    #[must_use]
    pub fn may_ask_for_user(&self) -> bool {
        self.all().any(|settings| settings.rules.iter().any(Requirement::asks_for_user))
    }

    /// How a client shows who it is; none where realm or scheme are missing.
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
    /// its slash.
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

    /// Whether a rule looks ahead to what another request would come to.
    #[must_use]
    pub fn looks_ahead(&self) -> bool {
        self.all().any(|settings| settings.rewriting.looks_ahead)
    }

    /// Makes a pass of the rules.
    ///
    /// # Errors
    ///
    /// A rule could not be judged, or refuses the request.
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

    /// Where `Redirect` sends a request for `path` (decoded).
    ///
    /// # Errors
    ///
    /// An expression gave up.
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

    /// What is permitted, where `location` is what the location permits.
    #[must_use]
    pub fn options(&self, location: DirOptions) -> DirOptions {
        self.all().filter_map(|settings| settings.options).fold(location, DirOptions::changed)
    }

    /// Names of indexes; none where no place says so. An empty list disables them.
    #[must_use]
    pub fn index(&self) -> Option<&'a [Box<[u8]>]> {
        self.last(|settings| settings.index.as_deref())
    }

    /// The path that answers for what is not there.
    #[must_use]
    pub fn fallback(&self) -> Option<&'a [u8]> {
        self.last(|settings| settings.fallback.as_ref()).and_then(Option::as_deref)
    }

    /// Whether a directory's path gets its slash by a redirect.
    #[must_use]
    pub fn closes_directories(&self) -> bool {
        self.last(|settings| settings.closes_directories).unwrap_or(true)
    }

    /// What becomes of a path that goes on behind a file.
    #[must_use]
    pub fn path_info(&self) -> PathInfoRule {
        self.last(|settings| settings.path_info).unwrap_or_default()
    }

    /// What a listing leaves out.
    #[must_use]
    pub fn hidden(&self) -> HiddenNames<'a> {
        let globs = self.all().flat_map(|settings| &settings.hidden).map(|glob| &**glob);
        HiddenNames { globs: globs.collect(), effort: Effort::default() }
    }

    /// What the name of a file says about it.
    #[must_use]
    pub fn nature(&self, name: &[u8]) -> FileNature<'a> {
        let places: Vec<_> = self.all().rev().map(|settings| &settings.mime).collect();
        FileNature::new(&places, name)
    }

    /// The value of `Content-Language` that the name of a file gives; empty for none.
    #[must_use]
    pub fn languages(&self, name: &[u8]) -> Vec<u8> {
        let places: Vec<_> = self.all().rev().map(|settings| &settings.mime).collect();
        mime::languages(&places, name)
    }

    /// What is answered instead of the server's page for a status.
    #[must_use]
    pub fn error_answer(&self, status: u16) -> Option<&'a ErrorAnswer> {
        let find = |settings: &'a Settings| {
            settings.errors.iter().rfind(|(known, _)| *known == status).map(|(_, answer)| answer)
        };
        self.last(find).filter(|answer| **answer != ErrorAnswer::Default)
    }

    /// Whether the request's headers are changed.
    #[must_use]
    pub fn edits_request(&self) -> bool {
        self.all().any(|settings| !settings.request_headers.is_empty())
    }

    /// Applies `RequestHeader` to `fields`.
    ///
    /// # Errors
    ///
    /// A condition could not be judged.
    pub fn edit_request(
        &self,
        fields: &mut bolide_http::FieldMap,
        times: HeaderTimes,
        by: &mut Evaluation<'_>,
    ) -> Result<(), Stop> {
        headers::apply(self.all().flat_map(|settings| &settings.request_headers), fields, times, by)
    }

    /// Whether the response's headers are changed.
    #[must_use]
    pub fn edits_response(&self) -> bool {
        self.all().any(|settings| !settings.headers.is_empty())
    }

    /// Applies `Header` to the fields of an answer. Those of `always` come first in an answer, and
    /// alone count where the server itself answers with an error.
    ///
    /// # Errors
    ///
    /// A condition could not be judged.
    pub fn edit_response(
        &self,
        fields: &mut bolide_http::FieldMap,
        always: &mut bolide_http::FieldMap,
        is_own_error: bool,
        times: HeaderTimes,
        by: &mut Evaluation<'_>,
    ) -> Result<(), Stop> {
        let of = |table: HeaderTable| {
            let edits = self.all().flat_map(|settings| &settings.headers);
            edits.filter(move |edit| edit.table == table)
        };
        headers::apply(of(HeaderTable::Always), always, times, by)?;
        if !is_own_error {
            headers::apply(of(HeaderTable::Success), fields, times, by)?;
        }
        Ok(())
    }

    /// What an `ETag` is made of.
    #[must_use]
    pub fn etag(&self) -> EtagParts {
        self.last(|settings| settings.etag).unwrap_or(EtagParts::Usual)
    }

    /// Whether applications are told about the connection.
    #[must_use]
    pub fn exports_tls(&self) -> bool {
        tls::exports(self.all().map(|settings| &settings.tls))
    }

    /// Settings of PHP, in their order.
    pub fn php(&self) -> impl Iterator<Item = &'a PhpSetting> {
        self.all().flat_map(|settings| &settings.php)
    }

    /// Whether scripts must not run.
    #[must_use]
    pub fn refuses_php(&self) -> bool {
        let engine = self.php().filter(|setting| *setting.name == *b"engine").last();
        engine.and_then(|setting| setting.value.as_deref()).is_some_and(|value| {
            matches!(&value.to_ascii_lowercase()[..], b"0" | b"off" | b"false" | b"no" | b"")
        })
    }
}
