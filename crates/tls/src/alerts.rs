//! The alert that a client gets before its session is closed (RFC 8446 §6.2), where the library
//! sends none for a fault or another than the RFC names.
//!
//! It writes alerts in the clear only; encrypted ones come from the library or from `records`.

use rustls::{Error, InvalidMessage};

const UNEXPECTED_MESSAGE: u8 = 10;
const RECORD_OVERFLOW: u8 = 22;
const DECODE_ERROR: u8 = 50;
const PROTOCOL_VERSION: u8 = 70;
/// A fatal alert in a record of its own, without its description.
const FATAL: [u8; 6] = [21, 3, 3, 0, 2, 2];
/// The offset of the version in a hello, after the heads of its record and message.
const VERSION_AT: usize = 9;
/// Bytes of a record that are examined.
pub(crate) const HELLO_START: usize = VERSION_AT + 2;

/// Whether bytes were sent to the client before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum AlreadySent {
    /// Nothing; all bytes are in the clear.
    #[default]
    Nothing,
    /// Something; later bytes may be encrypted.
    Something,
}

/// Makes `out`, whose bytes after `said` are new, end with the alert that `error` requires.
/// `record` begins with the offending record.
pub(crate) fn settle(
    error: &Error,
    record: &[u8],
    before: AlreadySent,
    said: usize,
    out: &mut Vec<u8>,
) {
    // RFC 8446 §6.2: an alert must not be answered by another.
    if matches!(error, Error::AlertReceived(_)) {
        return;
    }
    let due = named(error, record);
    let own = out.get_mut(said..).unwrap_or_default();
    match (own.split_last_mut(), due) {
        (Some((alert, head)), Some(due)) if *head == FATAL => *alert = due,
        (None, _) if before == AlreadySent::Nothing => {
            out.extend_from_slice(&FATAL);
            out.push(due.unwrap_or(DECODE_ERROR));
        }
        _ => {}
    }
}

/// The alert that the RFC requires, where the library sends another.
fn named(error: &Error, record: &[u8]) -> Option<u8> {
    match error {
        // RFC 8446 §5.1, §5.4
        Error::InvalidMessage(
            InvalidMessage::InvalidContentType | InvalidMessage::InvalidEmptyPayload,
        ) => Some(UNEXPECTED_MESSAGE),
        // RFC 8446 §5.1, §5.2
        Error::InvalidMessage(InvalidMessage::MessageTooLarge) => Some(RECORD_OVERFLOW),
        // RFC 8446 §4.2.1: an old version takes precedence over a missing offer.
        Error::PeerIncompatible(_) if is_old(record) => Some(PROTOCOL_VERSION),
        _ => None,
    }
}

/// Whether a record has a hello of TLS 1.1 or older.
fn is_old(record: &[u8]) -> bool {
    let kinds = (record.first(), record.get(5));
    let version = record.get(VERSION_AT..HELLO_START);
    kinds == (Some(&22), Some(&1)) && version.is_some_and(|version| *version < [3, 3][..])
}

#[cfg(test)]
mod tests {
    use super::{AlreadySent, settle};
    use rustls::{AlertDescription, Error, InvalidMessage, PeerIncompatible};

    fn settled(error: &Error, record: &[u8], before: AlreadySent, own: &[u8]) -> Vec<u8> {
        let mut out = [b"earlier", own].concat();
        settle(error, record, before, 7, &mut out);
        out.split_off(7)
    }

    #[test]
    fn a_fault_without_an_alert_gets_one_before_anything_was_said() {
        let error = Error::InvalidMessage(InvalidMessage::HandshakePayloadTooLarge);
        assert_eq!(settled(&error, b"", AlreadySent::Nothing, b""), [21, 3, 3, 0, 2, 2, 50]);
        assert_eq!(settled(&error, b"", AlreadySent::Something, b""), b"");
        let heard = Error::AlertReceived(AlertDescription::HandshakeFailure);
        assert_eq!(settled(&heard, b"", AlreadySent::Nothing, b""), b"");
    }

    #[test]
    fn an_alert_in_the_clear_becomes_the_one_that_is_due() {
        let error = Error::InvalidMessage(InvalidMessage::MessageTooLarge);
        let plain = [21, 3, 3, 0, 2, 2, 50];
        assert_eq!(settled(&error, b"", AlreadySent::Nothing, &plain)[6], 22);
        let sealed = [23, 3, 3, 0, 2, 7, 7, 7];
        assert_eq!(settled(&error, b"", AlreadySent::Something, &sealed), sealed);
        let error = Error::from(PeerIncompatible::SignatureAlgorithmsExtensionRequired);
        let hello = |minor: u8| [22, 3, 1, 0, 60, 1, 0, 0, 56, 3, minor];
        let said = [21, 3, 3, 0, 2, 2, 40];
        assert_eq!(settled(&error, &hello(2), AlreadySent::Nothing, &said)[6], 70);
        assert_eq!(settled(&error, &hello(3), AlreadySent::Nothing, &said)[6], 40);
    }
}
