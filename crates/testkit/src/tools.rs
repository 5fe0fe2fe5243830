//! Finds and runs other programs. A missing one fails the test by name.

use std::env;
use std::ffi::OsStr;
use std::fmt;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

/// The result of a program.
pub struct ToolRun {
    /// The exit status; -1 after a signal.
    pub code: i32,
    /// Standard output.
    pub stdout: Vec<u8>,
    /// Standard error.
    pub stderr: String,
}

impl ToolRun {
    /// Standard output as text.
    #[must_use]
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    /// The same, after checking for success.
    ///
    /// # Panics The exit status is not 0.
    #[must_use]
    pub fn succeeded(self) -> Self {
        assert_eq!(self.code, 0, "{self}");
        self
    }
}

impl fmt::Display for ToolRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "exit {}\n{}\n{}", self.code, self.text(), self.stderr)
    }
}

/// The directory into which `scripts/setup.sh` installs tools.
#[must_use]
pub fn tools_dir() -> PathBuf {
    env::var_os("BOLIDE_TOOLS").map_or_else(
        || PathBuf::from(env::var_os("HOME").unwrap_or_default()).join(".cache/bolide-tools"),
        PathBuf::from,
    )
}

/// The path of program `name`.
///
/// # Panics Neither `BOLIDE_TOOLS/bin` nor `PATH` has it.
#[must_use]
pub fn tool(name: &str) -> PathBuf {
    let own = [tools_dir().join("bin"), tools_dir().join("venv/bin")];
    let path = env::var_os("PATH").unwrap_or_default();
    own.into_iter()
        .chain(env::split_paths(&path))
        .map(|dir| dir.join(name))
        .find(|file| file.is_file())
        .unwrap_or_else(|| panic!("missing tool: {name} (run scripts/setup.sh test)"))
}

/// Runs the tool `name` for at most ten minutes: a bound for what hangs, not for a busy machine.
///
/// # Panics The tool is missing or does not end in time.
pub fn run<S: AsRef<OsStr>>(name: &str, args: impl IntoIterator<Item = S>) -> ToolRun {
    let mut command = Command::new(tool(name));
    command.args(args);
    finish(name, command, Duration::from_secs(600))
}

/// Runs the Python program `script` with the interpreter of the test tools.
///
/// # Panics The interpreter is missing or the program does not end in fifty minutes.
pub fn python<S: AsRef<OsStr>>(script: &str, args: impl IntoIterator<Item = S>) -> ToolRun {
    let interpreter = tools_dir().join("venv/bin/python");
    assert!(interpreter.exists(), "missing tool: {interpreter:?} (run scripts/setup.sh test)");
    let mut command = Command::new(interpreter);
    command.arg(script).args(args);
    finish(script, command, Duration::from_secs(3000))
}

/// A Python program that runs beside a test. It reports its progress in lines and ends when its
/// standard input does. Dropping it kills it.
pub struct Companion {
    child: Child,
    lines: Receiver<String>,
}

impl Companion {
    /// Starts the program `script` with the interpreter of the test tools.
    ///
    /// # Panics The interpreter is missing.
    #[must_use]
    pub fn start<S: AsRef<OsStr>>(script: &str, args: impl IntoIterator<Item = S>) -> Self {
        let interpreter = tools_dir().join("venv/bin/python");
        assert!(interpreter.exists(), "missing tool: {interpreter:?} (run scripts/setup.sh test)");
        let mut command = Command::new(interpreter);
        command.arg(script).args(args).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap_or_else(|e| panic!("{script} does not start: {e}"));
        let (sender, lines) = mpsc::channel();
        let out = BufReader::new(child.stdout.take().unwrap());
        std::thread::spawn(move || {
            for line in out.lines().map_while(Result::ok) {
                // The receiver no longer exists when the test has ended.
                let _ = sender.send(line);
            }
        });
        Self { child, lines }
    }

    /// The next line of its output, within 90 seconds.
    ///
    /// # Panics No line comes.
    #[must_use]
    pub fn line(&self) -> String {
        let limit = Duration::from_secs(90);
        self.lines.recv_timeout(limit).unwrap_or_else(|why| panic!("a companion is silent: {why}"))
    }
}

impl Drop for Companion {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs `command` to its end.
///
/// # Panics It does not start or exceeds `limit`.
pub fn finish(name: &str, mut command: Command, limit: Duration) -> ToolRun {
    // Files instead of pipes: a grandchild that keeps a pipe open cannot block the test.
    let dir = crate::site::temp_dir();
    let (out, err) = (dir.join("out"), dir.join("err"));
    command
        .stdin(Stdio::null())
        .stdout(fs::File::create(&out).unwrap())
        .stderr(fs::File::create(&err).unwrap());
    let mut child = command.spawn().unwrap_or_else(|e| panic!("{name} does not start: {e}"));
    let start = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if start.elapsed() > limit {
            child.kill().unwrap();
            child.wait().unwrap();
            let said = fs::read(&out).unwrap();
            let (said, err) = (String::from_utf8_lossy(&said), fs::read(&err).unwrap());
            let err = String::from_utf8_lossy(&err);
            panic!("{name} did not end in {limit:?}: {command:?}\n{said}\n{err}");
        }
        // The longer it has run, the less a late look matters.
        let rest = start.elapsed() / 50;
        std::thread::sleep(rest.clamp(Duration::from_millis(2), Duration::from_millis(50)));
    };
    let finished = ToolRun {
        code: status.code().unwrap_or(-1),
        stdout: fs::read(&out).unwrap(),
        stderr: String::from_utf8_lossy(&fs::read(&err).unwrap()).into_owned(),
    };
    fs::remove_dir_all(&dir).unwrap();
    finished
}
