//! Bodies that outgrow memory, written to files without names.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base::{Key, Spool};
use conf::model::Level;
use engine::Wake;
use io::{FileFailure, Io};

use crate::exchanges::Live;
use crate::worker::Worker;

/// Bytes written for one exchange in one turn.
const WRITE_PER_TURN: usize = 512 * 1024;

/// How far a spool was written.
#[derive(Debug)]
enum Spooled {
    All,
    Part,
    Failed(FileFailure),
}

impl<I: Io> Worker<I> {
    /// Writes what the bodies of an exchange hold too much of; wakes it when that is done.
    pub(crate) fn spool(&mut self, key: Key<Live>, dir: Arc<PathBuf>) {
        let Some(live) = self.core.exchanges.get_mut(key) else { return };
        let Some(spool) = live.exchange.spool_mut() else { return };
        match write(&mut self.io, spool, &dir) {
            Spooled::Part => return self.origins.spooling.push((key, dir)),
            Spooled::All => {}
            Spooled::Failed(failure) => {
                spool.fail();
                self.log_failure(key, &failure, &dir);
            }
        }
        self.origins.news.push_back((key, Wake::Spooled));
    }

    /// Goes on with what was too much for one turn.
    pub(crate) fn continue_spooling(&mut self) {
        for (key, dir) in std::mem::take(&mut self.origins.spooling) {
            self.spool(key, dir);
        }
    }

    fn log_failure(&mut self, key: Key<Live>, failure: &FileFailure, dir: &Path) {
        let Some(subject) = self.subject_of(key) else { return };
        let words = std::io::Error::from_raw_os_error(failure.errno).to_string();
        let words = words.split(" (os error").next().unwrap_or_default();
        let (call, errno, dir) = (failure.call, failure.errno, dir.display());
        let text = format!("{call}() of a temporary file in \"{dir}\" failed ({errno}: {words})");
        self.log_conn(Level::Crit, &subject, &text);
    }
}

/// Writes a bounded part of what is due; the file is made with the first byte.
fn write(io: &mut impl Io, spool: &mut Spool, dir: &Path) -> Spooled {
    let mut written = 0;
    while let Some(due) = spool.next_write() {
        if written >= WRITE_PER_TURN {
            return Spooled::Part;
        }
        let file = match due.file {
            Some(file) => file,
            None => match io.create_temp(dir.as_os_str().as_bytes()) {
                Ok(file) => file,
                Err(failure) => return Spooled::Failed(failure),
            },
        };
        match io.write_at(&file, due.offset, &due.bytes) {
            Ok(n) => {
                spool.written(file, n);
                written += n;
            }
            Err(failure) => return Spooled::Failed(failure),
        }
    }
    Spooled::All
}
