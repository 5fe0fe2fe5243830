//! The execution of commands: conditions, blocks, variables, and the output of each.
//!
//! Owns whether text is sent, stored in a block or dropped. Easiest to break: where no text is
//! sent, no command runs either, except those that end that state.

use std::sync::Arc;

use bolide_http::escape::push_html;

use crate::SsiFault;
use crate::command::CommandKind;
use crate::scan::SsiCommand;
use crate::time::{Moment, TIME_FORMAT, push_time};
use crate::words::{COUNT_MAX, Matched, SIZE_MAX, SharedText, evaluate};

/// The output for a command that fails.
const ERROR: &[u8] = b"[an error occurred while processing the directive]";

/// The least cost of a command, and the extra cost of an expression: it is compiled and visits each
/// byte of a text several times.
const COMMAND_WORK: usize = 128;
const MATCH_WORK: usize = 16 * 1024;
const MATCH_FACTOR: usize = 8;

/// How `echo` writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Encoding {
    None,
    Url,
    Entity,
}

/// The state of a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Condition {
    Outside,
    /// After `if` or `elif`.
    If,
    Else,
}

/// An include to request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SsiInclude {
    /// The URL as evaluated; it begins with `/`, or is empty.
    pub uri: Vec<u8>,
    /// Whether the rest of the page waits for it.
    pub waits: bool,
    /// The variable that stores its response.
    pub set: Option<Vec<u8>>,
    /// The replacement for an empty response.
    pub stub: Option<Arc<Vec<u8>>>,
}

/// The result of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SsiAct {
    /// No output.
    Nothing,
    /// This is shown.
    Show(Vec<u8>),
    /// Request this, and send it in place of the command.
    Include(SsiInclude),
}

/// The environment of a command. `look_up` appends the value of a server variable (its name in
/// lower case) and returns whether it exists; `find` matches an expression against a text, or
/// returns an error; `warn` logs a message and changes nothing.
#[derive(Debug)]
pub struct SsiWorld<'a, L, F, W> {
    /// The state that the page and its includes share.
    pub shared: &'a mut SharedText,
    /// The path of the page.
    pub uri: &'a [u8],
    /// The time, in the local zone.
    pub moment: Moment<'a>,
    /// See above.
    pub look_up: L,
    /// See above.
    pub find: F,
    /// See above.
    pub warn: W,
}

/// The state of one page.
#[derive(Clone, Debug)]
pub struct Flow {
    error: Vec<u8>,
    time_format: Vec<u8>,
    encoding: Encoding,
    condition: Condition,
    /// Whether text is shown.
    shows: bool,
    /// Whether a branch of the condition was taken.
    chosen: bool,
    in_block: bool,
    /// The open block in the shared list, if there was room for it.
    block: Option<usize>,
}

impl Default for Flow {
    fn default() -> Self {
        Self {
            error: ERROR.to_vec(),
            time_format: TIME_FORMAT.to_vec(),
            encoding: Encoding::Entity,
            condition: Condition::Outside,
            shows: true,
            chosen: false,
            in_block: false,
            block: None,
        }
    }
}

impl Flow {
    /// The output for a command that is malformed or fails.
    #[must_use]
    pub fn error(&self) -> &[u8] {
        &self.error
    }

    /// The last value of `config timefmt`.
    #[must_use]
    pub fn time_format(&self) -> &[u8] {
        &self.time_format
    }

    /// Whether text is sent unchanged; then the state need not be consulted for it.
    #[must_use]
    pub const fn shows(&self) -> bool {
        self.shows
    }

    /// Takes text that is not sent: it goes to the open block, or is dropped.
    pub fn hide(&self, text: &[u8], shared: &mut SharedText) {
        let Some((_, block)) = self.block.and_then(|at| shared.blocks.get_mut(at)) else { return };
        if shared.blocks_size + text.len() <= SIZE_MAX {
            shared.blocks_size += text.len();
            Arc::make_mut(block).extend_from_slice(text);
        }
    }

