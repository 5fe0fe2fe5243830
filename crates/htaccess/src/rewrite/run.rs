//! One pass of rules over a request, with a limit of rounds and of text.

use super::address::{resolved, scheme_len};
use super::cookie;
use super::flags::{EnvOrder, Passing, RuleAction};
use super::outcome::{PassOutcome, RewritePlace, Rewritten};
use super::template::{Backrefs, QuestionMark};
use super::{EffectiveRewriting, RewriteCondition, RuleList, UrlRule};
use crate::escape::{is_plain_in_uri, push_hex, push_without_controls};
use crate::pattern::Groups;
use crate::world::{Evaluation, Stop};

/// LIMIT: rules and conditions tried in one pass, rounds of `[N]` included.
const TRIES_MAX: usize = 200_000;
/// LIMIT: bytes of a path or query that a rule generates.
const TEXT_MAX: usize = 64 * 1024;

/// A pass in progress.
struct Pass<'a> {
    place: &'a RewritePlace<'a>,
    /// The directory prefix that is removed from paths.
    directory: Option<&'a [u8]>,
    base: Option<&'a [u8]>,
    /// The path on disk or the URL, as rewritten so far.
    file: Vec<u8>,
    path_info: &'a [u8],
    args: Option<Vec<u8>>,
    /// Whether a rule set the query.
    made_args: bool,
    changed: bool,
    no_escape: bool,
    redirect: Option<u16>,
    is_proxied: bool,
    allows_question_mark: bool,
    status: Option<u16>,
    outcome: PassOutcome,
    tries: usize,
    scratch: RuleScratch,
}

/// Buffers for the subjects of rules and conditions.
#[derive(Default)]
pub(super) struct RuleScratch {
    subject: Vec<u8>,
    pub(super) text: Vec<u8>,
    pub(super) of_rule: Groups,
    pub(super) of_condition: Groups,
    pub(super) spare: Groups,
}

/// The result of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Applied {
    No,
    Yes,
}

impl EffectiveRewriting<'_> {
    /// Runs a pass.
    pub(crate) fn run(
        &self,
        place: &RewritePlace<'_>,
        by: &mut Evaluation<'_>,
    ) -> Result<PassOutcome, Stop> {
        let mut pass = Pass {
            place,
            directory: self.directory,
            base: self.base,
            file: place.file.to_vec(),
            path_info: place.path_info,
            args: place.args.map(<[u8]>::to_vec),
            made_args: false,
            changed: false,
            no_escape: false,
            redirect: None,
            is_proxied: false,
            allows_question_mark: self.options.allows_question_mark,
            status: None,
            outcome: PassOutcome::default(),
            tries: 0,
            scratch: RuleScratch::default(),
        };
        pass.walk(&self.rules, by)?;
        pass.finish(self.base)
    }
}

