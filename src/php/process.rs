//! One master process of a pool, php-fpm or lsphp: its start, its output, its end.

use std::fs;
use std::io::{PipeReader, Read};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bolide_base::Instant;
use bolide_conf::model::{LogLevel, PhpLimit, PhpProtocol, PhpResource};
use bolide_io::child::{self, ChildDescriptor, ChildResource, ChildSignal, SpawnOptions};

use super::cgroup::{PoolGroup, PoolGroups};
use super::fpm::{self, FpmLine};
use super::settle::{Settled, plain};
use super::{keeper, lsphp};
use crate::control_log::ControlLog;

/// Bytes of an incomplete line; a longer one is logged in pieces.
const LINE_MAX: usize = 8192;
/// How long running requests may take where the pool sets no limit itself.
const PATIENCE: Duration = Duration::from_hours(1);
/// The same for a master that was never ready: it has few requests, and may be stuck.
const UNREADY_PATIENCE: Duration = Duration::from_mins(5);
/// The time between one signal to a process and the next, harder one.
const HARDER_AFTER: Duration = Duration::from_secs(5);
/// lsphp does not report that it is ready; one that lives this long is.
const LSPHP_READY_AFTER: Duration = Duration::from_millis(200);

/// A running master. Its children are in its process group; the owner must end them.
#[derive(Debug)]
pub(super) struct Process {
    pub(super) pid: u32,
    /// The token of its output.
    pub(super) serial: u64,
    pub(super) started: Instant,
    /// Whether it accepts requests.
    pub(super) is_ready: bool,
    /// Its children live on without it.
    is_headless: bool,
    /// How the master of lsphp ended, while its keeper waits for the children.
    lost_master: Option<String>,
    /// How the keeper's line about that begins.
    lost_line: String,
    protocol: PhpProtocol,
    patience: Duration,
    ending: Option<Ending>,
    output: Option<PipeReader>,
    partial: Vec<u8>,
    /// Whether the last line belonged to PHP's report of an error, which may have several.
    in_report: bool,
    files: Vec<PathBuf>,
    /// Declared as long as the process may run.
    _group: Option<PoolGroup>,
}

/// A process told to end, and the next step if it has not by a certain time.
#[derive(Clone, Copy, Debug)]
struct Ending {
    next: ChildSignal,
    at: Instant,
}

impl Process {
    /// Starts the master of a pool on a socket that listens already.
    ///
    /// # Errors
    ///
    /// Its files cannot be written, or the program cannot be run.
    pub(super) fn start(
        settled: &Settled,
        socket: &UnixListener,
        dir: &Path,
        serial: u64,
        now: Instant,
    ) -> Result<Self, String> {
        let (output, input) = std::io::pipe().map_err(|error| format!("pipe: {error}"))?;
        let mut files = Vec::new();
        let name = format!("{}-{serial}", plain(&settled.pool.name));
        let group = group(settled)?;
        let joins = group.as_ref().map(|group| &group.procs);
        let word = format!("{:016x}", bolide_tls::random_seed());
        let words = (input.into(), joins, &*word);
        let pid = launch(settled, socket, &dir.join(name), words, &mut files)
            .inspect_err(|_| remove(&files))?;
        let limit = settled.pool.request_timeout;
        Ok(Self {
            pid,
            serial,
            started: now,
            is_ready: false,
            is_headless: false,
            lost_master: None,
            lost_line: format!("{}{word} ", keeper::LOST),
            protocol: settled.pool.protocol,
            patience: if limit.is_zero() { PATIENCE } else { limit + HARDER_AFTER },
            ending: None,
            output: Some(output),
            partial: Vec::new(),
            in_report: false,
            files,
            _group: group,
        })
    }

    /// The descriptor of its output; none when that has ended.
    pub(super) fn output(&self) -> Option<bolide_io::Fd> {
        self.output.as_ref().map(|pipe| bolide_io::Fd(pipe.as_raw_fd()))
    }

