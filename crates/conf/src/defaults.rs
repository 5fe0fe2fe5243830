//! Default values of settings.

use std::sync::Arc;
use std::time::Duration;

use crate::model::tls::{Protocols, SessionCache, VerifyClient};
use crate::model::{
    AccessLog, AccessTarget, AltSvc, Autoindex, AutoindexFormat, BodyFiles, Brotli, CacheSettings,
    Charset, CharsetOf, CpuAffinity, DavSettings, DirectiveFamily, DocumentRoot, ErrorLog, Events,
    Expires, ExpiresRule, FamilySettings, FileAccess, Gzip, GzipProxied, Http2, Http3,
    IfModifiedSince, IgnoreHeaders, KeepaliveDisable, LimitRules, LimitTerms, LingeringClose,
    ListInherit, LocationSettings, LogLevel, LogTargetConf, Main, Mapping, Mp4Settings,
    NextUpstream, OpenFileCache, OriginSettings, OriginTlsConf, OtherFamilies, PortInRedirect,
    Precompressed, ProxySettings, Satisfy, ServerSettings, ServerTokens, SymlinksConf, TempPath,
    TlsConf, TypeSet, TypesMap, Watchdog, Workers, Zstd,
};
use crate::source::LoadOptions;
use crate::vars::{Template, TemplatePart, Var};

/// The `events` block.
pub(crate) const EVENTS: Events =
    Events { worker_connections: 512, multi_accept: false, debug_connection: Vec::new() };

const MINUTE: Duration = Duration::from_secs(60);

/// The main block.
pub(crate) fn main(options: &LoadOptions) -> Main {
    let error_log = options.prefix.join(&options.error_log);
    Main {
        daemon: true,
        master_process: true,
        user: None,
        user_place: crate::model::SourcePlace::default(),
        group: None,
        pid: options.prefix.join(&options.pid),
        lock_file: options.prefix.join("logs/nginx.lock"),
        worker_processes: Workers::Count(1),
        worker_rlimit_nofile: None,
        worker_rlimit_core: None,
        worker_priority: 0,
        worker_cpu_affinity: CpuAffinity::None,
        worker_shutdown_timeout: None,
        worker_watchdog: Watchdog::Log,
        reload_watch: Duration::ZERO,
        reload_on_change: false,
        working_directory: None,
        error_log: Arc::new(vec![ErrorLog {
            target: LogTargetConf::File(error_log),
            level: LogLevel::Error,
        }]),
        env: Vec::new(),
    }
}

/// The root of the `http` block's settings.
#[allow(clippy::too_many_lines, reason = "a table is as long as it is")]
pub(crate) fn settings(options: &LoadOptions, main: &Main) -> LocationSettings {
    LocationSettings {
        root: root(options),
        index: Arc::new(vec![Template::text(b"index.html")]),
        default_type: Arc::from(&b"text/plain"[..]),
        types: Arc::new(types()),
        error_pages: Arc::default(),
        post_action: None,
        mirrors: Arc::default(),
        mirror_request_body: true,
        recursive_error_pages: false,
        add_headers: Arc::default(),
        user_id: Arc::default(),
        browsers: Arc::default(),
        slice: 0,
        random_index: false,
        edits: Arc::default(),
        input_edits: Arc::default(),
        add_header_inherit: ListInherit::On,
        add_trailers: Arc::default(),
        add_trailer_inherit: ListInherit::On,
        expires: Arc::new(Expires::Fixed(ExpiresRule::Off)),
        etag: true,
        if_modified_since: IfModifiedSince::Exact,
        early_hints: Arc::default(),
        max_ranges: None,
        charset: Arc::new(charset()),
        autoindex: AUTOINDEX,
        apache_htaccess: false,
        apache_directories: Arc::default(),
        apache_names: Arc::default(),
        apache_proxies: Arc::default(),
        apache_handlers: Arc::default(),
        gzip: Arc::new(gzip()),
        brotli: Arc::new(brotli()),
        zstd: Arc::new(zstd()),
        filters: Arc::default(),
        mp4: Mp4Settings::default(),
        open_file_cache: OPEN_FILE_CACHE,
        disable_symlinks: SymlinksConf::Follow,
        access_log: Arc::new(vec![access_log(options)]),
        error_log: Arc::clone(&main.error_log),
        log_file_cache: None,
        log_not_found: true,
        log_subrequest: false,
        otel: Arc::default(),
        server_tokens: ServerTokens::On,
        absolute_redirect: true,
        port_in_redirect: PortInRedirect::Listen,
        server_name_in_redirect: false,
        rewrite_log: false,
        uninitialized_variable_warn: true,
        referers: None,
        real_ip: Arc::default(),
        access: Arc::default(),
        auth_basic: None,
        auth_basic_user_file: None,
        auth_request: Arc::default(),
        satisfy: Satisfy::All,
        limits: no_limits(),
        secure_link: None,
        auth_delay: Duration::ZERO,
        keepalive_timeout: Duration::from_secs(75),
        keepalive_header: None,
        keepalive_min_timeout: Duration::ZERO,
        keepalive_time: Duration::from_secs(3600),
        keepalive_requests: 1000,
        keepalive_disable: KeepaliveDisable { msie6: true, safari: false },
        send_timeout: MINUTE,
        client_body_timeout: MINUTE,
        client_max_body_size: 1 << 20,
        client_body_buffer_size: 16 << 10,
        client_body_temp_path: temp_path(options, "client_body_temp"),
        dav: DavSettings::default(),
        client_body_in_file_only: BodyFiles::Unnamed,
        lingering_close: LingeringClose::On,
        lingering_time: Duration::from_secs(30),
        lingering_timeout: Duration::from_secs(5),
        reset_timedout_connection: false,
        limit_rate: None,
        limit_rate_after: None,
        sendfile: false,
        sendfile_max_chunk: 2 << 20,
        tcp_nopush: false,
        tcp_nodelay: true,
        directio: None,
        output_buffers: (2, 32 << 10),
        http2_chunk_size: bolide_http::CHUNK_SIZE,
        chunked_transfer_encoding: true,
        msie_padding: true,
        resolver: None,
        resolver_timeout: Duration::from_secs(30),
        origin: Arc::new(origin(options)),
        cache: Arc::default(),
        families: Arc::new(families(options)),
    }
}

