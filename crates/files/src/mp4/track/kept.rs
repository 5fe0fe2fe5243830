//! What is kept of a track: samples, their times, and the chunks that they lie in.

use std::ops::Range;

use super::super::Mp4Fault;
use super::super::atoms::number;
use super::tables::{ChunkOffsets, SampleSizes};

/// What is kept of a track.
#[derive(Debug, Default)]
pub(super) struct KeptSamples {
    /// The samples, counted from 0.
    pub(super) samples: Range<u64>,
    /// Units of time before the wanted start, from a key frame on.
    pub(super) prefix: u64,
    /// How long each lasts: number of samples, units of time.
    pub(super) times: Vec<(u32, u32)>,
    pub(super) chunks: KeptChunks,
    /// The bytes of the file from the first of them to the last; none if there are none.
    pub(super) body: Option<Range<u64>>,
}

/// Chunks that have something of what is kept.
#[derive(Debug, Default)]
pub(super) struct KeptChunks {
    /// The chunks, counted from 0.
    pub(super) range: Range<u64>,
    /// Rows of the new `stsc` atom.
    pub(super) runs: Vec<[u32; 3]>,
}

/// A place between samples: a chunk, and how many of its samples come before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ChunkPlace {
    chunk: u64,
    before: u64,
}

/// Chunks with the same number of samples, counted from 0.
#[derive(Clone, Debug)]
struct ChunkRun {
    chunks: Range<u64>,
    samples: u64,
    description: u32,
}

impl KeptSamples {
    /// The sample, counted from 0, that is shown at `time`.
    pub(super) fn at_time(times: &[[u8; 8]], time: u64) -> Result<u64, Mp4Fault> {
        let (mut sample, mut left) = (0, time);
        for row in times {
            let (count, each) = (u64::from(number(row, 0)), u64::from(number(row, 1)));
            let all = count * each;
            if left < all {
                return Ok(sample + left / each);
            }
            sample += count;
            left -= all;
        }
        Err(Mp4Fault::inside("start time is out mp4 stts samples"))
    }

    /// Begins with `start`, or `back` samples before it.
    pub(super) fn begin(&mut self, times: &[[u8; 8]], start: u64, back: u64) {
        let begin = start.saturating_sub(back);
        let mut at = 0_u64;
        for row in times {
            let (count, each) = (number(row, 0), number(row, 1));
            let end = at + u64::from(count);
            let kept = end.saturating_sub(at.max(begin));
            if kept > 0 {
                self.times.push((kept as u32, each));
            }
            let before = end.min(start).saturating_sub(at.max(begin));
            self.prefix = self.prefix.saturating_add(before * u64::from(each));
            at = end;
        }
        self.samples = begin..at;
    }

    /// Ends `time` behind where it begins.
    pub(super) fn end(&mut self, time: u64) {
        let (mut kept, mut left) = (0, time);
        let mut sample = self.samples.start;
        for (count, each) in &mut self.times {
            let all = u64::from(*count) * u64::from(*each);
            if left < all {
                *count = (left / u64::from(*each)) as u32;
                sample += u64::from(*count);
                kept += 1;
                break;
            }
            sample += u64::from(*count);
            left -= all;
            kept += 1;
        }
        self.times.truncate(kept);
        self.samples.end = sample;
    }

    /// Finds the chunks and the bytes of the samples.
    pub(super) fn place(
        &mut self,
        rows: &[[u8; 12]],
        sizes: &SampleSizes<'_>,
        offsets: &ChunkOffsets<'_>,
    ) -> Result<(), Mp4Fault> {
        let Range { start, end } = self.samples;
        if start >= end {
            return Ok(());
        }
        let out = |which: &str| Mp4Fault::inside(format!("{which} time is out mp4 stco chunks"));
        let first = find(rows, offsets.count(), start).ok_or_else(|| out("start"))?;
        // The last sample, and the place behind it.
        let mut last = find(rows, offsets.count(), end - 1).ok_or_else(|| out("end"))?;
        last.before += 1;
        let skipped = sizes.sum(start - first.before..start);
        let first_offset = offsets.at(first.chunk).saturating_add(skipped);
        let last_bytes = sizes.sum(end - last.before..end);
        self.body = Some(first_offset..offsets.at(last.chunk).saturating_add(last_bytes));
        self.chunks = KeptChunks {
            range: first.chunk..last.chunk + 1,
            runs: kept_runs(rows, offsets.count(), first, last),
        };
        Ok(())
    }
}

/// The runs of chunks that a table describes.
fn runs(rows: &[[u8; 12]], chunks: u64) -> impl Iterator<Item = ChunkRun> + '_ {
    let first = |row: &[u8; 12]| u64::from(number(row, 0)).saturating_sub(1);
    rows.iter().enumerate().map(move |(index, row)| {
        let end = rows.get(index + 1).map_or(chunks, first).min(chunks);
        ChunkRun {
            chunks: first(row).min(end)..end,
            samples: u64::from(number(row, 1)),
            description: number(row, 2),
        }
    })
}

/// Where a sample lies.
fn find(rows: &[[u8; 12]], chunks: u64, sample: u64) -> Option<ChunkPlace> {
    let mut left = sample;
    for run in runs(rows, chunks) {
        let all = (run.chunks.end - run.chunks.start) * run.samples;
        if left < all {
            let chunk = run.chunks.start + left / run.samples;
            return Some(ChunkPlace { chunk, before: left % run.samples });
        }
        left -= all;
    }
    None
}

/// The runs of the chunks from `first` to `last`, with the samples between those.
fn kept_runs(rows: &[[u8; 12]], chunks: u64, first: ChunkPlace, last: ChunkPlace) -> Vec<[u32; 3]> {
    let mut kept: Vec<[u32; 3]> = Vec::new();
    let mut push = |chunk: u64, samples: u64, description: u32| {
        let is_same = |row: &[u32; 3]| u64::from(row[1]) == samples && row[2] == description;
        if !kept.last().is_some_and(is_same) {
            // Numbers of 32 bits were read, and these are no larger.
            kept.push([(chunk - first.chunk + 1) as u32, samples as u32, description]);
        }
    };
    for run in runs(rows, chunks) {
        let mut at = run.chunks.start.max(first.chunk);
        let end = run.chunks.end.min(last.chunk + 1);
        if at >= end {
            continue;
        }
        let until = |chunk: u64| if chunk == last.chunk { last.before } else { run.samples };
        if at == first.chunk {
            push(at, until(at) - first.before, run.description);
            at += 1;
        }
        let whole_end = end - u64::from(end > last.chunk);
        if at < whole_end {
            push(at, run.samples, run.description);
        }
        if at.max(whole_end) == last.chunk && last.chunk < end {
            push(last.chunk, last.before, run.description);
        }
    }
    kept
}
