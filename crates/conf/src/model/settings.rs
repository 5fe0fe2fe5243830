//! The settings that `http`, `server` and `location` blocks inherit from one another, resolved.
//!
//! Rare groups are behind an [`Arc`], so that a block which changes one value copies little.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use bolide_htaccess::ApacheNames;

use super::apache::{ApacheDirectory, ApacheHandler, ApacheProxy};
use super::families::OtherFamilies;
use super::resolver::NameServers;
use super::{
    AccessLogs, AccessRule, AuthRequest, BodyFiles, Brotli, Browsers, CacheSettings, DavSettings,
    ErrorLog, Filters, Gzip, HeaderEdits, LimitRules, LogFileCache, Mp4Settings, OriginSettings,
    OtelSettings, RealIp, Referers, SecureLink, TempPath, TypeSet, UserId, Zstd,
};
use crate::vars::Template;

/// File extension in lower case, to content type.
pub type TypesMap = HashMap<Box<[u8]>, Arc<[u8]>>;

/// The settings of a location, inheritance resolved.
#[derive(Clone, Debug, PartialEq)]
pub struct LocationSettings {
    /// `root` or `alias`: one slot.
    pub root: DocumentRoot,
    /// `index`: names tried in order; one that begins with `/` is an absolute URI.
    pub index: Arc<Vec<Template>>,
    /// `default_type`
    pub default_type: Arc<[u8]>,
    /// `types`: file extension in lower case, to content type.
    pub types: Arc<TypesMap>,
    /// `error_page`: one entry per status.
    pub error_pages: Arc<Vec<ErrorPage>>,
    /// `post_action`: a path or a name, as written, for the internal request after the response.
    pub post_action: Option<Arc<[u8]>>,
    /// `mirror`: paths as written.
    pub mirrors: Arc<[Arc<[u8]>]>,
    /// `mirror_request_body`
    pub mirror_request_body: bool,
    /// `recursive_error_pages`
    pub recursive_error_pages: bool,
    /// `add_header`
    pub add_headers: Arc<Vec<AddHeader>>,
    /// `add_header_inherit`
    pub add_header_inherit: ListInherit,
    /// `add_trailer`
    pub add_trailers: Arc<Vec<AddHeader>>,
    /// `add_trailer_inherit`
    pub add_trailer_inherit: ListInherit,
    /// `more_set_headers`, `more_clear_headers`, in file order, outer blocks first.
    pub edits: Arc<Vec<HeaderEdits>>,
    /// `more_set_input_headers`, `more_clear_input_headers`, in the same order.
    pub input_edits: Arc<Vec<HeaderEdits>>,
    /// `expires`
    pub expires: Arc<Expires>,
    /// `etag`
    pub etag: bool,
    /// `if_modified_since`
    pub if_modified_since: IfModifiedSince,
    /// `early_hints`: a 103 of an upstream is passed on when one is neither empty nor `0`.
    pub early_hints: Arc<Vec<Template>>,
    /// `max_ranges`; `None` is no limit, 0 disables ranges.
    pub max_ranges: Option<u32>,
    /// `charset`, `charset_types`, `source_charset`, `override_charset`
    pub charset: Arc<Charset>,
    /// `autoindex*`
    pub autoindex: Autoindex,
    /// `apache_htaccess`
    pub apache_htaccess: bool,
    /// `apache_directory`, in file order, outer blocks first.
    pub apache_directories: Arc<Vec<ApacheDirectory>>,
    /// `apache_define` and `apache_modules`
    pub apache_names: Arc<ApacheNames>,
    /// `apache_proxy`
    pub apache_proxies: Arc<Vec<ApacheProxy>>,
    /// `apache_handler`
    pub apache_handlers: Arc<Vec<ApacheHandler>>,
    /// `gzip*`
    pub gzip: Arc<Gzip>,
    /// `brotli*`
    pub brotli: Arc<Brotli>,
    /// `zstd*`
    pub zstd: Arc<Zstd>,
    /// `sub_filter*`, `gunzip*`
    pub filters: Arc<Filters>,
    /// `mp4_buffer_size`, `mp4_max_buffer_size`, `mp4_start_key_frame`
    pub mp4: Mp4Settings,
    /// `open_file_cache*`
    pub open_file_cache: OpenFileCache,
    /// `disable_symlinks`
    pub disable_symlinks: SymlinksConf,
    /// `access_log`; empty means `off`.
    pub access_log: AccessLogs,
    /// `error_log`
    pub error_log: Arc<Vec<ErrorLog>>,
    /// `open_log_file_cache`
    pub log_file_cache: Option<LogFileCache>,
    /// `log_not_found`
    pub log_not_found: bool,
    /// `log_subrequest`
    pub log_subrequest: bool,
    /// `otel_trace*`, `otel_span_*`
    pub otel: Arc<OtelSettings>,
    /// `server_tokens`
    pub server_tokens: ServerTokens,
    /// `absolute_redirect`
    pub absolute_redirect: bool,
    /// `port_in_redirect`
    pub port_in_redirect: PortInRedirect,
    /// `server_name_in_redirect`
    pub server_name_in_redirect: bool,
    /// `rewrite_log`
    pub rewrite_log: bool,
    /// `uninitialized_variable_warn`
    pub uninitialized_variable_warn: bool,
    /// `valid_referers`
    pub referers: Option<Arc<Referers>>,
    /// `set_real_ip_from`, `real_ip_header`, `real_ip_recursive`
    pub real_ip: Arc<RealIp>,
    /// `allow` and `deny`, in file order.
    pub access: Arc<Vec<AccessRule>>,
    /// `auth_basic`: the realm; `None` and `off` require no password.
    pub auth_basic: Option<Template>,
    /// `auth_basic_user_file`
    pub auth_basic_user_file: Option<Template>,
    /// `auth_request`, `auth_request_set`
    pub auth_request: Arc<AuthRequest>,
    /// `satisfy`
    pub satisfy: Satisfy,
    /// `limit_req*`, `limit_conn*`
    pub limits: Arc<LimitRules>,
    /// `secure_link*`
    pub secure_link: Option<Arc<SecureLink>>,
    /// `modern_browser*`, `ancient_browser*`
    pub browsers: Arc<Browsers>,
    /// `slice`: bytes of a slice; 0 is off.
    pub slice: usize,
    /// `random_index`
    pub random_index: bool,
    /// `userid*`
    pub user_id: Arc<UserId>,
    /// `auth_delay`: the delay of a 401; zero is none.
    pub auth_delay: Duration,
    /// `keepalive_timeout`: zero closes after each response.
    pub keepalive_timeout: Duration,
    /// `keepalive_timeout`'s second value: the one in `Keep-Alive: timeout=`.
    pub keepalive_header: Option<Duration>,
    /// `keepalive_min_timeout`: how long an idle connection survives the order to drain.
    pub keepalive_min_timeout: Duration,
    /// `keepalive_time`: the longest lifetime of a connection.
    pub keepalive_time: Duration,
    /// `keepalive_requests`: requests per connection.
    pub keepalive_requests: u64,
    /// `keepalive_disable`
    pub keepalive_disable: KeepaliveDisable,
    /// `send_timeout`: between two successful writes.
    pub send_timeout: Duration,
    /// `client_body_timeout`: between two successful reads.
    pub client_body_timeout: Duration,
    /// `client_max_body_size` in bytes; 0 is no limit.
    pub client_max_body_size: u64,
    /// `client_body_buffer_size` in bytes.
    pub client_body_buffer_size: usize,
    /// `client_body_temp_path`
    pub client_body_temp_path: Arc<TempPath>,
    /// `dav_*`, `create_full_put_path`, `min_delete_depth`
    pub dav: DavSettings,
    /// `client_body_in_file_only`
    pub client_body_in_file_only: BodyFiles,
    /// `lingering_close`
    pub lingering_close: LingeringClose,
    /// `lingering_time`
    pub lingering_time: Duration,
    /// `lingering_timeout`
    pub lingering_timeout: Duration,
    /// `reset_timedout_connection`
    pub reset_timedout_connection: bool,
    /// `limit_rate`: bytes per second, a number or a text that evaluates to one; `None` or 0 is no
    /// limit.
    pub limit_rate: Option<Template>,
    /// `limit_rate_after`: bytes that are free.
    pub limit_rate_after: Option<Template>,
    /// `sendfile`
    pub sendfile: bool,
    /// `sendfile_max_chunk` in bytes; 0 is no limit.
    pub sendfile_max_chunk: u64,
    /// `tcp_nopush`
    pub tcp_nopush: bool,
    /// `tcp_nodelay`
    pub tcp_nodelay: bool,
    /// `directio`: files from this size bypass the page cache; accepted.
    pub directio: Option<u64>,
    /// `output_buffers`: number and size.
    pub output_buffers: (u32, usize),
    /// `http2_chunk_size`: bytes of the body in one DATA frame at most.
    pub http2_chunk_size: u32,
    /// `chunked_transfer_encoding`
    pub chunked_transfer_encoding: bool,
    /// `msie_padding`
    pub msie_padding: bool,
    /// `resolver`
    pub resolver: Option<Arc<NameServers>>,
    /// `resolver_timeout`
    pub resolver_timeout: Duration,
    /// The upstream settings of the location: those of the family of its protocol, or `fastcgi_*`.
    pub origin: Arc<OriginSettings>,
    /// `fastcgi_cache*` and its kin in the same way; `page_cache*`
    pub cache: Arc<CacheSettings>,
    /// The settings of the other families, for inner locations.
    pub families: Arc<OtherFamilies>,
}

