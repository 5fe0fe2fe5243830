//! One TLS connection of a client as a byte machine: cipher bytes in, plain bytes out, and back.
//! The caller owns all buffers; the machine never waits and never touches a socket.
//!
//! ```text
//!                                      ┌─ TLS 1.3 ─▶ Records ─┐
//!   new ──receive──▶ Handshaking ──────┤                      ├──close_notify──▶ peer closed
//!                        │             └─ TLS 1.2 ─▶ Library ─┘
//!                        └────── Err: alert in `out`   (every later call fails the same way)
//! ```
//!
//! Easiest to break: `receive` changes the bytes that it did not consume (decrypted in place); they
//! must be passed again as they are, with new bytes only after them. And the library, while it
//! refers to a part of a handshake message in those bytes, panics when it is called without them.
//! So the handshake calls it only through `receive`, and after the handshake a client that leaves a
//! message unfinished is refused. The library gets one record of the handshake at a time, so that
//! it holds none after the last when `Records` takes over.

mod library;

use std::fmt;
use std::sync::Arc;

use bolide_base::ClientCert;
use rustls::server::UnbufferedServerConnection;
use rustls::{Error, ProtocolVersion, ServerConfig, SignatureScheme};

use crate::alerts::{self, AlreadySent, HELLO_START};
use crate::asking::take_client_signature;
use crate::by_name::Hello;
use crate::cert::take_signature;
use crate::certs::{CertificateQuery, Offers};
use crate::offers::signature_name;
use crate::records::{PLAIN_PER_RECORD, Records};
use crate::sealed_records::RecordRoom;
use crate::server_hello::ServerHello;
use crate::{Acceptor, CHALLENGE_PROTOCOL, certs};

/// The library's answer where no certificate is available: a fatal alert, in the clear.
const ACCESS_DENIED: [u8; 7] = [21, 3, 3, 0, 2, 2, 49];
/// Our answer instead, as in nginx (RFC 6066 §3).
const UNRECOGNIZED_NAME: [u8; 7] = [21, 3, 3, 0, 2, 2, 112];

/// Whether the first byte of a connection opens a TLS handshake; otherwise nginx answers
/// `400 The plain HTTP request was sent to HTTPS port`.
#[must_use]
pub const fn opens_handshake(first: u8) -> bool {
    first & 0x80 != 0 || first == 0x16
}

/// Why a session has ended. `Display` gives the text for the error log; the peer gets only the
/// alert.
#[derive(Clone, Debug)]
pub struct TlsError(Error);

impl TlsError {
    /// Whether the peer ended the session with an alert, which deserves a quieter log line.
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

/// The result of [`TlsSession::receive`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TlsReceived {
    /// Bytes to drop from the front of the cipher buffer.
    pub consumed: usize,
    /// The peer announced that it will send nothing more (true from then on).
    pub peer_closed: bool,
}

/// The implementation that encrypts and decrypts.
enum Stage {
    /// None yet: the settings depend on the name in the hello, which is incomplete.
    Hello(Box<Hello>),
    /// The library: the handshake, and all of TLS 1.2.
    Library(Box<UnbufferedServerConnection>),
    /// This crate: TLS 1.3 after the handshake.
    Records(Box<Records>),
    /// None; the session has failed.
    Failed,
}

impl Stage {
    fn library(config: &Arc<ServerConfig>) -> Result<Self, Error> {
        Ok(Self::Library(Box::new(UnbufferedServerConnection::new(Arc::clone(config))?)))
    }
}

/// The library's facts of an established session.
#[derive(Clone, Debug, Default)]
struct Facts {
    protocol: &'static str,
    cipher: &'static str,
    curve: &'static str,
    alpn: Option<Box<[u8]>>,
    resumed: bool,
    client: Option<Box<ClientCert>>,
    heard: HandshakeFacts,
}

/// Facts available only during the handshake.
#[derive(Clone, Debug, Default)]
struct HandshakeFacts {
    offers: Option<Box<Offers>>,
    /// Our own ServerHello, where a variable needs it.
    hello: Option<Box<ServerHello>>,
    signed: Option<SignatureScheme>,
    client_signed: Option<SignatureScheme>,
}

