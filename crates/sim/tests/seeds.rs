//! Many lives of every kind; first those that ended badly once.

use bolide_sim::kernel::dearth::DOOR;
use bolide_sim::{Scenario, Telling, run};

/// Seeds of each scenario that every test run tries; `BOLIDE_SIM_SEEDS` is another number.
const SEEDS: u64 = 300;

/// How many seeds of a scenario are tried.
fn seeds(scenario: Scenario) -> u64 {
    let wanted = std::env::var("BOLIDE_SIM_SEEDS").ok();
    let wanted =
        wanted.map_or(SEEDS, |wanted| wanted.parse().expect("BOLIDE_SIM_SEEDS is a number"));
    match scenario {
        // One of them has ten times the clients, and a dozen deaths.
        Scenario::CacheDisk => wanted.div_ceil(3),
        // Plays are small.
        Scenario::Audiences => wanted.div_ceil(3) * PLAYS,
        _ => wanted,
    }
}

/// Lines of `scenario seed: story`; the story is for people.
const REMEMBERED: &str = include_str!("../seeds.txt");

fn remembered(scenario: Scenario) -> impl Iterator<Item = u64> {
    REMEMBERED.lines().filter(|line| !line.starts_with('#')).filter_map(move |line| {
        let (name, rest) = line.split_once(' ')?;
        let (seed, _) = rest.split_once(':')?;
        (Scenario::named(name)? == scenario).then(|| seed.parse().expect("a seed is a number"))
    })
}

fn try_all(scenario: Scenario) {
    let seeds = seeds(scenario);
    let (answered, recalls) = try_seeds(scenario, remembered(scenario).chain(1..=seeds));
    let reads_much = scenario != Scenario::CacheDisk || recalls > 20 * seeds;
    assert!(reads_much, "{recalls} answers from files");
    // A world in which nothing is answered would be found to be without fault.
    assert!(answered as u64 > seeds, "{answered} answers in all");
}

/// How many right answers there were, and how many of them were recalled.
fn try_seeds(scenario: Scenario, seeds: impl Iterator<Item = u64>) -> (usize, u64) {
    let (mut answered, mut recalls) = (0, 0);
    for seed in seeds {
        let lived = std::panic::catch_unwind(|| run(scenario, seed, Telling::Silent));
        let name = scenario.name();
        let report = lived.unwrap_or_else(|_| panic!("{name} {seed} panicked"));
        let hint = format!("cargo run -p bolide-sim -- --scenario {name} --seed {seed}");
        assert!(report.complaints.is_empty(), "{hint}\n{}", report.complaints.join("\n"));
        answered += report.answered;
        recalls += report.recalls;
    }
    (answered, recalls)
}

/// So many plays for each three seeds of another scenario, in each of two tests.
const PLAYS: u64 = 10;

fn try_plays(first: u64) {
    let count = seeds(Scenario::Audiences);
    let plays = (0..count).map(|play| 1 + first + 2 * play);
    let (answered, kept) = try_seeds(Scenario::Audiences, plays);
    // Where nothing is kept, no client can be given what was made for another.
    assert!(kept * 2 > count, "{kept} kept answers of {answered}");
}

#[test]
fn polite_clients_get_every_answer_whole_and_leave_nothing_behind() {
    try_all(Scenario::Calm);
}

#[test]
fn clients_that_abort_stall_or_talk_nonsense_harm_nobody_else() {
    try_all(Scenario::Clients);
}

#[test]
fn no_answer_mixes_versions_of_a_file_that_is_not_written_to_meanwhile() {
    try_all(Scenario::Disk);
}

#[test]
fn a_reload_loses_no_request() {
    try_all(Scenario::Reload);
}

#[test]
fn quitting_answers_every_request_that_was_read() {
    try_all(Scenario::Drain);
}

#[test]
fn slow_readers_and_deep_pipelines_get_their_answers_in_order() {
    try_all(Scenario::Slow);
}

#[test]
fn everything_may_go_wrong_at_once() {
    try_all(Scenario::Mix);
}

#[test]
fn origins_that_speak_http_may_do_all_that_applications_may() {
    try_all(Scenario::Proxy);
}

