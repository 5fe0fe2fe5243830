//! The instructions of the rewrite phase, compiled.

use bolide_conf::model::{FileTest, IfTest as ConfTest, Return, RewriteOp, RewriteRule, SetTarget};
use bolide_conf::regex::Regex;
use bolide_conf::vars::{Template, Var};

use crate::route::LocationIndex;
use bolide_patterns::CapturePattern;

/// The position in the rewrite phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RewriteCursor {
    /// The block whose instructions run.
    pub(super) program: LocationIndex,
    /// The next instruction.
    pub(super) op: u32,
}

/// A compiled instruction.
#[derive(Debug)]
pub(crate) enum Op {
    Rewrite(Box<CompiledRewrite>),
    Return(Return),
    Set { target: SetTarget, value: Template },
    If { test: CompiledTest, inner: usize, location: Option<LocationIndex> },
    Break,
}

/// A compiled `rewrite`.
#[derive(Debug)]
pub(crate) struct CompiledRewrite {
    pub(crate) pattern: CapturePattern,
    pub(crate) conf: RewriteRule,
}

/// A compiled condition of an `if`.
#[derive(Debug)]
pub(crate) enum CompiledTest {
    True(Var),
    Equal(Var, Template, Wanted),
    Match(Var, CapturePattern, Wanted),
    Is(FileTest, Template, Wanted),
}

/// Whether a test is negated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    Yes,
    No,
}

impl Wanted {
    pub(super) const fn meets(self, holds: bool) -> bool {
        matches!(self, Self::Yes) == holds
    }
}

impl Op {
    /// Compiles an instruction: named groups of expressions refer to their places in `names`.
    pub(crate) fn new(op: &RewriteOp, names: &[String]) -> Self {
        match op {
            RewriteOp::Rewrite(conf) => Self::Rewrite(Box::new(CompiledRewrite {
                pattern: CapturePattern::new(&conf.regex, names),
                conf: RewriteRule::clone(conf),
            })),
            RewriteOp::Return(returned) => Self::Return(returned.clone()),
            RewriteOp::Set { target, value } => Self::Set { target: *target, value: value.clone() },
            RewriteOp::If { test, inner, location } => Self::If {
                test: CompiledTest::new(test, names),
                inner: usize::from(*inner),
                location: location.map(|id| id.0),
            },
            RewriteOp::Break => Self::Break,
        }
    }
}

impl CompiledTest {
    fn new(test: &ConfTest, names: &[String]) -> Self {
        let bind = |regex: &Regex| CapturePattern::new(regex, names);
        match test {
            ConfTest::True(var) => Self::True(var.clone()),
            ConfTest::Equal(var, text) => Self::Equal(var.clone(), text.clone(), Wanted::Yes),
            ConfTest::Differs(var, text) => Self::Equal(var.clone(), text.clone(), Wanted::No),
            ConfTest::Matches(var, regex) => Self::Match(var.clone(), bind(regex), Wanted::Yes),
            ConfTest::Mismatches(var, regex) => Self::Match(var.clone(), bind(regex), Wanted::No),
            ConfTest::Is(test, path) => Self::Is(*test, path.clone(), Wanted::Yes),
            ConfTest::IsNot(test, path) => Self::Is(*test, path.clone(), Wanted::No),
        }
    }
}
