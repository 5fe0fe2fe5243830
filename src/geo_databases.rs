//! GeoIP databases: read with the configuration, and again when `auto_reload` finds that a file has
//! changed, by a thread that no worker waits for.
//!
//! An unusable file is an error at start and reload; later it is logged, and the old database
//! stays.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bolide_base::Instant;
use bolide_conf::model::{Config, GeoIpFile, LogLevel};
use bolide_geoip::{GeoDatabase, LiveGeoDatabase};

use crate::account::{WorkerAccount, spawn_as};
use crate::control_log::ControlLog;

/// LIMIT: bytes of a database.
const SIZE_MAX: u64 = 2 << 30;

/// The databases of the configuration in force, and the thread that checks their files.
#[derive(Debug, Default)]
pub(crate) struct GeoDatabases(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    bell: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// Of the configuration in force.
    active: Vec<Arc<DatabaseFile>>,
    log: Option<Arc<ControlLog>>,
    runs: bool,
}

/// The databases of a draft, in the order of its configuration.
#[derive(Debug, Default)]
pub(crate) struct GeoDraft(Vec<Arc<DatabaseFile>>);

impl GeoDraft {
    /// Their content, for lookups.
    pub(crate) fn databases(&self) -> Vec<Arc<LiveGeoDatabase>> {
        self.0.iter().map(|file| file.database.clone()).collect()
    }
}

/// A database and its file.
#[derive(Debug)]
struct DatabaseFile {
    path: PathBuf,
    /// The interval of checks; `None` for never.
    interval: Option<Duration>,
    database: Arc<LiveGeoDatabase>,
    looked: Mutex<Looked>,
}

/// The result of the last check.
#[derive(Clone, Copy, Debug)]
struct Looked {
    file: Option<FileState>,
    /// The state of the file when the database was read.
    read: Option<FileState>,
    due: Instant,
}

/// The identity of a file's content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FileState {
    device: u64,
    inode: u64,
    size: u64,
    changed: (i64, i64),
    modified: (i64, i64),
}

impl FileState {
    fn of(path: &Path) -> std::io::Result<Self> {
        let meta = std::fs::metadata(path)?;
        Ok(Self {
            device: meta.dev(),
            inode: meta.ino(),
            size: meta.size(),
            changed: (meta.ctime(), meta.ctime_nsec()),
            modified: (meta.mtime(), meta.mtime_nsec()),
        })
    }
}

fn read_database(path: &Path) -> Result<GeoDatabase, String> {
    let bytes = bolide_io::file::read_small(path, SIZE_MAX).map_err(|error| {
        match error.raw_os_error() {
            Some(_) => format!("open() failed ({})", bolide_base::errno::describe(&error)),
            None => error.to_string(),
        }
    })?;
    GeoDatabase::new(bytes).map_err(|error| error.to_string())
}

/// The error for a file of the configuration, with advice.
fn refusal(file: &GeoIpFile, why: &str) -> String {
    let GeoIpFile { path, directive, place, .. } = file;
    let (path, where_) = (path.display(), format!("in {}:{}", place.file, place.line));
    if *directive == "geoip2" {
        return format!("MMDB_open(\"{path}\") failed - {why} {where_}");
    }
    format!(
        "GeoIP_open(\"{path}\") failed - {why}; \"{directive}\" reads databases in MaxMind's new \
         format: for a file in the old one (.dat) name the .mmdb file of the same content, such \
         as GeoLite2-Country, GeoLite2-City or GeoLite2-ASN {where_}"
    )
}

