//! Parts of videos: from the atoms of an MP4 file (ISO/IEC 14496-12) and two times to the bytes
//! that a player is sent: a new head, and a range of the file.
//!
//! A machine: it asks for bytes of the file and reads none itself. Nothing of it is larger than
//! the `moov` atom, whose size is limited.

mod atoms;
mod job;
mod movie;
mod track;

use std::fmt;
use std::ops::Range;

use atoms::{AtomHead, HEAD_MAX, push_atom};
use movie::Movie;

pub use job::{Mp4Job, Mp4Made, Mp4Outcome};

/// LIMIT: atoms that follow each other in a file.
const ATOMS_MAX: u32 = 10_000;
/// LIMIT: bytes of the `ftyp` atom, as in nginx.
const FTYP_MAX: u64 = 1024;

/// What is wanted of a file, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mp4Cut {
    /// Where to begin.
    pub start: u64,
    /// How much to send; `None` for all that follows.
    pub length: Option<u64>,
    /// `mp4_buffer_size`: bytes that are read at once.
    pub buffer: usize,
    /// `mp4_max_buffer_size`: the most bytes of the `moov` atom.
    pub buffer_max: usize,
    /// `mp4_start_key_frame`: whether to begin at a key frame, which players do not show.
    pub start_key_frame: bool,
}

/// Why nothing can be made of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mp4Fault {
    text: String,
    order: FaultOrder,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FaultOrder {
    /// `"FILE" mp4 …`
    FileFirst,
    /// `… in "FILE"`
    FileLast,
}

impl Mp4Fault {
    fn about(text: impl Into<String>) -> Self {
        Self { text: text.into(), order: FaultOrder::FileFirst }
    }

    fn inside(text: impl Into<String>) -> Self {
        Self { text: text.into(), order: FaultOrder::FileLast }
    }

    /// nginx's message about the file of this name.
    pub fn write(&self, file: &[u8], out: &mut Vec<u8>) {
        match self.order {
            FaultOrder::FileFirst => {
                out.push(b'"');
                out.extend_from_slice(file);
                out.extend_from_slice(b"\" mp4 ");
                out.extend_from_slice(self.text.as_bytes());
            }
            FaultOrder::FileLast => {
                out.extend_from_slice(self.text.as_bytes());
                out.extend_from_slice(b" in \"");
                out.extend_from_slice(file);
                out.push(b'"');
            }
        }
    }
}

/// What the machine wants next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mp4Step {
    /// These bytes of the file, for [`Mp4Machine::give`].
    Read(Range<u64>),
    /// The file is sent as it is.
    Whole,
    /// This is sent.
    Cut(Mp4Parts),
}

/// What is sent: bytes, and behind them a part of the file.
#[derive(Clone, PartialEq, Eq)]
pub struct Mp4Parts {
    /// The new `ftyp` and `moov` atoms and the head of `mdat`.
    pub head: Vec<u8>,
    /// The bytes of the file that follow.
    pub body: Range<u64>,
}

impl fmt::Debug for Mp4Parts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Mp4Parts({} bytes, then {:?})", self.head.len(), self.body)
    }
}

/// Finds the atoms of a file and makes a part of them.
#[derive(Debug)]
pub struct Mp4Machine {
    cut: Mp4Cut,
    /// Bytes of the file.
    size: u64,
    /// Where the next atom begins.
    at: u64,
    /// Atoms so far.
    count: u32,
    /// The bytes of the file that are here.
    window: Vec<u8>,
    window_at: u64,
    ftyp: Vec<u8>,
    moov: Option<Vec<u8>>,
    /// What is in the `mdat` atom.
    mdat: Option<Range<u64>>,
}

impl Mp4Machine {
    /// A machine for a file of `size` bytes.
    #[must_use]
    pub const fn new(cut: Mp4Cut, size: u64) -> Self {
        Self {
            cut,
            size,
            at: 0,
            count: 0,
            window: Vec::new(),
            window_at: 0,
            ftyp: Vec::new(),
            moov: None,
            mdat: None,
        }
    }

    /// Takes the bytes that were asked for.
    pub fn give(&mut self, at: u64, bytes: Vec<u8>) {
        self.window = bytes;
        self.window_at = at;
    }

