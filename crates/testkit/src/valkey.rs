//! A Valkey with files and ports of its own.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::ports::TestPorts;
use crate::tools::{ToolRun, run, tool};
use crate::{site, wait_until};

/// A running Valkey. Dropping it kills it.
pub struct Valkey {
    child: Option<Child>,
    dir: PathBuf,
    ports: TestPorts,
    options: Vec<String>,
    launcher: Vec<String>,
}

impl Default for Valkey {
    fn default() -> Self {
        Self::start(&[])
    }
}

impl Valkey {
    /// Starts one that writes every command to its file before it answers, with these further
    /// options; `@DIR@` is its directory, `@P1@` to `@P9@` are its ports.
    ///
    /// # Panics It is missing or does not answer within a minute.
    #[must_use]
    pub fn start(options: &[&str]) -> Self {
        Self::launched_by(&[], options)
    }

    /// The same, started by these words in the same process, such as `env NAME=VALUE`.
    ///
    /// # Panics It is missing or does not answer within a minute.
    #[must_use]
    pub fn launched_by(words: &[String], options: &[&str]) -> Self {
        let (dir, ports, launcher) = (site::temp_dir(), TestPorts::claim(), words.to_vec());
        let mut valkey = Self { child: None, dir, ports, options: Vec::new(), launcher };
        valkey.options = options.iter().map(|text| valkey.expand(text)).collect();
        valkey.start_again();
        valkey
    }

    /// Replaces the words that stand for its directory and ports.
    #[must_use]
    pub fn expand(&self, text: &str) -> String {
        let mut text = text.replace("@DIR@", self.dir.to_str().unwrap());
        for n in 0..10 {
            text = text.replace(&format!("@P{n}@"), &self.ports.port(n).to_string());
        }
        text
    }

    /// Starts it with the files that it left.
    ///
    /// # Panics It does not answer within a minute.
    pub fn start_again(&mut self) {
        let log = fs::File::options().create(true).append(true).open(self.dir.join("log")).unwrap();
        let program = tool("valkey-server");
        let mut words = self.launcher.iter().map(OsStr::new).chain([program.as_os_str()]);
        let mut command = Command::new(words.next().unwrap());
        command.args(words).args(["--port", &self.port().to_string(), "--bind", "127.0.0.1"]);
        command.args(["--dir", self.dir.to_str().unwrap(), "--appendonly", "yes"]);
        command.args(["--appendfsync", "always", "--save", "", "--daemonize", "no"]);
        command.args(["--unixsocket", self.socket().to_str().unwrap(), "--unixsocketperm", "777"]);
        command.args(&self.options);
        command.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log);
        self.child = Some(command.spawn().unwrap());
        wait_until("Valkey to answer", || {
            let said = self.cli(&["ping"]).text();
            said.contains("PONG") || said.contains("NOAUTH")
        });
    }

    /// The port.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.ports.port(0)
    }

    /// Its directory.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Its socket.
    #[must_use]
    pub fn socket(&self) -> PathBuf {
        self.dir.join("valkey.sock")
    }

    /// What the command line client says to a command.
    #[must_use]
    pub fn cli(&self, words: &[&str]) -> ToolRun {
        let port = self.port().to_string();
        run("valkey-cli", ["-p", &port].iter().chain(words))
    }

    /// Sends a signal by name.
    pub fn signal(&self, signal: &str) {
        if let Some(child) = &self.child {
            let _quiet = run("kill", ["-s", signal, &child.id().to_string()]).succeeded();
        }
    }

    /// Kills it, without a chance to write anything.
    pub fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _gone = child.kill();
            let _status = child.wait();
        }
    }
}

impl Drop for Valkey {
    fn drop(&mut self) {
        self.kill();
        let _gone = fs::remove_dir_all(&self.dir);
    }
}
