//! Control groups (version 2) of pools: whether this system has what a limit needs, and the group
//! that the processes of a pool join before they run.
//!
//! Groups are made below the server's own. The kernel lets only groups without processes give
//! controllers to those below (but the root), so the server moves itself into one of its own first.
//! What other programs run in the same group is not moved: then the limit is refused.

use std::fs::{self, File};
use std::io::{Error, ErrorKind};
use std::path::{Path, PathBuf};

use bolide_conf::model::{PhpLimit, PhpPool, SourcePlace};

use super::keeper;

/// The group of the server itself, if it had to leave the one that it was started in.
const SERVER: &str = "bolide-server";
/// How the groups of pools begin.
const POOL: &str = "bolide-php-";

/// The group in which pools have theirs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PoolGroups {
    base: PathBuf,
}

/// The group of one pool. It is removed with the last process that was in it.
#[derive(Debug)]
pub(super) struct PoolGroup {
    path: PathBuf,
    /// What a process writes to, to join.
    pub(super) procs: File,
}

/// A limit in the kernel's words.
struct Setting {
    controller: &'static str,
    file: &'static str,
    /// What the file has without a limit.
    none: &'static str,
}

const MEMORY: Setting = Setting { controller: "memory", file: "memory.max", none: "max" };
const CPU: Setting = Setting { controller: "cpu", file: "cpu.max", none: "max 100000" };
const TASKS: Setting = Setting { controller: "pids", file: "pids.max", none: "max" };
const IO: Setting = Setting { controller: "io", file: "io.weight", none: "default 100" };
const ALL: [Setting; 4] = [MEMORY, CPU, TASKS, IO];

/// The directive, the setting, and the text of its value.
fn words(limit: PhpLimit) -> (&'static str, Setting, String) {
    match limit {
        PhpLimit::Memory(bytes) => ("limit_memory", MEMORY, bytes.to_string()),
        // Microseconds of computing in each tenth of a second.
        PhpLimit::Cpu(percent) => {
            ("limit_cpu", CPU, format!("{} 100000", u64::from(percent) * 1000))
        }
        PhpLimit::Tasks(count) => ("limit_tasks", TASKS, count.to_string()),
        PhpLimit::Io(weight) => ("limit_io", IO, format!("default {weight}")),
    }
}

/// Whether this system has what a limit needs. Nothing is changed, and no rights are asked for.
///
/// # Errors
///
/// What is missing.
pub(super) fn check(limit: PhpLimit) -> Result<(), String> {
    let (directive, setting, _) = words(limit);
    let Some(root) = mount() else {
        return Err(format!("\"{directive}\" needs control groups of version 2 (cgroup2)"));
    };
    has(&root, &setting).map_err(|why| format!("\"{directive}\" {why}"))
}

fn has(group: &Path, setting: &Setting) -> Result<(), String> {
    let text = fs::read_to_string(group.join("cgroup.controllers")).unwrap_or_default();
    if text.split_whitespace().any(|name| name == setting.controller) {
        return Ok(());
    }
    let (name, path) = (setting.controller, group.display());
    Err(format!("needs the controller \"{name}\", which the control group {path} does not have"))
}

/// Where version 2 is mounted.
fn mount() -> Option<PathBuf> {
    let text = fs::read_to_string("/proc/self/mountinfo").ok()?;
    mount_in(&text).map(PathBuf::from)
}

/// The mount point in the text of /proc/self/mountinfo.
fn mount_in(text: &str) -> Option<&str> {
    let is_it =
        |line: &&str| line.split_once(" - ").is_some_and(|(_, rest)| rest.starts_with("cgroup2 "));
    text.lines().find(is_it)?.split(' ').nth(4)
}

impl PoolGroups {
    /// Readies the server's own group for those of pools that have `limits`.
    ///
    /// # Errors
    ///
    /// The directive and why it cannot have its effect.
    pub(super) fn ready(limits: &[PhpLimit]) -> Result<Self, String> {
        let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        let root = mount().unwrap_or_default();
        let base = root.join(super::size::cgroup(&groups).trim_start_matches('/'));
        let is_own = base.file_name().is_some_and(|name| name == SERVER);
        let base = if is_own { base.parent().unwrap_or(&base).to_owned() } else { base };
        let made = Self { base };
        for limit in limits {
            let (directive, setting, _) = words(*limit);
            made.enable(&setting)
                .and_then(|()| made.try_out(&setting))
                .map_err(|why| format!("\"{directive}\" {why}"))?;
        }
        Ok(made)
    }

    /// Whether a group below has the file of a setting: a kernel may have a controller without it.
    fn try_out(&self, setting: &Setting) -> Result<(), String> {
        let path = self.base.join(format!("bolide-try-{}", std::process::id()));
        make(&path).map_err(|error| format!("needs the group {}: {error}", path.display()))?;
        let is_there = path.join(setting.file).exists();
        let _ = fs::remove_dir(&path);
        if is_there {
            Ok(())
        } else {
            Err(format!("needs {}, which the kernel lacks", setting.file))
        }
    }

    /// Readies it for every limit of a configuration.
    ///
    /// # Errors
    ///
    /// One text per limit that cannot have its effect, with its place.
    pub(super) fn ready_for(pools: &[PhpPool]) -> Result<(), Vec<String>> {
        let mut errors = Vec::new();
        for pool in pools {
            for (limit, SourcePlace { file, line }) in &pool.limits {
                if let Err(why) = Self::ready(&[*limit]) {
                    errors.push(format!("php_pool \"{}\": {why} in {file}:{line}", pool.name));
                }
            }
        }
        if errors.is_empty() { Ok(()) } else { Err(errors) }
    }