/// `root` or `alias`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DocumentRoot {
    /// The directory: absolute unless a variable comes first. `root` has no trailing slash.
    pub path: Template,
    /// How a request's path is joined to it.
    pub mapping: Mapping,
}

/// How a request's path maps below [`DocumentRoot::path`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mapping {
    /// `root`: the whole path is appended.
    Whole,
    /// `alias` in a prefix or exact location: the path without its first bytes, this many, is
    /// appended. A nested location inherits the number with the alias.
    Without(usize),
    /// `alias` in a regex location: it spells the whole file.
    Nothing,
}

/// One status of an `error_page`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrorPage {
    /// The status that it handles.
    pub status: u16,
    /// The status for the client.
    pub overwrite: Overwrite,
    /// The target: `/uri` (with arguments), `@name`, or a URL to redirect the client to.
    pub target: Template,
}

/// The status after an `error_page`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overwrite {
    /// The original one.
    Keep,
    /// `=`: the target's own status.
    Target,
    /// `=200`
    Status(u16),
}

/// One `add_header` or `add_trailer`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddHeader {
    /// The field's name as written.
    pub name: Arc<[u8]>,
    /// Its value; an empty result adds nothing.
    pub value: Template,
    /// Whether every status gets it, not only 200 201 204 206 301 302 303 304 307 308.
    pub always: bool,
}

