//! The account that `bolide serve` runs workers as. Root only opens ports and logs; workers read
//! files with the rights of an unprivileged account.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use bolide_io::process::{find_user, is_root};

/// Unprivileged accounts, nginx's default first.
const UNPRIVILEGED: [&str; 2] = ["nobody", "www-data"];

/// The account that reads the files of `root` when root runs the server: an unprivileged one, or
/// the owner of files that only their owner may read.
pub(super) fn of_files(root: &Path) -> Option<String> {
    if !is_root() {
        return None;
    }
    let usual = known(UNPRIVILEGED);
    if usual.as_deref().is_some_and(|name| may_read(root, name)) {
        return usual;
    }
    owner(root).filter(|name| may_read(root, name)).or(usual)
}

/// The account that runs the scripts of `root` and reads its files when root runs the server: the
/// directory's owner, unless that is root.
pub(super) fn of_scripts(root: &Path) -> Option<String> {
    if !is_root() {
        return None;
    }
    owner(root).or_else(|| known(["www-data", "nobody"]))
}

/// The message about it for the person who started the server.
pub(super) fn say(root: &Path, account: Option<&str>) -> String {
    let Some(account) = account else { return String::new() };
    let mut said = format!("; workers run as {account}");
    if let Some(barrier) = barrier(root, account) {
        let (root, barrier) = (root.display(), barrier.display());
        said.push_str(&format!(
            "\n\nNothing will be found: \"{account}\" may not read \"{root}\", because of the \
             permissions of \"{barrier}\".\n\
             Let others in (chmod o+rx), or serve a directory elsewhere"
        ));
    }
    said
}

fn known(names: [&str; 2]) -> Option<String> {
    names.into_iter().find(|name| find_user(name, None).is_some()).map(Into::into)
}

fn owner(root: &Path) -> Option<String> {
    let uid = std::fs::metadata(root).map(|at| at.uid()).ok().filter(|uid| *uid != 0);
    uid.and_then(bolide_io::process::user_name)
}

fn may_read(root: &Path, account: &str) -> bool {
    barrier(root, account).is_none()
}

/// The first directory on the way to `root` that an account cannot pass, or `root` itself if it
/// cannot be read. Access control lists and supplementary groups are ignored.
fn barrier<'a>(root: &'a Path, account: &str) -> Option<&'a Path> {
    let (uid, gid) = find_user(account, None)?;
    let mut way: Vec<&Path> = root.ancestors().collect();
    way.reverse();
    way.into_iter().find(|path| {
        let Ok(found) = std::fs::metadata(path) else { return true };
        let wanted = if *path == root { 0o5 } else { 0o1 };
        let shift = match (found.uid() == uid, found.gid() == gid) {
            (true, _) => 6,
            (false, true) => 3,
            (false, false) => 0,
        };
        uid != 0 && (found.mode() >> shift) & wanted != wanted
    })
}