impl GeoDatabases {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock()
    }

    /// The databases of a draft, in the order of its configuration. If a file has not changed since
    /// the configuration in force was read, its database is shared.
    ///
    /// # Errors
    ///
    /// One text for each unusable file.
    pub(crate) fn load(&self, config: &Config) -> Result<GeoDraft, Vec<String>> {
        let files = config.http.as_ref().map_or(&[][..], |http| &http.geoip.databases);
        let active = self.state().active.clone();
        let (mut next, mut wrong): (Vec<Arc<DatabaseFile>>, _) = (Vec::new(), Vec::new());
        for file in files {
            let known = next.iter().chain(&active).find(|known| known.serves(file));
            match known.cloned().map_or_else(|| DatabaseFile::open(file).map(Arc::new), Ok) {
                Ok(open) => next.push(open),
                Err(why) => wrong.push(refusal(file, &why)),
            }
        }
        if !wrong.is_empty() {
            return Err(wrong);
        }
        Ok(GeoDraft(next))
    }

    /// Logs to another file from now on: the old one may have been moved away.
    pub(crate) fn log_to(&self, log: ControlLog) {
        self.state().log = Some(Arc::new(log));
    }

    /// Puts the draft in force. The thread that checks its files runs as `account`, so that later
    /// files are parsed without privileges.
    pub(crate) fn settle(&self, draft: GeoDraft, log: ControlLog, account: Option<&WorkerAccount>) {
        let mut state = self.state();
        state.active = draft.0;
        let log = Arc::new(log);
        state.log = Some(log.clone());
        self.0.bell.notify_all();
        if state.runs || state.active.iter().all(|file| file.interval.is_none()) {
            return;
        }
        let (shared, refusing, log_of_thread) = (self.0.clone(), self.0.clone(), log.clone());
        let refused = move |why: &str| {
            log_of_thread.write(LogLevel::Emerg, why);
            // The next reload tries again.
            refusing.lock().runs = false;
        };
        match spawn_as(account, "geoip", move || shared.run(), refused) {
            Ok(_) => state.runs = true,
            Err(error) => {
                log.write(LogLevel::Alert, &format!("cannot reload databases: {error}"));
            }
        }
    }
}

impl Shared {
    /// The state; what a panicking thread has left of it is whole.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Checks files when due, forever: the thread ends with the process.
    fn run(&self) {
        let mut state = self.lock();
        loop {
            let now = bolide_io::process::now().mono;
            let files = state.active.iter().filter(|file| file.interval.is_some());
            let next = files.min_by_key(|file| file.looked().due).cloned();
            let wait = next.as_ref().map_or(Duration::MAX, |file| file.looked().due.since(now));
            let (Some(file), Some(log), true) = (next, state.log.clone(), wait.is_zero()) else {
                // A day at most: the system's waits have a limit.
                let wait = wait.min(Duration::from_secs(86_400));
                let woken = self.bell.wait_timeout(state, wait);
                state = woken.unwrap_or_else(PoisonError::into_inner).0;
                continue;
            };
            drop(state);
            file.look(&log);
            drop(file);
            state = self.lock();
        }
    }
}

impl DatabaseFile {
    fn open(file: &GeoIpFile) -> Result<Self, String> {
        // Before it is read: a later change is seen at the next check.
        let state = FileState::of(&file.path).ok();
        let database = read_database(&file.path)?;
        let now = bolide_io::process::now();
        let interval = (file.reload_seconds > 0).then(|| Duration::from_secs(file.reload_seconds));
        let database = match interval {
            Some(_) => LiveGeoDatabase::replaceable(database, now.unix_seconds()),
            None => LiveGeoDatabase::fixed(database, now.unix_seconds()),
        };
        let due = now.mono.after(interval.unwrap_or_default());
        Ok(Self {
            path: file.path.clone(),
            interval,
            database: Arc::new(database),
            looked: Mutex::new(Looked { file: state, read: state, due }),
        })
    }

    /// Whether it is the database for `file`, unchanged.
    fn serves(&self, file: &GeoIpFile) -> bool {
        self.path == file.path
            && self.interval.map_or(0, |interval| interval.as_secs()) == file.reload_seconds
            && self.looked().read.is_some_and(|known| {
                FileState::of(&file.path).is_ok_and(|current| current == known)
            })
    }

    fn looked(&self) -> MutexGuard<'_, Looked> {
        self.looked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Checks the file, and reads it if it has changed.
    fn look(&self, log: &ControlLog) {
        let path = self.path.display();
        let Looked { file: before, mut read, .. } = *self.looked();
        let file = FileState::of(&self.path);
        self.database.record_check(bolide_io::process::now().unix_seconds());
        match &file {
            // A missing or invalid file is logged once, not at every check.
            Err(error) if before.is_some() => {
                let why = bolide_base::errno::describe(error);
                log.write(LogLevel::Error, &format!("stat() \"{path}\" failed ({why})"));
            }
            Ok(file) if before != Some(*file) => match read_database(&self.path) {
                Ok(database) => {
                    read = Some(*file);
                    let now = bolide_io::process::now();
                    self.database.replace(database, now.unix_seconds());
                    log.write(LogLevel::Info, &format!("Reload MMDB \"{path}\""));
                }
                Err(why) => {
                    let text = format!("MMDB_open(\"{path}\") failed to reload - {why}");
                    log.write(LogLevel::Error, &text);
                }
            },
            _ => {}
        }
        let now = bolide_io::process::now().mono;
        let due = now.after(self.interval.unwrap_or(Duration::MAX));
        *self.looked() = Looked { file: file.ok(), read, due };
    }
}
