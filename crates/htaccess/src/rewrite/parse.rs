//! Parses `RewriteEngine`, `RewriteBase`, `RewriteOptions`, `RewriteCond` and `RewriteRule`.

use std::sync::Arc;

use super::flags::{Passing, RuleAction, RuleFlags, fields};
use super::template::RuleText;
use super::{CondTest, Inherits, RewriteCondition, Rewriting, UrlRule};
use crate::expr::{self, TextOrder};
use crate::fault::{ParseResult, shown};
use crate::lines::{ArgumentWords, rewrite_word};
use crate::pattern::{Letters, Pattern};
use crate::world::{AheadKind, PathTest};

/// LIMIT: conditions of one rule.
const CONDITIONS_MAX: usize = 10_000;

/// `RewriteEngine on|off`
pub(crate) fn engine(own: &mut Rewriting, arguments: &[u8]) -> ParseResult<()> {
    let words: Vec<_> =
        ArgumentWords::new(arguments).map(|word| word.to_ascii_lowercase()).collect();
    own.engine = match words.iter().map(|word| &word[..]).collect::<Vec<_>>()[..] {
        [b"on"] => Some(true),
        [b"off"] => Some(false),
        _ => return Err("RewriteEngine must be On or Off".to_owned()),
    };
    Ok(())
}

/// `RewriteBase /url`
pub(crate) fn base(own: &mut Rewriting, arguments: &[u8]) -> ParseResult<()> {
    let words: Vec<_> = ArgumentWords::new(arguments).collect();
    let [base] = &words[..] else {
        return Err(
            "RewriteBase takes one argument, the base URL of the per-directory context".to_owned()
        );
    };
    if base.first() != Some(&b'/') {
        return Err("RewriteBase: argument is not a valid URL".to_owned());
    }
    let mut base = base.clone();
    if base.last() != Some(&b'/') {
        base.push(b'/');
    }
    own.base = Some(base.into());
    Ok(())
}

/// `RewriteOptions …`
pub(crate) fn options(own: &mut Rewriting, arguments: &[u8]) -> ParseResult<()> {
    let own = own.options.get_or_insert_default();
    for word in ArgumentWords::new(arguments) {
        match &word.to_ascii_lowercase()[..] {
            b"inherit" => own.inherits = Some(Inherits::Behind),
            // As in Apache, words accumulate, and inherited rules come first.
            b"inheritbefore" => own.inherits = own.inherits.or(Some(Inherits::Before)),
            b"inheritdown" => own.bequeaths = Some(Inherits::Behind),
            b"inheritdownbefore" => own.bequeaths = own.bequeaths.or(Some(Inherits::Before)),
            b"ignoreinherit" => own.refuses_bequest = true,
            b"mergebase" => own.merges_base = true,
            b"allownoslash" => own.allows_no_slash = true,
            b"unsafeallow3f" => own.allows_question_mark = true,
            // They have no effect in this place.
            b"allowanyuri"
            | b"ignorecontextinfo"
            | b"legacyprefixdocroot"
            | b"longurloptimization"
            | b"unsafeprefixstat" => {}
            _ => return Err(format!("RewriteOptions: unknown option '{}'", shown(&word))),
        }
    }
    Ok(())
}

/// `RewriteCond TEXT TEST [FLAGS]`
pub(crate) fn condition(own: &mut Rewriting, arguments: &[u8]) -> ParseResult<()> {
    let (text, test, flags) = three(arguments)
        .ok_or_else(|| format!("RewriteCond: bad argument line '{}'", shown(arguments)))?;
    let (mut or_next, mut any_case, mut unvaried) = (false, false, false);
    if !flags.is_empty() {
        for (key, _) in fields(flags, "RewriteCond")? {
            match &key.to_ascii_lowercase()[..] {
                b"nc" | b"nocase" => any_case = true,
                b"or" | b"ornext" => or_next = true,
                b"nv" | b"novary" => unvaried = true,
                _ => return Err(format!("RewriteCond: unknown flag '{}'", shown(&key))),
            }
        }
    }
    if own.pending.len() >= CONDITIONS_MAX {
        return Err("RewriteCond: too many conditions".to_owned());
    }
    let is_expr = text.eq_ignore_ascii_case(b"expr");
    let (negated, test) = match test {
        [b'!', rest @ ..] if !is_expr => (true, rest),
        _ => (false, test),
    };
    let test = match is_expr {
        true => CondTest::Holds(Box::new(
            expr::condition(test).map_err(|why| format!("RewriteCond: {why}"))?,
        )),
        false => cond_test(test, any_case)?,
    };
    let text = if is_expr { RuleText::parse(b"")? } else { RuleText::parse(text)? };
    let is_read = true;
    let condition = RewriteCondition { text, test, negated, or_next, any_case, unvaried, is_read };
    own.pending.push(condition);
    Ok(())
}

