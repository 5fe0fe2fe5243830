//! A track: which of its samples are kept, and the tables that tell where they are.

use std::ops::Range;

use super::atoms::{Atom, Atoms, Table, number, push_atom};
use super::movie::{TimedHead, units};
use super::{Mp4Cut, Mp4Fault};

mod kept;
mod tables;

use kept::KeptSamples;
use tables::{ChunkOffsets, TrackTables};

/// A track and what is kept of it.
#[derive(Debug)]
pub(super) struct Track<'m> {
    tkhd: Option<TimedHead>,
    mdhd: Option<TimedHead>,
    hdlr: Option<&'m [u8]>,
    /// `vmhd` or `smhd`, and `dinf`.
    media: [Option<&'m [u8]>; 3],
    tables: TrackTables<'m>,
    kept: KeptSamples,
}

impl<'m> Track<'m> {
    /// Reads the content of a `trak` atom; `None` if it ends before the wanted start. `timescale`
    /// is the movie's.
    pub(super) fn read(
        trak: &'m [u8],
        cut: &Mp4Cut,
        timescale: u32,
    ) -> Result<Option<Self>, Mp4Fault> {
        let mut track = Self {
            tkhd: None,
            mdhd: None,
            hdlr: None,
            media: [None; 3],
            tables: TrackTables::default(),
            kept: KeptSamples::default(),
        };
        for atom in Atoms::of(trak) {
            let atom = atom?;
            match &atom.name {
                b"tkhd" => {
                    let head = TimedHead::read(&atom)?;
                    let Some(head) = shortened(head, cut, timescale) else { return Ok(None) };
                    once(&mut track.tkhd, head, &atom)?;
                }
                b"mdia" if !track.read_media(atom.content, cut)? => return Ok(None),
                _ => {}
            }
        }
        Ok(Some(track))
    }

    /// False if the track ends before the wanted start.
    fn read_media(&mut self, mdia: &'m [u8], cut: &Mp4Cut) -> Result<bool, Mp4Fault> {
        for atom in Atoms::of(mdia) {
            let atom = atom?;
            match &atom.name {
                b"mdhd" => {
                    let head = TimedHead::read(&atom)?;
                    let timescale = head.timescale;
                    let Some(head) = shortened(head, cut, timescale) else { return Ok(false) };
                    once(&mut self.mdhd, head, &atom)?;
                }
                b"hdlr" => once(&mut self.hdlr, atom.whole, &atom)?,
                b"minf" => self.read_information(atom.content)?,
                _ => {}
            }
        }
        Ok(true)
    }

    fn read_information(&mut self, minf: &'m [u8]) -> Result<(), Mp4Fault> {
        for atom in Atoms::of(minf) {
            let atom = atom?;
            match &atom.name {
                b"vmhd" => once(&mut self.media[0], atom.whole, &atom)?,
                b"smhd" => once(&mut self.media[1], atom.whole, &atom)?,
                b"dinf" => once(&mut self.media[2], atom.whole, &atom)?,
                b"stbl" => self.tables.read(atom.content)?,
                _ => {}
            }
        }
        Ok(())
    }

    /// Decides what is kept.
    pub(super) fn cut(&mut self, cut: &Mp4Cut) -> Result<(), Mp4Fault> {
        let timescale = self.mdhd.as_ref().map_or(0, |head| head.timescale);
        let missing = |name: &str| Mp4Fault::inside(format!("no mp4 {name} were found"));
        let times = self.tables.times.ok_or_else(|| missing("stts atoms"))?;
        let runs = self.tables.chunk_runs.ok_or_else(|| missing("stsc atoms"))?;
        let sizes = self.tables.sizes.ok_or_else(|| missing("stsz atoms"))?;
        let offsets = self.tables.offsets.ok_or_else(|| missing("stco atoms"))?;
        let kept = &mut self.kept;
        let start = KeptSamples::at_time(times.rows, units(cut.start, timescale))?;
        let back = match (cut.start_key_frame, self.tables.key_frames) {
            (true, Some(table)) => to_key_frame(table.rows, start),
            _ => 0,
        };
        kept.begin(times.rows, start, back);
        if let (Some(head), true) = (&mut self.mdhd, kept.prefix > 0) {
            head.set_duration(head.duration().saturating_add(kept.prefix));
        }
        if let Some(length) = cut.length {
            kept.end(units(length, timescale).saturating_add(kept.prefix));
        } else {
            kept.samples.end = sizes.count();
        }
        if kept.samples.start > sizes.count() || kept.samples.end > sizes.count() {
            let which = if kept.samples.start > sizes.count() { "start" } else { "end" };
            return Err(Mp4Fault::inside(format!("{which} time is out mp4 stsz samples")));
        }
        kept.place(runs.rows, &sizes, &offsets)
    }

