//! The syntax tree: directives with their words, blocks and places, with includes spliced in.
//!
//! The only directive it knows is `include`. The order number of a node says when nginx would have
//! reached it, so that later passes may visit nodes in another order and still report in nginx's.

use std::collections::{HashMap, HashSet};
use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bolide_base::errno;

use crate::diagnostic::Diagnostic;
use crate::lex::{LexError, Lexeme, Lexer, Terminator, TextOrigin, Word};
use crate::model::{LogLevel, SourcePlace};
use crate::source::{ConfSource, glob, is_pattern};

/// Blocks inside blocks.
const DEPTH_MAX: usize = 64;
/// Files that include files.
const INCLUDES_MAX: usize = 32;

/// The position of a node or message in the order of reading.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct DirectiveNode(pub u32);

/// One directive as written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Its name and arguments; there is at least the name.
    pub words: Vec<Word>,
    /// The contents between braces, if any.
    pub block: Option<Block>,
    /// Index of its file in [`Tree::names`].
    pub file: u32,
    /// The line of its `;` or `{`; 0 on the command line.
    pub line: u32,
    /// When it was read.
    pub order: DirectiveNode,
}

/// The inside of a block.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Block {
    /// Its directives.
    pub nodes: Vec<Node>,
    /// When its `}` was read.
    pub closed: DirectiveNode,
    /// The line of its `}`.
    pub closed_line: u32,
}

impl Node {
    /// The directive's name.
    #[must_use]
    pub fn name(&self) -> &[u8] {
        &self.words[0].text
    }

    /// The arguments.
    pub fn args(&self) -> impl ExactSizeIterator<Item = &[u8]> + Clone {
        self.words[1..].iter().map(|word| &*word.text)
    }

    /// The argument at `index`, from 0; empty if there are fewer.
    #[must_use]
    pub fn arg(&self, index: usize) -> &[u8] {
        self.words.get(index + 1).map_or(&b""[..], |word| &word.text)
    }

    /// How many arguments there are.
    #[must_use]
    pub fn args_count(&self) -> usize {
        self.words.len() - 1
    }
}

/// A configuration as written.
#[derive(Clone, Debug, Default)]
pub struct Tree {
    /// Directives of the command line and the main file.
    pub nodes: Vec<Node>,
    /// Names of files, as messages give them.
    pub names: Vec<Arc<str>>,
    /// Files in the order they were read, each once.
    pub files: Vec<(PathBuf, Vec<u8>)>,
    /// The errors found.
    pub diagnostics: Vec<(DirectiveNode, Diagnostic)>,
    /// Addresses of host names in `listen`, `resolver`, `syslog:` words and upstream servers.
    pub hosts: HashMap<String, Vec<IpAddr>>,
    /// When the last byte was read.
    pub ended: DirectiveNode,
}

/// Reading stopped; the diagnostics say why.
#[derive(Debug)]
struct Stopped;

struct Loader<'a, S> {
    source: &'a S,
    /// The directory of the main file: the base of `include`.
    base: PathBuf,
    tree: Tree,
    /// Paths in `tree.files`.
    known: HashSet<PathBuf>,
    clock: u32,
    depth: usize,
}

/// Reads the command line's directives and the main file with everything it includes.
pub fn load<S: ConfSource>(source: &S, path: &Path, globals: &str) -> Tree {
    let base = path.parent().unwrap_or_else(|| Path::new("/")).to_owned();
    let mut loader =
        Loader { source, base, tree: Tree::default(), known: HashSet::new(), clock: 0, depth: 0 };
    let loaded = loader.load_main(path, globals);
    loader.tree.ended = loader.tick();
    let mut tree = loader.tree;
    debug_assert!(loaded.is_ok() || tree.diagnostics.iter().any(|(_, at)| at.is_fatal()));
    let mut hosts = HashMap::new();
    collect_hosts(source, &tree.nodes, &mut hosts);
    tree.hosts = hosts;
    tree
}