    /// Reads and logs its output. Called when the output is readable, so that the read does not
    /// block. An output that has ended is closed, which also ends the watch.
    pub(super) fn read(&mut self, pool: &str, log: &ControlLog) {
        let mut buffer = [0; 16 << 10];
        let read = self.output.as_mut().and_then(|pipe| pipe.read(&mut buffer).ok()).unwrap_or(0);
        self.partial.extend_from_slice(&buffer[..read]);
        let ended = read == 0;
        while let Some(end) = line_end(&self.partial, ended) {
            let line: Vec<u8> = self.partial.drain(..end).collect();
            self.handle_line(&line, pool, log);
        }
        if ended {
            self.output = None;
        }
    }

    /// How its master ended, once, if its children go on without it under a keeper.
    pub(super) fn take_lost_master(&mut self) -> Option<String> {
        self.lost_master.take()
    }

    fn handle_line(&mut self, line: &[u8], pool: &str, log: &ControlLog) {
        let text = printable(line);
        if self.protocol == PhpProtocol::Lsapi
            && let Some(end) = text.strip_prefix(&self.lost_line)
        {
            self.lost_master = Some(end.to_owned());
            return;
        }
        let goes_on = self.in_report && fpm::goes_on(&text);
        self.in_report = goes_on || text.starts_with(fpm::REPORT);
        match fpm::line(&text) {
            FpmLine::Ready => {
                self.is_ready = true;
                // A signal that came before its handlers were set is lost.
                if self.ending.is_some_and(|ending| matches!(ending.next, ChildSignal::Terminate)) {
                    child::signal(self.pid, self.gently());
                }
            }
            FpmLine::Text(_, text) if goes_on => say(log, LogLevel::Info, pool, text),
            FpmLine::Text(level, text) => match fpm::in_our_words(text) {
                Some((level, text)) => say(log, level, pool, &text),
                None => say(log, level, pool, text),
            },
            FpmLine::Blank => {}
        }
    }

    /// Lets running requests finish and accepts no others.
    pub(super) fn finish(&mut self, now: Instant) {
        if self.ending.is_none() {
            child::signal(self.pid, self.gently());
            let patience = match self.is_ready {
                true => self.patience,
                false => self.patience.min(UNREADY_PATIENCE),
            };
            self.ending = Some(Ending { next: ChildSignal::Terminate, at: now.after(patience) });
        }
    }

    /// Its master is dead: lets its children finish their requests. Those of lsphp do so by
    /// themselves, under their keeper.
    pub(super) fn orphan(&mut self, now: Instant) {
        self.is_headless = true;
        let _ = child::signal_group(self.pid, self.gently());
        self.ending = Some(Ending { next: ChildSignal::Terminate, at: now.after(self.patience) });
    }

    /// Kills it, running requests included.
    pub(super) fn stop(&mut self, now: Instant) {
        if self.is_headless {
            let _ = child::signal_group(self.pid, ChildSignal::Terminate);
        } else {
            child::signal(self.pid, ChildSignal::Terminate);
        }
        self.ending = Some(Ending { next: ChildSignal::Kill, at: now.after(HARDER_AFTER) });
    }

    /// Kills it and its children, whatever they do.
    pub(super) fn kill(&self) {
        let _ = child::signal_group(self.pid, ChildSignal::Kill);
    }

    /// Escalates the signals to a process that does not end, and detects readiness.
    pub(super) fn tick(&mut self, now: Instant) {
        if self.protocol == PhpProtocol::Lsapi && now >= self.started.after(LSPHP_READY_AFTER) {
            self.is_ready = true;
        }
        let Some(ending) = self.ending.filter(|ending| now >= ending.at) else { return };
        let _ = child::signal_group(self.pid, ending.next);
        self.ending = Some(Ending { next: ChildSignal::Kill, at: now.after(HARDER_AFTER) });
    }

    /// When to call [`Self::tick`] next.
    pub(super) fn deadline(&self) -> Option<Instant> {
        let ready = (self.protocol == PhpProtocol::Lsapi && !self.is_ready)
            .then(|| self.started.after(LSPHP_READY_AFTER));
        let ending = self.ending.map(|ending| ending.at);
        ready.into_iter().chain(ending).min()
    }

