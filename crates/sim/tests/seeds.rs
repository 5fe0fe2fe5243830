//! Runs every scenario with many seeds; first the seeds of earlier failures.

use bolide_sim::kernel::syscall_faults::IO_CALLS;
use bolide_sim::{Scenario, TraceMode, run};

/// Seeds of each scenario per test run; `BOLIDE_SIM_SEEDS` overrides it.
const SEEDS: u64 = 120;

/// The number of seeds of a scenario.
fn seeds(scenario: Scenario) -> u64 {
    let wanted = std::env::var("BOLIDE_SIM_SEEDS").ok();
    let wanted =
        wanted.map_or(SEEDS, |wanted| wanted.parse().expect("BOLIDE_SIM_SEEDS is a number"));
    match scenario {
        // A run of this scenario has ten times the clients, and a dozen crashes.
        Scenario::CacheDisk => wanted.div_ceil(3),
        // Plays are small.
        Scenario::Audiences => wanted.div_ceil(3) * PLAYS,
        _ => wanted,
    }
}

/// Lines of `scenario seed: what happened`; the text is for readers.
const REGRESSIONS: &str = include_str!("../seeds.txt");

fn regression_seeds(scenario: Scenario) -> impl Iterator<Item = u64> {
    REGRESSIONS.lines().filter(|line| !line.starts_with('#')).filter_map(move |line| {
        let (name, rest) = line.split_once(' ')?;
        let (seed, _) = rest.split_once(':')?;
        (Scenario::named(name)? == scenario).then(|| seed.parse().expect("a seed is a number"))
    })
}

fn try_all(scenario: Scenario) {
    let seeds = seeds(scenario);
    let (answered, recalls) = try_seeds(scenario, regression_seeds(scenario).chain(1..=seeds));
    let reads_files = scenario != Scenario::CacheDisk || recalls > 20 * seeds;
    assert!(reads_files, "{recalls} responses from files");
    // A run in which every request fails would have no violations either.
    assert!(answered as u64 > seeds, "{answered} responses in all");
}

/// The number of correct responses, and how many of them came from files.
fn try_seeds(scenario: Scenario, seeds: impl Iterator<Item = u64>) -> (usize, u64) {
    let (mut answered, mut recalls) = (0, 0);
    for seed in seeds {
        let outcome = std::panic::catch_unwind(|| run(scenario, seed, TraceMode::Off));
        let name = scenario.name();
        let report = outcome.unwrap_or_else(|_| panic!("{name} {seed} panicked"));
        let hint = format!("cargo run -p bolide-sim -- --scenario {name} --seed {seed}");
        assert!(report.violations.is_empty(), "{hint}\n{}", report.violations.join("\n"));
        answered += report.answered;
        recalls += report.recalls;
    }
    (answered, recalls)
}

/// Plays for each three seeds of another scenario, in each of two tests.
const PLAYS: u64 = 10;

fn try_plays(first: u64) {
    let count = seeds(Scenario::Audiences);
    let plays = (0..count).map(|play| 1 + first + 2 * play);
    let (answered, cached) = try_seeds(Scenario::Audiences, plays);
    // If nothing is cached, no client can get a response for another one.
    assert!(cached * 2 > count, "{cached} cached responses of {answered}");
}

#[test]
fn polite_clients_get_every_response_and_nothing_leaks() {
    try_all(Scenario::Calm);
}

#[test]
fn clients_that_abort_stall_or_send_garbage_affect_no_other_client() {
    try_all(Scenario::Clients);
}

#[test]
fn no_response_mixes_versions_of_a_file_unless_it_is_rewritten_in_place() {
    try_all(Scenario::Disk);
}

#[test]
fn a_reload_loses_no_request() {
    try_all(Scenario::Reload);
}

#[test]
fn a_drain_answers_every_request_that_was_read() {
    try_all(Scenario::Drain);
}

#[test]
fn slow_readers_and_deep_pipelines_get_responses_in_order() {
    try_all(Scenario::Slow);
}

#[test]
fn invariants_hold_with_all_faults_at_once() {
    try_all(Scenario::Mix);
}

#[test]
fn invariants_hold_with_faulty_http_upstreams() {
    try_all(Scenario::Proxy);
}

#[test]
fn invariants_hold_with_faulty_upstreams_that_take_one_request_for_each_connection() {
    try_all(Scenario::Uwsgi);
    try_all(Scenario::Scgi);
}

