//! Flags of rules and conditions.

use super::template::{BackrefEscape, Blank, RuleText};
use crate::cache::CacheVariable;
use crate::fault::{ParseResult, shown};
use crate::variable::split;

/// LIMIT: rounds of `[N]` without a count, as in Apache.
const ROUNDS_MAX: u32 = 10_000;

/// The action of a rule that matches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum RuleAction {
    /// Rewrite the path.
    #[default]
    Rewrite,
    /// Proxy the request (`P`).
    Proxy,
    /// Redirect the client.
    Redirect(u16),
    /// Respond with this status at once.
    Status(u16),
}

/// A change of an environment variable.
#[derive(Clone, Debug)]
pub(crate) enum EnvOrder {
    Set(Box<[u8]>, RuleText),
    Unset(Box<[u8]>),
}

/// The flags of a rule.
#[derive(Clone, Debug, Default)]
pub(crate) struct RuleFlags {
    pub(crate) action: RuleAction,
    pub(crate) passing: Passing,
    pub(crate) is_chained: bool,
    pub(crate) any_case: bool,
    pub(crate) no_escape: bool,
    pub(crate) not_inside: bool,
    /// `R`, with any status.
    pub(crate) is_forced: bool,
    pub(crate) query: QueryFlags,
    pub(crate) skips: usize,
    pub(crate) env: Vec<EnvOrder>,
    pub(crate) cookies: Vec<RuleText>,
    pub(crate) media_type: Option<RuleText>,
    pub(crate) handler: Option<RuleText>,
    pub(crate) discards_path_info: bool,
    pub(crate) escape: BackrefEscape,
    pub(crate) allows_question_mark: bool,
}

/// Where the pass continues after a rule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Passing {
    /// At the next rule.
    #[default]
    On,
    /// It ends (`L`).
    Last,
    /// It ends, and no other pass follows (`END`).
    End,
    /// At the first rule, at most this often (`N`).
    Again(u32),
}

/// The handling of the query.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct QueryFlags {
    pub(crate) appends: bool,
    pub(crate) discards: bool,
    pub(crate) splits_last: bool,
}

/// Splits `[…]` into keys and values. As in LiteSpeed, words of cache control that follow an `E` of
/// one of its variables are part of its value: `[E=Cache-Control:private,max-age=300]`.
pub(crate) fn fields(flags: &[u8], whose: &str) -> ParseResult<Vec<(Vec<u8>, Vec<u8>)>> {
    let inner = flags.strip_prefix(b"[").and_then(|flags| flags.strip_suffix(b"]"));
    let inner = inner.ok_or_else(|| format!("{whose}: bad flag delimiters"))?;
    let mut pairs: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
    let mut rest = Some(inner);
    // LiteSpeed's variable whose value the field before ended in.
    let mut open: Option<CacheVariable> = None;
    while let Some(text) = rest {
        if let Some((value, behind)) = quoted_env(text) {
            pairs.push((b"e".to_vec(), value.to_vec()));
            (rest, open) = (behind, None);
            continue;
        }
        let comma = text.iter().position(|byte| *byte == b',');
        let (field, behind) = text.split_at(comma.unwrap_or(text.len()));
        let field = field.trim_ascii();
        rest = behind.get(1..);
        if open.is_some_and(|variable| variable.has_word(field) && !is_flag(field))
            && let Some((_, value)) = pairs.last_mut()
        {
            value.push(b',');
            value.extend_from_slice(field);
            continue;
        }
        let (key, value) = match split(field, b'=') {
            Some((key, value)) => (key.trim_ascii(), value),
            None => (field, &b""[..]),
        };
        let variable = split(value, b':').and_then(|(name, _)| CacheVariable::parse(name));
        open = variable.filter(|_| is_env(key));
        pairs.push((key.to_vec(), value.to_vec()));
    }
    Ok(pairs)
}

/// The names of flags.
const FLAGS: [&str; 48] = [
    "b",
    "backrefnoplus",
    "bctls",
    "bne",
    "bnp",
    "c",
    "chain",
    "co",
    "cookie",
    "discardpath",
    "dpi",
    "e",
    "end",
    "env",
    "f",
    "forbidden",
    "g",
    "gone",
    "h",
    "handler",
    "l",
    "last",
    "n",
    "nc",
    "ne",
    "next",
    "nocase",
    "noescape",
    "nosubreq",
    "ns",
    "p",
    "passthrough",
    "proxy",
    "pt",
    "qsa",
    "qsappend",
    "qsd",
    "qsdiscard",
    "qsl",
    "qslast",
    "r",
    "redirect",
    "s",
    "skip",
    "t",
    "type",
    "unsafeallow3f",
    "unsafeprefixstat",
];

