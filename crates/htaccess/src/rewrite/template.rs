//! Texts with backreferences and variables, in rules and conditions.

use crate::escape::push_hex;
use crate::fault::ParseResult;
use crate::pattern::Groups;
use crate::variable::{RequestVariable, Variable, split};
use crate::world::{AheadKind, Asked, Evaluation};

/// The escaping of a backreference's value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum BackrefEscape {
    #[default]
    No,
    /// `B`, with the bytes that `BNE` excepts.
    All { except: Box<[u8]>, blank: Blank },
    /// `B=…`
    Only { bytes: Box<[u8]>, blank: Blank },
    /// `BCTLS`: blanks and control characters.
    Controls,
}

/// How a blank is escaped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Blank {
    #[default]
    Plus,
    /// `BNP`
    Percent,
}

impl BackrefEscape {
    fn push(&self, text: &[u8], out: &mut Vec<u8>) {
        let with_blanks = |blank: Blank, stays: &dyn Fn(u8) -> bool, out: &mut Vec<u8>| {
            for &byte in text {
                match (byte, blank) {
                    (b' ', Blank::Plus) if !stays(b' ') => out.push(b'+'),
                    _ => push_hex(&[byte], stays, out),
                }
            }
        };
        match self {
            Self::No => out.extend_from_slice(text),
            Self::All { except, blank } => {
                let stays = |byte: u8| {
                    byte.is_ascii_alphanumeric() || byte == b'_' || except.contains(&byte)
                };
                with_blanks(*blank, &stays, out);
            }
            Self::Only { bytes, blank } => {
                with_blanks(*blank, &|byte| !bytes.contains(&byte), out);
            }
            Self::Controls => push_hex(text, |byte| !byte.is_ascii_control() && byte != b' ', out),
        }
    }
}

#[derive(Clone, Debug)]
enum Part {
    Text(Box<[u8]>),
    /// `$n`
    OfRule(u8),
    /// `%n`
    OfCondition(u8),
    Of(Variable),
    /// `%{LA-U:NAME}`, `%{LA-F:NAME}`
    Ahead(AheadKind, Variable),
    /// `${name:key|default}`
    OfMap {
        name: Box<[u8]>,
        key: RuleText,
        default: RuleText,
    },
}

/// A text with back-references and variables.
#[derive(Clone, Debug)]
pub(crate) struct RuleText {
    parts: Vec<Part>,
}

/// The captures of the rule and of its last condition.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Backrefs<'a> {
    pub(crate) rule: &'a Groups,
    pub(crate) condition: &'a Groups,
}

/// LIMIT: nesting of maps in keys of maps.
const DEPTH_MAX: usize = 8;

/// The parts of `${…}`.
struct MapText<'a> {
    name: &'a [u8],
    key: &'a [u8],
    default: &'a [u8],
    behind: &'a [u8],
}

/// The position of `wanted` outside of inner braces.
fn outside(text: &[u8], wanted: u8) -> Option<usize> {
    let (mut at, mut depth) = (0, 0_usize);
    while let Some(byte) = text.get(at) {
        match byte {
            byte if *byte == wanted && depth == 0 => return Some(at),
            b'\\' => at += 1,
            b'{' => depth += 1,
            b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        at += 1;
    }
    None
}

impl<'a> MapText<'a> {
    /// Parses what follows `${`; none without a key or an end, which makes it plain text.
    fn find(inner: &'a [u8]) -> Option<Self> {
        let end = outside(inner, b'}')?;
        let (text, behind) = (&inner[..end], &inner[end + 1..]);
        let colon = outside(text, b':')?;
        let (name, rest) = (&text[..colon], &text[colon + 1..]);
        let bar = outside(rest, b'|');
        let (key, default) = rest.split_at(bar.unwrap_or(rest.len()));
        Some(Self { name, key, default: default.get(1..).unwrap_or_default(), behind })
    }

    fn part(&self, depth: usize) -> ParseResult<Part> {
        if depth >= DEPTH_MAX {
            return Err("too many maps within one another".to_owned());
        }
        Ok(Part::OfMap {
            name: self.name.into(),
            key: RuleText::parse_at(self.key, depth + 1)?,
            default: RuleText::parse_at(self.default, depth + 1)?,
        })
    }
}

/// A variable of this request, or of one that is looked ahead to.
fn variable(name: &[u8]) -> ParseResult<Part> {
    let or_nothing = |variable: Option<Variable>| variable.unwrap_or(Variable::Fixed(""));
    let kind = match name.get(..5).map(<[u8]>::to_ascii_uppercase).as_deref() {
        Some(b"LA-U:") => AheadKind::Url,
        Some(b"LA-F:") => AheadKind::File,
        _ => return Ok(Part::Of(or_nothing(Variable::parse(name)?))),
    };
    Ok(Part::Ahead(kind, or_nothing(Variable::parse(&name[5..])?)))
}

/// Whether a `?` of the text came from the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum QuestionMark {
    Foreign,
    None,
}

impl RuleText {
    /// Parses a text.
    pub(crate) fn parse(source: &[u8]) -> ParseResult<Self> {
        Self::parse_at(source, 0)
    }

