//! The TLS side of a QUIC connection: rustls behind the library's traits. Its packet keys cut
//! padding, and it reports the names for the log.

use std::any::Any;
use std::sync::Arc;

use bytes::BytesMut;
use quinn_proto::crypto::rustls::QuicServerConfig;
use quinn_proto::crypto::{
    CryptoError, ExportKeyingMaterialError, HeaderKey, KeyPair, Keys, PacketKey, ServerConfig,
    Session, UnsupportedVersion,
};
use quinn_proto::transport_parameters::TransportParameters;
use quinn_proto::{ConnectionId, Side, TransportError, TransportErrorCode};
use rustls::crypto::aws_lc_rs::cipher_suite::TLS13_AES_128_GCM_SHA256;
use rustls::quic::{KeyChange, Secrets, ServerConnection, Suite, Version};
use rustls::{CipherSuite, HandshakeKind, NamedGroup};

use crate::{padding, parameters};

/// The result of the handshake.
#[derive(Clone, Debug, Default)]
pub struct Handshake {
    /// The application protocol: `h3`.
    pub alpn: Option<Vec<u8>>,
    /// The requested server name, in lower case.
    pub server_name: Option<Box<str>>,
    /// The cipher suite; `bolide_tls::names::cipher_name` gives the value of `$ssl_cipher`.
    pub cipher: Option<CipherSuite>,
    /// The key exchange group; `bolide_tls::names::curve_name` gives the value of `$ssl_curve`.
    pub curve: Option<NamedGroup>,
    /// Whether a session was resumed.
    pub is_resumed: bool,
}

/// RFC 9001 §5.2: Initial packets are protected with AES-128-GCM, independent of the negotiated
/// suite.
fn initial_suite() -> Option<Suite> {
    TLS13_AES_128_GCM_SHA256.tls13()?.quic_suite()
}

/// Starts the TLS sessions of new connections.
pub(crate) struct Starter {
    config: Arc<rustls::ServerConfig>,
    library: QuicServerConfig,
    suite: Suite,
    active_cids: u32,
}

impl Starter {
    /// `None` if `config` does not support QUIC: no TLS 1.3, or a limit on early data.
    pub(crate) fn new(config: Arc<rustls::ServerConfig>, active_cids: u32) -> Option<Self> {
        let suite = initial_suite()?;
        ServerConnection::new(Arc::clone(&config), Version::V1, Vec::new()).ok()?;
        let library = QuicServerConfig::with_initial(Arc::clone(&config), suite).ok()?;
        Some(Self { config, library, suite, active_cids })
    }
}

impl ServerConfig for Starter {
    fn initial_keys(&self, version: u32, dcid: &ConnectionId) -> Result<Keys, UnsupportedVersion> {
        // These keys open the first datagram of a connection, whose padding must stay: the library
        // uses the decrypted length as the number of bytes that the client sent (RFC 9000 §8.1
        // allows three times as many in response).
        self.library.initial_keys(version, dcid)
    }

    fn retry_tag(&self, version: u32, orig_dcid: &ConnectionId, packet: &[u8]) -> [u8; 16] {
        self.library.retry_tag(version, orig_dcid, packet)
    }

    fn start_session(self: Arc<Self>, _: u32, params: &TransportParameters) -> Box<dyn Session> {
        let mut encoded = Vec::new();
        params.write(&mut encoded);
        parameters::lower_cid_limit(&mut encoded, self.active_cids);
        let conn = ServerConnection::new(Arc::clone(&self.config), Version::V1, encoded)
            .expect("`new` has tried this configuration");
        Box::new(Tls { conn, next: None, suite: self.suite, has_reported: false })
    }
}

/// The handshake and key schedule of one connection. Only version 1 is negotiated.
struct Tls {
    conn: ServerConnection,
    next: Option<Secrets>,
    suite: Suite,
    has_reported: bool,
}

impl Session for Tls {
    fn initial_keys(&self, dcid: &ConnectionId, side: Side) -> Keys {
        let side = match side {
            Side::Client => rustls::Side::Client,
            Side::Server => rustls::Side::Server,
        };
        keys(self.suite.keys(dcid, side, Version::V1))
    }

