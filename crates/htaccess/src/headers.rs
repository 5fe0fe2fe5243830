//! `Header` and `RequestHeader`: the model, the parser, and the edits.
//!
//! Framing fields cannot be edited: `Content-Length` and `Transfer-Encoding` are refused;
//! `Connection`, `Keep-Alive`, `Date` and `Server` keep the server's values.

use bolide_http::FieldMap;

use crate::effort::Effort;
use crate::expr::{self, Expr, ExprPlace, ExprWord};
use crate::fault::{ParseResult, shown};
use crate::lines::ArgumentWords;
use crate::pattern::{Groups, Letters, Pattern};
use crate::variable::{Variable, split};
use crate::world::{Evaluation, Stop};

/// Which of Apache's two tables of response fields an edit concerns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HeaderTable {
    /// Fields of all responses except generated errors.
    Success,
    /// Fields of every response.
    Always,
}

/// The action of an edit.
#[derive(Clone, Debug)]
enum Edit {
    Set(HeaderText),
    SetIfEmpty(HeaderText),
    Append(HeaderText),
    Merge(HeaderText),
    Add(HeaderText),
    Unset,
    Echo(Pattern),
    Replace { pattern: Pattern, with: HeaderText, all: bool },
}

/// A value with format specifiers, or an expression.
#[derive(Clone, Debug)]
enum HeaderText {
    Parts(Vec<Part>),
    Expr(ExprWord),
}

#[derive(Clone, Debug)]
enum Part {
    Text(Vec<u8>),
    /// `%{NAME}e`
    Env(Box<[u8]>),
    /// `%{NAME}s`: a variable of mod_ssl; none for an unknown name.
    Known(Option<Variable>),
    /// `%t`
    Received,
    /// `%D`
    Duration,
}

/// The condition of an edit.
#[derive(Clone, Debug)]
enum When {
    Always,
    Env(Box<[u8]>),
    NotEnv(Box<[u8]>),
    Holds(Box<Expr>),
}

/// One line of `Header` or `RequestHeader`.
#[derive(Clone, Debug)]
pub(crate) struct HeaderLine {
    pub(crate) table: HeaderTable,
    name: Box<[u8]>,
    edit: Edit,
    when: When,
}

/// Microseconds for `%t` and `%D`.
#[derive(Clone, Copy, Debug, Default)]
pub struct HeaderTimes {
    /// When the request began, since 1970.
    pub received: u64,
    /// Its duration.
    pub duration: u64,
}

/// Whether request or response fields are edited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HeaderSide {
    Request,
    Response,
}

impl HeaderSide {
    const fn directive(self) -> &'static str {
        match self {
            Self::Request => "RequestHeader",
            Self::Response => "Header",
        }
    }

    const fn place(self) -> ExprPlace {
        match self {
            Self::Request => ExprPlace::Request,
            Self::Response => ExprPlace::Response,
        }
    }
}

impl HeaderLine {
    /// Whether an expression is evaluated, which may ask about the response.
    pub(crate) const fn evaluates(&self) -> bool {
        let text = match &self.edit {
            Edit::Set(text)
            | Edit::SetIfEmpty(text)
            | Edit::Append(text)
            | Edit::Merge(text)
            | Edit::Add(text)
            | Edit::Replace { with: text, .. } => Some(text),
            Edit::Unset | Edit::Echo(_) => None,
        };
        matches!(self.when, When::Holds(_)) || matches!(text, Some(HeaderText::Expr(_)))
    }
}

/// Fields that are the server's own.
const OWN: [&[u8]; 4] = [b"connection", b"keep-alive", b"date", b"server"];
/// Names that belong to framing.
const FRAMING: [&[u8]; 2] = [b"content-length", b"transfer-encoding"];