fn is_env(key: &[u8]) -> bool {
    [&b"e"[..], b"env"].iter().any(|name| key.eq_ignore_ascii_case(name))
}

/// Whether a field is a flag, and not a word of the value before.
fn is_flag(field: &[u8]) -> bool {
    let key = split(field, b'=').map_or(field, |(key, _)| key.trim_ascii());
    FLAGS.iter().any(|name| key.eq_ignore_ascii_case(name.as_bytes()))
}

/// `E="NAME:VALUE"`, LiteSpeed's syntax: commas within the quotes belong to the value. Returns the
/// quoted text, and the rest after the next comma.
fn quoted_env(text: &[u8]) -> Option<(&[u8], Option<&[u8]>)> {
    let text = text.trim_ascii_start();
    let (key, value) = split(text, b'=')?;
    let inner = value.strip_prefix(b"\"").filter(|_| is_env(key))?;
    let (inside, behind) = split(inner, b'"')?;
    let behind = behind.trim_ascii_start();
    match behind.first() {
        None => Some((inside, None)),
        Some(b',') => Some((inside, Some(&behind[1..]))),
        Some(_) => None,
    }
}

impl RuleFlags {
    /// Whether the rules after this one may be left out because of it.
    pub(crate) fn leads_elsewhere(&self) -> bool {
        self.is_chained
            || self.skips > 0
            || self.passing != Passing::On
            || !matches!(self.action, RuleAction::Rewrite)
    }

    /// The texts that they generate.
    pub(crate) fn texts(&self) -> impl Iterator<Item = &RuleText> {
        let env = self.env.iter().filter_map(|order| match order {
            EnvOrder::Set(_, text) => Some(text),
            EnvOrder::Unset(_) => None,
        });
        env.chain(&self.cookies).chain(&self.media_type).chain(&self.handler)
    }

    /// Whether it sets variables for the cache.
    pub(crate) fn orders_cache(&self) -> bool {
        self.env.iter().any(|order| match order {
            EnvOrder::Set(name, _) => CacheVariable::parse(name).is_some(),
            EnvOrder::Unset(_) => false,
        })
    }

    /// Parses `[…]`.
    pub(crate) fn parse(flags: &[u8]) -> ParseResult<Self> {
        let mut own = Self::default();
        let (mut except, mut blank, mut escapes) = (Vec::new(), Blank::Plus, None);
        for (key, value) in fields(flags, "RewriteRule")? {
            match &key.to_ascii_lowercase()[..] {
                b"b" => escapes = Some(value),
                b"bnp" | b"backrefnoplus" => blank = Blank::Percent,
                b"bne" => except = value,
                b"bctls" => own.escape = BackrefEscape::Controls,
                _ => own.take(&key, &value)?,
            }
        }
        if let Some(bytes) = escapes {
            own.escape = match bytes.is_empty() {
                true => BackrefEscape::All { except: except.into(), blank },
                false => BackrefEscape::Only { bytes: bytes.into(), blank },
            };
        }
        Ok(own)
    }

    fn take(&mut self, key: &[u8], value: &[u8]) -> ParseResult<()> {
        let bad = || format!("RewriteRule: invalid value '{}' for flag", shown(value));
        match &key.to_ascii_lowercase()[..] {
            b"c" | b"chain" => self.is_chained = true,
            b"co" | b"cookie" => self.cookies.push(RuleText::parse(value)?),
            b"dpi" | b"discardpath" => self.discards_path_info = true,
            b"e" | b"env" => self.env.push(env_order(value)?),
            b"end" => self.passing = Passing::End,
            b"f" | b"forbidden" => self.action = RuleAction::Status(403),
            b"g" | b"gone" => self.action = RuleAction::Status(410),
            b"h" | b"handler" => self.handler = Some(RuleText::parse(value)?),
            b"l" | b"last" => self.passing = Passing::Last,
            b"n" | b"next" => {
                let rounds = match value {
                    b"" => ROUNDS_MAX,
                    _ => std::str::from_utf8(value)
                        .ok()
                        .and_then(|text| text.parse().ok())
                        .ok_or_else(bad)?,
                };
                self.passing = Passing::Again(rounds.min(ROUNDS_MAX));
            }
            b"nc" | b"nocase" => self.any_case = true,
            b"ne" | b"noescape" => self.no_escape = true,
            b"ns" | b"nosubreq" => self.not_inside = true,
            b"p" | b"proxy" => {
                self.action = RuleAction::Proxy;
                if self.passing == Passing::On {
                    self.passing = Passing::Last;
                }
            }
            // A rewritten path is always processed as a URL.
            b"pt" | b"passthrough" => {
                if self.passing == Passing::On {
                    self.passing = Passing::Last;
                }
            }
            b"qsa" | b"qsappend" => self.query.appends = true,
            b"qsd" | b"qsdiscard" => self.query.discards = true,
            b"qsl" | b"qslast" => self.query.splits_last = true,
            b"r" | b"redirect" => {
                self.is_forced = true;
                self.action = redirect(value)?;
            }
            b"s" | b"skip" => {
                self.skips = std::str::from_utf8(value)
                    .ok()
                    .and_then(|text| text.parse().ok())
                    .ok_or_else(bad)?;
            }
            b"t" | b"type" => self.media_type = Some(RuleText::parse(value)?),
            b"unsafeallow3f" => self.allows_question_mark = true,
            // It concerns server rules only.
            b"unsafeprefixstat" => {}
            _ => return Err(format!("RewriteRule: unknown flag '{}'", shown(key))),
        }
        Ok(())
    }
}