/// A server's side of one TLS connection.
pub struct TlsSession {
    stage: Stage,
    /// The facts of the established session.
    facts: Option<Box<Facts>>,
    server_name: Option<Box<str>>,
    heard: HandshakeFacts,
    /// Verifies the client's certificates, when a server requests them.
    judge: Option<Box<Acceptor>>,
    peer_closed: bool,
    /// Bytes at the front of the caller's buffer that belong to complete records which the library
    /// still needs: parts of a handshake message.
    retained: usize,
    failed: Option<Box<Error>>,
    /// Whether bytes were sent to the client.
    already_sent: AlreadySent,
    /// Plain bytes in one record at most.
    record_size: usize,
}

impl TlsSession {
    /// Waits for a client's hello.
    ///
    /// # Errors
    ///
    /// When the library refuses the acceptor's configuration.
    pub fn new(acceptor: &Acceptor) -> Result<Self, TlsError> {
        if acceptor.asks_clients() {
            // A QUIC hello on this thread may have left a record that is not this client's.
            let _ = certs::take_server_name();
        }
        let stage = match &acceptor.by_name {
            Some(by_name) => Stage::Hello(Box::new(Hello::new(by_name))),
            None => Stage::library(&acceptor.tcp)?,
        };
        Ok(Self {
            stage,
            facts: None,
            server_name: None,
            heard: HandshakeFacts::default(),
            judge: acceptor.asks_clients().then(|| Box::new(acceptor.clone())),
            peer_closed: false,
            retained: 0,
            failed: None,
            already_sent: AlreadySent::Nothing,
            record_size: PLAIN_PER_RECORD,
        })
    }

    /// Takes complete records from the front of `cipher`, appends their data to `plain` and the
    /// reply (handshake, alerts) to `out`. An incomplete record stays and is passed again with more
    /// bytes after it; a record is at most 18,437 bytes, a fragmented handshake message at most 64
    /// KiB. The next [`Self::seal`] answers a key update.
    ///
    /// # Errors
    ///
    /// The session has ended; `out` ends with the alert to send, and the caller drops `cipher`.
    pub fn receive(
        &mut self,
        cipher: &mut [u8],
        plain: &mut Vec<u8>,
        out: &mut Vec<u8>,
    ) -> Result<TlsReceived, TlsError> {
        self.still_good()?;
        if self.peer_closed {
            // After a close all bytes are ignored.
            return Ok(TlsReceived { consumed: cipher.len(), peer_closed: true });
        }
        if let Stage::Hello(hello) = &mut self.stage {
            match hello.receive(cipher) {
                Ok(Some(config)) => self.stage = Stage::library(&config)?,
                Ok(None) => return Ok(TlsReceived::default()),
                Err(error) => {
                    alerts::settle(&error, cipher, self.already_sent, out.len(), out);
                    return Err(self.fail(error));
                }
            }
        }
        let mut consumed = 0;
        if matches!(self.stage, Stage::Library(_)) {
            consumed = match self.receive_by_library(cipher, plain, out) {
                Ok(consumed) => consumed,
                Err(error) => return Err(self.fail(error)),
            };
        }
        if let Stage::Records(records) = &mut self.stage {
            match records.receive(&mut cipher[consumed..], plain, out) {
                Ok((taken, closed)) => {
                    consumed += taken;
                    self.peer_closed = closed;
                }
                Err(error) => return Err(self.fail(error)),
            }
        }
        if self.peer_closed {
            consumed = cipher.len();
        }
        Ok(TlsReceived { consumed, peer_closed: self.peer_closed })
    }

