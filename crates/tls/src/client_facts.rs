//! The facts of a client's certificate, in the form of `$ssl_client_*`. It verifies nothing.

use aws_lc_rs::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};
use bolide_base::ClientCert;
use bolide_base::client_cert::ClientCertFault;
use x509_parser::certificate::X509Certificate;
use x509_parser::der_parser::asn1_rs::{Any, Tag, ToDer as _};
use x509_parser::time::ASN1Time;
use x509_parser::x509::{AttributeTypeAndValue, X509Name};

/// OpenSSL's short names of attributes in names.
const SHORT_NAMES: [(&str, &str); 26] = [
    ("2.5.4.3", "CN"),
    ("2.5.4.4", "SN"),
    ("2.5.4.5", "serialNumber"),
    ("2.5.4.6", "C"),
    ("2.5.4.7", "L"),
    ("2.5.4.8", "ST"),
    ("2.5.4.9", "street"),
    ("2.5.4.10", "O"),
    ("2.5.4.11", "OU"),
    ("2.5.4.12", "title"),
    ("2.5.4.13", "description"),
    ("2.5.4.15", "businessCategory"),
    ("2.5.4.17", "postalCode"),
    ("2.5.4.41", "name"),
    ("2.5.4.42", "GN"),
    ("2.5.4.43", "initials"),
    ("2.5.4.44", "generationQualifier"),
    ("2.5.4.46", "dnQualifier"),
    ("2.5.4.65", "pseudonym"),
    ("2.5.4.97", "organizationIdentifier"),
    ("1.2.840.113549.1.9.1", "emailAddress"),
    ("0.9.2342.19200300.100.1.1", "UID"),
    ("0.9.2342.19200300.100.1.25", "DC"),
    ("1.3.6.1.4.1.311.60.2.1.1", "jurisdictionL"),
    ("1.3.6.1.4.1.311.60.2.1.2", "jurisdictionST"),
    ("1.3.6.1.4.1.311.60.2.1.3", "jurisdictionC"),
];

const UPPER: &[u8; 16] = b"0123456789ABCDEF";
const LOWER: &[u8; 16] = b"0123456789abcdef";

/// Extracts the facts of `cert`; `der` are its bytes.
pub(crate) fn describe(
    cert: &X509Certificate<'_>,
    der: &[u8],
    fault: Option<ClientCertFault>,
) -> ClientCert {
    let validity = cert.validity();
    ClientCert {
        fault,
        subject: rfc2253(cert.subject()).into(),
        issuer: rfc2253(cert.issuer()).into(),
        subject_legacy: one_line(cert.subject()).into(),
        issuer_legacy: one_line(cert.issuer()).into(),
        serial: serial(cert.raw_serial()).into(),
        fingerprint: hex(digest(&SHA1_FOR_LEGACY_USE_ONLY, der).as_ref(), LOWER).into(),
        start: date(&validity.not_before).into(),
        end: date(&validity.not_after).into(),
        end_seconds: validity.not_after.timestamp(),
        pem: pem(der).into(),
    }
}

fn hex(bytes: &[u8], digits: &[u8; 16]) -> Vec<u8> {
    bytes
        .iter()
        .flat_map(|byte| [digits[usize::from(byte >> 4)], digits[usize::from(byte & 15)]])
        .collect()
}

fn serial(raw: &[u8]) -> Vec<u8> {
    let skipped = raw.iter().take(raw.len().saturating_sub(1)).take_while(|byte| **byte == 0);
    hex(&raw[skipped.count()..], UPPER)
}

/// `Jan  1 00:00:00 2025 GMT`
pub(crate) fn date(time: &ASN1Time) -> Vec<u8> {
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let at = time.to_datetime();
    let month = MONTHS[usize::from(u8::from(at.month())) - 1];
    let (hour, minute, second) = at.to_hms();
    format!("{month} {:2} {hour:02}:{minute:02}:{second:02} {} GMT", at.day(), at.year()).into()
}

/// A certificate in PEM, with a final line end.
fn pem(der: &[u8]) -> Vec<u8> {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = b"-----BEGIN CERTIFICATE-----\n".to_vec();
    for line in der.chunks(48) {
        for group in line.chunks(3) {
            let bytes = [group[0], *group.get(1).unwrap_or(&0), *group.get(2).unwrap_or(&0)];
            let bits = u32::from_be_bytes([0, bytes[0], bytes[1], bytes[2]]);
            for place in 0..4 {
                let digit = ALPHABET[(bits >> (18 - 6 * place)) as usize & 63];
                out.push(if place <= group.len() { digit } else { b'=' });
            }
        }
        out.push(b'\n');
    }
    out.extend_from_slice(b"-----END CERTIFICATE-----\n");
    out
}

