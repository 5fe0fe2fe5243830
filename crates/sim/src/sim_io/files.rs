//! Calls for files and directories, with injected errors.

use bolide_base::FileRef;
use bolide_base::errno::{EACCES, EEXIST, EIO, EMFILE, ENOENT, ENOSPC};
use bolide_io::{Entries, FileFailure, OpenRequest, OpenedFile};

use super::{SimIo, failure};
use crate::kernel::Kernel;
use crate::kernel::disk::{PathState, is_body, is_stored};
use crate::kernel::file_system::is_dav;
use crate::kernel::syscall_faults::IoCall;

impl SimIo {
    /// Injects errors of an open, and changes between two calls.
    fn open_fault(kernel: &mut Kernel, path: &str) -> Result<(), FileFailure> {
        if is_stored(path) {
            return kernel.store_fault("look");
        }
        if kernel.chance.one_in(kernel.fault_rates.open_in) {
            let errno = [EACCES, EMFILE, EIO, ENOENT][kernel.chance.index(4)];
            kernel.disk.record_failure(path, errno, kernel.nanos);
            kernel.trace(|| format!("open {path}: error {errno}"));
            return Err(failure(errno, "open"));
        }
        Ok(())
    }

    pub(super) fn open_file(
        &mut self,
        request: &OpenRequest<'_>,
    ) -> Result<OpenedFile, FileFailure> {
        self.check_fault(IoCall::Open, "open")?;
        let copy = self.descriptors.copy().map_err(|_| failure(EMFILE, "open"))?;
        let mut kernel = self.call();
        let kernel = &mut *kernel;
        let path = String::from_utf8_lossy(request.path);
        let path = if request.stat_only { path.trim_end_matches('/') } else { &*path }.to_owned();
        Self::open_fault(kernel, &path)?;
        if let Some(stat) = kernel.logs.stat(&path) {
            return Ok(OpenedFile { file: None, stat, content: None });
        }
        let stat = kernel.disk.stat(&path).ok_or(failure(ENOENT, "open"))?;
        if request.stat_only || stat.is_dir {
            kernel.trace(|| format!("stat {path}: {} bytes", stat.size));
            return Ok(OpenedFile { file: None, stat, content: None });
        }
        let file = kernel.disk.open(&path, FileRef::new(copy));
        if kernel.chance.one_in(kernel.fault_rates.race_in) {
            // The file is rewritten between the stat and the read.
            let bytes = crate::site_files::content(&path, &mut kernel.chance);
            kernel.disk.rewrite(&path, bytes, kernel.nanos);
            kernel.trace(|| format!("open {path}: rewritten meanwhile"));
            return Ok(OpenedFile { file, stat, content: None });
        }
        let PathState::File(content) = kernel.disk.lookup(&path) else {
            return Err(failure(ENOENT, "open"));
        };
        let fits = request.content_max > 0 && stat.size <= request.content_max;
        // Some cache files count as too large, so that they are read in pieces.
        let fits = fits && !(is_stored(&path) && kernel.chance.one_in(3));
        kernel.trace(|| format!("open {path}: {} bytes", stat.size));
        Ok(OpenedFile { file, stat, content: fits.then(|| content.bytes.to_vec()) })
    }

    pub(super) fn list_directory(&mut self, path: &[u8]) -> Result<Entries, FileFailure> {
        self.check_fault(IoCall::List, "opendir")?;
        let kernel = self.call();
        let path = String::from_utf8_lossy(path);
        let path = path.trim_end_matches('/');
        let names = kernel.disk.list(path).into_iter();
        let found = names.filter_map(|name| {
            let stat = kernel.disk.stat(&format!("{path}/{name}"))?;
            Some((name.into_bytes(), stat))
        });
        Ok(Entries::known(found.collect(), None))
    }

    pub(super) fn read_file(
        &mut self,
        file: &FileRef,
        offset: u64,
        into: &mut [u8],
    ) -> Result<usize, FileFailure> {
        self.check_fault(IoCall::Read, "read")?;
        let mut kernel = self.call();
        let kernel = &mut *kernel;
        if is_stored(kernel.disk.path_of(file)) {
            let disturbed = kernel.store_fault("read");
            kernel.fault_record.damaged_files += u64::from(disturbed.is_err());
            disturbed?;
        } else if kernel.chance.one_in(kernel.fault_rates.read_in) {
            kernel.disk.record_read_failure(file, kernel.nanos);
            kernel.fault_record.temp_file_errors += 1;
            kernel.trace(|| "read: EIO".to_owned());
            return Err(failure(EIO, "read"));
        }
        let content = kernel.disk.content(file).ok_or(failure(EIO, "read"))?;
        let rest = content.bytes.get(offset as usize..).unwrap_or_default();
        let mut n = rest.len().min(into.len());
        if n > 1 && kernel.chance.one_in(kernel.fault_rates.short_read_in) {
            n = 1 + kernel.chance.index(n - 1);
        }
        into[..n].copy_from_slice(&rest[..n]);
        Ok(n)
    }