/// Parses a line; none if it has no effect in this place.
pub(crate) fn parse(arguments: &[u8], side: HeaderSide) -> ParseResult<Option<HeaderLine>> {
    let directive = side.directive();
    let mut words = ArgumentWords::new(arguments);
    let missing = || format!("{directive} requires two arguments");
    let mut action = words.next_word().ok_or_else(missing)?.to_ascii_lowercase();
    let mut table = HeaderTable::Success;
    if side == HeaderSide::Response && matches!(&action[..], b"always" | b"onsuccess") {
        if action == b"always" {
            table = HeaderTable::Always;
        }
        action = words.next_word().ok_or_else(missing)?.to_ascii_lowercase();
    }
    let name = words.next_word().ok_or_else(missing)?;
    let name = name.strip_suffix(b":").unwrap_or(&name).to_vec();
    let mut rest: Vec<Vec<u8>> = words.collect();
    let takes = match &action[..] {
        b"unset" | b"echo" => 0,
        b"edit" | b"edit*" => 2,
        _ => 1,
    };
    let takes = if action == b"note" { return Err(unknown(directive)) } else { takes };
    if rest.len() < takes {
        let why = if takes == 2 { "edit requires" } else { "requires three" };
        return Err(format!("{directive} {why} arguments"));
    }
    if rest.len() > takes + 1 {
        return Err(format!("{directive} has too many arguments"));
    }
    let when = match rest.get(takes) {
        None => When::Always,
        Some(clause) if clause.eq_ignore_ascii_case(b"early") => return Ok(None),
        Some(clause) => when(clause, side)?,
    };
    rest.truncate(takes);
    let edit = edit(&action, &name, rest, side)?;
    if !matches!(edit, Edit::Echo(_)) {
        if !is_token(&name) {
            return Err(format!("{directive}: invalid header name '{}'", shown(&name)));
        }
        if FRAMING.contains(&&name.to_ascii_lowercase()[..]) {
            return Err(format!("{directive}: '{}' belongs to the server", shown(&name)));
        }
        if OWN.contains(&&name.to_ascii_lowercase()[..]) {
            return Ok(None);
        }
    }
    Ok(Some(HeaderLine { table, name: name.into(), edit, when }))
}

fn unknown(directive: &str) -> String {
    format!(
        "first argument to '{directive}' must be 'add', 'set', 'setifempty', 'append', 'merge', \
         'unset', 'echo', 'edit', or 'edit*'."
    )
}

fn edit(action: &[u8], name: &[u8], values: Vec<Vec<u8>>, side: HeaderSide) -> ParseResult<Edit> {
    let directive = side.directive();
    let bad = || format!("{directive}: cannot compile a regular expression");
    let mut values = values.into_iter();
    let mut value = || header_text(&values.next().unwrap_or_default(), side);
    Ok(match action {
        b"set" => Edit::Set(value()?),
        b"setifempty" => Edit::SetIfEmpty(value()?),
        b"append" => Edit::Append(value()?),
        b"merge" => Edit::Merge(value()?),
        b"add" => Edit::Add(value()?),
        b"unset" => Edit::Unset,
        b"echo" if side == HeaderSide::Response => {
            Edit::Echo(Pattern::new(name, Letters::Any).ok_or_else(bad)?)
        }
        b"edit" | b"edit*" => {
            let pattern = values.next().unwrap_or_default();
            let with = values.next().unwrap_or_default();
            Edit::Replace {
                pattern: Pattern::new(&pattern, Letters::Exact).ok_or_else(bad)?,
                with: header_text(&with, side)?,
                all: action == b"edit*",
            }
        }
        _ => return Err(unknown(directive)),
    })
}

fn when(clause: &[u8], side: HeaderSide) -> ParseResult<When> {
    let directive = side.directive();
    let lower = clause.to_ascii_lowercase();
    if lower.starts_with(b"env=") {
        return Ok(match &clause[4..] {
            [b'!', name @ ..] => When::NotEnv(name.into()),
            name => When::Env(name.into()),
        });
    }
    if lower.starts_with(b"expr=") {
        let condition = expr::condition_of(&clause[5..], side.place())?;
        if condition.asks_disk() {
            return Err(format!("{directive}: tests of files are not available here"));
        }
        return Ok(When::Holds(Box::new(condition)));
    }
    Err(format!("{directive}: condition clause must be 'env=…' or 'expr=…'"))
}

