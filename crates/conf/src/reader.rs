//! From the syntax tree to the model: walks the blocks and lets each row read its arguments.
//!
//! In each block values are read first and inner blocks afterwards, each starting from a copy of
//! the outer settings; so inheritance needs no second pass. Messages carry nginx's order and are
//! sorted at the end.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::ast::{DirectiveNode, Node, Tree};
use crate::defaults;
use crate::diagnostic::Diagnostic;
use crate::directive::{
    Contexts, DirectiveForm, DirectiveMatch, DirectiveSpec, DirectiveTable, Inheritance, Parse,
};
use crate::drafts::{
    AcmeDraft, AcmeDrafts, CacheDraft, GroupKey, HeldPath, LinkForms, ListenedParams, MapKeys,
    OriginDraft, SharedZone, TlsDraft,
};
use crate::findings::DiagnosticLog;
use crate::model::{
    AddHeader, CacheSettings, CacheZone, Charsets, Config, Definition, Events, Except, GeoIp,
    Handler, Http, LimitZone, Listen, ListenAddress, ListenTransport, LocationConf, LocationId,
    LocationSettings, LogBuffer, LogFormat, LogLevel, Looks, Main, Matcher, OriginSettings, Otel,
    PageStore, PathBases, PhpPool, RewriteOp, ServerConf, ServerId, ServerName, ServerSettings,
    SourcePlace, TryFiles, Upstream, UpstreamId, WrittenLocation,
};
use crate::regex::{LetterCase, Regex};
use crate::source::LoadOptions;
use crate::value::{self, Unit};
use crate::vars::Var;

/// Why a directive was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ReadFault {
    /// `"NAME" directive TEXT in FILE:LINE`
    Value(&'static str),
    /// `TEXT in FILE:LINE`
    Text(String),
}

/// Whether a directive was accepted.
pub(crate) type ReadResult = Result<(), ReadFault>;

/// `invalid value`, the message of most value readers.
pub(crate) const INVALID: ReadFault = ReadFault::Value("invalid value");
/// A duplicate in the same block.
pub(crate) const DUPLICATE: ReadFault = ReadFault::Value("is duplicate");

/// Bytes as messages show them.
pub(crate) fn show(bytes: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}

/// A message about an invalid argument.
pub(crate) fn invalid_parameter(word: &[u8]) -> ReadFault {
    ReadFault::Text(format!("invalid parameter \"{}\"", show(word)))
}

/// A message about an unknown value.
pub(crate) fn invalid_value(word: &[u8]) -> ReadFault {
    ReadFault::Text(format!("invalid value \"{}\"", show(word)))
}

/// The family of upstreams that the directive being read belongs to, where several have the same
/// one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DirectiveFamily {
    /// `fastcgi_*`, and everything else.
    Application,
    /// `proxy_*`
    Proxy,
    /// `memcached_*`, which has no caches.
    Memcached,
}

impl DirectiveFamily {
    pub(crate) fn of(name: &str) -> Self {
        match name {
            _ if name.starts_with("proxy_") => Self::Proxy,
            _ if name.starts_with("memcached_") => Self::Memcached,
            _ => Self::Application,
        }
    }
}

/// The two directives that share one slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RootWord {
    /// `root`
    Root,
    /// `alias`
    Alias,
}

impl RootWord {
    /// The directive's name.
    pub(crate) const fn text(self) -> &'static str {
        match self {
            Self::Root => "root",
            Self::Alias => "alias",
        }
    }
}

