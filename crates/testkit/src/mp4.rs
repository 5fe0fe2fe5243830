//! Small MP4 files (ISO/IEC 14496-12) for tests, made of numbered samples; and a parser that reads
//! one as a player does.
//!
//! It writes and reads the public format by itself and shares no code with the product.

/// A track whose samples contain their numbers.
#[derive(Clone, Debug)]
pub struct Mp4Track {
    /// Time units per second.
    pub timescale: u32,
    /// Numbers of samples, and the duration of each of them.
    pub times: Vec<(u32, u32)>,
    /// Samples of each chunk.
    pub chunks: Vec<u32>,
    /// Key frames, counted from 1.
    pub keys: Option<Vec<u32>>,
    /// The size of all samples; 0 means that sizes differ.
    pub same: u32,
    /// Whether offsets have 64 bits.
    pub long: bool,
    /// The mark of its samples, which differs from those of other tracks.
    pub mark: u8,
}

/// A parsed track.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mp4Found {
    /// The bytes of each sample.
    pub samples: Vec<Vec<u8>>,
    /// The duration of each sample.
    pub times: Vec<u32>,
    /// Key frames, counted from 1.
    pub keys: Option<Vec<u32>>,
    /// The start time of the edit list.
    pub hidden: u64,
    /// `mdhd`'s duration.
    pub duration: u32,
}

impl Mp4Track {
    /// The number of samples.
    #[must_use]
    pub fn count(&self) -> u32 {
        self.chunks.iter().sum()
    }

    /// The bytes of a sample, counted from 0.
    #[must_use]
    pub fn sample(&self, number: u32) -> Vec<u8> {
        let size = if self.same > 0 { self.same } else { 3 + number % 5 };
        let mut bytes = vec![self.mark; size as usize];
        bytes[1..3].copy_from_slice(&(number as u16).to_be_bytes());
        bytes
    }

    fn duration(&self) -> u32 {
        self.times.iter().map(|(count, each)| count * each).sum()
    }

    fn trak(&self, offsets: &[u64]) -> Vec<u8> {
        let mut runs: Vec<[u32; 3]> = Vec::new();
        for (number, count) in self.chunks.iter().enumerate() {
            if runs.last().is_none_or(|run| run[1] != *count) {
                runs.push([number as u32 + 1, *count, 1]);
            }
        }
        let mut stbl = atom(b"stsd", &[&[0; 4], &words(&[1]), &atom(b"avc1", &[&[0; 70]])]);
        stbl.extend(table(b"stts", self.times.iter().map(|(count, each)| [*count, *each])));
        if let Some(keys) = &self.keys {
            stbl.extend(table(b"stss", keys.iter().map(|key| [*key])));
        }
        stbl.extend(table(b"stsc", runs));
        let sizes: Vec<u32> = (0..self.count()).map(|n| self.sample(n).len() as u32).collect();
        let sizes = if self.same > 0 { Vec::new() } else { sizes };
        let head = words(&[0, self.same, self.count()]);
        stbl.extend(atom(b"stsz", &[&head, &words(&sizes)]));
        if self.long {
            let offsets: Vec<u8> = offsets.iter().flat_map(|at| at.to_be_bytes()).collect();
            stbl.extend(atom(b"co64", &[&words(&[0, self.chunks.len() as u32]), &offsets]));
        } else {
            stbl.extend(table(b"stco", offsets.iter().map(|at| [*at as u32])));
        }
        let minf = atom(b"minf", &[&atom(b"vmhd", &[&[0; 8]]), &atom(b"stbl", &[&stbl])]);
        let mdhd = atom(b"mdhd", &[&words(&[0, 1, 2, self.timescale, self.duration(), 0])]);
        let length = self.duration() / self.timescale * 1000;
        let tkhd = atom(b"tkhd", &[&words(&[0, 1, 2, 1, 0, length]), &[0; 60]]);
        let mdia = atom(b"mdia", &[&mdhd, &atom(b"hdlr", &[&[0; 25]]), &minf]);
        atom(b"trak", &[&tkhd, &mdia])
    }
}

/// A file of these tracks, with interleaved chunks; with its `moov` atom last if `late`.
#[must_use]
pub fn video(tracks: &[Mp4Track], late: bool) -> Vec<u8> {
    let ftyp = atom(b"ftyp", &[b"isom", &[0; 4]]);
    let moov = |offsets: &[Vec<u64>]| {
        let length = tracks.iter().map(|track| track.duration() / track.timescale * 1000).max();
        let head = words(&[0, 1, 2, 1000, length.unwrap_or(0)]);
        let mut content = atom(b"mvhd", &[&head, &[0; 80]]);
        for (track, offsets) in tracks.iter().zip(offsets) {
            content.extend(track.trak(offsets));
        }
        atom(b"moov", &[&content])
    };
    let blank: Vec<Vec<u64>> = tracks.iter().map(|track| vec![0; track.chunks.len()]).collect();
    let moov_len = if late { 0 } else { moov(&blank).len() };
    let start = (ftyp.len() + moov_len + 8) as u64;
    let (mut body, mut offsets) = (Vec::new(), vec![Vec::new(); tracks.len()]);
    let turns = tracks.iter().map(|track| track.chunks.len()).max().unwrap_or(0);
    let mut next = vec![0; tracks.len()];
    for turn in 0..turns {
        for (index, track) in tracks.iter().enumerate() {
            let Some(count) = track.chunks.get(turn) else { continue };
            offsets[index].push(start + body.len() as u64);
            for number in next[index]..next[index] + count {
                body.extend(track.sample(number));
            }
            next[index] += count;
        }
    }
    let mdat = atom(b"mdat", &[&body]);
    let moov = moov(&offsets);
    if late { [ftyp, mdat, moov].concat() } else { [ftyp, moov, mdat].concat() }
}

