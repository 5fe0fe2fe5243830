//! From the configuration of a pool to its concrete settings: the binary, the accounts, the size.

use std::path::{Path, PathBuf};

use bolide_conf::model::{Config, PhpPool, PhpProtocol, SourcePlace};
use bolide_io::child::ChildAccount;

use super::size::MachineSize;
use super::{cgroup, files};

/// Children that a pool on demand starts with.
const DEMAND_START: u32 = 2;

/// A pool with all defaults resolved. Two equal ones need no new processes.
#[derive(Clone, Debug)]
pub(crate) struct Settled {
    pub(crate) pool: PhpPool,
    pub(crate) binary: PathBuf,
    /// The account that scripts run as.
    pub(crate) account: Option<ChildAccount>,
    /// The owner of the socket: the workers' account.
    pub(crate) owner: Option<(u32, u32)>,
    pub(crate) children: u32,
    pub(crate) start: u32,
    /// Pools that share the memory; those with a number of their own do not count.
    sharing: usize,
}

impl Settled {
    /// Whether the processes of `self` serve `other` as well. Memory that has become free since is
    /// no reason for a restart.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        self.pool == other.pool
            && self.binary == other.binary
            && self.account == other.account
            && (self.pool.children.is_some() || self.sharing == other.sharing)
    }

    /// Whether `other` may use the socket of `self`: a request must never reach another site's
    /// scripts.
    pub(super) fn shares_socket(&self, other: &Self) -> bool {
        self.pool.name == other.pool.name
            && self.pool.protocol == other.pool.protocol
            && self.account == other.account
            && self.owner == other.owner
    }

    pub(super) fn runs_as_root(&self) -> bool {
        self.account.as_ref().is_some_and(|account| account.uid == 0)
    }
}

/// Settles every pool of a configuration.
///
/// # Errors
///
/// One text per pool that cannot run, with its place.
pub(crate) fn all(config: &Config) -> Result<Vec<Settled>, Vec<String>> {
    let Some(http) = &config.http else { return Ok(Vec::new()) };
    let machine = MachineSize::now();
    let sharing = http.php_pools.iter().filter(|pool| pool.children.is_none()).count();
    let (mut settled, mut errors) = (Vec::new(), Vec::new());
    for pool in &http.php_pools {
        match one(config, pool, machine, sharing) {
            Ok(one) => settled.push(one),
            Err((why, place)) => {
                let SourcePlace { file, line } = place.as_ref().unwrap_or(&pool.place);
                errors.push(format!("php_pool \"{}\": {why} in {file}:{line}", pool.name));
            }
        }
    }
    if errors.is_empty() { Ok(settled) } else { Err(errors) }
}

fn one(
    config: &Config,
    pool: &PhpPool,
    machine: MachineSize,
    sharing: usize,
) -> Result<Settled, (String, Option<SourcePlace>)> {
    let at_pool = |why: String| (why, None);
    let workers = workers_account(config);
    let account = match &pool.user {
        Some(user) => Some(account(user, pool.group.as_deref()).map_err(at_pool)?),
        None => workers.clone(),
    };
    let binary = binary(pool).map_err(at_pool)?;
    let children = pool.children.unwrap_or_else(|| machine.children(pool.memory, sharing));
    files::check(pool, account.as_ref()).map_err(at_pool)?;
    for (limit, place) in &pool.limits {
        cgroup::check(*limit).map_err(|why| (why, Some(place.clone())))?;
    }
    // Equal settings are the same wherever they are written.
    let limits = pool.limits.iter().map(|(limit, _)| (*limit, SourcePlace::default())).collect();
    let start = match pool.idle {
        // A page and what it asks for; more come when these are busy.
        Some(_) => children.min(DEMAND_START),
        None => machine.start(children),
    };
    Ok(Settled {
        pool: PhpPool { place: SourcePlace::default(), limits, ..pool.clone() },
        binary,
        account,
        owner: workers.map(|account| (account.uid, account.gid)),
        children,
        start,
        sharing,
    })
}

/// Warnings: the kernel lets a pool that runs as the workers' account signal, trace and limit them;
/// what ends one thread ends the whole process.
pub(crate) fn dangers(config: &Config) -> Vec<String> {
    let pools = config.http.as_ref().map_or(&[][..], |http| &http.php_pools);
    if pools.is_empty() {
        return Vec::new();
    }
    let Some(workers) = workers_account(config) else { return Vec::new() };
    let shares = |pool: &&PhpPool| match &pool.user {
        None => true,
        Some(user) => account(user, pool.group.as_deref()).is_ok_and(|one| one.uid == workers.uid),
    };
    let warn = |pool: &PhpPool| {
        let SourcePlace { file, line } = &pool.place;
        format!(
            "php_pool \"{}\" runs as \"{}\", like the workers: its scripts can read what the \
             server holds in memory, and end the server; give it a \"user\" of its own in \
             {file}:{line}",
            pool.name, workers.name
        )
    };
    pools.iter().filter(shares).map(warn).collect()
}

