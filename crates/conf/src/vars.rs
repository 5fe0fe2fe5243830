//! Variables as a closed set, and texts with variables in them.
//!
//! Owns the names; the engine evaluates variables.

use std::fmt;
use std::sync::Arc;

use bolide_http::Name;

/// A text that may hold variables, cut into parts once, at start-up.
///
/// Neighbouring texts are joined, so a template without variables has at most one part.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Template(Arc<[TemplatePart]>);

/// One piece of a [`Template`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TemplatePart {
    /// Literal bytes.
    Text(Arc<[u8]>),
    /// A variable to evaluate.
    Var(Var),
}

impl Template {
    /// A template of these parts, which are taken as they are.
    #[must_use]
    pub fn new(parts: Vec<TemplatePart>) -> Self {
        Self(parts.into())
    }

    /// A template without variables.
    #[must_use]
    pub fn text(text: &[u8]) -> Self {
        if text.is_empty() {
            return Self::default();
        }
        Self(Arc::new([TemplatePart::Text(text.into())]))
    }

    /// The parts in order.
    #[must_use]
    pub fn parts(&self) -> &[TemplatePart] {
        &self.0
    }

    /// Whether its value is the same for all requests for one target of one host.
    #[must_use]
    pub fn follows_target(&self) -> bool {
        self.0.iter().all(|part| match part {
            TemplatePart::Text(_) => true,
            TemplatePart::Var(var) => var.follows_target(),
        })
    }

    /// Whether it is another one for each range that is asked for.
    #[must_use]
    pub fn follows_range(&self) -> bool {
        let is_range = |var: &Var| match var {
            Var::SliceRange => true,
            Var::RequestField(field) => field.name == Name::Range,
            _ => false,
        };
        self.0.iter().any(|part| matches!(part, TemplatePart::Var(var) if is_range(var)))
    }

    /// The bytes, when there is no variable.
    #[must_use]
    pub fn as_text(&self) -> Option<&[u8]> {
        match &*self.0 {
            [] => Some(b""),
            [TemplatePart::Text(text)] => Some(text),
            _ => None,
        }
    }

    /// Whether it is the empty text.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The variables in order.
    pub fn vars(&self) -> impl Iterator<Item = &Var> {
        self.0.iter().filter_map(|part| match part {
            TemplatePart::Var(var) => Some(var),
            TemplatePart::Text(_) => None,
        })
    }

    /// The text before the first variable; empty when a variable comes first.
    #[must_use]
    pub fn leading_text(&self) -> &[u8] {
        match self.0.first() {
            Some(TemplatePart::Text(text)) => text,
            _ => b"",
        }
    }
}

impl Var {
    /// Whether its value is the same for all requests for one target of one host. A capture may be
    /// one of a cookie.
    #[must_use]
    pub const fn follows_target(&self) -> bool {
        matches!(
            self,
            Self::Uri
                | Self::RequestUri
                | Self::Args
                | Self::IsArgs
                | Self::Arg(_)
                | Self::Host
                | Self::Hostname
                | Self::ServerName
                | Self::DocumentRoot
        )
    }
}

impl fmt::Debug for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("\"")?;
        for part in self.parts() {
            match part {
                TemplatePart::Text(text) => write!(f, "{}", text.escape_ascii())?,
                TemplatePart::Var(var) => write!(f, "${{{var:?}}}")?,
            }
        }
        f.write_str("\"")
    }
}

/// The name of a header field inside a variable, in lower case and with dashes.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct FieldName {
    /// Which name it is.
    pub name: Name,
    /// Its text: `user-agent`. It matches fields whose name differs only in case or in `_` for `-`.
    pub text: Arc<str>,
}

impl FieldName {
    /// The field that `$http_TEXT` means.
    #[must_use]
    pub fn from_variable(text: &str) -> Self {
        let text: Arc<str> = text.to_ascii_lowercase().replace('_', "-").into();
        Self { name: Name::parse(text.as_bytes()), text }
    }
}

impl fmt::Debug for FieldName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.text, f)
    }
}

