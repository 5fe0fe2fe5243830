//! Spools: bodies that exceed memory are written to files, unnamed unless requested.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use bolide_base::errno::{EEXIST, ENOENT, reason};
use bolide_base::{FileRef, SlabKey, Spool};
use bolide_conf::model::TempPath;
use bolide_engine::{SpoolPlace, Wake};
use bolide_io::{FileFailure, Io};

use crate::env::WorkerEnv;
use crate::exchange_table::ActiveExchange;

/// Bytes written for one exchange in one turn.
const WRITE_PER_TURN: usize = 512 * 1024;
/// Names that are tried for one file; the steps between them double.
const NAMES_TRIED: u32 = 64;

/// How far a spool was written.
#[derive(Debug)]
enum Spooled {
    All,
    Part,
    Failed(FileFailure),
}

/// The pending writes.
#[derive(Debug, Default)]
pub(crate) struct Spooling {
    /// Exchanges whose bodies have to be written, and where the file is created.
    waiting: Vec<(SlabKey<ActiveExchange>, SpoolPlace)>,
    /// The number in the name of the last body file.
    body_files: u32,
}

impl Spooling {
    /// Whether nothing is left for the next turn.
    pub(crate) const fn is_idle(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Takes what was left over by the last turn.
    pub(crate) fn take(&mut self) -> Vec<(SlabKey<ActiveExchange>, SpoolPlace)> {
        std::mem::take(&mut self.waiting)
    }

    /// Has the excess of an exchange's bodies written: in the next turn, if the connection may take
    /// it before.
    pub(crate) fn request<I: Io>(
        &mut self,
        key: SlabKey<ActiveExchange>,
        place: SpoolPlace,
        live: &mut ActiveExchange,
        env: &mut WorkerEnv<I>,
    ) {
        match live.exchange.spool_mut().is_some_and(|spool| spool.prefers_reader()) {
            true => self.defer(key, place),
            false => self.spool(key, place, live, env),
        }
    }

    fn defer(&mut self, key: SlabKey<ActiveExchange>, place: SpoolPlace) {
        // The connection may have taken the excess, and more may have come.
        if self.waiting.iter().all(|(waiting, _)| *waiting != key) {
            self.waiting.push((key, place));
        }
    }

    /// Writes the excess of an exchange's bodies; wakes it when that is done, or has failed.
    pub(crate) fn spool<I: Io>(
        &mut self,
        key: SlabKey<ActiveExchange>,
        place: SpoolPlace,
        live: &mut ActiveExchange,
        env: &mut WorkerEnv<I>,
    ) {
        let Some(spool) = live.exchange.spool_mut() else { return };
        let mut made = None;
        let spooled = match &place {
            SpoolPlace::Named(dir) if spool.file().is_none() => {
                match env.with_room(|io| create_named(io, dir, &mut self.body_files)) {
                    Ok((path, file)) => {
                        made = Some(path);
                        spool.written(file, 0);
                        write(env, spool, Path::new(""))
                    }
                    Err(failure) => Spooled::Failed(failure),
                }
            }
            SpoolPlace::Named(_) => write(env, spool, Path::new("")),
            SpoolPlace::Unnamed(dir) => write(env, spool, dir),
        };
        // As in nginx, a response goes on as fast as its client takes it.
        if matches!(spooled, Spooled::Failed(_)) && !spool.forgo_file() {
            spool.fail();
        }
        if let Some(path) = made {
            live.exchange.upload_mut().set_file_name(path);
        }
        let trouble = match spooled {
            Spooled::Part => return self.defer(key, place),
            Spooled::All => None,
            Spooled::Failed(failure) => Some(describe(&failure, &place).into_boxed_str()),
        };
        env.news.wake(key, Wake::Spooled(trouble));
    }
}

fn describe(failure: &FileFailure, place: &SpoolPlace) -> String {
    let dir = match place {
        SpoolPlace::Named(dir) => &*dir.path,
        SpoolPlace::Unnamed(dir) => &**dir,
    };
    describe_at(failure, dir)
}

/// The message for an error in a directory.
pub(crate) fn describe_at(failure: &FileFailure, dir: &Path) -> String {
    let (call, why, dir) = (failure.call, reason(failure.errno), dir.display());
    format!("{call}() of a temporary file in \"{dir}\" failed ({why})")
}

/// Writes a bounded part; an unnamed file is created with the first byte.
fn write<I: Io>(env: &mut WorkerEnv<I>, spool: &mut Spool, dir: &Path) -> Spooled {
    let mut written = 0;
    while let Some(due) = spool.next_write() {
        if written >= WRITE_PER_TURN {
            return Spooled::Part;
        }
        let file = match due.file {
            Some(file) => file,
            None => match env.with_room(|io| io.create_temp(dir.as_os_str().as_bytes())) {
                Ok(file) => file,
                Err(failure) => return Spooled::Failed(failure),
            },
        };
        match env.io.write_at(&file, due.offset, &due.bytes) {
            Ok(n) => {
                spool.written(file, n);
                written += n;
            }
            Err(failure) => return Spooled::Failed(failure),
        }
    }
    Spooled::All
}

/// Creates a file whose name is the next free number, and its directories.
pub(crate) fn create_named(
    io: &mut impl Io,
    dir: &TempPath,
    last: &mut u32,
) -> Result<(Box<[u8]>, FileRef), FileFailure> {
    let mut taken = 0;
    loop {
        // Files of an earlier process are consecutive; growing steps skip them.
        *last = last.wrapping_add(1 << (taken / 2).min(24));
        let (path, directories) = name(dir, *last);
        let mut done = io.create(&path, 0o600);
        if matches!(&done, Err(failure) if failure.errno == ENOENT) {
            for end in directories {
                match io.make_directory(&path[..end], 0o700) {
                    Err(failure) if failure.errno != EEXIST => return Err(failure),
                    _ => {}
                }
            }
            done = io.create(&path, 0o600);
        }
        match done {
            Ok(file) => return Ok((path.into(), file)),
            Err(failure) if failure.errno == EEXIST && taken < NAMES_TRIED => taken += 1,
            Err(failure) => return Err(failure),
        }
    }
}

/// A path below `dir`, and where the names of directories end in it. As in nginx, the name has ten
/// digits, and the directories are named by its last ones, the very last first.
fn name(dir: &TempPath, number: u32) -> (Vec<u8>, Vec<usize>) {
    let digits = format!("{number:010}").into_bytes();
    let mut path = dir.path.as_os_str().as_bytes().to_vec();
    let (mut ends, mut rest) = (vec![path.len()], digits.as_slice());
    for level in &dir.levels {
        let (before, last) = rest.split_at(rest.len().saturating_sub(usize::from(*level)));
        path.push(b'/');
        path.extend_from_slice(last);
        ends.push(path.len());
        rest = before;
    }
    path.push(b'/');
    path.extend_from_slice(&digits);
    (path, ends)
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::sync::Arc;

    use bolide_conf::model::TempPath;

    use super::name;

    #[test]
    fn directories_are_named_by_the_last_digits() {
        let dir = TempPath { path: Arc::new(PathBuf::from("/t")), levels: vec![1, 2] };
        let (path, ends) = name(&dir, 1234);
        assert_eq!(path, b"/t/4/23/0000001234");
        assert_eq!(
            ends.iter().map(|end| &path[..*end]).collect::<Vec<_>>(),
            [&b"/t"[..], b"/t/4", b"/t/4/23"]
        );
    }
}
