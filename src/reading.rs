//! Reads a configuration and sorts the reader's messages.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use bolide_conf::model::{Config, LogLevel};
use bolide_conf::{Outline, OutlineChange};

use crate::early_log::EarlyLog;
use crate::import::ConfFiles;
use crate::invocation::{Invocation, PREFIX};
use crate::php;
use crate::source::DiskSource;
use crate::unread_files;

/// Where state is, unless `-p` or `state_path` says otherwise.
const STATE_DIR: &str = "/var/lib/bolide";

/// A valid configuration.
#[derive(Debug)]
pub(crate) struct Reading {
    pub(crate) config: Arc<Config>,
    /// What is worth knowing, and nothing is wrong with.
    pub(crate) notices: Vec<String>,
    pub(crate) warnings: Vec<String>,
    /// Every file that was read, in order.
    pub(crate) files: Vec<(PathBuf, Vec<u8>)>,
    pub(crate) outline: Outline,
}

/// What stands before a remedy, behind a message: on a terminal, but in no log.
pub(crate) const HELP: &str = "\n  help: ";

/// Why a configuration cannot be used.
#[derive(Debug)]
pub(crate) struct Mistakes {
    /// Warnings before the first error.
    pub(crate) warnings: Vec<String>,
    /// One text per error, in nginx's words.
    pub(crate) errors: Vec<String>,
    /// Every file that was read.
    pub(crate) files: Vec<PathBuf>,
}

impl Mistakes {
    /// Logs the warnings; returns the errors.
    pub(crate) fn warn(self, log: &EarlyLog) -> Vec<String> {
        log.write_lines(LogLevel::Warn, &self.warnings);
        self.errors
    }
}

impl From<Mistakes> for Vec<String> {
    fn from(mistakes: Mistakes) -> Self {
        mistakes.errors
    }
}

/// Reads the configuration file that the command line names.
///
/// # Errors
///
/// The mistakes in it.
pub(crate) fn of_file(invocation: &Invocation) -> Result<Reading, Mistakes> {
    let files = ConfFiles::open(&invocation.conf).map_err(|text| Mistakes {
        warnings: Vec::new(),
        errors: vec![text],
        files: Vec::new(),
    })?;
    let mut outcome = bolide_conf::parse(&files, &invocation.conf, &options_of(invocation));
    for diagnostic in &mut outcome.diagnostics {
        let own = diagnostic.place.as_ref().and_then(|place| files.place(place));
        diagnostic.place = own.or(diagnostic.place.take());
    }
    sort(outcome).map(|mut reading| {
        reading.warnings.extend(files.closed_places_warning());
        reading.warnings.extend(files.unverified_warning());
        if let Some(pid) = &invocation.pid_file {
            Arc::make_mut(&mut reading.config).main.pid.clone_from(pid);
        }
        reading
    })
}

/// What the configuration file has that the one in force has not, and the other way round.
pub(crate) fn changes(invocation: &Invocation, in_force: &Outline) -> Vec<OutlineChange> {
    let options = options_of(invocation);
    match ConfFiles::open(&invocation.conf) {
        Ok(files) => bolide_conf::changes(&files, &invocation.conf, &options, in_force),
        // What is not read has no blocks.
        Err(_) => bolide_conf::changes(&DiskSource, &invocation.conf, &options, in_force),
    }
}

/// The reading options from the command line and this machine.
pub(crate) fn options_of(invocation: &Invocation) -> bolide_conf::LoadOptions {
    let mut options = options(invocation.prefix.clone());
    options.globals.clone_from(&invocation.globals);
    if let Some(error_log) = &invocation.error_log {
        options.error_log.clone_from(error_log);
    }
    options
}

/// Reads a configuration from memory, under the file name `name`.
///
/// # Errors
///
/// As [`of_file`].
pub(crate) fn of_text(name: &Path, text: &str) -> Result<Reading, Vec<String>> {
    let write = |error: std::io::Error| vec![format!("{}: {error}", name.display())];
    std::fs::write(name, text).map_err(write)?;
    let options = options(crate::source::parent(name));
    Ok(sort(bolide_conf::parse(&DiskSource, name, &options))?)
}

/// What a package installs: the directory of the configuration is not the server's to write to.
fn is_installed(prefix: &Path) -> bool {
    prefix == Path::new(PREFIX)
}

/// Where state is that outlives a process.
pub(crate) fn state_dir(prefix: &Path) -> PathBuf {
    if is_installed(prefix) { PathBuf::from(STATE_DIR) } else { prefix.to_path_buf() }
}

fn options(prefix: PathBuf) -> bolide_conf::LoadOptions {
    let state_dir = if is_installed(&prefix) { PathBuf::from(STATE_DIR) } else { PathBuf::new() };
    bolide_conf::LoadOptions {
        prefix,
        state_dir,
        privileged: bolide_io::process::is_root(),
        hostname: bolide_io::process::hostname(),
        pid: PathBuf::from("logs/bolide.pid"),
        ..bolide_conf::LoadOptions::default()
    }
}

fn sort(outcome: bolide_conf::Loaded) -> Result<Reading, Mistakes> {
    let (mut errors, mut warnings, mut notices) = (Vec::new(), Vec::new(), Vec::new());
    for diagnostic in &outcome.diagnostics {
        let mut text = diagnostic.to_string();
        if let Some(help) = &diagnostic.help {
            text.push_str(HELP);
            text.push_str(help);
        }
        if diagnostic.is_fatal() {
            errors.push(text);
        } else if diagnostic.level > LogLevel::Warn {
            notices.push(text);
        } else if errors.is_empty() {
            warnings.push(text);
        }
    }
    match outcome.config {
        Some(config) if errors.is_empty() => {
            warnings.extend(php::dangers(&config));
            warnings.extend(unread_files::warning(&config));
            Ok(Reading {
                config: Arc::new(config),
                notices,
                warnings,
                files: outcome.files,
                outline: outcome.outline,
            })
        }
        _ => {
            let files = outcome.files.into_iter().map(|(path, _)| path).collect();
            Err(Mistakes { warnings, errors, files })
        }
    }
}
