//! File lookups with inotify: watches the directories on a path, and reports changes to the table
//! of open files.
//!
//! Owns the order that makes it correct: a directory is watched before it is read, and changes are
//! handled before requests that may have arrived after them. See
//! docs/decisions/0021-watched-files.md.

use std::collections::VecDeque;

use bolide_base::errno::{EINVAL, ELOOP, EMFILE, ENOENT, ENOSPC, reason};
use bolide_conf::model::LogLevel;
use bolide_files::{OpenFailure, Probe, Probed, Remember, Trail, TrailStanding, Trust, Want};
use bolide_io::{DirChange, DirDepth, Io};

use crate::env::WorkerEnv;
use crate::token::PollToken;

/// LIMIT: symbolic links on one path, as in Linux.
const LINKS_MAX: usize = 40;
/// LIMIT: directories on one path.
const STEPS_MAX: usize = 128;

impl<I: Io> WorkerEnv<I> {
    /// Performs a file lookup for an exchange.
    pub(crate) fn probe(&mut self, probe: &Probe) {
        debug_assert_ne!(probe.want, Want::List, "what is in a directory holds for a turn");
        let mut found = self.look_at(probe);
        let policy = &probe.policy;
        let is_to_be_watched = policy.trust == Trust::Watched
            && !policy.valid.is_zero()
            && match &found {
                Probed::Failed(OpenFailure::NotFound) => policy.failures == Remember::Failures,
                Probed::Failed(_) | Probed::Closed(..) => false,
                _ => true,
            };
        if !is_to_be_watched || !self.may_watch(probe, &mut found) {
            self.files.insert_probe(probe, found, self.now);
            return;
        }
        // A failure of another kind may end without a change in these directories.
        let may_end = match &found {
            Probed::Failed(failure) => *failure != OpenFailure::NotFound,
            Probed::Closed(..) => true,
            _ => false,
        };
        match may_end {
            true => self.files.insert_probe(probe, found, self.now),
            false => self.files.insert_watched(probe, found, self.now),
        };
    }

    /// Resolves a path.
    pub(crate) fn resolve(&mut self, path: Box<[u8]>) {
        let mut real = self.io.real_path(&path);
        let prefix = bolide_files::real::trail(&path);
        let watched = real.is_ok()
            && match self.files.watches.standing(&prefix, self.now.mono) {
                TrailStanding::Watched => true,
                TrailStanding::Refused => false,
                TrailStanding::Unknown => {
                    let is_watched = self.watch(&prefix);
                    real = self.io.real_path(&path);
                    is_watched
                }
            };
        let real = real.map(Vec::into_boxed_slice);
        self.files.real.insert(path, real, watched, self.now.mono);
    }

    /// Whether a change would be reported. A result from before the watches is looked up again.
    fn may_watch(&mut self, probe: &Probe, found: &mut Probed) -> bool {
        let path = probe.path.strip_suffix(b"/").unwrap_or(&probe.path);
        let prefix = bolide_files::resolve::trail(path);
        match self.files.watches.standing(prefix, self.now.mono) {
            TrailStanding::Watched => {}
            TrailStanding::Refused => return false,
            TrailStanding::Unknown => {
                if !self.watch(prefix) {
                    return false;
                }
                *found = self.look_at(probe);
            }
        }
        // The target of a link may change elsewhere.
        self.io.read_link(path).is_err()
    }

    /// Watches all directories of `prefix`; false if that is not possible.
    fn watch(&mut self, prefix: &[u8]) -> bool {
        let mut trail = Trail::default();
        let done = self.follow(prefix, &mut trail);
        match done {
            Ok(last) => {
                trail.last = last;
                self.files.watches.insert(prefix, trail);
            }
            Err(errno) => {
                self.log_unwatched(prefix, errno);
                let watches = trail.steps.iter().map(|(watch, _)| *watch);
                self.files.watches.refuse(prefix, watches, self.now.mono);
            }
        }
        self.drop_useless();
        done.is_ok()
    }

