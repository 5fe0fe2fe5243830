//! The targets of log lines: files, a pipe, a syslog server. They accept lines late, in part or not
//! at all, and are replaced while the server writes to them.

use std::collections::{BTreeMap, BTreeSet};

use bolide_base::FileRef;
use bolide_base::errno::{EACCES, ECONNREFUSED, EIO, EMFILE, ENFILE, ENOBUFS, ENOSPC, EPIPE};
use bolide_io::{Appended, Stat};

use crate::chance::Chance;

/// The log targets in the configuration, and whether each is a regular file.
pub const NAMED: [(&str, bool); 3] =
    [("/logs/plain", true), ("/logs/packed", true), ("/logs/pipe", false)];
/// The prefix of logs with a variable in their name.
pub const REQUEST_LOG_PREFIX: &str = "/logs/own-";
/// The name of the syslog server here.
pub const SYSLOG: &str = "syslog";

/// Nanoseconds for which the server may use a log that was renamed (`open_log_file_cache`).
const VALID: u64 = 1_100_000_000;

#[derive(Debug)]
struct Open {
    file: FileRef,
    name: String,
    inode: u64,
}

/// All log targets.
#[derive(Debug, Default)]
pub struct SimLogs {
    open: BTreeMap<i32, Open>,
    /// The written bytes, by name.
    bytes: BTreeMap<String, Vec<u8>>,
    /// Names whose lines were lost in part.
    lost: BTreeSet<String>,
    /// The current inode of each name, and since when.
    inodes: BTreeMap<String, (u64, u64)>,
    next_inode: u64,
    /// Descriptors of replaced logs.
    outdated: BTreeSet<i32>,
    /// Descriptors of logs that are replaced once all workers have read their mail.
    rotated: Vec<i32>,
}

/// The group of log names whose lines are compared.
fn group(name: &str) -> &str {
    if name.starts_with(REQUEST_LOG_PREFIX) { REQUEST_LOG_PREFIX } else { name }
}

impl SimLogs {
    /// Opens a log as `file`.
    pub fn register(&mut self, name: &str, file: FileRef, now: u64) {
        self.next_inode += 1;
        let fresh = (self.next_inode, now);
        let (inode, _) = *self.inodes.entry(name.to_owned()).or_insert(fresh);
        self.open.insert(file.raw(), Open { file, name: name.to_owned(), inode });
    }

    /// All open logs are replaced.
    pub fn rotate(&mut self) {
        self.rotated.extend(self.open.keys());
        self.inodes.clear();
    }

    /// All workers use the new logs.
    pub fn settle(&mut self) {
        self.outdated.extend(self.rotated.drain(..));
    }

    /// The logs with a variable in their name are renamed.
    pub fn move_request_logs(&mut self, now: u64) {
        for (name, (inode, since)) in &mut self.inodes {
            if name.starts_with(REQUEST_LOG_PREFIX) {
                self.next_inode += 1;
                (*inode, *since) = (self.next_inode, now);
            }
        }
    }

    /// The attributes of a name.
    #[must_use]
    pub fn stat(&self, name: &str) -> Option<Stat> {
        self.inodes.get(name).map(|(inode, _)| attributes(*inode))
    }

    /// The attributes of an open log.
    #[must_use]
    pub fn stat_open(&self, file: &FileRef) -> Option<Stat> {
        self.open.get(&file.raw()).map(|open| attributes(open.inode))
    }

    /// The written bytes, by name, without logs that lost lines.
    pub fn whole(&self) -> impl Iterator<Item = (&str, &[u8])> {
        let is_whole = |name: &str| !self.lost.contains(group(name));
        let all = self.bytes.iter().map(|(name, bytes)| (&**name, &**bytes));
        all.filter(move |(name, _)| is_whole(name))
    }

    /// Replaced logs that are still open.
    pub fn leaks(&self) -> impl Iterator<Item = &str> {
        let is_held = |raw: &&i32| self.open.get(raw).is_some_and(|open| open.file.holders() > 1);
        let held = self.outdated.iter().filter(is_held);
        held.filter_map(|raw| self.open.get(raw).map(|open| &*open.name))
    }

    /// Draws the error of opening a log; `log_in` is its rate.
    pub fn refuse(&mut self, name: &str, log_in: u64, chance: &mut Chance) -> Option<i32> {
        if !chance.one_in(log_in) {
            return None;
        }
        let all = match name {
            SYSLOG => [EMFILE, ENOBUFS, ECONNREFUSED],
            _ => [EACCES, ENFILE, ENOSPC],
        };
        self.lost.insert(group(name).to_owned());
        Some(all[chance.index(all.len())])
    }

    /// The name of an open log, and the violation in a write to it.
    #[must_use]
    pub fn find(&self, file: &FileRef, now: u64) -> Option<(String, Option<&'static str>)> {
        let raw = file.raw();
        let Open { name, inode, .. } = self.open.get(&raw)?;
        let is_moved = |(current, since): &(u64, u64)| current != inode && now > since + VALID;
        let problem = if self.outdated.contains(&raw) {
            Some("is written to after it was opened again")
        } else if name.starts_with(REQUEST_LOG_PREFIX)
            && self.inodes.get(name).is_some_and(is_moved)
        {
            Some("is written to long after it was moved")
        } else {
            None
        };
        Some((name.clone(), problem))
    }

    /// Writes to a log.
    pub fn write(
        &mut self,
        name: &str,
        bytes: &[u8],
        log_in: u64,
        chance: &mut Chance,
    ) -> Appended {
        let is_regular = name != SYSLOG && NAMED.iter().all(|known| *known != (name, false));
        let mut done = Appended { bytes: bytes.len(), errno: None };
        if chance.one_in(log_in) {
            let all = if is_regular { [ENOSPC, EIO] } else { [EPIPE, ECONNREFUSED] };
            done = Appended { bytes: 0, errno: Some(all[chance.index(2)]) };
            self.lost.insert(group(name).to_owned());
        } else if !is_regular && log_in > 0 && chance.one_in(3) {
            // The reader is slow.
            done.bytes = 0;
        }
        let known = self.bytes.entry(name.to_owned()).or_default();
        known.extend_from_slice(&bytes[..done.bytes]);
        if name == SYSLOG && done.bytes > 0 {
            known.push(b'\n');
        }
        done
    }
}

fn attributes(inode: u64) -> Stat {
    Stat { inode, device: 2, mode: 0o100_644, is_regular: true, ..Stat::default() }
}
