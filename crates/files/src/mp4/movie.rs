//! The `moov` atom: the movie's head and its tracks, cut and written anew.

use std::ops::Range;

use super::atoms::{Atom, Atoms, long_at, number_at, push_atom};
use super::track::Track;
use super::{Mp4Cut, Mp4Fault};

/// The parts of a `moov` atom that are sent.
#[derive(Debug)]
pub(super) struct Movie<'m> {
    head: Option<TimedHead>,
    tracks: Vec<Track<'m>>,
}

/// An atom with a duration: `mvhd`, `tkhd`, `mdhd`.
#[derive(Clone, Debug)]
pub(super) struct TimedHead {
    /// The whole atom.
    bytes: Vec<u8>,
    /// Where its duration stands, and whether in eight bytes.
    duration_at: usize,
    is_long: bool,
    /// Units in a second; 0 if the atom has none.
    pub(super) timescale: u32,
}

impl TimedHead {
    /// Reads `mvhd` or `mdhd` (ISO/IEC 14496-12 §8.2.2, §8.4.2), or `tkhd` (§8.3.2), which has the
    /// number of the track and a reserved word where those have their timescale.
    pub(super) fn read(atom: &Atom<'_>) -> Result<Self, Mp4Fault> {
        let is_long = atom.content.first() == Some(&1);
        let is_track = &atom.name == b"tkhd";
        let timescale_at = if is_long { 20 } else { 12 };
        let duration_at = timescale_at + if is_track { 8 } else { 4 };
        let end = duration_at + if is_long { 8 } else { 4 };
        if atom.content.len() < end {
            let name = String::from_utf8_lossy(&atom.name).into_owned();
            return Err(Mp4Fault::about(format!("{name} atom too small")));
        }
        let head = atom.whole.len() - atom.content.len();
        Ok(Self {
            bytes: atom.whole.to_vec(),
            duration_at: head + duration_at,
            is_long,
            timescale: if is_track { 0 } else { number_at(atom.content, timescale_at) },
        })
    }

    pub(super) fn duration(&self) -> u64 {
        match self.is_long {
            true => long_at(&self.bytes, self.duration_at),
            false => u64::from(number_at(&self.bytes, self.duration_at)),
        }
    }

    pub(super) fn set_duration(&mut self, duration: u64) {
        let at = self.duration_at;
        match self.is_long {
            true => self.bytes[at..at + 8].copy_from_slice(&duration.to_be_bytes()),
            false => {
                // A part is no longer than the whole, but for what comes before a key frame.
                let duration = u32::try_from(duration).unwrap_or(u32::MAX);
                self.bytes[at..at + 4].copy_from_slice(&duration.to_be_bytes());
            }
        }
    }

    /// What of its duration is wanted, in its units or those of `timescale`; `None` if it ends
    /// before that.
    pub(super) fn wanted(&self, cut: &Mp4Cut, timescale: u32) -> Option<u64> {
        let left = self.duration().checked_sub(units(cut.start, timescale))?;
        Some(cut.length.map_or(left, |length| left.min(units(length, timescale))))
    }

    pub(super) fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.bytes);
    }
}

/// Milliseconds in units of `timescale`.
pub(super) fn units(millis: u64, timescale: u32) -> u64 {
    let units = u128::from(millis) * u128::from(timescale) / 1000;
    u64::try_from(units).unwrap_or(u64::MAX)
}

impl<'m> Movie<'m> {
    /// Reads the content of a `moov` atom and cuts its tracks.
    pub(super) fn read(moov: &'m [u8], cut: &Mp4Cut) -> Result<Self, Mp4Fault> {
        let mut head: Option<TimedHead> = None;
        let mut tracks = Vec::new();
        for atom in Atoms::of(moov) {
            let atom = atom?;
            match &atom.name {
                b"mvhd" if head.is_some() => {
                    return Err(Mp4Fault::inside("duplicate mp4 mvhd atom"));
                }
                b"mvhd" => {
                    let mut read = TimedHead::read(&atom)?;
                    let Some(wanted) = read.wanted(cut, read.timescale) else {
                        return Err(Mp4Fault::about("start time exceeds file duration"));
                    };
                    read.set_duration(wanted);
                    head = Some(read);
                }
                b"cmov" => {
                    return Err(Mp4Fault::about("compressed moov atom (cmov) is not supported"));
                }
                b"trak" => {
                    let timescale = head.as_ref().map_or(0, |head| head.timescale);
                    tracks.extend(Track::read(atom.content, cut, timescale)?);
                }
                _ => {}
            }
        }
        if tracks.is_empty() {
            return Err(Mp4Fault::inside("no mp4 trak atoms were found"));
        }
        for track in &mut tracks {
            track.cut(cut)?;
        }
        Ok(Self { head, tracks })
    }

    /// The bytes of the file that the tracks need, within those of `mdat`.
    pub(super) fn span(&self, mdat: &Range<u64>, cut: &Mp4Cut) -> Result<Range<u64>, Mp4Fault> {
        let bodies = || self.tracks.iter().filter_map(Track::body);
        let bounds = (bodies().map(|body| body.start).min(), bodies().map(|body| body.end).max());
        let (Some(start), Some(end)) = bounds else {
            return Err(Mp4Fault::inside("no data between start time and end time"));
        };
        let end = cut.length.map_or(mdat.end, |_| end);
        if !(mdat.start..=mdat.end).contains(&start) {
            return Err(Mp4Fault::inside("start time is out mp4 mdat atom"));
        }
        Ok(start..end.clamp(start, mdat.end))
    }

    /// Refuses a shift that leads an offset of 32 bits out of those.
    pub(super) fn check_shift(&self, shift: i128) -> Result<(), Mp4Fault> {
        match self.tracks.iter().all(|track| track.bears(shift)) {
            true => Ok(()),
            false => Err(Mp4Fault::inside("a chunk is out of reach of the mp4 stco atom")),
        }
    }

    /// Appends the content of the new `moov` atom; the chunks lie `shift` bytes behind where they
    /// lay.
    pub(super) fn write(&self, shift: i128, out: &mut Vec<u8>) {
        if let Some(head) = &self.head {
            head.write(out);
        }
        for track in &self.tracks {
            push_atom(out, *b"trak", |out| track.write(shift, out));
        }
    }
}