macro_rules! plain_vars {
    ($($(#[$doc:meta])* $variant:ident = $($name:literal)|+;)+) => {
        /// A variable.
        #[derive(Clone, Debug, PartialEq, Eq, Hash)]
        pub enum Var {
            $($(#[$doc])* $variant,)+
            /// `$http_NAME`: a request field; repeated ones joined by `, `.
            RequestField(FieldName),
            /// `$sent_http_NAME`: an answer's field.
            SentField(FieldName),
            /// `$sent_trailer_NAME`: a trailer field of the response.
            SentTrailer(FieldName),
            /// `$cookie_NAME`: the first cookie of that name.
            Cookie(Arc<str>),
            /// `$arg_NAME`: the first argument of that name, in any case.
            Arg(Arc<str>),
            /// `$upstream_http_NAME`: a field of the upstream response.
            UpstreamField(FieldName),
            /// `$upstream_trailer_NAME`: a trailer field of the upstream response.
            UpstreamTrailer(FieldName),
            /// `$upstream_cookie_NAME`: a cookie that the upstream set.
            UpstreamCookie(Arc<str>),
            /// `$proxy_protocol_tlv_NAME`: a field of the PROXY protocol's header.
            ProxyProtocolTlv(Arc<str>),
            /// `$1` to `$9`: a group of the regular expression that matched last.
            Capture(u8),
            /// A named group: an index into [`crate::model::Http::named`].
            Named(u16),
            /// Path and query of the request to an HTTP upstream: a variable without a name, used
            /// in default keys.
            ProxyTarget,
        }

        /// Every variable with a fixed name.
        pub(crate) const PLAIN: &[(&str, Var)] = &[$($(($name, Var::$variant),)+)+];
    };
}

plain_vars! {
    /// `$uri`, `$document_uri`: the decoded path, after rewriting.
    Uri = "uri" | "document_uri";
    /// `$request_uri`: the target as sent, with arguments.
    RequestUri = "request_uri";
    /// `$args`, `$query_string`: the text after `?`.
    Args = "args" | "query_string";
    /// `$is_args`: `?` when there are arguments, else empty.
    IsArgs = "is_args";
    /// `$host`: the requested host in lower case, else the server's name.
    Host = "host";
    /// `$hostname`: the machine's name.
    Hostname = "hostname";
    /// `$remote_addr`: the client's address as text.
    RemoteAddr = "remote_addr";
    /// `$remote_port`: the client's port.
    RemotePort = "remote_port";
    /// `$binary_remote_addr`: the client's address in 4 or 16 bytes.
    BinaryRemoteAddr = "binary_remote_addr";
    /// `$remote_user`: the user of Basic authentication.
    RemoteUser = "remote_user";
    /// `$authenticated_user`: the user whose password was right, by `auth_basic` of the location or
    /// by `.htaccess` files.
    AuthenticatedUser = "authenticated_user";
    /// `$server_addr`: the address that took the request.
    ServerAddr = "server_addr";
    /// `$server_port`: the port that took the request.
    ServerPort = "server_port";
    /// `$server_name`: the first name of the server.
    ServerName = "server_name";
    /// `$server_protocol`: `HTTP/1.1`, `HTTP/2.0`, …
    ServerProtocol = "server_protocol";
    /// `$scheme`: `http` or `https`.
    Scheme = "scheme";
    /// `$https`: `on` over TLS, else empty.
    Https = "https";
    /// `$request`: the request line.
    Request = "request";
    /// `$request_method`
    RequestMethod = "request_method";
    /// `$slice_range`: the bytes that `slice` asks for, as `Range` says them.
    SliceRange = "slice_range";
    /// `$request_length`: bytes of line, head and body.
    RequestLength = "request_length";
    /// `$request_time`: seconds with milliseconds since the first byte.
    RequestTime = "request_time";
    /// `$request_id`: 32 hexadecimal digits.
    RequestId = "request_id";
    /// `$request_completion`: `OK` when the response was sent in full.
    RequestCompletion = "request_completion";
    /// `$request_filename`: the file that the request maps to.
    RequestFilename = "request_filename";
    /// `$request_body`
    RequestBody = "request_body";
    /// `$request_body_file`
    RequestBodyFile = "request_body_file";
    /// `$request_port`: the port asked for.
    RequestPort = "request_port";
    /// `$is_request_port`: `:` when there is a port, else empty.
    IsRequestPort = "is_request_port";
    /// `$document_root`: root or alias of the request.
    DocumentRoot = "document_root";
    /// `$realpath_root`: the same with symbolic links resolved.
    RealpathRoot = "realpath_root";
    /// `$body_bytes_sent`
    BodyBytesSent = "body_bytes_sent";
    /// `$bytes_sent`
    BytesSent = "bytes_sent";
    /// `$connection`: the connection's number.
    Connection = "connection";
    /// `$connection_requests`: requests so far on the connection.
    ConnectionRequests = "connection_requests";
    /// `$connection_time`: age of the connection in seconds with milliseconds.
    ConnectionTime = "connection_time";
    /// `$connections_active`
    ConnectionsActive = "connections_active";
    /// `$connections_reading`
    ConnectionsReading = "connections_reading";
    /// `$connections_writing`
    ConnectionsWriting = "connections_writing";
    /// `$connections_waiting`
    ConnectionsWaiting = "connections_waiting";
    /// `$msec`: seconds since 1970 with milliseconds.
    Msec = "msec";
    /// `$date_local`: the local time, in the page's SSI format.
    DateLocal = "date_local";
    /// `$date_gmt`: the same in GMT.
    DateGmt = "date_gmt";
    /// `$time_iso8601`
    TimeIso8601 = "time_iso8601";
    /// `$time_local`
    TimeLocal = "time_local";
    /// `$pid`
    Pid = "pid";
    /// `$nginx_version`
    NginxVersion = "nginx_version";
    /// `$limit_rate`
    LimitRate = "limit_rate";
    /// `$status`
    Status = "status";
    /// `$http2`: `h2` over TLS, `h2c` in the clear, else empty.
    Http2 = "http2";
    /// `$http3`: `h3`, else empty.
    Http3 = "http3";
    /// `$content_type`: the request's field.
    ContentType = "content_type";
    /// `$content_length`: the request's field.
    ContentLength = "content_length";
    /// `$pipe`: `p` when the request was pipelined, else `.`.
    Pipe = "pipe";
    /// `$tcpinfo_rtt`
    TcpinfoRtt = "tcpinfo_rtt";
    /// `$tcpinfo_rttvar`
    TcpinfoRttvar = "tcpinfo_rttvar";
    /// `$tcpinfo_snd_cwnd`
    TcpinfoSndCwnd = "tcpinfo_snd_cwnd";
    /// `$tcpinfo_rcv_space`
    TcpinfoRcvSpace = "tcpinfo_rcv_space";
    /// `$gzip_ratio`
    GzipRatio = "gzip_ratio";
    /// `$brotli_ratio`
    BrotliRatio = "brotli_ratio";
    /// `$zstd_ratio`
    ZstdRatio = "zstd_ratio";
    /// `$ssl_protocol`
    SslProtocol = "ssl_protocol";
    /// `$ssl_cipher`
    SslCipher = "ssl_cipher";
    /// `$ssl_ciphers`: the client's offer.
    SslCiphers = "ssl_ciphers";
    /// `$ssl_curve`
    SslCurve = "ssl_curve";
    /// `$ssl_curves`: the client's offer.
    SslCurves = "ssl_curves";
    /// `$ssl_sigalg`
    SslSigalg = "ssl_sigalg";
    /// `$ssl_server_name`
    SslServerName = "ssl_server_name";
    /// `$ssl_session_reused`: `r` or `.`.
    SslSessionReused = "ssl_session_reused";
    /// `$ssl_session_id`
    SslSessionId = "ssl_session_id";
    /// `$ssl_early_data`: `1` while the handshake is not complete, else empty.
    SslEarlyData = "ssl_early_data";
    /// `$ssl_alpn_protocol`
    SslAlpnProtocol = "ssl_alpn_protocol";
    /// `$ssl_ech_status`
    SslEchStatus = "ssl_ech_status";
    /// `$ssl_ech_outer_server_name`
    SslEchOuterServerName = "ssl_ech_outer_server_name";
    /// `$ssl_client_cert`
    SslClientCert = "ssl_client_cert";
    /// `$ssl_client_raw_cert`
    SslClientRawCert = "ssl_client_raw_cert";
    /// `$ssl_client_escaped_cert`
    SslClientEscapedCert = "ssl_client_escaped_cert";
    /// `$ssl_client_s_dn`
    SslClientSDn = "ssl_client_s_dn";
    /// `$ssl_client_i_dn`
    SslClientIDn = "ssl_client_i_dn";
    /// `$ssl_client_s_dn_legacy`
    SslClientSDnLegacy = "ssl_client_s_dn_legacy";
    /// `$ssl_client_i_dn_legacy`
    SslClientIDnLegacy = "ssl_client_i_dn_legacy";
    /// `$ssl_client_serial`
    SslClientSerial = "ssl_client_serial";
    /// `$ssl_client_fingerprint`
    SslClientFingerprint = "ssl_client_fingerprint";
    /// `$ssl_client_sigalg`
    SslClientSigalg = "ssl_client_sigalg";
    /// `$ssl_client_verify`
    SslClientVerify = "ssl_client_verify";
    /// `$ssl_client_v_start`
    SslClientVStart = "ssl_client_v_start";
    /// `$ssl_client_v_end`
    SslClientVEnd = "ssl_client_v_end";
    /// `$ssl_client_v_remain`
    SslClientVRemain = "ssl_client_v_remain";
    /// `$quic_connection`: the QUIC connection's number, else empty.
    QuicConnection = "quic_connection";
    /// `$proxy_protocol_addr`
    ProxyProtocolAddr = "proxy_protocol_addr";
    /// `$proxy_protocol_port`
    ProxyProtocolPort = "proxy_protocol_port";
    /// `$proxy_protocol_server_addr`
    ProxyProtocolServerAddr = "proxy_protocol_server_addr";
    /// `$proxy_protocol_server_port`
    ProxyProtocolServerPort = "proxy_protocol_server_port";
    /// `$realip_remote_addr`: the address before the real one replaced it.
    RealipRemoteAddr = "realip_remote_addr";
    /// `$realip_remote_port`
    RealipRemotePort = "realip_remote_port";
    /// `$invalid_referer`
    InvalidReferer = "invalid_referer";
    /// `$modern_browser`: `modern_browser_value` for a modern browser, else empty.
    ModernBrowser = "modern_browser";
    /// `$ancient_browser`: `ancient_browser_value` for an ancient browser, else empty.
    AncientBrowser = "ancient_browser";
    /// `$msie`: `1` for any version of MSIE, else empty.
    Msie = "msie";
    /// `$uid_got`: name and identifier of the cookie that the client brought (`userid`).
    UidGot = "uid_got";
    /// `$uid_set`: the same of the cookie that it is given.
    UidSet = "uid_set";
    /// `$uid_reset`: whether it is given another one.
    UidReset = "uid_reset";
    /// `$limit_req_status`: the decision of `limit_req` for the request.
    LimitReqStatus = "limit_req_status";
    /// `$limit_conn_status`: the decision of `limit_conn` for the request.
    LimitConnStatus = "limit_conn_status";
    /// `$secure_link`: `1` or the rest of a valid link, `0` when it has expired.
    SecureLink = "secure_link";
    /// `$secure_link_expires`: when a link expires.
    SecureLinkExpires = "secure_link_expires";
    /// `$fastcgi_script_name`: the path, or its first part after `fastcgi_split_path_info`; with
    /// `fastcgi_index` when it ends in `/`.
    FastcgiScriptName = "fastcgi_script_name";
    /// `$fastcgi_path_info`: the second part after `fastcgi_split_path_info`.
    FastcgiPathInfo = "fastcgi_path_info";
    /// `$proxy_host`: name and port of `proxy_pass`.
    ProxyHost = "proxy_host";
    /// `$proxy_port`: port of `proxy_pass`.
    ProxyPort = "proxy_port";
    /// `$proxy_add_x_forwarded_for`: the request's field with the client's address appended.
    ProxyAddXForwardedFor = "proxy_add_x_forwarded_for";
    /// `$upstream_addr`
    UpstreamAddr = "upstream_addr";
    /// `$upstream_status`
    UpstreamStatus = "upstream_status";
    /// `$upstream_connect_time`
    UpstreamConnectTime = "upstream_connect_time";
    /// `$upstream_header_time`
    UpstreamHeaderTime = "upstream_header_time";
    /// `$upstream_response_time`
    UpstreamResponseTime = "upstream_response_time";
    /// `$upstream_response_length`
    UpstreamResponseLength = "upstream_response_length";
    /// `$upstream_bytes_received`
    UpstreamBytesReceived = "upstream_bytes_received";
    /// `$upstream_bytes_sent`
    UpstreamBytesSent = "upstream_bytes_sent";
    /// `$upstream_cache_status`
    UpstreamCacheStatus = "upstream_cache_status";
    /// `$upstream_cache_last_modified`
    UpstreamCacheLastModified = "upstream_cache_last_modified";
    /// `$upstream_cache_etag`
    UpstreamCacheEtag = "upstream_cache_etag";
    /// `$upstream_cache_age`
    UpstreamCacheAge = "upstream_cache_age";
    /// `$otel_trace_id`: 32 hexadecimal digits.
    OtelTraceId = "otel_trace_id";
    /// `$otel_span_id`: 16 hexadecimal digits.
    OtelSpanId = "otel_span_id";
    /// `$otel_parent_id`: the span of the client's request, if its context is taken up.
    OtelParentId = "otel_parent_id";
    /// `$otel_parent_sampled`: `1` if the client's request is traced, else `0`.
    OtelParentSampled = "otel_parent_sampled";
    /// `$http_traceparent`: the field, as upstream servers see it.
    HttpTraceparent = "http_traceparent";
    /// `$http_tracestate`: the same.
    HttpTracestate = "http_tracestate";
    /// `$page_cache_reason`: in logs, why a store had the part in the answer that it had.
    PageCacheReason = "page_cache_reason";
    /// `$upstream_last_server_name`
    UpstreamLastServerName = "upstream_last_server_name";
}

/// A prefix, and the variable that the rest of the name makes with it.
type Prefixed = (&'static str, fn(&str) -> Var);

impl Var {
    /// The variable named `name` (without `$`), unless only a capture could define it.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        // nginx looks variable names up in lower case.
        let lower = name.to_ascii_lowercase();
        if let Some((_, var)) = PLAIN.iter().find(|(text, _)| *text == lower) {
            return Some(var.clone());
        }
        let prefixed: [Prefixed; 9] = [
            ("http_", |rest| Self::RequestField(FieldName::from_variable(rest))),
            ("sent_http_", |rest| Self::SentField(FieldName::from_variable(rest))),
            ("sent_trailer_", |rest| Self::SentTrailer(FieldName::from_variable(rest))),
            ("cookie_", |rest| Self::Cookie(rest.into())),
            ("arg_", |rest| Self::Arg(rest.into())),
            ("upstream_http_", |rest| Self::UpstreamField(FieldName::from_variable(rest))),
            ("upstream_trailer_", |rest| Self::UpstreamTrailer(FieldName::from_variable(rest))),
            ("upstream_cookie_", |rest| Self::UpstreamCookie(rest.into())),
            ("proxy_protocol_tlv_", |rest| Self::ProxyProtocolTlv(rest.into())),
        ];
        prefixed.iter().find_map(|(prefix, make)| Some(make(lower.strip_prefix(prefix)?)))
    }
}