fn env_order(value: &[u8]) -> ParseResult<EnvOrder> {
    Ok(match (value, split(value, b':')) {
        ([b'!', name @ ..], _) => EnvOrder::Unset(name.into()),
        (_, Some((name, value))) => EnvOrder::Set(name.into(), RuleText::parse(value)?),
        (name, None) => EnvOrder::Set(name.into(), RuleText::parse(b"")?),
    })
}

fn redirect(value: &[u8]) -> ParseResult<RuleAction> {
    Ok(match &value.to_ascii_lowercase()[..] {
        b"permanent" => RuleAction::Redirect(301),
        b"seeother" => RuleAction::Redirect(303),
        digits if digits.first().is_some_and(u8::is_ascii_digit) => {
            let status = status(digits).ok_or_else(|| {
                let shown = shown(value);
                format!("RewriteRule: invalid HTTP response code '{shown}' for flag 'R'")
            })?;
            match status {
                301..=303 | 307 | 308 => RuleAction::Redirect(status),
                400.. => RuleAction::Status(status),
                _ => return Err(format!("RewriteRule: [R={status}] is not available here")),
            }
        }
        _ => RuleAction::Redirect(302),
    })
}

/// A status that Apache knows.
pub(crate) fn status(digits: &[u8]) -> Option<u16> {
    let status = std::str::from_utf8(digits).ok()?.parse().ok()?;
    let is_known = matches!(
        status,
        100..=103 | 200..=208 | 226 | 300..=305 | 307 | 308 | 400..=417 | 421..=424 | 426 | 428
            | 429 | 431 | 451 | 500..=508 | 510 | 511
    );
    is_known.then_some(status)
}

#[cfg(test)]
mod tests {
    use super::{FLAGS, RuleFlags, fields};

    fn shown(flags: &str) -> Vec<String> {
        let all = fields(flags.as_bytes(), "RewriteRule").unwrap();
        let text = |text: &[u8]| String::from_utf8(text.to_vec()).unwrap();
        all.iter().map(|(key, value)| format!("{} {}", text(key), text(value))).collect()
    }

    #[test]
    fn words_of_cache_control_belong_to_the_variable_before_them() {
        let rows: [(&str, &[&str]); 8] = [
            ("[E=cache-control:private,max-age=300]", &["E cache-control:private,max-age=300"]),
            ("[L,env=Cache-Ctrl:a, no-cache ,NC]", &["L ", "env Cache-Ctrl:a,no-cache", "NC "]),
            ("[E=Cache-Control:a,nocache]", &["E Cache-Control:a", "nocache "]),
            ("[E=\"Cache-Control:a\",public]", &["e Cache-Control:a", "public "]),
            ("[E=Cache-Vary:a,b,ck,L]", &["E Cache-Vary:a", "b ", "ck ", "L "]),
            ("[E=Cache-Vary:a,ck,L]", &["E Cache-Vary:a,ck", "L "]),
            ("[E=cache-key-mod:-qs:a,-qs:b,x]", &["E cache-key-mod:-qs:a,-qs:b", "x "]),
            ("[E=other:private,max-age=300]", &["E other:private", "max-age 300"]),
        ];
        for (flags, wanted) in rows {
            assert_eq!(shown(flags), wanted, "{flags}");
        }
    }

    #[test]
    fn the_list_of_flags_is_that_of_the_parser() {
        for name in FLAGS {
            let unknown = RuleFlags::parse(format!("[{name}]").as_bytes()).err();
            assert!(!unknown.is_some_and(|why| why.contains("unknown flag")), "{name}");
        }
    }
}
