//! The shape of a row of the directive table.
//!
//! One row, in the file of its feature, describes everything about a directive: its contexts, the
//! number of its arguments, how to read them, how it is inherited, its purpose. Checking, "did you
//! mean" and documentation all come from the rows.

use std::time::Duration;

use crate::ast::Node;
use crate::reader::{ConfReader, ReadResult};

/// A set of blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Contexts(u16);

impl Contexts {
    /// Outside of all blocks.
    pub const MAIN: Self = Self(1);
    /// `events`
    pub const EVENTS: Self = Self(2);
    /// `http`
    pub const HTTP: Self = Self(4);
    /// `server`
    pub const SERVER: Self = Self(8);
    /// `location`
    pub const LOCATION: Self = Self(16);
    /// `upstream`
    pub const UPSTREAM: Self = Self(256);
    /// `php_pool`
    pub const PHP_POOL: Self = Self(512);
    /// `acme_issuer`
    pub const ACME_ISSUER: Self = Self(2048);
    /// `if` in a location
    pub const IF: Self = Self(32);
    /// `if` in a server block
    pub const SERVER_IF: Self = Self(64);
    /// `limit_except`
    pub const LIMIT_EXCEPT: Self = Self(1024);
    /// `otel_exporter`
    pub const OTEL_EXPORTER: Self = Self(4096);
    /// `cluster`
    pub const CLUSTER: Self = Self(8192);
    /// `http`, `server`, `location`, `if` in a location
    pub const HSLI: Self = Self(4 | 8 | 16 | 32);
    /// `location`, `if` in it
    pub const LI: Self = Self(16 | 32);
    /// `location`, `if` in it, `limit_except`
    pub const LIE: Self = Self(16 | 32 | 1024);
    /// `server`, `location`, `if` in either
    pub const REWRITE: Self = Self(8 | 16 | 32 | 64);
    /// `http`, `server`, `location`, `if` anywhere
    pub const HREWRITE: Self = Self(4 | 8 | 16 | 32 | 64);
    /// `http`, `server`
    pub const HS: Self = Self(4 | 8);
    /// `server`, `location`
    pub const SL: Self = Self(8 | 16);
    /// `http`, `server`, `location`
    pub const HSL: Self = Self(4 | 8 | 16);
    /// `http`, `server`, `location`, `limit_except`
    pub const HSLE: Self = Self(4 | 8 | 16 | 1024);
    /// `http`, `server`, `location`, `if` in a location, `limit_except`
    pub const HSLIE: Self = Self(4 | 8 | 16 | 32 | 1024);
    /// Main block and `http`, `server`, `location`
    pub const MHSL: Self = Self(1 | 4 | 8 | 16);

    /// Every kind of block with its name, for documentation.
    pub const EACH: [(Self, &'static str); 13] = [
        (Self::MAIN, "main"),
        (Self::EVENTS, "events"),
        (Self::HTTP, "http"),
        (Self::SERVER, "server"),
        (Self::LOCATION, "location"),
        (Self::UPSTREAM, "upstream"),
        (Self::PHP_POOL, "php_pool"),
        (Self::ACME_ISSUER, "acme_issuer"),
        (Self::IF, "if in location"),
        (Self::SERVER_IF, "if in server"),
        (Self::LIMIT_EXCEPT, "limit_except"),
        (Self::OTEL_EXPORTER, "otel_exporter"),
        (Self::CLUSTER, "cluster"),
    ];

    /// Whether it contains all of `other`.
    #[must_use]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// The names of the blocks, for documentation.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        let within = move |(one, _): &(Self, _)| self.contains(*one);
        Self::EACH.into_iter().filter(within).map(|(_, name)| name)
    }
}

/// How many arguments a directive takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Args {
    /// The fewest.
    pub min: usize,
    /// The most.
    pub max: usize,
}