fn header_text(source: &[u8], side: HeaderSide) -> ParseResult<HeaderText> {
    let directive = side.directive();
    if let Some(expr) = source.strip_prefix(b"expr=") {
        return Ok(HeaderText::Expr(expr::text_of(expr, side.place())?));
    }
    let bad = |what: &[u8]| format!("{directive}: Unrecognized header format %{}", shown(what));
    let (mut parts, mut text) = (Vec::new(), Vec::new());
    let mut rest = source;
    while let [first, after @ ..] = rest {
        let (part, behind) = match (first, after) {
            (b'%', [b'%', behind @ ..]) => {
                text.push(b'%');
                rest = behind;
                continue;
            }
            (b'%', [b't', behind @ ..]) => (Part::Received, behind),
            (b'%', [b'D', behind @ ..]) => (Part::Duration, behind),
            (b'%', [b'{', inner @ ..]) => {
                let (name, behind) = split(inner, b'}').ok_or_else(|| bad(b"{"))?;
                match behind {
                    [b'e', behind @ ..] => (Part::Env(name.into()), behind),
                    [b's', behind @ ..] => (Part::Known(known(name)?), behind),
                    _ => return Err(bad(behind.get(..1).unwrap_or_default())),
                }
            }
            (b'%', [other, ..]) => return Err(bad(&[*other])),
            _ => {
                text.push(*first);
                rest = after;
                continue;
            }
        };
        if !text.is_empty() {
            parts.push(Part::Text(std::mem::take(&mut text)));
        }
        parts.push(part);
        rest = behind;
    }
    parts.push(Part::Text(text));
    Ok(HeaderText::Parts(parts))
}

/// A variable of mod_ssl by its name, which has no colon.
fn known(name: &[u8]) -> ParseResult<Option<Variable>> {
    match name.contains(&b':') {
        true => Ok(None),
        false => Variable::parse_in_expression(name),
    }
}

/// RFC 9110 §5.6.2
fn is_token(name: &[u8]) -> bool {
    !name.is_empty()
        && name.iter().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte))
}

impl HeaderText {
    fn value(&self, times: HeaderTimes, by: &mut Evaluation<'_>) -> Vec<u8> {
        let mut out = Vec::new();
        match self {
            Self::Expr(word) => out = word.value(by, &Groups::default()),
            Self::Parts(parts) => {
                for part in parts {
                    match part {
                        Part::Text(text) => out.extend_from_slice(text),
                        Part::Env(name) => {
                            let value = by.env.of(name).unwrap_or(b"(null)");
                            by.effort.spend(value.len());
                            if by.effort.is_spent() {
                                break;
                            }
                            out.extend_from_slice(value);
                        }
                        Part::Known(variable) => {
                            let start = out.len();
                            if let Some(variable) = variable {
                                variable.push(by, &mut out);
                            }
                            by.effort.spend(out.len() - start);
                            if by.effort.is_spent() {
                                break;
                            }
                            if out.len() == start {
                                out.extend_from_slice(b"(null)");
                            }
                        }
                        Part::Received => {
                            out.extend_from_slice(format!("t={}", times.received).as_bytes());
                        }
                        Part::Duration => {
                            out.extend_from_slice(format!("D={}", times.duration).as_bytes());
                        }
                    }
                }
            }
        }
        out.iter_mut().filter(|byte| byte.is_ascii_control()).for_each(|byte| *byte = b' ');
        out
    }
}

/// Applies the edits of one table to `fields`, in order.
pub(crate) fn apply<'a>(
    edits: impl Iterator<Item = &'a HeaderLine>,
    fields: &mut FieldMap,
    times: HeaderTimes,
    by: &mut Evaluation<'_>,
) -> Result<(), Stop> {
    for own in edits {
        let applies = match &own.when {
            When::Always => true,
            When::Env(name) => by.env.of(name).is_some(),
            When::NotEnv(name) => by.env.of(name).is_none(),
            When::Holds(expr) => expr.holds(by)?,
        };
        by.effort.spend_part()?;
        if applies {
            // Some edits search the list more than once.
            by.effort.spend_entries(2 * fields.places());
            by.effort.spend(fields.all_text(&own.name).map(<[u8]>::len).sum());
            by.effort.check()?;
            own.edit.apply(&own.name, fields, times, by)?;
            by.effort.check()?;
            // What is edited later sees this edit, unless it is of the other table.
            if own.table == HeaderTable::Success
                && let Some(response) = &mut by.response
            {
                by.effort.spend(fields.size());
                response.fields.copy_from(fields);
            }
        }
    }
    Ok(())
}

