//! Domain names: as text with dots, and as labels with lengths (RFC 1035 §3.1, §4.1.4).
//!
//! A name is stored in lower case, with a dot between labels and no final one.

use crate::message::DnsFault;

/// LIMIT: bytes of a label (RFC 1035 §2.3.4).
const LABEL_MAX: usize = 63;
/// LIMIT: bytes of a name with its length bytes (RFC 1035 §2.3.4).
const NAME_MAX: usize = 255;
/// LIMIT: labels and pointers of one name in a message. A pointer may refer to itself.
const STEPS_MAX: usize = 128;

/// Appends the labels of a name; false if it cannot be queried: without a label, with an empty one,
/// or too long.
pub(crate) fn push_labels(name: &[u8], out: &mut Vec<u8>) -> bool {
    // Each dot becomes a length byte; one more precedes the first label, and a zero ends the name.
    if name.len() + 2 > NAME_MAX {
        return false;
    }
    for label in name.split(|byte| *byte == b'.') {
        if !(1..=LABEL_MAX).contains(&label.len()) {
            return false;
        }
        out.push(label.len() as u8);
        out.extend_from_slice(label);
    }
    out.push(0);
    true
}

/// The name at `at` in `message`; empty for the root.
///
/// # Errors
///
/// It exceeds the message, has a pointer loop, or an unknown kind of label.
pub(crate) fn read(message: &[u8], at: usize) -> Result<Vec<u8>, DnsFault> {
    let outside = || DnsFault::Text("name is out of DNS response");
    let mut name = Vec::new();
    let mut at = at;
    for _ in 0..STEPS_MAX {
        let first = usize::from(*message.get(at).ok_or_else(outside)?);
        at += 1;
        match first {
            0 => return Ok(name),
            0xc0.. => {
                let second = usize::from(*message.get(at).ok_or_else(outside)?);
                at = (first & 0x3f) << 8 | second;
            }
            0x40.. => return Err(DnsFault::Text("invalid label type in DNS response")),
            len => {
                let label = message.get(at..at + len).ok_or_else(outside)?;
                if !name.is_empty() {
                    name.push(b'.');
                }
                name.extend(label.iter().map(u8::to_ascii_lowercase));
                at += len;
            }
        }
    }
    Err(DnsFault::Text("compression pointers loop in DNS response"))
}

#[cfg(test)]
mod tests {
    use super::{push_labels, read};
    use crate::message::DnsFault;

    fn labels(name: &str) -> Option<Vec<u8>> {
        let mut out = Vec::new();
        push_labels(name.as_bytes(), &mut out).then_some(out)
    }

    #[test]
    fn a_name_becomes_labels_with_lengths() {
        assert_eq!(labels("www.a.example"), Some(b"\x03www\x01a\x07example\0".to_vec()));
        assert_eq!(labels("a"), Some(b"\x01a\0".to_vec()));
    }

    #[test]
    fn names_that_dns_does_not_know_are_not_asked_for() {
        let label = "a".repeat(63);
        let longest = [&*label, &label, &label, &"a".repeat(61)].join(".");
        assert_eq!(longest.len(), 253);
        for good in [&*label, &longest] {
            assert!(labels(good).is_some(), "{good}");
        }
        let long_label = format!("{label}a.b");
        let long = format!("{longest}a");
        for bad in ["", "a..b", ".a", "a.", ".", &long_label, &long] {
            assert_eq!(labels(bad), None, "{bad}");
        }
    }

    #[test]
    fn names_in_messages_are_followed_through_pointers() {
        let message = b"\x01B\x07Example\0\x03www\xc0\x00\xc0\x0a";
        assert_eq!(read(message, 0).as_deref(), Ok(&b"b.example"[..]));
        assert_eq!(read(message, 11).as_deref(), Ok(&b"www.b.example"[..]));
        assert_eq!(read(b"\0", 0).as_deref(), Ok(&b""[..]));
    }

    #[test]
    fn names_that_do_not_end_are_faults() {
        let text = |message: &[u8]| match read(message, 0) {
            Err(DnsFault::Text(text)) => text,
            other => panic!("{other:?}"),
        };
        assert_eq!(text(b""), "name is out of DNS response");
        assert_eq!(text(b"\x03ab"), "name is out of DNS response");
        assert_eq!(text(b"\x01a"), "name is out of DNS response");
        assert_eq!(text(b"\xc0"), "name is out of DNS response");
        assert_eq!(text(b"\xff\xff"), "name is out of DNS response");
        assert_eq!(text(b"\x41a\0"), "invalid label type in DNS response");
        assert_eq!(text(b"\xc0\x00"), "compression pointers loop in DNS response");
    }
}