impl Args {
    /// None at all.
    pub const NONE: Self = Self { min: 0, max: 0 };
    /// One.
    pub const ONE: Self = Self { min: 1, max: 1 };
    /// Two.
    pub const TWO: Self = Self { min: 2, max: 2 };

    /// From `min` to `max`.
    #[must_use]
    pub const fn between(min: usize, max: usize) -> Self {
        Self { min, max }
    }

    /// At least `min`.
    #[must_use]
    pub const fn at_least(min: usize) -> Self {
        Self { min, max: usize::MAX }
    }
}

/// How an inner block inherits an outer block's value, and the meaning of a second one in a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inheritance {
    /// The innermost value applies; a second one in a block is an error.
    Value,
    /// The first one in a block drops the whole outer list; further ones append.
    List,
    /// Those of outer blocks hold as well, and come first.
    Added,
    /// It applies to its block only; the reader defines a second one.
    Own,
}

/// A place in the structure being built.
pub(crate) type DirectiveSlot<T> = fn(&mut ConfReader) -> &mut T;

/// The way to read the arguments.
#[derive(Clone, Copy)]
pub(crate) enum Parse {
    /// `on` or `off`.
    Flag(DirectiveSlot<bool>),
    /// A number within bounds.
    Number(DirectiveSlot<u32>, u32, u32),
    /// Bytes, with `k` or `m`.
    Size(DirectiveSlot<usize>),
    /// Bytes, with `k`, `m` or `g`.
    Offset(DirectiveSlot<u64>),
    /// A time in milliseconds.
    Millis(DirectiveSlot<Duration>),
    /// A time in whole seconds.
    Seconds(DirectiveSlot<Duration>),
    /// Number and size of buffers.
    Buffers(DirectiveSlot<(u32, usize)>),
    /// A function of its own.
    Words(fn(&mut ConfReader, &Node) -> ReadResult),
    /// A block whose contents are read after its siblings, so that it sees all of them.
    Block(fn(&mut ConfReader, &mut Node) -> ReadResult),
    /// A block that is a value itself.
    Leaf(fn(&mut ConfReader, &Node) -> ReadResult),
    /// Checked and without effect.
    Accepted(DirectiveForm),
}

/// The form of a value that has no effect.
#[derive(Clone, Copy, Debug)]
pub(crate) enum DirectiveForm {
    /// Anything.
    Any,
    /// `on` or `off`.
    Flag,
    /// A number.
    Number,
    /// Bytes, with `k` or `m`.
    Size,
    /// Bytes, with `k`, `m` or `g`.
    Offset,
    /// A time in milliseconds.
    Millis,
    /// One of these words.
    OneOf(&'static [&'static str]),
    /// The arguments that this function accepts.
    Check(fn(&mut ConfReader, &Node) -> ReadResult),
}

/// The default of a directive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unwritten {
    /// Not in the row; its place in the settings determines it, if it has one.
    Unsaid,
    /// The same as these arguments.
    Words(&'static str),
    /// A description.
    Described(&'static str),
}

/// How the sentence begins of a directive that is checked and changes nothing.
pub const WITHOUT_EFFECT: &str = "Without effect: ";

/// One row of the table.
#[derive(Clone, Copy)]
pub struct DirectiveSpec {
    /// Its name.
    pub name: &'static str,
    /// The contexts that allow it.
    pub contexts: Contexts,
    /// The number of its arguments.
    pub args: Args,
    /// How it is inherited.
    pub inherit: Inheritance,
    /// Its purpose, in one sentence.
    pub doc: &'static str,
    /// A line that works.
    pub example: &'static str,
    /// The first version that has it.
    pub since: &'static str,
    /// Its arguments, where they do not follow from the way to read them; see [`crate::reference`].
    pub(crate) syntax: Option<&'static str>,
    /// Its default.
    pub(crate) unwritten: Unwritten,
    pub(crate) parse: Parse,
}

impl std::fmt::Debug for DirectiveSpec {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.name)
    }
}

