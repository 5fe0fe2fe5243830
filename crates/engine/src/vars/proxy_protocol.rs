//! `$proxy_protocol_*`: the fields of a PROXY protocol header.

use bolide_conf::vars::Var;

use super::{VariableScope, VariableValue, maybe, number, text};
use crate::request::RequestNote;

/// Names of TLVs, in nginx's spelling.
const FIELDS: [(&[u8], u8); 5] =
    [(b"alpn", 1), (b"authority", 2), (b"unique_id", 5), (b"ssl", 0x20), (b"netns", 0x30)];

/// Names of TLVs within `ssl`.
const SSL_FIELDS: [(&[u8], u8); 5] =
    [(b"version", 0x21), (b"cn", 0x22), (b"cipher", 0x23), (b"sig_alg", 0x24), (b"key_alg", 0x25)];

/// The type of the TLV that contains others, and the bytes before them.
const SSL: u8 = 0x20;
const SSL_FIXED: usize = 5;

/// Why a TLV has no value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Missing {
    /// It is absent.
    Absent,
    /// The TLVs are truncated before it.
    Broken,
    /// The name is unknown.
    Unknown,
}

impl VariableScope<'_> {
    /// Appends the value of `var`, if it is one of these.
    pub(super) fn write_proxy_protocol(
        &self,
        var: &Var,
        out: &mut Vec<u8>,
    ) -> Option<VariableValue> {
        let said = self.conn.relay.facts()?;
        let port = |out: &mut Vec<u8>, port| match port {
            0 => VariableValue::Yes,
            port => number(out, u64::from(port)),
        };
        Some(match var {
            Var::ProxyProtocolAddr => text(out, said.source.as_bytes()),
            Var::ProxyProtocolPort => port(out, said.source_port),
            Var::ProxyProtocolServerAddr => text(out, said.target.as_bytes()),
            Var::ProxyProtocolServerPort => port(out, said.target_port),
            Var::ProxyProtocolTlv(name) if name.as_bytes() == b"ssl_verify" => {
                match find(&said.fields, SSL) {
                    Ok(ssl) if ssl.len() >= SSL_FIXED => {
                        let code = [ssl[1], ssl[2], ssl[3], ssl[4]];
                        number(out, u64::from(u32::from_be_bytes(code)))
                    }
                    found => self.missing(name, found.err().unwrap_or(Missing::Broken)),
                }
            }
            Var::ProxyProtocolTlv(name) => match field(&said.fields, name.as_bytes()) {
                Ok(value) => maybe(out, Some(value)),
                Err(why) => self.missing(name, why),
            },
            _ => return None,
        })
    }

    fn missing(&self, name: &str, why: Missing) -> VariableValue {
        let message = match why {
            Missing::Absent => return VariableValue::No,
            Missing::Broken => "broken PROXY protocol TLV".to_owned(),
            Missing::Unknown => format!("unknown PROXY protocol TLV \"{name}\""),
        };
        self.request.notes.borrow_mut().push(RequestNote::Text(message));
        VariableValue::No
    }
}

/// The value of the TLV called `name`.
fn field<'f>(fields: &'f [u8], name: &[u8]) -> Result<&'f [u8], Missing> {
    match name.strip_prefix(b"ssl_") {
        Some(inner) => {
            let ssl = find(fields, SSL)?;
            let inside = ssl.get(SSL_FIXED..).ok_or(Missing::Broken)?;
            find(inside, kind(&SSL_FIELDS, inner).ok_or(Missing::Unknown)?)
        }
        None => find(fields, kind(&FIELDS, name).ok_or(Missing::Unknown)?),
    }
}

/// The type of a name: from a table, or a number like `0x01`.
fn kind(table: &[(&[u8], u8)], name: &[u8]) -> Option<u8> {
    if let Some((_, kind)) = table.iter().find(|(known, _)| *known == name) {
        return Some(*kind);
    }
    let digits = std::str::from_utf8(name.strip_prefix(b"0x")?).ok()?;
    let is_number = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_number.then(|| u8::from_str_radix(digits, 16).ok())?
}

/// The value of the first TLV of this type.
fn find(mut fields: &[u8], kind: u8) -> Result<&[u8], Missing> {
    while !fields.is_empty() {
        let [found, high, low, rest @ ..] = fields else { return Err(Missing::Broken) };
        let len = usize::from(u16::from_be_bytes([*high, *low]));
        let value = rest.get(..len).ok_or(Missing::Broken)?;
        if *found == kind {
            return Ok(value);
        }
        fields = &rest[len..];
    }
    Err(Missing::Absent)
}

#[cfg(test)]
mod tests {
    use super::{Missing, field};

    const FIELDS: &[u8] = b"\x01\0\x02h2\x20\0\x0d\x01\0\0\0\x05\x21\0\x05TLSv1\xea\0\x04vpce";

    #[test]
    fn fields_are_found_by_name_and_by_number() {
        let found = |name: &str| field(FIELDS, name.as_bytes());
        assert_eq!(found("alpn"), Ok(&b"h2"[..]));
        assert_eq!(found("0x01"), Ok(&b"h2"[..]));
        assert_eq!(found("0xea"), Ok(&b"vpce"[..]));
        assert_eq!(found("ssl_version"), Ok(&b"TLSv1"[..]));
        assert_eq!(found("netns"), Err(Missing::Absent));
        assert_eq!(found("ssl_cn"), Err(Missing::Absent));
        assert_eq!(found("nope"), Err(Missing::Unknown));
        assert_eq!(found("0x1ff"), Err(Missing::Unknown));
    }

    #[test]
    fn what_is_cut_off_is_broken_but_what_stands_before_is_not() {
        let cut = &FIELDS[..FIELDS.len() - 1];
        assert_eq!(field(cut, b"alpn"), Ok(&b"h2"[..]));
        assert_eq!(field(cut, b"0xea"), Err(Missing::Broken));
        assert_eq!(field(b"\x01", b"alpn"), Err(Missing::Broken));
        assert_eq!(field(b"\x20\0\x01\x01", b"ssl_cn"), Err(Missing::Broken));
    }
}