/// The fate of an outer block's list when a block has a list of its own, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListInherit {
    /// `on`: it applies to blocks without one.
    On,
    /// `off`: it does not hold.
    Off,
    /// `merge`: it is added to the block's own one.
    Merge,
}

/// `expires`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expires {
    /// A fixed rule.
    Fixed(ExpiresRule),
    /// Decided per request: its text is read by [`ExpiresRule::parse`].
    Variable {
        /// The rule's text.
        text: Template,
        /// Whether `modified` was written before it.
        modified: bool,
    },
}

/// The rule for `Expires` and `Cache-Control`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExpiresRule {
    /// No fields.
    Off,
    /// 1970, `no-cache`.
    Epoch,
    /// 31 December 2037, ten years.
    Max,
    /// This many seconds from now; negative is `no-cache`.
    After(i64),
    /// This many seconds after the modification of the file.
    Modified(i64),
    /// `@HH:MM`: the next time of day, in seconds since midnight.
    Daily(u32),
}

/// `if_modified_since`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IfModifiedSince {
    /// The field is ignored.
    Off,
    /// The times must be equal.
    Exact,
    /// The file must not be newer.
    Before,
}

/// `charset` and related directives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Charset {
    /// `charset`
    pub charset: CharsetOf,
    /// `source_charset`
    pub source: CharsetOf,
    /// `charset_types`; `text/html` is always in.
    pub types: TypeSet,
    /// `override_charset`
    pub overrides: bool,
    /// Whether files and texts may be recoded, or have a charset that is known with the request
    /// only because another one cannot be recoded to it: `source_charset` is given, and a
    /// `charset_map` or a variable.
    pub recodes: bool,
}