impl DirectiveSpec {
    const fn new(name: &'static str, contexts: Contexts, args: Args, parse: Parse) -> Self {
        let (doc, example, since) = ("", "", "0.1.0");
        let (inherit, syntax, unwritten) = (Inheritance::Value, None, Unwritten::Unsaid);
        Self { name, contexts, args, inherit, doc, example, since, syntax, unwritten, parse }
    }

    /// Sets the directive's purpose and a valid example.
    pub(crate) const fn doc(mut self, doc: &'static str, example: &'static str) -> Self {
        self.doc = doc;
        self.example = example;
        self
    }

    /// Sets the syntax of its arguments, placeholders in capitals.
    pub(crate) const fn takes(mut self, syntax: &'static str) -> Self {
        self.syntax = Some(syntax);
        self
    }

    /// Sets the arguments that equal the default; a test compares the two.
    pub(crate) const fn default(mut self, words: &'static str) -> Self {
        self.unwritten = Unwritten::Words(words);
        self
    }

    /// Describes the default, if no arguments equal it.
    pub(crate) const fn without(mut self, sentence: &'static str) -> Self {
        self.unwritten = Unwritten::Described(sentence);
        self
    }

    /// Whether it opens a block.
    #[must_use]
    pub const fn is_block(&self) -> bool {
        matches!(self.parse, Parse::Block(_) | Parse::Leaf(_))
    }

    /// Whether its block contains directives.
    #[must_use]
    pub fn holds_rows(&self) -> bool {
        match self.parse {
            Parse::Block(_) => true,
            Parse::Leaf(_) => {
                matches!(
                    self.name,
                    "upstream" | "php_pool" | "acme_issuer" | "otel_exporter" | "cluster"
                )
            }
            _ => false,
        }
    }

    /// Whether it is checked and otherwise ignored.
    #[must_use]
    pub fn has_no_effect(&self) -> bool {
        self.doc.starts_with(WITHOUT_EFFECT)
    }
}

/// The meaning of a name in a block.
#[derive(Debug)]
pub(crate) enum DirectiveMatch {
    /// This row; the number identifies it.
    Row(u16, &'static DirectiveSpec),
    /// Rows exist, but none for this block.
    Elsewhere,
    /// nginx has it, this server does not yet.
    Later,
    /// No row has it.
    Unknown,
}

/// All rows, as the reader knows them: nothing that reads a row depends on the files of features.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DirectiveTable {
    /// Finds the row for a name in a context.
    pub(crate) find: fn(&[u8], Contexts) -> DirectiveMatch,
    /// The known name nearest to a name, if it is near enough to be meant.
    pub(crate) suggest: fn(&[u8]) -> Option<&'static str>,
    /// Whether a row has no effect yet.
    pub(crate) is_unbuilt: fn(&DirectiveSpec) -> bool,
    /// Settles a block whose values are read, before its inner blocks inherit of it.
    pub(crate) settle: fn(&mut ConfReader),
}

/// A flag.
pub(crate) const fn flag(
    name: &'static str,
    contexts: Contexts,
    slot: fn(&mut ConfReader) -> &mut bool,
) -> DirectiveSpec {
    DirectiveSpec::new(name, contexts, Args::ONE, Parse::Flag(slot))
}

/// A number of any size.
pub(crate) const fn number(
    name: &'static str,
    contexts: Contexts,
    slot: fn(&mut ConfReader) -> &mut u32,
) -> DirectiveSpec {
    DirectiveSpec::new(name, contexts, Args::ONE, Parse::Number(slot, 0, u32::MAX))
}

/// A number that fits into one byte.
pub(crate) const fn byte(
    name: &'static str,
    contexts: Contexts,
    slot: fn(&mut ConfReader) -> &mut u32,
) -> DirectiveSpec {
    DirectiveSpec::new(name, contexts, Args::ONE, Parse::Number(slot, 0, 255))
}

/// A number of bytes in memory.
pub(crate) const fn size(
    name: &'static str,
    contexts: Contexts,
    slot: fn(&mut ConfReader) -> &mut usize,
) -> DirectiveSpec {
    DirectiveSpec::new(name, contexts, Args::ONE, Parse::Size(slot))
}