    /// How many children it has.
    pub(super) fn children(&self) -> usize {
        let below = keeper::children(self.pid);
        match self.protocol {
            PhpProtocol::FastCgi => below.len(),
            PhpProtocol::Lsapi => below.iter().map(|pid| keeper::children(*pid).len()).sum(),
        }
    }

    const fn gently(&self) -> ChildSignal {
        match self.protocol {
            PhpProtocol::FastCgi => ChildSignal::Quit,
            PhpProtocol::Lsapi => ChildSignal::User1,
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        remove(&self.files);
    }
}

/// Writes the files of a master and starts it.
fn launch(
    settled: &Settled,
    socket: &UnixListener,
    base: &Path,
    (output, joins, word): (std::os::fd::OwnedFd, Option<&fs::File>, &str),
    files: &mut Vec<PathBuf>,
) -> Result<u32, String> {
    let number = socket.as_raw_fd();
    let further = base.with_extension("d");
    files.push(further.clone());
    let mut scan = std::ffi::OsString::from(":");
    scan.push(&further);
    let mut env = vec![("PHP_INI_SCAN_DIR".to_owned(), scan)];
    let account = settled.account.as_ref().filter(|_| bolide_io::process::is_root());
    let reader = account.filter(|_| settled.pool.protocol == PhpProtocol::Lsapi);
    let written = settings(&further, &fpm::ini(settled), reader);
    written.map_err(|error| format!("{}: {error}", further.display()))?;
    let (args, inherit, become_account);
    match settled.pool.protocol {
        PhpProtocol::FastCgi => {
            let (file, alias) = (base.with_extension("conf"), base.with_extension("none"));
            files.push(file.clone());
            private(&file, fpm::configuration(settled, &alias).as_bytes(), None)
                .map_err(|error| format!("{}: {error}", file.display()))?;
            args = fpm::args(settled, &file);
            env.push(("FPM_SOCKETS".to_owned(), fpm::sockets(&alias, number)));
            env.push(("PATH".to_owned(), "/usr/local/bin:/usr/bin:/bin".into()));
            env.extend(fpm::values(settled));
            (inherit, become_account) = (ChildDescriptor::SameNumber(socket), None);
        }
        PhpProtocol::Lsapi => {
            env.extend(lsphp::env(settled));
            env.push((keeper::WORD.to_owned(), word.into()));
            args = vec!["php".into(), "keep".into(), settled.binary.clone().into()];
            (inherit, become_account) = (ChildDescriptor::Stdin(socket), reader);
        }
    }
    let program = match settled.pool.protocol {
        PhpProtocol::FastCgi => settled.binary.as_path(),
        // Our own binary, even if the file has been replaced since.
        PhpProtocol::Lsapi => Path::new("/proc/self/exe"),
    };
    let env: Vec<_> = env.iter().map(|(name, value)| (name.as_str(), value.clone())).collect();
    let limits: Vec<_> =
        settled.pool.rlimits.iter().map(|(of, most)| (resource(*of), *most)).collect();
    let order = SpawnOptions {
        program,
        args: &args,
        env: &env,
        account: become_account,
        group: joins,
        limits: &limits,
        socket: inherit,
        output,
    };
    child::spawn(order).map_err(|error| format!("cannot run \"{}\": {error}", program.display()))
}

/// The control group of a pool with limits.
fn group(settled: &Settled) -> Result<Option<PoolGroup>, String> {
    let limits: Vec<PhpLimit> = settled.pool.limits.iter().map(|(limit, _)| *limit).collect();
    if limits.is_empty() {
        return Ok(None);
    }
    PoolGroups::ready(&limits)?.group(&settled.pool.name, &limits).map(Some)
}

const fn resource(of: PhpResource) -> ChildResource {
    match of {
        PhpResource::AddressSpace => ChildResource::AddressSpace,
        PhpResource::Core => ChildResource::Core,
        PhpResource::FileSize => ChildResource::FileSize,
        PhpResource::Files => ChildResource::Files,
        PhpResource::Processes => ChildResource::Processes,
        PhpResource::Stack => ChildResource::Stack,
    }
}

/// Makes a directory with a file of PHP's settings for `reader`. The directory stays ours: if it
/// owned the directory, a script could replace the file by a link while the file is given away.
fn settings(dir: &Path, text: &[u8], reader: Option<&child::ChildAccount>) -> std::io::Result<()> {
    fs::DirBuilder::new().mode(0o700).create(dir)?;
    private(&dir.join("pool.ini"), text, reader)?;
    let mode = if reader.is_some() { 0o755 } else { 0o700 };
    fs::set_permissions(dir, fs::Permissions::from_mode(mode))
}

/// Writes a file that only its owner can read.
fn private(path: &Path, text: &[u8], owner: Option<&child::ChildAccount>) -> std::io::Result<()> {
    use std::io::Write as _;
    let mut file = fs::File::options().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(text)?;
    match owner {
        Some(owner) => std::os::unix::fs::fchown(&file, Some(owner.uid), Some(owner.gid)),
        None => Ok(()),
    }
}

fn remove(files: &[PathBuf]) {
    for path in files {
        // A missing file need not be removed; the whole directory goes at the end.
        let _ = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
    }
}

/// The end of the first line, its terminator included.
fn line_end(bytes: &[u8], ended: bool) -> Option<usize> {
    let at = bytes.iter().position(|byte| *byte == b'\n').map(|at| at + 1);
    let cut = (bytes.len() > LINE_MAX).then_some(LINE_MAX);
    let rest = (ended && !bytes.is_empty()).then_some(bytes.len());
    at.filter(|at| *at <= LINE_MAX).or(cut).or(rest)
}

/// A line in the form for the log.
fn printable(line: &[u8]) -> String {
    let mut text = String::with_capacity(line.len());
    for c in String::from_utf8_lossy(line.trim_ascii()).chars() {
        if c.is_control() && c != '\t' {
            text.extend(c.escape_default());
        } else {
            text.push(c);
        }
    }
    text
}

/// Logs a message about a pool.
pub(super) fn say(log: &ControlLog, level: LogLevel, pool: &str, text: &str) {
    log.write(level, &format!("php pool \"{pool}\": {text}"));
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::MetadataExt as _;

    use super::{LINE_MAX, child, line_end, printable, settings};

    #[test]
    fn settings_belong_to_their_reader_and_their_directory_to_us() {
        let (own, _) = bolide_io::process::own_ids();
        let uid = if bolide_io::process::is_root() { 65_534 } else { own };
        let reader = child::ChildAccount { name: "nobody".to_owned(), uid, gid: uid };
        let dir = bolide_testkit::site::temp_dir().join("main-1.d");
        settings(&dir, b"a = b\n", Some(&reader)).unwrap();
        let (above, file) = (fs::metadata(&dir), fs::metadata(dir.join("pool.ini")).unwrap());
        assert_eq!(above.unwrap().uid(), own);
        assert_eq!((file.uid(), file.mode() & 0o777), (uid, 0o600));
        assert!(settings(&dir, b"", None).is_err(), "nothing that is there is written to");
    }

    #[test]
    fn lines_end_at_their_end_or_when_they_are_too_long() {
        assert_eq!(line_end(b"one\ntwo", false), Some(4));
        assert_eq!(line_end(b"two", false), None);
        assert_eq!(line_end(b"two", true), Some(3));
        assert_eq!(line_end(b"", true), None);
        let mut long = vec![b'a'; LINE_MAX + 10];
        assert_eq!(line_end(&long, false), Some(LINE_MAX));
        long.push(b'\n');
        assert_eq!(line_end(&long, false), Some(LINE_MAX));
    }

    #[test]
    fn what_a_script_writes_cannot_forge_the_log() {
        assert_eq!(printable(b"a\r\x1b[2Jb\xff\n"), "a\\r\\u{1b}[2Jb\u{fffd}");
    }
}
