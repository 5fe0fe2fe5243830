//! One TLS connection of a client as a byte machine: cipher bytes in, plain bytes out, and back.
//! All buffers are the caller's; it never waits and never touches a socket.
//!
//! ```text
//!   new ──receive──▶ Handshaking ──last flight──▶ Established ──close_notify──▶ peer closed
//!                        │                            │
//!                        └────── Err: alert in `out` ─┘   (every later call fails the same way)
//! ```
//!
//! Easiest to break: bytes that `receive` did not consume are changed by it (decrypted in place)
//! and must be offered again as they stand, with new bytes only behind them. And the library,
//! while it holds on to a part of a handshake message in those bytes, panics when it is called
//! without them; so nothing is asked of it during the handshake but through `receive`, and after
//! the handshake a client that leaves a message unfinished is refused.

use std::fmt;
use std::sync::Arc;

use rustls::server::UnbufferedServerConnection;
use rustls::unbuffered::{
    ConnectionState, EncodeError, EncodeTlsData, EncryptError, UnbufferedStatus,
};
use rustls::{Error, HandshakeKind};

use crate::{Acceptor, certs, names};

/// Plain bytes that go into one record at most (RFC 8446 §5.1).
const PLAIN_PER_RECORD: usize = 16 * 1024;
/// Type, version and length of a record.
const RECORD_HEADER: usize = 5;
/// Bytes that a record costs above its plain bytes, in the costliest suite of TLS 1.2.
const RECORD_OVERHEAD: usize = RECORD_HEADER + 8 + 16 + 1;

/// Whether the first byte of a connection opens a TLS handshake; otherwise nginx answers
/// `400 The plain HTTP request was sent to HTTPS port`.
#[must_use]
pub const fn opens_handshake(first: u8) -> bool {
    first & 0x80 != 0 || first == 0x16
}

/// Why a session is over. `Display` gives words for the error log; the peer learns only the alert.
#[derive(Clone, Debug)]
pub struct TlsError(Error);

impl TlsError {
    /// Whether the peer ended the session with an alert, which is worth a quieter log line.
    #[must_use]
    pub const fn is_alert_from_peer(&self) -> bool {
        matches!(self.0, Error::AlertReceived(_))
    }
}

impl fmt::Display for TlsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for TlsError {}

impl From<Error> for TlsError {
    fn from(error: Error) -> Self {
        Self(error)
    }
}

/// What became of the cipher bytes given to [`Session::receive`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Received {
    /// Bytes to drop from the front of the cipher buffer.
    pub consumed: usize,
    /// The peer said that it will send nothing more (true from then on).
    pub peer_closed: bool,
}

/// A server's side of one TLS connection.
pub struct Session {
    conn: Box<UnbufferedServerConnection>,
    server_name: Option<Box<str>>,
    peer_closed: bool,
    /// Bytes at the front of the caller's buffer that belong to complete records which the library
    /// still needs: parts of a handshake message.
    retained: usize,
    failed: Option<Box<Error>>,
}

impl Session {
    /// Waits for a client's hello.
    ///
    /// # Errors
    ///
    /// When the library refuses the acceptor's configuration.
    pub fn new(acceptor: &Acceptor) -> Result<Self, TlsError> {
        let conn = Box::new(UnbufferedServerConnection::new(Arc::clone(&acceptor.tcp))?);
        Ok(Self { conn, server_name: None, peer_closed: false, retained: 0, failed: None })
    }

