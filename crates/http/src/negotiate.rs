//! Content negotiation of codings (`Accept-Encoding`), parsed as nginx's gzip module does.
//!
//! Only codings that are named count: `*` is noted but, as in nginx, does not request compression.
//! A quality is only "zero or not"; the server's preference decides among several codings.

/// A content coding that the server supports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Coding {
    /// `gzip` (RFC 1952)
    Gzip,
    /// `br` (RFC 7932)
    Brotli,
    /// `zstd` (RFC 8878)
    Zstd,
}

impl Coding {
    /// All codings, in the order of [`Self::index`].
    pub const ALL: [Self; 3] = [Self::Gzip, Self::Brotli, Self::Zstd];

    /// As in `Content-Encoding`.
    #[must_use]
    pub const fn token(self) -> &'static str {
        match self {
            Self::Gzip => "gzip",
            Self::Brotli => "br",
            Self::Zstd => "zstd",
        }
    }

    /// The suffix of a precompressed sibling's name.
    #[must_use]
    pub const fn suffix(self) -> &'static str {
        match self {
            Self::Gzip => ".gz",
            Self::Brotli => ".br",
            Self::Zstd => ".zst",
        }
    }

    /// A small number for tables.
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }
}

/// A set of codings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Codings(u8);

/// Set beside the codings when `*` is accepted.
const WILDCARD: u8 = 0x80;

impl Codings {
    /// No coding: identity only.
    pub const NONE: Self = Self(0);
    /// Every coding.
    pub const ALL: Self = Self(0b111);

    /// The set with `coding` in it.
    #[must_use]
    pub const fn with(self, coding: Coding) -> Self {
        Self(self.0 | 1 << coding as u8)
    }

    /// The set without `coding`.
    #[must_use]
    pub const fn without(self, coding: Coding) -> Self {
        Self(self.0 & !(1 << coding as u8))
    }

    /// Whether `coding` is in the set.
    #[must_use]
    pub const fn contains(self, coding: Coding) -> bool {
        self.0 & 1 << coding as u8 != 0
    }

    /// The set as a number; equal sets have equal numbers.
    #[must_use]
    pub const fn bits(self) -> u8 {
        self.0
    }

    /// Whether no coding is in the set.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 & Self::ALL.0 == 0
    }

    /// Whether the client also accepts codings it did not name (`*`).
    #[must_use]
    pub const fn has_wildcard(self) -> bool {
        self.0 & WILDCARD != 0
    }

    /// The first of `order`, the server's preference, that is in the set.
    #[must_use]
    #[inline]
    pub fn choose(self, order: &[Coding]) -> Option<Coding> {
        order.iter().copied().find(|&coding| self.contains(coding))
    }
}

/// The codings that `field` names with a quality above zero.
#[must_use]
#[inline]
pub fn accepted(field: &[u8]) -> Codings {
    // The values that browsers send; the general case gives the same result.
    match field {
        b"gzip, deflate, br, zstd" => Codings::ALL,
        b"gzip, deflate, br" => Codings::NONE.with(Coding::Gzip).with(Coding::Brotli),
        b"gzip, deflate" | b"gzip" => Codings::NONE.with(Coding::Gzip),
        _ => accepted_slowly(field),
    }
}

fn accepted_slowly(field: &[u8]) -> Codings {
    let mut seen = 0_u8;
    let mut found = 0_u8;
    for element in field.split(|&byte| byte == b',') {
        let mut parts = element.split(|&byte| byte == b';');
        let token = parts.next().unwrap_or_default().trim_ascii();
        let bit = if token == b"*" {
            WILDCARD
        } else {
            let named = |coding: &&Coding| token.eq_ignore_ascii_case(coding.token().as_bytes());
            match Coding::ALL.iter().find(named) {
                Some(&coding) => 1 << coding as u8,
                None => continue,
            }
        };
        // The first mention decides.
        if seen & bit == 0 && parts.next().is_none_or(is_wanted) {
            found |= bit;
        }
        seen |= bit;
    }
    Codings(found)
}