    /// Has the groups below get a controller.
    fn enable(&self, setting: &Setting) -> Result<(), String> {
        has(&self.base, setting)?;
        let file = self.base.join("cgroup.subtree_control");
        let failed = |error: Error| {
            let why = match error.kind() {
                ErrorKind::ResourceBusy => "other programs run in it".to_owned(),
                _ => error.to_string(),
            };
            let group = self.base.display();
            format!("needs the control group {group} (\"Delegate=yes\" in systemd): {why}")
        };
        let order = format!("+{}", setting.controller);
        match fs::write(&file, &order) {
            Err(error) if error.kind() == ErrorKind::ResourceBusy => {
                self.leave().and_then(|()| fs::write(&file, &order)).map_err(failed)
            }
            other => other.map_err(failed),
        }
    }

    /// Moves this process and those below it into a group of their own.
    fn leave(&self) -> Result<(), Error> {
        let own = self.base.join(SERVER);
        make(&own)?;
        let me = std::process::id();
        let all = std::iter::once(me).chain(keeper::descendants(me));
        for pid in all {
            let moved = fs::write(own.join("cgroup.procs"), pid.to_string());
            if pid == me {
                moved?;
            }
        }
        Ok(())
    }

    /// The group of a pool, with its limits set.
    ///
    /// # Errors
    ///
    /// The kernel refuses.
    pub(super) fn group(&self, pool: &str, limits: &[PhpLimit]) -> Result<PoolGroup, String> {
        // The whole name: a shorter one may be that of another pool, which would share the limits.
        let path = self.base.join(format!("{POOL}{pool}"));
        let failed = |file: &Path, error: Error| format!("{}: {error}", file.display());
        make(&path).map_err(|error| failed(&path, error))?;
        for setting in ALL {
            // One that was set before, by a configuration that is no longer in force.
            let _ = File::options()
                .write(true)
                .open(path.join(setting.file))
                .and_then(|mut file| std::io::Write::write_all(&mut file, setting.none.as_bytes()));
        }
        for limit in limits {
            let (directive, setting, value) = words(*limit);
            let file = path.join(setting.file);
            fs::write(&file, value)
                .map_err(|error| format!("\"{directive}\": {}", failed(&file, error)))?;
        }
        let file = path.join("cgroup.procs");
        let procs =
            File::options().write(true).open(&file).map_err(|error| failed(&file, error))?;
        Ok(PoolGroup { path, procs })
    }
}

fn make(path: &Path) -> Result<(), Error> {
    match fs::create_dir(path) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        other => other,
    }
}

impl Drop for PoolGroup {
    fn drop(&mut self) {
        // One that has processes, of a newer master for instance, stays.
        let _ = fs::remove_dir(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use bolide_conf::model::PhpLimit;

    use super::{MEMORY, PoolGroups, has, mount_in};

    #[test]
    fn the_place_of_version_2_is_found_beside_version_1() {
        let text = "30 24 0:26 / /sys/fs/cgroup rw shared:4 - tmpfs tmpfs rw\n\
                    31 30 0:27 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids\n\
                    32 30 0:28 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";
        assert_eq!(mount_in(text), Some("/sys/fs/cgroup/unified"));
        assert_eq!(mount_in("30 24 0:26 / / rw - ext4 /dev/vda rw\n"), None);
    }

    #[test]
    fn limits_are_written_in_the_words_of_the_kernel() {
        let base = bolide_testkit::site::temp_dir();
        let pool = base.join("bolide-php-shop");
        fs::create_dir(&pool).unwrap();
        for file in ["memory.max", "cpu.max", "pids.max", "io.weight", "cgroup.procs"] {
            fs::write(pool.join(file), "").unwrap();
        }
        fs::write(base.join("cgroup.controllers"), "cpu memory\n").unwrap();
        assert!(has(&base, &MEMORY).is_ok());
        let groups = PoolGroups { base };
        let read = |file: &str| fs::read_to_string(pool.join(file)).unwrap();
        let limits = [PhpLimit::Memory(1 << 20), PhpLimit::Cpu(150), PhpLimit::Tasks(40)];
        let _group = groups.group("shop", &limits).unwrap();
        assert_eq!(read("memory.max"), "1048576");
        assert_eq!(read("cpu.max"), "150000 100000");
        assert_eq!(read("pids.max"), "40");
        let _group = groups.group("shop", &[PhpLimit::Io(20)]).unwrap();
        assert!(read("io.weight").starts_with("default 20"), "{}", read("io.weight"));
    }

    #[test]
    fn pools_with_similar_names_have_groups_of_their_own() {
        let groups = PoolGroups { base: bolide_testkit::site::temp_dir() };
        let long = "x".repeat(40);
        let names = ["a.b", "a_b", "a-b", &long, &format!("{long}y"), &format!("{long}z")];
        let limits = [PhpLimit::Tasks(40)];
        let path = |name: &str| {
            let made = groups.base.join(format!("bolide-php-{name}"));
            fs::create_dir(&made).unwrap();
            fs::write(made.join("pids.max"), "").unwrap();
            fs::write(made.join("cgroup.procs"), "").unwrap();
            groups.group(name, &limits).unwrap().path.clone()
        };
        let paths: std::collections::BTreeSet<_> = names.iter().map(|name| path(name)).collect();
        assert_eq!(paths.len(), names.len());
    }
}
