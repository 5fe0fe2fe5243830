//! W3C Trace Context: the trace that a request belongs to (`traceparent`).
//!
//! Owns the grammar of the field; a malformed field is no context (§3.2.2 of the recommendation).

use crate::FieldMap;

/// The names of the fields.
pub const TRACEPARENT: &[u8] = b"traceparent";
/// See [`TRACEPARENT`].
pub const TRACESTATE: &[u8] = b"tracestate";

/// A trace, one of its spans, and whether the trace is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceParent {
    /// The trace; not all zero.
    pub trace: [u8; 16],
    /// The span; not all zero.
    pub span: [u8; 8],
    /// Whether the caller may have recorded it.
    pub is_sampled: bool,
}

impl TraceParent {
    /// The context in a field's value; `None` if it is malformed.
    ///
    /// Version 00 has exactly this length; later versions may have more after a dash, and version
    /// ff is forbidden (§4.3).
    #[must_use]
    pub fn parse(text: &[u8]) -> Option<Self> {
        let (head, rest) = text.split_first_chunk::<55>()?;
        let [version] = hex(&head[..2])?;
        let is_whole = match version {
            0 => rest.is_empty(),
            0xff => false,
            _ => matches!(rest, [] | [b'-', ..]),
        };
        if !is_whole || [head[2], head[35], head[52]] != *b"---" {
            return None;
        }
        let [flags] = hex(&head[53..])?;
        let (trace, span) = (hex(&head[3..35])?, hex(&head[36..52])?);
        let is_known = trace != [0; 16] && span != [0; 8];
        is_known.then_some(Self { trace, span, is_sampled: flags & 1 == 1 })
    }

    /// The context of a request; `None` if there are several fields.
    #[must_use]
    pub fn of(fields: &FieldMap) -> Option<Self> {
        let mut all = fields.all_text(TRACEPARENT);
        let only = all.next()?;
        if all.next().is_some() { None } else { Self::parse(only) }
    }

    /// Appends it in version 00.
    pub fn push(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"00-");
        push_digits(out, &self.trace);
        out.push(b'-');
        push_digits(out, &self.span);
        out.extend_from_slice(if self.is_sampled { b"-01" } else { b"-00" });
    }
}

/// Appends two hexadecimal digits for each byte.
pub fn push_digits(out: &mut Vec<u8>, bytes: &[u8]) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    for byte in bytes {
        out.extend([DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]);
    }
}

/// The bytes of twice as many digits; upper-case digits are invalid (§3.2.2.3).
fn hex<const LEN: usize>(digits: &[u8]) -> Option<[u8; LEN]> {
    let value = |digit: u8| match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    };
    let mut bytes = [0; LEN];
    if digits.len() != 2 * LEN {
        return None;
    }
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks(2)) {
        *byte = value(pair[0])? << 4 | value(pair[1])?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{any, prop_assert_eq, proptest};

    use super::TraceParent;
    use crate::FieldMap;

    const GOOD: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    #[test]
    fn only_contexts_of_the_recommendation_are_taken() {
        let with = |from: &str, to: &str| GOOD.replace(from, to);
        for good in [
            GOOD.to_owned(),
            with("-01", "-ff"),
            with("00-0af", "01-0af"),
            with("00-0af", "cc-0af") + "-what-the-future-brings",
            with("00-0af", "cc-0af") + "-",
        ] {
            let read = TraceParent::parse(good.as_bytes()).expect(&good);
            assert!(read.is_sampled && read.span[0] == 0xb7 && read.trace[15] == 0x9c, "{good}");
        }
        assert!(!TraceParent::parse(with("-01", "-02").as_bytes()).unwrap().is_sampled);
        for bad in [
            String::new(),
            with("0af7651916cd43dd8448eb211c80319c", &"0".repeat(32)),
            with("b7ad6b7169203331", &"0".repeat(16)),
            with("0af", "0AF"),
            with("b7ad", "B7AD"),
            with("0af", "0ag"),
            with("00-0af", "ff-0af"),
            with("-01", "-1"),
            with("-01", "-0x"),
            with("-01", "-01-"),
            with("-01", "-01-more"),
            with("00-0af", "01-0af") + ".more",
            with("00-0af", "01-0af") + "00",
            with("00-0af", "0-0af"),
            with("-b7", "_b7"),
            format!(" {GOOD}"),
            format!("{GOOD},{GOOD}"),
        ] {
            assert_eq!(TraceParent::parse(bad.as_bytes()), None, "{bad}");
        }
    }

    #[test]
    fn several_contexts_are_none() {
        let mut fields = FieldMap::new();
        fields.push_text(b"Traceparent", GOOD.as_bytes());
        assert!(TraceParent::of(&fields).is_some());
        fields.push_text(b"traceparent", GOOD.as_bytes());
        assert_eq!(TraceParent::of(&fields), None);
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(trace in any::<[u8; 16]>(), span in any::<[u8; 8]>(),
                                   is_sampled in any::<bool>()) {
            let context = TraceParent { trace, span, is_sampled };
            let mut text = Vec::new();
            context.push(&mut text);
            let is_known = trace != [0; 16] && span != [0; 8];
            prop_assert_eq!(TraceParent::parse(&text), is_known.then_some(context));
        }

        #[test]
        fn nothing_that_is_read_is_misread(text in "[0-9a-f-]{50,60}") {
            if let Some(read) = TraceParent::parse(text.as_bytes()) {
                let mut again = Vec::new();
                read.push(&mut again);
                prop_assert_eq!(&text.as_bytes()[2..53], &again[2..53]);
            }
        }
    }
}
