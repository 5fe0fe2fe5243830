//! Limits the frames that cost a server more than the peer, per kind and connection.
//!
//! Owns counters only; requests, sent DATA and time reduce them. Frames that are cheap but endless
//! are counted per kind. `patience` counts wasted requests.

use bolide_base::Now;

use super::frame::code;
use crate::ConnError;
use crate::patience::{Exhausted, PREMATURE_FOR, Waste, WastePatience};

/// LIMIT: SETTINGS frames beyond the credit (each needs an acknowledgement).
pub(super) const SETTINGS_MAX: u16 = 64;
/// LIMIT: PING frames beyond the credit (each needs an answer).
pub(super) const PINGS_MAX: u16 = 512;
/// LIMIT: DATA frames without data that do not end a stream.
pub(super) const EMPTY_DATA_MAX: u16 = 256;
/// LIMIT: PRIORITY and `PRIORITY_UPDATE` frames.
pub(super) const PRIORITIES_MAX: u16 = 2048;
/// LIMIT: `WINDOW_UPDATE` frames beyond the credit that the sent data give.
pub(super) const WINDOW_UPDATES_MAX: u16 = 4096;
/// LIMIT: frames of unknown type.
pub(super) const UNKNOWN_MAX: u16 = 1024;
/// LIMIT: frames on closed streams.
pub(super) const STRAYS_MAX: u16 = 1024;
/// LIMIT: CONTINUATION frames of one field block.
pub(super) const CONTINUATIONS_MAX: u32 = 64;
/// LIMIT: bytes of a field block, encoded and decoded, as a multiple of `head_size_max`.
pub(super) const BLOCK_FACTOR: usize = 4;
/// LIMIT: queued control frames of a peer that does not read.
pub(super) const CONTROL_QUEUED_MAX: u32 = 2048;

/// The credit of one request, for every kind.
const REQUEST_PAYS: u16 = 16;
/// The bytes of sent data that give credit for a `WINDOW_UPDATE` frame. The receiver decides when
/// it sends these (RFC 9113 §6.9.1): Go's sends two for 4 KiB that an application has read, long
/// after they came.
const UPDATE_COSTS: usize = 256;
/// The fraction of each limit that one second gives credit for.
const SECOND_PAYS: u16 = 64;
/// The spells that time is counted in: a stream from before the previous one has waited for at
/// least one, and one that has waited for [`PREMATURE_FOR`] is always among these.
const SPELL: u64 = PREMATURE_FOR / 2;
const SPELLS_PER_SECOND: u32 = (1_000_000_000 / SPELL) as u32;

/// The kinds of frames that are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CountedFrame {
    Settings,
    Ping,
    EmptyData,
    Priority,
    WindowUpdate,
    Unknown,
    Stray,
}

const KINDS: usize = 7;
const LIMITS: [u16; KINDS] = [
    SETTINGS_MAX,
    PINGS_MAX,
    EMPTY_DATA_MAX,
    PRIORITIES_MAX,
    WINDOW_UPDATES_MAX,
    UNKNOWN_MAX,
    STRAYS_MAX,
];
const REASONS: [&str; KINDS] = [
    "client sent too many SETTINGS frames",
    "client sent too many PING frames",
    "client sent too many empty DATA frames",
    "client sent too many PRIORITY frames",
    "client sent too many WINDOW_UPDATE frames",
    "client sent too many frames of unknown type",
    "client sent too many frames on closed streams",
];

/// An `ENHANCE_YOUR_CALM` error.
pub(super) const fn calm(reason: &'static str) -> ConnError {
    ConnError { code: code::ENHANCE_YOUR_CALM as u64, reason }
}

/// The counters of one connection.
#[derive(Debug, Default)]
pub(super) struct Abuse {
    counts: [u16; KINDS],
    /// `WINDOW_UPDATE` frames that are paid for by sent data.
    updates_paid: u32,
    patience: WastePatience,
    /// Streams above this id were opened by the bytes of the current call.
    opened_before: u32,
    /// The current [`SPELL`]. It fits: the clock begins with the machine.
    spell: u32,
    /// The last stream that was opened before this spell. Streams are numbered in order, so that
    /// this and the next number tell which ones have waited.
    before_this: u32,
    /// The last stream that was opened before the previous spell.
    before_previous: u32,
}