    /// Goes on as far as the bytes that are here allow.
    ///
    /// # Errors
    ///
    /// The file is no video, is damaged, or has no such part.
    pub fn step(&mut self) -> Result<Mp4Step, Mp4Fault> {
        while self.at < self.size {
            let room = self.size - self.at;
            let here = self.window();
            let head = match AtomHead::read(here, room)? {
                Some(head) => head,
                None if here.len() as u64 == room || here.len() >= HEAD_MAX => {
                    return Err(Mp4Fault::about("file truncated"));
                }
                None => return Ok(self.ask(HEAD_MAX)),
            };
            let content = self.at + head.head..self.at + head.size;
            let len = content.end - content.start;
            match &head.name {
                b"ftyp" if len > FTYP_MAX => {
                    return Err(Mp4Fault::about(format!("ftyp atom is too large:{len}")));
                }
                b"ftyp" | b"moov" if self.is_whole(&head, len)? => return Ok(Mp4Step::Whole),
                b"ftyp" | b"moov" => {
                    let Some(atom) = self.window().get(..head.size as usize) else {
                        return Ok(self.ask(head.size as usize));
                    };
                    let atom = atom.to_vec();
                    let is_again = match &head.name {
                        b"ftyp" => !std::mem::replace(&mut self.ftyp, atom).is_empty(),
                        _ => self.moov.replace(atom[head.head as usize..].to_vec()).is_some(),
                    };
                    if is_again {
                        let name = String::from_utf8_lossy(&head.name).into_owned();
                        return Err(Mp4Fault::inside(format!("duplicate mp4 {name} atom")));
                    }
                }
                b"mdat" if self.mdat.is_some() => {
                    return Err(Mp4Fault::inside("duplicate mp4 mdat atom"));
                }
                b"mdat" => {
                    self.mdat = Some(content);
                    // As in nginx, what follows then does not matter.
                    if self.moov.is_some() {
                        break;
                    }
                }
                _ => {}
            }
            self.at += head.size;
            self.count += 1;
            if self.count > ATOMS_MAX {
                return Err(Mp4Fault::inside("too many mp4 atoms"));
            }
        }
        self.make().map(Mp4Step::Cut)
    }

    /// Whether the file can be sent as it is: all is wanted, and a player finds the `moov` atom
    /// first. Refuses one that is too large.
    fn is_whole(&self, head: &AtomHead, len: u64) -> Result<bool, Mp4Fault> {
        if &head.name != b"moov" {
            return Ok(false);
        }
        if self.mdat.is_none() && self.cut.start == 0 && self.cut.length.is_none() {
            return Ok(true);
        }
        if len > self.cut.buffer.max(self.cut.buffer_max) as u64 {
            return Err(Mp4Fault::about(format!(
                "moov atom is too large:{len}, you may want to increase mp4_max_buffer_size"
            )));
        }
        Ok(false)
    }

    /// The bytes from the next atom on that are here.
    fn window(&self) -> &[u8] {
        let skip = self.at.checked_sub(self.window_at).and_then(|skip| usize::try_from(skip).ok());
        skip.and_then(|skip| self.window.get(skip..)).unwrap_or_default()
    }

    /// Asks for the next atom's first `least` bytes, and for those that follow as far as a buffer
    /// holds them.
    fn ask(&self, least: usize) -> Mp4Step {
        let len = least.max(self.cut.buffer) as u64;
        Mp4Step::Read(self.at..self.size.min(self.at.saturating_add(len)))
    }

    fn make(&mut self) -> Result<Mp4Parts, Mp4Fault> {
        let no_trak = || Mp4Fault::inside("no mp4 trak atoms were found");
        let moov = self.moov.take().ok_or_else(no_trak)?;
        let movie = Movie::read(&moov, &self.cut)?;
        let mdat = self.mdat.clone();
        let mdat = mdat.ok_or_else(|| Mp4Fault::inside("no mp4 mdat atom was found"))?;
        let body = movie.span(&mdat, &self.cut)?;
        let mut head = std::mem::take(&mut self.ftyp);
        let body_len = body.end - body.start;
        // ISO/IEC 14496-12 §4.2: a size that needs more than 32 bits stands behind the name.
        let long = body_len > u64::from(u32::MAX) - 8;
        let moov_at = head.len();
        // The offsets do not change the size of the atom that holds them.
        push_atom(&mut head, *b"moov", |out| movie.write(0, out));
        let head_len = head.len() as u64 + if long { 16 } else { 8 };
        head.truncate(moov_at);
        let shift = i128::from(head_len) - i128::from(body.start);
        movie.check_shift(shift)?;
        push_atom(&mut head, *b"moov", |out| movie.write(shift, out));
        if long {
            head.extend_from_slice(&1_u32.to_be_bytes());
            head.extend_from_slice(b"mdat");
            head.extend_from_slice(&(body_len + 16).to_be_bytes());
        } else {
            head.extend_from_slice(&((body_len + 8) as u32).to_be_bytes());
            head.extend_from_slice(b"mdat");
        }
        debug_assert!(head.len() as u64 == head_len, "offsets are right");
        Ok(Mp4Parts { head, body })
    }
}

#[cfg(test)]
#[path = "../../fuzz-entries/src/mp4.rs"]
pub mod fuzz;
#[cfg(test)]
mod tests;
