//! From the syntax tree to the model: walks the blocks and lets each row read its arguments.
//!
//! In each block values are read first and inner blocks afterwards, each starting from a copy of
//! the outer settings; so inheritance needs no second pass. Messages carry nginx's order and are
//! sorted at the end.

use std::collections::HashMap;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::ast::{DirectiveNode, Node, Tree};
use crate::defaults;
use crate::diagnostic::Diagnostic;
use crate::directive::{
    Contexts, DirectiveForm, DirectiveMatch, DirectiveSpec, DirectiveTable, Inheritance, Parse,
};
use crate::drafts::{CacheDraft, OriginDraft, TlsDraft};
use crate::findings::DiagnosticLog;
use crate::model::{
    CacheSettings, Config, DirectiveFamily, Events, Http, LocationSettings, LogLevel, Main,
    OriginSettings, PathBases, ServerId, ServerSettings, SourcePlace, WrittenLocation,
};
use crate::regex::{LetterCase, Regex};
use crate::source::LoadOptions;
use crate::value::{self, Unit};

mod http_draft;
mod scope;
mod words;

use words::check_form;

pub(crate) use http_draft::HttpDraft;
pub(crate) use scope::{BlockScope, RootWord};
pub(crate) use words::{
    DUPLICATE, INVALID, ReadFault, ReadResult, bounded, buffers, flag, invalid_parameter,
    invalid_value, show, size,
};

/// The state of reading.
#[derive(Debug)]
pub(crate) struct ConfReader {
    table: DirectiveTable,
    pub(crate) options: LoadOptions,
    /// The directory of the main file, for files that are relative to it.
    pub(crate) conf_dir: PathBuf,
    pub(crate) main: Main,
    pub(crate) events: Events,
    pub(crate) http: HttpDraft,
    pub(crate) scope: BlockScope,
    /// Whether the block had the directive being read before.
    pub(crate) again: bool,
    /// The family of its settings.
    pub(crate) family: DirectiveFamily,
    /// Modules and thread pools that were named.
    pub(crate) named: Vec<(&'static str, String)>,
    /// When the first block of modules' directives was opened.
    pub(crate) first_block: DirectiveNode,
    /// Thread pools that `aio` refers to, with their places.
    pub(crate) wanted_pools: Vec<(String, SourcePlace)>,
    pub(crate) has_events: bool,
    hosts: HashMap<String, Vec<IpAddr>>,
    files: Vec<Arc<str>>,
    pub(crate) diagnostics: DiagnosticLog,
    /// The order and place of the directive being read.
    at: (DirectiveNode, SourcePlace),
}

/// Reads a whole tree.
pub(crate) fn read(
    tree: &mut Tree,
    path: &Path,
    options: &LoadOptions,
    table: DirectiveTable,
) -> Option<Config> {
    let mut reader = ConfReader {
        conf_dir: path.parent().unwrap_or_else(|| Path::new("/")).to_owned(),
        first_block: first_block(&tree.nodes),
        hosts: std::mem::take(&mut tree.hosts),
        files: tree.names.clone(),
        diagnostics: DiagnosticLog::new(std::mem::take(&mut tree.diagnostics)),
        ..ConfReader::with_defaults(options, table)
    };
    let mut nodes = std::mem::take(&mut tree.nodes);
    reader.read_nodes(&mut nodes);
    reader.finish(tree)
}

fn first_block(nodes: &[Node]) -> DirectiveNode {
    nodes
        .iter()
        .find(|node| node.block.is_some())
        .map_or(DirectiveNode(u32::MAX), |node| node.order)
}

impl ConfReader {
    /// A reader with default settings.
    pub(crate) fn with_defaults(options: &LoadOptions, table: DirectiveTable) -> Self {
        let main = defaults::main(options);
        let settings = defaults::settings(options, &main);
        Self {
            table,
            scope: BlockScope::outermost(settings),
            options: options.clone(),
            conf_dir: PathBuf::new(),
            main,
            events: defaults::EVENTS,
            http: HttpDraft::default(),
            again: false,
            family: DirectiveFamily::Application,
            named: Vec::new(),
            first_block: DirectiveNode::default(),
            wanted_pools: Vec::new(),
            has_events: false,
            hosts: HashMap::new(),
            files: Vec::new(),
            diagnostics: DiagnosticLog::default(),
            at: (DirectiveNode::default(), SourcePlace::default()),
        }
    }

