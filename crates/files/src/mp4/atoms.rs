//! Atoms ("boxes" in ISO/IEC 14496-12 §4.2) in bytes: their heads, numbers in them, and writing.

use super::Mp4Fault;

/// The name of an atom.
pub(super) type AtomName = [u8; 4];

/// The head of an atom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct AtomHead {
    pub(super) name: AtomName,
    /// Bytes of the head.
    pub(super) head: u64,
    /// Bytes of the atom with its head.
    pub(super) size: u64,
}

/// Bytes of the longest head.
pub(super) const HEAD_MAX: usize = 16;

impl AtomHead {
    /// The head at the start of `bytes`, of an atom within `room` bytes; `None` if `bytes` ends
    /// before the head does.
    pub(super) fn read(bytes: &[u8], room: u64) -> Result<Option<Self>, Mp4Fault> {
        let Some((&[a, b, c, d, name @ ..], rest)) = bytes.split_first_chunk::<8>() else {
            return Ok(None);
        };
        let (head, size) = match u32::from_be_bytes([a, b, c, d]) {
            // ISO/IEC 14496-12 §4.2: it goes on to the end.
            0 => (8, room),
            1 => match rest.first_chunk::<8>() {
                Some(size) => (16, u64::from_be_bytes(*size)),
                None => return Ok(None),
            },
            size => (8, u64::from(size)),
        };
        if size < head {
            return Err(Mp4Fault::about(format!("atom is too small:{size}")));
        }
        if size > room {
            return Err(Mp4Fault::about(format!("atom too large:{size}")));
        }
        Ok(Some(Self { name, head, size }))
    }
}

/// The atoms that `bytes` is made of: name, whole atom, content.
pub(super) struct Atoms<'m> {
    rest: &'m [u8],
}

impl<'m> Atoms<'m> {
    pub(super) const fn of(bytes: &'m [u8]) -> Self {
        Self { rest: bytes }
    }
}

/// An atom in memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct Atom<'m> {
    pub(super) name: AtomName,
    /// The atom with its head.
    pub(super) whole: &'m [u8],
    /// What is in it.
    pub(super) content: &'m [u8],
}

impl<'m> Iterator for Atoms<'m> {
    type Item = Result<Atom<'m>, Mp4Fault>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let read = AtomHead::read(self.rest, self.rest.len() as u64);
        let head = match read {
            Ok(Some(head)) => head,
            Ok(None) => {
                let len = self.rest.len();
                self.rest = &[];
                return Some(Err(Mp4Fault::about(format!("atom is too small:{len}"))));
            }
            Err(fault) => {
                self.rest = &[];
                return Some(Err(fault));
            }
        };
        // A head was read only if the atom fits.
        let (whole, rest) = self.rest.split_at(head.size as usize);
        self.rest = rest;
        Some(Ok(Atom { name: head.name, whole, content: &whole[head.head as usize..] }))
    }
}

/// The number of four bytes at `at`, 0 where there is none.
pub(super) fn number_at(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..at + 4).and_then(|part| part.first_chunk()).map_or(0, |b| u32::from_be_bytes(*b))
}

/// The number of eight bytes at `at`, 0 where there is none.
pub(super) fn long_at(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..at + 8).and_then(|part| part.first_chunk()).map_or(0, |b| u64::from_be_bytes(*b))
}

/// Appends an atom whose content `fill` appends.
pub(super) fn push_atom(out: &mut Vec<u8>, name: AtomName, fill: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(&name);
    fill(out);
    // What is written is hardly more than a moov atom, whose size is limited.
    let size = (out.len() - start) as u32;
    out[start..start + 4].copy_from_slice(&size.to_be_bytes());
}

/// A table: version and flags, a number of rows, and rows of `ROW` bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Table<'m, const ROW: usize> {
    /// What stands before the number of rows.
    pub(super) lead: &'m [u8],
    pub(super) rows: &'m [[u8; ROW]],
}

impl<'m, const ROW: usize> Table<'m, ROW> {
    /// The table in an atom's content, whose number of rows stands behind `lead` bytes.
    pub(super) fn read(name: &str, content: &'m [u8], lead: usize) -> Result<Self, Mp4Fault> {
        let small = || Mp4Fault::about(format!("{name} atom too small"));
        let (lead, rest) = content.split_at_checked(lead).ok_or_else(small)?;
        let (count, rest) = rest.split_first_chunk::<4>().ok_or_else(small)?;
        let (rows, _) = rest.as_chunks::<ROW>();
        let count = u32::from_be_bytes(*count) as usize;
        Ok(Self { lead, rows: rows.get(..count).ok_or_else(small)? })
    }
}

/// The numbers of four bytes of a row.
pub(super) const fn number<const ROW: usize>(row: &[u8; ROW], index: usize) -> u32 {
    let at = index * 4;
    u32::from_be_bytes([row[at], row[at + 1], row[at + 2], row[at + 3]])
}
