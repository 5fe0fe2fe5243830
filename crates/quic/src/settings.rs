//! What an endpoint allows its peers, and its translation into the library's words.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bolide_base::limits::{CONN_WINDOW, STREAMS_PER_CONN_MAX};
use quinn_proto::congestion::CubicConfig;
use quinn_proto::{EndpointConfig, IdleTimeout, MtuDiscoveryConfig, ServerConfig, TransportConfig};
use quinn_proto::{TokenLog, TokenReuseError, ValidationTokenConfig};
use quinn_proto::{VarInt, VarIntBoundsExceeded};

use crate::clock::CivilTime;
use crate::crypto::Starter;
use crate::{SharedKeys, cid};

/// QUIC version 1 (RFC 9000 §15); drafts are over.
const VERSION_1: u32 = 1;

/// Bytes of the largest datagram that is tried: jumbo frames of 9,000 bytes less IPv6 and UDP.
/// Paths that carry less are found by a handful of probes (RFC 9000 §14.3).
const DATAGRAM_MAX: u16 = 8952;

/// Bytes that are sent before a client has confirmed any. RFC 9002 §7.2 recommends a third of it;
/// what several servers and browsers use saves a round trip for a page of 15 to 40 kB, and is paced
/// beyond its first ten datagrams.
const INITIAL_WINDOW: u64 = 32 * 1200;

/// How long a client may come back without proving its address anew, where that is asked for.
const TOKEN_LIFETIME: Duration = Duration::from_mins(10);

/// When a client must show that it receives at its address before anything is kept for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retry {
    /// Always, at the price of a round trip: `quic_retry on`.
    Always,
    /// While at least so many handshakes are under way.
    UnderLoad(u32),
}

/// The bounds of an endpoint; [`Settings::default`] fits a web server.
#[derive(Clone, Debug)]
pub struct QuicSettings {
    /// Silence after which a connection is dropped; zero: never.
    pub idle_timeout: Duration,
    /// Time that a handshake may take.
    pub handshake_timeout: Duration,
    /// Requests a client may have open.
    pub bidi_streams_max: u32,
    /// Streams that a client may open beside its requests.
    pub uni_streams_max: u32,
    /// Bytes a client may send ahead of the reader, per stream.
    pub stream_window: u32,
    /// Bytes a client may send ahead of the readers, per connection.
    pub conn_window: u32,
    /// Bytes kept for a client that does not acknowledge them: at first and on slow paths.
    pub send_window_min: u64,
    /// The same at most, on fast and long paths; the window is twice the congestion window.
    pub send_window_max: u64,
    /// When addresses are checked first.
    pub retry: Retry,
    /// Connections; more are refused.
    pub conns_max: u32,
    /// Whether the socket never fragments, so that larger datagrams may be tried.
    pub path_mtu: PathMtu,
    /// Who cuts what is sent into datagrams.
    pub cutting: GsoCutting,
    /// Connection ids of a client that are kept; those that clients send unasked are never more.
    pub active_cids: u32,
    /// Where the protocol's own chance comes from (its keys do not): none, the system's randomness;
    /// for a simulation that is to be repeated.
    pub seed: Option<[u8; 32]>,
}

/// Who cuts what is sent into datagrams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GsoCutting {
    /// The kernel, or its card: `quic_gso on`.
    Kernel,
    /// We do: one datagram at a time.
    Ourselves,
}

/// Whether larger datagrams than 1200 bytes are tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathMtu {
    /// Yes: the socket sets the don't-fragment bit.
    Discovered,
    /// No.
    Minimal,
}

impl Default for QuicSettings {
    fn default() -> Self {
        Self {
            idle_timeout: Duration::from_secs(60),
            handshake_timeout: Duration::from_secs(10),
            bidi_streams_max: STREAMS_PER_CONN_MAX,
            // RFC 9114 §6.2 needs three; clients add streams of reserved types.
            uni_streams_max: 8,
            stream_window: 256 * 1024,
            conn_window: CONN_WINDOW,
            send_window_min: 128 * 1024,
            send_window_max: 4 * 1024 * 1024,
            // A handshake holds about 50 KB.
            retry: Retry::UnderLoad(2000),
            conns_max: bolide_base::limits::CONNS_MAX,
            path_mtu: PathMtu::Discovered,
            cutting: GsoCutting::Kernel,
            active_cids: 2,
            seed: None,
        }
    }
}

