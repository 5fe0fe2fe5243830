//! A php-fpm for tests on private sockets, with its children and its status.
//!
//! It does not use the product's FastCGI code; the few records for the status request are here.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::tools::{run, tool};
use crate::{site, wait_until};

/// Settings that make PHP the same for every test.
const INI: [(&str, &str); 12] = [
    ("output_buffering", "0"),
    ("cgi.fix_pathinfo", "0"),
    ("display_errors", "0"),
    ("log_errors", "1"),
    ("error_log", "/proc/self/fd/2"),
    ("expose_php", "0"),
    ("memory_limit", "256M"),
    ("upload_max_filesize", "2G"),
    ("post_max_size", "2G"),
    ("sendmail_path", "/bin/true"),
    ("date.timezone", "UTC"),
    ("opcache.revalidate_freq", "0"),
];

/// A running php-fpm. Dropping it kills master and children.
pub struct TestPhp {
    child: Child,
    dir: PathBuf,
    listen: String,
}

/// The status of php-fpm's pool.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PoolStatus {
    /// Connections accepted since the start.
    pub accepted: u64,
    /// Connections waiting for a child.
    pub waiting: u64,
    /// Children waiting for a connection.
    pub idle: u64,
    /// Children with a connection.
    pub active: u64,
}

impl TestPhp {
    /// Starts php-fpm with `children` children on a unix socket.
    ///
    /// # Panics php-fpm is missing or does not listen within 30 seconds.
    #[must_use]
    pub fn start(children: u32) -> Self {
        Self::with(children, "")
    }

    /// The same with more lines for its pool, for example `php_admin_value[...] = ...`.
    #[must_use]
    pub fn with(children: u32, pool: &str) -> Self {
        let dir = site::temp_dir();
        let listen = dir.join("fpm.sock").to_str().unwrap().to_owned();
        Self::listening(dir, listen, children, pool)
    }

    /// The same on a TCP port of 127.0.0.1.
    #[must_use]
    pub fn tcp(port: u16, children: u32) -> Self {
        Self::listening(site::temp_dir(), format!("127.0.0.1:{port}"), children, "")
    }

    fn listening(dir: PathBuf, listen: String, children: u32, pool: &str) -> Self {
        fs::create_dir(dir.join("tmp")).unwrap();
        fs::write(dir.join("fpm.conf"), configuration(&dir, &listen, children, pool)).unwrap();
        let child = spawn(&dir);
        let php = Self { child, dir, listen };
        php.wait_ready();
        php
    }

    fn wait_ready(&self) {
        let log = || fs::read_to_string(self.dir.join("stderr")).unwrap_or_default();
        wait_until("php-fpm to listen", || {
            assert!(!log().contains("ERROR"), "{}", log());
            self.try_status().is_some()
        });
    }

    /// Kills the remaining processes and starts php-fpm again on the same sockets.
    pub fn restart(&mut self) {
        self.kill_all();
        self.child = spawn(&self.dir);
        self.wait_ready();
    }

    /// The address for `fastcgi_pass` or `server`: `unix:PATH` or an address.
    #[must_use]
    pub fn address(&self) -> String {
        if self.listen.starts_with('/') {
            return format!("unix:{}", self.listen);
        }
        self.listen.clone()
    }

    /// The directory of the sockets, the log and `tmp/` for uploads.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The process id of the master.
    #[must_use]
    pub fn master(&self) -> u32 {
        self.child.id()
    }

    /// The process ids of the children in the pool, even after the master has ended.
    #[must_use]
    pub fn children(&self) -> Vec<u32> {
        let done = run("pgrep", ["-g", &self.master().to_string()]);
        let is_child = |pid: &u32| {
            let name = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            // The status socket has a child of its own in another pool.
            String::from_utf8_lossy(&name).trim_end_matches(['\0', ' ']) == "php-fpm: pool www"
        };
        done.text().lines().filter_map(|line| line.parse().ok()).filter(is_child).collect()
    }

    /// php-fpm's status, from a socket outside the pool.
    ///
    /// # Panics php-fpm does not respond.
    #[must_use]
    pub fn status(&self) -> PoolStatus {
        let mut status = None;
        wait_until("php-fpm to tell its status", || {
            status = self.try_status();
            status.is_some()
        });
        status.unwrap_or_default()
    }

    fn try_status(&self) -> Option<PoolStatus> {
        let text = ask(&self.dir.join("status.sock"), "/status").ok()?;
        let value = |name: &str| {
            let line = text.lines().find(|line| line.starts_with(name))?;
            line.rsplit(' ').next()?.trim().parse().ok()
        };
        Some(PoolStatus {
            accepted: value("accepted conn:")?,
            waiting: value("listen queue:")?,
            idle: value("idle processes:")?,
            active: value("active processes:")?,
        })
    }

    /// Standard error of php-fpm and its scripts.
    #[must_use]
    pub fn log(&self) -> String {
        fs::read_to_string(self.dir.join("stderr")).unwrap_or_default()
    }

    /// Kills the master alone; its children continue.
    pub fn kill_master(&mut self) {
        let _gone = self.child.kill();
        let _gone = self.child.wait();
    }

