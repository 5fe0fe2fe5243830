//! The limits of an endpoint, and their translation to the library's configuration.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bolide_base::limits::{QUIC_CONN_WINDOW, STREAMS_PER_CONN_MAX};
use quinn_proto::congestion::CubicConfig;
use quinn_proto::{EndpointConfig, IdleTimeout, MtuDiscoveryConfig, ServerConfig, TransportConfig};
use quinn_proto::{TokenLog, TokenReuseError, ValidationTokenConfig};
use quinn_proto::{VarInt, VarIntBoundsExceeded};

use crate::clock::CivilTime;
use crate::crypto::Starter;
use crate::{SharedKeys, cid};

/// QUIC version 1 (RFC 9000 §15); draft versions are not supported.
const VERSION_1: u32 = 1;

/// LIMIT: bytes of a datagram: jumbo frames of 9,000 bytes less the headers of IPv6 and UDP. Path
/// MTU discovery finds smaller paths with a few probes (RFC 9000 §14.3).
const DATAGRAM_MAX: u16 = 8952;

/// Bytes of the initial congestion window. RFC 9002 §7.2 recommends a third of it. Several servers
/// and browsers use this value, which saves a round trip for a page of 15 to 40 kB; pacing applies
/// after the first ten datagrams.
const INITIAL_WINDOW: u64 = 32 * 1200;

/// How long an address validation token is valid, where validation is required.
const TOKEN_LIFETIME: Duration = Duration::from_mins(10);

/// When a client must validate its address before the server keeps state for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retry {
    /// Always, which costs a round trip: `quic_retry on`.
    Always,
    /// While at least this many handshakes are incomplete.
    UnderLoad(u32),
}

/// The limits of an endpoint; [`QuicSettings::default`] suits a web server.
#[derive(Clone, Debug)]
pub struct QuicSettings {
    /// The idle timeout; zero means none.
    pub idle_timeout: Duration,
    /// LIMIT: the time that a handshake may take.
    pub handshake_timeout: Duration,
    /// LIMIT: requests that a client may have open.
    pub bidi_streams_max: u32,
    /// LIMIT: unidirectional streams that a client may open.
    pub uni_streams_max: u32,
    /// The flow-control window of a stream in bytes.
    pub stream_window: u32,
    /// The flow-control window of a connection in bytes, while none of its streams is held.
    pub conn_window: u32,
    /// Unacknowledged bytes that are buffered for a client, at first and on slow paths.
    pub send_window_min: u64,
    /// LIMIT: the same on fast and long paths. The window is twice the congestion window.
    pub send_window_max: u64,
    /// When client addresses are validated.
    pub retry: Retry,
    /// LIMIT: connections; more are refused.
    pub conns_max: u32,
    /// Whether the socket sets the don't-fragment bit, so that larger datagrams can be probed.
    pub path_mtu: PathMtu,
    /// Whether the kernel splits the output into datagrams.
    pub cutting: GsoCutting,
    /// LIMIT: connection ids of a client that are kept.
    pub active_cids: u32,
    /// The seed of the protocol's random numbers, except those of its keys; for reproducible
    /// simulations. `None` uses the system's randomness.
    pub seed: Option<[u8; 32]>,
}

/// Whether the kernel splits the output into datagrams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GsoCutting {
    /// The kernel or its network card does (GSO): `quic_gso on`.
    Kernel,
    /// Each datagram is sent separately.
    Ourselves,
}

/// Whether datagrams above 1200 bytes are probed.
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
            // RFC 9114 §6.2 needs three; clients also open streams of reserved types.
            uni_streams_max: 8,
            stream_window: 256 * 1024,
            conn_window: QUIC_CONN_WINDOW,
            send_window_min: 128 * 1024,
            send_window_max: 4 * 1024 * 1024,
            // A handshake takes about 50 KB.
            retry: Retry::UnderLoad(2000),
            conns_max: bolide_base::limits::CONNS_MAX,
            path_mtu: PathMtu::Discovered,
            cutting: GsoCutting::Kernel,
            active_cids: 2,
            seed: None,
        }
    }
}

/// Why an endpoint cannot be created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SettingsError {
    /// The TLS configuration has no TLS 1.3, or limits early data.
    Tls,
    /// A duration or count exceeds the range of the protocol.
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

/// The configuration that all connections of an endpoint share.
pub(crate) fn endpoint_config(worker: u8, keys: &SharedKeys) -> Arc<EndpointConfig> {
    let mut config = EndpointConfig::new(Arc::<aws_lc_rs::hmac::Key>::clone(&keys.reset));
    config.supported_versions(vec![VERSION_1]);
    let keys = keys.clone();
    config.cid_generator(move || Box::new(cid::Generator::new(worker, &keys)));
    Arc::new(config)
}

/// The configuration of new connections.
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

/// Lets a client use a token any number of times, as nginx does. The token is valid for one address
/// and a short time.
struct Reusable;

impl TokenLog for Reusable {
    fn check_and_insert(&self, _: u128, _: SystemTime, _: Duration) -> Result<(), TokenReuseError> {
        Ok(())
    }
}