    /// The bytes of the file that it needs, if any.
    pub(super) const fn body(&self) -> Option<&Range<u64>> {
        self.kept.body.as_ref()
    }

    /// Whether all its chunks can be `shift` bytes further on.
    pub(super) fn bears(&self, shift: i128) -> bool {
        let most = match self.tables.offsets {
            Some(ChunkOffsets::Short(_)) => i128::from(u32::MAX),
            _ => i128::from(u64::MAX),
        };
        self.offsets().all(|offset| (0..=most).contains(&(i128::from(offset) + shift)))
    }

    /// Where the kept chunks begin in the file.
    fn offsets(&self) -> impl Iterator<Item = u64> + '_ {
        let KeptSamples { chunks, body, .. } = &self.kept;
        let all = self.tables.offsets.iter();
        let kept = all.flat_map(|offsets| chunks.range.clone().map(|chunk| offsets.at(chunk)));
        // The first chunk begins with the first sample that is kept of it.
        let first = body.as_ref().map(|body| body.start);
        kept.enumerate().map(move |(index, at)| first.filter(|_| index == 0).unwrap_or(at))
    }

    /// Appends the content of the new `trak` atom.
    pub(super) fn write(&self, shift: i128, out: &mut Vec<u8>) {
        if let Some(head) = &self.tkhd {
            head.write(out);
        }
        if self.kept.prefix > 0 {
            push_atom(out, *b"edts", |out| push_atom(out, *b"elst", |out| self.write_edit(out)));
        }
        push_atom(out, *b"mdia", |out| {
            if let Some(head) = &self.mdhd {
                head.write(out);
            }
            out.extend_from_slice(self.hdlr.unwrap_or_default());
            push_atom(out, *b"minf", |out| {
                for part in self.media.into_iter().flatten() {
                    out.extend_from_slice(part);
                }
                push_atom(out, *b"stbl", |out| self.write_tables(shift, out));
            });
        });
    }

    /// An edit list (ISO/IEC 14496-12 §8.6.6), by which players leave out what comes before the
    /// wanted start: version 1, one entry, the duration of the track, its first moment, speed 1.
    fn write_edit(&self, out: &mut Vec<u8>) {
        let duration = self.tkhd.as_ref().map_or(0, TimedHead::duration);
        out.extend_from_slice(&[1, 0, 0, 0]);
        out.extend_from_slice(&1_u32.to_be_bytes());
        out.extend_from_slice(&duration.to_be_bytes());
        out.extend_from_slice(&self.kept.prefix.to_be_bytes());
        out.extend_from_slice(&[0, 1, 0, 0]);
    }

    fn write_tables(&self, shift: i128, out: &mut Vec<u8>) {
        let (tables, kept) = (&self.tables, &self.kept);
        out.extend_from_slice(tables.descriptions.unwrap_or_default());
        push_atom(out, *b"stts", |out| {
            out.extend_from_slice(tables.times.map_or(&[0; 4], |table| table.lead));
            push_rows(&kept.times, out, |(count, duration), out| {
                out.extend_from_slice(&count.to_be_bytes());
                out.extend_from_slice(&duration.to_be_bytes());
            });
        });
        if let Some(table) = tables.key_frames {
            push_atom(out, *b"stss", |out| write_key_frames(&table, &kept.samples, out));
        }
        if let Some(table) = tables.shifts {
            push_atom(out, *b"ctts", |out| write_shifts(&table, &kept.samples, out));
        }
        push_atom(out, *b"stsc", |out| {
            out.extend_from_slice(tables.chunk_runs.map_or(&[0; 4], |table| table.lead));
            push_rows(&kept.chunks.runs, out, |run, out| {
                run.iter().for_each(|number| out.extend_from_slice(&number.to_be_bytes()));
            });
        });
        if let Some(sizes) = &tables.sizes {
            push_atom(out, *b"stsz", |out| sizes.write(&kept.samples, out));
        }
        let moved = |offset: u64| (i128::from(offset) + shift) as u64;
        match tables.offsets {
            Some(ChunkOffsets::Short(table)) => push_atom(out, *b"stco", |out| {
                out.extend_from_slice(table.lead);
                let offsets: Vec<u32> = self.offsets().map(|at| moved(at) as u32).collect();
                push_rows(&offsets, out, |at, out| out.extend_from_slice(&at.to_be_bytes()));
            }),
            Some(ChunkOffsets::Long(table)) => push_atom(out, *b"co64", |out| {
                out.extend_from_slice(table.lead);
                let offsets: Vec<u64> = self.offsets().map(moved).collect();
                push_rows(&offsets, out, |at, out| out.extend_from_slice(&at.to_be_bytes()));
            }),
            None => {}
        }
    }
}

