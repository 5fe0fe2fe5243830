//! The side of the command line: finds the server, sends the command, prints the reply.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use super::line_protocol::Words;
use super::{AdminDesk, ERROR, OK, reload, warm};
use crate::invocation::{Admin, Invocation};
use crate::messages::{err, out};
use crate::patience::Patience;
use crate::php::runtime::{self, NoControl};
use crate::reading;

/// LIMIT: bytes of an answer.
const ANSWER_MAX: u64 = 1 << 30;

/// LIMIT: the timeout of [`ask_process`].
const SILENCE_MAX: Duration = Duration::from_secs(2);

/// Executes a command; returns 1 when it fails.
pub(crate) fn run(invocation: &Invocation, request: &Admin) -> ExitCode {
    let done = match request {
        Admin::Warm(order) => warm::run(invocation, order),
        Admin::Ask { words, pid } => ask(invocation, words, *pid).map(|text| {
            out(&text);
            ExitCode::SUCCESS
        }),
    };
    done.unwrap_or_else(|why| {
        for line in why.lines() {
            err(&format!("bolide: {line}"));
        }
        ExitCode::FAILURE
    })
}

fn ask(invocation: &Invocation, words: &Words, pid: Option<u32>) -> Result<Vec<u8>, String> {
    let connected = match pid {
        Some(pid) => connect(pid, &format!("process {pid}")),
        None => crate::signalling::running(invocation)
            .map_err(|texts| match &*words.command {
                // The error may be in its configuration.
                reload::COMMAND => texts.join("\n"),
                _ => format!("no server runs here: {}", texts.join("\n")),
            })
            .and_then(|(pid, path)| connect(pid, &format!("the server of {}", path.display()))),
    };
    let socket = match connected {
        Ok(socket) => socket,
        // A configuration file on the command line suffices without a server.
        Err(why) if invocation.names_conf && words.command == "explain" && words.has("url") => {
            err(&format!("bolide: {why}; explaining by the configuration alone"));
            return offline(invocation, words);
        }
        Err(why) => return Err(why),
    };
    say(socket, words)
}

/// Sends a command to the server with this pid.
///
/// # Errors
///
/// It is not a server of ours, or does not answer in time.
pub(crate) fn ask_process(pid: u32, words: &Words) -> Result<Vec<u8>, String> {
    let socket = connect(pid, &format!("process {pid}"))?;
    let limited = socket
        .set_read_timeout(Some(SILENCE_MAX))
        .and_then(|()| socket.set_write_timeout(Some(SILENCE_MAX)));
    limited.map_err(|error| format!("process {pid}: {error}"))?;
    say(socket, words)
}

fn connect(pid: u32, whose: &str) -> Result<UnixStream, String> {
    let failed = |why: NoControl| format!("{whose} {why}");
    let path = runtime::control_of(pid).map_err(failed)?;
    runtime::connect(pid, &path).map_err(|error| match error.kind() {
        std::io::ErrorKind::PermissionDenied => failed(NoControl::Foreign),
        _ => format!("{}: {error}", path.display()),
    })
}

fn say(mut socket: UnixStream, words: &Words) -> Result<Vec<u8>, String> {
    let failed = |error: std::io::Error| format!("the server does not answer: {error}");
    socket.write_all(words.line().as_bytes()).map_err(failed)?;
    let _patience = Patience::begin("waiting for the server");
    let mut answer = Vec::new();
    socket.take(ANSWER_MAX).read_to_end(&mut answer).map_err(failed)?;
    if answer.starts_with(OK.as_bytes()) {
        answer.drain(..OK.len());
        return Ok(answer);
    }
    let text = String::from_utf8_lossy(&answer);
    match text.trim_end() {
        "" => Err("the server did not answer".to_owned()),
        text => Err(text.strip_prefix(ERROR).unwrap_or(text).to_owned()),
    }
}

/// Explains by a configuration without a running server, with an empty store.
fn offline(invocation: &Invocation, words: &Words) -> Result<Vec<u8>, String> {
    let reading = reading::of_file(invocation).map_err(|mistakes| mistakes.errors.join("\n"))?;
    let site = bolide_engine::Site::compile(reading.config).map_err(|all| {
        let all: Vec<String> = all.iter().map(ToString::to_string).collect();
        all.join("\n")
    })?;
    let store =
        bolide_cache::Store::new(bolide_cache::StoreLimits::default(), bolide_tls::random_seed());
    AdminDesk::of_site(Arc::new(site.with_store(store))).carry_out(words)
}
