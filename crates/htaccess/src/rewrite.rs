//! mod_rewrite per directory: the model, and the rules that apply to a request.

mod address;
mod cookie;
mod flags;
mod judge;
mod outcome;
mod parse;
mod run;
mod template;

use std::sync::Arc;

use crate::expr::Expr;
use crate::expr::TextOrder;
use crate::pattern::Pattern;
use crate::world::{AheadKind, PathTest};

use flags::RuleFlags;
use template::RuleText;

pub use address::resolved as resolved_path;
pub use cookie::add_cookie;
pub(crate) use flags::status;
pub use outcome::{PassOutcome, RewritePlace, Rewritten};
pub(crate) use parse::{base, condition, engine, options, rule};

/// The rewriting of one place.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rewriting {
    /// Whether the place has any of its directives: then the rules of shallower places do not
    /// apply.
    pub(crate) is_given: bool,
    pub(crate) engine: Option<bool>,
    pub(crate) base: Option<Box<[u8]>>,
    /// None without `RewriteOptions`: then those of the place above apply.
    pub(crate) options: Option<RewriteOptions>,
    pub(crate) rules: Vec<UrlRule>,
    /// Conditions before their rule.
    pub(crate) pending: Vec<RewriteCondition>,
    /// Whether a rule looks ahead.
    pub(crate) looks_ahead: bool,
    /// The current line.
    pub(crate) line: u32,
}

impl Rewriting {
    /// Whether the last rule is about the cache, and depends on an unknown variable.
    pub(crate) fn is_last_unclear(&self) -> bool {
        let Some((last, before)) = self.rules.split_last() else { return false };
        last.flags.orders_cache() && (last.is_unclear || before.iter().any(|it| it.hides_rules))
    }
}

/// `RewriteOptions`
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RewriteOptions {
    pub(crate) inherits: Option<Inherits>,
    /// What deeper places inherit.
    pub(crate) bequeaths: Option<Inherits>,
    pub(crate) refuses_bequest: bool,
    pub(crate) merges_base: bool,
    /// Whether directories are rewritten even without a final slash.
    pub(crate) allows_no_slash: bool,
    /// `UnsafeAllow3F`
    pub(crate) allows_question_mark: bool,
}

/// Where the inherited rules are inserted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Inherits {
    Before,
    Behind,
}

/// A rule with its conditions.
#[derive(Clone, Debug)]
pub(crate) struct UrlRule {
    /// Its line.
    pub(crate) line: u32,
    pub(crate) conditions: Vec<RewriteCondition>,
    pub(crate) pattern: Pattern,
    pub(crate) negated: bool,
    /// None for `-`.
    pub(crate) substitution: Option<RuleText>,
    pub(crate) flags: RuleFlags,
    /// Whether it, or a condition of it, looks ahead.
    pub(crate) looks_ahead: bool,
    /// Whether a condition is about the path that the client sent.
    pub(crate) asks_for_sent_path: bool,
    /// Whether it sets variables for the cache, but it or a condition has an unknown variable; or
    /// whether it decides by one whether a later rule does.
    pub(crate) is_unclear: bool,
    /// Whether an unknown variable in it decides whether the rules after it apply.
    pub(crate) hides_rules: bool,
}

/// A condition.
#[derive(Clone, Debug)]
pub(crate) struct RewriteCondition {
    pub(crate) text: RuleText,
    pub(crate) test: CondTest,
    pub(crate) negated: bool,
    /// `[OR]`
    pub(crate) or_next: bool,
    /// `[NC]`
    pub(crate) any_case: bool,
    /// `[NV]`
    pub(crate) unvaried: bool,
    /// Whether its rule, or another condition, may use its captures.
    pub(crate) is_read: bool,
}

/// The test of a condition.
#[derive(Clone, Debug)]
pub(crate) enum CondTest {
    Matches(Arc<Pattern>),
    Compares(TextOrder, RuleText),
    Counts(TextOrder, i64),
    File(PathTest),
    /// `-U`, `-F`
    Ahead(AheadKind),
    Holds(Box<Expr>),
}

/// The rules of one place, and the directory of its file unless the place is a section.
pub(crate) type RuleList<'a> = (&'a [UrlRule], Option<&'a [u8]>);

/// The rules that apply to a request, in order.
#[derive(Clone, Debug, Default)]
pub(crate) struct EffectiveRewriting<'a> {
    pub(crate) is_on: bool,
    pub(crate) rules: Vec<RuleList<'a>>,
    /// The directory prefix that is removed; none in a section.
    pub(crate) directory: Option<&'a [u8]>,
    pub(crate) base: Option<&'a [u8]>,
    pub(crate) options: RewriteOptions,
}

impl<'a> EffectiveRewriting<'a> {
    /// Whether the rules belong to the directory `file` itself, whose slash is added first.
    pub(crate) fn waits_for_slash(&self, file: &[u8]) -> bool {
        !self.options.allows_no_slash
            && self.directory.and_then(|own| own.strip_suffix(b"/")) == Some(file)
    }

    /// Enters a deeper place.
    pub(crate) fn enter(&mut self, own: &'a Rewriting, directory: Option<&'a [u8]>) {
        if !own.is_given {
            return;
        }
        self.is_on = own.engine.unwrap_or(self.is_on);
        let options = own.options.unwrap_or(self.options);
        let bequest = self.options.bequeaths.filter(|_| !options.refuses_bequest);
        // As in Apache, `Behind` takes precedence over `Before`.
        let inherits = match (options.inherits, bequest) {
            (Some(Inherits::Behind), _) | (_, Some(Inherits::Behind)) => Some(Inherits::Behind),
            (own, bequest) => own.or(bequest),
        };
        match inherits {
            Some(Inherits::Before) => self.rules.push((&own.rules, directory)),
            Some(Inherits::Behind) => self.rules.insert(0, (&own.rules, directory)),
            None => self.rules = vec![(&own.rules, directory)],
        }
        self.base = match (&own.base, options.merges_base) {
            (None, true) => self.base,
            (base, _) => base.as_deref(),
        };
        self.directory = directory;
        self.options = options;
    }
}