impl Abuse {
    /// Counts a frame.
    pub(super) fn charge(&mut self, kind: CountedFrame) -> Result<(), ConnError> {
        if kind == CountedFrame::WindowUpdate && self.updates_paid > 0 {
            self.updates_paid -= 1;
            return Ok(());
        }
        let count = &mut self.counts[kind as usize];
        debug_assert!(*count <= LIMITS[kind as usize], "an exhausted connection is closed");
        *count += 1;
        if *count > LIMITS[kind as usize] { Err(calm(REASONS[kind as usize])) } else { Ok(()) }
    }

    /// Credits a request.
    #[inline]
    pub(super) fn pay_request(&mut self) {
        for count in &mut self.counts {
            *count = count.saturating_sub(REQUEST_PAYS);
        }
    }

    /// Credits the data of a sent frame.
    #[inline]
    pub(super) fn pay_data(&mut self, bytes: usize) {
        let updates = u32::try_from(bytes.div_ceil(UPDATE_COSTS)).unwrap_or(u32::MAX);
        self.updates_paid = self.updates_paid.saturating_add(updates);
    }

    /// Credits a completed response.
    #[inline]
    pub(super) fn complete(&mut self) {
        self.patience.complete();
    }

    /// Begins a call of `receive`; `last` is the highest stream before it.
    pub(super) fn begin(&mut self, now: Now, last: u32) {
        self.opened_before = last;
        let spell = (now.mono.as_nanos() / SPELL) as u32;
        if spell > self.spell {
            self.rest(spell, last);
        }
    }

    /// Credits the time until `spell`, and remembers that the streams up to `last` are older.
    fn rest(&mut self, spell: u32, last: u32) {
        let seconds = spell / SPELLS_PER_SECOND - self.spell / SPELLS_PER_SECOND;
        if seconds > 0 {
            self.patience.rest(seconds);
            let seconds = seconds.min(u32::from(SECOND_PAYS)) as u16;
            for (count, limit) in self.counts.iter_mut().zip(LIMITS) {
                *count = count.saturating_sub((limit / SECOND_PAYS) * seconds);
            }
        }
        self.before_previous = if spell == self.spell + 1 { self.before_this } else { last };
        (self.spell, self.before_this) = (spell, last);
        debug_assert!(self.before_previous <= last, "streams are opened in order");
    }

    /// The client sent a malformed request, which we reset. A stream above the limit counts less,
    /// because an honest client may not know the limit yet.
    pub(super) fn waste(&mut self, code: u32) -> Result<(), ConnError> {
        let is_refused = code == code::REFUSED_STREAM;
        self.spend(if is_refused { Waste::Premature } else { Waste::Broken })
    }

    /// The client cancelled a request before its response began. One that has waited costs nothing.
    pub(super) fn cancel(&mut self, stream: u32) -> Result<(), ConnError> {
        if stream <= self.before_previous {
            return Ok(());
        }
        let is_new = stream > self.opened_before;
        self.spend(if is_new { Waste::AtOnce } else { Waste::Premature })
    }

    fn spend(&mut self, waste: Waste) -> Result<(), ConnError> {
        self.patience.waste(waste).map_err(|Exhausted| calm("client cancelled too many requests"))
    }

    /// Returns the wasted requests since the last call.
    pub(super) fn take_wasted(&mut self) -> u32 {
        self.patience.take_unreported()
    }
}

#[cfg(test)]
mod tests {
    use super::{Abuse, CountedFrame, PINGS_MAX, WINDOW_UPDATES_MAX};
    use bolide_base::{Instant, Now};

    fn at(seconds: u64) -> Now {
        Now { mono: Instant::from_nanos(seconds * 1_000_000_000), unix_millis: 0 }
    }

    #[test]
    fn chatter_is_paid_for_by_requests_and_time() {
        let mut abuse = Abuse::default();
        for _ in 0..PINGS_MAX {
            assert!(abuse.charge(CountedFrame::Ping).is_ok());
        }
        assert!(abuse.charge(CountedFrame::Ping).is_err());
        abuse.pay_request();
        assert!(abuse.charge(CountedFrame::Ping).is_ok());
        abuse.pay_data(100 << 20);
        for _ in 0..100 << 12 {
            assert!(abuse.charge(CountedFrame::WindowUpdate).is_ok());
        }
        for _ in 0..WINDOW_UPDATES_MAX {
            assert!(abuse.charge(CountedFrame::WindowUpdate).is_ok());
        }
        assert!(abuse.charge(CountedFrame::WindowUpdate).is_err());
        // The time between two pings pays for a ping per second.
        let mut abuse = Abuse::default();
        for second in 0..10_000 {
            abuse.begin(at(second), 0);
            assert!(abuse.charge(CountedFrame::Ping).is_ok());
        }
    }
}