    /// Executes a command.
    ///
    /// # Errors
    ///
    /// The error, for the error log; the output is [`Self::error`].
    pub fn run<L, F, W>(
        &mut self,
        command: &SsiCommand,
        world: &mut SsiWorld<'_, L, F, W>,
    ) -> Result<SsiAct, SsiFault>
    where
        L: FnMut(&[u8], &mut Vec<u8>) -> bool,
        F: FnMut(&[u8], &[u8]) -> Result<Option<Matched>, SsiFault>,
        W: FnMut(SsiFault),
    {
        world.shared.work += COMMAND_WORK;
        let kind = CommandKind::of(&command.name);
        if self.in_block && kind != Some(CommandKind::Endblock) {
            if kind.is_some() {
                let mut source = Vec::new();
                command.push_source(&mut source);
                self.hide(&source, world.shared);
            }
            return Ok(SsiAct::Nothing);
        }
        if !self.shows && !kind.is_some_and(CommandKind::steers) {
            return Ok(SsiAct::Nothing);
        }
        let Some(kind) = kind else {
            return Err([b"invalid SSI command: \"", &command.name[..], b"\""].concat());
        };
        let fits = match kind {
            CommandKind::Elif | CommandKind::Else => self.condition == Condition::If,
            CommandKind::Endif => self.condition != Condition::Outside,
            _ => true,
        };
        if !fits {
            return Err([b"invalid context of SSI command: \"", &command.name[..], b"\""].concat());
        }
        command.check(kind)?;
        let value = |name: &[u8]| command.get(name).unwrap_or_default();
        match kind {
            CommandKind::Include => return self.include(command, world),
            CommandKind::Echo => return self.echo(command, world),
            CommandKind::Config => self.configure(command),
            CommandKind::Set => {
                let text = self.expand(value(b"value"), world)?;
                if !world.shared.set(value(b"var"), text) {
                    return Err(b"too many variables in SSI commands".to_vec());
                }
            }
            CommandKind::If | CommandKind::Elif => self.branch(kind, value(b"expr"), world)?,
            CommandKind::Else => {
                self.shows = !self.chosen;
                self.condition = Condition::Else;
            }
            CommandKind::Endif => {
                self.shows = true;
                self.chosen = false;
                self.condition = Condition::Outside;
            }
            CommandKind::Block => self.begin_block(value(b"name"), world.shared),
            CommandKind::Endblock => {
                self.shows = true;
                self.in_block = false;
                self.block = None;
            }
        }
        Ok(SsiAct::Nothing)
    }

    fn begin_block(&mut self, name: &[u8], shared: &mut SharedText) {
        self.shows = false;
        self.in_block = true;
        self.block = None;
        if shared.blocks.len() < COUNT_MAX {
            self.block = Some(shared.blocks.len());
            shared.blocks.push((name.to_vec(), Arc::default()));
        }
    }

    fn configure(&mut self, command: &SsiCommand) {
        if let Some(format) = command.get(b"timefmt") {
            self.time_format = format.to_vec();
        }
        if let Some(error) = command.get(b"errmsg") {
            self.error = error.to_vec();
        }
    }

    /// Evaluates a text with variables.
    fn expand<L, F, W>(
        &self,
        text: &[u8],
        world: &mut SsiWorld<'_, L, F, W>,
    ) -> Result<Vec<u8>, SsiFault>
    where
        L: FnMut(&[u8], &mut Vec<u8>) -> bool,
    {
        // What turns out too long was copied as well.
        world.shared.work += text.len();
        evaluate(text, &mut |name, out| {
            let before = out.len();
            let found = self.push_value(name, world, out);
            world.shared.work += out.len() - before;
            found
        })
    }

    /// Appends the value of a variable, of the page or of the server; returns whether it exists.
    fn push_value<L, F, W>(
        &self,
        name: &[u8],
        world: &mut SsiWorld<'_, L, F, W>,
        out: &mut Vec<u8>,
    ) -> Result<bool, SsiFault>
    where
        L: FnMut(&[u8], &mut Vec<u8>) -> bool,
    {
        world.shared.work += world.shared.len();
        if let Some(value) = world.shared.get(name) {
            out.extend_from_slice(value);
            return Ok(true);
        }
        let moment = match name {
            b"date_local" => world.moment,
            b"date_gmt" => Moment { offset: 0, zone: "GMT", ..world.moment },
            _ => return Ok((world.look_up)(name, out)),
        };
        if push_time(out, &self.time_format, moment) { Ok(true) } else { Err(Vec::new()) }
    }

