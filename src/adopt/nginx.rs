//! The running nginx: its process, its sockets, and its accepting workers.

use std::path::{Path, PathBuf};

use bolide_base::errno::describe;
use bolide_io::foreign::{ForeignProcess, SocketId, command_line};
use bolide_io::listen::{Listener, SocketAddress};
use bolide_io::signal::Signal;

use crate::signalling::read_pid;

/// The usual pid files of packages, if neither option nor configuration names one.
const PID_FILES: [&str; 3] = ["/run/nginx.pid", "/var/run/nginx.pid", "/run/nginx/nginx.pid"];

/// Whether this is a command line of nginx. That of a Bolide may contain nginx's paths.
fn is_nginx(command: &str) -> bool {
    let program = command.split(' ').next().unwrap_or_default();
    let name = program.rsplit('/').next().unwrap_or_default();
    command.contains("nginx") && !name.starts_with("bolide")
}

/// Its master process.
#[derive(Debug)]
pub(super) struct Nginx {
    process: ForeignProcess,
    /// The sockets that its workers accept from.
    streams: Vec<SocketId>,
    /// Its pid file.
    pub(super) pid_file: PathBuf,
}

impl Nginx {
    /// The nginx whose pid is in the file of the option, or of the configuration.
    ///
    /// # Errors
    ///
    /// No file has the pid of a running nginx.
    pub(super) fn find(option: Option<&Path>, configured: &Path) -> Result<Self, String> {
        let places: Vec<&Path> = match option {
            Some(option) => vec![option],
            None => std::iter::once(configured).chain(PID_FILES.map(Path::new)).collect(),
        };
        let mut first = None;
        for place in places {
            match Self::of_file(place) {
                Ok(found) => return Ok(found),
                Err(why) => first = first.or(Some(why)),
            }
        }
        let why = first.unwrap_or_default();
        Err(format!("{why}; --nginx-pid FILE names the pid file of nginx"))
    }

    fn of_file(path: &Path) -> Result<Self, String> {
        let pid = read_pid(path)?;
        let shown = path.display();
        let process = ForeignProcess::open(pid).map_err(|error| {
            format!("process {pid} of \"{shown}\" does not run ({})", describe(&error))
        })?;
        let words = command_line(pid).unwrap_or_default();
        // A pid file may be stale, and its pid may belong to another program.
        if !is_nginx(&words) {
            return Err(format!("process {pid} of \"{shown}\" is no nginx, but \"{words}\""));
        }
        Ok(Self { process, streams: Vec::new(), pid_file: path.to_path_buf() })
    }

    /// Its pid.
    pub(super) const fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// Duplicates of its sockets.
    ///
    /// # Errors
    ///
    /// As text, with the required privileges.
    pub(super) fn listeners(&mut self) -> Result<Vec<(SocketAddress, Listener)>, String> {
        let found = self.process.listeners().map_err(|error| {
            let need = match error.kind() {
                std::io::ErrorKind::PermissionDenied => "; only root may, with CAP_SYS_PTRACE",
                _ => "",
            };
            let (pid, why) = (self.pid(), describe(&error));
            format!("the sockets of process {pid} cannot be taken over ({why}){need}")
        })?;
        let streams = found.iter().filter(|(at, _)| matches!(at, SocketAddress::Tcp(_)));
        self.streams = streams.filter_map(|(_, listener)| SocketId::of(listener)).collect();
        Ok(found)
    }

    /// Sends it a signal, if it still runs.
    pub(super) fn signal(&self, signal: Signal) -> std::io::Result<()> {
        self.process.signal(signal)
    }

    pub(super) fn is_running(&self) -> bool {
        self.process.is_running()
    }

    /// The number of its workers that accept connections: a finishing worker has closed the
    /// listening sockets.
    ///
    /// # Errors
    ///
    /// /proc is not readable.
    pub(super) fn accepting(&self) -> std::io::Result<usize> {
        self.process.holders(&self.streams)
    }
}

#[cfg(test)]
mod tests {
    use super::is_nginx;

    #[test]
    fn an_nginx_is_told_from_what_has_its_number_by_now() {
        assert!(is_nginx("nginx: master process /usr/sbin/nginx -g daemon on;"));
        assert!(is_nginx("/lib64/ld-linux-x86-64.so.2 --argv0 nginx: m /opt/nginx/sbin/nginx"));
        assert!(!is_nginx("/usr/sbin/apache2 -k start"));
        assert!(!is_nginx("/usr/sbin/bolide -p /etc/bolide -c /etc/nginx/nginx.conf"));
        assert!(!is_nginx(""));
    }
}