    /// The settings under construction, copied if shared.
    pub(crate) fn settings(&mut self) -> &mut LocationSettings {
        Arc::make_mut(&mut self.scope.settings)
    }

    /// The upstream settings under construction, of the family that the directive belongs to.
    pub(crate) fn origin(&mut self) -> &mut OriginSettings {
        let family = self.family;
        self.settings().origin_mut(family)
    }

    /// The block's directives about upstreams of that family.
    pub(crate) const fn origin_draft(&mut self) -> &mut OriginDraft {
        &mut self.scope.origins[self.family as usize]
    }

    /// The cache settings, under construction in the same way.
    pub(crate) fn cache(&mut self) -> &mut CacheSettings {
        let family = self.family;
        self.settings().cache_mut(family)
    }

    /// The block's directives about caches of that family.
    pub(crate) const fn cache_draft(&mut self) -> &mut CacheDraft {
        &mut self.scope.caches[self.family as usize]
    }

    /// The server settings under construction.
    pub(crate) fn server(&mut self) -> &mut ServerSettings {
        Arc::make_mut(&mut self.scope.server)
    }

    /// The TLS settings being made.
    pub(crate) fn tls(&mut self) -> &mut TlsDraft {
        Arc::make_mut(&mut self.scope.tls)
    }

    /// The id of the current server.
    pub(crate) const fn server_id(&self) -> ServerId {
        ServerId(self.http.servers.len() as u32)
    }

    /// The place of a node.
    pub(crate) fn place(&self, node: &Node) -> SourcePlace {
        SourcePlace { file: Arc::clone(&self.files[node.file as usize]), line: node.line }
    }

    /// The place of a block's end.
    pub(crate) fn closing_place(&self, node: &Node) -> SourcePlace {
        let line = node.block.as_ref().map_or(node.line, |block| block.closed_line);
        SourcePlace { line, ..self.place(node) }
    }

    /// A path below the prefix, unless it is absolute.
    pub(crate) fn below_prefix(&self, path: &[u8]) -> PathBuf {
        self.options.prefix.join(as_path(path))
    }

    /// A path relative to the main file, unless it is absolute.
    pub(crate) fn beside_conf(&self, path: &[u8]) -> PathBuf {
        self.conf_dir.join(as_path(path))
    }

    /// The addresses of a host: a literal address, or a name resolved while loading.
    pub(crate) fn addresses(&self, host: &str) -> Vec<IpAddr> {
        match value::numeric_host(host) {
            Some(ip) => vec![ip.into()],
            None => self.hosts.get(host).cloned().unwrap_or_default(),
        }
    }

    /// Compiles an expression, once for each text, and defines the variables of its named groups.
    pub(crate) fn regex(&mut self, source: &[u8], case: LetterCase) -> Result<Regex, ReadFault> {
        let key = (Box::from(source), case);
        if let Some(known) = self.http.regexes.get(&key) {
            return Ok(known.clone());
        }
        let regex = Regex::new(source, case).map_err(ReadFault::Text)?;
        let names: Vec<String> = regex.names().map(|(_, name)| name.to_owned()).collect();
        for name in names {
            self.define(&name)?;
        }
        self.http.regexes.insert(key, regex.clone());
        Ok(regex)
    }

    /// Records a warning about the current directive.
    pub(crate) fn warn(&mut self, message: String) {
        let (order, place) = self.at.clone();
        self.note(order, Diagnostic::new(LogLevel::Warn, message, Some(place)));
    }

    /// Records a warning about a node inside the current directive.
    pub(crate) fn warn_at(&mut self, node: &Node, message: String) {
        let place = self.place(node);
        self.note(node.order, Diagnostic::new(LogLevel::Warn, message, Some(place)));
    }

    /// Records a message that belongs to `order`.
    pub(crate) fn note(&mut self, order: DirectiveNode, diagnostic: Diagnostic) {
        self.diagnostics.note(order, diagnostic);
    }

    /// The order of the directive being read.
    pub(crate) const fn order(&self) -> DirectiveNode {
        self.at.0
    }

