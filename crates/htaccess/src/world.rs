//! What an evaluation asks of who calls it, and what it knows of environment variables.
//!
//! The caller lends the request; nothing here looks at a disk or a clock. A question that the
//! caller cannot answer yet stops the evaluation, which is made again from its beginning.

use std::net::IpAddr;
use std::rc::Rc;
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

/// How a look ahead is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AheadKind {
    /// By the path of a URL: `-U`, `%{LA-U:…}`.
    Url,
    /// By a path on disk: `-F`, `%{LA-F:…}`.
    File,
}

/// What a request inside the server would come to before it is answered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ahead {
    /// Its status: 200 where it would be answered.
    pub status: u16,
    /// Its decoded path.
    pub uri: Vec<u8>,
    /// Where it leads on disk, or what rules made of that.
    pub file: Vec<u8>,
    /// Whether that is there.
    pub is_there: bool,
    /// What stands behind the file in the path.
    pub path_info: Vec<u8>,
    /// Its query.
    pub args: Vec<u8>,
    /// The user who may come in.
    pub user: Option<Vec<u8>>,
    /// Its environment.
    pub env: EnvTable,
}

impl Ahead {
    /// About how many bytes of memory it takes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let user = self.user.as_ref().map_or(0, Vec::capacity);
        let texts = [&self.uri, &self.file, &self.path_info, &self.args].map(Vec::capacity);
        texts.iter().sum::<usize>() + user + self.env.bytes() + size_of_val(self)
    }
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
    /// Looks ahead to what a request for `target` would come to; none where this one is itself such
    /// a look at the same path.
    ///
    /// # Errors
    ///
    /// [`Stop::Wait`] where the answer is not known yet.
    fn look_ahead(&mut self, kind: AheadKind, target: &[u8]) -> Result<Option<Rc<Ahead>>, Stop>;
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
    /// Where a rule looks ahead to: by a URL, and by a path on disk.
    pub(crate) ahead: [Vec<u8>; 2],
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
        let ahead = [Vec::new(), Vec::new()];
        Self { world, env, varies, filename: None, args: None, ahead, effort }
    }

    /// What a request for the path of the rule would come to.
    pub(crate) fn look_ahead(&mut self, kind: AheadKind) -> Option<Rc<Ahead>> {
        let target = match kind {
            AheadKind::Url => &self.ahead[0],
            AheadKind::File => &self.ahead[1],
        };
        // As in Apache, a path on disk that is none is taken for one of a URL.
        let kind = if target.is_empty() { AheadKind::Url } else { kind };
        let target = if target.is_empty() { &self.ahead[0] } else { target };
        if target.is_empty() {
            return None;
        }
        self.world.look_ahead(kind, target).unwrap_or_else(|stop| {
            self.effort.give_up(stop);
            None
        })
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
