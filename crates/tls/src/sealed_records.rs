//! Where sealed records are written: a buffer whose memory stays initialised between its uses, and
//! any `Vec` for the few bytes of a handshake, an alert or a test.

/// A place that records are appended to.
pub trait RecordRoom {
    /// Lets `fill` write up to `max` bytes behind what is there; appends as many as it returns.
    ///
    /// # Errors
    ///
    /// Those of `fill`; nothing was appended then.
    fn push_record<E>(
        &mut self,
        max: usize,
        fill: impl FnOnce(&mut [u8]) -> Result<usize, E>,
    ) -> Result<(), E>;
}

impl RecordRoom for Vec<u8> {
    fn push_record<E>(
        &mut self,
        max: usize,
        fill: impl FnOnce(&mut [u8]) -> Result<usize, E>,
    ) -> Result<(), E> {
        let start = self.len();
        self.resize(start + max, 0);
        let written = fill(&mut self[start..]);
        self.truncate(start + written.as_ref().map_or(0, |n| (*n).min(max)));
        written.map(|_| ())
    }
}

/// Records that are ready to be sent.
///
/// PERF: bytes behind `len` are those of earlier records, so that a record is written once, by the
/// cipher, and its memory is neither cleared nor copied to before.
#[derive(Debug, Default)]
pub struct SealedRecords {
    bytes: Vec<u8>,
    len: usize,
}

impl SealedRecords {
    /// Forgets the records and keeps the memory.
    pub const fn clear(&mut self) {
        self.len = 0;
    }

    /// The records, in order.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

impl RecordRoom for SealedRecords {
    #[inline]
    fn push_record<E>(
        &mut self,
        max: usize,
        fill: impl FnOnce(&mut [u8]) -> Result<usize, E>,
    ) -> Result<(), E> {
        let end = self.len + max;
        if self.bytes.len() < end {
            self.bytes.resize(end, 0);
        }
        let written = fill(&mut self.bytes[self.len..end])?;
        debug_assert!(written <= max, "a record fits the room that it was given");
        self.len += written.min(max);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{RecordRoom, SealedRecords};

    fn write(room: &mut impl RecordRoom, max: usize, text: &[u8]) {
        let done: Result<(), ()> = room.push_record(max, |into| {
            into[..text.len()].copy_from_slice(text);
            Ok(text.len())
        });
        done.unwrap();
    }

    #[test]
    fn what_is_appended_is_read_and_what_failed_is_not() {
        let (mut kept, mut plain) = (SealedRecords::default(), Vec::new());
        for _ in 0..2 {
            write(&mut kept, 9, b"first");
            write(&mut plain, 9, b"first");
            let fail = |into: &mut [u8]| {
                into.fill(1);
                Err(7)
            };
            assert_eq!((kept.push_record(4, fail), plain.push_record(4, fail)), (Err(7), Err(7)));
            write(&mut kept, 6, b" next");
            write(&mut plain, 6, b" next");
            assert_eq!((kept.bytes(), &plain[..]), (&b"first next"[..], &b"first next"[..]));
            kept.clear();
            plain.clear();
            assert!(kept.bytes().is_empty());
        }
    }
}