    /// Reads a block: values first, inner blocks afterwards. Each node is dropped once it has been
    /// read, so that the tree and the model of the whole configuration are never in memory at once.
    pub(crate) fn read_nodes(&mut self, nodes: &mut [Node]) {
        let mut blocks = Vec::new();
        for (at, node) in nodes.iter().enumerate() {
            let Some((number, row)) = self.check(node) else { continue };
            if let Parse::Block(parse) = row.parse {
                blocks.push((at, parse));
                continue;
            }
            self.again = self.scope.seen.insert(number);
            self.family = DirectiveFamily::of(row.name);
            if self.scope.context != Contexts::MAIN {
                let place = self.place(node);
                self.scope.written.push(WrittenLocation { name: row.name, place });
            }
            let parsed = self.apply(row, node);
            self.judge(node, parsed);
        }
        (self.table.settle)(self);
        for (at, parse) in blocks {
            let node = &mut nodes[at];
            self.at = (node.order, self.place(node));
            let parsed = parse(self, node);
            self.judge(node, parsed);
            node.block = None;
        }
    }

    fn refuses(&self, row: &DirectiveSpec) -> bool {
        !self.options.reads_unbuilt && (self.table.is_unbuilt)(row)
    }

    /// Finds the row of a node and checks its form, in nginx's order of checks.
    fn check(&mut self, node: &Node) -> Option<(u16, &'static DirectiveSpec)> {
        self.at = (node.order, self.place(node));
        // As in C, a name ends at a zero byte in messages.
        let name = show(node.name().split(|byte| *byte == 0).next().unwrap_or_default());
        let message = match (self.table.find)(node.name(), self.scope.context) {
            DirectiveMatch::Row(_, row) if self.refuses(row) => not_implemented(&name),
            DirectiveMatch::Row(number, row) => {
                if !row.is_block() && node.block.is_some() {
                    format!("directive \"{name}\" is not terminated by \";\"")
                } else if row.is_block() && node.block.is_none() {
                    format!("directive \"{name}\" has no opening \"{{\"")
                } else if !(row.args.min..=row.args.max).contains(&node.args_count()) {
                    format!("invalid number of arguments in \"{name}\" directive")
                } else {
                    return Some((number, row));
                }
            }
            DirectiveMatch::Elsewhere => format!("\"{name}\" directive is not allowed here"),
            DirectiveMatch::Later => not_implemented(&name),
            // A well-formed one has been handled by now.
            DirectiveMatch::Unknown if node.name() == b"include" && node.block.is_some() => {
                format!("directive \"{name}\" is not terminated by \";\"")
            }
            DirectiveMatch::Unknown if node.name() == b"include" => {
                format!("invalid number of arguments in \"{name}\" directive")
            }
            DirectiveMatch::Unknown => format!("unknown directive \"{name}\""),
        };
        let mut diagnostic = Diagnostic::new(LogLevel::Emerg, message, Some(self.at.1.clone()));
        if diagnostic.message.starts_with("unknown") {
            diagnostic.help =
                (self.table.suggest)(node.name()).map(|known| format!("did you mean \"{known}\"?"));
        }
        self.diagnostics.fail(node.order, diagnostic);
        None
    }

    fn apply(&mut self, row: &DirectiveSpec, node: &Node) -> ReadResult {
        if self.again && row.inherit == Inheritance::Value {
            return Err(DUPLICATE);
        }
        let word = node.arg(0);
        match row.parse {
            Parse::Flag(slot) => *slot(self) = flag(row.name, word)?,
            Parse::Number(slot, min, max) => *slot(self) = bounded(word, min, max)?,
            Parse::Size(slot) => *slot(self) = size(word)?,
            Parse::Offset(slot) => *slot(self) = value::offset(word).ok_or(INVALID)?,
            Parse::Millis(slot) => *slot(self) = value::time(word, Unit::Millis).ok_or(INVALID)?,
            Parse::Seconds(slot) => {
                *slot(self) = value::time(word, Unit::Seconds).ok_or(INVALID)?;
            }
            Parse::Buffers(slot) => *slot(self) = buffers(node)?,
            Parse::Words(parse) | Parse::Leaf(parse) => return parse(self, node),
            Parse::Accepted(DirectiveForm::Check(check)) => return check(self, node),
            Parse::Accepted(form) => return check_form(row.name, form, word),
            Parse::Block(_) => debug_assert!(false, "blocks are read after values"),
        }
        Ok(())
    }