impl Edit {
    fn apply(
        &self,
        name: &[u8],
        fields: &mut FieldMap,
        times: HeaderTimes,
        by: &mut Evaluation<'_>,
    ) -> Result<(), Stop> {
        match self {
            Self::Set(text) => put(name, &text.value(times, by), fields),
            Self::SetIfEmpty(text) => {
                if fields.get_text(name).is_none() {
                    fields.push_text(name, &text.value(times, by));
                }
            }
            Self::Append(text) => {
                let value = text.value(times, by);
                append(name, &value, fields);
            }
            Self::Merge(text) => {
                let value = text.value(times, by);
                let has_it = fields.all_text(name).any(|line| {
                    line.split(|byte| *byte == b',').any(|item| item.trim_ascii() == value)
                });
                if !has_it {
                    append(name, &value, fields);
                }
            }
            Self::Add(text) => fields.push_text(name, &text.value(times, by)),
            Self::Unset => fields.remove_text(name),
            Self::Echo(pattern) => echo(pattern, fields, by)?,
            Self::Replace { pattern, with, all } => {
                let with = with.value(times, by);
                let lines: Vec<Vec<u8>> = fields.all_text(name).map(<[u8]>::to_vec).collect();
                if lines.is_empty() {
                    return Ok(());
                }
                fields.remove_text(name);
                for line in lines {
                    fields.push_text(name, &replaced(pattern, &line, &with, *all, by.effort)?);
                }
            }
        }
        Ok(())
    }
}

fn put(name: &[u8], value: &[u8], fields: &mut FieldMap) {
    fields.remove_text(name);
    fields.push_text(name, value);
}

fn append(name: &[u8], value: &[u8], fields: &mut FieldMap) {
    let lines: Vec<&[u8]> = fields.all_text(name).collect();
    if lines.is_empty() {
        return fields.push_text(name, value);
    }
    let whole = [&lines.join(&b", "[..])[..], value].join(&b", "[..]);
    put(name, &whole, fields);
}

fn echo(pattern: &Pattern, fields: &mut FieldMap, by: &Evaluation<'_>) -> Result<(), Stop> {
    let mut all = Vec::new();
    by.world.each_header(&mut |name, value| all.push((name.to_vec(), value.to_vec())));
    for (name, value) in all {
        if pattern.is_match(&name, by.effort)? {
            fields.push_text(&name, &value);
        }
    }
    Ok(())
}

/// LIMIT: bytes of an edited field.
const EDITED_MAX: usize = 16 * 1024;

fn replaced(
    pattern: &Pattern,
    line: &[u8],
    with: &[u8],
    all: bool,
    effort: &Effort,
) -> Result<Vec<u8>, Stop> {
    let (mut out, mut rest) = (Vec::new(), line);
    let mut groups = Groups::default();
    while pattern.find(rest, &mut groups, effort)? {
        let (start, end) = groups.span();
        out.extend_from_slice(&rest[..start]);
        let mut template = with;
        while let [first, after @ ..] = template {
            template = after;
            match (first, after) {
                (b'$', [digit @ b'0'..=b'9', behind @ ..]) => {
                    out.extend_from_slice(groups.of(usize::from(digit - b'0')));
                    template = behind;
                }
                (b'\\', [escaped, behind @ ..]) => {
                    out.push(*escaped);
                    template = behind;
                }
                _ => out.push(*first),
            }
        }
        rest = &rest[end..];
        if !all || end == start || rest.is_empty() {
            break;
        }
        if out.len() > EDITED_MAX {
            return Err(Stop::Refused(500, "an edited header grew too long"));
        }
    }
    out.extend_from_slice(rest);
    Ok(out)
}
