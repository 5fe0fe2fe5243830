//! `sim --scenario NAME --seed N` prints the trace of one seed; `--from` and `--to` try many seeds.

use std::io::Write as _;
use std::process::ExitCode;

use bolide_sim::{RunReport, Scenario, TraceMode, run};
use lexopt::prelude::{Long, ValueExt as _};

const USAGE: &str = "usage: sim --scenario SCENARIO --seed N\n\
                     \x20      sim --scenario SCENARIO --from N --to N    lists failing seeds\n\
                     SCENARIO: calm clients disk reload drain slow mix apps origin tangle\n\
                     \x20         cache cache-origin cache-tight cache-change cache-esi\n\
                     \x20         cache-disk proxy quic quic-rough quic-reload quic-drain\n\
                     \x20         quic-death quic-tangle secure upkeep dav dns pools\n\
                     \x20         audiences\n";

struct Options {
    scenario: Scenario,
    from: u64,
    to: u64,
    trace_mode: TraceMode,
}

fn parse_arguments() -> Result<Options, lexopt::Error> {
    let mut arguments = lexopt::Parser::from_env();
    let mut options =
        Options { scenario: Scenario::Calm, from: 1, to: 1, trace_mode: TraceMode::On };
    while let Some(argument) = arguments.next()? {
        match argument {
            Long("scenario") => {
                let name = arguments.value()?.string()?;
                options.scenario = Scenario::named(&name).ok_or("no such scenario")?;
            }
            Long("seed") => {
                options.from = arguments.value()?.parse()?;
                options.to = options.from;
            }
            Long("from") => {
                (options.from, options.trace_mode) = (arguments.value()?.parse()?, TraceMode::Off);
            }
            Long("to") => options.to = arguments.value()?.parse()?,
            _ => return Err(argument.unexpected()),
        }
    }
    Ok(options)
}

fn main() -> ExitCode {
    let mut out = std::io::stdout().lock();
    let options = match parse_arguments() {
        Ok(options) => options,
        Err(error) => {
            // A write fails if standard output is closed.
            let _ = write!(out, "{error}\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    let (mut failed, mut correct, mut recalls) = (0, 0, 0);
    for seed in options.from..=options.to {
        let outcome = std::panic::catch_unwind(|| run(options.scenario, seed, options.trace_mode));
        let report = outcome.unwrap_or_else(|_| RunReport {
            violations: vec!["it panicked".to_owned()],
            ..RunReport::default()
        });
        let _ = out.write_all(report.text.as_bytes());
        failed += u64::from(!report.violations.is_empty());
        correct += report.answered;
        recalls += report.recalls;
        if options.trace_mode == TraceMode::On {
            let (correct, excused) = (report.answered, report.excused);
            let _ = writeln!(out, "{correct} correct responses, {excused} excused");
        }
        for violation in report.violations {
            let _ = writeln!(out, "{} {seed}: {violation}", options.scenario.name());
        }
    }
    if options.trace_mode == TraceMode::Off {
        let (name, seeds) = (options.scenario.name(), options.to + 1 - options.from);
        let _ = write!(out, "{name}: {seeds} seeds, {correct} correct responses, ");
        let _ = writeln!(out, "{recalls} recalled, {failed} failed");
    }
    if failed > 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}
