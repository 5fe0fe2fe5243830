//! The checks as a test, so that what fails them does not land.

use std::io::Write as _;

#[test]
fn the_tree_is_tidy() {
    let problems = xtask::tidy::check(&xtask::tidy::root());
    assert!(problems.is_empty(), "\n{}", problems.join("\n"));
}

#[test]
fn dependencies_only_go_down() {
    let problems = xtask::layers::check(&xtask::tidy::root());
    assert!(problems.is_empty(), "\n{}", problems.join("\n"));
}

#[test]
fn counts_move_in_their_direction_only() {
    let verdict = xtask::counts::check(&xtask::tidy::root());
    // Straight to the descriptor: the harness hides what a test that passes prints.
    let mut out = std::io::stderr().lock();
    for line in verdict.better {
        let _ = writeln!(out, "better; write it with `cargo x tidy --write`: {line}");
    }
    assert!(verdict.problems.is_empty(), "\n{}", verdict.problems.join("\n"));
}
