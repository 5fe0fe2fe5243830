//! No response of a cached site shows a body for another audience, or one that is older than a
//! purge which was acknowledged before the request began, by whichever version of HTTP and on
//! connections that visitors share: random histories of `tests/histories.py`, which has the rules.
//! A failure prints its seed; `BOLIDE_HISTORIES_SEED` runs that one alone.

use bolide_testkit::ports::TestPorts;
use bolide_testkit::tools;

use crate::BOLIDE;

/// Runs the histories of so many seeds, all from the same first one.
fn histories(count: &str, more: &[&str]) {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/histories.py");
    let ports = TestPorts::claim();
    let port = ports.port(0).to_string();
    let only = std::env::var("BOLIDE_HISTORIES_SEED").ok();
    let (from, count) = only.as_deref().map_or(("1", count), |seed| (seed, "1"));
    let mut args = vec!["--bolide", BOLIDE, "--port", &port, "--from", from, "--count", count];
    args.extend(more);
    let done = tools::python(script, args);
    assert_eq!(done.code, 0, "{done}");
    // Else the histories would prove nothing.
    for happened in ["304", "hits", "purges", "h1-kept", "h2-clear", "h2-tls", "h3"] {
        let happens = done.text().contains(&format!(" {happened}"));
        assert!(happens || only.is_some(), "{happened}: never: {done}");
    }
}

#[test]
fn random_histories_show_nothing_of_others_and_nothing_that_was_purged_before() {
    histories("6", &[]);
}

#[test]
fn reloads_upgrades_and_kills_bring_nothing_back_that_was_purged() {
    histories("3", &["--chaos"]);
}
