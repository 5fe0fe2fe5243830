//! The rewrite phase: `rewrite`, `set`, `if`, `break`, `return` of one block, in file order.

use super::{LocationId, Return};
use crate::regex::Regex;
use crate::vars::{Template, Var};

/// One instruction. The instructions inside an `if` follow it directly.
#[derive(Clone, Debug, PartialEq)]
pub enum RewriteOp {
    /// `rewrite`
    Rewrite(Box<RewriteRule>),
    /// `return`
    Return(Return),
    /// `set`
    Set {
        /// Which variable.
        target: SetTarget,
        /// The new value.
        value: Template,
    },
    /// `if`
    If {
        /// The condition.
        test: IfTest,
        /// How many of the following instructions are inside it.
        inner: u16,
        /// The settings that apply from here on when it is true; `None` in a server block.
        location: Option<LocationId>,
    },
    /// `break`
    Break,
}

/// A `rewrite`.
#[derive(Clone, Debug, PartialEq)]
pub struct RewriteRule {
    /// The expression for the path.
    pub regex: Regex,
    /// The new path; for redirects the whole new address.
    pub path: Template,
    /// The text after the first literal `?` of a new path.
    pub args: Option<Template>,
    /// Whether a `?` was written in the replacement.
    pub has_mark: bool,
    /// Whether the arguments so far are appended: no `?` at the end.
    pub keeps_args: bool,
    /// The next step.
    pub then: Then,
}

/// The effect of a `rewrite` that matched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    /// The next instruction runs.
    Continue,
    /// `last`: the phase ends, and the search for a location starts again.
    Last,
    /// `break`: the phase ends.
    Break,
    /// `redirect`, `permanent`, or an address with a scheme.
    Redirect(u16),
}

/// The target of `set`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetTarget {
    /// A variable of the configuration: an index into [`super::Http::named`].
    Named(u16),
    /// `$args`
    Args,
    /// `$limit_rate`
    LimitRate,
}

/// The condition of an `if`.
#[derive(Clone, Debug, PartialEq)]
pub enum IfTest {
    /// `$x`: neither empty nor `0`.
    True(Var),
    /// `$x = text`
    Equal(Var, Template),
    /// `$x != text`
    Differs(Var, Template),
    /// `$x ~ re`, `$x ~* re`
    Matches(Var, Regex),
    /// `$x !~ re`, `$x !~* re`
    Mismatches(Var, Regex),
    /// `-f path` and similar tests.
    Is(FileTest, Template),
    /// `!-f path` and similar tests.
    IsNot(FileTest, Template),
}

/// The test of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileTest {
    /// `-f`: a regular file.
    File,
    /// `-d`: a directory.
    Directory,
    /// `-e`: anything.
    Exists,
    /// `-x`: the owner may execute it.
    Executable,
}