/// The state of the block being read.
#[derive(Clone, Debug)]
pub(crate) struct BlockScope {
    pub(crate) context: Contexts,
    pub(crate) settings: Arc<LocationSettings>,
    pub(crate) server: Arc<ServerSettings>,
    pub(crate) tls: Arc<TlsDraft>,
    pub(crate) http2: bool,
    pub(crate) http3: bool,
    pub(crate) names: Vec<ServerName>,
    pub(crate) primary_name: Option<Arc<str>>,
    pub(crate) has_listen: bool,
    pub(crate) matcher: Matcher,
    pub(crate) name: Arc<[u8]>,
    pub(crate) internal: bool,
    pub(crate) handler: Handler,
    /// Instructions of the rewrite phase, with their order numbers.
    pub(crate) rewrite: Vec<(DirectiveNode, SourcePlace, RewriteOp)>,
    /// Its directives, and their places.
    pub(crate) written: Vec<WrittenLocation>,
    /// Its `add_header`s and `add_trailer`s.
    pub(crate) headers: Vec<AddHeader>,
    pub(crate) trailers: Vec<AddHeader>,
    /// Whether this block has `allow` or `deny`.
    pub(crate) has_access: bool,
    /// Whether this block has `valid_referers`, and whether with expressions.
    pub(crate) has_referers: bool,
    pub(crate) has_referer_regexes: bool,
    /// The forms of secure links in this block.
    pub(crate) links: LinkForms,
    pub(crate) try_files: Option<Arc<TryFiles>>,
    pub(crate) except: Option<Except>,
    pub(crate) nested: Vec<LocationId>,
    /// Which of them occupies the one slot of this block.
    pub(crate) root_word: Option<RootWord>,
    /// Whether this block has `access_log off`.
    pub(crate) access_log_off: bool,
    /// Upstream buffer sizes that were written, not derived.
    pub(crate) origin: OriginDraft,
    /// The same for `proxy_*`.
    pub(crate) proxied: OriginDraft,
    /// The same for `memcached_*`.
    pub(crate) memcached: OriginDraft,
    /// Where its certificates come from.
    pub(crate) acme: AcmeDraft,
    /// The cache directives of the block.
    pub(crate) cache: CacheDraft,
    /// The same for `proxy_*`.
    pub(crate) proxied_cache: CacheDraft,
    /// Directives that are sets, with the words that they had in this block.
    pub(crate) said: HashSet<Vec<u8>>,
    /// Hosts of `valid_referers` in this block.
    pub(crate) referers: MapKeys,
    /// Rows used in this block, by number.
    seen: Seen,
}

/// A set of row numbers.
#[derive(Clone, Debug, Default)]
struct Seen([u64; 12]);

impl Seen {
    /// Adds a number; returns whether it was in already.
    fn insert(&mut self, number: u16) -> bool {
        let (word, bit) = (usize::from(number / 64), 1_u64 << (number % 64));
        debug_assert!(word < self.0.len(), "the set holds every row");
        let Some(word) = self.0.get_mut(word) else { return false };
        let was = *word & bit != 0;
        *word |= bit;
        was
    }
}

impl BlockScope {
    fn outermost(settings: LocationSettings) -> Self {
        Self {
            context: Contexts::MAIN,
            settings: Arc::new(settings),
            server: Arc::new(defaults::server()),
            tls: Arc::new(TlsDraft {
                conf: defaults::tls(),
                certificates: Vec::new(),
                keys: Vec::new(),
            }),
            http2: false,
            http3: true,
            names: Vec::new(),
            primary_name: None,
            has_listen: false,
            matcher: Matcher::Root,
            name: Arc::from(&b""[..]),
            internal: false,
            handler: Handler::Static,
            rewrite: Vec::new(),
            written: Vec::new(),
            headers: Vec::new(),
            trailers: Vec::new(),
            has_access: false,
            has_referers: false,
            has_referer_regexes: false,
            links: LinkForms::default(),
            try_files: None,
            except: None,
            nested: Vec::new(),
            root_word: None,
            access_log_off: false,
            origin: OriginDraft::default(),
            proxied: OriginDraft::default(),
            memcached: OriginDraft::default(),
            acme: AcmeDraft::default(),
            cache: CacheDraft::default(),
            proxied_cache: CacheDraft::default(),
            said: HashSet::new(),
            referers: MapKeys::default(),
            seen: Seen::default(),
        }
    }

    /// A block inside this one: it inherits the inheritable settings and has none of its own.
    fn inner(&self, context: Contexts) -> Self {
        Self {
            context,
            settings: Arc::clone(&self.settings),
            server: Arc::clone(&self.server),
            tls: Arc::clone(&self.tls),
            http2: self.http2,
            http3: self.http3,
            names: Vec::new(),
            primary_name: None,
            has_listen: false,
            matcher: Matcher::Root,
            name: Arc::clone(&self.name),
            internal: self.internal,
            handler: Handler::Static,
            rewrite: Vec::new(),
            written: Vec::new(),
            headers: Vec::new(),
            trailers: Vec::new(),
            has_access: false,
            has_referers: false,
            has_referer_regexes: false,
            links: LinkForms::default(),
            try_files: None,
            except: None,
            nested: Vec::new(),
            root_word: None,
            access_log_off: false,
            origin: self.origin,
            proxied: self.proxied,
            memcached: self.memcached,
            acme: AcmeDraft { wanted: None, auto: self.acme.auto.clone() },
            cache: CacheDraft::default(),
            proxied_cache: CacheDraft::default(),
            said: HashSet::new(),
            referers: MapKeys::default(),
            seen: Seen::default(),
        }
    }
}

