//! The program of `dns-01`, which creates and removes records.

use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use tokio::sync::oneshot;

/// LIMIT: its run time; it ends only when the records have reached all servers of the zone.
const PROGRAM_MAX: Duration = Duration::from_secs(300);
/// LIMIT: bytes of its output that reach the log.
const OUTPUT_MAX: u64 = 4096;
/// The interval of checks for its end.
const LOOK: Duration = Duration::from_millis(20);

/// Runs `program ACTION RECORD VALUE` without a shell; `ACTION` is `present` or `cleanup`. The
/// environment has `ACME_RECORD` and `ACME_VALUE`, too. Its output is the result.
///
/// # Errors
///
/// It does not start, ends with another status than 0, or takes too long and is killed.
pub(crate) async fn run(
    program: &Path,
    action: &'static str,
    record: &str,
    value: &str,
) -> Result<String, String> {
    let (program, record, value) = (program.to_owned(), record.to_owned(), value.to_owned());
    let (sender, receiver) = oneshot::channel();
    let thread = std::thread::Builder::new().name("acme-hook".to_owned());
    let body = move || {
        // The attempt may have been dropped meanwhile.
        let _unwanted = sender.send(run_now(&program, action, &record, &value));
    };
    thread.spawn(body).map_err(|error| format!("no thread: {error}"))?;
    receiver.await.map_err(|_| "the program's thread ended".to_owned())?
}

/// The same, on this thread.
///
/// # Errors
///
/// As [`run`].
pub(crate) fn run_now(
    program: &Path,
    action: &str,
    record: &str,
    value: &str,
) -> Result<String, String> {
    let name = program.display();
    let mut command = Command::new(program);
    bolide_io::child::prepare(&mut command).map_err(|error| error.to_string())?;
    let mut child = command
        .args([action, record, value])
        .env("ACME_RECORD", record)
        .env("ACME_VALUE", value)
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| format!("\"{name}\" does not start: {error}"))?;
    let outputs = [
        child.stdout.take().map(|pipe| collect(Box::new(pipe))),
        child.stderr.take().map(|pipe| collect(Box::new(pipe))),
    ];
    let mut left = PROGRAM_MAX;
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) if left.is_zero() => {
                let _gone = child.kill();
                let _gone = child.wait();
                return Err(format!("\"{name}\" did not end in {} s", PROGRAM_MAX.as_secs()));
            }
            Ok(None) => {
                std::thread::park_timeout(LOOK);
                left = left.saturating_sub(LOOK);
            }
            Err(error) => return Err(format!("\"{name}\": {error}")),
        }
    };
    let output: Vec<String> = outputs
        .into_iter()
        .flatten()
        .filter_map(|output| output.recv_timeout(LOOK * 10).ok())
        .filter(|output| !output.is_empty())
        .collect();
    let output = output.join(" ");
    match status.success() {
        true => Ok(output),
        false => Err(format!("\"{name}\" ended with {status}: {output}")),
    }
}

/// Reads a pipe to its end on a thread, so that the program never blocks. A grandchild may keep the
/// pipe open, so the thread is not joined.
fn collect(mut pipe: Box<dyn Read + Send>) -> std::sync::mpsc::Receiver<String> {
    let (sender, receiver) = std::sync::mpsc::sync_channel(1);
    let body = move || {
        let mut kept = Vec::new();
        let mut part = [0; 1024];
        while let Ok(len @ 1..) = pipe.read(&mut part) {
            let room = usize::try_from(OUTPUT_MAX).unwrap_or(0).saturating_sub(kept.len());
            kept.extend_from_slice(&part[..len.min(room)]);
        }
        let text = String::from_utf8_lossy(&kept).trim().replace(char::is_control, " ");
        let _unwanted = sender.send(text);
    };
    // Without a thread the output is lost, and the program still runs.
    let _lost = std::thread::Builder::new().spawn(body);
    receiver
}

#[cfg(test)]
mod tests {
    use super::*;

    fn script(text: &str) -> std::path::PathBuf {
        use std::os::unix::fs::PermissionsExt;
        let path = bolide_testkit::site::temp_dir().join("hook");
        std::fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o700)).unwrap();
        path
    }

    #[test]
    fn arguments_environment_and_output_arrive() {
        let path = script("echo \"$# $1 $2 $3\"; echo \"$ACME_RECORD $ACME_VALUE\" >&2");
        let output = run_now(&path, "present", "_acme-challenge.a.example", "$(id) v");
        let same = "_acme-challenge.a.example $(id) v";
        assert_eq!(output, Ok(format!("3 present {same} {same}")));
    }

    #[test]
    fn a_failure_says_its_status_and_output() {
        let path = script("echo no such zone >&2; exit 3");
        let why = run_now(&path, "cleanup", "r", "v").unwrap_err();
        assert!(why.contains("exit status: 3") && why.contains("no such zone"), "{why}");
        assert!(run_now(Path::new("/nonexistent"), "present", "r", "v").is_err());
    }

    #[test]
    fn a_grandchild_that_keeps_the_pipe_holds_nothing_up() {
        let path = script("sleep 30 & echo done");
        assert!(run_now(&path, "present", "r", "v").is_ok());
    }
}
