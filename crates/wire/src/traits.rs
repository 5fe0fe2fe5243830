//! Character classes of field names and values, shared by HTTP/2 and HTTP/3.
//!
//! This file only classifies. `pseudo` decides what a class means for a request.

/// Properties of the characters of a field line. HPACK keeps them with its table entries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traits(u8);

impl Traits {
    /// The name has letters, digits and hyphens only, and the value is valid.
    pub const NONE: Self = Self(0);
    /// The name has an underscore.
    pub const UNDERSCORE: Self = Self(1);
    /// The name has a character that makes nginx drop the field.
    pub const ODD_NAME: Self = Self(2);
    /// The name makes a request malformed (RFC 9113 §8.2.1, RFC 9114 §4.2): it is empty, or has an
    /// upper-case letter, a colon or an invisible character.
    pub const BAD_NAME: Self = Self(4);
    /// The value makes a request malformed (RFC 9113 §8.2.1, RFC 9114 §10.3): it has NUL, CR or LF,
    /// or begins or ends with white space.
    pub const BAD_VALUE: Self = Self(8);
    /// The name or the value was longer, as it came, than a decoder allows.
    pub const LONG: Self = Self(16);

    /// Whether these traits include all of `other`.
    #[must_use]
    #[inline]
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// The union of both.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// The traits of the name alone.
    #[must_use]
    pub const fn of_its_name(self) -> Self {
        Self(self.0 & !Self::BAD_VALUE.0)
    }

    /// Classifies the characters of a name.
    #[must_use]
    pub fn of_name(name: &[u8]) -> Self {
        if name.is_empty() {
            return Self::BAD_NAME;
        }
        Self(name.iter().fold(0, |seen, &byte| seen | NAME_CLASS[usize::from(byte)]))
    }

    /// Classifies the characters of a value.
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
