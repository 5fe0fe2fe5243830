//! One configuration as the workers run it: the compiled site and what each socket needs.

use std::sync::Arc;
use std::time::Duration;

use engine::Site;
use io::listen::Listener;
use wire::{h1, h2, h3};

use crate::log::OpenLogs;

/// What a connection needs to know of the socket that it came in on.
#[derive(Debug)]
pub struct ListenSettings {
    /// The TLS side, for `listen … ssl` and `listen … quic`.
    pub tls: Option<tls::Acceptor>,
    /// Whether HTTP/2 is spoken here.
    pub http2: bool,
    /// Whether HTTP/1 request heads may be answered at all by HTTP/3 (`http3 on`).
    pub http3: bool,
    /// HTTP/1 framing.
    pub h1: h1::Settings,
    /// HTTP/2 framing.
    pub h2: h2::Settings,
    /// HTTP/3 framing.
    pub h3: h3::Settings,
    /// QUIC transport.
    pub quic: quic::Settings,
    /// Time for a TLS handshake and for each request head.
    pub header_timeout: Duration,
    /// Time between two reads of a request body.
    pub body_timeout: Duration,
    /// Time between two writes that the client accepts.
    pub send_timeout: Duration,
    /// Idle time of a kept connection; zero closes after each answer.
    pub keepalive_timeout: Duration,
    /// Time that a closing connection listens for what the client still sends.
    pub lingering_timeout: Duration,
    /// Close timed-out connections by reset.
    pub reset_timedout: bool,
}

/// The listening sockets of one worker, in the order of the configuration's `listens`.
pub type Sockets = Vec<Arc<Listener>>;

/// A configuration in force. Connections hold the one that they last asked.
#[derive(Debug)]
pub struct Generation {
    /// Counts up with each reload.
    pub number: u64,
    /// The compiled configuration.
    pub site: Arc<Site>,
    /// One entry per listen of the configuration.
    pub listens: Vec<ListenSettings>,
    /// Sockets by worker.
    pub sockets: Vec<Sockets>,
    /// Log files, open.
    pub logs: OpenLogs,
    /// Secrets that QUIC endpoints share.
    pub quic_keys: Arc<quic::SharedKeys>,
    /// Connections of one worker.
    pub connections_max: u32,
}

impl Generation {
    /// Whether a listen is a UDP socket.
    pub(crate) fn is_quic(&self, listen: usize) -> bool {
        let http = self.site.config().http.as_ref();
        http.and_then(|http| http.listens.get(listen))
            .is_some_and(|listen| listen.transport == conf::model::Transport::Quic)
    }
}
