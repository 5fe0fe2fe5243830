//! What an evaluation asks of who calls it, and what it knows of environment variables.
//!
//! The caller lends the request; nothing here looks at a disk or a clock. A question that the
//! caller cannot answer yet stops the evaluation, which is made again from its beginning.

use std::net::IpAddr;
use std::sync::Arc;

use crate::effort::Effort;
use crate::env_table::EnvTable;
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
        self.effort.spend_entries(self.varies.len());
        // Whatever is kept is kept by host.
        if *name != *b"host" && !self.varies.contains(&name) {
            self.varies.push(name);
        }
    }
}
