//! The part of a session that rustls does, call by call: handshake records, and those of TLS 1.2.

use rustls::server::UnbufferedServerConnection;
use rustls::unbuffered::{
    ConnectionState, EncodeError, EncodeTlsData, EncryptError, UnbufferedStatus,
};
use rustls::{Error, HandshakeKind};

use super::{Facts, HandshakeFacts};
use crate::names;
use crate::records::{HEADER as RECORD_HEADER, PLAIN_PER_RECORD};
use crate::sealed_records::RecordRoom;

/// Bytes of a record beyond its plain bytes, in the costliest suite of TLS 1.2.
const RECORD_OVERHEAD: usize = RECORD_HEADER + 8 + 16 + 1;

/// Length of the record at the front of `bytes`, if it is complete (RFC 8446 §5.1).
pub(super) fn first_record(bytes: &[u8]) -> Option<usize> {
    let &[_, _, _, high, low] = bytes.first_chunk()?;
    let len = RECORD_HEADER + usize::from(u16::from_be_bytes([high, low]));
    (bytes.len() >= len).then_some(len)
}

/// How many bytes at the front of `bytes` are complete records.
pub(super) fn complete_records(bytes: &[u8]) -> usize {
    let mut at = 0;
    while let Some(len) = first_record(&bytes[at..]) {
        at += len;
    }
    at
}

/// Runs the library until it needs more bytes; returns how many it has consumed.
pub(super) fn process(
    conn: &mut UnbufferedServerConnection,
    cipher: &mut [u8],
    plain: &mut Vec<u8>,
    out: &mut Vec<u8>,
    peer_closed: &mut bool,
) -> Result<usize, Error> {
    let mut consumed = 0;
    loop {
        let UnbufferedStatus { discard, state } = conn.process_tls_records(&mut cipher[consumed..]);
        let mut done = false;
        match state {
            Ok(ConnectionState::ReadTraffic(mut traffic)) => {
                while let Some(record) = traffic.next_record() {
                    plain.extend_from_slice(record?.payload);
                }
            }
            Ok(ConnectionState::EncodeTlsData(data)) => encode(data, out)?,
            Ok(ConnectionState::TransmitTlsData(data)) => data.done(),
            Ok(ConnectionState::PeerClosed) => *peer_closed = true,
            Ok(_) => done = true,
            Err(error) => {
                flush(conn, out);
                return Err(error);
            }
        }
        consumed += discard;
        if done {
            return Ok(consumed);
        }
    }
}

/// Appends `plain` to `out` in records made by the library.
pub(super) fn seal(
    conn: &mut UnbufferedServerConnection,
    plain: &[u8],
    out: &mut impl RecordRoom,
) -> Result<(), Error> {
    if conn.is_handshaking() {
        return Err(Error::HandshakeNotComplete);
    }
    let records = plain.len().div_ceil(PLAIN_PER_RECORD);
    let mut room = plain.len() + records * RECORD_OVERHEAD;
    loop {
        let UnbufferedStatus { state, .. } = conn.process_tls_records(&mut []);
        match state? {
            ConnectionState::EncodeTlsData(data) => encode(data, out)?,
            ConnectionState::TransmitTlsData(data) => data.done(),
            ConnectionState::WriteTraffic(mut traffic) => {
                match out.push_record(room, |into| traffic.encrypt(plain, into)) {
                    Ok(()) => return Ok(()),
                    Err(EncryptError::InsufficientSize(size)) => room = size.required_size,
                    Err(EncryptError::EncryptExhausted) => return Err(Error::EncryptError),
                }
            }
            _ => return Err(Error::HandshakeNotComplete),
        }
    }
}

/// Appends a `close_notify` made by the library.
pub(super) fn close(conn: &mut UnbufferedServerConnection, out: &mut Vec<u8>) {
    flush(conn, out);
    loop {
        let UnbufferedStatus { state, .. } = conn.process_tls_records(&mut []);
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
    flush(conn, out);
}

/// Appends the bytes that the library has queued, and does nothing else with it.
fn flush(conn: &mut UnbufferedServerConnection, out: &mut Vec<u8>) {
    while conn.wants_write() {
        let UnbufferedStatus { state, .. } = conn.process_tls_records(&mut []);
        let Ok(ConnectionState::EncodeTlsData(data)) = state else { return };
        if encode(data, out).is_err() {
            return;
        }
    }
}

pub(super) fn facts_of(conn: &UnbufferedServerConnection) -> Facts {
    let group = conn.negotiated_key_exchange_group();
    Facts {
        protocol: conn.protocol_version().map_or("", names::version_name),
        cipher: conn
            .negotiated_cipher_suite()
            .map_or("", |suite| names::cipher_name(suite.suite())),
        curve: group.map_or("", |group| names::curve_name(group.name())),
        alpn: conn.alpn_protocol().map(Box::from),
        resumed: conn.handshake_kind() == Some(HandshakeKind::Resumed),
        client: None,
        heard: HandshakeFacts::default(),
    }
}

/// Appends one pending handshake or alert record to `out`.
fn encode<D>(mut data: EncodeTlsData<'_, D>, out: &mut impl RecordRoom) -> Result<(), Error> {
    let mut room = 0;
    loop {
        match out.push_record(room, |into| data.encode(into)) {
            Ok(()) => return Ok(()),
            Err(EncodeError::InsufficientSize(size)) if size.required_size > room => {
                room = size.required_size;
            }
            Err(error) => return Err(Error::General(error.to_string())),
        }
    }
}