    /// Passes complete records to the library: one at a time until the handshake is over, then all.
    fn receive_by_library(
        &mut self,
        cipher: &mut [u8],
        plain: &mut Vec<u8>,
        out: &mut Vec<u8>,
    ) -> Result<usize, Error> {
        let mut consumed = 0;
        loop {
            let Stage::Library(conn) = &mut self.stage else { return Ok(consumed) };
            let offered = &mut cipher[consumed..];
            let Some(fresh) = offered.get(self.retained..) else {
                return Err(Error::General("bytes were dropped that are needed".into()));
            };
            let handshaking = conn.is_handshaking();
            let complete = if handshaking {
                library::first_record(fresh).unwrap_or(0)
            } else {
                library::complete_records(fresh)
            };
            let whole = self.retained + complete;
            // The library sees incomplete records too: garbage is refused early.
            let shown = if handshaking && complete > 0 { whole } else { offered.len() };
            if handshaking {
                // A QUIC hello on this thread may have left a record that is not this client's.
                let _ = (certs::take_server_name(), take_signature(), take_client_signature());
            }
            let said = out.len();
            // The library works in place.
            let mut start = [0; HELLO_START];
            let kept = offered.len().min(HELLO_START);
            start[..kept].copy_from_slice(&offered[..kept]);
            let processed =
                library::process(conn, &mut offered[..shown], plain, out, &mut self.peer_closed);
            let is_handshaking = conn.is_handshaking();
            // Taken in any case, so that no name remains for the next session of this thread.
            let CertificateQuery { name, offers, is_refused, .. } = certs::take_asked();
            self.server_name = self.server_name.take().or(name);
            if handshaking {
                self.heard.offers = self.heard.offers.take().or(offers);
                if self.heard.offers.is_some()
                    && let Some(hello) = ServerHello::of(&out[said..])
                {
                    self.heard.hello = Some(Box::new(hello));
                }
                self.heard.signed = self.heard.signed.or(take_signature());
                self.heard.client_signed = self.heard.client_signed.or(take_client_signature());
            }
            if is_refused && processed.is_err() && out.ends_with(&ACCESS_DENIED) {
                let at = out.len() - UNRECOGNIZED_NAME.len();
                out[at..].copy_from_slice(&UNRECOGNIZED_NAME);
            }
            if let Err(error) = &processed {
                alerts::settle(error, &start[..kept], self.already_sent, said, out);
            }
            if out.len() > said {
                self.already_sent = AlreadySent::Something;
            }
            let taken = processed?;
            consumed += taken;
            self.retained = whole.saturating_sub(taken);
            if self.retained > 0 && !is_handshaking {
                // RFC 8446 §5.1 lets messages span records; the ones allowed now do not.
                return Err(Error::General("unfinished post-handshake message".into()));
            }
            if handshaking && !is_handshaking {
                self.establish()?;
            }
            let is_over = !handshaking || complete == 0 || self.peer_closed;
            if is_over || consumed + self.retained == cipher.len() {
                return Ok(consumed);
            }
        }
    }

    /// Records the library's facts, and takes its keys where this crate handles the records.
    fn establish(&mut self) -> Result<(), Error> {
        let Stage::Library(conn) = std::mem::replace(&mut self.stage, Stage::Failed) else {
            return Ok(());
        };
        let mut facts = library::facts_of(&conn);
        facts.heard = std::mem::take(&mut self.heard);
        if let Some(judge) = self.judge.take() {
            facts.client = judge.client_cert(self.server_name(), conn.peer_certificates());
        }
        self.facts = Some(Box::new(facts));
        let is_ours = conn.protocol_version() == Some(ProtocolVersion::TLSv1_3);
        self.stage = if is_ours && !self.peer_closed {
            let (secrets, kernel) = conn.dangerous_into_kernel_connection()?;
            Stage::Records(Box::new(Records::new(secrets, kernel)?))
        } else {
            Stage::Library(conn)
        };
        Ok(())
    }

    /// Makes [`Self::seal`] produce records smaller than 16 KiB.
    pub fn limit_records(&mut self, size: usize) {
        self.record_size = size.clamp(1, PLAIN_PER_RECORD);
    }

    /// Appends `plain` to `out` in records.
    ///
    /// # Errors
    ///
    /// When the handshake is not over, or the keys are used up and cannot be changed (TLS 1.2).
    #[inline]
    pub fn seal(&mut self, plain: &[u8], out: &mut impl RecordRoom) -> Result<(), TlsError> {
        self.still_good()?;
        match &mut self.stage {
            Stage::Records(records) => Ok(records.seal(plain, self.record_size, out)?),
            Stage::Library(conn) => {
                for piece in plain.chunks(self.record_size) {
                    library::seal(conn, piece, out)?;
                }
                Ok(())
            }
            Stage::Hello(_) | Stage::Failed => Err(Error::HandshakeNotComplete.into()),
        }
    }

    /// Appends a `close_notify`, once; nothing may be sealed afterwards. During the handshake it
    /// appends nothing.
    pub fn close(&mut self, out: &mut Vec<u8>) {
        if self.failed.is_some() {
            return;
        }
        match &mut self.stage {
            Stage::Records(records) => records.close(out),
            Stage::Library(conn) if !conn.is_handshaking() => library::close(conn, out),
            Stage::Library(_) | Stage::Hello(_) | Stage::Failed => {}
        }
    }

