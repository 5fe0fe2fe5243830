//! What each node leaves of itself beside the stream, as a line of text.

use crate::position::EntryId;

/// The first word of a line; a line of another version is not read.
const VERSION: &str = "2";

/// No process has this number.
const FAREWELL: u64 = 0;

/// A node as it described itself last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    /// The process.
    pub life: u64,
    /// The last entry whose purges it has carried out.
    pub position: EntryId,
    /// When, by the clock of the server that keeps the stream.
    pub seen_ms: u64,
    /// Purges of earlier processes of the node may be missing before this entry.
    pub fence: EntryId,
}

impl Peer {
    /// The line of a node whose process ended, with all its purges in the stream.
    #[must_use]
    pub const fn farewell(self) -> Self {
        Self { life: FAREWELL, ..self }
    }

    /// Whether its process ended, with all its purges in the stream.
    #[must_use]
    pub const fn is_farewell(self) -> bool {
        self.life == FAREWELL
    }

    /// The line.
    #[must_use]
    pub fn line(&self) -> String {
        let Self { life, position, seen_ms, fence } = self;
        format!("{VERSION} {life:016x} {position} {seen_ms} {fence}")
    }

    /// Reads a line.
    #[must_use]
    pub fn read(line: &str) -> Option<Self> {
        let mut words = line.split(' ');
        let is_ours = words.next()? == VERSION;
        let life = u64::from_str_radix(words.next()?, 16).ok()?;
        let position = words.next()?.parse().ok()?;
        let seen_ms = words.next()?.parse().ok()?;
        let fence = words.next()?.parse().ok()?;
        (is_ours && words.next().is_none()).then_some(Self { life, position, seen_ms, fence })
    }
}

#[cfg(test)]
mod tests {
    use super::{EntryId, Peer};

    #[test]
    fn a_line_is_read_as_it_was_written_and_no_other() {
        let (position, fence) = (EntryId { ms: 5, number: 6 }, EntryId { ms: 1, number: 0 });
        let peer = Peer { life: 77, position, seen_ms: 8, fence };
        let line = peer.line();
        assert_eq!(Peer::read(&line), Some(peer));
        assert!(
            !peer.is_farewell()
                && Peer::read(&peer.farewell().line()).is_some_and(Peer::is_farewell)
        );
        for text in [
            "",
            "2",
            "1 4d 5-6 8 1-0",
            "2 4d 5-6 8",
            "2 4d 5-6 8 9",
            "2 4d 5-6 8 1-0 9",
            "2 xx 5-6 8 1-0",
            "2 4d 56 8 1-0",
        ] {
            assert_eq!(Peer::read(text), None, "{text}");
        }
    }
}