/// A number of bytes in a file or body.
pub(crate) const fn offset(
    name: &'static str,
    contexts: Contexts,
    slot: fn(&mut ConfReader) -> &mut u64,
) -> DirectiveSpec {
    DirectiveSpec::new(name, contexts, Args::ONE, Parse::Offset(slot))
}

/// A time with a resolution finer than a second.
pub(crate) const fn millis(
    name: &'static str,
    contexts: Contexts,
    slot: fn(&mut ConfReader) -> &mut Duration,
) -> DirectiveSpec {
    DirectiveSpec::new(name, contexts, Args::ONE, Parse::Millis(slot))
}

/// A time in whole seconds.
pub(crate) const fn seconds(
    name: &'static str,
    contexts: Contexts,
    slot: fn(&mut ConfReader) -> &mut Duration,
) -> DirectiveSpec {
    DirectiveSpec::new(name, contexts, Args::ONE, Parse::Seconds(slot))
}

/// Number and size of buffers.
pub(crate) const fn buffers(
    name: &'static str,
    contexts: Contexts,
    slot: fn(&mut ConfReader) -> &mut (u32, usize),
) -> DirectiveSpec {
    DirectiveSpec::new(name, contexts, Args::TWO, Parse::Buffers(slot))
}

/// A value with a reader of its own.
pub(crate) const fn value(
    name: &'static str,
    contexts: Contexts,
    args: Args,
    parse: fn(&mut ConfReader, &Node) -> ReadResult,
) -> DirectiveSpec {
    DirectiveSpec::new(name, contexts, args, Parse::Words(parse))
}

/// A directive that makes a list.
pub(crate) const fn list(
    name: &'static str,
    contexts: Contexts,
    args: Args,
    parse: fn(&mut ConfReader, &Node) -> ReadResult,
) -> DirectiveSpec {
    let mut row = DirectiveSpec::new(name, contexts, args, Parse::Words(parse));
    row.inherit = Inheritance::List;
    row
}

/// A directive that makes a list of what all blocks around it say as well.
pub(crate) const fn added(
    name: &'static str,
    contexts: Contexts,
    args: Args,
    parse: fn(&mut ConfReader, &Node) -> ReadResult,
) -> DirectiveSpec {
    let mut row = list(name, contexts, args, parse);
    row.inherit = Inheritance::Added;
    row
}

/// A directive that is never inherited.
pub(crate) const fn own(
    name: &'static str,
    contexts: Contexts,
    args: Args,
    parse: fn(&mut ConfReader, &Node) -> ReadResult,
) -> DirectiveSpec {
    let mut row = DirectiveSpec::new(name, contexts, args, Parse::Words(parse));
    row.inherit = Inheritance::Own;
    row
}

/// A block of directives.
pub(crate) const fn block(
    name: &'static str,
    contexts: Contexts,
    args: Args,
    parse: fn(&mut ConfReader, &mut Node) -> ReadResult,
) -> DirectiveSpec {
    let mut row = DirectiveSpec::new(name, contexts, args, Parse::Block(parse));
    row.inherit = Inheritance::Own;
    row
}

/// A block that is a value, not a scope.
pub(crate) const fn leaf(
    name: &'static str,
    contexts: Contexts,
    args: Args,
    inherit: Inheritance,
    parse: fn(&mut ConfReader, &Node) -> ReadResult,
) -> DirectiveSpec {
    let mut row = DirectiveSpec::new(name, contexts, args, Parse::Leaf(parse));
    row.inherit = inherit;
    row
}

/// A directive that is checked and has no effect.
pub(crate) const fn accepted(
    name: &'static str,
    contexts: Contexts,
    args: Args,
    form: DirectiveForm,
) -> DirectiveSpec {
    DirectiveSpec::new(name, contexts, args, Parse::Accepted(form))
}