impl Pass<'_> {
    fn walk(&mut self, lists: &[RuleList<'_>], by: &mut Evaluation<'_>) -> Result<(), Stop> {
        let ends: Vec<_> =
            lists.iter().map(|(rules, directory)| (rules.len(), *directory)).collect();
        let rules: Vec<&UrlRule> = lists.iter().flat_map(|(rules, _)| *rules).collect();
        let (mut at, mut rounds) = (0, 0);
        while let Some(rule) = rules.get(at) {
            let here = at;
            let placed = |stop| placed(stop, rule.line, &ends, here);
            self.count(by).map_err(placed)?;
            at += 1;
            // As in Apache, a subrequest does not redirect the client.
            let waives = rule.flags.not_inside || rule.flags.is_forced;
            if waives && self.place.is_inside {
                continue;
            }
            if self.apply(rule, by).map_err(placed)? == Applied::No {
                // Rules chained to it are skipped.
                if rule.flags.is_chained {
                    while rules.get(at).is_some_and(|next| next.flags.is_chained) {
                        at += 1;
                    }
                    at += 1;
                }
                continue;
            }
            if self.status.is_some() {
                return Ok(());
            }
            match rule.flags.passing {
                Passing::On => at = at.saturating_add(rule.flags.skips),
                Passing::Last => return Ok(()),
                Passing::End => {
                    self.outcome.ends = true;
                    return Ok(());
                }
                Passing::Again(rounds_max) => {
                    rounds += 1;
                    if rounds > rounds_max {
                        let why = "exceeded maximum number of rounds via the [N] flag";
                        return Err(placed(Stop::Refused(500, why)));
                    }
                    at = 0;
                }
            }
        }
        Ok(())
    }

    /// Counts a rule or condition.
    fn count(&mut self, by: &Evaluation<'_>) -> Result<(), Stop> {
        self.tries += 1;
        by.effort.spend_entries(1);
        match self.tries > TRIES_MAX {
            true => Err(Stop::Refused(500, "too many rules tried in one pass")),
            false => Ok(()),
        }
    }

    /// The subject of a rule's pattern.
    fn subject(&self, subject: &mut Vec<u8>) {
        subject.clear();
        subject.extend_from_slice(&self.file);
        subject.extend_from_slice(self.path_info);
        if let Some(directory) = self.directory
            && subject.starts_with(directory)
        {
            subject.drain(..directory.len());
        }
    }

    fn apply(&mut self, rule: &UrlRule, by: &mut Evaluation<'_>) -> Result<Applied, Stop> {
        let mut scratch = std::mem::take(&mut self.scratch);
        let applied = self.apply_with(rule, &mut scratch, by);
        self.scratch = scratch;
        applied
    }

    fn apply_with(
        &mut self,
        rule: &UrlRule,
        scratch: &mut RuleScratch,
        by: &mut Evaluation<'_>,
    ) -> Result<Applied, Stop> {
        self.subject(&mut scratch.subject);
        scratch.of_rule.clear();
        scratch.of_condition.clear();
        let matched = rule.pattern.find(&scratch.subject, &mut scratch.of_rule, by.effort)?;
        if matched == rule.negated {
            return Ok(Applied::No);
        }
        if rule.negated {
            scratch.of_rule.clear();
        }
        if rule.looks_ahead {
            by.ahead = self.targets_ahead(&scratch.subject);
        }
        if rule.is_unclear && self.may_meet(&rule.conditions, scratch, by)? {
            // Whatever the rule says of the cache, it may say it of this request.
            by.env.cache_mut().turn_off();
        }
        if !self.meets(&rule.conditions, scratch, by)? {
            return Ok(Applied::No);
        }
        let backrefs = Backrefs { rule: &scratch.of_rule, condition: &scratch.of_condition };
        let made = match &rule.substitution {
            Some(substitution) if !matches!(rule.flags.action, RuleAction::Status(_)) => {
                let mut made = Vec::new();
                let mark = substitution.push(backrefs, &rule.flags.escape, by, &mut made);
                if mark == QuestionMark::Foreign
                    && !rule.flags.allows_question_mark
                    && !self.allows_question_mark
                {
                    self.outcome.is_particular = true;
                    let is_mark = |three: &[u8]| three.eq_ignore_ascii_case(b"%3f");
                    if self.place.target.windows(3).any(is_mark) {
                        let why = "Unsafe URL with %3f URL rewritten without UnsafeAllow3F";
                        return Err(Stop::Refused(403, why));
                    }
                }
                Some(made)
            }
            _ => None,
        };
        self.side_effects(rule, backrefs, by);
        by.effort.check()?;
        if let RuleAction::Status(status) = rule.flags.action {
            self.status = Some(status);
            return Ok(Applied::Yes);
        }
        if let Some(made) = made {
            self.take(rule, made)?;
            by.filename = Some(self.file.clone());
            by.args = Some(self.args.clone().unwrap_or_default());
        }
        Ok(Applied::Yes)
    }

    /// The targets of looks ahead for `subject`: a URL, and a path on disk. As in Apache, a URL
    /// begins with the directory's own path if there is no base.
    fn targets_ahead(&self, subject: &[u8]) -> [Vec<u8>; 2] {
        let directory = self.directory.unwrap_or(b"/");
        match subject.first() {
            Some(b'/') => [subject.to_vec(), Vec::new()],
            _ => {
                let base = self.base.unwrap_or(directory);
                [[base, subject].concat(), [directory, subject].concat()]
            }
        }
    }

    fn side_effects(&mut self, rule: &UrlRule, backrefs: Backrefs<'_>, by: &mut Evaluation<'_>) {
        for order in &rule.flags.env {
            match order {
                EnvOrder::Set(name, value) => {
                    let value = value.value(backrefs, by);
                    match rule.asks_for_sent_path {
                        true => by.env.set_for_sent_path(name, &value),
                        false => by.env.set(name, &value),
                    }
                }
                EnvOrder::Unset(name) => by.env.unset(name),
            }
        }
        for cookie in &rule.flags.cookies {
            let text = cookie.value(backrefs, by);
            self.outcome.is_particular = true;
            if let Some(cookie) = cookie::set_cookie(&text, self.place.now) {
                cookie::add_cookie(&mut self.outcome.cookies, cookie, by.effort);
            }
        }
        if let Some(media_type) = &rule.flags.media_type {
            self.outcome.media_type = Some(media_type.value(backrefs, by));
        }
        if let Some(handler) = &rule.flags.handler {
            self.outcome.handler = Some(handler.value(backrefs, by));
        }
    }

    /// Sets the request to the result of a rule.
    fn take(&mut self, rule: &UrlRule, made: Vec<u8>) -> Result<(), Stop> {
        self.changed = true;
        self.no_escape = rule.flags.no_escape;
        if rule.flags.discards_path_info {
            self.path_info = b"";
        }
        let made = self.split_query(rule, made);
        let is_address = scheme_len(&made).is_some();
        self.file = match (is_address, made.first()) {
            (true, _) | (_, Some(b'/')) => made,
            _ => [self.directory.unwrap_or(b"/"), &made].concat(),
        };
        self.is_proxied = rule.flags.action == RuleAction::Proxy;
        if let RuleAction::Redirect(status) = rule.flags.action {
            self.redirect = Some(status);
        }
        if matches!(rule.flags.action, RuleAction::Redirect(_) | RuleAction::Proxy) && !is_address {
            self.outcome.is_particular = true;
            self.file = [self.place.origin, &self.file].concat();
        }
        let args = self.args.as_ref().map_or(0, Vec::len);
        if self.file.len() > TEXT_MAX || args > TEXT_MAX {
            return Err(Stop::Refused(500, "a rule made an address that is too long"));
        }
        Ok(())
    }

    /// Takes the query from the result of a rule.
    fn split_query(&mut self, rule: &UrlRule, mut made: Vec<u8>) -> Vec<u8> {
        let query = rule.flags.query;
        if query.discards && self.args.take().is_some() {
            self.made_args = true;
        }
        let is_mark = |byte: &u8| *byte == b'?';
        let mark = match query.splits_last {
            true => made.iter().rposition(is_mark),
            false => made.iter().position(is_mark),
        };
        let Some(mark) = mark else { return made };
        let mut args = made.split_off(mark);
        args.remove(0);
        if query.appends
            && let Some(old) = self.args.take().filter(|old| !old.is_empty())
        {
            if !args.is_empty() {
                args.push(b'&');
            }
            args.extend_from_slice(&old);
        }
        if args.last() == Some(&b'&') {
            args.pop();
        }
        self.args = (!args.is_empty()).then_some(args);
        self.made_args = true;
        made
    }

    /// Whether the conditions hold; `scratch` gets the captures of the last one that matched.
    fn meets(
        &mut self,
        conditions: &[RewriteCondition],
        scratch: &mut RuleScratch,
        by: &mut Evaluation<'_>,
    ) -> Result<bool, Stop> {
        let mut at = 0;
        while let Some(condition) = conditions.get(at) {
            at += 1;
            self.count(by)?;
            let holds = condition.holds(scratch, by)?;
            if holds && !condition.unvaried {
                condition.text.headers().for_each(|name| by.vary_by(name));
            }
            match (holds, condition.or_next) {
                (false, false) => return Ok(false),
                (true, true) => {
                    while conditions.get(at).is_some_and(|next| next.or_next) {
                        at += 1;
                    }
                    at += 1;
                }
                (true, false) | (false, true) => {}
            }
        }
        Ok(true)
    }

    /// Whether the conditions may hold, for some values of unknown variables.
    fn may_meet(
        &mut self,
        conditions: &[RewriteCondition],
        scratch: &mut RuleScratch,
        by: &mut Evaluation<'_>,
    ) -> Result<bool, Stop> {
        let (mut all, mut any) = (true, false);
        for condition in conditions {
            self.count(by)?;
            any |= condition.has_unknown() || condition.holds(scratch, by)?;
            if !condition.or_next {
                all &= std::mem::take(&mut any);
            }
        }
        scratch.of_condition.clear();
        Ok(all)
    }

    fn finish(mut self, base: Option<&[u8]>) -> Result<PassOutcome, Stop> {
        self.outcome.is_changed = self.changed;
        if self.status.is_some() && self.made_args {
            self.outcome.args = Some(self.args.take().unwrap_or_default());
        }
        self.outcome.result = match (self.status, self.changed) {
            (Some(status), _) => Rewritten::Status(status),
            (None, false) => Rewritten::Nothing,
            (None, true) if self.is_proxied => self.proxied()?,
            (None, true) if scheme_len(&self.file).is_some() => self.sent_away(base)?,
            (None, true) => self.inside(base)?,
        };
        Ok(self.outcome)
    }

    /// `file` with the directory's prefix replaced by the base.
    fn with_base(&self, file: &[u8], base: Option<&[u8]>) -> Vec<u8> {
        if let (Some(base), Some(directory)) = (base, self.directory)
            && let Some(rest) = file.strip_prefix(directory)
        {
            return [base, rest].concat();
        }
        file.to_vec()
    }

    /// The URL for a proxied request.
    fn proxied(&self) -> Result<Rewritten, Stop> {
        let host = scheme_len(&self.file).unwrap_or(0);
        let path = self.file[host..].iter().position(|byte| *byte == b'/');
        let (origin, path) = self.file.split_at(path.map_or(self.file.len(), |at| host + at));
        self.check_args(self.args.as_deref())?;
        let Some(path) = resolved(path) else {
            return Err(Stop::Refused(400, "invalid URI path after rewriting"));
        };
        Ok(Rewritten::Proxied { origin: origin.to_vec(), path, args: self.args.clone() })
    }

    /// Refuses a query that cannot be part of a URL unescaped.
    fn check_args(&self, args: Option<&[u8]>) -> Result<(), Stop> {
        let is_bad = |byte: &u8| byte.is_ascii_control() || *byte == b' ';
        match args.unwrap_or_default().iter().any(is_bad) {
            true => {
                let why = "Rewritten query string contains control characters or spaces";
                Err(Stop::Refused(403, why))
            }
            false => Ok(()),
        }
    }

    fn sent_away(&self, base: Option<&[u8]>) -> Result<Rewritten, Stop> {
        let host = scheme_len(&self.file).unwrap_or(0);
        let path = self.file[host..].iter().position(|byte| *byte == b'/');
        let (origin, path) = self.file.split_at(path.map_or(self.file.len(), |at| host + at));
        let path = self.with_base(path, base);
        let mut address = Vec::new();
        if self.no_escape {
            if origin.iter().chain(&path).any(u8::is_ascii_control) {
                let why = "a rule with [NE] made an address with control characters";
                return Err(Stop::Refused(500, why));
            }
            self.check_args(self.args.as_deref())?;
            push_without_controls(&[origin, &path].concat(), &mut address);
        } else {
            push_without_controls(origin, &mut address);
            push_hex(&path, is_plain_in_uri, &mut address);
        }
        if let Some(args) = &self.args {
            address.push(b'?');
            // As in Apache, an unchanged query is not escaped again.
            let is_as_sent = !self.made_args || Some(&args[..]) == self.place.args;
            match self.no_escape || is_as_sent {
                true => push_without_controls(args, &mut address),
                false => push_hex(args, is_plain_in_uri, &mut address),
            }
        }
        Ok(Rewritten::Redirect(self.redirect.unwrap_or(302), address))
    }

    fn inside(&mut self, base: Option<&[u8]>) -> Result<Rewritten, Stop> {
        // As in Apache, the same path with a `PATH_INFO` is another one.
        let is_same = self.file == self.place.file;
        let args = self.args.clone();
        self.outcome.drops_path_info =
            is_same && self.path_info.is_empty() && !self.place.path_info.is_empty();
        if is_same && !self.made_args {
            return Ok(Rewritten::Nothing);
        }
        if self.made_args {
            self.check_args(args.as_deref())?;
        }
        if is_same {
            return Ok(Rewritten::Query(args));
        }
        let path = self.with_base(&self.file, base);
        let path = match path.strip_prefix(self.place.root) {
            // As in Apache, a base applies below its directory only.
            Some([b'/', ..]) if base.is_some() && path == self.file => {
                return Err(Stop::Refused(400, "a file beside the directory of a RewriteBase"));
            }
            Some(rest) if rest.first() == Some(&b'/') => [self.place.prefix, rest].concat(),
            _ => path,
        };
        if path.first() != Some(&b'/') {
            return Err(Stop::Refused(400, "rewritten to something that is no path"));
        }
        let Some(path) = resolved(&path) else {
            return Err(Stop::Refused(400, "invalid URI path after rewriting"));
        };
        Ok(Rewritten::Inside { path, args })
    }
}

/// Adds the place of a rule to a refusal: the rule is at index `at` of lists with these lengths,
/// each of one directory.
fn placed(stop: Stop, line: u32, lists: &[(usize, Option<&[u8]>)], at: usize) -> Stop {
    let mut behind = 0;
    let own = lists.iter().find(|(len, _)| {
        behind += len;
        at < behind
    });
    let directory = own.and_then(|(_, directory)| *directory).unwrap_or_default();
    stop.at(directory, line)
}