/// A charset's name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CharsetOf {
    /// `off`
    Off,
    /// A name, or a text with variables that evaluates to one.
    Name(Template),
}

/// `autoindex*`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Autoindex {
    /// `autoindex`
    pub on: bool,
    /// `autoindex_exact_size`
    pub exact_size: bool,
    /// `autoindex_localtime`
    pub localtime: bool,
    /// `autoindex_format`
    pub format: AutoindexFormat,
}

/// `autoindex_format`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AutoindexFormat {
    /// `html`
    Html,
    /// `xml`
    Xml,
    /// `json`
    Json,
    /// `jsonp`
    Jsonp,
}

/// `open_file_cache*`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenFileCache {
    /// `open_file_cache max=`; none is `off`, which is also the default.
    pub max: Option<u32>,
    /// `inactive=`
    pub inactive: Duration,
    /// Whether `open_file_cache off` was written, rather than omitted.
    pub is_off: bool,
    /// `open_file_cache_valid`; none when it was not written.
    pub valid: Option<Duration>,
    /// `open_file_cache_min_uses`
    pub min_uses: u32,
    /// `open_file_cache_errors`
    pub errors: bool,
}

/// `disable_symlinks`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SymlinksConf {
    /// `off`: followed.
    Follow,
    /// `on`: refused.
    Refuse {
        /// `from=`: the part of the path that is not checked.
        from: Option<Template>,
    },
    /// `if_not_owner`
    IfNotOwner {
        /// `from=`: the part of the path that is not checked.
        from: Option<Template>,
    },
}

/// `port_in_redirect`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PortInRedirect {
    /// `off`: none.
    None,
    /// `on`: that of the `listen`, unless it is the scheme's.
    Listen,
    /// `host`: that of the request's `Host`, unless it is the scheme's.
    Host,
}

/// `server_tokens`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerTokens {
    /// `on`: name and version.
    On,
    /// `off`: the name.
    Off,
    /// `build`: name, version and build.
    Build,
}

/// `satisfy`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Satisfy {
    /// Every access check must pass.
    All,
    /// One must pass.
    Any,
}

/// `keepalive_disable`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeepaliveDisable {
    /// `msie6`
    pub msie6: bool,
    /// `safari`
    pub safari: bool,
}

/// A location's settings for the end of a response and of its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CloseSettings {
    /// `send_timeout`
    pub send_timeout: Duration,
    /// `lingering_close`
    pub lingering: LingeringClose,
    /// `lingering_time`
    pub lingering_time: Duration,
    /// `lingering_timeout`
    pub lingering_timeout: Duration,
    /// `reset_timedout_connection`
    pub resets: bool,
}

impl LocationSettings {
    /// Whether Apache's directives have a say about files.
    #[must_use]
    pub fn obeys_apache(&self) -> bool {
        self.apache_htaccess || !self.apache_directories.is_empty()
    }

    /// How a connection ends after a response of this location.
    #[must_use]
    pub const fn manners(&self) -> CloseSettings {
        CloseSettings {
            send_timeout: self.send_timeout,
            lingering: self.lingering_close,
            lingering_time: self.lingering_time,
            lingering_timeout: self.lingering_timeout,
            resets: self.reset_timedout_connection,
        }
    }
}

/// `lingering_close`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LingeringClose {
    /// `off`
    Off,
    /// `on`: when the client seems to send more.
    On,
    /// `always`
    Always,
}
