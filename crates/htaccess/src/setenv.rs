//! `SetEnv`, `UnsetEnv`, `SetEnvIf`, `BrowserMatch` and their kin.

use crate::effort::Effort;
use crate::expr::{self, Expr};
use crate::fault::{ParseResult, shown};
use crate::lines::ArgumentWords;
use crate::pattern::{Groups, Letters, Pattern};
use crate::variable::{RequestVariable, split};
use crate::world::{Evaluation, Stop};

/// `SetEnv` and `UnsetEnv`.
#[derive(Clone, Debug)]
pub(crate) enum EnvRule {
    Set(Box<[u8]>, Box<[u8]>),
    Unset(Box<[u8]>),
}

/// A name and its value; none removes the variable.
type EnvChange = (Box<[u8]>, Option<Box<[u8]>>);

/// The subject of `SetEnvIf`.
#[derive(Clone, Debug)]
enum Attribute {
    Request(RequestVariable),
    /// A request field, or else an environment variable.
    Named(Box<[u8]>),
    /// All fields whose names match.
    Headers(Pattern),
}

/// One line of `SetEnvIf`.
#[derive(Clone, Debug)]
pub(crate) struct EnvCondition {
    test: EnvTest,
    /// Whether `$n` in values means captures.
    has_groups: bool,
    /// Names and values; none removes the variable.
    orders: Vec<EnvChange>,
    /// Its line.
    line: u32,
}

#[derive(Clone, Debug)]
enum EnvTest {
    Matches(Attribute, Pattern),
    Holds(Expr),
}

/// `SetEnvIf ATTRIBUTE REGEX VARIABLE…`
pub(crate) fn set_env_if(arguments: &[u8], letters: Letters) -> ParseResult<EnvCondition> {
    let mut words = ArgumentWords::new(arguments);
    let attribute = words.next_word().ok_or_else(|| missing("SetEnvIf"))?;
    let attribute = match &attribute.to_ascii_lowercase()[..] {
        b"remote_addr" | b"remote_host" => Attribute::Request(RequestVariable::RemoteAddr),
        b"server_addr" => Attribute::Request(RequestVariable::ServerAddr),
        b"request_method" => Attribute::Request(RequestVariable::RequestMethod),
        b"request_protocol" => Attribute::Request(RequestVariable::ServerProtocol),
        b"request_uri" => Attribute::Request(RequestVariable::RequestUri),
        _ if attribute.iter().any(is_special) => {
            Attribute::Headers(pattern(&attribute, Letters::Any)?)
        }
        _ => Attribute::Named(attribute.into()),
    };
    matching(attribute, words, letters)
}

/// `BrowserMatch REGEX VARIABLE…`
pub(crate) fn browser_match(arguments: &[u8], letters: Letters) -> ParseResult<EnvCondition> {
    matching(Attribute::Named(b"user-agent"[..].into()), ArgumentWords::new(arguments), letters)
}

fn matching(
    attribute: Attribute,
    mut words: ArgumentWords<'_>,
    letters: Letters,
) -> ParseResult<EnvCondition> {
    let regex = words.next_word().ok_or_else(|| missing("SetEnvIf"))?;
    let test = EnvTest::Matches(attribute, pattern(&regex, letters)?);
    // As in Apache, a plain text has no groups.
    let has_groups = regex.iter().any(is_special);
    Ok(EnvCondition { test, has_groups, orders: orders(words)?, line: 0 })
}

/// `SetEnvIfExpr EXPR VARIABLE…`
pub(crate) fn set_env_if_expr(arguments: &[u8]) -> ParseResult<EnvCondition> {
    let mut words = ArgumentWords::new(arguments);
    let expr = words.next_word().ok_or_else(|| missing("SetEnvIfExpr"))?;
    let test = EnvTest::Holds(expr::condition(&expr)?);
    Ok(EnvCondition { test, has_groups: true, orders: orders(words)?, line: 0 })
}

/// Whether a byte makes a text a regular expression.
fn is_special(byte: &u8) -> bool {
    b"^$*+?.()[]{}|\\".contains(byte)
}

fn missing(directive: &str) -> String {
    format!("Missing envariable expression for {directive}")
}

fn pattern(source: &[u8], letters: Letters) -> ParseResult<Pattern> {
    Pattern::new(source, letters)
        .ok_or_else(|| format!("SetEnvIf: regex could not be compiled: '{}'", shown(source)))
}

fn orders(words: ArgumentWords<'_>) -> ParseResult<Vec<EnvChange>> {
    let orders: Vec<_> = words
        .map(|word| match (&word[..], split(&word, b'=')) {
            ([b'!', name @ ..], _) => (name.into(), None),
            (_, Some((name, value))) => (name.into(), Some(value.into())),
            (name, None) => (name.into(), Some(b"1"[..].into())),
        })
        .collect();
    if orders.is_empty() { Err(missing("SetEnvIf")) } else { Ok(orders) }
}

impl EnvCondition {
    /// The same with this line.
    pub(crate) fn at(self, line: u32) -> Self {
        Self { line, ..self }
    }

    /// Sets the variables if it matches; `directory` is that of its file.
    pub(crate) fn apply(&self, directory: &[u8], by: &mut Evaluation<'_>) -> Result<(), Stop> {
        self.set(by).map_err(|stop| stop.at(directory, self.line))
    }

    fn set(&self, by: &mut Evaluation<'_>) -> Result<(), Stop> {
        let mut groups = Groups::default();
        let holds = match &self.test {
            EnvTest::Holds(expr) => expr.holds_with(by, &mut groups)?,
            EnvTest::Matches(attribute, pattern) => {
                pattern.find(&attribute.value(by)?, &mut groups, by.effort)?
            }
        };
        if !holds {
            return Ok(());
        }
        for (name, value) in &self.orders {
            match value {
                Some(value) if self.has_groups => {
                    by.env.set(name, &with_groups(value, &groups, by.effort));
                }
                Some(value) => by.env.set(name, value),
                None => by.env.unset(name),
            }
        }
        by.effort.check()
    }
}

impl Attribute {
    fn value(&self, by: &Evaluation<'_>) -> Result<Vec<u8>, Stop> {
        let mut out = Vec::new();
        match self {
            Self::Request(which) => by.world.variable(*which, &mut out),
            Self::Named(name) => {
                if !by.world.header(name, &mut out) {
                    out.extend_from_slice(by.env.of(name).unwrap_or_default());
                }
            }
            Self::Headers(pattern) => {
                let mut all = Vec::new();
                by.world.each_header(&mut |name, value| all.push((name.to_vec(), value.to_vec())));
                for (name, value) in all {
                    if pattern.is_match(&name, by.effort)? {
                        out = value;
                        break;
                    }
                }
            }
        }
        Ok(out)
    }
}

/// `value` with `$n` replaced.
fn with_groups(value: &[u8], groups: &Groups, effort: &Effort) -> Vec<u8> {
    let (mut out, mut rest) = (Vec::new(), value);
    while let [first, after @ ..] = rest {
        rest = after;
        match (first, after) {
            (b'$', [digit @ b'0'..=b'9', behind @ ..]) => {
                let group = groups.of(usize::from(digit - b'0'));
                effort.spend(group.len());
                if effort.is_spent() {
                    break;
                }
                out.extend_from_slice(group);
                rest = behind;
            }
            (b'\\', [escaped @ (b'$' | b'\\'), behind @ ..]) => {
                out.push(*escaped);
                rest = behind;
            }
            _ => out.push(*first),
        }
    }
    out
}