/// The other families, in the order of their numbers.
fn families(options: &LoadOptions) -> OtherFamilies {
    let proxied_cache = CacheSettings {
        key: Some(Template::new(vec![
            TemplatePart::Text(Arc::from(&b"http://"[..])),
            TemplatePart::Var(Var::ProxyHost),
            TemplatePart::Var(Var::ProxyTarget),
        ])),
        ..CacheSettings::default()
    };
    let per_request =
        |temp| OriginSettings { temp_path: temp_path(options, temp), ..origin(options) };
    let tls = OriginTlsConf { family: DirectiveFamily::Uwsgi, ..OriginTlsConf::default() };
    let proxy = ProxySettings { tls: Arc::new(tls), ..ProxySettings::default() };
    let uwsgi = OriginSettings { proxy: Arc::new(proxy), ..per_request("uwsgi_temp") };
    let family =
        |origin, cache| FamilySettings { origin: Arc::new(origin), cache: Arc::new(cache) };
    OtherFamilies([
        family(proxied(options), proxied_cache),
        family(uwsgi, CacheSettings::default()),
        family(per_request("scgi_temp"), CacheSettings::default()),
        family(memcached(options), CacheSettings::default()),
        family(grpc(options), CacheSettings::default()),
    ])
}

const AUTOINDEX: Autoindex =
    Autoindex { on: false, exact_size: true, localtime: false, format: AutoindexFormat::Html };

const OPEN_FILE_CACHE: OpenFileCache = OpenFileCache {
    max: None,
    inactive: MINUTE,
    is_off: false,
    valid: None,
    min_uses: 1,
    errors: false,
};

fn root(options: &LoadOptions) -> DocumentRoot {
    let html = options.prefix.join("html");
    let path = Template::text(html.as_os_str().as_encoded_bytes());
    DocumentRoot { path, mapping: Mapping::Whole }
}

fn types() -> TypesMap {
    let known = [("html", "text/html"), ("gif", "image/gif"), ("jpg", "image/jpeg")];
    let bytes = known
        .map(|(extension, kind)| (Box::from(extension.as_bytes()), Arc::from(kind.as_bytes())));
    TypesMap::from(bytes)
}

fn access_log(options: &LoadOptions) -> AccessLog {
    AccessLog {
        target: AccessTarget::File(Arc::new(options.prefix.join(&options.access_log))),
        format: 0,
        condition: None,
    }
}

fn charset() -> Charset {
    Charset {
        charset: CharsetOf::Off,
        source: CharsetOf::Off,
        types: TypeSet::of(&[
            "text/html",
            "text/xml",
            "text/plain",
            "text/vnd.wap.wml",
            "application/javascript",
            "application/rss+xml",
        ]),
        overrides: false,
        recodes: false,
    }
}

fn gzip() -> Gzip {
    Gzip {
        on: false,
        level: 1,
        min_length: 20,
        types: TypeSet::of(&["text/html"]),
        http10: false,
        proxied: GzipProxied::default(),
        vary: false,
        disable: Arc::default(),
        buffers: (32, 4096),
        window: 32 << 10,
        precompressed: Precompressed::Off,
    }
}

fn brotli() -> Brotli {
    Brotli {
        on: false,
        level: 6,
        min_length: 20,
        types: TypeSet::of(&["text/html"]),
        window: 512 << 10,
        buffers: (32, 4096),
        precompressed: Precompressed::Off,
    }
}

fn zstd() -> Zstd {
    Zstd {
        on: false,
        level: 1,
        min_length: 20,
        types: TypeSet::of(&["text/html"]),
        buffers: (32, 4096),
        precompressed: Precompressed::Off,
    }
}

