//! Directives that nginx has and this server does not have yet: known by name, so that the error
//! message says so. A change that builds a feature removes its names from here.

use std::collections::HashSet;
use std::sync::OnceLock;

/// Names by the part of nginx that they belong to.
const NAMES: &[(&str, &[&str])] = &[
    ("devpoll", &["devpoll_changes", "devpoll_events"]),
    ("eventport", &["eventport_events"]),
    ("google_perftools", &["google_perftools_profiles"]),
    ("http_degradation", &["degradation", "degrade"]),
    (
        "http_image_filter",
        &[
            "image_filter",
            "image_filter_buffer",
            "image_filter_interlace",
            "image_filter_jpeg_quality",
            "image_filter_sharpen",
            "image_filter_transparency",
            "image_filter_webp_quality",
        ],
    ),
    ("http_perl", &["perl", "perl_modules", "perl_require", "perl_set"]),
    (
        "http_tunnel",
        &[
            "tunnel_bind",
            "tunnel_buffer_size",
            "tunnel_connect_timeout",
            "tunnel_next_upstream",
            "tunnel_next_upstream_timeout",
            "tunnel_next_upstream_tries",
            "tunnel_pass",
            "tunnel_read_timeout",
            "tunnel_send_lowat",
            "tunnel_send_timeout",
            "tunnel_socket_keepalive",
            "tunnel_socket_rcvbuf",
            "tunnel_socket_sndbuf",
        ],
    ),
    ("http_upstream_least_time", &["least_time"]),
    (
        "http_xslt_filter",
        &[
            "xml_entities",
            "xml_external_entities",
            "xslt_last_modified",
            "xslt_param",
            "xslt_string_param",
            "xslt_stylesheet",
            "xslt_types",
        ],
    ),
    ("iocp", &["acceptex_read", "iocp_threads", "post_acceptex"]),
    ("kqueue", &["kqueue_changes", "kqueue_events"]),
    ("mail", &["mail"]),
    (
        "mail_auth_http",
        &["auth_http", "auth_http_header", "auth_http_pass_client_cert", "auth_http_timeout"],
    ),
    ("mail_core", &["max_errors", "protocol", "timeout"]),
    ("mail_imap", &["imap_auth", "imap_capabilities", "imap_client_buffer"]),
    ("mail_pop3", &["pop3_auth", "pop3_capabilities"]),
    (
        "mail_proxy",
        &[
            "proxy",
            "proxy_buffer",
            "proxy_pass_error_message",
            "proxy_protocol",
            "proxy_smtp_auth",
            "proxy_timeout",
            "xclient",
        ],
    ),
    ("mail_smtp", &["smtp_auth", "smtp_capabilities", "smtp_client_buffer", "smtp_greeting_delay"]),
    ("mail_ssl", &["starttls"]),
    ("stream", &["stream"]),
    ("stream_core", &["preread_buffer_size", "preread_timeout", "proxy_protocol_timeout"]),
    ("stream_pass", &["pass"]),
    (
        "stream_proxy",
        &[
            "proxy_download_rate",
            "proxy_downstream_buffer",
            "proxy_half_close",
            "proxy_requests",
            "proxy_responses",
            "proxy_ssl",
            "proxy_ssl_alpn",
            "proxy_upload_rate",
            "proxy_upstream_buffer",
        ],
    ),
    ("stream_ssl", &["ssl_alpn", "ssl_handshake_timeout"]),
    ("stream_ssl_preread", &["ssl_preread"]),
];

/// Every name.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    NAMES.iter().flat_map(|(_, names)| names.iter().copied())
}

/// Whether nginx has a directive of this name.
pub(super) fn is_known(name: &[u8]) -> bool {
    static KNOWN: OnceLock<HashSet<&'static [u8]>> = OnceLock::new();
    KNOWN.get_or_init(|| names().map(str::as_bytes).collect()).contains(name)
}
