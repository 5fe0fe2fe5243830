//! Apache's expressions (`<If>`, `expr=`, `Require expr`): the model. Functions that read file
//! contents or make subrequests are not supported; they are refused when the file is parsed.

mod parse;
mod run;

use crate::access::AddressRange;
use crate::pattern::Pattern;
use crate::variable::Variable;
use crate::world::PathTest;

pub(crate) use parse::{condition, condition_of, text_of, tls_condition};
pub(crate) use run::leading_number;

/// What an expression is evaluated for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ExprPlace {
    /// A request, before there is a response.
    Request,
    /// The response: its status, type and fields are known.
    Response,
}

/// How a wildcard pattern is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GlobKind {
    /// `-strmatch`
    Exact,
    /// `-strcmatch`
    AnyCase,
    /// `-fnmatch`: wildcards do not match slashes.
    Path,
}

/// A condition.
#[derive(Clone, Debug)]
pub(crate) enum Expr {
    True,
    False,
    Not(Box<Self>),
    And(Vec<Self>),
    Or(Vec<Self>),
    Text(ExprWord, TextOrder, ExprWord),
    /// As above, but compared by length first.
    Sized(ExprWord, TextOrder, ExprWord),
    Number(ExprWord, TextOrder, ExprWord),
    Match {
        word: ExprWord,
        pattern: Pattern,
        negated: bool,
    },
    In(ExprWord, Vec<ExprWord>),
    Address(ExprWord, AddressRange),
    Client(AddressRange),
    Glob {
        word: ExprWord,
        glob: ExprWord,
        kind: GlobKind,
    },
    Is(WordTest, ExprWord),
}

impl Expr {
    /// Whether it tests a path.
    pub(crate) fn asks_disk(&self) -> bool {
        match self {
            Self::Not(inner) => inner.asks_disk(),
            Self::And(all) | Self::Or(all) => all.iter().any(Self::asks_disk),
            Self::Is(WordTest::File(_), _) => true,
            _ => false,
        }
    }
}

/// A comparison of two values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TextOrder {
    Equal,
    Other,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

impl TextOrder {
    pub(crate) const fn holds(self, order: std::cmp::Ordering) -> bool {
        match self {
            Self::Equal => order.is_eq(),
            Self::Other => order.is_ne(),
            Self::Less => order.is_lt(),
            Self::LessOrEqual => order.is_le(),
            Self::Greater => order.is_gt(),
            Self::GreaterOrEqual => order.is_ge(),
        }
    }
}

/// A test of one value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WordTest {
    /// `-z`
    Empty,
    /// `-n`
    NotEmpty,
    /// `-T`
    Truth,
    /// Of a path.
    File(PathTest),
}

/// A value.
#[derive(Clone, Debug)]
pub(crate) enum ExprWord {
    Fixed(Box<[u8]>),
    Of(Variable),
    /// `%{CONTENT_TYPE}` of the response.
    ContentType,
    /// `%{REQUEST_STATUS}`
    Status,
    Group(u8),
    Join(Vec<Self>),
    Call(TextFunction, Box<Self>),
}

/// A function of one value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TextFunction {
    /// `req`, `http`: a request header; the second one is for `Vary`.
    Header,
    HeaderUnvaried,
    /// `resp`: a field of the response.
    ResponseField,
    /// `reqenv`, `env`
    Env,
    ToLower,
    ToUpper,
    Escape,
    Unescape,
}
