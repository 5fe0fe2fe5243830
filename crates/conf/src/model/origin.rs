//! A location's upstream: `fastcgi_*` and the families like it, and the `…_pass` directives.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::body::TempPath;
use super::family::DirectiveFamily;
use super::proxy::{ProxySettings, ProxyUrl};
use super::upstream::UpstreamId;
use super::written::{FileAccess, StorePlace};
use crate::regex::Regex;
use crate::vars::Template;

/// A `fastcgi_pass`, `lsapi_pass`, `php_pass`, `proxy_pass`, `uwsgi_pass`, `scgi_pass`,
/// `memcached_pass` or `grpc_pass`.
#[derive(Clone, Debug, PartialEq)]
pub struct Pass {
    /// The protocol.
    pub protocol: Protocol,
    /// The target.
    pub to: PassTo,
    /// The rest of a `proxy_pass`, `uwsgi_pass` or `grpc_pass` without variables.
    pub url: Option<Arc<ProxyUrl>>,
}

/// The protocol spoken with an upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Protocol {
    /// FastCGI 1.0
    FastCgi,
    /// LiteSpeed's protocol for applications.
    Lsapi,
    /// HTTP/1.0 or HTTP/1.1.
    Http,
    /// uwsgi, the protocol of the server uWSGI.
    Uwsgi,
    /// SCGI 1
    Scgi,
    /// Memcached's text protocol.
    Memcached,
    /// HTTP/2: that of `grpc_pass`, and of `proxy_pass` with `proxy_http_version 2`.
    Http2,
}

impl Protocol {
    /// The family whose settings apply to locations with this protocol.
    #[must_use]
    pub const fn family(self) -> DirectiveFamily {
        match self {
            Self::FastCgi | Self::Lsapi => DirectiveFamily::Application,
            Self::Http => DirectiveFamily::Proxy,
            Self::Uwsgi => DirectiveFamily::Uwsgi,
            Self::Scgi => DirectiveFamily::Scgi,
            Self::Memcached => DirectiveFamily::Memcached,
            Self::Http2 => DirectiveFamily::Grpc,
        }
    }

    /// Whether its upstreams may have TLS: their URLs say so.
    #[must_use]
    pub const fn has_tls(self) -> bool {
        matches!(self, Self::Http | Self::Uwsgi | Self::Http2)
    }

    /// Whether responses may be kept in a cache.
    #[must_use]
    pub const fn has_caches(self) -> bool {
        !matches!(self, Self::Memcached | Self::Http2)
    }

    /// Whether an upstream may switch to another protocol.
    #[must_use]
    pub const fn has_tunnels(self) -> bool {
        matches!(self, Self::Http | Self::Uwsgi | Self::Scgi)
    }
}

impl From<PhpProtocol> for Protocol {
    fn from(protocol: PhpProtocol) -> Self {
        match protocol {
            PhpProtocol::FastCgi => Self::FastCgi,
            PhpProtocol::Lsapi => Self::Lsapi,
        }
    }
}

/// The protocols of PHP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PhpProtocol {
    /// FastCGI 1.0
    FastCgi,
    /// LiteSpeed's interface for applications.
    Lsapi,
}

/// The target of a `…_pass` directive.
#[derive(Clone, Debug, PartialEq)]
pub enum PassTo {
    /// A group; a single address is one, too.
    Group(UpstreamId),
    /// A text with variables: the name of a group, or an address; for `proxy_pass` a whole URL.
    Text(Template),
}