/// The name of an attribute, and whether OpenSSL knows it.
fn name_of(attribute: &AttributeTypeAndValue<'_>) -> (String, bool) {
    let oid = attribute.attr_type().to_id_string();
    match SHORT_NAMES.iter().find(|(known, _)| *known == oid) {
        Some((_, name)) => ((*name).to_owned(), true),
        None => (oid, false),
    }
}

/// The last part first, joined by commas (RFC 2253 §2.1), bytes beyond ASCII as `\XX`.
fn rfc2253(name: &X509Name<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    let parts: Vec<_> = name.iter().collect();
    for (index, part) in parts.iter().rev().enumerate() {
        let attributes: Vec<_> = part.iter().collect();
        for (inner, attribute) in attributes.iter().rev().enumerate() {
            match (index, inner) {
                (0, 0) => {}
                (_, 0) => out.push(b','),
                _ => out.push(b'+'),
            }
            let (name, known) = name_of(attribute);
            out.extend_from_slice(name.as_bytes());
            out.push(b'=');
            match text_of(attribute.attr_value()).filter(|_| known) {
                Some(text) => push_escaped(&text, &mut out),
                None => {
                    // RFC 2253 §2.4: a value without a string form appears in its encoding.
                    out.push(b'#');
                    let der = attribute.attr_value().to_der_vec().unwrap_or_default();
                    out.extend(hex(&der, UPPER));
                }
            }
        }
    }
    out
}

/// A string of any of ASN.1's kinds in UTF-8.
pub(crate) fn text_of(value: &Any<'_>) -> Option<Vec<u8>> {
    let data = value.data;
    let wide = |width: usize| {
        let chars = data.chunks(width).map(|unit| {
            let code = unit.iter().fold(0_u32, |code, byte| code << 8 | u32::from(*byte));
            char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER)
        });
        chars.collect::<String>().into_bytes()
    };
    match value.tag() {
        Tag::Utf8String => Some(data.to_vec()),
        Tag::PrintableString
        | Tag::Ia5String
        | Tag::NumericString
        | Tag::VisibleString
        | Tag::T61String => Some(wide(1)),
        Tag::BmpString => Some(wide(2)),
        Tag::UniversalString => Some(wide(4)),
        _ => None,
    }
}

fn push_escaped(text: &[u8], out: &mut Vec<u8>) {
    for (index, &byte) in text.iter().enumerate() {
        let at_end = index == 0 || index + 1 == text.len();
        match byte {
            b',' | b'+' | b'"' | b'\\' | b'<' | b'>' | b';' => out.extend([b'\\', byte]),
            b' ' if at_end => out.extend([b'\\', byte]),
            b'#' if index == 0 => out.extend([b'\\', byte]),
            0..=0x1f | 0x7f.. => {
                out.push(b'\\');
                out.extend(hex(&[byte], UPPER));
            }
            _ => out.push(byte),
        }
    }
}

/// `/C=DE/O=b+CN=a`, bytes outside printable ASCII as `\xXX`. As in OpenSSL 3, what separates is
/// escaped in values, so that no value looks like another name.
fn one_line(name: &X509Name<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    for part in name.iter_rdn() {
        for (index, attribute) in part.iter().enumerate() {
            out.push(if index == 0 { b'/' } else { b'+' });
            out.extend_from_slice(name_of(attribute).0.as_bytes());
            out.push(b'=');
            push_printable(attribute.attr_value().data, &mut out);
        }
    }
    out
}

fn push_printable(value: &[u8], out: &mut Vec<u8>) {
    for &byte in value {
        match byte {
            b'/' | b'+' => out.extend([b'\\', byte]),
            b' '..=b'~' => out.push(byte),
            _ => {
                out.extend_from_slice(b"\\x");
                out.extend(hex(&[byte], UPPER));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{pem, push_escaped, serial};

    #[test]
    fn bytes_become_pem_of_64_columns() {
        assert!(pem(b"ab").ends_with(b"\nYWI=\n-----END CERTIFICATE-----\n"));
        assert!(pem(b"abcd").ends_with(b"\nYWJjZA==\n-----END CERTIFICATE-----\n"));
        let long = pem(&[0; 49]);
        assert_eq!(long.split(|byte| *byte == b'\n').map(<[u8]>::len).max(), Some(64));
    }

    #[test]
    fn what_means_something_in_a_name_is_escaped() {
        let mut out = Vec::new();
        push_escaped("# a, \"ü\"\n ".as_bytes(), &mut out);
        assert_eq!(out, br#"\# a\, \"\C3\BC\"\0A\ "#);
        assert_eq!(serial(&[0, 0x1a, 0]), b"1A00");
        assert_eq!(serial(&[0]), b"00");
    }
}
