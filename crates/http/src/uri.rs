//! From the request target as sent to the path that selects locations and files.
//!
//! Owns decoding, `.`/`..` resolution, slash merging and the split at `?` and `#`. Refuses what
//! nginx refuses: broken escapes, NUL, blanks and controls, and any path that climbs above its
//! root, even temporarily. The easiest rule to break: an escaped `%`, `#` or `?` is a literal,
//! while an escaped `/` or `.` acts exactly as the raw byte does.
//!
//! ```text
//!            '/'            '.'            '.'
//!   Usual ────────▶ Slash ────────▶ Dot ────────▶ DotDot
//!     ▲ ▲            │ ▲  '/' drops │              │ '/' climbs
//!     │ └─ other ────┘ └────────────┴──────────────┘
//!     └──────────────────── other ──────────────────┘
//! ```

use std::ops::Range;

/// Whether runs of slashes count as one (`merge_slashes`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MergeSlashes {
    /// `//` is `/`.
    #[default]
    On,
    /// Slashes stay as sent.
    Off,
}

/// Why a target gets a 400.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UriError {
    /// It does not begin with `/`.
    NotAPath,
    /// It holds a blank, a control character or DEL.
    BadByte,
    /// A `%` is not followed by two hexadecimal digits.
    BadEscape,
    /// It holds `%00`.
    Nul,
    /// `..` leads above the root.
    AboveRoot,
}

impl UriError {
    /// The text for the error log.
    #[must_use]
    pub const fn reason(self) -> &'static str {
        "client sent invalid request"
    }
}

/// The positions of the parts of a normalised target.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestTarget {
    /// Length of the raw path if it was in normal form; `None` if it was decoded.
    plain_len: Option<usize>,
    /// The query in the raw target, without `?`; empty if there is no query.
    args: Range<usize>,
}

impl RequestTarget {
    /// The path: a slice of the `raw` target, or the whole buffer it was decoded into.
    #[must_use]
    #[inline]
    pub fn path<'a>(&self, raw: &'a [u8], decoded: &'a [u8]) -> &'a [u8] {
        self.plain_len.map_or(decoded, |len| &raw[..len])
    }

    /// The query as sent, without `?`; empty if there is no query.
    #[must_use]
    #[inline]
    pub fn args<'a>(&self, raw: &'a [u8]) -> &'a [u8] {
        &raw[self.args.clone()]
    }

    /// Whether the path differs, or may differ, from the raw one.
    #[must_use]
    pub const fn is_decoded(&self) -> bool {
        self.plain_len.is_none()
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Usual,
    /// `/` and `.`: special only after a slash.
    Slashy,
    Percent,
    Question,
    Hash,
    Bad,
}

const CLASS: [Class; 256] = {
    let mut class = [Class::Usual; 256];
    let mut byte = 0;
    while byte <= 0x20 {
        class[byte] = Class::Bad;
        byte += 1;
    }
    class[0x7f] = Class::Bad;
    class[b'/' as usize] = Class::Slashy;
    class[b'.' as usize] = Class::Slashy;
    class[b'%' as usize] = Class::Percent;
    class[b'?' as usize] = Class::Question;
    class[b'#' as usize] = Class::Hash;
    class
};

/// Splits and normalises `raw`; writes `decoded` only if the path needs it.
///
/// An empty path (absolute form, as in `http://a?x`) counts as `/`.
///
/// # Errors
///
/// All of [`UriError`]; each is a 400.
#[inline]
pub fn normalise(
    raw: &[u8],
    merge: MergeSlashes,
    decoded: &mut Vec<u8>,
) -> Result<RequestTarget, UriError> {
    if raw.first() != Some(&b'/') {
        return normalise_slowly(raw, merge, decoded);
    }
    let mut previous = b'a';
    for (at, &byte) in raw.iter().enumerate() {
        match CLASS[usize::from(byte)] {
            Class::Usual => {}
            Class::Slashy if previous != b'/' => {}
            Class::Question => {
                let args = args(raw, at + 1)?;
                return Ok(RequestTarget { plain_len: Some(at), args });
            }
            Class::Bad => return Err(UriError::BadByte),
            Class::Slashy | Class::Percent | Class::Hash => {
                return normalise_slowly(raw, merge, decoded);
            }
        }
        previous = byte;
    }
    Ok(RequestTarget { plain_len: Some(raw.len()), args: raw.len()..raw.len() })
}

