//! Error-log lines about the server itself, and about connections that have no request.

use bolide_base::Now;
use bolide_conf::model::{ErrorLog, LogLevel};
use bolide_http::date::DateClock;
use bolide_log::Logs;

use super::{LevelFloor, Place, lines, push_message};
use crate::ctx::ConnInfo;
use crate::site::Site;
use crate::vars::address;

impl Site {
    /// Writes an error-log line about the server itself, or about an ended connection, to the logs
    /// of the main block.
    pub fn log_server(
        &self,
        level: LogLevel,
        serial: Option<u64>,
        text: &[u8],
        now: Now,
        clock: &DateClock,
        logs: &mut Logs,
    ) {
        let place = Place { site: self, clock, now, serial, floor: LevelFloor::Own };
        lines(&self.config().main.error_log, level, place, logs, |out| push_message(text, out));
    }

    /// Writes an error-log line about a connection without a request:
    /// `TEXT, client: 192.0.2.1, server: 0.0.0.0:443`.
    pub fn log_conn(
        &self,
        conn: &ConnInfo,
        level: LogLevel,
        text: &[&str],
        now: Now,
        clock: &DateClock,
        logs: &mut Logs,
    ) {
        self.conn_lines(conn, level, (now, clock), logs, |out| {
            let mut end = out.len();
            for part in text {
                end = push_message(part.as_bytes(), out);
            }
            out.extend_from_slice(b", client: ");
            address(out, conn.remote);
            if let Some(listen) = self.listens().get(conn.listen) {
                out.extend_from_slice(b", server: ");
                out.extend_from_slice(listen.address.to_string().as_bytes());
            }
            end
        });
    }

    /// Writes that a client closed an idle connection:
    /// `client 192.0.2.1 closed keepalive connection`, and `why`.
    pub fn log_kept_end(
        &self,
        conn: &ConnInfo,
        why: &str,
        now: Now,
        clock: &DateClock,
        logs: &mut Logs,
    ) {
        self.conn_lines(conn, LogLevel::Info, (now, clock), logs, |out| {
            out.extend_from_slice(b"client ");
            address(out, conn.remote);
            push_message(b" closed keepalive connection", out);
            push_message(why.as_bytes(), out)
        });
    }

    /// Writes a line to the logs of the connection's listening socket.
    fn conn_lines(
        &self,
        conn: &ConnInfo,
        level: LogLevel,
        (now, clock): (Now, &DateClock),
        logs: &mut Logs,
        text: impl Fn(&mut Vec<u8>) -> usize,
    ) {
        let floor = LevelFloor::of(conn, self);
        let place = Place { site: self, clock, now, serial: Some(conn.serial), floor };
        let targets: &[ErrorLog] = match self.listens().get(conn.listen) {
            Some(_) => {
                let server = self.server(self.default_server(conn.listen));
                &self.location(server.root).settings.error_log
            }
            None => &self.config().main.error_log,
        };
        lines(targets, level, place, logs, text);
    }
}
