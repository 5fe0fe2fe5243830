//! Whether a certificate is valid for a host, by OpenSSL's rules. Addresses are names like others.

use x509_parser::certificate::X509Certificate;
use x509_parser::extensions::GeneralName;

use crate::client_facts::text_of;

/// Whether `host` is a name of `cert`: one of its alternative names, or, if none of those is a host
/// name, a common name.
pub(crate) fn is_named(cert: &X509Certificate<'_>, host: &[u8]) -> bool {
    if host.is_empty() {
        return false;
    }
    let Ok(names) = cert.subject_alternative_name() else { return false };
    let mut any = false;
    for name in names.iter().flat_map(|names| &names.value.general_names) {
        if let GeneralName::DNSName(name) = name {
            any = true;
            if is_match(name.as_bytes(), host) {
                return true;
            }
        }
    }
    let mut commons = cert.subject().iter_common_name();
    !any && commons.any(|name| text_of(name.attr_value()).is_some_and(|text| is_match(&text, host)))
}

/// Whether `name` of a certificate, which may have a star in its first label, matches `host`. A
/// star matches a part of one label, and only with two labels after it.
fn is_match(name: &[u8], host: &[u8]) -> bool {
    if name.eq_ignore_ascii_case(host) {
        return true;
    }
    let Some(star) = name.iter().position(|byte| *byte == b'*') else { return false };
    let (before, after) = (&name[..star], &name[star + 1..]);
    let dots = after.iter().filter(|byte| **byte == b'.').count();
    let is_first = !before.contains(&b'.') && !after.contains(&b'*');
    if !is_first || dots < 2 || host.len() < before.len() + after.len() {
        return false;
    }
    let (start, rest) = host.split_at(before.len());
    let (part, end) = rest.split_at(rest.len() - after.len());
    let is_whole = before.is_empty() && after.first() == Some(&b'.');
    let is_label = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'-';
    // An encoded label of another script is matched whole.
    let is_foreign = host.get(..4).is_some_and(|head| head.eq_ignore_ascii_case(b"xn--"));
    start.eq_ignore_ascii_case(before)
        && end.eq_ignore_ascii_case(after)
        && part.iter().all(is_label)
        && (if is_whole { !part.is_empty() } else { !is_foreign })
}

#[cfg(test)]
mod tests {
    use super::is_match;

    #[test]
    fn a_star_stands_for_a_part_of_one_label() {
        let good = [
            ("a.test", "A.Test"),
            ("*.wild.test", "a.wild.test"),
            ("*.wild.test", "xn--a.wild.test"),
            ("w*.wild.test", "www.wild.test"),
            ("w*w.wild.test", "ww.wild.test"),
        ];
        let bad = [
            ("a.test", "a.test."),
            ("*.wild.test", "wild.test"),
            ("*.wild.test", ".wild.test"),
            ("*.wild.test", "a.b.wild.test"),
            ("*.test", "a.test"),
            ("a.*.test", "a.b.test"),
            ("*.*.wild.test", "a.b.wild.test"),
            ("x*.wild.test", "xn--a.wild.test"),
            ("*", "a"),
        ];
        for (name, host) in good {
            assert!(is_match(name.as_bytes(), host.as_bytes()), "{name} {host}");
        }
        for (name, host) in bad {
            assert!(!is_match(name.as_bytes(), host.as_bytes()), "{name} {host}");
        }
    }
}
