//! From a configuration to a running server, in nginx's order: logs, addresses, background, pid
//! file, workers. An error up to there exits with 1.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use bolide_base::errno::describe;
use bolide_conf::model::{Config, LogLevel, LogTargetConf};
use bolide_io::process::ChildWait;
use bolide_io::signal;

use crate::assemble;
use crate::control::{ControlParts, ControlThread, Ground};
use crate::control_log::ControlLog;
use crate::early_log::EarlyLog;
use crate::invocation::Invocation;
use crate::messages::{err, greet};
use crate::php::PhpPools;
use crate::pid::PidFile;
use crate::reading::{self, Reading};
use crate::service_manager::ServiceManager;
use crate::sockets::OpenSocket;
use crate::tls_setup::ReadCertificates;
use crate::{account, adopted_sockets, given_sockets, upgrade, version};

/// Serves by the configuration file until told to end.
pub(crate) fn by_file(invocation: &Invocation) -> ExitCode {
    let early = EarlyLog::of(invocation);
    let reading = match reading::of_file(invocation) {
        Ok(reading) => reading,
        Err(mistakes) => {
            early.write_lines(LogLevel::Emerg, &mistakes.warn(&early));
            return ExitCode::FAILURE;
        }
    };
    early.write_notices(&reading.notices);
    early.write_lines(LogLevel::Warn, &reading.warnings);
    match run(invocation, reading, None, &early) {
        Ok(()) => ExitCode::SUCCESS,
        Err(ReportedError) => ExitCode::FAILURE,
    }
}

/// Serves by a generated configuration, and greets once it does.
///
/// # Errors
///
/// The error has been reported.
pub(crate) fn by_reading(
    invocation: &Invocation,
    reading: Reading,
    greeting: &str,
) -> Result<(), Vec<String>> {
    let early = EarlyLog::Terminal;
    for text in &reading.warnings {
        err(&format!("bolide: [warn] {text}"));
    }
    run(invocation, reading, Some(greeting), &early).map_err(|ReportedError| Vec::new())
}

/// An error that has been reported in its place.
#[derive(Debug)]
struct ReportedError;

fn run(
    invocation: &Invocation,
    mut reading: Reading,
    greeting: Option<&str>,
    early: &EarlyLog,
) -> Result<(), ReportedError> {
    let fail_early = |texts: Vec<String>| {
        early.write_lines(LogLevel::Emerg, &texts);
        ReportedError
    };
    // Before any child process or thread exists.
    let manager = ServiceManager::take();
    let account = account::account(&reading.config).map_err(fail_early)?;
    let mut pools = PhpPools::default();
    let plan = pools.prepare(Arc::make_mut(&mut reading.config)).map_err(fail_early)?;
    let (config, outline) = (reading.config, reading.outline);
    // Their bytes are not used again as long as the server runs.
    let files = reading.files.into_iter().map(|(path, _)| path).collect();
    set_environment(&config);
    let mut open = OpenSocket::default();
    let is_adopting = adopted_sockets::is_adopting();
    let shared = assemble::shared(&mut open, &config).map_err(fail_early)?;
    let mut draft =
        assemble::draft(&config, &shared, ReadCertificates::default()).map_err(fail_early)?;
    early.write_lines(LogLevel::Warn, &draft.warnings);
    upgrade::adopt(&mut open);
    adopted_sockets::adopt(&mut open);
    early.write_lines(LogLevel::Warn, &given_sockets::adopt(&mut open, &config));
    let workers = assemble::worker_count(&config);
    // Before any socket listens: a client that gets a response may signal us at once.
    signal::block();
    account::make_temp_dirs(&config).map_err(fail_early)?;
    let granted = bolide_io::process::open_files();
    // Logs and sockets may be more than the system grants at first; a failure is reported later.
    let _ = bolide_io::process::raise_open_files();
    let _ = set_open_files(&config);
    let logs = assemble::open_logs(&config).map_err(|text| fail_early(vec![text]))?;
    let log = ControlLog::new(&config, &logs);
    let fail = |texts: Vec<String>| {
        texts.iter().for_each(|text| log.write_loudly(LogLevel::Emerg, text));
        ReportedError
    };
    let write_log = |level: LogLevel, text: &str| {
        if level <= LogLevel::Warn { log.write_loudly(level, text) } else { log.write(level, text) }
    };
    let sockets =
        open.apply(&config, workers, &shared.quic_keys, write_log).map_err(|_| ReportedError)?;
    introduce(&log, granted);
    let is_heir = upgrade::has_predecessor() || is_adopting;
    let mut waiting = None;
    let mut ground = if is_heir { Ground::Back } else { Ground::Fore };
    // As in nginx, a successor stays the child that its predecessor watches.
    if config.main.daemon && greeting.is_none() && !is_heir {
        // Before any thread starts and before the pid is written.
        let begun = bolide_io::process::daemonize();
        waiting = Some(begun.map_err(|error| fail(vec![format!("daemon: {error}")]))?);
        ground = Ground::Back;
    }
    let pid = if greeting.is_some() {
        None
    } else {
        Some(PidFile::write(&config.main.pid).map_err(fail)?)
    };
    let drafts = std::mem::take(&mut draft.parts);
    if let Some(http) = &config.http {
        let prefix = Path::new(OsStr::from_bytes(&http.bases.prefix));
        shared.cluster.begin(&drafts.cluster, &reading::state_dir(prefix));
    }
    set_limits(&config, &log).map_err(fail)?;
    let certificate_ends = draft.certificate_ends.clone();
    let certificates = draft.certificates.clone();
    let generation = assemble::generation(1, draft, sockets, &shared, None);
    let parts = ControlParts {
        invocation,
        shared,
        open,
        config: config.clone(),
        outline,
        generation: Arc::new(generation),
        certificate_ends,
        certificates,
        ground,
        log: ControlLog::new(&config, &logs),
        pools,
        account,
        manager,
        files,
    };
    let control = ControlThread::new(parts).map_err(|error| fail(vec![format!("epoll: {error}")]));
    let mut control = control?;
    if waiting.is_some() || is_adopting {
        // Before workers use it.
        leave_terminal(&config, &logs);
    }
    control.begin(plan, drafts).map_err(fail)?;
    if let Some(greeting) = greeting {
        greet(greeting);
    }
    // The process that started us continues.
    waiting.into_iter().for_each(ChildWait::release);
    // The first configuration would otherwise stay in memory as long as the server runs.
    drop((config, logs, log));
    control.obey(pid);
    Ok(())
}

