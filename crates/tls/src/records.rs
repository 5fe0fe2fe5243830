//! The record layer of TLS 1.3 after the handshake (RFC 8446 §5): encrypts into another buffer,
//! decrypts in place, handles and sends key updates and alerts. It refuses all other messages.
//!
//! ```text
//!            ┌─ KeyUpdate: next keys ─┐
//!            ▼                        │
//!   Open ────┴──── records ───────────┘──── close_notify ──▶ peer closed (still seals)
//!     ├── close ──▶ sealing refused
//!     └── Err: alert in `out` (the caller never comes back)
//! ```
//!
//! Easiest to break: a sequence number is used once per key. It advances only in
//! [`Lane::next_nonce`], which never returns the same one twice, and restarts at zero only together
//! with another key.

use aws_lc_rs::aead::{
    AES_128_GCM, AES_256_GCM, Aad, Algorithm, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce,
    UnboundKey,
};
use rustls::kernel::KernelConnection;
use rustls::server::ServerConnectionData;
use rustls::{
    AlertDescription, ConnectionTrafficSecrets, ContentType, Error, ExtractedSecrets,
    InvalidMessage, PeerMisbehaved,
};

use crate::sealed_records::RecordRoom;

/// Plain bytes in one record at most (RFC 8446 §5.1).
pub(crate) const PLAIN_PER_RECORD: usize = 16 * 1024;
/// Type, version and length of a record.
pub(crate) const HEADER: usize = 5;
/// The tag of all suites of TLS 1.3.
const TAG: usize = 16;
/// The type that follows the content, and the tag.
const TAIL: usize = 1 + TAG;
/// RFC 8446 §5.2: the most bytes in a record.
const SEALED_MAX: usize = PLAIN_PER_RECORD + 256;
/// Consecutive key updates of the peer without data; each costs a derivation.
const UPDATES_MAX: u8 = 32;
/// Warnings to ignore (RFC 8446 §6.1: `user_canceled`).
const WARNINGS_MAX: u8 = 4;
/// RFC 8446 §5.3: sequence numbers do not wrap; no suite has a higher limit of its own.
const SEQUENCE_MAX: u64 = u64::MAX - 0xffff;

const ALERT: u8 = 21;
const HANDSHAKE: u8 = 22;
const DATA: u8 = 23;
/// A `KeyUpdate` message that requests none in return (RFC 8446 §4.6.3).
const KEY_UPDATE: [u8; 5] = [24, 0, 0, 1, 0];

/// Keys of one direction.
pub(crate) struct Lane {
    key: LessSafeKey,
    iv: [u8; NONCE_LEN],
    sequence: u64,
}

impl Lane {
    /// Keys that have been used for `sequence` records.
    ///
    /// # Errors
    ///
    /// When the secrets belong to an unknown suite.
    pub(crate) fn new((sequence, secrets): (u64, ConnectionTrafficSecrets)) -> Result<Self, Error> {
        let (algorithm, key, iv): (&'static Algorithm, _, _) = match &secrets {
            ConnectionTrafficSecrets::Aes128Gcm { key, iv } => (&AES_128_GCM, key, iv),
            ConnectionTrafficSecrets::Aes256Gcm { key, iv } => (&AES_256_GCM, key, iv),
            ConnectionTrafficSecrets::Chacha20Poly1305 { key, iv } => (&CHACHA20_POLY1305, key, iv),
            _ => return Err(Error::General("unknown traffic secrets".into())),
        };
        let key = UnboundKey::new(algorithm, key.as_ref())
            .map_err(|_| Error::General("traffic keys of a wrong size".into()))?;
        let iv = iv.as_ref().first_chunk().copied();
        let iv = iv.ok_or_else(|| Error::General("an IV of a wrong size".into()))?;
        Ok(Self { key: LessSafeKey::new(key), iv, sequence })
    }

    /// The nonce of the next record (RFC 8446 §5.3); each is returned once.
    #[inline]
    fn next_nonce(&mut self) -> Result<Nonce, Error> {
        if self.sequence >= SEQUENCE_MAX {
            return Err(Error::EncryptError);
        }
        let mut nonce = self.iv;
        if let Some(low) = nonce.last_chunk_mut::<8>() {
            *low = (u64::from_be_bytes(*low) ^ self.sequence).to_be_bytes();
        }
        self.sequence += 1;
        Ok(Nonce::assume_unique_for_key(nonce))
    }

