//! `COPY` and `MOVE` (RFC 4918 §9.8, §9.9): their checks, and their first actions.

use bolide_conf::model::LogLevel;
use bolide_engine::FileTransfer;
use bolide_io::{FileFailure, Io, OpenRequest, Stat, SymlinkRule};

use super::copying::SourceFate;
use super::placing::rename;
use super::{
    Act, EEXIST, ENOENT, ENOTDIR, EXDEV, FileWork, errno_text, parent, stat_as_named, trimmed,
};

impl FileWork {
    /// Begins a copy or move.
    pub(super) fn transfer(&mut self, asked: FileTransfer, moves: bool, io: &mut impl Io) {
        let to = trimmed(&asked.to).to_vec();
        let over = match io.stat_link(&to) {
            Ok(stat) => Some(stat),
            Err(failure) if failure.errno == ENOENT => None,
            Err(failure) => return self.fail_as(&to, failure, 404),
        };
        if let Some(over) = over
            && self.refuses_target(&asked, &to, over, moves)
        {
            return;
        }
        let stat = match stat_as_named(&asked.from, io) {
            Ok(stat) => stat,
            Err(failure) => return self.fail_as(&asked.from, failure, 404),
        };
        let is_same = over.is_some_and(|over| is_one(&over, &stat));
        if !stat.is_dir {
            return match moves {
                true if is_same => {}
                true => self.move_file(&asked, stat, to, io),
                false if is_same => self.refuse_self(&asked),
                false if stat.is_regular => self.copy_file(&asked.from, to, over, io),
                false => {
                    let text = [b"\"", &asked.from[..], b"\" is not a regular file"].concat();
                    self.refuse(403, text);
                }
            };
        }
        if !asked.from_uri.ends_with(b"/") {
            return self.refuse(400, [b"\"", &asked.from_uri[..], b"\" is collection"].concat());
        }
        if is_same || is_within(&asked.from, &to) || is_within(&to, &asked.from) {
            return self.refuse_self(&asked);
        }
        self.status = 201;
        let from = asked.from;
        self.acts.push(Act::Transplant { from, to: to.clone(), moves });
        match over {
            Some(over) if over.is_dir => self.remove_tree(to, io),
            Some(_) => {
                if let Err(failure) = io.unlink(&to) {
                    self.fail_as(&to, failure, 404);
                }
            }
            None => {}
        }
    }

    /// Whether the existing target must not be replaced.
    fn refuses_target(&mut self, asked: &FileTransfer, to: &[u8], over: Stat, moves: bool) -> bool {
        if over.is_dir && !asked.to_uri.ends_with(b"/") {
            let verb: &[u8] = if moves { b"MOVE" } else { b"COPY" };
            let (from, to) = (&asked.from_uri[..], &asked.to_uri[..]);
            let middle = [b"\" could not be ", verb, b"ed to collection \""].concat();
            self.refuse(409, [b"\"", from, &middle, to, b"\""].concat());
            return true;
        }
        if !asked.overwrites {
            let text = [b"\"", to, b"\" could not be created ", &errno_text(EEXIST)].concat();
            self.refuse(412, text);
            return true;
        }
        false
    }

    /// RFC 4918 §9.8.5: source and destination are the same, or one contains the other.
    fn refuse_self(&mut self, asked: &FileTransfer) {
        let (from, to) = (&asked.from_uri[..], &asked.to_uri[..]);
        let text = [b"\"", from, b"\" and \"Destination\" URI \"", to, b"\" overlap"].concat();
        self.refuse(403, text);
    }

    fn move_file(&mut self, asked: &FileTransfer, stat: Stat, to: Vec<u8>, io: &mut impl Io) {
        let from = &asked.from;
        match rename(from, &to, Some(asked.access), io) {
            Ok(()) => {}
            Err(failure) if failure.errno == EXDEV && stat.is_regular => {
                let symlinks = SymlinkRule::Refuse { from: parent(from).len() };
                let request =
                    OpenRequest { path: from, symlinks, content_max: 0, stat_only: false };
                match io.open(&request).map(|opened| opened.file) {
                    Ok(Some(file)) => {
                        let modified = Some(stat.mtime_seconds);
                        self.carry((from, SourceFate::Moves), file, to, modified, io);
                    }
                    Ok(None) => {
                        let failure = FileFailure { errno: EXDEV, call: "rename" };
                        self.fail_rename(from, &to, failure);
                    }
                    Err(failure) => {
                        self.log_failure(LogLevel::Crit, from, failure);
                        self.fail(500);
                    }
                }
            }
            Err(failure) if failure.call == "rename" => self.fail_rename(from, &to, failure),
            Err(failure) => {
                self.log_failure(LogLevel::Crit, &to, failure);
                self.fail(500);
            }
        }
    }

    /// Renames a directory, or begins to copy it.
    pub(super) fn transplant(&mut self, from: &[u8], to: &[u8], moves: bool, io: &mut impl Io) {
        debug_assert!(!is_within(to, from), "a directory is not copied into itself");
        let bare = trimmed(from);
        if moves && io.rename(bare, to).is_ok() {
            return;
        }
        let made = stat_as_named(from, io).and_then(|stat| match stat.is_dir {
            true => io.make_directory(to, stat.mode & 0o777),
            false => Err(FileFailure { errno: ENOTDIR, call: "lstat" }),
        });
        if let Err(failure) = made {
            return self.fail_as(to, failure, 404);
        }
        if moves {
            self.acts.push(Act::RemoveSource(from.to_vec()));
        }
        self.copy_tree(from.to_vec(), to, io);
    }

    /// Removes the source of a move by copy, if the copy is complete.
    pub(super) fn remove_source(&mut self, path: Vec<u8>, io: &mut impl Io) {
        if !self.is_partial {
            self.remove_tree(path, io);
        }
    }
}

const fn is_one(one: &Stat, other: &Stat) -> bool {
    one.inode == other.inode && one.device == other.device
}

/// Whether `path` is `directory` or is below it, judged by name.
fn is_within(path: &[u8], directory: &[u8]) -> bool {
    let mut inner = parts(path);
    parts(directory).all(|part| inner.next() == Some(part))
}

fn parts(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    path.split(|byte| *byte == b'/').filter(|part| !part.is_empty() && *part != b".")
}

#[cfg(test)]
mod tests {
    use super::super::{parent, trimmed};
    use super::is_within;

    #[test]
    fn what_is_within_a_directory_is_told_by_names() {
        for (path, directory, within) in [
            ("/a/b", "/a", true),
            ("/a/", "/a", true),
            ("/a//b/./c", "/a/b/", true),
            ("/ab", "/a", false),
            ("/a", "/a/b", false),
            ("/a", "/", true),
        ] {
            assert_eq!(is_within(path.as_bytes(), directory.as_bytes()), within, "{path}");
        }
    }

    #[test]
    fn a_path_has_its_directory_with_a_slash_at_its_end_or_without() {
        for (path, bare, directory) in
            [("/a/b//", "/a/b", "/a"), ("/a", "/a", "/"), ("/", "/", "/"), ("/a/b", "/a/b", "/a")]
        {
            assert_eq!(trimmed(path.as_bytes()), bare.as_bytes());
            assert_eq!(parent(path.as_bytes()), directory.as_bytes());
        }
    }
}