/// Why an endpoint cannot be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SettingsError {
    /// The TLS configuration has no TLS 1.3, or bounds early data.
    Tls,
    /// A duration or count is beyond what the protocol can express.
    OutOfBounds,
}

impl fmt::Display for SettingsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tls => "the TLS settings do not fit QUIC, which needs TLS 1.3",
            Self::OutOfBounds => "a QUIC limit is out of bounds",
        })
    }
}

impl std::error::Error for SettingsError {}

impl From<VarIntBoundsExceeded> for SettingsError {
    fn from(_: VarIntBoundsExceeded) -> Self {
        Self::OutOfBounds
    }
}

/// What all connections of an endpoint share.
pub(crate) fn endpoint_config(worker: u8, keys: &SharedKeys) -> Arc<EndpointConfig> {
    let mut config = EndpointConfig::new(Arc::<aws_lc_rs::hmac::Key>::clone(&keys.reset));
    config.supported_versions(vec![VERSION_1]);
    let keys = keys.clone();
    config.cid_generator(move || Box::new(cid::Generator::new(worker, &keys)));
    Arc::new(config)
}

/// What new connections get.
pub(crate) fn server_config(
    settings: &QuicSettings,
    tls: Arc<rustls::ServerConfig>,
    keys: &SharedKeys,
    civil: &Arc<CivilTime>,
) -> Result<Arc<ServerConfig>, SettingsError> {
    let starter = Starter::new(tls, settings.active_cids).ok_or(SettingsError::Tls)?;
    let token = Arc::<aws_lc_rs::hkdf::Prk>::clone(&keys.token);
    let mut config = ServerConfig::new(Arc::new(starter), token);
    config.transport_config(Arc::new(transport(settings)?));
    config.time_source(Arc::<CivilTime>::clone(civil));
    config.migration(true);
    if settings.retry == Retry::Always {
        let mut tokens = ValidationTokenConfig::default();
        tokens.lifetime(TOKEN_LIFETIME).sent(1).log(Arc::new(Reusable));
        config.validation_token_config(tokens);
    }
    Ok(Arc::new(config))
}

fn transport(settings: &QuicSettings) -> Result<TransportConfig, SettingsError> {
    let mut transport = TransportConfig::default();
    let idle = (!settings.idle_timeout.is_zero())
        .then(|| IdleTimeout::try_from(settings.idle_timeout))
        .transpose()?;
    let mut discovery = MtuDiscoveryConfig::default();
    discovery.upper_bound(DATAGRAM_MAX);
    let discovery = (settings.path_mtu == PathMtu::Discovered).then_some(discovery);
    let mut congestion = CubicConfig::default();
    congestion.initial_window(INITIAL_WINDOW);
    transport
        .max_idle_timeout(idle)
        .max_concurrent_bidi_streams(VarInt::from_u32(settings.bidi_streams_max))
        .max_concurrent_uni_streams(VarInt::from_u32(settings.uni_streams_max))
        .stream_receive_window(VarInt::from_u32(settings.stream_window))
        .receive_window(VarInt::from_u32(settings.conn_window))
        .send_window(settings.send_window_min)
        .mtu_discovery_config(discovery)
        .datagram_receive_buffer_size(None)
        .congestion_controller_factory(Arc::new(congestion));
    Ok(transport)
}

/// Lets a token be used as often as a client wants to, as nginx does: it is good for its address
/// alone, and not for long.
struct Reusable;

impl TokenLog for Reusable {
    fn check_and_insert(&self, _: u128, _: SystemTime, _: Duration) -> Result<(), TokenReuseError> {
        Ok(())
    }
}
