//! Reads a configuration on a thread of its own, while the control thread goes on: names of servers
//! are resolved while it is read, and a resolver that does not answer takes ten seconds for each.
//! Without its control thread, a server obeys no signal, restarts no PHP process, and is ended by
//! the watchdog of its service manager.

use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::Duration;

use bolide_io::signal::{Signal, Taken};

use super::{ControlThread, Life, TICK};
use crate::reading::{self, Mistakes, Reading};

/// How long a reading may take before the control thread goes on beside it; few take longer.
const SOON: Duration = Duration::from_millis(200);
/// How often it then looks for the end of the reading.
const LOOK: Duration = Duration::from_millis(50);

impl ControlThread<'_> {
    /// Reads the configuration file. Signals that arrive meanwhile are handled afterwards; one that
    /// ends the server ends the reading.
    ///
    /// # Errors
    ///
    /// The mistakes in it, or that the server ends.
    pub(super) fn read_aside(&mut self) -> Result<Reading, Mistakes> {
        let (sender, receiver) = sync_channel(1);
        let invocation = self.invocation.clone();
        let read = move || {
            // A reading that was given up has no receiver.
            let _unwanted = sender.send(reading::of_file(&invocation));
        };
        let thread = std::thread::Builder::new().name("reading".to_owned());
        if thread.spawn(read).is_err() {
            return reading::of_file(self.invocation);
        }
        match receiver.recv_timeout(SOON) {
            Ok(read) => read,
            Err(RecvTimeoutError::Disconnected) => Err(given_up("the reading failed")),
            Err(RecvTimeoutError::Timeout) => {
                self.is_reading = true;
                let read = self.go_on_until(&receiver);
                self.is_reading = false;
                read
            }
        }
    }

    /// Keeps a signal for later: one that ends the server comes first and alone, and one reload
    /// stands for all.
    fn defer(&mut self, taken: Taken) {
        let is_reload = taken.signal == Signal::Reload;
        if is_end(taken.signal) {
            self.deferred.clear();
        } else if is_reload && self.deferred.iter().any(|known| known.signal == Signal::Reload) {
            return;
        }
        self.deferred.push_back(taken);
    }

    /// Does what the control thread does, except to obey signals.
    fn go_on_until(
        &mut self,
        receiver: &Receiver<Result<Reading, Mistakes>>,
    ) -> Result<Reading, Mistakes> {
        debug_assert!(LOOK < TICK, "keep-alive messages are sent in time");
        let mut ready = Vec::new();
        loop {
            match receiver.try_recv() {
                Ok(read) => return read,
                Err(std::sync::mpsc::TryRecvError::Empty) => {}
                Err(_) => return Err(given_up("the reading failed")),
            }
            let until = bolide_io::process::now().mono.after(LOOK);
            if let Some(taken) = self.wait(until, &mut ready) {
                self.defer(taken);
            }
            self.look_after();
            self.serve_consoles();
            let is_told = self.deferred.front().is_some_and(|taken| is_end(taken.signal));
            if is_told || self.life == Life::Ending || self.is_over() {
                return Err(given_up("the server ends"));
            }
        }
    }
}

/// Whether a signal ends the server.
const fn is_end(signal: Signal) -> bool {
    matches!(signal, Signal::Stop | Signal::Quit)
}

fn given_up(why: &str) -> Mistakes {
    let errors = vec![format!("the new configuration is not read: {why}")];
    Mistakes { warnings: Vec::new(), errors, files: Vec::new() }
}