/// Takes an atom that may stand there once.
fn once<T>(place: &mut Option<T>, value: T, atom: &Atom<'_>) -> Result<(), Mp4Fault> {
    match place.replace(value) {
        None => Ok(()),
        Some(_) => {
            let name = String::from_utf8_lossy(&atom.name).into_owned();
            Err(Mp4Fault::inside(format!("duplicate mp4 {name} atom")))
        }
    }
}

/// The head of a track with the wanted duration; `None` if it ends before that.
fn shortened(mut head: TimedHead, cut: &Mp4Cut, timescale: u32) -> Option<TimedHead> {
    let is_over = head.duration() <= units(cut.start, timescale);
    let wanted = head.wanted(cut, timescale).filter(|_| !is_over)?;
    head.set_duration(wanted);
    Some(head)
}

/// Appends a number of rows, and the rows.
fn push_rows<T>(rows: &[T], out: &mut Vec<u8>, mut push: impl FnMut(&T, &mut Vec<u8>)) {
    out.extend_from_slice(&(rows.len() as u32).to_be_bytes());
    rows.iter().for_each(|row| push(row, out));
}

/// How many samples before `start`, counted from 0, the last key frame is; 0 if there is none.
fn to_key_frame(key_frames: &[[u8; 4]], start: u64) -> u64 {
    let before = key_frames.iter().map(|row| u64::from(number(row, 0)));
    let last = before.take_while(|sample| *sample <= start + 1).last();
    // They are counted from 1.
    last.map_or(0, |sample| start + 1 - sample.max(1))
}

fn write_key_frames(table: &Table<'_, 4>, samples: &Range<u64>, out: &mut Vec<u8>) {
    out.extend_from_slice(table.lead);
    let all = table.rows.iter().map(|row| u64::from(number(row, 0)));
    let kept = all.filter(|sample| (samples.start + 1..=samples.end).contains(sample));
    // What is kept of 32 bits has 32 bits.
    let kept: Vec<u32> = kept.map(|sample| (sample - samples.start) as u32).collect();
    push_rows(&kept, out, |sample, out| out.extend_from_slice(&sample.to_be_bytes()));
}

fn write_shifts(table: &Table<'_, 8>, samples: &Range<u64>, out: &mut Vec<u8>) {
    out.extend_from_slice(table.lead);
    let mut at = 0_u64;
    let mut kept = Vec::new();
    for row in table.rows {
        let end = at + u64::from(number(row, 0));
        // As in nginx, the row of the sample behind the last one stays, even for none.
        if end > samples.start && at <= samples.end {
            let count = end.min(samples.end) - at.max(samples.start);
            kept.push((count as u32, number(row, 1)));
        }
        at = end;
    }
    push_rows(&kept, out, |(count, shift), out| {
        out.extend_from_slice(&count.to_be_bytes());
        out.extend_from_slice(&shift.to_be_bytes());
    });
}
