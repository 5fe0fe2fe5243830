//! What the characters of field names and values say, for HTTP/2 and HTTP/3 alike.
//!
//! It classifies only; what follows from it is decided where requests are assembled.

/// What the characters of a field are like; HPACK keeps it with the entries of its table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traits(u8);

impl Traits {
    /// Letters, digits and hyphens, and a clean value.
    pub const NONE: Self = Self(0);
    /// The name has an underscore.
    pub const UNDERSCORE: Self = Self(1);
    /// The name has a character that nginx drops fields for.
    pub const ODD_NAME: Self = Self(2);
    /// The name makes a request malformed (RFC 9113 §8.2.1, RFC 9114 §4.2): empty, upper case,
    /// colon, not visible.
    pub const BAD_NAME: Self = Self(4);
    /// The value makes a request malformed (RFC 9113 §8.2.1, RFC 9114 §10.3): NUL, CR, LF, white
    /// space at an end.
    pub const BAD_VALUE: Self = Self(8);

    /// Whether all of `other` is in here.
    #[must_use]
    #[inline]
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Both together.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Without what was said of the value.
    #[must_use]
    pub const fn of_its_name(self) -> Self {
        Self(self.0 & !Self::BAD_VALUE.0)
    }

    /// What a name's characters say.
    #[must_use]
    pub fn of_name(name: &[u8]) -> Self {
        if name.is_empty() {
            return Self::BAD_NAME;
        }
        Self(name.iter().fold(0, |seen, &byte| seen | NAME_CLASS[usize::from(byte)]))
    }

    /// What a value's characters say.
    #[must_use]
    #[inline]
    pub fn of_value(value: &[u8]) -> Self {
        let [first, .., last] = *value else {
            let blank = matches!(value, [b' ' | b'\t' | 0 | b'\r' | b'\n']);
            return if blank { Self::BAD_VALUE } else { Self::NONE };
        };
        let is_blank = |byte| matches!(byte, b' ' | b'\t');
        if is_blank(first) || is_blank(last) || memchr::memchr3(0, b'\r', b'\n', value).is_some() {
            return Self::BAD_VALUE;
        }
        Self::NONE
    }
}

static NAME_CLASS: [u8; 256] = {
    let mut class = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        class[byte] = match byte as u8 {
            b'a'..=b'z' | b'0'..=b'9' | b'-' => Traits::NONE.0,
            b'_' => Traits::UNDERSCORE.0,
            0..=0x20 | b':' | b'A'..=b'Z' | 0x7f..=0xff => Traits::BAD_NAME.0,
            _ => Traits::ODD_NAME.0,
        };
        byte += 1;
    }
    class
};
