//! The number of a pool's children: as many as the cores can keep busy and the memory can hold.

/// Children per core: PHP waits for its database about as long as it computes, and often longer.
const CHILDREN_PER_CORE: u64 = 8;
/// Fewer would let one slow request block a whole site.
const CHILDREN_MIN: u64 = 2;
/// More than this must be configured: `children 2000;`.
const CHILDREN_MAX: u64 = 1000;
/// Children per core that run from the start; the others follow when these are busy.
const START_PER_CORE: u32 = 2;

/// The resources of a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MachineSize {
    pub(crate) cores: usize,
    /// Bytes available to programs, by the kernel's count and the control group's limit.
    pub(crate) memory: u64,
}

impl MachineSize {
    /// This machine, now.
    pub(crate) fn now() -> Self {
        let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
        let free = mem_available(&read("/proc/meminfo"));
        let groups = read("/proc/self/cgroup");
        let below = format!("/sys/fs/cgroup{}", cgroup(&groups));
        let number = |name: &str| read(&format!("{below}/{name}")).trim().parse::<u64>().ok();
        let left = match (number("memory.max"), number("memory.current")) {
            (Some(max), Some(used)) => max.saturating_sub(used),
            // No limit is written as `max`.
            _ => u64::MAX,
        };
        Self { cores: bolide_io::process::cores(), memory: free.min(left) }
    }

    /// Children of one pool of `pools` that share the machine, each child of `memory` bytes.
    pub(crate) fn children(self, memory: u64, pools: usize) -> u32 {
        // A quarter remains for the database, the kernel's cache and the server.
        let share = (self.memory / 4 * 3) / pools.max(1) as u64;
        let by_memory = share / memory.max(1);
        let by_cores = self.cores as u64 * CHILDREN_PER_CORE;
        let count = by_memory.min(by_cores).clamp(CHILDREN_MIN, CHILDREN_MAX);
        u32::try_from(count).unwrap_or(u32::MAX)
    }

    /// Children of `children` that are started at once.
    pub(crate) fn start(self, children: u32) -> u32 {
        let cores = u32::try_from(self.cores).unwrap_or(u32::MAX);
        children.min(cores.saturating_mul(START_PER_CORE).max(4))
    }
}

/// Bytes in the line `MemAvailable` of /proc/meminfo; a large number without it.
fn mem_available(text: &str) -> u64 {
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let kib = line.and_then(|rest| rest.trim().trim_end_matches(" kB").parse::<u64>().ok());
    kib.map_or(u64::MAX, |kib| kib << 10)
}

/// Our control group below the root of version 2.
pub(super) fn cgroup(text: &str) -> &str {
    let own = text.lines().find_map(|line| line.strip_prefix("0::")).unwrap_or_default();
    if own == "/" { "" } else { own }
}

#[cfg(test)]
mod tests {
    use super::{MachineSize, cgroup, mem_available};

    const MIB: u64 = 1 << 20;

    fn children(cores: usize, memory_mib: u64, per_child_mib: u64, pools: usize) -> u32 {
        let machine = MachineSize { cores, memory: memory_mib * MIB };
        machine.children(per_child_mib * MIB, pools)
    }

    #[test]
    fn children_are_bounded_by_memory_and_by_cores() {
        for (cores, memory, per_child, pools, expected) in [
            (2, 4000, 128, 1, 16),
            (1, 1000, 128, 1, 5),
            (4, 1000, 128, 1, 5),
            (1, 200, 128, 1, 2),
            (16, 64_000, 128, 1, 128),
            (16, 64_000, 128, 4, 93),
            (512, 4_000_000, 128, 1, 1000),
        ] {
            let case = (cores, memory, per_child, pools);
            assert_eq!(children(cores, memory, per_child, pools), expected, "{case:?}");
        }
    }

    #[test]
    fn a_machine_without_numbers_goes_by_cores() {
        let machine = MachineSize { cores: 2, memory: u64::MAX };
        assert_eq!(machine.children(0, 0), 16);
    }

    #[test]
    fn few_children_start_at_once_and_many_when_needed() {
        let machine = |cores| MachineSize { cores, memory: u64::MAX };
        assert_eq!(machine(1).start(3), 3);
        assert_eq!(machine(1).start(8), 4);
        assert_eq!(machine(8).start(64), 16);
    }

    #[test]
    fn the_kernels_files_are_read() {
        let text = "MemTotal:  8000000 kB\nMemAvailable:    2048 kB\n";
        assert_eq!(mem_available(text), 2 * MIB);
        assert_eq!(mem_available(""), u64::MAX);
        assert_eq!(cgroup("0::/system.slice/bolide.service\n"), "/system.slice/bolide.service");
        assert_eq!(cgroup("0::/\n"), "");
    }
}