/// Upstream settings of a location (`fastcgi_*`; for `lsapi_pass` and `php_pass` as well).
#[derive(Clone, Debug, PartialEq)]
pub struct OriginSettings {
    /// `fastcgi_connect_timeout`
    pub connect_timeout: Duration,
    /// `fastcgi_send_timeout`: between two successful writes to the upstream.
    pub send_timeout: Duration,
    /// `fastcgi_read_timeout`: between two reads.
    pub read_timeout: Duration,
    /// `fastcgi_next_upstream`
    pub next_upstream: NextUpstream,
    /// `fastcgi_next_upstream_tries`; 0 is no limit.
    pub next_upstream_tries: u32,
    /// `fastcgi_next_upstream_timeout`; zero is no limit.
    pub next_upstream_timeout: Duration,
    /// `fastcgi_buffering`
    pub buffering: bool,
    /// `fastcgi_buffer_size`: the largest head, in bytes.
    pub buffer_size: usize,
    /// `fastcgi_buffers`: number and size.
    pub buffers: (u32, usize),
    /// `fastcgi_busy_buffers_size`
    pub busy_buffers_size: usize,
    /// `fastcgi_max_temp_file_size` in bytes; 0 means no file.
    pub max_temp_file_size: u64,
    /// `fastcgi_temp_file_write_size`
    pub temp_file_write_size: usize,
    /// `fastcgi_temp_path`
    pub temp_path: Arc<TempPath>,
    /// `fastcgi_store`; `None` is `off`.
    pub store: Option<StorePlace>,
    /// `fastcgi_store_access`
    pub store_access: FileAccess,
    /// `fastcgi_request_buffering`
    pub request_buffering: bool,
    /// `fastcgi_ignore_client_abort`
    pub ignore_client_abort: bool,
    /// `fastcgi_intercept_errors`
    pub intercept_errors: bool,
    /// `fastcgi_keep_conn`
    pub keep_conn: bool,
    /// `fastcgi_pass_request_headers`
    pub pass_request_headers: bool,
    /// `fastcgi_pass_request_body`
    pub pass_request_body: bool,
    /// `fastcgi_socket_keepalive`
    pub socket_keepalive: bool,
    /// `fastcgi_bind`; `None` leaves the choice to the system.
    pub bind: Option<Bind>,
    /// `fastcgi_force_ranges`
    pub force_ranges: bool,
    /// `fastcgi_limit_rate`: bytes per second read from the upstream; `None` or 0 is no limit.
    pub limit_rate: Option<Template>,
    /// `fastcgi_hide_header`, in lower case.
    pub hide_headers: Arc<Vec<Box<[u8]>>>,
    /// `fastcgi_pass_header`, in lower case.
    pub pass_headers: Arc<Vec<Box<[u8]>>>,
    /// `fastcgi_ignore_headers`
    pub ignore_headers: IgnoreHeaders,
    /// `fastcgi_param`
    pub params: Arc<Vec<Param>>,
    /// `fastcgi_index`
    pub index: Option<Arc<[u8]>>,
    /// `fastcgi_split_path_info`
    pub split_path_info: Option<Regex>,
    /// `fastcgi_catch_stderr`: texts in the error stream that make a response invalid.
    pub catch_stderr: Arc<Vec<Box<[u8]>>>,
    /// The settings of `proxy_*` only, of which `uwsgi_*` and `grpc_*` have some.
    pub proxy: Arc<ProxySettings>,
    /// `uwsgi_modifier1`, `uwsgi_modifier2`
    pub uwsgi_modifiers: [u32; 2],
    /// `uwsgi_string`: bytes behind the variables.
    pub uwsgi_string: Arc<[u8]>,
    /// The value of `$memcached_key`, in locations with `memcached_pass`.
    pub memcached_key: Option<Template>,
    /// `memcached_gzip_flag`; 0 marks nothing.
    pub memcached_gzip_flag: u32,
}

/// The local address of upstream connections.
#[derive(Clone, Debug, PartialEq)]
pub enum Bind {
    /// This one, as written; port 0 means any.
    At(SocketAddr, Arc<str>),
    /// The value of these variables.
    Computed(Template),
}