#[test]
fn invariants_hold_with_faulty_upstreams_that_speak_http2() {
    try_all(Scenario::Grpc);
    try_all(Scenario::ProxyHttp2);
}

#[test]
fn the_same_seed_produces_the_same_trace() {
    for scenario in Scenario::ALL {
        let (one, two) = (run(scenario, 7, TraceMode::On), run(scenario, 7, TraceMode::On));
        assert!(!one.text.is_empty());
        assert_eq!(one.text, two.text, "{}", scenario.name());
    }
}

#[test]
fn applications_without_faults_lose_no_byte() {
    try_all(Scenario::Apps);
}

#[test]
fn a_faulty_application_affects_only_its_own_request() {
    try_all(Scenario::Origin);
}

#[test]
fn aborted_requests_to_applications_leak_nothing() {
    try_all(Scenario::Tangle);
}

#[test]
fn esi_pages_have_all_their_fragments() {
    try_all(Scenario::Assembly);
}

#[test]
fn esi_pages_lack_only_failed_fragments_and_nothing_leaks() {
    try_all(Scenario::AssemblyTangle);
}

#[test]
fn cached_pages_are_correct_and_fetches_are_coalesced() {
    try_all(Scenario::Cache);
}

#[test]
fn cached_pages_are_correct_with_faulty_applications_and_clients() {
    try_all(Scenario::CacheOrigin);
}

#[test]
fn cached_pages_are_correct_in_a_store_that_is_too_small() {
    try_all(Scenario::CacheTight);
}

#[test]
fn cached_pages_are_correct_across_reloads_and_clock_jumps() {
    try_all(Scenario::CacheChange);
}

#[test]
fn cached_esi_pages_have_only_fragments_for_their_client() {
    try_all(Scenario::CacheEsi);
}

#[test]
fn cached_pages_are_correct_from_a_faulty_disk_after_crashes() {
    try_all(Scenario::CacheDisk);
}

#[test]
fn every_quic_request_is_answered_across_migrations_and_pauses() {
    try_all(Scenario::Quic);
}

#[test]
fn a_reload_loses_no_quic_request() {
    try_all(Scenario::QuicReload);
}

#[test]
fn quic_clients_get_a_stateless_reset_after_a_crash() {
    try_all(Scenario::QuicDeath);
}

#[test]
fn lost_datagrams_affect_only_their_own_connection() {
    try_all(Scenario::QuicRough);
}

#[test]
fn a_drain_answers_every_quic_request_that_was_read() {
    try_all(Scenario::QuicDrain);
}

#[test]
fn applications_behind_quic_lose_no_byte_and_nothing_leaks() {
    try_all(Scenario::QuicTangle);
}

#[test]
fn clients_and_upstreams_are_verified_by_their_certificates() {
    try_all(Scenario::Secure);
}

#[test]
fn logs_request_bodies_and_passwords_are_correct_across_reloads() {
    try_all(Scenario::Upkeep);
}

#[test]
fn upstreams_are_connected_to_only_at_addresses_of_their_name() {
    try_all(Scenario::Dns);
}

/// Every call of the table must fail in some run, and no failure may block a worker.
#[test]
fn invariants_hold_when_any_system_call_fails() {
    try_seeds(Scenario::SyscallFaults, regression_seeds(Scenario::SyscallFaults));
    let mut failed_calls = std::collections::BTreeSet::new();
    let seeds = seeds(Scenario::SyscallFaults);
    for seed in 1..=seeds {
        let report = run(Scenario::SyscallFaults, seed, TraceMode::Off);
        let hint = format!("cargo run -p bolide-sim -- --scenario dearth --seed {seed}");
        assert!(report.violations.is_empty(), "{hint}\n{}", report.violations.join("\n"));
        failed_calls.extend(report.failed_calls);
    }
    let never_failed: Vec<_> =
        IO_CALLS.iter().filter(|(call, _)| !failed_calls.contains(call)).collect();
    assert!(never_failed.is_empty() || seeds < 50, "{never_failed:?}");
}

#[test]
fn no_visitor_gets_a_response_for_another_one() {
    try_seeds(Scenario::Audiences, regression_seeds(Scenario::Audiences));
    try_plays(0);
}

#[test]
fn no_visitor_gets_a_response_for_another_one_in_further_plays() {
    try_plays(1);
}

#[test]
fn concurrent_webdav_changes_leave_complete_files_and_true_statuses() {
    try_all(Scenario::Dav);
}

#[test]
fn a_pool_has_a_process_for_each_request_and_loses_no_place() {
    try_all(Scenario::Pools);
}