/// The `http` block as it grows.
#[derive(Debug, Default)]
pub(crate) struct HttpDraft {
    pub(crate) servers: Vec<ServerConf>,
    pub(crate) locations: Vec<LocationConf>,
    pub(crate) listens: Vec<Listen>,
    pub(crate) listen_index: HashMap<(ListenTransport, ListenAddress), usize>,
    /// The parameters given for each of `listens`, beside its state.
    pub(crate) listened: Vec<ListenedParams>,
    pub(crate) log_formats: Vec<LogFormat>,
    /// The index of each format, and when it was read: only later directives see it.
    pub(crate) format_index: HashMap<String, (u32, DirectiveNode)>,
    /// The index of `combined_json`, once it was asked for.
    pub(crate) json_format: Option<u32>,
    /// Access logs with buffers.
    pub(crate) log_buffers: Vec<LogBuffer>,
    /// Names of variables that only captures can define, in order of first use or definition.
    pub(crate) named: Vec<String>,
    pub(crate) named_index: HashMap<String, u16>,
    /// When each was used first.
    pub(crate) named_first: Vec<DirectiveNode>,
    pub(crate) defined: HashSet<u16>,
    /// The definitions of variables by `set`, `map` and others.
    pub(crate) definitions: HashMap<u16, Definition>,
    /// Redefined variables of the server.
    pub(crate) redefined: Vec<(Var, u16)>,
    /// Whether `$ssl_ciphers` or `$ssl_curves` is used anywhere.
    pub(crate) reads_offers: bool,
    /// When and where the block's `}` was read: checks of the whole block are reported there.
    pub(crate) closed: DirectiveNode,
    pub(crate) closed_at: SourcePlace,
    pub(crate) settings: Option<Arc<LocationSettings>>,
    pub(crate) upstreams: Vec<Upstream>,
    /// Groups by identity.
    pub(crate) upstream_index: HashMap<GroupKey, UpstreamId>,
    pub(crate) php_pools: Vec<PhpPool>,
    /// Whether the current `upstream` block has a balancing method.
    pub(crate) balance_chosen: bool,
    /// Errors of groups, to be reported when the `http` block ends.
    pub(crate) upstream_faults: Vec<(DirectiveNode, String, Option<SourcePlace>)>,
    /// Errors in parameters, to be reported when the `http` block ends.
    pub(crate) param_faults: Vec<String>,
    /// Cache zones by name; `None` where only the name is known yet.
    pub(crate) cache_zones: Vec<(Box<[u8]>, Option<CacheZone>)>,
    /// Limit zones by name; `None` where only the name is known yet.
    pub(crate) limit_zones: Vec<(Box<[u8]>, Option<LimitZone>)>,
    pub(crate) page_store: PageStore,
    /// Directories for temporary files that were named.
    pub(crate) temp_paths: Vec<PathBuf>,
    /// Which variables that need a system call are used.
    pub(crate) looks: Looks,
    pub(crate) charsets: Charsets,
    pub(crate) geoip: GeoIp,
    pub(crate) acme: AcmeDrafts,
    pub(crate) otel: Otel,
    /// The directives of the block itself.
    pub(crate) written: Vec<WrittenLocation>,
    /// Sizes of shared memory zones by name; 0 while none was written.
    pub(crate) zones: HashMap<Box<[u8]>, SharedZone>,
    /// Directories that the server stores files in.
    pub(crate) held_paths: HashMap<PathBuf, HeldPath>,
    regexes: HashMap<(Box<[u8]>, LetterCase), Regex>,
    /// Recent upstream settings: most servers have the same ones.
    pub(crate) origins: Vec<Arc<OriginSettings>>,
}

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
        let settings = self.settings();
        Arc::make_mut(match family {
            DirectiveFamily::Application => &mut settings.origin,
            DirectiveFamily::Proxy => &mut settings.proxied,
            DirectiveFamily::Memcached => &mut settings.memcached,
        })
    }

    /// The block's directives about upstreams of that family.
    pub(crate) const fn origin_draft(&mut self) -> &mut OriginDraft {
        match self.family {
            DirectiveFamily::Application => &mut self.scope.origin,
            DirectiveFamily::Proxy => &mut self.scope.proxied,
            DirectiveFamily::Memcached => &mut self.scope.memcached,
        }
    }

    /// The cache settings, under construction in the same way.
    pub(crate) fn cache(&mut self) -> &mut CacheSettings {
        let family = self.family;
        let settings = self.settings();
        Arc::make_mut(match family {
            DirectiveFamily::Application | DirectiveFamily::Memcached => &mut settings.cache,
            DirectiveFamily::Proxy => &mut settings.proxied_cache,
        })
    }

    /// The block's directives about caches of that family.
    pub(crate) const fn cache_draft(&mut self) -> &mut CacheDraft {
        match self.family {
            DirectiveFamily::Application | DirectiveFamily::Memcached => &mut self.scope.cache,
            DirectiveFamily::Proxy => &mut self.scope.proxied_cache,
        }
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
            looks: draft.looks,
            bases,
            charsets: draft.charsets,
            geoip: draft.geoip,
            acme: draft.acme.conf,
            otel: draft.otel,
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

/// `on` or `off`, in any case.
pub(crate) fn flag(name: &str, word: &[u8]) -> Result<bool, ReadFault> {
    if word.eq_ignore_ascii_case(b"on") {
        return Ok(true);
    }
    if word.eq_ignore_ascii_case(b"off") {
        return Ok(false);
    }
    let word = show(word);
    let rest = "it must be \"on\" or \"off\"";
    Err(ReadFault::Text(format!("invalid value \"{word}\" in \"{name}\" directive, {rest}")))
}

/// A number between bounds.
pub(crate) fn bounded(word: &[u8], min: u32, max: u32) -> Result<u32, ReadFault> {
    let number = value::number(word).ok_or(ReadFault::Value("invalid number"))?;
    match u32::try_from(number) {
        Ok(number) if (min..=max).contains(&number) => Ok(number),
        _ if max == u32::MAX && min > 0 => {
            Err(ReadFault::Text(format!("value must be equal to or greater than {min}")))
        }
        // Too large a number counts as the largest.
        _ if max == u32::MAX => Ok(u32::MAX),
        _ => Err(ReadFault::Text(format!("value must be between {min} and {max}"))),
    }
}

/// Bytes in memory.
pub(crate) fn size(word: &[u8]) -> Result<usize, ReadFault> {
    value::size(word).and_then(|size| usize::try_from(size).ok()).ok_or(INVALID)
}

/// Number and size of buffers.
pub(crate) fn buffers(node: &Node) -> Result<(u32, usize), ReadFault> {
    let count = value::number(node.arg(0));
    let size = size(node.arg(1))?;
    match count {
        // Too large a count counts as the largest.
        Some(count) if count > 0 && size > 0 => {
            Ok((u32::try_from(count).unwrap_or(u32::MAX), size))
        }
        _ => Err(INVALID),
    }
}

fn check_form(name: &str, form: DirectiveForm, word: &[u8]) -> ReadResult {
    let fits = match form {
        DirectiveForm::Any | DirectiveForm::Check(_) => true,
        DirectiveForm::Flag => return flag(name, word).map(|_| ()),
        DirectiveForm::Number => return bounded(word, 0, u32::MAX).map(|_| ()),
        DirectiveForm::Size => value::size(word).is_some(),
        DirectiveForm::Offset => value::offset(word).is_some(),
        DirectiveForm::Millis => value::time(word, Unit::Millis).is_some(),
        DirectiveForm::OneOf(words) => {
            let known = words.iter().any(|known| word.eq_ignore_ascii_case(known.as_bytes()));
            return if known { Ok(()) } else { Err(invalid_value(word)) };
        }
    };
    if fits { Ok(()) } else { Err(INVALID) }
}
