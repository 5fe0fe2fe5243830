//! Files and directories that a pool names: whether they are what the pool may rely on.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use bolide_conf::model::{PhpPool, PhpProtocol};
use bolide_io::child::ChildAccount;

/// Checks `tmp` and `ini_file`.
///
/// # Errors
///
/// What is wrong with which.
pub(super) fn check(pool: &PhpPool, account: Option<&ChildAccount>) -> Result<(), String> {
    if let Some(tmp) = &pool.tmp {
        let uid = account.map_or_else(|| bolide_io::process::own_ids().0, |account| account.uid);
        // A link would lead wherever its owner likes.
        let is_fine = fs::symlink_metadata(tmp).is_ok_and(|it| it.is_dir() && it.uid() == uid);
        if !is_fine {
            let tmp = tmp.display();
            return Err(match account {
                Some(ChildAccount { name, .. }) => {
                    format!("\"tmp\": {tmp} is not a directory of user \"{name}\"")
                }
                None => format!("\"tmp\": {tmp} is not a directory of ours"),
            });
        }
    }
    let Some(ini) = &pool.ini_file else { return Ok(()) };
    if !ini.is_file() {
        return Err(format!("\"ini_file\": {} is not a file", ini.display()));
    }
    // php-fpm's master reads it with its own rights, and loads the extensions that it names.
    if bolide_io::process::is_root() && pool.protocol == PhpProtocol::FastCgi && !is_ours(ini) {
        return Err(format!(
            "\"ini_file\": accounts other than root can change {}, which php-fpm reads as root",
            ini.display()
        ));
    }
    Ok(())
}

/// Whether only root can change what a path leads to.
fn is_ours(path: &Path) -> bool {
    const OTHERS_WRITE: u32 = 0o022;
    const STICKY: u32 = 0o1000;
    let Ok(path) = path.canonicalize() else { return false };
    path.ancestors().all(|step| {
        fs::metadata(step).is_ok_and(|it| {
            let is_shared = it.mode() & OTHERS_WRITE != 0;
            // Only owners replace what lies in a sticky directory.
            it.uid() == 0 && (!is_shared || it.is_dir() && it.mode() & STICKY != 0)
        })
    })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt as _, chown};

    use super::is_ours;

    #[test]
    fn a_file_that_others_can_change_is_not_ours() {
        if !bolide_io::process::is_root() {
            return;
        }
        let dir = bolide_testkit::site::temp_dir();
        let file = dir.join("php.ini");
        fs::write(&file, "").unwrap();
        assert!(is_ours(&file));
        fs::set_permissions(&file, fs::Permissions::from_mode(0o664)).unwrap();
        assert!(!is_ours(&file));
        fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
        chown(&dir, Some(65_534), None).unwrap();
        assert!(!is_ours(&file), "its directory's owner can replace it");
        assert!(!is_ours(&dir.join("none")));
    }
}