/// Defaults that a server uses before a location is known.
pub(crate) const fn server() -> ServerSettings {
    ServerSettings {
        connection_pool_size: 512,
        request_pool_size: 4096,
        client_header_timeout: MINUTE,
        client_header_buffer_size: 1024,
        large_client_header_buffers: 4,
        large_client_header_buffer_size: 8192,
        max_headers: 1000,
        ignore_invalid_headers: true,
        underscores_in_headers: false,
        merge_slashes: true,
        h2: Http2 { max_concurrent_streams: 128, body_preread_size: 64 << 10 },
        h3: Http3 {
            max_concurrent_streams: 128,
            stream_buffer_size: None,
            retry: false,
            gso: true,
            active_connection_id_limit: 2,
            alt_svc: AltSvc::Listener,
            host_key: None,
        },
    }
}

/// TLS of a server.
pub(crate) fn tls() -> TlsConf {
    TlsConf {
        certificates: Arc::default(),
        certificate_cache: None,
        password_file: None,
        protocols: Protocols { tls12: true, tls13: true, obsolete: false },
        ciphers: "HIGH:!aNULL:!MD5".to_owned(),
        conf_commands: Arc::default(),
        ecdh_curve: "auto".to_owned(),
        dhparam: None,
        prefer_server_ciphers: None,
        session_tickets: true,
        session_ticket_keys: Arc::default(),
        session_timeout: Duration::from_secs(300),
        session_cache: SessionCache::None,
        buffer_size: 16 << 10,
        early_data: false,
        reject_handshake: false,
        stapling: false,
        stapling_file: None,
        certificate_compression: false,
        stapling_responder: None,
        stapling_verify: false,
        trusted_certificate: None,
        client_certificate: None,
        crl: None,
        verify_client: VerifyClient::Off,
        verify_depth: 1,
    }
}

/// A directory below the prefix, without levels.
fn temp_path(options: &LoadOptions, name: &str) -> Arc<TempPath> {
    Arc::new(TempPath { path: Arc::new(options.prefix.join(name)), levels: Vec::new() })
}

/// Defaults for upstreams.
fn origin(options: &LoadOptions) -> OriginSettings {
    OriginSettings {
        connect_timeout: MINUTE,
        send_timeout: MINUTE,
        read_timeout: MINUTE,
        next_upstream: NextUpstream { error: true, timeout: true, ..NextUpstream::default() },
        next_upstream_tries: 0,
        next_upstream_timeout: Duration::ZERO,
        buffering: true,
        buffer_size: 4096,
        buffers: (8, 4096),
        busy_buffers_size: 8192,
        max_temp_file_size: 1 << 30,
        temp_file_write_size: 8192,
        temp_path: temp_path(options, "fastcgi_temp"),
        store: None,
        store_access: FileAccess::OWNER,
        request_buffering: true,
        ignore_client_abort: false,
        intercept_errors: false,
        keep_conn: false,
        pass_request_headers: true,
        pass_request_body: true,
        socket_keepalive: false,
        bind: None,
        force_ranges: false,
        limit_rate: None,
        hide_headers: Arc::default(),
        pass_headers: Arc::default(),
        ignore_headers: IgnoreHeaders::default(),
        params: Arc::default(),
        index: None,
        split_path_info: None,
        catch_stderr: Arc::default(),
        proxy: Arc::default(),
        uwsgi_modifiers: [0; 2],
        uwsgi_string: Arc::default(),
        memcached_key: None,
        memcached_gzip_flag: 0,
    }
}

/// Defaults for HTTP upstreams.
fn proxied(options: &LoadOptions) -> OriginSettings {
    OriginSettings {
        temp_path: temp_path(options, "proxy_temp"),
        keep_conn: true,
        ..origin(options)
    }
}

/// Defaults for memcached, which is asked for a key and nothing else.
fn memcached(options: &LoadOptions) -> OriginSettings {
    OriginSettings {
        buffering: false,
        // What is in memory has ranges, as in nginx.
        force_ranges: true,
        pass_request_headers: false,
        pass_request_body: false,
        keep_conn: true,
        ..origin(options)
    }
}

/// Defaults for gRPC, whose messages pass at once in both directions.
fn grpc(options: &LoadOptions) -> OriginSettings {
    let tls = OriginTlsConf { family: DirectiveFamily::Grpc, ..OriginTlsConf::default() };
    let tls = Arc::new(tls);
    let proxy = ProxySettings { pass_trailers: true, tls, ..ProxySettings::default() };
    OriginSettings {
        buffering: false,
        request_buffering: false,
        proxy: Arc::new(proxy),
        keep_conn: true,
        ..origin(options)
    }
}

/// The default limits.
fn no_limits() -> Arc<LimitRules> {
    Arc::new(LimitRules {
        requests: Vec::new(),
        requests_terms: LimitTerms::DEFAULT,
        connections: Vec::new(),
        connections_terms: LimitTerms::DEFAULT,
    })
}
