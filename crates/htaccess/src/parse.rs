//! Parses a file: sections, and their directives. One error refuses the whole file.

mod directive;
mod names;
mod php;
mod repetitions;
mod section;

use crate::fault::{HtaccessFault, ParseResult, shown};
use crate::lines::{ArgumentWords, Lines};
use crate::methods::MethodSet;
use crate::modules::ApacheNames;
use crate::overrides::{NeededOverrides, class_of_option};
use crate::settings::{HtaccessFile, Settings};

use names::{Directive, DirectiveName};
use repetitions::repetitions;

/// LIMIT: bytes of a file.
pub const FILE_MAX: usize = 1024 * 1024;
/// LIMIT: directives and sections of a file.
const LINES_MAX: usize = 20_000;
/// LIMIT: bytes added to the lines of a file by expanding repeated groups.
const REPETITIONS_MAX: usize = 512 * 1024;
/// LIMIT: bytes of memory of a file's expressions, without the last one.
const COMPILED_MAX: usize = 32 * 1024 * 1024;
/// LIMIT: lines of a file that the log tells of.
const NOTES_MAX: usize = 8;
/// LIMIT: nesting of sections.
const DEPTH_MAX: usize = 32;

/// As [`parse_knowing`], for a server that names neither modules nor what it defines.
///
/// # Errors
///
/// The first error.
pub fn parse(text: &[u8]) -> Result<HtaccessFile, HtaccessFault> {
    parse_knowing(text, &ApacheNames::default())
}

/// Parses a file.
///
/// # Errors
///
/// The first error. Nothing of the file counts then.
pub fn parse_knowing(text: &[u8], known: &ApacheNames) -> Result<HtaccessFile, HtaccessFault> {
    if text.len() > FILE_MAX {
        let message = format!("file is larger than {FILE_MAX} bytes");
        return Err(HtaccessFault { line: 1, message });
    }
    let mut parser = Parser {
        lines: Lines::new(text),
        known,
        line: 1,
        count: 0,
        repetitions: 0,
        before: bolide_regex::compiled_here(),
        depth: 0,
        needs: NeededOverrides::default(),
        notes: Vec::new(),
    };
    let mut settings = Settings::default();
    parser.body(&mut settings, &Within::default(), None).map_err(|fault| match fault {
        ParseFault::Here(message) => HtaccessFault { line: parser.line, message },
        ParseFault::At(fault) => fault,
    })?;
    let weight = parser.compiled();
    Ok(HtaccessFile { settings, needs: parser.needs, weight, notes: parser.notes })
}

/// An error: at the last line, or elsewhere.
enum ParseFault {
    Here(String),
    At(HtaccessFault),
}

impl From<String> for ParseFault {
    fn from(message: String) -> Self {
        Self::Here(message)
    }
}

type Parsed<T> = Result<T, ParseFault>;

/// The enclosing section of a directive.
#[derive(Clone, Debug, Default)]
struct Within {
    /// Methods of `<Limit>`.
    methods: Option<MethodSet>,
    /// Whether it applies to some files only.
    is_partial: bool,
}

struct Parser<'a> {
    lines: Lines<'a>,
    known: &'a ApacheNames,
    line: u32,
    count: usize,
    repetitions: usize,
    /// The memory of earlier expressions.
    before: usize,
    depth: usize,
    needs: NeededOverrides,
    notes: Vec<HtaccessFault>,
}

/// A section's beginning or end.
enum Tag {
    Open { name: Vec<u8>, arguments: Vec<u8> },
    Close(Vec<u8>),
}