    /// Takes complete records from the front of `cipher`, appends what they carry to `plain` and
    /// what must be answered (handshake, alerts, key updates) to `out`. An incomplete record stays
    /// and is offered again with more bytes behind it; a record is at most 18,437 bytes, a
    /// fragmented handshake message at most 64 KiB.
    ///
    /// # Errors
    ///
    /// The session is over; `out` ends with the alert to send, and `cipher` is to be dropped.
    pub fn receive(
        &mut self,
        cipher: &mut [u8],
        plain: &mut Vec<u8>,
        out: &mut Vec<u8>,
    ) -> Result<Received, TlsError> {
        self.still_good()?;
        let Some(fresh) = cipher.get(self.retained..) else {
            return Err(self.fail(Error::General("bytes were dropped that are needed".into())));
        };
        let whole = self.retained + complete_records(fresh);
        let processed = self.process(cipher, plain, out);
        // Taken in any case, so that no name is left lying for the next session of this thread.
        let asked = certs::take_server_name();
        self.server_name = self.server_name.take().or(asked);
        let consumed = match processed {
            // After a close nothing more is looked at.
            Ok(_) if self.peer_closed => cipher.len(),
            Ok(consumed) => consumed,
            Err(error) => return Err(self.fail(error)),
        };
        self.retained = whole.saturating_sub(consumed);
        if self.retained > 0 && !self.conn.is_handshaking() {
            // RFC 8446 §5.1 lets messages span records; those that may come now have five bytes.
            return Err(self.fail(Error::General("unfinished post-handshake message".into())));
        }
        Ok(Received { consumed, peer_closed: self.peer_closed })
    }

    /// Lets the library work until it wants more bytes; tells how many it is done with.
    fn process(
        &mut self,
        cipher: &mut [u8],
        plain: &mut Vec<u8>,
        out: &mut Vec<u8>,
    ) -> Result<usize, Error> {
        let mut consumed = 0;
        loop {
            let UnbufferedStatus { discard, state } =
                self.conn.process_tls_records(&mut cipher[consumed..]);
            let mut done = false;
            match state {
                Ok(ConnectionState::ReadTraffic(mut traffic)) => {
                    while let Some(record) = traffic.next_record() {
                        plain.extend_from_slice(record?.payload);
                    }
                }
                Ok(ConnectionState::EncodeTlsData(data)) => encode(data, out)?,
                Ok(ConnectionState::TransmitTlsData(data)) => data.done(),
                Ok(ConnectionState::PeerClosed) => self.peer_closed = true,
                Ok(_) => done = true,
                Err(error) => {
                    self.flush(out);
                    return Err(error);
                }
            }
            consumed += discard;
            if done {
                return Ok(consumed);
            }
        }
    }

    /// Appends `plain` to `out` in records of at most 16 KiB.
    ///
    /// # Errors
    ///
    /// When the handshake is not over, or the keys are used up and cannot be changed (TLS 1.2).
    pub fn seal(&mut self, plain: &[u8], out: &mut Vec<u8>) -> Result<(), TlsError> {
        self.still_good()?;
        if self.conn.is_handshaking() {
            return Err(Error::HandshakeNotComplete.into());
        }
        let records = plain.len().div_ceil(PLAIN_PER_RECORD);
        let mut room = plain.len() + records * RECORD_OVERHEAD;
        loop {
            let UnbufferedStatus { state, .. } = self.conn.process_tls_records(&mut []);
            match state? {
                ConnectionState::EncodeTlsData(data) => encode(data, out)?,
                ConnectionState::TransmitTlsData(data) => data.done(),
                ConnectionState::WriteTraffic(mut traffic) => {
                    let start = out.len();
                    out.resize(start + room, 0);
                    match traffic.encrypt(plain, &mut out[start..]) {
                        Ok(written) => {
                            out.truncate(start + written);
                            return Ok(());
                        }
                        Err(EncryptError::InsufficientSize(size)) => {
                            out.truncate(start);
                            room = size.required_size;
                        }
                        Err(EncryptError::EncryptExhausted) => {
                            out.truncate(start);
                            return Err(Error::EncryptError.into());
                        }
                    }
                }
                _ => return Err(Error::HandshakeNotComplete.into()),
            }
        }
    }

