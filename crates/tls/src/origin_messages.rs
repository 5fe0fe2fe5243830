//! Error log messages of failed TLS sessions with upstreams, in OpenSSL's words.

use rustls::{AlertDescription, Error, InvalidMessage, PeerIncompatible};

/// The part in brackets after `SSL_do_handshake() failed`.
pub(crate) fn of(error: &Error) -> String {
    match error {
        Error::AlertReceived(alert) => received(*alert),
        Error::InvalidMessage(
            InvalidMessage::InvalidContentType | InvalidMessage::UnknownProtocolVersion,
        ) => "SSL: error:0A00010B:SSL routines::wrong version number".to_owned(),
        Error::PeerIncompatible(
            PeerIncompatible::ServerDoesNotSupportTls12Or13
            | PeerIncompatible::ServerTlsVersionIsDisabledByOurConfig,
        ) => "SSL: error:0A000102:SSL routines::unsupported protocol".to_owned(),
        other => format!("SSL: {other}"),
    }
}

/// An alert has its number in OpenSSL's code, and a name that shows its version.
fn received(alert: AlertDescription) -> String {
    let number = u8::from(alert);
    let name = match number {
        10 => "ssl/tls alert unexpected message",
        20 => "ssl/tls alert bad record mac",
        40 => "ssl/tls alert handshake failure",
        42 => "ssl/tls alert bad certificate",
        43 => "ssl/tls alert unsupported certificate",
        44 => "ssl/tls alert certificate revoked",
        45 => "ssl/tls alert certificate expired",
        46 => "ssl/tls alert certificate unknown",
        47 => "ssl/tls alert illegal parameter",
        48 => "tlsv1 alert unknown ca",
        49 => "tlsv1 alert access denied",
        50 => "tlsv1 alert decode error",
        51 => "tlsv1 alert decrypt error",
        70 => "tlsv1 alert protocol version",
        71 => "tlsv1 alert insufficient security",
        80 => "tlsv1 alert internal error",
        86 => "tlsv1 alert inappropriate fallback",
        90 => "tlsv1 alert user cancelled",
        109 => "tlsv13 alert missing extension",
        110 => "tlsv1 unsupported extension",
        112 => "tlsv1 unrecognized name",
        116 => "tlsv13 alert certificate required",
        120 => "tlsv1 alert no application protocol",
        _ => "reason(unknown)",
    };
    let code = 0x0a00_0000 + 1000 + u32::from(number);
    format!("SSL: error:{code:08X}:SSL routines::{name}:SSL alert number {number}")
}
