//! Positions in a stream, and the state of a stream.

use std::fmt;
use std::str::FromStr;

use bolide_cache::disk::format::sum;

/// The id of an entry: ids of a stream only grow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EntryId {
    /// The server's clock when it was added, in milliseconds, or later.
    pub ms: u64,
    /// Its number within that millisecond.
    pub number: u64,
}

impl EntryId {
    /// Less than every id.
    pub const ZERO: Self = Self { ms: 0, number: 0 };

    /// The next greater id.
    #[must_use]
    pub const fn next(self) -> Self {
        match self.number.checked_add(1) {
            Some(number) => Self { number, ..self },
            None => Self { ms: self.ms.saturating_add(1), number: 0 },
        }
    }
}

impl fmt::Display for EntryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.ms, self.number)
    }
}

impl FromStr for EntryId {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let digits = |text: &str| {
            let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
            text.parse().ok().filter(|_| is_number).ok_or(())
        };
        let (ms, number) = text.split_once('-').ok_or(())?;
        Ok(Self { ms: digits(ms)?, number: digits(number)? })
    }
}

/// An entry with its checksum: after a loss another one may have the same id.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EntryMark {
    /// Its id.
    pub id: EntryId,
    /// The checksum of its bytes. No two entries of servers have the same bytes.
    pub sum: u64,
}

impl EntryMark {
    /// The mark of an entry; `None` for bytes means that it is not one of ours, or too large to be
    /// read.
    #[must_use]
    pub fn of(id: EntryId, bytes: Option<&[u8]>) -> Self {
        Self { id, sum: bytes.map_or(0, sum) }
    }
}

/// The state of a stream at one moment, for a position.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StreamFacts {
    /// The id of the oldest entry.
    pub first: EntryId,
    /// The newest entry.
    pub newest: EntryMark,
    /// The greatest id that the stream has assigned.
    pub last: EntryId,
    /// Whether the entry at the position exists.
    pub has_position: bool,
}

#[cfg(test)]
mod tests {
    use super::EntryId;

    #[test]
    fn ids_are_read_as_they_are_written() {
        let id = EntryId { ms: 1_700_000_000_000, number: 3 };
        assert_eq!(id.to_string().parse(), Ok(id));
        assert!(id < EntryId { number: 4, ..id } && id > EntryId::ZERO);
        for text in ["", "1", "-", "1-", "-1", "1-2-3", "+1-2", "1-x", "99999999999999999999-1"] {
            assert_eq!(text.parse::<EntryId>(), Err(()), "{text}");
        }
    }
}