    fn echo<L, F, W>(
        &mut self,
        command: &SsiCommand,
        world: &mut SsiWorld<'_, L, F, W>,
    ) -> Result<SsiAct, SsiFault>
    where
        L: FnMut(&[u8], &mut Vec<u8>) -> bool,
        W: FnMut(SsiFault),
    {
        let name = command.get(b"var").unwrap_or_default().to_ascii_lowercase();
        let mut value = Vec::new();
        if !self.push_value(&name, world, &mut value)? {
            value.extend_from_slice(command.get(b"default").unwrap_or(b"(none)"));
        }
        match command.get(b"encoding") {
            None => {}
            Some(b"none") => self.encoding = Encoding::None,
            Some(b"url") => self.encoding = Encoding::Url,
            Some(b"entity") => self.encoding = Encoding::Entity,
            Some(other) => {
                let parts: [&[u8]; 3] =
                    [b"unknown encoding \"", other, b"\" in the \"echo\" command"];
                (world.warn)(parts.concat());
            }
        }
        world.shared.work += value.len();
        let mut out = Vec::with_capacity(value.len());
        match self.encoding {
            Encoding::None => out = value,
            Encoding::Url => push_url(&mut out, &value),
            Encoding::Entity => push_html(&mut out, &value),
        }
        Ok(SsiAct::Show(out))
    }

    fn branch<L, F, W>(
        &mut self,
        kind: CommandKind,
        expression: &[u8],
        world: &mut SsiWorld<'_, L, F, W>,
    ) -> Result<(), SsiFault>
    where
        L: FnMut(&[u8], &mut Vec<u8>) -> bool,
        F: FnMut(&[u8], &[u8]) -> Result<Option<Matched>, SsiFault>,
    {
        if kind == CommandKind::If && self.condition != Condition::Outside {
            return Err(b"the \"if\" command inside the \"if\" command".to_vec());
        }
        if self.chosen {
            self.shows = false;
            return Ok(());
        }
        self.shows = self.holds(expression, world)?;
        self.chosen = self.shows;
        self.condition = Condition::If;
        Ok(())
    }

