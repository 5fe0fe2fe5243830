//! nginx configuration: from text to a typed model, with nginx's own error texts.
//!
//! Text → words ([`lex`]) → directives ([`ast`]) → meaning ([`model`]). It reads no file itself
//! (the binary implements [`ConfSource`]) and decides nothing about requests. A directive is a row
//! in the file of its feature below `directives/`; [`directives::all`] lists them.

use std::path::{Path, PathBuf};

pub mod ast;
mod auto_https;
mod choice;
mod defaults;
pub mod diagnostic;
pub mod directive;
pub mod directives;
mod drafts;
mod findings;
mod finish;
pub mod grpc_url;
mod identifiers;
pub mod lex;
pub mod local_address;
pub mod model;
pub mod outline;
pub mod proxy_url;
mod reader;
pub mod reference;
pub mod regex;
pub mod source;
pub mod survey;
mod template;
mod unguarded;
pub mod uwsgi_url;
pub mod value;
pub mod vars;

pub use diagnostic::Diagnostic;
pub use directives::{PeerAddressText, cut_address};
pub use model::{Config, LogLevel, SourcePlace};
pub use outline::{Outline, OutlineChange, OutlineChangeKind};
pub use regex::{LetterCase, Regex};
pub use source::{ConfSource, LoadOptions};
pub use vars::{Template, TemplatePart, Var};

/// The result of reading a configuration.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// The configuration, unless a message is fatal.
    pub config: Option<Config>,
    /// Messages in the order in which nginx would come to them.
    pub diagnostics: Vec<Diagnostic>,
    /// Files in the order they were read, each once, for `-T`.
    pub files: Vec<(PathBuf, Vec<u8>)>,
    /// What it consists of, for [`changes`].
    pub outline: Outline,
}

/// Reads the configuration at `path`, relative to the prefix.
pub fn parse(source: &impl ConfSource, path: &Path, options: &LoadOptions) -> Loaded {
    let path = options.prefix.join(path);
    let tree = ast::load(source, &path, &options.globals);
    read(tree, &path, options)
}

/// What the configuration at `path` has that the one of `outline` has not, and the other way round;
/// it need not be valid.
pub fn changes(
    source: &impl ConfSource,
    path: &Path,
    options: &LoadOptions,
    outline: &Outline,
) -> Vec<OutlineChange> {
    outline.changes(&ast::load(source, &options.prefix.join(path), &options.globals))
}

/// Reads the tree loaded from `path`.
fn read(mut tree: ast::Tree, path: &Path, options: &LoadOptions) -> Loaded {
    let outline = Outline::new(&tree);
    let config = reader::read(&mut tree, path, options, directives::TABLE);
    let diagnostics = tree.diagnostics.into_iter().map(|(_, diagnostic)| diagnostic).collect();
    Loaded { config, diagnostics, files: tree.files, outline }
}
