//! What each node leaves of itself beside the stream, as a line of text.

use crate::position::EntryId;

/// The first word of a line; a line of another version is not read.
const VERSION: &str = "1";

/// A node as it described itself last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    /// The process.
    pub life: u64,
    /// The last entry whose purges it has carried out.
    pub position: EntryId,
    /// When, by the clock of the server that keeps the stream.
    pub seen_ms: u64,
}

impl Peer {
    /// The line.
    #[must_use]
    pub fn line(&self) -> String {
        let Self { life, position, seen_ms } = self;
        format!("{VERSION} {life:016x} {position} {seen_ms}")
    }

    /// Reads a line.
    #[must_use]
    pub fn read(line: &str) -> Option<Self> {
        let mut words = line.split(' ');
        let is_ours = words.next()? == VERSION;
        let life = u64::from_str_radix(words.next()?, 16).ok()?;
        let position = words.next()?.parse().ok()?;
        let seen_ms = words.next()?.parse().ok()?;
        (is_ours && words.next().is_none()).then_some(Self { life, position, seen_ms })
    }
}

#[cfg(test)]
mod tests {
    use super::{EntryId, Peer};

    #[test]
    fn a_line_is_read_as_it_was_written_and_no_other() {
        let peer = Peer { life: 77, position: EntryId { ms: 5, number: 6 }, seen_ms: 8 };
        let line = peer.line();
        assert_eq!(Peer::read(&line), Some(peer));
        for text in ["", "1", "2 4d 5-6 8", "1 4d 5-6", "1 4d 5-6 8 9", "1 xx 5-6 8", "1 4d 56 8"] {
            assert_eq!(Peer::read(text), None, "{text}");
        }
    }
}
