//! `$ssl_*`: the handshake, and the client's certificate.

use bolide_base::ClientCert;
use bolide_conf::vars::Var;
use bolide_http::escape::{UriPart, push_uri};

use super::{VariableScope, VariableValue, maybe, number, text};

const DAY: i64 = 24 * 60 * 60;

impl VariableScope<'_> {
    pub(super) fn write_tls(&self, var: &Var, out: &mut Vec<u8>) -> Option<VariableValue> {
        let tls = self.conn.tls.as_ref()?;
        let some = |value: &'static str| (!value.is_empty()).then_some(value.as_bytes());
        Some(match var {
            Var::SslProtocol => maybe(out, some(tls.protocol)),
            Var::SslCipher => maybe(out, some(tls.cipher)),
            Var::SslCurve => maybe(out, some(tls.curve)),
            Var::SslAlpnProtocol => maybe(out, some(tls.alpn)),
            Var::SslServerName => maybe(out, tls.server_name.as_deref().map(str::as_bytes)),
            Var::SslCiphers => maybe(out, tls.offers.as_ref().map(|offers| offers.0.as_bytes())),
            Var::SslCurves => maybe(out, tls.offers.as_ref().map(|offers| offers.1.as_bytes())),
            Var::SslSigalg => maybe(out, some(tls.signature)),
            Var::SslClientSigalg => maybe(out, some(tls.client_signature)),
            Var::SslSessionReused => text(out, if tls.reused { b"r" } else { b"." }),
            Var::SslEarlyData if self.request.head().early => text(out, b"1"),
            Var::SslEarlyData => VariableValue::No,
            Var::SslSessionId => match &tls.session_id {
                Some(id) => {
                    let digit = |half: u8| bolide_http::digits::HEX[usize::from(half)];
                    out.extend(id.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]));
                    VariableValue::Yes
                }
                None => VariableValue::No,
            },
            Var::SslClientVerify => match tls.client.as_ref().map(|cert| cert.fault) {
                None => text(out, b"NONE"),
                Some(None) => text(out, b"SUCCESS"),
                Some(Some(fault)) => {
                    text(out, b"FAILED:");
                    text(out, fault.words().as_bytes())
                }
            },
            _ => return self.write_client(var, tls.client.as_deref()?, out),
        })
    }

    #[cold]
    fn write_client(
        &self,
        var: &Var,
        cert: &ClientCert,
        out: &mut Vec<u8>,
    ) -> Option<VariableValue> {
        Some(match var {
            Var::SslClientSDn => text(out, &cert.subject),
            Var::SslClientIDn => text(out, &cert.issuer),
            Var::SslClientSDnLegacy => text(out, &cert.subject_legacy),
            Var::SslClientIDnLegacy => text(out, &cert.issuer_legacy),
            Var::SslClientSerial => text(out, &cert.serial),
            Var::SslClientFingerprint => text(out, &cert.fingerprint),
            Var::SslClientVStart => text(out, &cert.start),
            Var::SslClientVEnd => text(out, &cert.end),
            Var::SslClientVRemain => {
                let now = i64::try_from(self.now.unix_millis / 1000).unwrap_or(i64::MAX);
                let days = (cert.end_seconds.saturating_sub(now) / DAY).max(0);
                number(out, days.unsigned_abs())
            }
            Var::SslClientRawCert => text(out, &cert.pem),
            Var::SslClientEscapedCert => {
                push_uri(out, &cert.pem, UriPart::Component);
                VariableValue::Yes
            }
            Var::SslClientCert => {
                // An obsolete multi-line field value (HTTP/1.0).
                let lines = cert.pem.strip_suffix(b"\n").unwrap_or(&cert.pem);
                for line in lines.split_inclusive(|byte| *byte == b'\n') {
                    out.extend_from_slice(line);
                    if line.ends_with(b"\n") {
                        out.push(b'\t');
                    }
                }
                VariableValue::Yes
            }
            _ => return None,
        })
    }
}