#[test]
fn the_same_seed_tells_the_same_story_to_the_byte() {
    for scenario in Scenario::ALL {
        let (one, two) = (run(scenario, 7, Telling::Aloud), run(scenario, 7, Telling::Aloud));
        assert!(!one.text.is_empty());
        assert_eq!(one.text, two.text, "{}", scenario.name());
    }
}

#[test]
fn applications_that_behave_get_every_byte_and_give_every_byte() {
    try_all(Scenario::Apps);
}

#[test]
fn applications_that_die_or_hang_cost_their_own_request_and_nothing_else() {
    try_all(Scenario::Origin);
}

#[test]
fn clients_that_leave_applications_leave_nothing_behind() {
    try_all(Scenario::Tangle);
}

#[test]
fn pages_are_put_together_of_all_their_parts() {
    try_all(Scenario::Assembly);
}

#[test]
fn pages_lack_only_what_failed_and_leave_nothing_behind() {
    try_all(Scenario::AssemblyTangle);
}

#[test]
fn kept_answers_are_right_and_asked_for_once() {
    try_all(Scenario::Cache);
}

#[test]
fn kept_answers_are_right_whatever_applications_and_clients_do() {
    try_all(Scenario::CacheOrigin);
}

#[test]
fn kept_answers_are_right_in_a_store_that_is_too_small() {
    try_all(Scenario::CacheTight);
}

#[test]
fn kept_answers_are_right_across_reloads_and_jumps_of_the_clock() {
    try_all(Scenario::CacheChange);
}

#[test]
fn pages_are_put_together_from_what_their_client_may_see() {
    try_all(Scenario::CacheEsi);
}

#[test]
fn kept_answers_are_right_from_a_bad_disk_after_any_death() {
    try_all(Scenario::CacheDisk);
}

#[test]
fn every_request_over_quic_is_answered_to_whoever_stays_moves_or_waits() {
    try_all(Scenario::Quic);
}

#[test]
fn a_reload_loses_no_request_over_quic() {
    try_all(Scenario::QuicReload);
}

#[test]
fn the_death_of_a_server_is_told_to_clients_of_quic_at_once() {
    try_all(Scenario::QuicDeath);
}

#[test]
fn a_network_that_loses_datagrams_costs_no_answer_but_its_own() {
    try_all(Scenario::QuicRough);
}

#[test]
fn quitting_answers_every_request_over_quic_that_was_read() {
    try_all(Scenario::QuicDrain);
}

#[test]
fn applications_behind_quic_get_every_byte_and_leave_nothing_behind() {
    try_all(Scenario::QuicTangle);
}

#[test]
fn clients_and_origins_are_who_they_show_that_they_are() {
    try_all(Scenario::Secure);
}

#[test]
fn logs_files_of_bodies_and_passwords_are_right_across_reloads() {
    try_all(Scenario::Upkeep);
}

#[test]
fn no_origin_is_called_at_an_address_that_was_not_told_for_its_name() {
    try_all(Scenario::Names);
}

/// Every call of the table fails in some world, and none of them holds a worker up.
#[test]
fn every_call_of_the_door_may_fail() {
    try_seeds(Scenario::Dearth, remembered(Scenario::Dearth));
    let mut struck = std::collections::BTreeSet::new();
    let seeds = seeds(Scenario::Dearth);
    for seed in 1..=seeds {
        let report = run(Scenario::Dearth, seed, Telling::Silent);
        let hint = format!("cargo run -p bolide-sim -- --scenario dearth --seed {seed}");
        assert!(report.complaints.is_empty(), "{hint}\n{}", report.complaints.join("\n"));
        struck.extend(report.struck);
    }
    let spared: Vec<_> = DOOR.iter().filter(|(call, _)| !struck.contains(call)).collect();
    assert!(spared.is_empty() || seeds < 50, "{spared:?}");
}

#[test]
fn nobody_is_given_what_was_made_for_somebody_else() {
    try_seeds(Scenario::Audiences, remembered(Scenario::Audiences));
    try_plays(0);
}

#[test]
fn what_was_refused_to_one_visitor_is_not_given_to_another() {
    try_plays(1);
}

#[test]
fn files_that_many_change_at_once_are_whole_and_as_each_of_them_was_told() {
    try_all(Scenario::Dav);
}
