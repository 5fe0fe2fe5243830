//! What an evaluation asks of who calls it, and what it knows of environment variables.
//!
//! The caller lends the request; nothing here looks at a disk or a clock. A question that the
//! caller cannot answer yet stops the evaluation, which is made again from its beginning.

use std::net::IpAddr;
use std::sync::Arc;

use crate::cache::{CacheOrders, CacheVariable};
use crate::effort::Effort;
use crate::pattern::Pattern;
use crate::variable::RequestVariable;

/// Why an evaluation ends without a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The caller has to find something out first.
    Wait,
    /// This expression took too many steps.
    GaveUp(Box<[u8]>),
    /// The request is refused with this status, for this reason.
    Refused(u16, &'static str),
    /// The same by the rule at this place: a directory, where it is known, and a line.
    RefusedAt(u16, &'static str, Box<[u8]>, u32),
}

impl Stop {
    /// The same with its place, where it is a refusal without one.
    pub(crate) fn at(self, directory: &[u8], line: u32) -> Self {
        match self {
            Self::Refused(status, why) => Self::RefusedAt(status, why, directory.into(), line),
            other => other,
        }
    }
}

/// What can be asked about a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathTest {
    /// `-d`
    Directory,
    /// `-f`
    File,
    /// `-s`
    FileWithContent,
    /// `-l`, `-h`, `-L`
    Link,
    /// `-x`
    Executable,
    /// `-e`
    Anything,
}

/// A text of the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked<'a> {
    /// A variable.
    Variable(RequestVariable),
    /// A header, by its name in lower case.
    Field(&'a [u8]),
}

/// The request, as an evaluation sees it.
pub trait Surroundings {
    /// Appends a variable's value.
    fn variable(&self, which: RequestVariable, out: &mut Vec<u8>);
    /// Appends a request header's value; false if there is none.
    fn header(&self, name: &[u8], out: &mut Vec<u8>) -> bool;
    /// Whether `pattern` matches a text, which is empty where there is none. The
    /// result depends on no more of the text.
    ///
    /// # Errors
    ///
    /// The match gave up.
    fn matches(
        &self,
        asked: Asked<'_>,
        pattern: &Arc<Pattern>,
        effort: &Effort,
    ) -> Result<bool, Stop> {
        let mut text = Vec::new();
        match asked {
            Asked::Variable(which) => self.variable(which, &mut text),
            Asked::Field(name) => _ = self.header(name, &mut text),
        }
        effort.spend(text.len());
        pattern.is_match(&text, effort)
    }
    /// Shows all request headers.
    fn each_header(&self, visit: &mut dyn FnMut(&[u8], &[u8]));
    /// Answers a question about a path.
    ///
    /// # Errors
    ///
    /// [`Stop::Wait`] where the answer is not known yet.
    fn test(&mut self, test: PathTest, path: &[u8]) -> Result<bool, Stop>;
    /// Appends what the map called `name` has for `key`; false if it has nothing.
    ///
    /// # Errors
    ///
    /// There is no such map, or [`Stop::Wait`] where its file is not known yet.
    fn map(&mut self, name: &[u8], key: &[u8], out: &mut Vec<u8>) -> Result<bool, Stop>;
    /// Who asks; none over a unix socket.
    fn client(&self) -> Option<IpAddr>;
    /// The name of the user, if one has proved to be it.
    fn user(&self) -> Option<&[u8]>;
    /// Whether the user is one of this group's.
    fn is_in_group(&self, group: &[u8]) -> bool;
}

/// Environment variables of a request, in the order of their first assignment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EnvTable {
    all: Vec<(Box<[u8]>, Vec<u8>)>,
    /// What some of them say to the page cache.
    cache: CacheOrders,
}

impl EnvTable {
    /// The value of `name`.
    #[must_use]
    pub fn of(&self, name: &[u8]) -> Option<&[u8]> {
        let own = self.all.iter().find(|(known, _)| **known == *name);
        own.map(|(_, value)| &value[..]).or_else(|| self.cache.variable(name))
    }

