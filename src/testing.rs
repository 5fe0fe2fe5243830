//! `-t` and `-T`: checks whether a server would start, without starting one.

use std::process::ExitCode;

use bolide_conf::model::{Config, LogLevel};
use bolide_io::listen::Listener;

use crate::early_log::EarlyLog;
use crate::invocation::{Invocation, Show};
use crate::messages::{err, out};
use crate::patience::Patience;
use crate::reading::{self, Reading};
use crate::sockets::{self, OpenSocket};
use crate::tls_setup::ReadCertificates;
use crate::{account, assemble, php, version};

/// The message for a file without `events`.
const NO_EVENTS: &str = "no \"events\" section in configuration";

/// Reports whether the configuration is valid; `dump` also prints it.
pub(crate) fn run(invocation: &Invocation, dump: bool, show: Option<Show>) -> ExitCode {
    if let Some(show) = show {
        version::show(show);
    }
    let log = EarlyLog::of(invocation);
    let name = invocation.conf.display();
    let say = |text: &str| {
        if !invocation.quiet {
            err(&format!("bolide: {text}"));
        }
    };
    let failed = |texts: &[String]| {
        log.write_lines(LogLevel::Emerg, texts);
        err(&format!("bolide: configuration file {name} test failed"));
        ExitCode::FAILURE
    };
    let (reading, late) = match judge(invocation, &log) {
        Ok((reading, warnings)) => {
            let (late, early): (Vec<_>, Vec<_>) =
                reading.warnings.iter().cloned().partition(|text| is_seen_late(text));
            log.write_notices(&reading.notices);
            log.write_lines(LogLevel::Warn, &early);
            log.write_lines(LogLevel::Warn, &warnings);
            (reading, late)
        }
        Err(texts) => {
            if texts.iter().all(|text| is_seen_late(text)) {
                say(&format!("the configuration file {name} syntax is ok"));
            }
            return failed(&texts);
        }
    };
    say(&format!("the configuration file {name} syntax is ok"));
    log.write_lines(LogLevel::Warn, &late);
    if let Err(texts) = try_outside(&reading.config) {
        return failed(&texts);
    }
    say(&format!("configuration file {name} test is successful"));
    if dump {
        for (path, bytes) in &reading.files {
            out(format!("# configuration file {}:\n", path.display()).as_bytes());
            out(bytes);
            out(b"\n");
        }
    }
    ExitCode::SUCCESS
}

fn judge(invocation: &Invocation, log: &EarlyLog) -> Result<(Reading, Vec<String>), Vec<String>> {
    let patience = Patience::begin(&format!("reading {}", invocation.conf.display()));
    let reading = reading::of_file(invocation);
    drop(patience);
    let reading = reading.map_err(|mistakes| mistakes.warn(log))?;
    account::account(&reading.config)?;
    php::check(&reading.config)?;
    let shared = assemble::shared(&mut OpenSocket::default(), &reading.config)?;
    let draft = assemble::draft(&reading.config, &shared, ReadCertificates::default())?;
    Ok((reading, draft.warnings))
}

/// Whether nginx finds an error only once everything is read and well-formed.
fn is_seen_late(text: &str) -> bool {
    let starts = [
        "zero size shared memory zone",
        "unknown thread pool",
        "the number of \"worker_processes\"",
    ];
    text == NO_EVENTS || starts.iter().any(|start| text.starts_with(start))
}

/// Checks the settings that depend on this machine: files, directories, addresses.
fn try_outside(config: &Config) -> Result<(), Vec<String>> {
    crate::pid::check(&config.main.pid)?;
    account::make_temp_dirs(config)?;
    assemble::open_logs(config).map_err(|text| vec![text])?;
    let listens = config.http.iter().flat_map(|http| &http.listens);
    for listen in listens {
        let (bind, options) = (sockets::bind_of(listen), sockets::options_of(listen));
        match Listener::probe(&bind, &options) {
            // An address in use is fine, most of all by the server that is to be reloaded.
            Err(error) if error.kind() == std::io::ErrorKind::AddrInUse => {}
            Err(error) => return Err(vec![sockets::failed(listen, &error)]),
            Ok(()) => {}
        }
    }
    Ok(())
}