impl<S: ConfSource> Loader<'_, S> {
    const fn tick(&mut self) -> DirectiveNode {
        self.clock += 1;
        DirectiveNode(self.clock)
    }

    fn load_main(&mut self, path: &Path, globals: &str) -> Result<(), Stopped> {
        let mut nodes = Vec::new();
        let file = self.name_file("command line");
        let parsed = self.parse(globals.as_bytes(), TextOrigin::Parameter, file, 0, &mut nodes);
        let parsed = parsed.and_then(|()| self.load_file(path, None, 0, &mut nodes));
        self.tree.nodes = nodes;
        parsed
    }

    fn name_file(&mut self, name: &str) -> u32 {
        self.tree.names.push(name.into());
        self.tree.names.len() as u32 - 1
    }

    fn load_file(
        &mut self,
        path: &Path,
        from: Option<SourcePlace>,
        includes: usize,
        nodes: &mut Vec<Node>,
    ) -> Result<(), Stopped> {
        let shown = path.to_string_lossy().into_owned();
        if includes > INCLUDES_MAX {
            let message = format!("open() \"{shown}\" failed (24: Too many open files)");
            return Err(self.stop(message, from));
        }
        let bytes = match self.source.read(path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::IsADirectory => {
                let message = format!("pread() \"{shown}\" failed ({})", system_text(&error));
                let order = self.tick();
                let diagnostic = Diagnostic::new(LogLevel::Crit, message, None);
                self.tree.diagnostics.push((order, diagnostic));
                return Err(Stopped);
            }
            Err(error) => {
                // A missing include hides nothing else: the rest of the file is still checked.
                let message = format!("open() \"{shown}\" failed ({})", system_text(&error));
                let is_main = from.is_none();
                let stopped = self.stop(message, from);
                return if is_main { Err(stopped) } else { Ok(()) };
            }
        };
        let file = self.name_file(&shown);
        // Files are listed as they are opened, each once, even if included several times.
        let slot = self.known.insert(path.to_owned()).then(|| {
            self.tree.files.push((path.to_owned(), Vec::new()));
            self.tree.files.len() - 1
        });
        let parsed = self.parse(&bytes, TextOrigin::File, file, includes, nodes);
        if let Some(slot) = slot {
            self.tree.files[slot].1 = bytes;
        }
        parsed
    }

    fn parse(
        &mut self,
        bytes: &[u8],
        origin: TextOrigin,
        file: u32,
        includes: usize,
        nodes: &mut Vec<Node>,
    ) -> Result<(), Stopped> {
        let mut lexer = Lexer::new(bytes, origin);
        self.parse_block(&mut lexer, file, origin, includes, 0, nodes).map(|_| ())
    }

    /// Reads up to the end of the block, or of the file at `level` 0; returns the order number of
    /// the end.
    fn parse_block(
        &mut self,
        lexer: &mut Lexer<'_>,
        file: u32,
        origin: TextOrigin,
        includes: usize,
        level: usize,
        nodes: &mut Vec<Node>,
    ) -> Result<DirectiveNode, Stopped> {
        loop {
            let lexeme = match lexer.next_lexeme() {
                Ok(lexeme) => lexeme,
                Err(error) => return Err(self.stop_lexing(error, file, origin)),
            };
            let line = if origin == TextOrigin::Parameter { 0 } else { lexer.line() };
            let (words, end) = match lexeme {
                Lexeme::Directive(words, end) => (words, end),
                Lexeme::Close if level > 0 => return Ok(self.tick()),
                Lexeme::End if level == 0 => return Ok(self.tick()),
                Lexeme::Close => {
                    let place = Some(self.place(file, line));
                    return Err(self.stop("unexpected \"}\"".to_owned(), place));
                }
                Lexeme::End => {
                    let message = "unexpected end of file, expecting \"}\"".to_owned();
                    let place = Some(self.place(file, line));
                    return Err(self.stop(message, place));
                }
            };
            let order = self.tick();
            let mut node = Node { words, block: None, file, line, order };
            if end == Terminator::Semicolon {
                if node.name() == b"include" && node.args_count() == 1 {
                    self.include(&node, includes, nodes)?;
                } else {
                    nodes.push(node);
                }
                continue;
            }
            if origin == TextOrigin::Parameter {
                let place = Some(self.place(file, line));
                let message = "block directives are not supported in -g option";
                return Err(self.stop(message.to_owned(), place));
            }
            if self.depth >= DEPTH_MAX {
                let place = Some(self.place(file, line));
                return Err(self.stop("too many nested blocks".to_owned(), place));
            }
            self.depth += 1;
            let mut inner = Vec::new();
            let closed = self.parse_block(lexer, file, origin, includes, level + 1, &mut inner);
            self.depth -= 1;
            let stopped = closed.is_err();
            let closed = closed.unwrap_or(DirectiveNode(self.clock));
            let closed_line = if origin == TextOrigin::Parameter { 0 } else { lexer.line() };
            node.block = Some(Block { nodes: inner, closed, closed_line });
            nodes.push(node);
            if stopped {
                return Err(Stopped);
            }
        }
    }

    fn include(
        &mut self,
        node: &Node,
        includes: usize,
        nodes: &mut Vec<Node>,
    ) -> Result<(), Stopped> {
        use std::os::unix::ffi::OsStrExt as _;
        let written = Path::new(std::ffi::OsStr::from_bytes(node.arg(0)));
        let path = self.base.join(written);
        let place = self.place(node.file, node.line);
        if !is_pattern(node.arg(0)) {
            return self.load_file(&path, Some(place), includes + 1, nodes);
        }
        for path in glob(self.source, &path) {
            self.load_file(&path, Some(place.clone()), includes + 1, nodes)?;
        }
        Ok(())
    }

    fn place(&self, file: u32, line: u32) -> SourcePlace {
        SourcePlace { file: Arc::clone(&self.tree.names[file as usize]), line }
    }

    fn stop_lexing(&mut self, error: LexError, file: u32, origin: TextOrigin) -> Stopped {
        let line = if origin == TextOrigin::Parameter { 0 } else { error.line };
        let place = self.place(file, line);
        self.stop(error.message, Some(place))
    }

    fn stop(&mut self, message: String, place: Option<SourcePlace>) -> Stopped {
        let order = self.tick();
        self.tree.diagnostics.push((order, Diagnostic::new(LogLevel::Emerg, message, place)));
        Stopped
    }
}

