//! The settings of one listening socket.

use std::collections::HashMap;
use std::time::Duration;

use bolide_conf::model::{
    CloseSettings, Http, Listen, ListenTransport, LocationSettings, ServerConf, ServerId,
};
use bolide_http::Scheme;
use bolide_wire::{h1, h2, h3};

/// The settings of a listening socket.
#[derive(Debug)]
pub struct ListenSettings {
    /// The limits of connections.
    pub limits: WorkerLimits,
    /// The limits of other servers that a client can name (SNI), where they differ.
    others: Vec<WorkerLimits>,
    /// The index into `others` for a server.
    by_server: HashMap<u32, Profile>,
    /// The TLS acceptor, for `listen … ssl` and `listen … quic`.
    pub tls: Option<bolide_tls::Acceptor>,
    /// Whether connections begin with a header of the PROXY protocol.
    pub proxy_protocol: bool,
    /// QUIC transport.
    pub quic: bolide_quic::QuicSettings,
}

/// Which limits of a listen apply to a connection: those of the default server, or of the one that
/// the client named in its handshake.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Profile(u16);

/// The limits of a server that apply before a request is known.
#[derive(Clone, Debug, PartialEq)]
pub struct WorkerLimits {
    /// Whether HTTP/2 is enabled.
    pub http2: bool,
    /// Whether HTTP/3 is enabled, over QUIC.
    pub http3: bool,
    /// HTTP/1 framing.
    pub h1: h1::H1Settings,
    /// HTTP/2 framing.
    pub h2: h2::H2Settings,
    /// HTTP/3 framing.
    pub h3: h3::H3Settings,
    /// The most plain bytes in one TLS record.
    pub record_size: usize,
    /// The timeout of a TLS handshake, and of each request head.
    pub header_timeout: Duration,
    /// The time between two reads of a request body.
    pub body_timeout: Duration,
    /// The idle time of a kept connection; zero closes after each response.
    pub keepalive_timeout: Duration,
    /// The age of a connection after which its next request is its last.
    pub keepalive_time: Duration,
    /// How a connection is closed that had no response, or whose location has the same settings.
    pub manners: CloseSettings,
}

impl WorkerLimits {
    fn new(http: &Http, listen: &Listen, id: ServerId) -> Self {
        let server = http.server(id);
        let settings = &http.location(server.root).settings;
        let is_secure = listen.tls || listen.transport == ListenTransport::Quic;
        let scheme = if is_secure { Scheme::Https } else { Scheme::Http };
        Self {
            http2: server.http2 || listen.http2,
            http3: server.http3,
            h1: h1_settings(server, scheme),
            h2: h2_settings(server, settings, scheme),
            h3: h3_settings(server, settings),
            record_size: server.tls.buffer_size,
            header_timeout: server.settings.client_header_timeout,
            body_timeout: settings.client_body_timeout,
            keepalive_timeout: settings.keepalive_timeout,
            keepalive_time: settings.keepalive_time,
            manners: settings.manners(),
        }
    }
}

impl ListenSettings {
    /// The settings of `listen` from its servers; `tls` if it is enabled.
    #[must_use]
    pub fn new(http: &Http, listen: &Listen, tls: Option<bolide_tls::Acceptor>) -> Self {
        let server = http.server(listen.default_server);
        let settings = &http.location(server.root).settings;
        let mut limits = WorkerLimits::new(http, listen, listen.default_server);
        let (mut others, mut by_server) = (Vec::new(), HashMap::new());
        let is_named =
            |own: &WorkerLimits| if tls.is_some() { *own != limits } else { own.h1 != limits.h1 };
        let mut asks_host = false;
        for &id in &listen.servers {
            let own = WorkerLimits::new(http, listen, id);
            if !is_named(&own) {
                continue;
            }
            asks_host |= own.h1 != limits.h1;
            let at = others.iter().position(|other| *other == own).unwrap_or_else(|| {
                others.push(own);
                others.len() - 1
            });
            // LIMIT: different settings of servers on one socket.
            if let Ok(number) = u16::try_from(at + 1) {
                by_server.insert(id.0, Profile(number));
            }
        }
        for limits in others.iter_mut().chain([&mut limits]) {
            limits.h1.asks_host = asks_host;
        }
        Self {
            limits,
            others,
            by_server,
            proxy_protocol: listen.proxy_protocol,
            quic: quic_settings(server, settings),
            tls,
        }
    }