    /// Appends a `close_notify`, once; nothing may be sealed afterwards. During the handshake there
    /// is nothing to say.
    pub fn close(&mut self, out: &mut Vec<u8>) {
        if self.failed.is_some() || self.conn.is_handshaking() {
            return;
        }
        self.flush(out);
        loop {
            let UnbufferedStatus { state, .. } = self.conn.process_tls_records(&mut []);
            match state {
                Ok(ConnectionState::TransmitTlsData(data)) => data.done(),
                Ok(ConnectionState::WriteTraffic(mut traffic)) => {
                    // Without room the alert is queued, and `flush` makes the room that it needs.
                    let _ = traffic.queue_close_notify(&mut []);
                    break;
                }
                _ => break,
            }
        }
        self.flush(out);
    }

    /// Ends the session.
    fn fail(&mut self, error: Error) -> TlsError {
        self.failed = Some(Box::new(error.clone()));
        error.into()
    }

    /// The error that ended the session, if one did.
    fn still_good(&self) -> Result<(), TlsError> {
        self.failed.as_ref().map_or(Ok(()), |error| Err(TlsError((**error).clone())))
    }

    /// Appends what the library has queued, and asks nothing else of it.
    fn flush(&mut self, out: &mut Vec<u8>) {
        while self.conn.wants_write() {
            let UnbufferedStatus { state, .. } = self.conn.process_tls_records(&mut []);
            let Ok(ConnectionState::EncodeTlsData(data)) = state else { return };
            if encode(data, out).is_err() {
                return;
            }
        }
    }

    /// Whether no plain bytes can be sealed yet.
    #[must_use]
    pub fn is_handshaking(&self) -> bool {
        self.conn.is_handshaking()
    }

    /// The application protocol that was agreed on.
    #[must_use]
    pub fn alpn(&self) -> Option<&[u8]> {
        self.conn.alpn_protocol()
    }

    /// The name that the client asked for, in lower case.
    #[must_use]
    pub fn server_name(&self) -> Option<&str> {
        self.server_name.as_deref()
    }

    /// The value of `$ssl_protocol`; empty during the handshake.
    #[must_use]
    pub fn protocol(&self) -> &'static str {
        self.conn.protocol_version().map_or("", names::version_name)
    }

    /// The value of `$ssl_cipher`; empty during the handshake.
    #[must_use]
    pub fn cipher(&self) -> &'static str {
        self.conn.negotiated_cipher_suite().map_or("", |suite| names::cipher_name(suite.suite()))
    }

    /// The value of `$ssl_curve`; empty when no key exchange took place.
    #[must_use]
    pub fn curve(&self) -> &'static str {
        let group = self.conn.negotiated_key_exchange_group();
        group.map_or("", |group| names::curve_name(group.name()))
    }

    /// Whether a former session was resumed (`$ssl_session_reused`).
    #[must_use]
    pub fn is_resumed(&self) -> bool {
        self.conn.handshake_kind() == Some(HandshakeKind::Resumed)
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session")
            .field("protocol", &self.protocol())
            .field("cipher", &self.cipher())
            .field("server_name", &self.server_name)
            .field("peer_closed", &self.peer_closed)
            .finish_non_exhaustive()
    }
}

/// How many bytes at the front of `bytes` are complete records (RFC 8446 §5.1).
fn complete_records(bytes: &[u8]) -> usize {
    let mut at = 0;
    while let Some(&[_, _, _, high, low]) = bytes[at..].first_chunk() {
        let len = RECORD_HEADER + usize::from(u16::from_be_bytes([high, low]));
        if bytes.len() - at < len {
            break;
        }
        at += len;
    }
    at
}

/// Appends one pending handshake or alert record to `out`.
fn encode<D>(mut data: EncodeTlsData<'_, D>, out: &mut Vec<u8>) -> Result<(), Error> {
    let start = out.len();
    let mut room = 0;
    loop {
        out.resize(start + room, 0);
        match data.encode(&mut out[start..]) {
            Ok(written) => {
                out.truncate(start + written);
                return Ok(());
            }
            Err(EncodeError::InsufficientSize(size)) if size.required_size > room => {
                room = size.required_size;
            }
            Err(error) => return Err(Error::General(error.to_string())),
        }
    }
}

#[cfg(test)]
mod tests;
