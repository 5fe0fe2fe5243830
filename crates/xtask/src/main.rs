//! `cargo x tidy`: the checks of this crate, from the command line.
//! `cargo x tidy --write` first allows the counts that the tree has.

use std::io::Write as _;
use std::process::ExitCode;

fn main() -> ExitCode {
    let root = xtask::tidy::root();
    let mut out = std::io::stdout().lock();
    if std::env::args().any(|argument| argument == "--write")
        && let Err(error) = xtask::counts::write(&root)
    {
        let _ = writeln!(out, "the counts cannot be written: {error}");
        return ExitCode::FAILURE;
    }
    let mut problems = xtask::tidy::check(&root);
    problems.extend(xtask::layers::check(&root));
    let counts = xtask::counts::check(&root);
    problems.extend(counts.problems);
    for line in counts.better {
        let _ = writeln!(out, "better; write it with `cargo x tidy --write`: {line}");
    }
    for problem in &problems {
        let _ = writeln!(out, "{problem}");
    }
    if problems.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