/// From now on messages on the terminal would be lost, and a reader of a starting server's output
/// waits for its end.
pub(crate) fn leave_terminal(config: &Config, logs: &bolide_worker::OpenLogs) {
    let mut files = config.main.error_log.iter().filter_map(|log| match &log.target {
        LogTargetConf::File(path) => logs.get(path.as_os_str().as_encoded_bytes()),
        _ => None,
    });
    let to_terminal = config.main.error_log.iter().any(|log| log.target == LogTargetConf::Stderr);
    if !to_terminal && let Some(file) = files.next() {
        // Otherwise it stays unchanged.
        let _ = bolide_io::process::replace_stderr(file.file());
    }
}

/// The first lines of nginx's log.
fn introduce(log: &ControlLog, (soft, hard): (u64, u64)) {
    let (system, release) = bolide_io::process::kernel();
    log.write(LogLevel::Notice, "using the \"epoll\" event method");
    log.write(LogLevel::Notice, version::NAME);
    log.write(LogLevel::Notice, &format!("OS: {system} {release}"));
    log.write(LogLevel::Notice, &format!("getrlimit(RLIMIT_NOFILE): {soft}:{hard}"));
}

/// `env NAME=VALUE`: for ourselves and for later child processes.
fn set_environment(config: &Config) {
    for (name, value) in &config.main.env {
        if let Some(value) = value.as_ref().filter(|_| !name.is_empty() && !name.contains('\0')) {
            bolide_io::process::set_environment(name, &value.replace('\0', ""));
        }
    }
}

/// Sets `worker_rlimit_nofile`: the workers share the limit of the process, which has that of each,
/// or as many of these as the system grants.
///
/// # Errors
///
/// Not even one is granted.
fn set_open_files(config: &Config) -> std::io::Result<()> {
    let Some(files) = config.main.worker_rlimit_nofile else { return Ok(()) };
    let workers = assemble::worker_count(config) as u64;
    let grant = |workers| bolide_io::process::set_open_files_max(files.saturating_mul(workers));
    (1..=workers).rev().map(grant).find(Result::is_ok).unwrap_or_else(|| grant(1))
}

/// Limits and directory. As in nginx, a limit that may not be raised is reported, and the server
/// runs within it.
fn set_limits(config: &Config, log: &ControlLog) -> Result<(), Vec<String>> {
    let alert = |call: &str, error: &std::io::Error| {
        log.write_loudly(LogLevel::Alert, &format!("{call} failed ({})", describe(error)));
    };
    let raised = set_open_files(config);
    if let (Err(error), Some(files)) = (&raised, config.main.worker_rlimit_nofile) {
        alert(&format!("setrlimit(RLIMIT_NOFILE, {files})"), error);
    }
    if raised.is_err() || config.main.worker_rlimit_nofile.is_none() {
        let _ = bolide_io::process::raise_open_files();
    }
    if let Some(bytes) = config.main.worker_rlimit_core {
        if let Err(error) = bolide_io::process::set_core_max(bytes) {
            alert(&format!("setrlimit(RLIMIT_CORE, {bytes})"), &error);
        }
        bolide_io::process::allow_core();
    }
    if let Some(directory) = &config.main.working_directory {
        std::env::set_current_dir(directory).map_err(|error| {
            vec![format!("chdir(\"{}\") failed ({})", directory.display(), describe(&error))]
        })?;
    }
    Ok(())
}
