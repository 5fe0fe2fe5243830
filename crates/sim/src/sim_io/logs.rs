//! Calls for logs, with injected errors.

use bolide_base::FileRef;
use bolide_base::errno::EMFILE;
use bolide_io::{Appended, FileFailure};

use super::{SimIo, failure};
use crate::kernel::Kernel;
use crate::kernel::syscall_faults::IoCall;

impl SimIo {
    /// Opens a log file or a socket to the syslog server.
    pub(super) fn open_log_as(
        &self,
        name: &str,
        call: &'static str,
    ) -> Result<FileRef, FileFailure> {
        let copy = self.descriptors.copy().map_err(|_| failure(EMFILE, "open"))?;
        let mut kernel = self.call();
        kernel.open_log(name).map_err(|errno| failure(errno, call))?;
        let (file, now) = (FileRef::new(copy), kernel.nanos);
        kernel.logs.register(name, file.clone(), now);
        Ok(file)
    }

    pub(super) fn append_log(&mut self, log: &FileRef, bytes: &[u8]) -> Appended {
        if let Some(errno) = self.draw_errno(IoCall::Append) {
            return Appended { bytes: 0, errno: Some(errno) };
        }
        let all = Appended { bytes: bytes.len(), errno: None };
        let mut kernel = self.call();
        if kernel.is_dead {
            return all;
        }
        if let Some(done) = kernel.append_log(log, bytes) {
            return done;
        }
        kernel.access_log.extend_from_slice(bytes);
        let lines = String::from_utf8_lossy(bytes);
        kernel.trace(|| format!("log {}", lines.trim_end().replace('\n', "\n            log ")));
        all
    }
}

impl Kernel {
    /// Draws whether opening a log fails.
    fn open_log(&mut self, name: &str) -> Result<(), i32> {
        match self.logs.refuse(name, self.fault_rates.log_in, &mut self.chance) {
            Some(errno) => {
                self.trace(|| format!("open of log {name}: error {errno}"));
                Err(errno)
            }
            None => Ok(()),
        }
    }

    /// Writes to an open log; `None` if the file is not a log.
    fn append_log(&mut self, file: &FileRef, bytes: &[u8]) -> Option<Appended> {
        let (name, problem) = self.logs.find(file, self.nanos)?;
        self.violations.extend(problem.map(|problem| format!("{name} {problem}")));
        let done = self.logs.write(&name, bytes, self.fault_rates.log_in, &mut self.chance);
        let (taken, len) = (done.bytes, bytes.len());
        self.trace(|| format!("log {name}: {taken} of {len}, error {:?}", done.errno));
        Some(done)
    }
}
