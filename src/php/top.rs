//! `bolide php top`: activity and cost of each pool. The server reports its counters; the command
//! reads the processes itself, twice, so that nothing waits for it.

use std::fmt::Write as _;
use std::fs;

use bolide_engine::explain::Json;

use super::keeper;
use super::report::PoolReport;

/// Seconds between the two samples.
pub(super) const INTERVAL_SECONDS: u64 = 1;
/// Fields of a line.
const FIELDS: usize = 8;

/// The line that the server writes about a pool; names have no spaces.
pub(super) fn line(report: &PoolReport) -> String {
    let masters: Vec<String> = report.masters.iter().map(u32::to_string).collect();
    let load = report.load;
    format!(
        "{} {} {} {} {} {} {} {}",
        report.name,
        report.state.word(),
        load.requests,
        load.active,
        report.children_max,
        load.waiting,
        report.queue_max,
        if masters.is_empty() { "-".to_owned() } else { masters.join(",") },
    )
}

/// A sample of one pool.
#[derive(Clone, Debug, PartialEq)]
struct Look {
    name: String,
    state: String,
    requests: u64,
    active: u64,
    children_max: u64,
    waiting: u64,
    queue_max: u64,
    processes: u64,
    memory: u64,
    /// Hundredths of a second, as Linux gives times in /proc.
    cpu: u64,
}

impl Look {
    /// Reads a line of [`line()`], and the processes that it names.
    fn read(line: &str) -> Option<Self> {
        let words: Vec<&str> = line.split(' ').collect();
        let &[name, state, requests, active, children_max, waiting, queue_max, masters] =
            <&[&str; FIELDS]>::try_from(&*words).ok()?;
        let masters = masters.split(',').filter_map(|pid| pid.parse().ok());
        let costs = masters.flat_map(|pid| {
            let below = keeper::descendants(pid);
            std::iter::once(Cost::of(pid)).chain(below.into_iter().map(Cost::of))
        });
        let cost = costs.flatten().fold(Cost::default(), Cost::and);
        Some(Self {
            name: name.to_owned(),
            state: state.to_owned(),
            requests: requests.parse().ok()?,
            active: active.parse().ok()?,
            children_max: children_max.parse().ok()?,
            waiting: waiting.parse().ok()?,
            queue_max: queue_max.parse().ok()?,
            processes: cost.processes,
            memory: cost.memory,
            cpu: cost.cpu,
        })
    }
}

/// The cost of processes.
#[derive(Clone, Copy, Debug, Default)]
struct Cost {
    processes: u64,
    memory: u64,
    cpu: u64,
}

impl Cost {
    /// The cost of one process, including ended children; none if it has ended itself.
    fn of(pid: u32) -> Option<Self> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        Some(Self { processes: 1, memory: memory(pid), cpu: cpu_ticks(&stat)? })
    }

    fn and(self, other: Self) -> Self {
        Self {
            processes: self.processes + other.processes,
            memory: self.memory + other.memory,
            cpu: self.cpu + other.cpu,
        }
    }
}

/// `utime`, `stime`, `cutime` and `cstime` of /proc/PID/stat. The name of the program may have
/// spaces and parentheses.
fn cpu_ticks(stat: &str) -> Option<u64> {
    let (_, rest) = stat.rsplit_once(") ")?;
    let times: Vec<u64> =
        rest.split(' ').skip(11).take(4).map_while(|it| it.parse().ok()).collect();
    (times.len() == 4).then(|| times.iter().sum())
}

/// Bytes of memory; what processes share counts in parts. Where the kernel does not say, all that
/// is resident.
fn memory(pid: u32) -> u64 {
    let kib = |file: &str, name: &str| -> Option<u64> {
        let text = fs::read_to_string(format!("/proc/{pid}/{file}")).ok()?;
        let rest = text.lines().find_map(|line| line.strip_prefix(name))?;
        rest.trim().trim_end_matches(" kB").parse().ok()
    };
    kib("smaps_rollup", "Pss:").or_else(|| kib("status", "VmRSS:")).unwrap_or(0) << 10
}

/// A pool over an interval.
struct Row {
    look: Look,
    requests_per_second: u64,
    cpu_percent: u64,
}

/// What two replies of the server, `INTERVAL_SECONDS` apart, say about its pools; those that
/// compute most come first.
pub(super) struct Top(Vec<Row>);

/// The pools of one reply.
pub(super) struct Sample(Vec<Look>);

impl Sample {
    pub(super) fn read(reply: &str) -> Self {
        Self(reply.lines().filter_map(Look::read).collect())
    }
}

