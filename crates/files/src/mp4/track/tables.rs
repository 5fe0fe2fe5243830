//! The tables of a track (ISO/IEC 14496-12 §8.6 and §8.7), as they stand in the file.

use std::ops::Range;

use super::super::Mp4Fault;
use super::super::atoms::{Atoms, Table, long_at, number, number_at};
use super::{once, push_rows};

/// The tables of an `stbl` atom.
#[derive(Debug, Default)]
pub(super) struct TrackTables<'m> {
    /// `stsd`
    pub(super) descriptions: Option<&'m [u8]>,
    /// `stts`: numbers of samples, and how long each of them lasts.
    pub(super) times: Option<Table<'m, 8>>,
    /// `stss`: the samples that are key frames; all are where there is no such table.
    pub(super) key_frames: Option<Table<'m, 4>>,
    /// `ctts`: numbers of samples, and how much later each of them is shown.
    pub(super) shifts: Option<Table<'m, 8>>,
    /// `stsc`: first chunks, how many samples each has, and their description.
    pub(super) chunk_runs: Option<Table<'m, 12>>,
    /// `stsz`
    pub(super) sizes: Option<SampleSizes<'m>>,
    /// `stco` or `co64`
    pub(super) offsets: Option<ChunkOffsets<'m>>,
}

/// How many bytes samples have.
#[derive(Clone, Copy, Debug)]
pub(super) enum SampleSizes<'m> {
    /// All the same: version and flags, bytes, number of samples.
    Same([u8; 4], u32, u32),
    /// Each its own.
    Each(Table<'m, 4>),
}

/// Where chunks begin in the file.
#[derive(Clone, Copy, Debug)]
pub(super) enum ChunkOffsets<'m> {
    /// `stco`
    Short(Table<'m, 4>),
    /// `co64`
    Long(Table<'m, 8>),
}

impl<'m> TrackTables<'m> {
    /// Reads the content of an `stbl` atom.
    pub(super) fn read(&mut self, stbl: &'m [u8]) -> Result<(), Mp4Fault> {
        for atom in Atoms::of(stbl) {
            let atom = atom?;
            let content = atom.content;
            match &atom.name {
                b"stsd" => once(&mut self.descriptions, atom.whole, &atom)?,
                b"stts" => once(&mut self.times, Table::read("stts", content, 4)?, &atom)?,
                b"stss" => once(&mut self.key_frames, Table::read("stss", content, 4)?, &atom)?,
                b"ctts" => once(&mut self.shifts, Table::read("ctts", content, 4)?, &atom)?,
                b"stsc" => once(&mut self.chunk_runs, Table::read("stsc", content, 4)?, &atom)?,
                b"stsz" => once(&mut self.sizes, SampleSizes::read(content)?, &atom)?,
                b"stco" => {
                    let table = ChunkOffsets::Short(Table::read("stco", content, 4)?);
                    once(&mut self.offsets, table, &atom)?;
                }
                b"co64" => {
                    let table = ChunkOffsets::Long(Table::read("co64", content, 4)?);
                    once(&mut self.offsets, table, &atom)?;
                }
                _ => {}
            }
        }
        Ok(())
    }
}

impl<'m> SampleSizes<'m> {
    fn read(content: &'m [u8]) -> Result<Self, Mp4Fault> {
        let lead = content.first_chunk::<4>().filter(|_| content.len() >= 12);
        let lead = lead.ok_or_else(|| Mp4Fault::about("stsz atom too small"))?;
        match number_at(content, 4) {
            0 => Ok(Self::Each(Table::read("stsz", content, 8)?)),
            size => Ok(Self::Same(*lead, size, number_at(content, 8))),
        }
    }

    /// Samples.
    pub(super) const fn count(&self) -> u64 {
        match self {
            Self::Same(_, _, count) => *count as u64,
            Self::Each(table) => table.rows.len() as u64,
        }
    }

    /// Bytes of these samples, which are there.
    pub(super) fn sum(&self, samples: Range<u64>) -> u64 {
        match self {
            Self::Same(_, size, _) => {
                u64::from(*size).saturating_mul(samples.end.saturating_sub(samples.start))
            }
            Self::Each(table) => {
                let rows = table.rows.get(samples.start as usize..samples.end as usize);
                rows.unwrap_or_default().iter().map(|row| u64::from(number(row, 0))).sum()
            }
        }
    }

    /// Appends the content of the new atom.
    pub(super) fn write(&self, samples: &Range<u64>, out: &mut Vec<u8>) {
        match self {
            Self::Same(lead, size, _) => {
                out.extend_from_slice(lead);
                out.extend_from_slice(&size.to_be_bytes());
                let count = (samples.end - samples.start) as u32;
                out.extend_from_slice(&count.to_be_bytes());
            }
            Self::Each(table) => {
                out.extend_from_slice(table.lead);
                let rows = table.rows.get(samples.start as usize..samples.end as usize);
                push_rows(rows.unwrap_or_default(), out, |row, out| out.extend_from_slice(row));
            }
        }
    }
}

impl ChunkOffsets<'_> {
    /// Chunks.
    pub(super) const fn count(&self) -> u64 {
        match self {
            Self::Short(table) => table.rows.len() as u64,
            Self::Long(table) => table.rows.len() as u64,
        }
    }

    /// Where a chunk begins that is there.
    pub(super) fn at(&self, chunk: u64) -> u64 {
        let chunk = chunk as usize;
        match self {
            Self::Short(table) => table.rows.get(chunk).map_or(0, |row| u64::from(number(row, 0))),
            Self::Long(table) => table.rows.get(chunk).map_or(0, |row| long_at(row, 0)),
        }
    }
}