/// The account of the workers, where it is another than the control thread's.
fn workers_account(config: &Config) -> Option<ChildAccount> {
    if !bolide_io::process::is_root() {
        return None;
    }
    let name = config.main.user.clone().unwrap_or_else(|| crate::account::NOBODY.to_owned());
    let (uid, gid) = bolide_io::process::find_user(&name, config.main.group.as_deref())?;
    Some(ChildAccount { name, uid, gid })
}

/// The account that a pool names; only root may run scripts as another account.
fn account(user: &str, group: Option<&str>) -> Result<ChildAccount, String> {
    let Some((uid, gid)) = bolide_io::process::find_user(user, group) else {
        return Err(match (bolide_io::process::find_user(user, None), group) {
            (Some(_), Some(group)) => format!("there is no group \"{group}\""),
            _ => format!("there is no user \"{user}\""),
        });
    };
    if !bolide_io::process::is_root() && (uid, gid) != bolide_io::process::own_ids() {
        return Err(format!("only root may run it as user \"{user}\""));
    }
    Ok(ChildAccount { name: user.to_owned(), uid, gid })
}

/// The program of a pool: the configured one, or the newest of this machine.
fn binary(pool: &PhpPool) -> Result<PathBuf, String> {
    if let Some(named) = &pool.binary {
        // It is started from another directory.
        return if named.is_absolute() && is_program(named) {
            Ok(named.clone())
        } else {
            Err(format!("\"{}\" is not the full path of a program", named.display()))
        };
    }
    let (name, package) = match pool.protocol {
        PhpProtocol::FastCgi => ("php-fpm", "php-fpm"),
        PhpProtocol::Lsapi => ("lsphp", "php-litespeed"),
    };
    let path = std::env::var_os("PATH").unwrap_or_default();
    let further = ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin"];
    let places: Vec<PathBuf> =
        std::env::split_paths(&path).chain(further.iter().map(PathBuf::from)).collect();
    find(name, &places)
        .ok_or_else(|| format!("no {name} found; install {package} or set \"binary\""))
}

/// The program `name` in `places`; if there is none, the one with the highest version suffix.
fn find(name: &str, places: &[PathBuf]) -> Option<PathBuf> {
    let absolute = || places.iter().filter(|place| place.is_absolute());
    if let Some(plain) = absolute().map(|place| place.join(name)).find(|path| is_program(path)) {
        return Some(plain);
    }
    let mut best: Option<((u32, u32), PathBuf)> = None;
    for place in absolute() {
        let Ok(entries) = std::fs::read_dir(place) else { continue };
        for entry in entries.flatten() {
            let file = entry.file_name();
            let Some(version) = file.to_str().and_then(|file| version(file.strip_prefix(name)?))
            else {
                continue;
            };
            let is_newer = best.as_ref().is_none_or(|(known, _)| version > *known);
            if is_newer && is_program(&entry.path()) {
                best = Some((version, entry.path()));
            }
        }
    }
    best.map(|(_, path)| path)
}

/// `8.2` as numbers; also `82`, as some packages write it.
fn version(text: &str) -> Option<(u32, u32)> {
    let (major, minor) = match text.split_once('.') {
        Some(parts) => parts,
        None if text.len() == 2 && text.is_ascii() => text.split_at(1),
        None => return None,
    };
    Some((major.parse().ok()?, minor.parse().ok()?))
}

fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    let found = std::fs::metadata(path);
    found.is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

/// A pool's name reduced to letters, digits, `-` and `_`: for file names and php-fpm's section.
pub(super) fn plain(name: &str) -> String {
    let keep = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
    // A path of a unix socket has at most 107 bytes.
    name.chars().take(32).map(keep).collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use bolide_testkit::site::TempDir;

    use super::{find, plain, version};

    #[test]
    fn the_newest_of_several_versions_is_found() {
        let dir = TempDir::new();
        let put = |name: &str, mode: u32| {
            std::fs::write(dir.join(name), "").unwrap();
            let mode = std::fs::Permissions::from_mode(mode);
            std::fs::set_permissions(dir.join(name), mode).unwrap();
        };
        let found = || find("php-fpm", &[dir.to_path_buf()]);
        assert_eq!(found(), None);
        put("php-fpm8.2", 0o755);
        put("php-fpm8.10", 0o755);
        put("php-fpm9.1", 0o644);
        put("php-fpm.conf", 0o755);
        assert_eq!(found(), Some(dir.join("php-fpm8.10")));
        put("php-fpm", 0o755);
        assert_eq!(found(), Some(dir.join("php-fpm")));
    }

    #[test]
    fn versions_are_compared_as_numbers() {
        assert!(version("8.10") > version("8.9"));
        assert_eq!(version("83"), Some((8, 3)));
        assert_eq!(version("8.4-old"), None);
        assert_eq!(version(""), None);
    }

    #[test]
    fn names_of_files_are_plain() {
        assert_eq!(plain("shop.example/../x"), "shop_example____x");
    }
}
