//! The thread that manages the files of the cache, started when a configuration names any.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use bolide_conf::model::LogLevel;
use bolide_io::epoll::Epoll;
use bolide_io::wake::Bell;
use bolide_worker::Generation;

use crate::account::{WorkerAccount, give_up_rights};
use crate::control_log::ControlLog;

/// How long pending writes may delay the exit.
pub(crate) const PATIENCE: Duration = Duration::from_secs(5);

/// The thread, if it runs, and its wake-up.
#[derive(Debug)]
pub(crate) struct DiskWriterThread {
    bell: Bell,
    is_over: Arc<AtomicBool>,
    log: Arc<Mutex<Option<ControlLog>>>,
    thread: Option<JoinHandle<()>>,
}

impl DiskWriterThread {
    pub(crate) fn new() -> std::io::Result<Self> {
        let (is_over, log) = <(Arc<AtomicBool>, Arc<Mutex<_>>)>::default();
        Ok(Self { bell: Bell::new()?, is_over, log, thread: None })
    }

    pub(crate) const fn bell(&self) -> &Bell {
        &self.bell
    }

    /// Logs to another file from now on: the old one may have been moved away.
    pub(crate) fn log_to(&self, log: ControlLog) {
        *self.log.lock().unwrap_or_else(PoisonError::into_inner) = Some(log);
    }

    /// Applies the directories of a configuration. The first call returns when they are open, so
    /// that the first request can hit them.
    ///
    /// # Errors
    ///
    /// No thread can be started.
    pub(crate) fn settle(
        &mut self,
        generation: &Arc<Generation>,
        account: Option<&WorkerAccount>,
        log: ControlLog,
    ) -> Result<(), Vec<String>> {
        generation.site.open_trees();
        self.log_to(log);
        if self.thread.is_some() || !generation.site.has_trees() {
            self.bell.ring();
            return Ok(());
        }
        let Some(store) = generation.site.store().cloned() else { return Ok(()) };
        let failed = |error: std::io::Error| vec![format!("cannot start the disk writer: {error}")];
        let io = Epoll::new().map_err(failed)?;
        let (bell, is_over) = (self.bell.clone(), self.is_over.clone());
        let log = self.log.clone();
        let write_log = move |level: LogLevel, text: &str| {
            if let Some(log) = &*log.lock().unwrap_or_else(PoisonError::into_inner) {
                log.write(level, text);
            }
        };
        let account = account.cloned();
        let (opened, open) = mpsc::channel();
        let body = move || {
            if let Err(why) = give_up_rights(account) {
                return write_log(LogLevel::Emerg, &why);
            }
            let mut disk_writer =
                bolide_worker::disk_writer::DiskWriter::new(io, store, bolide_tls::random_seed());
            disk_writer.settle(bolide_io::process::now());
            for (level, text) in disk_writer.take_notes() {
                write_log(level, &text);
            }
            // The receiver is gone if the control thread has ended.
            let _ = opened.send(());
            let is_over = || is_over.load(Ordering::Acquire);
            bolide_worker::disk_writer::run(&mut disk_writer, &bell, is_over, write_log);
        };
        let thread = std::thread::Builder::new().name("disk-writer".to_owned());
        self.thread = Some(thread.spawn(body).map_err(failed)?);
        // An error means that the thread has ended at once, and has logged why.
        let _ = open.recv();
        Ok(())
    }

    /// Lets it finish pending writes and ends it; waits that long.
    pub(crate) fn end(&mut self, patience: Duration) {
        self.is_over.store(true, Ordering::Release);
        self.bell.ring();
        let Some(thread) = self.thread.take() else { return };
        let step = Duration::from_millis(5);
        for _ in 0..patience.as_millis() / step.as_millis() {
            if thread.is_finished() {
                return;
            }
            std::thread::park_timeout(step);
        }
    }
}