    /// What is said to the page cache.
    #[must_use]
    pub const fn cache(&self) -> &CacheOrders {
        &self.cache
    }

    /// The same, where directives say it.
    pub(crate) const fn cache_mut(&mut self) -> &mut CacheOrders {
        &mut self.cache
    }

    /// Another round inside the server begins with it.
    pub fn enter_round(&mut self) {
        self.cache.enter_round();
    }

    /// Gives `name` a value. What is said to the page cache adds up there.
    pub fn set(&mut self, name: &[u8], value: &[u8]) {
        if let Some(variable) = CacheVariable::parse(name) {
            self.cache.hear(variable, value);
            if matches!(variable, CacheVariable::Value | CacheVariable::CookieList) {
                return;
            }
        }
        match self.all.iter_mut().find(|(known, _)| **known == *name) {
            Some((_, old)) => {
                old.clear();
                old.extend_from_slice(value);
            }
            None => self.all.push((name.into(), value.to_vec())),
        }
    }

    /// Takes `name` away.
    pub fn unset(&mut self, name: &[u8]) {
        if CacheVariable::parse(name) == Some(CacheVariable::Value) {
            self.cache.hear(CacheVariable::Value, b"");
        }
        self.all.retain(|(known, _)| **known != *name);
    }

    /// All of them but for those that speak to the page cache.
    pub fn told(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.iter().filter(|(name, _)| CacheVariable::parse(name).is_none())
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.all.iter().map(|(name, value)| (&name[..], &value[..]))
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.all.is_empty() && self.cache.is_empty()
    }

    /// About how many bytes of memory they take.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let each = |one: &(Box<[u8]>, Vec<u8>)| one.0.len() + one.1.capacity() + size_of_val(one);
        self.all.iter().map(each).sum::<usize>() + self.cache.bytes()
    }

    /// Forgets all.
    pub fn clear(&mut self) {
        *self = Self::default();
    }

    /// What an internal redirect makes of them: `REDIRECT_` stands before each name.
    #[must_use]
    pub fn redirected(&self) -> Self {
        let all = self.told();
        let all = all.map(|(name, value)| ([b"REDIRECT_", name].concat().into(), value.to_vec()));
        Self { all: all.collect(), cache: self.cache.clone() }
    }
}

/// One evaluation: who lends the request, the environment, and which headers it looked at.
pub struct Evaluation<'a> {
    /// The request.
    pub world: &'a mut dyn Surroundings,
    /// Its environment variables.
    pub env: &'a mut EnvTable,
    /// Names of request headers that the result depends on, in lower case.
    pub varies: &'a mut Vec<Box<[u8]>>,
    /// The path on disk as rules made it.
    pub(crate) filename: Option<Vec<u8>>,
    /// The query as rules made it.
    pub(crate) args: Option<Vec<u8>>,
    /// What it may still do.
    pub(crate) effort: &'a Effort,
}

impl std::fmt::Debug for Evaluation<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Evaluation").field("env", &self.env).finish_non_exhaustive()
    }
}

impl<'a> Evaluation<'a> {
    /// One that begins; others may share `effort`.
    pub fn new(
        world: &'a mut dyn Surroundings,
        env: &'a mut EnvTable,
        varies: &'a mut Vec<Box<[u8]>>,
        effort: &'a Effort,
    ) -> Self {
        Self { world, env, varies, filename: None, args: None, effort }
    }

    /// What rules made of a variable so far.
    pub(crate) fn made(&self, which: RequestVariable) -> Option<&[u8]> {
        match which {
            RequestVariable::RequestFilename => self.filename.as_deref(),
            RequestVariable::QueryString => self.args.as_deref(),
            _ => None,
        }
    }

    /// Notes that the result depends on a header.
    pub(crate) fn vary_by(&mut self, name: &[u8]) {
        let name = name.to_ascii_lowercase().into_boxed_slice();
        // Whatever is kept is kept by host.
        if *name != *b"host" && !self.varies.contains(&name) {
            self.varies.push(name);
        }
    }
}