    /// Evaluates an expression: `TEXT`, `TEXT = TEXT`, `TEXT != TEXT`, `TEXT = /EXPRESSION/`.
    fn holds<L, F, W>(
        &self,
        expression: &[u8],
        world: &mut SsiWorld<'_, L, F, W>,
    ) -> Result<bool, SsiFault>
    where
        L: FnMut(&[u8], &mut Vec<u8>) -> bool,
        F: FnMut(&[u8], &[u8]) -> Result<Option<Matched>, SsiFault>,
    {
        let is_left = |byte: &u8| {
            byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | b'{' | b'}' | b'\'' | b'"')
        };
        let len = expression.iter().position(|byte| !is_left(byte)).unwrap_or(expression.len());
        let (left, rest) = expression.split_at(len);
        let left = self.expand(&left.to_ascii_lowercase(), world)?;
        let rest = skip_blanks(rest);
        if rest.is_empty() {
            return Ok(!left.is_empty());
        }
        let invalid = || Err([b"invalid expression in \"", expression, b"\""].concat());
        let (wants, right) = match rest {
            [b'=', right @ ..] => (true, right),
            [b'!', b'=', right @ ..] => (false, right),
            _ => return invalid(),
        };
        let right = skip_blanks(right);
        if let [b'/', pattern @ .., last] = right {
            if *last != b'/' {
                return invalid();
            }
            world.shared.work += MATCH_WORK + left.len() * MATCH_FACTOR;
            let pattern = self.expand(pattern, world)?;
            let matched = (world.find)(&pattern, &left)?;
            let found = matched.is_some();
            if let Some(matched) = matched {
                world.shared.take(matched);
            }
            return Ok(found == wants);
        }
        // A backslash before the slash marks a path, not an expression.
        let right = if right.starts_with(b"\\/") { &right[1..] } else { right };
        Ok((self.expand(right, world)? == left) == wants)
    }

    fn include<L, F, W>(
        &self,
        command: &SsiCommand,
        world: &mut SsiWorld<'_, L, F, W>,
    ) -> Result<SsiAct, SsiFault>
    where
        L: FnMut(&[u8], &mut Vec<u8>) -> bool,
    {
        let (path, file) = (command.get(b"virtual"), command.get(b"file"));
        let (wait, set, stub) = (command.get(b"wait"), command.get(b"set"), command.get(b"stub"));
        let quoted = |before: &str, value: &[u8], after: &str| {
            [before.as_bytes(), b"\"", value, b"\"", after.as_bytes()].concat()
        };
        let (address, is_file) = match (path, file) {
            (Some(path), Some(file)) => {
                let mut fault = quoted("inclusion may be either virtual=", path, " or file=");
                fault.extend_from_slice(&quoted("", file, ""));
                return Err(fault);
            }
            (None, None) => return Err(b"no parameter in \"include\" SSI command".to_vec()),
            (Some(path), None) => (path, false),
            (None, Some(file)) => (file, true),
        };
        if set.is_some() && stub.is_some() {
            let words = "\"set\" and \"stub\" cannot be used together in \"include\" SSI command";
            return Err(words.as_bytes().to_vec());
        }
        let waits = match wait {
            Some(_) if is_file => {
                return Err(quoted("\"wait\" cannot be used with file=", address, ""));
            }
            Some(b"yes") => true,
            None | Some(b"no") => false,
            Some(other) => {
                return Err(quoted("invalid value ", other, " in the \"wait\" parameter"));
            }
        };
        let mut uri = self.expand(address, world)?;
        if uri.first().is_some_and(|byte| *byte != b'/') {
            let directory = world.uri.iter().rposition(|byte| *byte == b'/').map_or(0, |at| at + 1);
            uri.splice(0..0, world.uri[..directory].iter().copied());
        }
        let stub = match stub {
            None => None,
            Some(name) => match world.shared.block(name) {
                Some(text) => Some(text.clone()),
                None => return Err(quoted("\"stub\"=", name, " for \"include\" not found")),
            },
        };
        let waits = waits || is_file || set.is_some();
        Ok(SsiAct::Include(SsiInclude { uri, waits, set: set.map(<[u8]>::to_vec), stub }))
    }
}

fn skip_blanks(text: &[u8]) -> &[u8] {
    let start = text.iter().position(|byte| *byte != b' ').unwrap_or(text.len());
    &text[start..]
}

/// Appends `text` in the form of `echo … encoding="url"`.
fn push_url(out: &mut Vec<u8>, text: &[u8]) {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    for &byte in text {
        let is_plain = byte > b' ' && byte < 0x7f && !b"\"#%'<>\\^`{|}".contains(&byte);
        if is_plain {
            out.push(byte);
        } else {
            out.extend_from_slice(&[
                b'%',
                HEX[usize::from(byte >> 4)],
                HEX[usize::from(byte & 15)],
            ]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{SsiEvent, SsiScanner};

    #[test]
    fn values_that_get_too_long_are_counted_as_work() {
        let (mut scanner, mut flow) = (SsiScanner::new(1024), Flow::default());
        let (mut shared, mut text) = (SharedText::default(), Vec::new());
        let first = b"<!--#set var=\"a\" value=\"xx\" -->".to_vec();
        let page = [first, b"<!--#set var=\"a\" value=\"$a$a\" -->".repeat(40)].concat();
        let (mut rest, mut faults) = (&page[..], 0);
        while !rest.is_empty() {
            let (used, event) = scanner.read(rest, &mut text);
            rest = &rest[used..];
            let Some(SsiEvent::Command(command)) = event else { continue };
            let mut world = SsiWorld {
                shared: &mut shared,
                uri: b"/",
                moment: Moment { unix: 0, offset: 0, zone: "UTC" },
                look_up: |_: &[u8], _: &mut Vec<u8>| false,
                find: |_: &[u8], _: &[u8]| Ok(None),
                warn: |_| {},
            };
            if flow.run(&command, &mut world).is_err() {
                faults += 1;
                assert!(shared.take_work() > crate::words::VALUE_MAX, "what was copied counts");
            }
        }
        assert!((15..25).contains(&faults), "a value doubles twenty times: {faults}");
    }
}
