//! Runs of the audience oracle (`bolide_testkit::audiences`), for depth: thousands of sites, each
//! small and quick.
//!
//! Two servers get the same requests at the same time. One has a cache; the other has a store in
//! which nothing fits, so its responses depend on no earlier request. The oracle compares them.
//! There are no other faults: no client misbehaves, no network breaks.

mod machine;
mod origin;

use std::fmt::Write as _;

use bolide_cache::StoreLimits;
use bolide_testkit::audiences::{AudienceSite, Oracle, Play, VisitSeen, VisitorAct, VisitorAsk};

use crate::run::RunReport;
use crate::scenario::MILLI;
use crate::scenario_log::Telling;
use machine::AudienceMachine;

/// Plays `seed`. Where something is wrong, what is told is the shortest play that is found in which
/// it still is.
#[must_use]
pub fn run(seed: u64, telling: Telling) -> RunReport {
    let play = Play::of(seed);
    let report = perform(&play, seed, telling);
    if report.complaints.is_empty() || telling == Telling::Silent {
        return report;
    }
    perform(&shrink(play, seed), seed, telling)
}

/// The same without acts and locations that are not needed for something to be wrong.
fn shrink(mut play: Play, seed: u64) -> Play {
    let fails = |play: &Play| !perform(play, seed, Telling::Silent).complaints.is_empty();
    let mut at = 0;
    while at < play.acts.len() {
        let mut less = play.clone();
        less.acts.remove(at);
        if fails(&less) {
            play = less;
        } else {
            at += 1;
        }
    }
    let mut at = 0;
    while let Some(site) = without_line(&play.site, at) {
        let less = Play { site, ..play.clone() };
        if fails(&less) {
            play = less;
        } else {
            at += 1;
        }
    }
    play
}

/// A site without one of the locations.
fn without_line(site: &AudienceSite, at: usize) -> Option<AudienceSite> {
    let is_location = |line: &&str| line.starts_with("location ");
    let line = site.http.lines().filter(is_location).nth(at)?;
    let less = |text: &str| text.replacen(&format!("{line}\n"), "", 1);
    let (http, reloaded) = (less(&site.http), less(&site.reloaded));
    let mut site = site.clone();
    (site.http, site.reloaded) = (http, reloaded);
    Some(site)
}

/// Nothing fits in.
const NOTHING: StoreLimits = StoreLimits { bytes: 1 << 20, object_bytes: 0, front_entries: 2 };

/// Everything of a small site fits in.
const ENOUGH: StoreLimits =
    StoreLimits { bytes: 1 << 20, object_bytes: 1 << 16, front_entries: 64 };

struct Stage {
    oracle: Oracle,
    keeps: AudienceMachine,
    forgets: AudienceMachine,
    report: RunReport,
}

fn perform(play: &Play, seed: u64, telling: Telling) -> RunReport {
    let tree = play.site.has_tree;
    let keeps = AudienceMachine::start(&play.site.http, ENOUGH, seed, tree, telling);
    let forgets = AudienceMachine::start(&play.site.http, NOTHING, seed, false, Telling::Silent);
    let (keeps, forgets) = match (keeps, forgets) {
        (Ok(keeps), Ok(forgets)) => (keeps, forgets),
        (Err(problem), _) | (_, Err(problem)) => {
            let complaints = vec![format!("{problem}\n{}", play.site.http)];
            return RunReport { complaints, ..RunReport::default() };
        }
    };
    let mut stage =
        Stage { oracle: Oracle::new(play), keeps, forgets, report: RunReport::default() };
    if telling == Telling::Aloud {
        stage.report.text = play.site.http.clone();
    }
    for act in &play.acts {
        if let Err(problem) = stage.act(act, &play.site, telling) {
            stage.report.complaints.push(problem);
            break;
        }
    }
    let Stage { keeps, mut report, oracle, .. } = stage;
    if telling == Telling::Aloud {
        report.text.push_str(keeps.kernel.borrow().story.text());
    }
    report.complaints.extend(keeps.kernel.borrow().offences.iter().cloned());
    report.recalls = oracle.kept as u64;
    report
}

impl Stage {
    fn act(
        &mut self,
        act: &VisitorAct,
        site: &AudienceSite,
        telling: Telling,
    ) -> Result<(), String> {
        match act {
            VisitorAct::Ask(asks) => self.ask(asks, telling),
            VisitorAct::Wait(seconds) => {
                self.keeps.pass(seconds * 1000 * MILLI, &mut self.oracle);
                Ok(())
            }
            VisitorAct::Reload => {
                self.keeps.reload(&site.reloaded)?;
                self.forgets.reload(&site.reloaded)
            }
            VisitorAct::Crash => {
                self.keeps.crash()?;
                self.forgets.crash()
            }
        }
    }

    fn ask(&mut self, asks: &[VisitorAsk], telling: Telling) -> Result<(), String> {
        let asks: Vec<VisitorAsk> = asks.iter().map(|ask| self.oracle.leave(ask)).collect();
        let since = self.oracle.made();
        let given = self.keeps.ask(&asks, &mut self.oracle)?;
        let now = self.keeps.kernel.borrow().nanos;
        for (ask, given) in asks.iter().zip(&given) {
            self.forgets.catch_up(now);
            let plain = ask.plain();
            let wanted = self.forgets.ask(std::slice::from_ref(&plain), &mut self.oracle)?;
            if telling == Telling::Aloud {
                let VisitSeen { status, body, .. } = given;
                let line = body.lines().next().unwrap_or_default();
                let mut kernel = self.keeps.kernel.borrow_mut();
                kernel
                    .tell(|| format!("visitor: {}", ask.text().trim_end().replace("\r\n", " | ")));
                kernel.tell(|| format!("         {status} {line}"));
            }
            let judged = self.oracle.judge(ask, since, given, &wanted[0]);
            match judged {
                Ok(()) => self.report.answered += 1,
                Err(problem) => self.report.complaints.push(told(ask, &problem)),
            }
        }
        Ok(())
    }
}

fn told(ask: &VisitorAsk, problem: &str) -> String {
    let mut text = String::new();
    for line in ask.text().trim_end().lines() {
        let _ = write!(text, "{line} | ");
    }
    format!("{problem}\n  to {text}")
}
