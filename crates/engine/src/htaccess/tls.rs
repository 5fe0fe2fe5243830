//! TLS variables for `.htaccess` files.

use bolide_base::{ClientCert, Now};
use bolide_htaccess::{TlsVariable, dn_value};

use crate::connection::ConnInfo;

const DAY: i64 = 24 * 60 * 60;

/// Appends the value of a variable; nothing if it has none.
pub(super) fn push(which: TlsVariable, conn: &ConnInfo, now: Now, out: &mut Vec<u8>) {
    let Some(tls) = &conn.tls else { return };
    let text: &str = match which {
        TlsVariable::Protocol => tls.protocol,
        TlsVariable::Cipher => tls.cipher,
        TlsVariable::KeySize if tls.cipher.is_empty() => "",
        TlsVariable::KeySize if tls.cipher.contains("128") => "128",
        // AES of 256 bits, and ChaCha20.
        TlsVariable::KeySize => "256",
        TlsVariable::ServerName => tls.server_name.as_deref().unwrap_or_default(),
        TlsVariable::ClientVerify => match tls.client.as_ref().map(|cert| cert.fault) {
            None => "NONE",
            Some(None) => "SUCCESS",
            Some(Some(fault)) => {
                out.extend_from_slice(b"FAILED:");
                fault.words()
            }
        },
        _ => {
            if let Some(cert) = &tls.client {
                push_of_client(which, cert, now, out);
            }
            return;
        }
    };
    out.extend_from_slice(text.as_bytes());
}

/// Calls `show` with each variable for applications.
pub(super) fn each_exported(conn: &ConnInfo, now: Now, mut show: impl FnMut(&'static [u8], &[u8])) {
    let mut value = Vec::new();
    for (name, which) in TlsVariable::exported().filter(|_| conn.tls.is_some()) {
        value.clear();
        push(which, conn, now, &mut value);
        if !value.is_empty() {
            show(name.as_bytes(), &value);
        }
    }
}

fn push_of_client(which: TlsVariable, cert: &ClientCert, now: Now, out: &mut Vec<u8>) {
    let text: &[u8] = match which {
        TlsVariable::Subject(None) => &cert.subject,
        TlsVariable::Issuer(None) => &cert.issuer,
        TlsVariable::Serial => &cert.serial,
        TlsVariable::ValidFrom => &cert.start,
        TlsVariable::ValidUntil => &cert.end,
        TlsVariable::Certificate => &cert.pem,
        TlsVariable::Subject(Some(part)) => {
            return out.extend(dn_value(&cert.subject, part).unwrap_or_default());
        }
        TlsVariable::Issuer(Some(part)) => {
            return out.extend(dn_value(&cert.issuer, part).unwrap_or_default());
        }
        TlsVariable::DaysLeft => {
            let now = i64::try_from(now.unix_seconds()).unwrap_or(i64::MAX);
            let days = (cert.end_seconds.saturating_sub(now) / DAY).max(0);
            bolide_http::digits::push_decimal(out, days.unsigned_abs());
            return;
        }
        _ => return,
    };
    out.extend_from_slice(text);
}
