//! What a terminal shows while a command takes longer than two seconds: a line that counts them,
//! and is gone at the end. Scripts and logs get nothing.

use std::io::{IsTerminal as _, Write as _};
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// How long a command may be silent.
const SILENCE_MAX: Duration = Duration::from_secs(2);
/// Between two looks of the line.
const STEP: Duration = Duration::from_secs(1);

/// The line, as long as this is held.
#[derive(Debug, Default)]
pub(crate) struct Patience(Option<(SyncSender<()>, JoinHandle<()>)>);

impl Patience {
    /// From now on, if it takes long: `what`, and for how many seconds.
    pub(crate) fn begin(what: &str) -> Self {
        if !std::io::stderr().is_terminal() {
            return Self::default();
        }
        let (sender, end) = sync_channel::<()>(1);
        let what = what.to_owned();
        let body = move || {
            let (mut next, mut waited, mut width) = (SILENCE_MAX, Duration::ZERO, 0);
            while end.recv_timeout(next) == Err(RecvTimeoutError::Timeout) {
                waited += next;
                next = STEP;
                let line = format!("{what}: {}s", waited.as_secs());
                width = line.chars().count();
                show(&format!("\r{line}"));
            }
            if width > 0 {
                show(&format!("\r{:width$}\r", ""));
            }
        };
        let thread = std::thread::Builder::new().name("patience".to_owned()).spawn(body);
        // Without a thread the command is silent.
        Self(thread.ok().map(|thread| (sender, thread)))
    }
}

impl Drop for Patience {
    fn drop(&mut self) {
        if let Some((sender, thread)) = self.0.take() {
            drop(sender);
            // What comes next begins on a clean line.
            let _ = thread.join();
        }
    }
}

fn show(text: &str) {
    let mut terminal = std::io::stderr().lock();
    let _ = terminal.write_all(text.as_bytes()).and_then(|()| terminal.flush());
}
