//! Runs of the audience oracle (`bolide_testkit::audiences`), for depth: thousands of sites, each
//! small and quick.
//!
//! Two servers get the same requests at the same time. One has a cache; the other has a store in
//! which nothing fits, so its responses depend on no earlier request. The oracle compares them.
//! There are no other faults: no client misbehaves, no network breaks.

mod machine;
mod upstream;

use std::fmt::Write as _;

use bolide_cache::StoreLimits;
use bolide_testkit::audiences::{AudienceSite, Oracle, Play, VisitSeen, VisitorAct, VisitorAsk};

use crate::run::RunReport;
use crate::run_trace::TraceMode;
use crate::time::MILLI;
use machine::AudienceMachine;

/// Runs the play of `seed`. If the run fails, the report is that of the shortest play found that
/// still fails.
#[must_use]
pub fn run(seed: u64, trace_mode: TraceMode) -> RunReport {
    let play = Play::of(seed);
    let report = run_play(&play, seed, trace_mode);
    if report.violations.is_empty() || trace_mode == TraceMode::Off {
        return report;
    }
    run_play(&shrink(play, seed), seed, trace_mode)
}

/// The play without steps and locations that the failure does not need.
fn shrink(mut play: Play, seed: u64) -> Play {
    let fails = |play: &Play| !run_play(play, seed, TraceMode::Off).violations.is_empty();
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

/// The site without one of its locations.
fn without_line(site: &AudienceSite, at: usize) -> Option<AudienceSite> {
    let is_location = |line: &&str| line.starts_with("location ");
    let line = site.http.lines().filter(is_location).nth(at)?;
    let less = |text: &str| text.replacen(&format!("{line}\n"), "", 1);
    let (http, reloaded) = (less(&site.http), less(&site.reloaded));
    let mut site = site.clone();
    (site.http, site.reloaded) = (http, reloaded);
    Some(site)
}

/// A store too small for any object.
const NOTHING: StoreLimits = StoreLimits { bytes: 1 << 20, object_bytes: 0, front_entries: 2 };

/// A store with room for every object of a small site.
const ENOUGH: StoreLimits =
    StoreLimits { bytes: 1 << 20, object_bytes: 1 << 16, front_entries: 64 };

struct Comparison {
    oracle: Oracle,
    cached: AudienceMachine,
    uncached: AudienceMachine,
    report: RunReport,
}

fn run_play(play: &Play, seed: u64, trace_mode: TraceMode) -> RunReport {
    let tree = play.site.has_tree;
    let cached = AudienceMachine::start(&play.site.http, ENOUGH, seed, tree, trace_mode);
    let uncached = AudienceMachine::start(&play.site.http, NOTHING, seed, false, TraceMode::Off);
    let (cached, uncached) = match (cached, uncached) {
        (Ok(cached), Ok(uncached)) => (cached, uncached),
        (Err(problem), _) | (_, Err(problem)) => {
            let violations = vec![format!("{problem}\n{}", play.site.http)];
            return RunReport { violations, ..RunReport::default() };
        }
    };
    let mut comparison =
        Comparison { oracle: Oracle::new(play), cached, uncached, report: RunReport::default() };
    if trace_mode == TraceMode::On {
        comparison.report.text = play.site.http.clone();
    }
    for act in &play.acts {
        if let Err(problem) = comparison.step(act, &play.site, trace_mode) {
            comparison.report.violations.push(problem);
            break;
        }
    }
    let Comparison { cached, mut report, oracle, .. } = comparison;
    if trace_mode == TraceMode::On {
        report.text.push_str(cached.kernel.borrow().run_trace.text());
    }
    report.violations.extend(cached.kernel.borrow().violations.iter().cloned());
    report.recalls = oracle.from_cache as u64;
    report
}

impl Comparison {
    fn step(
        &mut self,
        act: &VisitorAct,
        site: &AudienceSite,
        trace_mode: TraceMode,
    ) -> Result<(), String> {
        match act {
            VisitorAct::Ask(asks) => self.ask(asks, trace_mode),
            VisitorAct::Wait(seconds) => {
                self.cached.pass(seconds * 1000 * MILLI, &mut self.oracle);
                Ok(())
            }
            VisitorAct::Reload => {
                self.cached.reload(&site.reloaded)?;
                self.uncached.reload(&site.reloaded)
            }
            VisitorAct::Crash => {
                self.cached.crash()?;
                self.uncached.crash()
            }
        }
    }

    fn ask(&mut self, asks: &[VisitorAsk], trace_mode: TraceMode) -> Result<(), String> {
        let asks: Vec<VisitorAsk> =
            asks.iter().map(|ask| self.oracle.add_validators(ask)).collect();
        let since = self.oracle.responses_made();
        let given = self.cached.ask(&asks, &mut self.oracle)?;
        let now = self.cached.kernel.borrow().nanos;
        for (ask, given) in asks.iter().zip(&given) {
            self.uncached.catch_up(now);
            let plain = ask.plain();
            let wanted = self.uncached.ask(std::slice::from_ref(&plain), &mut self.oracle)?;
            if trace_mode == TraceMode::On {
                let VisitSeen { status, body, .. } = given;
                let line = body.lines().next().unwrap_or_default();
                let mut kernel = self.cached.kernel.borrow_mut();
                kernel
                    .trace(|| format!("visitor: {}", ask.text().trim_end().replace("\r\n", " | ")));
                kernel.trace(|| format!("         {status} {line}"));
            }
            let checked = self.oracle.check(ask, since, given, &wanted[0]);
            match checked {
                Ok(()) => self.report.answered += 1,
                Err(problem) => self.report.violations.push(describe(ask, &problem)),
            }
        }
        Ok(())
    }
}

fn describe(ask: &VisitorAsk, problem: &str) -> String {
    let mut text = String::new();
    for line in ask.text().trim_end().lines() {
        let _ = write!(text, "{line} | ");
    }
    format!("{problem}\n  to {text}")
}