/// The system's error number and text, in nginx's form.
fn system_text(error: &io::Error) -> String {
    if error.raw_os_error().is_some() {
        return errno::describe(error);
    }
    match error.kind() {
        io::ErrorKind::NotFound => errno::reason(errno::ENOENT),
        io::ErrorKind::PermissionDenied => errno::reason(errno::EACCES),
        io::ErrorKind::IsADirectory => errno::reason(errno::EISDIR),
        _ => error.to_string(),
    }
}

/// Looks up every host name once, so that later passes need no outside information.
fn collect_hosts(
    source: &impl ConfSource,
    nodes: &[Node],
    hosts: &mut HashMap<String, Vec<IpAddr>>,
) {
    for node in nodes {
        let mut look_up = |host: &str| {
            if !hosts.contains_key(host) {
                hosts.insert(host.to_owned(), source.resolve(host));
            }
        };
        match node.name() {
            b"listen" | b"set_real_ip_from" | b"debug_connection" => {
                host_of(node.arg(0)).into_iter().for_each(&mut look_up);
            }
            b"server" if node.block.is_none() && node.args().all(|arg| arg != b"resolve") => {
                host_of(node.arg(0)).into_iter().for_each(&mut look_up);
            }
            // Without a port it is the name of a group.
            b"fastcgi_pass" | b"lsapi_pass" | b"scgi_pass" if node.arg(0).contains(&b':') => {
                host_of(node.arg(0)).into_iter().for_each(&mut look_up);
            }
            b"uwsgi_pass" => {
                let url = crate::uwsgi_url::read(node.arg(0));
                let is_address = url.written.contains(&b':');
                host_of(&url.written).filter(|_| is_address).into_iter().for_each(&mut look_up);
            }
            b"grpc_pass" => {
                let url = crate::grpc_url::read(node.arg(0));
                let is_address = url.written.contains(&b':');
                host_of(&url.written).filter(|_| is_address).into_iter().for_each(&mut look_up);
            }
            b"proxy_pass" => {
                let cut = crate::proxy_url::parse(node.arg(0)).ok();
                cut.and_then(|cut| host_of(cut.origin)).into_iter().for_each(&mut look_up);
            }
            b"resolver" => node.args().filter_map(host_of).for_each(&mut look_up),
            b"access_log" | b"error_log" => {
                hosts_of_syslog(node.arg(0)).for_each(&mut look_up);
            }
            _ => {}
        }
        if let Some(block) = &node.block {
            collect_hosts(source, &block.nodes, hosts);
        }
    }
}

/// The host of an address, when it is a name to look up.
fn host_of(arg: &[u8]) -> Option<&str> {
    let text = std::str::from_utf8(arg).ok()?;
    if text.starts_with("unix:") || text.starts_with('[') || text.contains(['/', '=']) {
        return None;
    }
    let host = text.split_once(':').map_or(text, |(host, _)| host);
    is_name(host).then_some(host)
}

fn hosts_of_syslog(word: &[u8]) -> impl Iterator<Item = &str> {
    let text = std::str::from_utf8(word).ok().and_then(|text| text.strip_prefix("syslog:"));
    let servers = text.unwrap_or("").split(',').filter_map(|part| part.strip_prefix("server="));
    servers.filter_map(|server| host_of(server.as_bytes()))
}

/// Whether it is a host name: not empty, a wildcard, a number or an address.
fn is_name(host: &str) -> bool {
    !host.is_empty()
        && !host.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-')
        && !host.contains(['*', '$'])
        && host.parse::<IpAddr>().is_err()
        && crate::value::numeric_host(host).is_none()
}