/// The query that begins at `start` and ends before a `#`.
fn args(raw: &[u8], start: usize) -> Result<Range<usize>, UriError> {
    let mut end = None;
    for (at, &byte) in raw.iter().enumerate().skip(start) {
        match CLASS[usize::from(byte)] {
            Class::Bad => return Err(UriError::BadByte),
            Class::Hash if end.is_none() => end = Some(at),
            _ => {}
        }
    }
    Ok(start..end.unwrap_or(raw.len()))
}

#[derive(Clone, Copy)]
enum State {
    Usual,
    Slash,
    Dot,
    DotDot,
}

struct Walk<'a> {
    state: State,
    merge: MergeSlashes,
    path: &'a mut Vec<u8>,
}

impl Walk<'_> {
    /// Takes one byte, raw or decoded, that is not a delimiter.
    #[inline]
    fn step(&mut self, byte: u8) -> Result<(), UriError> {
        self.state = match (self.state, byte) {
            (State::Slash, b'/') => {
                if self.merge == MergeSlashes::Off {
                    self.path.push(b'/');
                }
                return Ok(());
            }
            (State::Dot, b'/') => {
                self.path.pop();
                State::Slash
            }
            (State::DotDot, b'/') => {
                self.climb()?;
                State::Slash
            }
            (state, byte) => {
                self.path.push(byte);
                match (state, byte) {
                    (State::Usual, b'/') => State::Slash,
                    (State::Slash, b'.') => State::Dot,
                    (State::Dot, b'.') => State::DotDot,
                    _ => State::Usual,
                }
            }
        };
        Ok(())
    }

    /// Removes a trailing `/..` and the segment before it, up to its slash.
    fn climb(&mut self) -> Result<(), UriError> {
        let end = self.path.len() - 3;
        let slash = self.path[..end].iter().rposition(|&byte| byte == b'/');
        self.path.truncate(slash.ok_or(UriError::AboveRoot)? + 1);
        Ok(())
    }

    fn finish(&mut self) -> Result<(), UriError> {
        match self.state {
            State::Usual | State::Slash => {}
            State::Dot => {
                self.path.pop();
            }
            State::DotDot => self.climb()?,
        }
        Ok(())
    }
}

#[cold]
fn normalise_slowly(
    raw: &[u8],
    merge: MergeSlashes,
    path: &mut Vec<u8>,
) -> Result<RequestTarget, UriError> {
    path.clear();
    let mut walk = Walk { state: State::Usual, merge, path };
    match raw.first() {
        Some(b'/') => {}
        None | Some(b'?' | b'#') => walk.step(b'/')?,
        Some(_) => return Err(UriError::NotAPath),
    }
    let mut at = 0;
    let mut query = raw.len()..raw.len();
    while let Some(&byte) = raw.get(at) {
        at += 1;
        match CLASS[usize::from(byte)] {
            Class::Usual | Class::Slashy => walk.step(byte)?,
            Class::Percent => {
                let decoded = escape(&raw[at..])?;
                at += 2;
                if matches!(decoded, b'%' | b'#' | b'?') {
                    walk.path.push(decoded);
                    walk.state = State::Usual;
                } else {
                    walk.step(decoded)?;
                }
            }
            Class::Question => {
                query = args(raw, at)?;
                break;
            }
            Class::Hash => {
                args(raw, at)?;
                break;
            }
            Class::Bad => return Err(UriError::BadByte),
        }
    }
    walk.finish()?;
    debug_assert!(walk.path.first() == Some(&b'/'), "a path begins at its root");
    Ok(RequestTarget { plain_len: None, args: query })
}

/// The byte that the first two digits of `digits` encode.
fn escape(digits: &[u8]) -> Result<u8, UriError> {
    let digit = |at: usize| {
        let value = digits.get(at).and_then(|&digit| char::from(digit).to_digit(16));
        value.ok_or(UriError::BadEscape)
    };
    match (digit(0)? << 4 | digit(1)?) as u8 {
        0 => Err(UriError::Nul),
        byte => Ok(byte),
    }
}

/// Appends `text` with its `%XX` decoded; a broken escape stays as it is.
pub fn push_decoded(out: &mut Vec<u8>, text: &[u8]) {
    let mut rest = text;
    while let Some(at) = memchr::memchr(b'%', rest) {
        out.extend_from_slice(&rest[..at]);
        rest = &rest[at + 1..];
        match escape(rest) {
            Ok(byte) => {
                out.push(byte);
                rest = &rest[2..];
            }
            Err(UriError::Nul) => {
                out.push(0);
                rest = &rest[2..];
            }
            Err(_) => out.push(b'%'),
        }
    }
    out.extend_from_slice(rest);
}

#[cfg(test)]
mod tests;
