//! A file that records the end of the last process of this node.
//!
//! What a node leaves in Valkey cannot record that, because a process may never have reached it.
//! The file is emptied before the first purge, and each process has one of its own under the same
//! name, so that an old process that ends after its successor began records nothing for it.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Write as _};
use std::path::Path;

use bolide_cluster::LastLife;
use bolide_io::file;

/// The name of the file.
const NAME: &str = "cluster.end";
/// LIMIT: bytes of it.
const SIZE_MAX: u64 = 64;
/// The text before the number of the process.
const ENDED: &str = "ended ";

/// The file of this process, and the record of the previous one.
#[derive(Debug, Default)]
pub(super) struct LifeMark {
    last: LastLife,
    own: Option<File>,
}

impl LifeMark {
    /// Reads the record of the last process. Without a cluster there is no file; as purges are not
    /// sent then, an existing one is no longer true.
    pub(super) fn begin(dir: &Path, has_cluster: bool) -> Self {
        let path = dir.join(NAME);
        let last = match file::read_small(&path, SIZE_MAX) {
            Ok(bytes) => read(&bytes),
            Err(error) if error.kind() == ErrorKind::NotFound => LastLife::None,
            Err(_) => LastLife::Unknown,
        };
        if last == LastLife::None && !has_cluster {
            return Self::default();
        }
        match replace(&path, last != LastLife::None) {
            Ok(own) if has_cluster => Self { last, own: Some(own) },
            // The next process could not know that this one existed, or a cluster that a reload
            // adds does not know of earlier purges.
            Ok(_) | Err(_) => Self::default(),
        }
    }

    /// Takes the record of the last process; once, because it is not about this one.
    pub(super) fn take_last(&mut self) -> LastLife {
        std::mem::take(&mut self.last)
    }

    /// Records that this process ends, under this number, with all its purges in the stream.
    pub(super) fn end(&mut self, life: u64) {
        if let Some(mut own) = self.own.take() {
            // Without it the next process takes no pages from before, which is safe.
            let _lost = own.write_all(format!("{ENDED}{life:016x}\n").as_bytes());
        }
    }
}

fn read(bytes: &[u8]) -> LastLife {
    let text = std::str::from_utf8(bytes).unwrap_or_default();
    let life = text.strip_prefix(ENDED).and_then(|rest| rest.strip_suffix('\n'));
    let life = life.filter(|life| life.len() == 16);
    let life = life.and_then(|life| u64::from_str_radix(life, 16).ok());
    life.map_or(LastLife::Unknown, LastLife::Ended)
}

/// Replaces the last process's file by an empty one.
fn replace(path: &Path, is_there: bool) -> std::io::Result<File> {
    if is_there {
        // After a loss of power the old record must not be found again.
        file::replace_small(path, b"")?;
        file::open_not_linked(path)?.sync_all()?;
    }
    let next = path.with_extension("next");
    match file::remove(&next) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        Err(_) | Ok(()) => {}
    }
    let own = OpenOptions::new().write(true).create_new(true).open(&next)?;
    file::rename(&next, path)?;
    Ok(own)
}

#[cfg(test)]
mod tests {
    use super::{LastLife, LifeMark, NAME};

    #[test]
    fn the_record_of_a_process_is_read_by_the_next_one_only() {
        let dir = bolide_testkit::site::temp_dir();
        let begin = || LifeMark::begin(&dir, true);
        let mut one = begin();
        assert_eq!(one.take_last(), LastLife::None);
        one.end(77);
        let mut two = begin();
        assert_eq!((two.take_last(), two.take_last()), (LastLife::Ended(77), LastLife::Unknown));
        assert_eq!(begin().take_last(), LastLife::Unknown, "the second one was killed");
    }

    #[test]
    fn an_old_process_records_nothing_for_its_successor() {
        let dir = bolide_testkit::site::temp_dir();
        let mut old = LifeMark::begin(&dir, true);
        let _new = LifeMark::begin(&dir, true);
        old.end(77);
        assert_eq!(LifeMark::begin(&dir, true).take_last(), LastLife::Unknown);
    }

    #[test]
    fn a_process_without_a_cluster_counts_once_there_was_one_with_it() {
        let dir = bolide_testkit::site::temp_dir();
        assert_eq!(LifeMark::begin(&dir, false).take_last(), LastLife::Unknown);
        assert!(!dir.join(NAME).exists());
        let mut one = LifeMark::begin(&dir, true);
        assert_eq!(one.take_last(), LastLife::None);
        one.end(77);
        drop(LifeMark::begin(&dir, false));
        assert_eq!(LifeMark::begin(&dir, true).take_last(), LastLife::Unknown);
    }

    #[test]
    fn a_record_that_cannot_be_written_or_read_proves_nothing() {
        let dir = bolide_testkit::site::temp_dir();
        assert_eq!(LifeMark::begin(&dir.join("missing"), true).take_last(), LastLife::Unknown);
        for text in
            ["", "ended ", "ended 4d\n", "ended 000000000000004d", "ended 00000000000000xx\n"]
        {
            std::fs::write(dir.join(NAME), text).unwrap();
            assert_eq!(LifeMark::begin(&dir, true).take_last(), LastLife::Unknown, "{text}");
        }
    }
}