    /// Turns a fault of `node` into a message.
    pub(crate) fn judge(&mut self, node: &Node, parsed: ReadResult) {
        let Err(fault) = parsed else { return };
        let place = Some(self.place(node));
        let diagnostic = match fault {
            ReadFault::Value(text) => {
                let message = format!("\"{}\" directive {text}", show(node.name()));
                Diagnostic::new(LogLevel::Emerg, message, place)
            }
            ReadFault::Text(message) => Diagnostic::new(LogLevel::Emerg, message, place),
        };
        self.diagnostics.fail(node.order, diagnostic);
    }

    /// Reads the contents of a block in a scope of its own and returns that scope.
    pub(crate) fn read_inner(&mut self, node: &mut Node, scope: BlockScope) -> BlockScope {
        let outer = std::mem::replace(&mut self.scope, scope);
        if let Some(block) = &mut node.block {
            self.read_nodes(&mut block.nodes);
        }
        self.at = (node.block.as_ref().map_or(node.order, |block| block.closed), self.place(node));
        std::mem::replace(&mut self.scope, outer)
    }

    /// The same for a block that stays unchanged.
    pub(crate) fn read_leaf(&mut self, node: &Node, scope: BlockScope) -> BlockScope {
        self.read_inner(&mut node.clone(), scope)
    }

    /// A scope for a block of `context` inside the current one.
    pub(crate) fn inner_scope(&self, context: Contexts) -> BlockScope {
        self.scope.inner(context)
    }

    /// Records that there is an `events` block.
    pub(crate) fn read_events(&mut self) -> ReadResult {
        if std::mem::replace(&mut self.has_events, true) { Err(DUPLICATE) } else { Ok(()) }
    }

    /// Assembles the model, sorts the messages, and decides whether there is a configuration.
    fn finish(mut self, tree: &mut Tree) -> Option<Config> {
        if !self.diagnostics.has_failed() {
            self.finish_http(tree.ended);
        }
        if !self.diagnostics.has_failed() {
            self.finish_main(tree.ended);
        }
        let failed = self.diagnostics.has_failed();
        tree.diagnostics = self.diagnostics.into_sorted();
        if failed {
            return None;
        }
        let mut draft = self.http;
        draft.locations.shrink_to_fit();
        draft.servers.shrink_to_fit();
        let definitions = (0..draft.named.len() as u16)
            .map(|id| draft.definitions.remove(&id).unwrap_or_default())
            .collect();
        let zones = draft.cache_zones.into_iter();
        let cache_zones =
            zones.map(|(_, zone)| zone.expect("a zone that nobody made is refused")).collect();
        let zones = draft.limit_zones.into_iter();
        let limit_zones =
            zones.map(|(_, zone)| zone.expect("a zone without size is refused")).collect();
        let bytes = |path: &Path| Arc::from(path.as_os_str().as_encoded_bytes());
        let bases = PathBases { prefix: bytes(&self.options.prefix), conf: bytes(&self.conf_dir) };
        let http = draft.settings.map(|settings| Http {
            settings,
            servers: draft.servers,
            locations: draft.locations,
            listens: draft.listens,
            log_formats: draft.log_formats,
            log_buffers: draft.log_buffers.into(),
            named: draft.named,
            definitions,
            redefined: draft.redefined,
            upstreams: draft.upstreams,
            php_pools: draft.php_pools,
            cache_zones,
            limit_zones,
            page_store: draft.page_store,
            temp_paths: draft.temp_paths,
            reads_offers: draft.reads_offers,
            written: draft.written,
            on_demand_vars: draft.on_demand_vars,
            bases,
            charsets: draft.charsets,
            geoip: draft.geoip,
            acme: draft.acme.conf,
            otel: draft.otel,
            cluster: draft.cluster,
        });
        Some(Config { main: self.main, events: self.events, http })
    }
}

fn not_implemented(name: &str) -> String {
    format!("\"{name}\" directive is not implemented yet")
}

fn as_path(bytes: &[u8]) -> &Path {
    use std::os::unix::ffi::OsStrExt as _;
    Path::new(std::ffi::OsStr::from_bytes(bytes))
}