/// Parses a file, track by track.
///
/// # Panics The file is damaged.
#[must_use]
pub fn play(file: &[u8]) -> Vec<Mp4Found> {
    let moov = inside(file, b"moov").expect("a file has a head");
    let tracks = atoms(moov).into_iter().filter(|(name, _)| name == b"trak");
    tracks.map(|(_, trak)| play_track(file, trak)).collect()
}

fn play_track(file: &[u8], trak: &[u8]) -> Mp4Found {
    let mdia = inside(trak, b"mdia").expect("mdia");
    let stbl = inside(inside(mdia, b"minf").expect("minf"), b"stbl").expect("stbl");
    let rows = |name: &[u8; 4], width: usize| -> Option<Vec<Vec<u32>>> {
        let content = inside(stbl, name)?;
        let numbers: Vec<u32> = content[8..].chunks_exact(4).map(number).collect();
        let rows: Vec<_> = numbers.chunks_exact(width).map(<[u32]>::to_vec).collect();
        assert_eq!(rows.len(), number(&content[4..8]) as usize, "a table has its rows");
        Some(rows)
    };
    let sizes = inside(stbl, b"stsz").expect("stsz");
    let (same, count) = (number(&sizes[4..8]), number(&sizes[8..12]) as usize);
    let each: Vec<u32> = sizes[12..].chunks_exact(4).map(number).collect();
    let sizes = if same > 0 { vec![same; count] } else { each };
    assert_eq!(sizes.len(), count, "each sample has a size");
    let offsets: Vec<u64> = match inside(stbl, b"co64") {
        Some(long) => {
            let numbers = long[8..].chunks_exact(8);
            numbers.map(|at| u64::from_be_bytes(at.try_into().expect("eight bytes"))).collect()
        }
        None => rows(b"stco", 1).expect("stco").iter().map(|row| u64::from(row[0])).collect(),
    };
    let runs = rows(b"stsc", 3).expect("stsc");
    let mut samples = Vec::new();
    for (chunk, offset) in offsets.iter().enumerate() {
        let run = runs.iter().rev().find(|run| run[0] as usize <= chunk + 1).expect("a run");
        let mut at = *offset as usize;
        for _ in 0..run[1] {
            let size = sizes[samples.len()] as usize;
            samples.push(file[at..at + size].to_vec());
            at += size;
        }
    }
    assert_eq!(samples.len(), count, "each sample is in a chunk");
    let times = rows(b"stts", 2).expect("stts");
    let times = times.iter().flat_map(|row| vec![row[1]; row[0] as usize]).collect();
    let elst = inside(trak, b"edts").and_then(|edts| inside(edts, b"elst"));
    Mp4Found {
        samples,
        times,
        keys: rows(b"stss", 1).map(|rows| rows.iter().map(|row| row[0]).collect()),
        hidden: elst.map_or(0, |elst| u64::from(number(&elst[20..24]))),
        duration: number(&inside(mdia, b"mdhd").expect("mdhd")[16..20]),
    }
}

fn atom(name: &[u8; 4], parts: &[&[u8]]) -> Vec<u8> {
    let content = parts.concat();
    [&(content.len() as u32 + 8).to_be_bytes(), &name[..], &content].concat()
}

fn words(numbers: &[u32]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_be_bytes()).collect()
}

fn table<const N: usize>(name: &[u8; 4], rows: impl IntoIterator<Item = [u32; N]>) -> Vec<u8> {
    let rows: Vec<[u32; N]> = rows.into_iter().collect();
    atom(name, &[&words(&[0, rows.len() as u32]), &words(&rows.concat())])
}

fn number(bytes: &[u8]) -> u32 {
    u32::from_be_bytes(bytes.try_into().expect("four bytes"))
}

fn atoms(mut bytes: &[u8]) -> Vec<(&[u8], &[u8])> {
    let mut found = Vec::new();
    while bytes.len() >= 8 {
        let (atom, rest) = bytes.split_at(number(&bytes[..4]) as usize);
        found.push((&atom[4..8], &atom[8..]));
        bytes = rest;
    }
    assert!(bytes.is_empty(), "atoms fill what they are in");
    found
}

fn inside<'b>(bytes: &'b [u8], name: &[u8; 4]) -> Option<&'b [u8]> {
    atoms(bytes).into_iter().find(|(known, _)| known == name).map(|(_, content)| content)
}