impl Parser<'_> {
    /// Parses lines up to the end of section `until`, or of the file. Returns whether the end was
    /// found.
    fn body(
        &mut self,
        settings: &mut Settings,
        within: &Within,
        until: Option<&str>,
    ) -> Parsed<bool> {
        while let Some(line) = self.next_line()? {
            if line.first() != Some(&b'<') {
                self.directive(&line, settings, within)?;
                continue;
            }
            match tag(&line)? {
                Tag::Close(name) => match until {
                    Some(until) if name.eq_ignore_ascii_case(until.as_bytes()) => return Ok(true),
                    _ => {
                        let name = shown(&name);
                        return Err(format!("</{name}> without matching <{name}> section").into());
                    }
                },
                Tag::Open { name, arguments } => {
                    self.section(&name, &arguments, settings, within)?;
                }
            }
        }
        Ok(until.is_none())
    }

    /// The memory of the file's expressions so far, in bytes.
    fn compiled(&self) -> usize {
        bolide_regex::compiled_here().wrapping_sub(self.before)
    }

    fn next_line(&mut self) -> Parsed<Option<Vec<u8>>> {
        let Some((number, line)) = self.lines.next() else { return Ok(None) };
        self.line = number;
        self.count += 1;
        if self.count > LINES_MAX {
            return Err(format!("more than {LINES_MAX} directives").into());
        }
        if line.contains(&0) {
            return Err("a NUL byte is no part of a directive".to_owned().into());
        }
        self.repetitions = self.repetitions.saturating_add(repetitions(&line));
        if self.repetitions > REPETITIONS_MAX {
            let message = "expressions up to here are too long with their repeated groups";
            return Err(message.to_owned().into());
        }
        if self.compiled() > COMPILED_MAX {
            return Err("expressions up to here take too much memory".to_owned().into());
        }
        Ok(Some(line.into_owned()))
    }

    /// Notes that the line means less than it says.
    fn note(&mut self, message: &str) {
        if self.notes.len() < NOTES_MAX {
            self.notes.push(HtaccessFault { line: self.line, message: message.to_owned() });
        }
    }

    fn directive(&mut self, line: &[u8], settings: &mut Settings, within: &Within) -> Parsed<()> {
        let end = line.iter().position(u8::is_ascii_whitespace).unwrap_or(line.len());
        let (name, arguments) = line.split_at(end);
        let arguments = arguments.trim_ascii_start();
        let parsed = match Directive::parse(name) {
            Directive::Known(DirectiveName::AuthMerging) if within.is_partial => {
                Err("AuthMerging is not available within a section".to_owned())
            }
            Directive::Known(directive) => {
                settings.rewriting.line = self.line;
                if let Some(class) = directive.class() {
                    self.needs.note(class, self.line);
                }
                if directive == DirectiveName::Options {
                    for class in ArgumentWords::new(arguments).filter_map(|it| class_of_option(&it))
                    {
                        self.needs.note(class, self.line);
                    }
                }
                let read = directive.read(arguments, settings, within.methods.as_ref());
                if directive == DirectiveName::RewriteRule && settings.rewriting.is_last_unclear() {
                    self.note(
                        "this rule about the cache has a variable that is not known: requests \
                         that it may apply to bypass the cache",
                    );
                }
                if directive.is_without_effect(arguments) {
                    self.note(&format!("{} has no effect in this place", shown(name)));
                }
                read
            }
            Directive::OfServer => Err(format!("{} not allowed here", shown(name))),
            Directive::Unknown => Err(unknown(name)),
        };
        parsed.map_err(ParseFault::Here)
    }
}

fn unknown(name: &[u8]) -> String {
    let name: String = name
        .iter()
        .map(|byte| match byte {
            b' '..=b'~' => char::from(*byte).to_string(),
            byte => format!("\\x{byte:02x}"),
        })
        .collect();
    format!(
        "Invalid command '{name}', perhaps misspelled or defined by a module not included in the \
         server configuration"
    )
}

fn tag(line: &[u8]) -> ParseResult<Tag> {
    if let Some(rest) = line.strip_prefix(b"</") {
        let end = rest.iter().position(|byte| *byte == b'>').unwrap_or(rest.len());
        return Ok(Tag::Close(rest[..end].trim_ascii().to_vec()));
    }
    let inner = &line[1..];
    let end = inner.iter().position(|byte| byte.is_ascii_whitespace() || *byte == b'>');
    let (name, rest) = inner.split_at(end.unwrap_or(inner.len()));
    // As in Apache, text after the last bracket is ignored.
    let close = rest.iter().rposition(|byte| *byte == b'>');
    let Some(close) = close else {
        return Err(format!("<{}> directive missing closing '>'", shown(name)));
    };
    Ok(Tag::Open { name: name.to_vec(), arguments: rest[..close].trim_ascii().to_vec() })
}