fn cond_test(test: &[u8], any_case: bool) -> ParseResult<CondTest> {
    use TextOrder as Is;
    let file = match test {
        b"-f" => Some(PathTest::File),
        b"-d" => Some(PathTest::Directory),
        b"-s" => Some(PathTest::FileWithContent),
        b"-l" | b"-L" | b"-h" => Some(PathTest::Link),
        b"-x" => Some(PathTest::Executable),
        b"-F" => return Ok(CondTest::Ahead(AheadKind::File)),
        b"-U" => return Ok(CondTest::Ahead(AheadKind::Url)),
        _ => None,
    };
    if let Some(test) = file {
        return Ok(CondTest::File(test));
    }
    let counts = [
        (&b"-eq"[..], Is::Equal),
        (b"-ne", Is::Other),
        (b"-le", Is::LessOrEqual),
        (b"-lt", Is::Less),
        (b"-ge", Is::GreaterOrEqual),
        (b"-gt", Is::Greater),
    ];
    if let Some((name, order)) = counts.iter().find(|(name, _)| test.starts_with(name)) {
        let number = std::str::from_utf8(&test[name.len()..]).ok();
        let number = number.and_then(|text| text.trim().parse().ok());
        return match number {
            Some(number) => Ok(CondTest::Counts(*order, number)),
            None => Err(format!("RewriteCond: bad number in '{}'", shown(test))),
        };
    }
    let texts = [
        (&b">="[..], Is::GreaterOrEqual),
        (b"<=", Is::LessOrEqual),
        (b">", Is::Greater),
        (b"<", Is::Less),
        (b"=", Is::Equal),
    ];
    if test.len() > 1
        && let Some((name, order)) = texts.iter().find(|(name, _)| test.starts_with(name))
    {
        let text = match &test[name.len()..] {
            b"\"\"" => b"",
            text => text,
        };
        return Ok(CondTest::Compares(*order, RuleText::parse(text)?));
    }
    let letters = if any_case { Letters::Any } else { Letters::Exact };
    Pattern::new(test, letters)
        .map(|pattern| CondTest::Matches(Arc::new(pattern)))
        .ok_or_else(|| format!("RewriteCond: cannot compile regular expression '{}'", shown(test)))
}

/// `RewriteRule PATTERN SUBSTITUTION [FLAGS]`
pub(crate) fn rule(own: &mut Rewriting, arguments: &[u8]) -> ParseResult<()> {
    let (pattern, substitution, flags) = three(arguments)
        .ok_or_else(|| format!("RewriteRule: bad argument line '{}'", shown(arguments)))?;
    let mut flags = match flags {
        b"" => RuleFlags::default(),
        _ => RuleFlags::parse(flags)?,
    };
    let (negated, pattern) = match pattern {
        [b'!', rest @ ..] => (true, rest),
        _ => (false, pattern),
    };
    let letters = if flags.any_case { Letters::Any } else { Letters::Exact };
    let pattern = Pattern::new(pattern, letters).ok_or_else(|| {
        format!("RewriteRule: cannot compile regular expression '{}'", shown(pattern))
    })?;
    if let RuleAction::Status(_) = flags.action
        && flags.passing == Passing::On
    {
        flags.passing = Passing::Last;
    }
    let substitution = match substitution {
        b"-" => None,
        text => Some(RuleText::parse(text)?),
    };
    let mut conditions = std::mem::take(&mut own.pending);
    let reads = |text: &RuleText| text.reads_condition();
    let is_read = substitution.iter().any(reads)
        || flags.texts().any(reads)
        || conditions.iter().any(RewriteCondition::reads_condition);
    conditions.iter_mut().for_each(|condition| condition.is_read = is_read);
    let looks_ahead = substitution.iter().any(RuleText::looks_ahead)
        || flags.texts().any(RuleText::looks_ahead)
        || conditions.iter().any(RewriteCondition::looks_ahead);
    own.looks_ahead |= looks_ahead;
    let line = own.line;
    let asks_for_sent_path = conditions.iter().any(|it| it.text.asks_for_sent_path());
    let has_unknown = conditions.iter().any(RewriteCondition::has_unknown)
        || flags.texts().any(RuleText::has_unknown);
    let is_unclear = flags.orders_cache() && has_unknown;
    let hides_rules = has_unknown && flags.leads_elsewhere();
    if flags.orders_cache() {
        own.rules.iter_mut().for_each(|rule| rule.is_unclear |= rule.hides_rules);
    }
    let rule = UrlRule {
        line,
        conditions,
        pattern,
        negated,
        substitution,
        flags,
        looks_ahead,
        asks_for_sent_path,
        is_unclear,
        hides_rules,
    };
    own.rules.push(rule);
    Ok(())
}

impl RewriteCondition {
    /// Whether it may use captures of another condition.
    fn reads_condition(&self) -> bool {
        self.text.reads_condition()
            || match &self.test {
                CondTest::Matches(_)
                | CondTest::Counts(..)
                | CondTest::File(_)
                | CondTest::Ahead(_) => false,
                CondTest::Compares(_, with) => with.reads_condition(),
                CondTest::Holds(_) => true,
            }
    }

    /// Whether it has an unknown variable.
    pub(super) fn has_unknown(&self) -> bool {
        let compares = match &self.test {
            CondTest::Compares(_, with) => with.has_unknown(),
            _ => false,
        };
        compares || self.text.has_unknown()
    }

    /// Whether it looks ahead.
    fn looks_ahead(&self) -> bool {
        self.text.looks_ahead()
            || match &self.test {
                CondTest::Ahead(_) => true,
                CondTest::Compares(_, with) => with.looks_ahead(),
                _ => false,
            }
    }
}

/// Two arguments, and an optional third one; none for another number.
fn three(arguments: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let (first, rest) = rewrite_word(arguments)?;
    let (second, rest) = rewrite_word(rest)?;
    let Some((third, rest)) = rewrite_word(rest) else { return Some((first, second, b"")) };
    rest.trim_ascii().is_empty().then_some((first, second, third))
}