    /// Appends one record.
    ///
    /// # Errors
    ///
    /// The keys are used up, or the library fails; nothing was appended.
    #[inline]
    pub(crate) fn seal(
        &mut self,
        kind: u8,
        content: &[u8],
        out: &mut impl RecordRoom,
    ) -> Result<(), Error> {
        let [high, low] = ((content.len() + TAIL) as u16).to_be_bytes();
        let header = [DATA, 3, 3, high, low];
        let nonce = self.next_nonce()?;
        out.push_record(HEADER + content.len() + TAIL, |room| {
            let size = room.len();
            let (head, body) = room.split_at_mut(HEADER);
            head.copy_from_slice(&header);
            let (sealed, tail) = body.split_at_mut(content.len());
            self.key
                .seal_out_of_place_scatter(nonce, Aad::from(header), content, sealed, &[kind], tail)
                .map_err(|_| Error::EncryptError)?;
            Ok(size)
        })
    }

    /// Decrypts one record in place: contents, type, padding.
    ///
    /// # Errors
    ///
    /// It was not encrypted with these keys and this number.
    #[inline]
    pub(crate) fn open<'a>(
        &mut self,
        header: [u8; HEADER],
        body: &'a mut [u8],
    ) -> Result<&'a mut [u8], Error> {
        let nonce = self.next_nonce()?;
        self.key.open_in_place(nonce, Aad::from(header), body).map_err(|_| Error::DecryptError)
    }
}

/// The type of a decrypted record.
enum Content {
    /// Application data of this length, at the front of the record's body.
    Data(usize),
    /// A message that has been handled.
    Other,
    /// `close_notify`
    Close,
}

/// Both directions of an established connection.
pub(crate) struct Records {
    kernel: KernelConnection<ServerConnectionData>,
    sealing: Lane,
    opening: Lane,
    /// Records that may be encrypted under one key (RFC 8446 §5.5).
    records_max: u64,
    /// The peer requested our next keys; it gets them before the next data.
    update_owed: bool,
    /// `close_notify` was sealed.
    closed: bool,
    updates: u8,
    warnings: u8,
}

impl Records {
    /// Takes over from the library.
    ///
    /// # Errors
    ///
    /// When the secrets belong to an unknown suite.
    pub(crate) fn new(
        secrets: ExtractedSecrets,
        kernel: KernelConnection<ServerConnectionData>,
    ) -> Result<Self, Error> {
        let suite = kernel.negotiated_cipher_suite();
        let records_max = suite.tls13().map_or(1 << 23, |suite| suite.common.confidentiality_limit);
        Ok(Self {
            kernel,
            sealing: Lane::new(secrets.tx)?,
            opening: Lane::new(secrets.rx)?,
            // One more is the message that announces the next keys, one more an alert.
            records_max: records_max.min(SEQUENCE_MAX) - 2,
            update_owed: false,
            closed: false,
            updates: 0,
            warnings: 0,
        })
    }

    /// Decrypts the complete records at the front of `cipher` and appends their data to `plain`;
    /// returns their size in bytes, and whether the last was `close_notify`.
    ///
    /// # Errors
    ///
    /// The connection has ended; `out` ends with the alert to send, if one is due.
    #[inline]
    pub(crate) fn receive(
        &mut self,
        cipher: &mut [u8],
        plain: &mut Vec<u8>,
        out: &mut Vec<u8>,
    ) -> Result<(usize, bool), Error> {
        let mut at = 0;
        while let Some((header, rest)) = cipher[at..].split_first_chunk_mut::<HEADER>() {
            let opened = match check(*header) {
                Ok(len) if rest.len() < len => break,
                Ok(len) => {
                    at += HEADER + len;
                    self.open(*header, &mut rest[..len]).map(|content| (content, rest))
                }
                Err(error) => Err(error),
            };
            match opened {
                Ok((Content::Data(len), body)) => plain.extend_from_slice(&body[..len]),
                Ok((Content::Other, _)) => {}
                Ok((Content::Close, _)) => return Ok((at, true)),
                Err((error, alert)) => {
                    if let Some(alert) = alert {
                        self.say(alert, out);
                    }
                    return Err(error);
                }
            }
        }
        Ok((at, false))
    }

    /// Opens one record in place.
    #[inline]
    fn open(&mut self, header: [u8; HEADER], body: &mut [u8]) -> Result<Content, Fault> {
        let inner = self
            .opening
            .open(header, body)
            .map_err(|error| (error, Some(AlertDescription::BadRecordMac)))?;
        if inner.len() > PLAIN_PER_RECORD + 1 {
            return Err(OVERSIZED);
        }
        // RFC 8446 §5.4: the type is the last non-zero byte; the contents precede it.
        let Some(end) = inner.iter().rposition(|&byte| byte != 0) else {
            let error = Error::PeerMisbehaved(PeerMisbehaved::IllegalTlsInnerPlaintext);
            return Err((error, Some(AlertDescription::UnexpectedMessage)));
        };
        let (kind, content) = (inner[end], &inner[..end]);
        match kind {
            DATA => {
                self.updates = 0;
                Ok(Content::Data(end))
            }
            ALERT => self.hear(content),
            HANDSHAKE => self.handle_message(content),
            kind => Err(unexpected(kind)),
        }
    }

