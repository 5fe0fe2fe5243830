//! Reloads: the next configuration replaces the one in force as a whole, or not at all; a preview
//! shows what it would change.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::Arc;

use bolide_base::Instant;
use bolide_conf::model::{Config, ListenTransport, LogLevel};
use bolide_conf::{OutlineChange, OutlineChangeKind};
use bolide_quic::Admits;

use super::change_watch::FileMark;
use super::figures::ReloadResult;
use super::taking_back::LastGood;
use super::{ControlThread, Life, cache_zones};
use crate::account::make_temp_dirs;
use crate::admin::AdminClient;
use crate::admin::line_protocol::Words;
use crate::admin::reload::{DRY_RUN, WAIT};
use crate::control_log::ControlLog;
use crate::reading::{self, Reading};
use crate::tls_setup::{CertificateEnds, ReadCertificates};
use crate::{assemble, php};

/// LIMIT: new directives of a block that a preview shows.
const LINES_SHOWN: usize = 20;

impl ControlThread<'_> {
    /// A reload by a signal; its result is logged.
    pub(super) fn reload_by_signal(&mut self) {
        let _ = self.reload();
    }

    /// Executes `bolide reload`; with `--wait` it replies at the end of the watch.
    pub(super) fn reload_by_command(&mut self, client: AdminClient, words: &Words) {
        if words.has(DRY_RUN) {
            let preview = self.preview();
            client.reply(preview.map(String::into_bytes).map_err(|texts| texts.join("\n")));
            return;
        }
        let reloaded = self.reload_if_possible();
        let client = match (&reloaded, words.has(WAIT)) {
            (Ok(_), true) => match self.wait_for_watch(client) {
                Ok(()) => return,
                Err(client) => client,
            },
            _ => client,
        };
        client.reply(reloaded.map(|warnings| self.reload_report(&warnings).into_bytes()));
    }

    fn reload_report(&self, warnings: &[String]) -> String {
        let mut text = format!("configuration {} is in force\n", self.generation.number);
        if let Some(time) = self.watched_for() {
            let seconds = time.as_secs_f64().ceil();
            let _ = writeln!(text, "it is watched for {seconds}s, and taken back if more fails");
        }
        for warning in warnings {
            let _ = writeln!(text, "warning: {warning}");
        }
        text
    }

    /// Reloads the configuration, if there is a file and the server is not ending; returns
    /// warnings.
    ///
    /// # Errors
    ///
    /// The mistakes, as lines.
    pub(super) fn reload_if_possible(&mut self) -> Result<Vec<String>, String> {
        self.is_reloadable()?;
        self.reload().map_err(|texts| match texts.is_empty() {
            true => "an address is in use; the error log says which".to_owned(),
            false => texts.join("\n"),
        })
    }

    fn is_reloadable(&self) -> Result<(), String> {
        if self.pid.is_none() {
            return Err("the server has no configuration file to reload".to_owned());
        }
        if self.is_reading {
            return Err("a new configuration is being read already".to_owned());
        }
        match self.life {
            Life::Serving => Ok(()),
            Life::Ending => Err("the server is about to end".to_owned()),
        }
    }

    /// Reloads the configuration; an invalid one is refused and the old one stays.
    fn reload(&mut self) -> Result<Vec<String>, Vec<String>> {
        self.log.write(LogLevel::Notice, "reconfiguring");
        self.manager.reloading(bolide_io::process::now().mono);
        let counted = self.service_counts();
        let result = self.try_reload().map(|(warnings, replaced)| {
            self.begin_watch(&counted, replaced);
            warnings
        });
        match &result {
            Ok(warnings) => {
                self.count_reload(ReloadResult::Good, &[]);
                warnings.iter().for_each(|text| self.log.write(LogLevel::Warn, text));
                self.log.write(LogLevel::Notice, "reconfigured");
                self.manager.ready("Serving");
            }
            Err(texts) => {
                self.count_reload(ReloadResult::Refused, texts);
                let why = texts.first().map_or("an address is in use", String::as_str);
                self.manager.ready(&format!("Serving; the last reload was refused: {why}"));
                texts.iter().for_each(|text| self.log.write(LogLevel::Emerg, text));
            }
        }
        result
    }

    fn try_reload(&mut self) -> Result<(Vec<String>, LastGood), Vec<String>> {
        let before = self.changes.marks();
        let reading = match self.read_aside() {
            Ok(reading) => reading,
            Err(mistakes) => {
                mistakes.warnings.iter().for_each(|text| self.log.write(LogLevel::Warn, text));
                self.watch_files(mistakes.files, before);
                return Err(mistakes.errors);
            }
        };
        let files = reading.files.iter().map(|(path, _)| path.clone()).collect();
        let done = self.put_in_force(reading, ReadCertificates::default());
        self.watch_files(files, before);
        done
    }

    /// Watches the files of a configuration that was read, and the certificates in use, if the
    /// configuration in force has `reload_on_change`, or the previous one had it, because that may
    /// be put back in force.
    pub(super) fn watch_files(&mut self, files: Vec<PathBuf>, before: Vec<FileMark>) {
        if !self.config.main.reload_on_change && before.is_empty() {
            return;
        }
        let own = self.invocation.conf.clone();
        let certificates = self.certificate_ends.files().into_iter();
        let certificates = certificates.map(|(file, _)| PathBuf::from(file));
        self.changes.settle(files.into_iter().chain([own]).chain(certificates), before);
    }

    /// `reload_on_change`
    pub(super) fn reload_if_changed(&mut self, now: Instant) {
        let is_wanted = self.config.main.reload_on_change && self.is_reloadable().is_ok();
        if is_wanted && self.changes.has_changed(now) {
            self.log.write(LogLevel::Notice, "files have changed");
            self.reload_by_signal();
        }
    }

    /// Replaces the configuration; returns warnings, and the replaced one. Certificates in `known`
    /// are not read again.
    pub(super) fn put_in_force(
        &mut self,
        mut reading: Reading,
        known: ReadCertificates,
    ) -> Result<(Vec<String>, LastGood), Vec<String>> {
        cache_zones::check(&self.config, &reading.config)?;
        let kept = self.keep_start(&mut reading.config)?;
        let plan = self.pools.prepare(Arc::make_mut(&mut reading.config))?;
        let mut draft = assemble::draft(&reading.config, &self.shared, known)?;
        make_temp_dirs(&reading.config)?;
        let logs = assemble::open_logs_anew(&reading.config, self.log.open());
        let logs = logs.map_err(|text| vec![text])?;
        let log = ControlLog::new(&reading.config, &logs);
        let workers = self.crew.size();
        let keys = &self.shared.quic_keys;
        let moved = match &mut self.pid {
            Some(pid) => pid.written_to(&reading.config.main.pid)?,
            None => None,
        };
        let write_log = |level, text: &str| log.write(level, text);
        let per_worker = self.open.apply(&reading.config, workers, keys, write_log);
        match (&mut self.pid, moved) {
            (Some(pid), Some(moved)) if per_worker.is_ok() => pid.give_way(moved),
            (Some(pid), Some(moved)) => pid.keep_from(moved),
            _ => {}
        }
        // No message appears a second time.
        let per_worker = per_worker.map_err(|_| Vec::new())?;
        let mut warnings = reading.warnings;
        warnings.extend(draft.warnings.iter().cloned());
        warnings.extend(kept);
        reading.notices.iter().for_each(|text| self.log.write(LogLevel::Notice, text));
        self.certificate_ends = draft.certificate_ends.clone();
        let certificates = draft.certificates.clone();
        let mut parts = std::mem::take(&mut draft.parts);
        let number = self.generation.number + 1;
        let previous = Some(&*self.generation);
        let generation = assemble::generation(number, draft, per_worker, &self.shared, previous);
        let generation = Arc::new(generation);
        let good = LastGood {
            number: self.generation.number,
            config: std::mem::replace(&mut self.config, reading.config),
            outline: std::mem::replace(&mut self.outline, reading.outline),
            certificates: std::mem::replace(&mut self.certificates, certificates),
        };
        let replaced = std::mem::replace(&mut self.log, log);
        self.retired.keep_logs(replaced.open().clone());
        drop(replaced);
        let old = Arc::downgrade(&self.generation.site);
        self.commit(plan, &generation.groups, &old);
        let replaced = std::mem::replace(&mut self.generation, generation.clone());
        let before = replaced.site.clone();
        self.retired.keep(replaced);
        self.settle_terminal();
        let cluster = std::mem::take(&mut parts.cluster);
        self.settle_threads(parts);
        let log = ControlLog::new(&self.config, &logs);
        self.disk_writer.settle(&generation, self.account.as_ref(), log)?;
        // Their trees are open, so that their files are purged, too.
        generation.site.purge_unattended(&before);
        self.settle_cluster(cluster);
        let has_yielded = self.crew.has_yielded();
        self.crew.configure(&generation, &self.log);
        if has_yielded {
            self.open.steer_admission(&self.shared.quic_keys, Admits::Successor);
        }
        Ok((warnings, good))
    }

    /// What a reload would change now, as text. It changes nothing.
    fn preview(&mut self) -> Result<String, Vec<String>> {
        self.is_reloadable().map_err(|why| vec![why])?;
        let mut reading = self.read_aside()?;
        cache_zones::check(&self.config, &reading.config)?;
        let kept = self.keep_start(&mut reading.config)?;
        php::check(&reading.config)?;
        // As in `-t`: files that a draft creates stay, but the draft is dropped.
        let draft = assemble::draft(&reading.config, &self.shared, ReadCertificates::default())?;
        assemble::check_logs(&reading.config).map_err(|text| vec![text])?;
        self.open.check(&reading.config)?;
        let mut text = String::new();
        for change in reading::changes(self.invocation, &self.outline) {
            write_change(&mut text, &change);
        }
        let (old, new) = (listens(&self.config), listens(&reading.config));
        write_list_changes(&mut text, "listen", (&old, &new));
        let ends = |ends: &CertificateEnds| -> Vec<String> {
            let all = ends.files().into_iter();
            all.map(|(file, _)| format!("certificate {file}")).collect()
        };
        let (old, new) = (ends(&self.certificate_ends), ends(&draft.certificate_ends));
        write_list_changes(&mut text, "", (&old, &new));
        for file in self.certificate_ends.renewed(&draft.certificate_ends) {
            let _ = writeln!(text, "~ certificate {file}: the file is another one");
        }
        let (old, new) = (caches(&self.config), caches(&reading.config));
        write_list_changes(&mut text, "", (&old, &new));
        if text.is_empty() {
            text.push_str("a reload would change nothing\n");
        }
        for warning in reading.warnings.iter().chain(&draft.warnings).chain(&kept) {
            let _ = writeln!(text, "warning: {warning}");
        }
        Ok(text)
    }
}

