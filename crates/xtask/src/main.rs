//! `cargo x tidy`: the checks of this crate, from the command line.

use std::io::Write as _;
use std::process::ExitCode;

fn main() -> ExitCode {
    let root = xtask::tidy::root();
    let mut problems = xtask::tidy::check(&root);
    problems.extend(xtask::layers::check(&root));
    let mut out = std::io::stdout().lock();
    for problem in &problems {
        let _ = writeln!(out, "{problem}");
    }
    if problems.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