impl Top {
    pub(super) fn new(before: &Sample, after: Sample) -> Self {
        let row = |look: Look| {
            let old = before.0.iter().find(|old| old.name == look.name);
            let since = |now: u64, old: Option<u64>| now.saturating_sub(old.unwrap_or(now));
            Row {
                requests_per_second: since(look.requests, old.map(|old| old.requests))
                    / INTERVAL_SECONDS,
                // Processes that ended took their time with them.
                cpu_percent: since(look.cpu, old.map(|old| old.cpu)) / INTERVAL_SECONDS,
                look,
            }
        };
        let mut rows: Vec<Row> = after.0.into_iter().map(row).collect();
        rows.sort_by(|a, b| {
            b.cpu_percent
                .cmp(&a.cpu_percent)
                .then(b.look.memory.cmp(&a.look.memory))
                .then_with(|| a.look.name.cmp(&b.look.name))
        });
        Self(rows)
    }

    /// A table.
    pub(super) fn text(&self) -> String {
        let width = self.0.iter().map(|row| row.look.name.len()).max().unwrap_or(0).max(4);
        let mut text = format!(
            "{:width$}  {:8}  {:>5}  {:>8}  {:>7}  {:>9}  {:>9}  {:>6}  {:>8}\n",
            "POOL", "STATE", "PROCS", "MEMORY", "CPU", "BUSY", "QUEUE", "REQ/S", "REQUESTS"
        );
        let (mut processes, mut memory) = (0, 0);
        for Row { look, requests_per_second, cpu_percent } in &self.0 {
            processes += look.processes;
            memory += look.memory;
            let busy = format!("{}/{}", look.active, look.children_max);
            let queue = format!("{}/{}", look.waiting, look.queue_max);
            let _ = writeln!(
                text,
                "{:width$}  {:8}  {:>5}  {:>8}  {:>6}%  {busy:>9}  {queue:>9}  \
                 {requests_per_second:>6}  {:>8}",
                look.name,
                look.state,
                look.processes,
                mib(look.memory),
                cpu_percent,
                look.requests,
            );
        }
        let pools = self.0.len();
        let _ = writeln!(text, "{pools} pools, {processes} processes, {}", mib(memory));
        text
    }

    /// One line of JSON.
    pub(super) fn json(&self) -> Vec<u8> {
        let row = |row: &Row| {
            let look = &row.look;
            Json::Object(vec![
                ("pool", Json::text(&look.name)),
                ("state", Json::text(&look.state)),
                ("processes", Json::number(look.processes)),
                ("memory_bytes", Json::number(look.memory)),
                ("cpu_percent", Json::number(row.cpu_percent)),
                ("cpu_milliseconds", Json::number(look.cpu * 10)),
                ("active", Json::number(look.active)),
                ("children_limit", Json::number(look.children_max)),
                ("queued", Json::number(look.waiting)),
                ("queue_limit", Json::number(look.queue_max)),
                ("requests", Json::number(look.requests)),
                ("requests_per_second", Json::number(row.requests_per_second)),
            ])
        };
        Json::Object(vec![("pools", Json::list(&self.0, row))]).line()
    }
}

fn mib(bytes: u64) -> String {
    format!("{:.1}M", bytes as f64 / f64::from(1 << 20))
}

#[cfg(test)]
mod tests {
    use super::{Look, Sample, Top, cpu_ticks};

    #[test]
    fn times_are_found_behind_any_name() {
        let stat = "7 (a) (b c) S 1 7 7 0 -1 4194560 1 2 3 4 10 20 30 40 20 0 1 0 5";
        assert_eq!(cpu_ticks(stat), Some(100));
        assert_eq!(cpu_ticks("7 (a) S 1"), None);
    }

    #[test]
    fn lines_that_are_none_are_left_out() {
        let sample = Sample::read("a running 5 1 4 0 128 -\nnonsense\nb idle x 0 4 0 128 -\n");
        assert_eq!(sample.0.len(), 1);
    }

    #[test]
    fn the_busiest_pool_comes_first_and_rates_are_differences() {
        let look = |name: &str, requests: u64, cpu: u64| Look {
            name: name.to_owned(),
            state: "running".to_owned(),
            requests,
            active: 0,
            children_max: 2,
            waiting: 0,
            queue_max: 8,
            processes: 3,
            memory: 1 << 20,
            cpu,
        };
        let before = Sample(vec![look("a", 10, 500), look("b", 10, 100), look("c", 9, 300)]);
        let after = Sample(vec![look("a", 12, 510), look("b", 40, 150), look("c", 2, 0)]);
        let top = Top::new(&before, after);
        let shown: Vec<(&str, u64)> =
            top.0.iter().map(|row| (&*row.look.name, row.requests_per_second)).collect();
        assert_eq!(shown, [("b", 30), ("a", 2), ("c", 0)]);
        assert!(top.text().ends_with("3 pools, 9 processes, 3.0M\n"), "{}", top.text());
    }
}