/// When another server of the group is tried.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NextUpstream {
    /// `error`
    pub error: bool,
    /// `timeout`
    pub timeout: bool,
    /// `invalid_header`
    pub invalid_header: bool,
    /// `http_500`
    pub http_500: bool,
    /// `http_502`
    pub http_502: bool,
    /// `http_503`
    pub http_503: bool,
    /// `http_504`
    pub http_504: bool,
    /// `http_403`
    pub http_403: bool,
    /// `http_404`
    pub http_404: bool,
    /// `http_429`
    pub http_429: bool,
    /// `non_idempotent`
    pub non_idempotent: bool,
}

/// Which fields of an upstream response have no effect here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IgnoreHeaders {
    /// `X-Accel-Redirect`
    pub redirect: bool,
    /// `X-Accel-Expires`
    pub accel_expires: bool,
    /// `X-Accel-Limit-Rate`
    pub limit_rate: bool,
    /// `X-Accel-Buffering`
    pub buffering: bool,
    /// `X-Accel-Charset`
    pub charset: bool,
    /// `Expires`
    pub expires: bool,
    /// `Cache-Control`
    pub cache_control: bool,
    /// `Set-Cookie`
    pub set_cookie: bool,
    /// `Vary`
    pub vary: bool,
}

/// A `fastcgi_param`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Param {
    /// The name.
    pub name: Arc<[u8]>,
    /// The value.
    pub value: Template,
    /// `if_not_empty`
    pub if_not_empty: bool,
}

/// A `php_pool`: processes that the server itself runs.
#[derive(Clone, Debug, PartialEq)]
pub struct PhpPool {
    /// Its name.
    pub name: Arc<str>,
    /// `binary`: php-fpm, or lsphp; found in the usual places if absent.
    pub binary: Option<PathBuf>,
    /// The protocol of the binary.
    pub protocol: PhpProtocol,
    /// `user`: the account that scripts run as; the workers' own if absent.
    pub user: Option<String>,
    /// `group`
    pub group: Option<String>,
    /// `children`: concurrent requests; `None` derives it from memory and cores.
    pub children: Option<u32>,
    /// `memory`: bytes that one child may need, for `children auto` and `memory_limit`.
    pub memory: u64,
    /// `max_requests`: requests after which a child is replaced; 0 is never.
    pub max_requests: u32,
    /// `request_timeout`: after which a hanging child is killed; zero is never.
    pub request_timeout: Duration,
    /// `queue`: requests that wait for a child, and how long.
    pub queue: super::upstream::Queue,
    /// `ini`: `php_admin_value` settings.
    pub ini: Vec<(String, OsString)>,
    /// `env`: variables that scripts see.
    pub env: Vec<(String, OsString)>,
    /// `idle`: after so long without a request it has no process, until the next one; `None` always
    /// has some.
    pub idle: Option<Duration>,
    /// `ini_file`: in place of PHP's own `php.ini`.
    pub ini_file: Option<PathBuf>,
    /// `open_basedir`: where scripts may open files.
    pub open_basedir: Vec<PathBuf>,
    /// `tmp`: where scripts have temporary files, uploads and sessions.
    pub tmp: Option<PathBuf>,
    /// `rlimit`: `None` is no limit.
    pub rlimits: Vec<(PhpResource, Option<u64>)>,
    /// `limit_memory` and its kin, with their places.
    pub limits: Vec<(PhpLimit, super::SourcePlace)>,
    /// Where it was written.
    pub place: super::SourcePlace,
}

/// What a control group limits for all processes of a pool together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PhpLimit {
    /// `limit_memory`: bytes.
    Memory(u64),
    /// `limit_cpu`: hundredths of one core.
    Cpu(u32),
    /// `limit_tasks`: processes and threads.
    Tasks(u32),
    /// `limit_io`: the share of a busy disk, 1 to 10,000, where others have 100.
    Io(u32),
}

/// What `rlimit` limits for each process of a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PhpResource {
    /// Bytes of address space.
    AddressSpace,
    /// Bytes of a core file.
    Core,
    /// Bytes of a file that it writes.
    FileSize,
    /// Descriptors.
    Files,
    /// Processes of its user.
    Processes,
    /// Bytes of stack.
    Stack,
}
