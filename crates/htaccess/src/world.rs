//! The interface of an evaluation to its caller, and to the environment variables.
//!
//! The caller lends the request; nothing here accesses a disk or a clock. A question that the
//! caller cannot answer yet stops the evaluation, which is repeated from its beginning.

use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;

use bolide_http::FieldMap;

use crate::effort::Effort;
use crate::env_table::EnvTable;
use crate::pattern::Pattern;
use crate::variable::RequestVariable;

/// Why an evaluation ends without a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The caller has to look something up first.
    Wait,
    /// The match of this expression took too many steps.
    GaveUp(Box<[u8]>),
    /// The request is refused with this status, for this reason.
    Refused(u16, &'static str),
    /// As [`Self::Refused`], by the rule at this place: a directory, if known, and a line.
    RefusedAt(u16, &'static str, Box<[u8]>, u32),
}

impl Stop {
    /// The same with its place, if it is a refusal without one.
    pub(crate) fn at(self, directory: &[u8], line: u32) -> Self {
        match self {
            Self::Refused(status, why) => Self::RefusedAt(status, why, directory.into(), line),
            other => other,
        }
    }
}

/// A test of a path.
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

/// The kind of a look ahead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AheadKind {
    /// By the path of a URL: `-U`, `%{LA-U:…}`.
    Url,
    /// By a path on disk: `-F`, `%{LA-F:…}`.
    File,
}

/// The result that an internal request would have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ahead {
    /// Its status: 200 if it would be served.
    pub status: u16,
    /// Its decoded path.
    pub uri: Vec<u8>,
    /// Its path on disk, or the result of rules.
    pub file: Vec<u8>,
    /// Whether that file exists.
    pub is_there: bool,
    /// The path after the file.
    pub path_info: Vec<u8>,
    /// Its query.
    pub args: Vec<u8>,
    /// The authenticated user.
    pub user: Option<Vec<u8>>,
    /// Its environment.
    pub env: EnvTable,
}

impl Ahead {
    /// The approximate memory in bytes.
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
    /// A field, by its name in lower case.
    Field(&'a [u8]),
}

/// The request from the view of an evaluation.
pub trait Surroundings {
    /// Appends a variable's value.
    fn variable(&self, which: RequestVariable, out: &mut Vec<u8>);
    /// Appends the value of a request field; false if there is none.
    fn header(&self, name: &[u8], out: &mut Vec<u8>) -> bool;
    /// Whether `pattern` matches a text, which is empty if absent. The result depends on nothing
    /// else of the text.
    ///
    /// # Errors
    ///
    /// The match exceeded its limit.
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
    /// Calls `visit` with all request fields.
    fn each_header(&self, visit: &mut dyn FnMut(&[u8], &[u8]));
    /// Tests a path.
    ///
    /// # Errors
    ///
    /// [`Stop::Wait`] if the answer is not known yet.
    fn test(&mut self, test: PathTest, path: &[u8]) -> Result<bool, Stop>;
    /// Looks ahead to the result of a request for `target`; none if this request is itself such a
    /// look at the same path.
    ///
    /// # Errors
    ///
    /// [`Stop::Wait`] if the answer is not known yet.
    fn look_ahead(&mut self, kind: AheadKind, target: &[u8]) -> Result<Option<Rc<Ahead>>, Stop>;
    /// Appends the value of the map called `name` for `key`; false if it has none.
    ///
    /// # Errors
    ///
    /// There is no such map, or [`Stop::Wait`] if its file is not known yet.
    fn map(&mut self, name: &[u8], key: &[u8], out: &mut Vec<u8>) -> Result<bool, Stop>;
    /// The client's address; none over a unix socket.
    fn client(&self) -> Option<IpAddr>;
    /// The authenticated user.
    fn user(&self) -> Option<&[u8]>;
    /// Whether the user belongs to this group.
    fn is_in_group(&self, group: &[u8]) -> bool;
}

/// One evaluation: the request, the environment, and the request fields that it depends on.
pub struct Evaluation<'a> {
    /// The request.
    pub world: &'a mut dyn Surroundings,
    /// Its environment variables.
    pub env: &'a mut EnvTable,
    /// Names of request fields that the result depends on, in lower case.
    pub varies: &'a mut Vec<Box<[u8]>>,
    /// The path on disk as rewritten.
    pub(crate) filename: Option<Vec<u8>>,
    /// The query as rewritten.
    pub(crate) args: Option<Vec<u8>>,
    /// The targets of a rule's looks ahead: a URL, and a path on disk.
    pub(crate) ahead: [Vec<u8>; 2],
    /// The response, if it is evaluated for one.
    pub(crate) response: Option<ResponseView>,
    /// The remaining work.
    pub(crate) effort: &'a Effort,
}

/// What expressions may ask about a response.
#[derive(Clone, Debug, Default)]
pub(crate) struct ResponseView {
    /// Its status.
    pub(crate) status: u16,
    /// Its `Content-Type`.
    pub(crate) media_type: Vec<u8>,
    /// Its fields, with the edits so far.
    pub(crate) fields: FieldMap,
}

impl std::fmt::Debug for Evaluation<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Evaluation").field("env", &self.env).finish_non_exhaustive()
    }
}

impl<'a> Evaluation<'a> {
    /// A new evaluation; others may share `effort`.
    pub fn new(
        world: &'a mut dyn Surroundings,
        env: &'a mut EnvTable,
        varies: &'a mut Vec<Box<[u8]>>,
        effort: &'a Effort,
    ) -> Self {
        let ahead = [Vec::new(), Vec::new()];
        Self { world, env, varies, filename: None, args: None, ahead, response: None, effort }
    }

    /// The result of a request for the rule's path.
    pub(crate) fn look_ahead(&mut self, kind: AheadKind) -> Option<Rc<Ahead>> {
        let target = match kind {
            AheadKind::Url => &self.ahead[0],
            AheadKind::File => &self.ahead[1],
        };
        // As in Apache, an empty path on disk is replaced by a URL.
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

    /// The current value of a variable that rules have rewritten.
    pub(crate) fn made(&self, which: RequestVariable) -> Option<&[u8]> {
        match which {
            RequestVariable::RequestFilename => self.filename.as_deref(),
            RequestVariable::QueryString => self.args.as_deref(),
            _ => None,
        }
    }

    /// Records that the result depends on a request field.
    pub(crate) fn vary_by(&mut self, name: &[u8]) {
        let name = name.to_ascii_lowercase().into_boxed_slice();
        self.effort.spend_entries(self.varies.len());
        // Stored responses are always separated by host.
        if *name != *b"host" && !self.varies.contains(&name) {
            self.varies.push(name);
        }
    }
}