    /// Kills the master and all children.
    pub fn kill_all(&mut self) {
        let group = format!("-{}", self.child.id());
        let _gone =
            Command::new("kill").args(["-s", "KILL", "--", &group]).stderr(Stdio::null()).status();
        let _gone = self.child.wait();
        for name in ["fpm.sock", "status.sock"] {
            let _gone = fs::remove_file(self.dir.join(name));
        }
    }
}

impl Drop for TestPhp {
    fn drop(&mut self) {
        self.kill_all();
        if std::thread::panicking() {
            let log = self.log();
            let lines: Vec<&str> = log.lines().collect();
            let tail = lines[lines.len().saturating_sub(12)..].join("\n");
            let text = format!("--- php-fpm\n{tail}\n---\n");
            let _ = std::io::stderr().write_all(text.as_bytes());
        }
        if std::env::var_os("BOLIDE_TEST_KEEP").is_none() {
            let _ = fs::remove_dir_all(&self.dir);
        }
    }
}

/// Kills a process.
pub fn kill(process: u32) {
    let _gone = Command::new("kill")
        .args(["-s", "KILL", &process.to_string()])
        .stderr(Stdio::null())
        .status();
}

fn configuration(dir: &Path, listen: &str, children: u32, pool: &str) -> String {
    let home = dir.display();
    let mut text = format!(
        "[global]\nerror_log = /proc/self/fd/2\nlog_level = notice\npid = {home}/fpm.pid\n\
         log_limit = 8192\ndaemonize = no\n[www]\nlisten = {listen}\nlisten.backlog = 511\n\
         pm = static\npm.max_children = {children}\npm.status_path = /status\n\
         pm.status_listen = {home}/status.sock\ncatch_workers_output = yes\n\
         decorate_workers_output = no\nclear_env = yes\nchdir = /\n"
    );
    if super::server::is_root() {
        text.push_str("user = root\ngroup = root\nlisten.mode = 0666\n");
    }
    for (name, value) in INI {
        text.push_str(&format!("php_admin_value[{name}] = {value}\n"));
    }
    for name in ["upload_tmp_dir", "session.save_path", "sys_temp_dir"] {
        text.push_str(&format!("php_admin_value[{name}] = {home}/tmp\n"));
    }
    text.push_str(pool);
    text
}

fn spawn(dir: &Path) -> Child {
    let log = fs::File::options().create(true).append(true).open(dir.join("stderr")).unwrap();
    let mut command = Command::new(program());
    // In a process group of its own the children can be killed even without the master.
    command.process_group(0).args(["-F", "-O", "-R", "-y"]).arg(dir.join("fpm.conf"));
    command.env("TMPDIR", dir.join("tmp"));
    command.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log);
    command.spawn().unwrap_or_else(|e| panic!("php-fpm: {e}"))
}

/// The program name on Debian contains the version.
fn program() -> PathBuf {
    let mut found: Vec<PathBuf> = fs::read_dir("/usr/sbin")
        .unwrap()
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.file_name().unwrap().to_string_lossy().starts_with("php-fpm"))
        .collect();
    found.sort();
    found.pop().unwrap_or_else(|| tool("php-fpm"))
}

/// Requests the status page once and returns the content of the stdout records.
fn ask(socket: &Path, script: &str) -> std::io::Result<String> {
    let record = |kind: u8, content: &[u8]| {
        let len = u16::try_from(content.len()).unwrap().to_be_bytes();
        [&[1, kind, 0, 1, len[0], len[1], 0, 0], content].concat()
    };
    let mut params = Vec::new();
    for (name, value) in
        [("SCRIPT_NAME", script), ("SCRIPT_FILENAME", script), ("REQUEST_METHOD", "GET")]
    {
        params.extend([name.len() as u8, value.len() as u8]);
        params.extend(name.bytes().chain(value.bytes()));
    }
    let mut peer = UnixStream::connect(socket)?;
    peer.set_read_timeout(Some(Duration::from_secs(5)))?;
    let begin = record(1, &[0, 1, 0, 0, 0, 0, 0, 0]);
    peer.write_all(&[begin, record(4, &params), record(4, &[]), record(5, &[])].concat())?;
    let mut got = Vec::new();
    peer.read_to_end(&mut got)?;
    let (mut text, mut rest) = (Vec::new(), &got[..]);
    while let [_, kind, _, _, high, low, padding, _, more @ ..] = rest {
        let len = usize::from(u16::from_be_bytes([*high, *low]));
        if *kind == 6 {
            text.extend_from_slice(&more[..len.min(more.len())]);
        }
        rest = more.get(len + usize::from(*padding)..).unwrap_or_default();
    }
    Ok(String::from_utf8_lossy(&text).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_killed_child_is_replaced_and_a_restart_listens_again() {
        let mut php = TestPhp::start(2);
        let children = php.children();
        assert_eq!((children.len(), php.status().idle), (2, 2));
        kill(children[0]);
        wait_until("another child", || {
            let now = php.children();
            now.len() == 2 && !now.contains(&children[0])
        });
        php.restart();
        assert_eq!(php.status().active, 0);
    }
}
