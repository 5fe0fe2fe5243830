//! Content negotiation of the metrics format, by `Accept` (RFC 9110 §12.5.1).

/// The two forms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MetricsFormat {
    /// Prometheus' text format 0.0.4.
    #[default]
    Prometheus,
    /// OpenMetrics 1.0.
    OpenMetrics,
}

/// A quality of 1, in thousandths.
const WHOLE: u16 = 1000;

impl MetricsFormat {
    /// The format that these values of `Accept` prefer. A client that accepts neither, or sends no
    /// `Accept`, gets the older one.
    #[must_use]
    pub fn wanted<'a>(accept: impl Iterator<Item = &'a [u8]>) -> Self {
        let (mut open, mut plain) = (0, 0);
        for range in accept.flat_map(|value| split(value, b',')) {
            let mut parts = split(range, b';').map(<[u8]>::trim_ascii);
            let name = parts.next().unwrap_or_default();
            let (mut quality, mut version) = (WHOLE, None);
            for part in parts {
                let Some(at) = part.iter().position(|byte| *byte == b'=') else { continue };
                let value = unquoted(part[at + 1..].trim_ascii());
                match part[..at].trim_ascii() {
                    name if name.eq_ignore_ascii_case(b"q") => quality = thousandths(value),
                    name if name.eq_ignore_ascii_case(b"version") => version = Some(value),
                    _ => {}
                }
            }
            let is = |known: &[u8]| name.eq_ignore_ascii_case(known);
            let is_version = |known: &[u8]| version.is_none_or(|version| version == known);
            if is(b"application/openmetrics-text") && is_version(b"1.0.0") {
                open = open.max(quality);
            } else if is(b"text/plain") && is_version(b"0.0.4") || is(b"text/*") || is(b"*/*") {
                plain = plain.max(quality);
            }
        }
        if open > 0 && open >= plain { Self::OpenMetrics } else { Self::Prometheus }
    }

    /// Its media type.
    #[must_use]
    pub const fn media_type(self) -> &'static str {
        match self {
            Self::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }
}

/// Splits `text` at `mark`, but not within quoted strings (RFC 9110 §5.6.4).
fn split(text: &[u8], mark: u8) -> impl Iterator<Item = &[u8]> {
    let (mut quoted, mut escaped) = (false, false);
    text.split(move |&byte| {
        let is_end = !quoted && byte == mark;
        quoted ^= byte == b'"' && !escaped;
        escaped = quoted && byte == b'\\' && !escaped;
        is_end
    })
}

/// A value without its quotes; one with escapes is neither a version nor a quality.
fn unquoted(value: &[u8]) -> &[u8] {
    value.strip_prefix(b"\"").and_then(|value| value.strip_suffix(b"\"")).unwrap_or(value)
}

/// A quality (RFC 9110 §12.4.2) in thousandths; an invalid one counts as 0.
fn thousandths(text: &[u8]) -> u16 {
    let (whole, rest) = match text {
        [b'0', rest @ ..] => (0, rest),
        [b'1', rest @ ..] => (WHOLE, rest),
        _ => return 0,
    };
    let digits = match rest {
        [] => &[][..],
        [b'.', digits @ ..] if digits.len() <= 3 => digits,
        _ => return 0,
    };
    let mut value = whole;
    for (digit, worth) in digits.iter().zip([100, 10, 1]) {
        if !digit.is_ascii_digit() {
            return 0;
        }
        value += u16::from(digit - b'0') * worth;
    }
    if value > WHOLE { 0 } else { value }
}

#[cfg(test)]
mod tests {
    use super::MetricsFormat;

    fn wanted(accept: &[&str]) -> MetricsFormat {
        MetricsFormat::wanted(accept.iter().map(|value| value.as_bytes()))
    }

    #[test]
    fn openmetrics_goes_to_clients_that_name_it_and_do_not_like_text_better() {
        let prometheus = "application/openmetrics-text;version=1.0.0,\
                          application/openmetrics-text;version=0.0.1;q=0.75,\
                          text/plain;version=0.0.4;q=0.5,*/*;q=0.1";
        for (accept, is_open) in [
            (&[][..], false),
            (&[prometheus], true),
            (&["application/openmetrics-text"], true),
            (&["Application/OpenMetrics-Text; Version=\"1.0.0\""], true),
            (&["application/openmetrics-text; version=1.0.0; escaping=\"a,b;q=0\""], true),
            (&["*/*", "application/openmetrics-text"], true),
            (&["text/plain", "application/openmetrics-text;q=0.999"], false),
            (&["application/openmetrics-text;q=0"], false),
            (&["application/openmetrics-text;q=2"], false),
            (&["application/openmetrics-text;version=0.0.1"], false),
            (&["application/openmetrics-text;version=2.0.0, text/plain;q=0.1"], false),
            (&["text/html, */*;q=0.8"], false),
            (&["*/*"], false),
            (&["application/json"], false),
            (&[";;;,,=,\""], false),
        ] {
            assert_eq!(wanted(accept) == MetricsFormat::OpenMetrics, is_open, "{accept:?}");
        }
    }
}
