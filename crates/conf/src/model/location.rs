//! Locations: matching, contents, handlers.

use std::sync::Arc;

use super::{LocationSettings, Pass, RewriteOp, SourcePlace};
use crate::regex::Regex;
use crate::vars::Template;

/// An index into [`super::Http::locations`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LocationId(pub u32);

impl LocationId {
    /// The position in the arena.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// A `location`, or a server block in the role of one (for requests that match no location).
#[derive(Clone, Debug)]
pub struct LocationConf {
    /// When it applies.
    pub matcher: Matcher,
    /// The name as messages show it: prefix, expression or `@name`; empty for a server block.
    pub name: Arc<[u8]>,
    /// Locations inside it, in file order; for a server block all its outer ones.
    pub nested: Vec<LocationId>,
    /// `internal`: direct requests get 404.
    pub internal: bool,
    /// The inherited and resolved settings.
    pub settings: Arc<LocationSettings>,
    /// The rewrite phase; never inherited. That of a server block runs before the search for a
    /// location.
    pub rewrite: Vec<RewriteOp>,
    /// The content handler.
    pub handler: Handler,
    /// `try_files`; never inherited.
    pub try_files: Option<Arc<TryFiles>>,
    /// Where it was written.
    pub place: SourcePlace,
    /// Where each of `rewrite` was written.
    pub rewrite_places: Vec<SourcePlace>,
    /// The directives of the block itself, without inner blocks.
    pub written: Vec<WrittenLocation>,
    /// `limit_except`; never inherited.
    pub except: Option<Except>,
}

impl LocationConf {
    /// The place of the directive `name` in the block itself; of the last one, if there are more.
    #[must_use]
    pub fn place_of(&self, name: &str) -> Option<&SourcePlace> {
        place_of(&self.written, name)
    }
}

/// A `limit_except`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Except {
    /// The methods that stay at the location.
    pub methods: Vec<&'static str>,
    /// The location of requests with other methods.
    pub location: LocationId,
}

/// A directive and its place.
#[derive(Clone, Debug)]
pub struct WrittenLocation {
    /// Its name.
    pub name: &'static str,
    /// Its place.
    pub place: SourcePlace,
}

/// The place of the last directive `name` of a block.
#[must_use]
pub fn place_of<'a>(written: &'a [WrittenLocation], name: &str) -> Option<&'a SourcePlace> {
    written.iter().rev().find(|one| one.name == name).map(|one| &one.place)
}

/// When a location applies.
#[derive(Clone, Debug, PartialEq)]
pub enum Matcher {
    /// A server block itself.
    Root,
    /// An `if` in a location, reached when it is true, or a `limit_except`.
    If,
    /// `= /path`
    Exact(Arc<[u8]>),
    /// `/path`; with `no_regex` (`^~`) it stops the regular expressions of its level.
    Prefix {
        /// The prefix of the path.
        path: Arc<[u8]>,
        /// Whether `^~` was written.
        no_regex: bool,
    },
    /// `~ re`, `~* re`
    Regex(Regex),
    /// `@name`, with the `@`.
    Named(Arc<[u8]>),
}

/// What a probe asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HealthProbe {
    /// Whether the process answers.
    Alive,
    /// Whether it wants new requests.
    Ready,
}

/// The handler of a request that arrived at a location.
#[derive(Clone, Debug, PartialEq)]
pub enum Handler {
    /// Files: index, autoindex, static.
    Static,
    /// An upstream. A nested location without a handler of its own does not inherit it.
    Pass(Pass),
    /// `bolide_admin`: the server's status, for the clients that `allow` names.
    Admin,
    /// `bolide_console`
    Console,
    /// `empty_gif`
    EmptyGif,
    /// `flv`
    Flv,
    /// `health`
    Health(HealthProbe),
    /// `metrics`
    Metrics,
    /// `mp4`
    Mp4,
    /// `stub_status`
    StubStatus,
}

/// A `return`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Return {
    /// The status; 444 closes the connection without a response.
    pub status: u16,
    /// Its body.
    pub body: ReturnBody,
}

/// The body of a `return`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReturnBody {
    /// The status's own page.
    None,
    /// This text, with the location's default type.
    Text(Template),
    /// A redirect to this address; statuses 301, 302, 303, 307 and 308.
    Location(Template),
}

/// A `try_files`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TryFiles {
    /// The candidates, in order, below root or alias.
    pub files: Vec<TryFile>,
    /// The fallback when none exists.
    pub fallback: Fallback,
}

/// One candidate of a [`TryFiles`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TryFile {
    /// The path, without the trailing slash of a directory test.
    pub path: Template,
    /// Whether it must be a directory (written with a trailing `/`) instead of a file.
    pub directory: bool,
}

/// The last argument of `try_files`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fallback {
    /// `=404`
    Status(u16),
    /// `@name`, with the `@`: that location with the same path; 500 if it does not exist.
    Named(Arc<[u8]>),
    /// A path and arguments: an internal redirect.
    Uri(Template),
}

impl LocationConf {
    /// Whether the rewrite phase has something to do: instructions, fields of requests to edit, or
    /// a span to decide about.
    #[must_use]
    pub fn enters_rewrite(&self) -> bool {
        let settings = &self.settings;
        !self.rewrite.is_empty() || !settings.input_edits.is_empty() || settings.otel.is_used()
    }
}