    /// Walks along `prefix` as the kernel does. Each directory is watched before a name is looked
    /// up in it, so that no change is missed.
    fn follow(&mut self, prefix: &[u8], trail: &mut Trail) -> Result<u32, i32> {
        let names = |path: &[u8]| -> Vec<Box<[u8]>> {
            path.split(|byte| *byte == b'/').map(Into::into).collect()
        };
        if prefix.first() != Some(&b'/') {
            return Err(ENOENT);
        }
        let (mut real, mut links) = (b"/".to_vec(), 0);
        let mut left: VecDeque<Box<[u8]>> = names(prefix).into();
        while let Some(name) = left.pop_front() {
            match &name[..] {
                b"" | b"." => continue,
                b".." => {
                    let parent = real.iter().rposition(|byte| *byte == b'/').unwrap_or(0);
                    real.truncate(parent.max(1));
                    continue;
                }
                _ => {}
            }
            if trail.steps.len() >= STEPS_MAX {
                return Err(ELOOP);
            }
            let watch = self.watch_one(&real, DirDepth::Names, trail)?;
            let above = real.len();
            if above > 1 {
                real.push(b'/');
            }
            real.extend_from_slice(&name);
            trail.steps.push((watch, name));
            match self.io.read_link(&real) {
                Ok(target) => {
                    links += 1;
                    if links > LINKS_MAX {
                        return Err(ELOOP);
                    }
                    real.truncate(if target.first() == Some(&b'/') { 1 } else { above });
                    names(&target).into_iter().rev().for_each(|name| left.push_front(name));
                }
                Err(EINVAL) => {}
                Err(errno) => return Err(errno),
            }
        }
        debug_assert!(trail.steps.len() <= STEPS_MAX, "a trail is bounded");
        self.watch_one(&real, DirDepth::Files, trail)
    }

    fn watch_one(&mut self, real: &[u8], depth: DirDepth, trail: &Trail) -> Result<u32, i32> {
        debug_assert!(
            real.first() == Some(&b'/'),
            "what is watched does not depend on where we are"
        );
        if self.files.watches.is_full(trail.steps.len() + 1) {
            return Err(ENOSPC);
        }
        self.io.watch_directory(real, depth, PollToken::Changes.pack())
    }

    /// Logs once that there are not enough watches.
    fn log_unwatched(&mut self, prefix: &[u8], errno: i32) {
        if !matches!(errno, ENOSPC | EMFILE) || std::mem::replace(&mut self.unwatched_logged, true)
        {
            return;
        }
        let text = format!(
            "inotify watches no more directories ({}): files in \"{}\" and others are looked at \
             for each request",
            reason(errno),
            String::from_utf8_lossy(prefix),
        );
        self.log_server(LogLevel::Notice, &text);
    }

    /// Reports changes so far to the table of open files. They are read even if no directory is
    /// watched any more: the end of a watch is a change, and would be reported for ever.
    pub(crate) fn handle_changes(&mut self) {
        let mut changes = std::mem::take(&mut self.scratch.changes);
        self.io.take_changes(&mut changes);
        for change in changes.drain(..) {
            match change {
                DirChange::Entry { watch, name } => {
                    self.files.hear_changed(watch, &name, self.now.mono);
                }
                DirChange::Gone { watch } => self.files.hear_gone(watch),
                DirChange::Unknown => self.files.hear_unknown(),
            }
        }
        debug_assert!(changes.is_empty(), "every change is heard");
        self.scratch.changes = changes;
        self.drop_useless();
    }

    /// As [`Self::handle_changes`], before requests are read that may have arrived since the turn
    /// began: stale entries must not answer them.
    pub(crate) fn handle_late_changes(&mut self) {
        if !self.files.watches.is_empty() {
            self.handle_changes();
        }
        self.files.part_turn();
    }

    fn drop_useless(&mut self) {
        for watch in self.files.watches.take_useless() {
            self.io.unwatch_directory(watch);
        }
    }
}
