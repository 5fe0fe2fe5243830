//! The line of text by which each node describes itself beside the stream.

use crate::position::{EntryId, EntryMark};

/// The first word of a line; a line of another version is ignored.
const VERSION: &str = "4";
/// The last word of the line: the process has ended, or it may be running.
const STATES: [&str; 2] = ["ended", "runs"];

/// The last description of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    /// The process.
    pub life: u64,
    /// The last entry whose purges it has carried out.
    pub position: EntryMark,
    /// When, by the clock of the stream's server.
    pub seen_ms: u64,
    /// Purges of earlier processes of the node may be missing before this entry.
    pub fence: EntryId,
    /// Its process ended, with all its purges in the stream.
    pub has_ended: bool,
}

/// What this machine knows of the previous process of the node, whether or not that process ever
/// reached the stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LastLife {
    /// There was none.
    None,
    /// It was this one, and it ended with all its purges in the stream.
    Ended(u64),
    /// Unknown, or it was killed.
    #[default]
    Unknown,
}

impl LastLife {
    /// The entry before which purges of earlier processes may be missing in the stream, given that
    /// no purge of the last one is; `line` is the node's description. `None` if that is unknown: an
    /// old line may be of a process before the last one.
    #[must_use]
    pub fn fence(self, line: Option<&str>) -> Option<EntryId> {
        match (self, line) {
            (Self::None, None) => Some(EntryId::ZERO),
            (Self::Ended(life), Some(line)) => Peer::read(line)
                .filter(|peer| peer.has_ended && peer.life == life)
                .map(|peer| peer.fence),
            (Self::None | Self::Ended(_) | Self::Unknown, _) => None,
        }
    }
}

impl Peer {
    /// The line.
    #[must_use]
    pub fn line(&self) -> String {
        let Self { life, position, seen_ms, fence, has_ended } = *self;
        let [ended, runs] = STATES;
        let state = if has_ended { ended } else { runs };
        let EntryMark { id, sum } = position;
        format!("{VERSION} {life:016x} {id} {sum:016x} {seen_ms} {fence} {state}")
    }

    /// Reads a line.
    #[must_use]
    pub fn read(line: &str) -> Option<Self> {
        let mut words = line.split(' ');
        let is_ours = words.next()? == VERSION;
        let life = u64::from_str_radix(words.next()?, 16).ok()?;
        let id = words.next()?.parse().ok()?;
        let sum = u64::from_str_radix(words.next()?, 16).ok()?;
        let position = EntryMark { id, sum };
        let seen_ms = words.next()?.parse().ok()?;
        let fence = words.next()?.parse().ok()?;
        let state = words.next()?;
        let has_ended = state == STATES[0];
        let is_whole = STATES.contains(&state) && words.next().is_none();
        let peer = Self { life, position, seen_ms, fence, has_ended };
        (is_ours && is_whole).then_some(peer)
    }
}

#[cfg(test)]
mod tests {
    use super::{EntryId, EntryMark, LastLife, Peer};

    fn peer(life: u64, has_ended: bool) -> Peer {
        let position = EntryMark { id: EntryId { ms: 5, number: 6 }, sum: 10 };
        let fence = EntryId { ms: 1, number: 0 };
        Peer { life, position, seen_ms: 8, fence, has_ended }
    }

    #[test]
    fn a_line_is_read_as_it_was_written_and_no_other() {
        for has_ended in [true, false] {
            let peer = peer(77, has_ended);
            assert_eq!(Peer::read(&peer.line()), Some(peer));
        }
        for text in [
            "",
            "4",
            "3 4d 5-6 8 1-0 runs",
            "4 4d 5-6 8 1-0 runs",
            "4 4d 5-6 a 8 1-0",
            "4 4d 5-6 a 8 1-0 9",
            "4 4d 5-6 a 8 1-0 runs 9",
            "4 xx 5-6 a 8 1-0 ended",
            "4 4d 5-6 x 8 1-0 ended",
            "4 4d 56 a 8 1-0 ended",
        ] {
            assert_eq!(Peer::read(text), None, "{text}");
        }
    }

    #[test]
    fn only_the_farewell_of_the_very_last_process_is_evidence() {
        let ended = peer(77, true);
        let lines = [
            None,
            Some(ended.line()),
            Some(peer(77, false).line()),
            Some(peer(78, true).line()),
            Some("of another version".to_owned()),
        ];
        let fences = |last: LastLife| lines.each_ref().map(|line| last.fence(line.as_deref()));
        assert_eq!(fences(LastLife::None), [Some(EntryId::ZERO), None, None, None, None]);
        assert_eq!(fences(LastLife::Ended(77)), [None, Some(ended.fence), None, None, None]);
        assert_eq!(fences(LastLife::Unknown), [None; 5]);
    }
}