/// Whether a parameter is a quality above zero (RFC 9110 §12.4.2).
fn is_wanted(parameter: &[u8]) -> bool {
    let parameter = parameter.trim_ascii();
    let [b'q' | b'Q', b'=', value @ ..] = parameter else { return parameter.is_empty() };
    let (whole, fraction) = match value {
        [whole @ (b'0' | b'1')] => (*whole, &[][..]),
        [whole @ (b'0' | b'1'), b'.', fraction @ ..] if fraction.len() <= 3 => (*whole, fraction),
        _ => return false,
    };
    let digits_fit =
        |digit: &u8| if whole == b'1' { *digit == b'0' } else { digit.is_ascii_digit() };
    fraction.iter().all(digits_fit)
        && (whole == b'1' || fraction.iter().any(|&digit| digit != b'0'))
}

#[cfg(test)]
mod tests {
    use super::{Coding, Codings, accepted, accepted_slowly};
    use proptest::prelude::{any, proptest};

    fn tokens(field: &str) -> Vec<&'static str> {
        let found = accepted(field.as_bytes());
        Coding::ALL.iter().filter(|&&c| found.contains(c)).map(|c| c.token()).collect()
    }

    #[test]
    fn named_codings_count_unless_their_quality_is_zero() {
        let cases: [(&str, &[&str]); 20] = [
            ("", &[]),
            ("identity", &[]),
            ("gzip", &["gzip"]),
            ("GZip", &["gzip"]),
            ("x-gzip", &[]),
            ("gzipp", &[]),
            ("gzip, deflate, br, zstd", &["gzip", "br", "zstd"]),
            ("br;q=1.0, gzip;q=0.8, *;q=0.1", &["gzip", "br"]),
            ("gzip;q=0", &[]),
            ("gzip;q=0.000", &[]),
            ("gzip;q=0.001", &["gzip"]),
            ("gzip;q=1.001", &[]),
            ("gzip;q=2", &[]),
            ("gzip;q=0.0001", &[]),
            ("gzip ; Q=0.5", &["gzip"]),
            ("gzip;x=1", &[]),
            ("gzip;", &["gzip"]),
            ("gzip;q=0, gzip", &[]),
            ("zstd,br;q=0", &["zstd"]),
            ("*", &[]),
        ];
        for (field, expected) in cases {
            assert_eq!(tokens(field), expected, "{field}");
        }
        assert!(accepted(b"*").has_wildcard() && accepted(b"*").is_empty());
        assert!(!accepted(b"*;q=0").has_wildcard());
    }

    #[test]
    fn the_servers_order_decides_among_accepted_codings() {
        let order = [Coding::Brotli, Coding::Zstd, Coding::Gzip];
        assert_eq!(Codings::ALL.choose(&order), Some(Coding::Brotli));
        assert_eq!(accepted(b"gzip, zstd").choose(&order), Some(Coding::Zstd));
        assert_eq!(accepted(b"br").choose(&[Coding::Gzip]), None);
        assert_eq!(Codings::ALL.without(Coding::Gzip).choose(&[Coding::Gzip]), None);
        assert_eq!(Coding::Zstd.suffix(), ".zst");
    }

    proptest! {
        #[test]
        fn shortcuts_agree_with_the_general_reading(
            field in "(gzip|br|zstd|\\*)(, (gzip|deflate|br|zstd)(;q=[01](\\.[0-9]{0,3})?)?){0,3}",
            bytes in any::<Vec<u8>>(),
        ) {
            assert_eq!(accepted(field.as_bytes()), accepted_slowly(field.as_bytes()));
            assert_eq!(accepted(&bytes), accepted_slowly(&bytes));
        }
    }

    #[test]
    fn each_shortcut_agrees_with_the_general_reading() {
        for field in ["gzip, deflate, br, zstd", "gzip, deflate, br", "gzip, deflate", "gzip"] {
            assert_eq!(accepted(field.as_bytes()), accepted_slowly(field.as_bytes()), "{field}");
        }
    }
}