    /// Ends the session.
    fn fail(&mut self, error: Error) -> TlsError {
        self.failed = Some(Box::new(error.clone()));
        error.into()
    }

    /// The error that ended the session, if one did.
    #[inline]
    fn still_good(&self) -> Result<(), TlsError> {
        self.failed.as_ref().map_or(Ok(()), |error| Err(TlsError((**error).clone())))
    }

    /// Whether the handshake failed by what one side offered and the other did not accept. Garbage
    /// is no refusal, and neither is a client that leaves without a word.
    #[must_use]
    pub fn is_refused(&self) -> bool {
        self.failed.as_deref().is_some_and(|error| {
            !matches!(
                error,
                Error::InvalidMessage(_)
                    | Error::InappropriateMessage { .. }
                    | Error::InappropriateHandshakeMessage { .. }
                    | Error::PeerMisbehaved(_)
                    | Error::PeerSentOversizedRecord
                    | Error::DecryptError
            )
        })
    }

    /// Whether data cannot be encrypted yet.
    #[must_use]
    pub const fn is_handshaking(&self) -> bool {
        self.facts.is_none()
    }

    /// Whether the peer said that it will send nothing more.
    #[must_use]
    pub const fn peer_closed(&self) -> bool {
        self.peer_closed
    }

    /// The negotiated application protocol.
    #[must_use]
    pub fn alpn(&self) -> Option<&[u8]> {
        self.facts.as_ref()?.alpn.as_deref()
    }

    /// Whether the handshake was all that the client, an issuer of certificates, wanted.
    #[must_use]
    pub fn proves_name(&self) -> bool {
        self.alpn() == Some(CHALLENGE_PROTOCOL)
    }

    /// The server name that the client sent, in lower case.
    #[must_use]
    pub fn server_name(&self) -> Option<&str> {
        self.server_name.as_deref()
    }

    /// Takes the facts of the client's certificate, once.
    pub fn take_client_cert(&mut self) -> Option<Box<ClientCert>> {
        self.facts.as_mut()?.client.take()
    }

    /// The value of `$ssl_protocol`; empty during the handshake.
    #[must_use]
    pub fn protocol(&self) -> &'static str {
        self.facts.as_ref().map_or("", |facts| facts.protocol)
    }

    /// The value of `$ssl_cipher`; empty during the handshake.
    #[must_use]
    pub fn cipher(&self) -> &'static str {
        self.facts.as_ref().map_or("", |facts| facts.cipher)
    }

    /// The value of `$ssl_curve`; empty without a key exchange.
    #[must_use]
    pub fn curve(&self) -> &'static str {
        self.facts.as_ref().map_or("", |facts| facts.curve)
    }

    /// The values of `$ssl_ciphers` and `$ssl_curves`; `None` if they are not recorded.
    pub fn take_offers(&mut self) -> Option<(Box<str>, Box<str>)> {
        let offers = self.facts.as_mut()?.heard.offers.take()?;
        Some((offers.ciphers, offers.curves))
    }

    /// The value of `$ssl_session_id` in bytes; `None` if it is not recorded or absent.
    pub fn take_session_id(&mut self) -> Option<Box<[u8]>> {
        let facts = self.facts.as_mut()?;
        let id = facts.heard.hello.take()?.session_id(facts.protocol);
        (!id.is_empty()).then(|| id.into())
    }

    /// The value of `$ssl_sigalg`; empty when a session was resumed.
    #[must_use]
    pub fn signature(&self) -> &'static str {
        let facts = self.facts.as_ref().filter(|facts| !facts.resumed);
        facts.and_then(|facts| facts.heard.signed).map_or("", signature_name)
    }

    /// The value of `$ssl_client_sigalg`; empty when the client signed nothing.
    #[must_use]
    pub fn client_signature(&self) -> &'static str {
        let facts = self.facts.as_ref();
        facts.and_then(|facts| facts.heard.client_signed).map_or("", signature_name)
    }

    /// Whether a former session was resumed (`$ssl_session_reused`).
    #[must_use]
    pub fn is_resumed(&self) -> bool {
        self.facts.as_ref().is_some_and(|facts| facts.resumed)
    }
}

impl fmt::Debug for TlsSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session")
            .field("protocol", &self.protocol())
            .field("cipher", &self.cipher())
            .field("server_name", &self.server_name)
            .field("peer_closed", &self.peer_closed)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