    /// Handles an alert (RFC 8446 §6).
    fn hear(&mut self, content: &[u8]) -> Result<Content, Fault> {
        let &[_, description] = content else {
            let error = Error::InvalidMessage(InvalidMessage::MissingData("Alert"));
            return Err((error, Some(AlertDescription::DecodeError)));
        };
        match AlertDescription::from(description) {
            AlertDescription::CloseNotify => Ok(Content::Close),
            AlertDescription::UserCanceled if self.warnings < WARNINGS_MAX => {
                self.warnings += 1;
                Ok(Content::Other)
            }
            // RFC 8446 §6.2: every other alert ends the connection, at any level.
            description => Err((Error::AlertReceived(description), None)),
        }
    }

    /// Handles the one message that a client may send now. RFC 8446 §5.1 lets messages span
    /// records, and share them; this one has five bytes and the keys change after it, so it does
    /// neither.
    fn handle_message(&mut self, content: &[u8]) -> Result<Content, Fault> {
        let &[24, 0, 0, 1, wish @ (0 | 1)] = content else {
            return Err(match content {
                [24, 0, 0, 1, _] => {
                    let error = Error::InvalidMessage(InvalidMessage::InvalidKeyUpdate);
                    (error, Some(AlertDescription::IllegalParameter))
                }
                _ => unexpected(HANDSHAKE),
            });
        };
        self.updates += 1;
        if self.updates > UPDATES_MAX {
            let error = Error::PeerMisbehaved(PeerMisbehaved::TooManyKeyUpdateRequests);
            return Err((error, Some(AlertDescription::UnexpectedMessage)));
        }
        let secrets = self.kernel.update_rx_secret();
        self.opening = secrets
            .and_then(Lane::new)
            .map_err(|error| (error, Some(AlertDescription::InternalError)))?;
        self.update_owed |= wish == 1;
        Ok(Content::Other)
    }

    /// Appends `plain` to `out` in records of at most `size` plain bytes.
    ///
    /// # Errors
    ///
    /// After [`Self::close`]; nothing more can be sent.
    #[inline]
    pub(crate) fn seal(
        &mut self,
        plain: &[u8],
        size: usize,
        out: &mut impl RecordRoom,
    ) -> Result<(), Error> {
        if self.closed {
            return Err(Error::EncryptError);
        }
        for piece in plain.chunks(size) {
            if self.update_owed || self.sealing.sequence >= self.records_max {
                self.update(out)?;
            }
            self.sealing.seal(DATA, piece, out)?;
        }
        Ok(())
    }

    /// Announces our next keys and switches to them.
    #[cold]
    fn update(&mut self, out: &mut impl RecordRoom) -> Result<(), Error> {
        self.sealing.seal(HANDSHAKE, &KEY_UPDATE, out)?;
        self.sealing = Lane::new(self.kernel.update_tx_secret()?)?;
        self.update_owed = false;
        Ok(())
    }

    /// Appends a `close_notify`, once.
    pub(crate) fn close(&mut self, out: &mut Vec<u8>) {
        if !self.closed {
            self.closed = true;
            // RFC 8446 §6.1: warning is its customary level.
            let _ = self.sealing.seal(ALERT, &[1, 0], out);
        }
    }

    /// Appends a fatal alert.
    fn say(&mut self, alert: AlertDescription, out: &mut Vec<u8>) {
        if !self.closed {
            self.closed = true;
            let _ = self.sealing.seal(ALERT, &[2, u8::from(alert)], out);
        }
    }

    /// Makes the next record of data the last under its key.
    #[cfg(test)]
    pub(crate) const fn wear_out(&mut self) {
        self.records_max = self.sealing.sequence + 1;
    }
}

/// Why the connection ends, and the alert for the peer.
type Fault = (Error, Option<AlertDescription>);

const OVERSIZED: Fault = (Error::PeerSentOversizedRecord, Some(AlertDescription::RecordOverflow));

#[cold]
fn unexpected(kind: u8) -> Fault {
    let expect_types = vec![ContentType::ApplicationData];
    let error = Error::InappropriateMessage { expect_types, got_type: ContentType::from(kind) };
    (error, Some(AlertDescription::UnexpectedMessage))
}

/// The length of a record's body, from its header.
#[inline]
fn check([kind, _, _, high, low]: [u8; HEADER]) -> Result<usize, Fault> {
    // RFC 8446 §5: after the handshake every record is encrypted. The version is ignored (§5.1); a
    // changed one fails the tag.
    if kind != DATA {
        return Err(unexpected(kind));
    }
    let len = usize::from(u16::from_be_bytes([high, low]));
    if len > SEALED_MAX { Err(OVERSIZED) } else { Ok(len) }
}