    fn handshake_data(&self) -> Option<Box<dyn Any>> {
        self.has_reported.then(|| {
            let conn = &self.conn;
            Box::new(Handshake {
                alpn: conn.alpn_protocol().map(<[u8]>::to_vec),
                server_name: conn.server_name().map(Into::into),
                cipher: conn.negotiated_cipher_suite().map(|suite| suite.suite()),
                curve: conn.negotiated_key_exchange_group().map(|group| group.name()),
                is_resumed: conn.handshake_kind() == Some(HandshakeKind::Resumed),
            }) as Box<dyn Any>
        })
    }

    fn peer_identity(&self) -> Option<Box<dyn Any>> {
        let chain = self.conn.peer_certificates()?;
        Some(Box::new(chain.to_vec()))
    }

    fn early_crypto(&self) -> Option<(Box<dyn HeaderKey>, Box<dyn PacketKey>)> {
        let keys = self.conn.zero_rtt_keys()?;
        Some((Box::new(keys.header), Box::new(Opener(keys.packet))))
    }

    fn early_data_accepted(&self) -> Option<bool> {
        None
    }

    fn is_handshaking(&self) -> bool {
        self.conn.is_handshaking()
    }

    fn read_handshake(&mut self, bytes: &[u8]) -> Result<bool, TransportError> {
        if let Err(error) = self.conn.read_hs(bytes) {
            // RFC 9001 §4.8: an alert becomes a connection error.
            let code = match self.conn.alert() {
                Some(alert) => TransportErrorCode::crypto(alert.into()),
                None => TransportErrorCode::PROTOCOL_VIOLATION,
            };
            return Err(TransportError { code, frame: None, reason: error.to_string() });
        }
        let conn = &self.conn;
        let knows = conn.alpn_protocol().is_some()
            || conn.server_name().is_some()
            || !conn.is_handshaking();
        let news = knows && !self.has_reported;
        self.has_reported |= knows;
        Ok(news)
    }

    fn transport_parameters(&self) -> Result<Option<TransportParameters>, TransportError> {
        let Some(mut encoded) = self.conn.quic_transport_parameters() else { return Ok(None) };
        Ok(Some(TransportParameters::read(Side::Server, &mut encoded)?))
    }

    fn write_handshake(&mut self, out: &mut Vec<u8>) -> Option<Keys> {
        Some(match self.conn.write_hs(out)? {
            KeyChange::Handshake { keys: changed } => keys(changed),
            KeyChange::OneRtt { keys: changed, next } => {
                self.next = Some(next);
                keys(changed)
            }
        })
    }

    fn next_1rtt_keys(&mut self) -> Option<KeyPair<Box<dyn PacketKey>>> {
        let keys = self.next.as_mut()?.next_packet_keys();
        Some(KeyPair { local: Box::new(keys.local), remote: Box::new(Opener(keys.remote)) })
    }

    fn is_valid_retry(&self, _: &ConnectionId, _: &[u8], _: &[u8]) -> bool {
        // Only servers send Retry.
        false
    }

    fn export_keying_material(
        &self,
        _: &mut [u8],
        _: &[u8],
        _: &[u8],
    ) -> Result<(), ExportKeyingMaterialError> {
        // Nothing here exports keys.
        Err(ExportKeyingMaterialError)
    }
}

fn keys(keys: rustls::quic::Keys) -> Keys {
    Keys {
        header: KeyPair {
            local: Box::new(keys.local.header),
            remote: Box::new(keys.remote.header),
        },
        packet: KeyPair {
            local: Box::new(keys.local.packet),
            remote: Box::new(Opener(keys.remote.packet)),
        },
    }
}

/// Decrypts packets and cuts their padding.
struct Opener(Box<dyn rustls::quic::PacketKey>);

impl PacketKey for Opener {
    fn encrypt(&self, packet: u64, buf: &mut [u8], header_len: usize) {
        PacketKey::encrypt(&self.0, packet, buf, header_len);
    }

    fn decrypt(
        &self,
        packet: u64,
        header: &[u8],
        payload: &mut BytesMut,
    ) -> Result<(), CryptoError> {
        let plain =
            self.0.decrypt_in_place(packet, header, payload).map_err(|_| CryptoError)?.len();
        let len = padding::cut(&mut payload[..plain]);
        payload.truncate(len);
        Ok(())
    }

    fn tag_len(&self) -> usize {
        self.0.tag_len()
    }

    fn confidentiality_limit(&self) -> u64 {
        self.0.confidentiality_limit()
    }

    fn integrity_limit(&self) -> u64 {
        self.0.integrity_limit()
    }
}