    fn parse_at(source: &[u8], depth: usize) -> ParseResult<Self> {
        let mut parts = Vec::new();
        let mut text = Vec::new();
        let mut rest = source;
        while let [first, after @ ..] = rest {
            let (part, behind) = match (first, after) {
                (b'\\', [escaped, behind @ ..]) => {
                    text.push(*escaped);
                    rest = behind;
                    continue;
                }
                (b'$', [digit @ b'0'..=b'9', behind @ ..]) => (Part::OfRule(digit - b'0'), behind),
                (b'%', [digit @ b'0'..=b'9', behind @ ..]) => {
                    (Part::OfCondition(digit - b'0'), behind)
                }
                (b'$', [b'{', inner @ ..]) if let Some(found) = MapText::find(inner) => {
                    (found.part(depth)?, found.behind)
                }
                (b'%', [b'{', inner @ ..]) => match split(inner, b'}') {
                    Some((name, behind)) => (variable(name)?, behind),
                    None => {
                        text.push(*first);
                        rest = after;
                        continue;
                    }
                },
                _ => {
                    text.push(*first);
                    rest = after;
                    continue;
                }
            };
            if !text.is_empty() {
                parts.push(Part::Text(std::mem::take(&mut text).into()));
            }
            parts.push(part);
            rest = behind;
        }
        if !text.is_empty() {
            parts.push(Part::Text(text.into()));
        }
        Ok(Self { parts })
    }

    /// The question about the request, if the text is exactly one.
    pub(crate) fn asked(&self) -> Option<Asked<'_>> {
        match &self.parts[..] {
            [Part::Of(variable)] => variable.asked(),
            _ => None,
        }
    }

    /// Whether it uses captures of the last condition.
    pub(crate) fn reads_condition(&self) -> bool {
        self.parts.iter().any(|part| match part {
            Part::OfCondition(_) => true,
            Part::OfMap { key, default, .. } => key.reads_condition() || default.reads_condition(),
            Part::Text(_) | Part::OfRule(_) | Part::Of(_) | Part::Ahead(..) => false,
        })
    }

    /// Whether it has an unknown variable, which is empty.
    pub(crate) fn has_unknown(&self) -> bool {
        self.parts.iter().any(|part| match part {
            Part::Of(variable) | Part::Ahead(_, variable) => {
                matches!(variable, Variable::Fixed(_))
            }
            Part::OfMap { key, default, .. } => key.has_unknown() || default.has_unknown(),
            Part::Text(_) | Part::OfRule(_) | Part::OfCondition(_) => false,
        })
    }

    /// Whether it is about the path that the client sent, whatever the current one is.
    pub(crate) fn asks_for_sent_path(&self) -> bool {
        let sent = Variable::Request(RequestVariable::AskedUri);
        self.parts.iter().any(|part| matches!(part, Part::Of(variable) if *variable == sent))
    }

    /// Whether it looks ahead.
    pub(crate) fn looks_ahead(&self) -> bool {
        self.parts.iter().any(|part| match part {
            Part::Ahead(..) => true,
            Part::OfMap { key, default, .. } => key.looks_ahead() || default.looks_ahead(),
            Part::Text(_) | Part::OfRule(_) | Part::OfCondition(_) | Part::Of(_) => false,
        })
    }

    /// The request fields that it uses.
    pub(crate) fn headers(&self) -> impl Iterator<Item = &[u8]> {
        self.parts.iter().filter_map(|part| match part {
            Part::Of(variable) => variable.header(),
            _ => None,
        })
    }

    /// Appends its value; returns whether a `?` in the path came from the request.
    pub(crate) fn push(
        &self,
        backrefs: Backrefs<'_>,
        escape: &BackrefEscape,
        by: &mut Evaluation<'_>,
        out: &mut Vec<u8>,
    ) -> QuestionMark {
        let mut mark = QuestionMark::None;
        let mut in_query = false;
        for part in &self.parts {
            if by.effort.is_spent() {
                break;
            }
            let start = out.len();
            match part {
                Part::Text(text) => {
                    out.extend_from_slice(text);
                    in_query |= text.contains(&b'?');
                    continue;
                }
                Part::OfRule(number) => {
                    escape.push(backrefs.rule.of(usize::from(*number)), out);
                }
                Part::OfCondition(number) => {
                    escape.push(backrefs.condition.of(usize::from(*number)), out);
                }
                Part::Of(variable) => variable.push(by, out),
                Part::Ahead(kind, variable) => {
                    if let Some(found) = by.look_ahead(*kind) {
                        variable.push_ahead(&found, by, out);
                    }
                }
                Part::OfMap { name, key, default } => {
                    let mut of_key = Vec::new();
                    key.push(backrefs, escape, by, &mut of_key);
                    match by.world.map(name, &of_key, out) {
                        Ok(true) => {}
                        Ok(false) => _ = default.push(backrefs, escape, by, out),
                        Err(stop) => by.effort.give_up(stop),
                    }
                }
            }
            by.effort.spend(out.len() - start);
            if !in_query && out[start..].contains(&b'?') {
                mark = QuestionMark::Foreign;
            }
        }
        mark
    }

    /// Its value without groups.
    pub(crate) fn value(&self, backrefs: Backrefs<'_>, by: &mut Evaluation<'_>) -> Vec<u8> {
        let mut out = Vec::new();
        self.push(backrefs, &BackrefEscape::No, by, &mut out);
        out
    }
}
