//! A MariaDB server for tests, in a private directory and on a private socket.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::tools::{finish, run, tool};
use crate::{site, wait_until};

/// A running server. Dropping it ends it and removes its data.
pub struct MariaDb {
    child: Child,
    dir: PathBuf,
}

impl MariaDb {
    /// Creates an empty database directory and starts the server on it.
    ///
    /// # Panics MariaDB is missing or does not respond within 30 seconds.
    #[must_use]
    pub fn start() -> Self {
        let dir = site::temp_dir();
        let mut install = Command::new(tool("mariadb-install-db"));
        install.args(["--no-defaults", "--auth-root-authentication-method=normal"]);
        install.args(["--skip-test-db", "--skip-name-resolve", "--innodb-log-file-size=8M"]);
        // The kernel has few contexts for asynchronous I/O, and all tests share them.
        install.arg("--innodb-use-native-aio=0").arg(format!("--tmpdir={}", dir.display()));
        install.args(user()).arg(format!("--datadir={}", dir.join("data").display()));
        let _quiet = finish("mariadb-install-db", install, Duration::from_secs(60)).succeeded();
        let child = spawn(&dir);
        let db = Self { child, dir };
        db.wait_ready();
        db
    }

    fn wait_ready(&self) {
        wait_until("MariaDB to answer", || self.query("select 1").code == 0);
    }

    /// The socket for clients.
    #[must_use]
    pub fn socket(&self) -> PathBuf {
        self.dir.join("sql.sock")
    }

    /// Runs statements and returns their output, without column names.
    ///
    /// # Panics A statement fails.
    pub fn sql(&self, statements: &str) -> String {
        self.query(statements).succeeded().text()
    }

    fn query(&self, statements: &str) -> crate::ToolRun {
        let socket = format!("--socket={}", self.socket().display());
        run("mariadb", ["--no-defaults", "-u", "root", "-N", "-B", &socket, "-e", statements])
    }

    /// Kills the server.
    pub fn kill(&mut self) {
        let _gone = self.child.kill();
        let _gone = self.child.wait();
    }

    /// Kills the server and starts it on the same data.
    pub fn restart(&mut self) {
        self.kill();
        self.child = spawn(&self.dir);
        self.wait_ready();
    }
}

impl Drop for MariaDb {
    fn drop(&mut self) {
        // The data is removed, so no clean shutdown is needed.
        self.kill();
        if std::env::var_os("BOLIDE_TEST_KEEP").is_none() {
            let _ = fs::remove_dir_all(&self.dir);
        }
    }
}

fn user() -> Option<&'static str> {
    crate::server::is_root().then_some("--user=root")
}

fn spawn(dir: &Path) -> Child {
    let log = fs::File::options().create(true).append(true).open(dir.join("log")).unwrap();
    let program = ["/usr/sbin/mariadbd", "/usr/libexec/mariadbd"].map(Path::new);
    let program = program.into_iter().find(|path| path.exists());
    let mut command = Command::new(program.map_or_else(|| tool("mariadbd"), Path::to_owned));
    let path = |name: &str, file: &str| format!("--{name}={}", dir.join(file).display());
    command.args(["--no-defaults", "--skip-networking", "--skip-name-resolve", "--skip-log-bin"]);
    // The data survives a crash of the server, not one of the machine.
    command.args(["--innodb-flush-log-at-trx-commit=2", "--innodb-buffer-pool-size=32M"]);
    command.args(["--innodb-log-file-size=8M", "--innodb-fast-shutdown=2"]);
    command.arg("--innodb-use-native-aio=0");
    command.args(user());
    command.args([path("datadir", "data"), path("socket", "sql.sock"), path("pid-file", "pid")]);
    command.arg(path("tmpdir", "data"));
    command.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log);
    command.spawn().unwrap_or_else(|e| panic!("mariadbd: {e}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_survives_a_restart() {
        let mut db = MariaDb::start();
        db.sql("create database d; create table d.t (n int); insert into d.t values (7)");
        db.restart();
        assert_eq!(db.sql("select n from d.t"), "7\n");
    }
}