    pub(super) fn create_temp_file(&mut self, dir: &[u8]) -> Result<FileRef, FileFailure> {
        self.check_fault(IoCall::CreateTemp, "open")?;
        let copy = self.descriptors.copy().map_err(|_| failure(EMFILE, "open"))?;
        let mut kernel = self.call();
        let kernel = &mut *kernel;
        if kernel.chance.one_in(kernel.fault_rates.spool_in) {
            kernel.fault_record.temp_file_errors += 1;
            kernel.trace(|| "temporary file: ENOSPC".to_owned());
            return Err(failure(ENOSPC, "open"));
        }
        kernel.trace(|| format!("temporary file below {}", String::from_utf8_lossy(dir)));
        Ok(kernel.disk.create_temp(FileRef::new(copy)))
    }

    pub(super) fn write_file(
        &mut self,
        file: &FileRef,
        offset: u64,
        bytes: &[u8],
    ) -> Result<usize, FileFailure> {
        self.check_fault(IoCall::WriteAt, "pwrite")?;
        let mut kernel = self.call();
        let kernel = &mut *kernel;
        if is_stored(kernel.disk.path_of(file)) {
            kernel.store_fault("pwrite")?;
        } else if kernel.chance.one_in(kernel.fault_rates.spool_in) {
            kernel.fault_record.temp_file_errors += 1;
            kernel.trace(|| "pwrite: ENOSPC".to_owned());
            return Err(failure(ENOSPC, "pwrite"));
        }
        let n = kernel.chance.size(bytes.len());
        let n =
            if kernel.chance.one_in(kernel.fault_rates.short_read_in) { n } else { bytes.len() };
        if !kernel.disk.write_temp(file, offset, &bytes[..n])
            && !kernel.disk.write(file, Some(offset), &bytes[..n])
        {
            kernel.violations.push("a write into a file that is no temporary one".to_owned());
        }
        Ok(n)
    }

    pub(super) fn create_file(&mut self, path: &[u8]) -> Result<FileRef, FileFailure> {
        self.check_fault(IoCall::Create, "open")?;
        let copy = self.descriptors.copy().map_err(|_| failure(EMFILE, "open"))?;
        let mut kernel = self.call();
        let kernel = &mut *kernel;
        let path = String::from_utf8_lossy(path);
        if is_body(&path) || is_dav(&path) {
            kernel.body_fault("open")?;
        } else {
            kernel.store_fault("open")?;
        }
        let directory = path.rsplit_once('/').map_or("", |(directory, _)| directory);
        if !kernel.disk.has_directory(directory) {
            return Err(failure(ENOENT, "open"));
        }
        kernel.trace(|| format!("create {path}"));
        let nanos = kernel.nanos;
        kernel.disk.create(&path, FileRef::new(copy), nanos).ok_or(failure(EEXIST, "open"))
    }

    pub(super) fn create_directory(&mut self, path: &[u8]) -> Result<(), FileFailure> {
        self.check_fault(IoCall::MakeDirectory, "mkdir")?;
        let mut kernel = self.call();
        let path = String::from_utf8_lossy(path);
        if is_dav(&path) {
            kernel.trace(|| format!("mkdir {path}"));
            return kernel.call_dav("mkdir", |disk, now| disk.dav_mkdir(&path, now));
        }
        if is_body(&path) {
            kernel.body_fault("mkdir")?;
        } else {
            kernel.store_fault("mkdir")?;
        }
        if kernel.disk.has_directory(&path) {
            return Err(failure(EEXIST, "mkdir"));
        }
        kernel.disk.make_directory(&path);
        Ok(())
    }

    pub(super) fn directory_entries(&mut self, path: &[u8]) -> Result<Entries, FileFailure> {
        let mut kernel = self.call();
        let path = String::from_utf8_lossy(path);
        let path = path.trim_end_matches('/');
        let mut failure = None;
        if is_dav(path) {
            kernel.call_dav("opendir", |disk, _| disk.check_directory(path))?;
            failure = kernel.call_dav("readdir", |_, _| Ok(())).err();
        }
        let names = kernel.disk.entries(path).into_iter();
        let found = names.filter_map(|(name, _)| {
            let stat = kernel.disk.stat(&format!("{path}/{name}"))?;
            Some((name.into_bytes(), stat))
        });
        let mut found: Vec<_> = found.collect();
        if failure.is_some() {
            found.truncate(found.len() / 2);
        }
        Ok(Entries::known(found, failure))
    }

    pub(super) fn open_journal_file(&mut self, path: &[u8]) -> Result<FileRef, FileFailure> {
        let copy = self.descriptors.copy().map_err(|_| failure(EMFILE, "open"))?;
        let mut kernel = self.call();
        let kernel = &mut *kernel;
        kernel.store_fault("open")?;
        let path = String::from_utf8_lossy(path);
        kernel.disk.open(&path, FileRef::new(copy)).ok_or(failure(ENOENT, "open"))
    }

    pub(super) fn append_journal_bytes(
        &mut self,
        file: &FileRef,
        bytes: &[u8],
    ) -> Result<usize, FileFailure> {
        let mut kernel = self.call();
        let kernel = &mut *kernel;
        kernel.store_fault("write")?;
        let n = kernel.chance.size(bytes.len());
        let n =
            if kernel.chance.one_in(kernel.fault_rates.short_read_in) { n } else { bytes.len() };
        if !kernel.disk.write(file, None, &bytes[..n]) {
            kernel.violations.push("a write into a file that is no journal".to_owned());
        }
        Ok(n)
    }
}