    /// The limits of this profile.
    pub(crate) fn limits(&self, profile: Profile) -> &WorkerLimits {
        debug_assert!(usize::from(profile.0) <= self.others.len(), "a profile is of its listen");
        let other = usize::from(profile.0).checked_sub(1).and_then(|at| self.others.get(at));
        other.unwrap_or(&self.limits)
    }

    /// Whether the settings of servers differ.
    pub(crate) const fn has_profiles(&self) -> bool {
        !self.others.is_empty()
    }

    /// The profile of connections whose client named this server.
    pub(crate) fn profile(&self, server: u32) -> Profile {
        self.by_server.get(&server).copied().unwrap_or_default()
    }
}

fn h1_settings(server: &ServerConf, scheme: Scheme) -> h1::H1Settings {
    let own = &server.settings;
    h1::H1Settings {
        scheme,
        header_buffer_size: own.client_header_buffer_size,
        fields_max: own.max_headers,
        large_buffers: u16::try_from(own.large_client_header_buffers).unwrap_or(u16::MAX),
        large_buffer_size: own.large_client_header_buffer_size,
        underscores_in_headers: own.underscores_in_headers,
        ignore_invalid_headers: own.ignore_invalid_headers,
        // The location decides, in its response.
        keepalive_requests: u64::MAX,
        asks_host: false,
    }
}

fn h2_settings(server: &ServerConf, settings: &LocationSettings, scheme: Scheme) -> h2::H2Settings {
    let own = &server.settings;
    let buffers = own.large_client_header_buffers as usize;
    h2::H2Settings {
        scheme,
        max_concurrent_streams: own.h2.max_concurrent_streams,
        head_size_max: buffers.saturating_mul(own.large_client_header_buffer_size),
        field_size_max: own.large_client_header_buffer_size,
        fields_max: own.max_headers,
        recv_window: own.h2.body_preread_size,
        underscores_in_headers: own.underscores_in_headers,
        ignore_invalid_headers: own.ignore_invalid_headers,
        keepalive_requests: settings.keepalive_requests,
        keepalive_time: settings.keepalive_time,
    }
}

fn h3_settings(server: &ServerConf, settings: &LocationSettings) -> h3::H3Settings {
    let own = &server.settings;
    let buffers = own.large_client_header_buffers as usize;
    h3::H3Settings {
        max_concurrent_streams: own.h3.max_concurrent_streams,
        head_size_max: buffers.saturating_mul(own.large_client_header_buffer_size),
        field_size_max: own.large_client_header_buffer_size,
        fields_max: own.max_headers,
        table_capacity: bolide_base::limits::FIELD_TABLE_SIZE,
        blocked_streams: 16,
        underscores_in_headers: own.underscores_in_headers,
        ignore_invalid_headers: own.ignore_invalid_headers,
        keepalive_requests: settings.keepalive_requests,
    }
}

/// Where a silent client of QUIC has the time of a head, it has this at least.
const IDLE_MIN: Duration = Duration::from_secs(1);

fn quic_settings(server: &ServerConf, settings: &LocationSettings) -> bolide_quic::QuicSettings {
    let own = &server.settings.h3;
    let mut quic = bolide_quic::QuicSettings {
        bidi_streams_max: own.max_concurrent_streams,
        idle_timeout: settings.keepalive_timeout,
        ..bolide_quic::QuicSettings::default()
    };
    if quic.idle_timeout.is_zero() {
        // Connections end with their first response then, but a client may vanish before that.
        quic.idle_timeout = server.settings.client_header_timeout.max(IDLE_MIN);
    }
    // nginx's default would slow down uploads: ours applies unless it is configured.
    if let Some(buffer) = own.stream_buffer_size {
        quic.stream_window = u32::try_from(buffer).unwrap_or(u32::MAX);
        // As in nginx, one for each stream, including those of HTTP/3 itself; but not more memory
        // than others get, unless one stream needs it. Streams that wait for us have their own.
        let all = quic.stream_window.saturating_mul(own.max_concurrent_streams.saturating_add(3));
        quic.conn_window = all.min(quic.conn_window.max(quic.stream_window));
    }
    if !own.gso {
        quic.cutting = bolide_quic::GsoCutting::Ourselves;
    }
    quic.active_cids = own.active_connection_id_limit;
    if own.retry {
        quic.retry = bolide_quic::Retry::Always;
    }
    quic
}
