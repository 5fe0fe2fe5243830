//! Each command of the command line, to its end.

use std::process::ExitCode;

use crate::cli::admin_help;
use crate::invocation::{CliCommand, CliPurpose, Invocation, PhpCommand};
use crate::messages::{err, out};
use crate::{
    admin, adopt, check, import, php, reading, serve, signalling, start, testing, version,
};

/// Runs a command to its end.
pub(crate) fn run(invocation: &Invocation) -> ExitCode {
    match &invocation.command {
        CliCommand::Show(what) => {
            version::show(*what);
            ExitCode::SUCCESS
        }
        CliCommand::Test { dump, show } => testing::run(invocation, *dump, *show),
        CliCommand::Signal(signal) => signalling::send(invocation, *signal),
        CliCommand::Run => start::by_file(invocation),
        CliCommand::Serve(options) if options.purpose == CliPurpose::Print => {
            finish(serve::prepare(options).map(|ready| out(ready.text.as_bytes())))
        }
        CliCommand::Serve(options) => finish(serve::prepare(options).and_then(|ready| {
            let reading = reading::of_text(&ready.conf, &ready.text)?;
            start::by_reading(invocation, reading, &ready.greeting)
        })),
        CliCommand::Php(PhpCommand::Keep(program)) => php::keeper::run(program),
        CliCommand::Adopt(options) => adopt::run(invocation, options),
        CliCommand::Import(path) => finish(import::text(path).map(|text| out(text.as_bytes()))),
        CliCommand::Check(request) => check::run(invocation, request),
        CliCommand::Admin(request) => admin::client::run(invocation, request),
        CliCommand::AdminHelp => {
            out(admin_help().as_bytes());
            ExitCode::SUCCESS
        }
        CliCommand::CommandHelp(rows) => {
            out(rows.text().as_bytes());
            ExitCode::SUCCESS
        }
        CliCommand::Php(command) => finish(
            signalling::running(invocation)
                .and_then(|(pid, path)| php::command::send(pid, &path, command)),
        ),
    }
}

fn finish(result: Result<(), Vec<String>>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(texts) => {
            for text in texts {
                err(&format!("bolide: [emerg] {text}"));
            }
            ExitCode::FAILURE
        }
    }
}
