//! `ExpiresActive`, `ExpiresDefault`, `ExpiresByType`.

use crate::fault::{ParseResult, shown};

/// The start of an expiry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExpiresFrom {
    /// From now.
    Access,
    /// From the file's last change.
    Modification,
}

/// An expiry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExpiresAfter {
    /// Its start.
    pub from: ExpiresFrom,
    /// Its length in seconds.
    pub seconds: i64,
}

/// `Expires…` of one place.
#[derive(Clone, Debug, Default)]
pub(crate) struct Expiry {
    pub(crate) active: Option<bool>,
    pub(crate) default: Option<ExpiresAfter>,
    pub(crate) by_type: Vec<(Box<[u8]>, ExpiresAfter)>,
}

impl Expiry {
    /// Whether the place has such a directive.
    pub(crate) const fn is_given(&self) -> bool {
        self.active.is_some() || self.default.is_some() || !self.by_type.is_empty()
    }

    pub(crate) fn has_wildcards(&self) -> bool {
        self.by_type.iter().any(|(name, _)| name.ends_with(b"/*"))
    }
}

/// Parses `A60` or `access plus 1 month 2 days`.
pub(crate) fn code(directive: &str, text: &[u8]) -> ParseResult<ExpiresAfter> {
    let bad = |why: String| format!("'{directive} {}': bad expires code, {why}", shown(text));
    if let [letter @ (b'A' | b'M' | b'a' | b'm'), digits @ ..] = text
        && digits.first().is_some_and(u8::is_ascii_digit)
    {
        let from = from(&[*letter]).unwrap_or(ExpiresFrom::Access);
        let seconds = number(digits).ok_or_else(|| bad("numeric value expected".to_owned()))?;
        return Ok(ExpiresAfter { from, seconds });
    }
    let mut words = text.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()).peekable();
    let base = words.next().unwrap_or_default();
    let from = from(base).ok_or_else(|| bad(format!("unrecognised <base>'{}'", shown(base))))?;
    if words.peek().is_some_and(|word| word.eq_ignore_ascii_case(b"plus")) {
        words.next();
    }
    let mut seconds = 0_i64;
    while let Some(digits) = words.next() {
        let count = number(digits)
            .ok_or_else(|| bad(format!("numeric value expected <num> '{}'", shown(digits))))?;
        let unit = words.next().ok_or_else(|| bad("missing <type>".to_owned()))?;
        let lower = unit.to_ascii_lowercase();
        let factor = match &lower[..] {
            [b'y', ..] => 365 * 86_400,
            [b'm', b'o', ..] => 30 * 86_400,
            [b'w', ..] => 7 * 86_400,
            [b'd', ..] => 86_400,
            [b'h', ..] => 3_600,
            [b'm', b'i', ..] => 60,
            [b's', ..] => 1,
            _ => return Err(bad(format!("unrecognised <type>'{}'", shown(unit)))),
        };
        seconds = seconds.saturating_add(count.saturating_mul(factor));
    }
    Ok(ExpiresAfter { from, seconds })
}

fn from(base: &[u8]) -> Option<ExpiresFrom> {
    match base.first()?.to_ascii_lowercase() {
        b'a' | b'n' => Some(ExpiresFrom::Access),
        b'm' => Some(ExpiresFrom::Modification),
        _ => None,
    }
}

fn number(digits: &[u8]) -> Option<i64> {
    let count: i64 = std::str::from_utf8(digits).ok()?.parse().ok()?;
    // A thousand years is the maximum.
    Some(count.clamp(0, 1000 * 365 * 86_400))
}

#[cfg(test)]
mod tests {
    use super::{ExpiresAfter, ExpiresFrom, code};

    #[test]
    fn times_are_written_in_two_ways() {
        let access = |seconds| ExpiresAfter { from: ExpiresFrom::Access, seconds };
        let rows = [
            ("A1209600", access(1_209_600)),
            ("access plus 1 month", access(2_592_000)),
            ("now plus 1 hour", access(3_600)),
            ("access 1 year 2 minutes", access(31_536_120)),
            ("access", access(0)),
            ("M60", ExpiresAfter { from: ExpiresFrom::Modification, seconds: 60 }),
            (
                "modification plus 2 weeks",
                ExpiresAfter { from: ExpiresFrom::Modification, seconds: 1_209_600 },
            ),
        ];
        for (text, wanted) in rows {
            assert_eq!(code("ExpiresDefault", text.as_bytes()), Ok(wanted), "{text}");
        }
        let why = code("ExpiresDefault", b"access plus 1 fortnight").unwrap_err();
        let wanted = "'ExpiresDefault access plus 1 fortnight': bad expires code, unrecognised \
                      <type>'fortnight'";
        assert_eq!(why, wanted);
        assert!(code("ExpiresDefault", b"x plus 1 day").is_err());
        assert!(code("ExpiresDefault", b"access plus day").is_err());
    }
}
