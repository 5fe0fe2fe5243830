//! `sim --seed N --scenario NAME`: prints what happens with one seed, or tries many.

use std::io::Write as _;
use std::process::ExitCode;

use bolide_sim::{RunReport, Scenario, Telling, run};
use lexopt::prelude::{Long, ValueExt as _};

const USAGE: &str = "usage: sim --scenario SCENARIO --seed N\n\
                     \x20      sim --scenario SCENARIO --from N --to N    tells which seeds fail\n\
                     SCENARIO: calm clients disk reload drain slow mix apps origin tangle\n\
                     \x20         cache cache-origin cache-tight cache-change cache-esi\n\
                     \x20         cache-disk proxy quic quic-rough quic-reload quic-drain\n\
                     \x20         quic-death quic-tangle secure upkeep dav dearth names\n\
                     \x20         audiences\n";

struct Wanted {
    scenario: Scenario,
    from: u64,
    to: u64,
    telling: Telling,
}

fn read() -> Result<Wanted, lexopt::Error> {
    let mut arguments = lexopt::Parser::from_env();
    let mut wanted = Wanted { scenario: Scenario::Calm, from: 1, to: 1, telling: Telling::Aloud };
    while let Some(argument) = arguments.next()? {
        match argument {
            Long("scenario") => {
                let name = arguments.value()?.string()?;
                wanted.scenario = Scenario::named(&name).ok_or("no such scenario")?;
            }
            Long("seed") => {
                wanted.from = arguments.value()?.parse()?;
                wanted.to = wanted.from;
            }
            Long("from") => {
                (wanted.from, wanted.telling) = (arguments.value()?.parse()?, Telling::Silent);
            }
            Long("to") => wanted.to = arguments.value()?.parse()?,
            _ => return Err(argument.unexpected()),
        }
    }
    Ok(wanted)
}

fn main() -> ExitCode {
    let mut out = std::io::stdout().lock();
    let wanted = match read() {
        Ok(wanted) => wanted,
        Err(error) => {
            // A closed standard output has no reader.
            let _ = write!(out, "{error}\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    let (mut failed, mut answered, mut recalls) = (0, 0, 0);
    for seed in wanted.from..=wanted.to {
        let lived = std::panic::catch_unwind(|| run(wanted.scenario, seed, wanted.telling));
        let report = lived.unwrap_or_else(|_| RunReport {
            complaints: vec!["it panicked".to_owned()],
            ..RunReport::default()
        });
        let _ = out.write_all(report.text.as_bytes());
        failed += u64::from(!report.complaints.is_empty());
        answered += report.answered;
        recalls += report.recalls;
        if wanted.telling == Telling::Aloud {
            let (right, forgiven) = (report.answered, report.forgiven);
            let _ = writeln!(out, "{right} right answers, {forgiven} forgiven");
        }
        for complaint in report.complaints {
            let _ = writeln!(out, "{} {seed}: {complaint}", wanted.scenario.name());
        }
    }
    if wanted.telling == Telling::Silent {
        let (name, seeds) = (wanted.scenario.name(), wanted.to + 1 - wanted.from);
        let _ = write!(out, "{name}: {seeds} seeds, {answered} right answers, ");
        let _ = writeln!(out, "{recalls} recalled, {failed} failed");
    }
    if failed > 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}
