//! The source of files and addresses, and the expansion of file patterns.
//!
//! The binary implements [`ConfSource`] on the real system, tests on a map.

use std::ffi::{OsStr, OsString};
use std::io;
use std::net::IpAddr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

/// The outside information that reading a configuration needs.
pub trait ConfSource {
    /// The bytes of a file.
    ///
    /// # Errors
    ///
    /// The system's error; its number and text appear in the message.
    fn read(&self, path: &Path) -> io::Result<Vec<u8>>;

    /// The names of a directory's entries, in any order.
    ///
    /// # Errors
    ///
    /// The system's error; a directory that cannot be read has no match.
    fn list(&self, dir: &Path) -> io::Result<Vec<OsString>>;

    /// The addresses of a host name; none when it has no address.
    fn resolve(&self, host: &str) -> Vec<IpAddr>;
}

/// The settings of the command line and the build.
#[derive(Clone, Debug)]
pub struct LoadOptions {
    /// `-p`: the base of relative paths.
    pub prefix: PathBuf,
    /// `-g`: directives read before the file.
    pub globals: String,
    /// Whether the process has super-user rights: `user` works, and port 80 is the default.
    pub privileged: bool,
    /// The machine's name, for `server_name $hostname`.
    pub hostname: String,
    /// The error log when there is no `error_log` (`-e`).
    pub error_log: PathBuf,
    /// The access log when there is no `access_log`.
    pub access_log: PathBuf,
    /// The pid file when there is no `pid`.
    pub pid: PathBuf,
    /// Where the sockets of PHP pools are until the running server has made them elsewhere.
    pub runtime_dir: PathBuf,
    /// Where directories of issuers' state are, unless `state_path` names them.
    pub state_dir: PathBuf,
    /// Whether directives without an effect yet are read; a server refuses them.
    pub reads_unbuilt: bool,
}

impl Default for LoadOptions {
    fn default() -> Self {
        Self {
            prefix: PathBuf::from("/etc/nginx"),
            globals: String::new(),
            privileged: false,
            hostname: "localhost".to_owned(),
            error_log: PathBuf::from("logs/error.log"),
            access_log: PathBuf::from("logs/access.log"),
            pid: PathBuf::from("logs/nginx.pid"),
            runtime_dir: PathBuf::from("/run/bolide"),
            state_dir: PathBuf::new(),
            reads_unbuilt: false,
        }
    }
}

/// Whether a path is a pattern.
pub(crate) fn is_pattern(path: &[u8]) -> bool {
    path.iter().any(|byte| matches!(byte, b'*' | b'?' | b'['))
}

/// The files that a pattern names, sorted.
pub(crate) fn glob(source: &impl ConfSource, pattern: &Path) -> Vec<PathBuf> {
    let mut found = vec![PathBuf::new()];
    for part in pattern.components() {
        let part = part.as_os_str();
        if !is_pattern(part.as_bytes()) {
            for path in &mut found {
                path.push(part);
            }
            continue;
        }
        let mut deeper = Vec::new();
        for dir in &found {
            let mut names = source.list(dir).unwrap_or_default();
            if part.as_bytes().first() == Some(&b'.') {
                names.extend([".".into(), "..".into()]);
            }
            let fitting = names.iter().filter(|name| matches_name(part, name));
            deeper.extend(fitting.map(|name| dir.join(name)));
        }
        found = deeper;
    }
    found.sort();
    found
}

fn matches_name(pattern: &OsStr, name: &OsStr) -> bool {
    let (pattern, name) = (pattern.as_bytes(), name.as_bytes());
    // As in the shell: hidden files only match a pattern that begins with a dot.
    (name.first() != Some(&b'.') || pattern.first() == Some(&b'.')) && wildmatch(pattern, name)
}

/// Matches `*`, `?` and `[…]`. Time is bounded by pattern × name.
fn wildmatch(pattern: &[u8], name: &[u8]) -> bool {
    let (mut p, mut n) = (0, 0);
    let mut retry: Option<(usize, usize)> = None;
    loop {
        let step = match pattern.get(p) {
            Some(b'*') => {
                retry = Some((p + 1, n));
                p += 1;
                continue;
            }
            None if n == name.len() => return true,
            None => None,
            Some(_) => name.get(n).and_then(|byte| one(&pattern[p..], *byte)),
        };
        match (step, retry) {
            (Some(used), _) => {
                p += used;
                n += 1;
            }
            (None, Some((after_star, from))) if from < name.len() => {
                retry = Some((after_star, from + 1));
                (p, n) = (after_star, from + 1);
            }
            (None, _) => return false,
        }
    }
}

/// Matches one byte against the head of a pattern; returns how much of the pattern that used.
fn one(pattern: &[u8], byte: u8) -> Option<usize> {
    match pattern {
        [b'?', ..] => Some(1),
        [b'[', rest @ ..] => {
            let (negated, set) = match rest {
                [b'!' | b'^', set @ ..] => (true, set),
                set => (false, set),
            };
            // A `]` that comes first is a member.
            let Some(end) = set.iter().skip(1).position(|byte| *byte == b']') else {
                return (byte == b'[').then_some(1);
            };
            let members = &set[..=end];
            let used = 1 + usize::from(negated) + members.len() + 1;
            (in_set(members, byte) != negated).then_some(used)
        }
        [b'\\', literal, ..] => (*literal == byte).then_some(2),
        [literal, ..] => (*literal == byte).then_some(1),
        [] => None,
    }
}

fn in_set(mut members: &[u8], byte: u8) -> bool {
    loop {
        members = match members {
            [low, b'-', high, rest @ ..] => {
                if (*low..=*high).contains(&byte) {
                    return true;
                }
                rest
            }
            [member, rest @ ..] => {
                if *member == byte {
                    return true;
                }
                rest
            }
            [] => return false,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::wildmatch;

    #[test]
    fn patterns_match_as_in_the_shell() {
        let rows: [(&str, &str, bool); 14] = [
            ("*.conf", "a.conf", true),
            ("*.conf", "a.conf~", false),
            ("a?c", "abc", true),
            ("a?c", "ac", false),
            ("[0-9]*", "10-x", true),
            ("[!0-9]*", "10-x", false),
            ("[]a]b", "]b", true),
            ("a[", "a[", true),
            ("*a*b*c*", "xxaxxbxxc", true),
            ("*a*b*c*", "xxaxxcxxb", false),
            ("\\*", "*", true),
            ("\\*", "a", false),
            ("**", "", true),
            ("", "a", false),
        ];
        for (pattern, name, expected) in rows {
            assert_eq!(
                wildmatch(pattern.as_bytes(), name.as_bytes()),
                expected,
                "{pattern} {name}"
            );
        }
    }
}
