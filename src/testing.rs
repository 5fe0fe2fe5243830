//! `-t` and `-T`: whether a server would start, tried without starting one.

use std::process::ExitCode;

use conf::model::{Config, Level};
use io::listen::Listener;

use crate::cli::{Invocation, Show};
use crate::control;
use crate::early_log::EarlyLog;
use crate::messages::{err, out};
use crate::reading::{self, Reading};
use crate::sockets::{self, Open};
use crate::{assemble, php, version};

/// Tells whether the configuration is fit for use; `dump` also prints it.
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
        log.tell(Level::Emerg, texts);
        err(&format!("bolide: configuration file {name} test failed"));
        ExitCode::FAILURE
    };
    let reading = match judge(invocation) {
        Ok((reading, warnings)) => {
            log.tell(Level::Warn, &reading.warnings);
            log.tell(Level::Warn, &warnings);
            reading
        }
        Err(texts) => {
            if texts.iter().all(|text| is_seen_late(text)) {
                say(&format!("the configuration file {name} syntax is ok"));
            }
            return failed(&texts);
        }
    };
    say(&format!("the configuration file {name} syntax is ok"));
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

fn judge(invocation: &Invocation) -> Result<(Reading, Vec<String>), Vec<String>> {
    let reading = reading::of_file(invocation)?;
    control::account(&reading.config)?;
    php::check(&reading.config)?;
    let shared = control::shared(&mut Open::default(), &reading.config)?;
    let draft = assemble::draft(&reading.config, &shared)?;
    Ok((reading, draft.warnings))
}

/// Whether nginx sees a mistake only when all is read and found to be well-formed.
fn is_seen_late(text: &str) -> bool {
    text == control::NO_EVENTS || text.starts_with("zero size shared memory zone")
}

/// Tries what depends on this machine: files, directories, addresses.
fn try_outside(config: &Config) -> Result<(), Vec<String>> {
    crate::pid::check(&config.main.pid)?;
    control::make_temp_dirs(config)?;
    assemble::open_logs(config).map_err(|text| vec![text])?;
    let listens = config.http.iter().flat_map(|http| &http.listens);
    for listen in listens {
        let (bind, options) = (sockets::bind_of(listen), sockets::options_of(listen));
        match Listener::probe(&bind, &options) {
            // That somebody uses it, most of all the server that is to be reloaded, is fine.
            Err(error) if error.kind() == std::io::ErrorKind::AddrInUse => {}
            Err(error) => return Err(vec![sockets::failed(listen, &error)]),
            Ok(()) => {}
        }
    }
    Ok(())
}