/// A block that is different: `+` new, `-` gone, `~` changed.
fn write_change(text: &mut String, change: &OutlineChange) {
    let label = &change.label;
    let _ = match &change.kind {
        OutlineChangeKind::Added { place } => writeln!(text, "+ {label} ({place})"),
        OutlineChangeKind::Removed => writeln!(text, "- {label}"),
        OutlineChangeKind::Reordered => writeln!(text, "~ {label}: in another order"),
        OutlineChangeKind::Changed { place, .. } => writeln!(text, "~ {label} ({place})"),
    };
    let OutlineChangeKind::Changed { added, gone, .. } = &change.kind else { return };
    for line in added.iter().take(LINES_SHOWN) {
        let _ = writeln!(text, "    + {line}");
    }
    if let Some(more @ 1..) = added.len().checked_sub(LINES_SHOWN) {
        let _ = writeln!(text, "    + {more} more");
    }
    if *gone > 0 {
        let what = if *gone == 1 { "directive" } else { "directives" };
        let _ = writeln!(text, "    - {gone} {what}");
    }
}

/// The entries of only one of two lists.
fn write_list_changes(text: &mut String, word: &str, (old, new): (&[String], &[String])) {
    for (sign, all, others) in [('+', new, old), ('-', old, new)] {
        for one in all.iter().filter(|one| !others.contains(one)) {
            let _ = writeln!(text, "{}", format!("{sign} {word} {one}").replace("  ", " "));
        }
    }
}

fn listens(config: &Config) -> Vec<String> {
    let all = config.http.iter().flat_map(|http| &http.listens);
    all.map(|listen| {
        let kind = match listen.transport {
            ListenTransport::Quic => " quic",
            ListenTransport::Tcp if listen.tls => " ssl",
            ListenTransport::Tcp => "",
        };
        format!("{}{kind}", listen.address)
    })
    .collect()
}

/// The caches on disk; dropping one loses its objects.
fn caches(config: &Config) -> Vec<String> {
    let zones = config.http.iter().flat_map(|http| &http.cache_zones);
    zones.map(|zone| format!("cache zone {}", zone.name)).collect()
}
