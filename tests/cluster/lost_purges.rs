//! Purges that never reached the stream, or that the stream has lost: the node that carried them
//! out takes no page from before them.

use bolide_testkit::wait_until;

use super::PAGE;
use super::objects::{Fleet, SHARE};
use crate::explain::ask;

const STREAM: &str = "bolide:{bolide}:purges";

fn wait_joined(fleet: &Fleet, node: usize) {
    wait_until("the node to be connected", || {
        let status = fleet.status(node);
        status.contains("\"caught_up\":true") && status.contains("\"answering\":true")
    });
}

#[test]
fn a_process_that_never_reached_valkey_is_not_covered_by_the_end_record_before_it() {
    let mut fleet = Fleet::start(2, SHARE);
    let _key = fleet.fill(0, "/a", PAGE);
    let _key = fleet.fill(0, "/b", "X-LiteSpeed-Cache-Control: public,max-age=3600");
    fleet.nodes[1].restart("QUIT");
    wait_joined(&fleet, 1);
    assert_eq!(fleet.page(1, "/b"), "run 1", "it said farewell");
    fleet.nodes[1].signal("QUIT");
    let _ended = fleet.nodes[1].wait_exit();
    fleet.valkey.signal("STOP");
    fleet.nodes[1].start_again();
    let _purged = ask(&fleet.nodes[1], &["cache", "purge", "--tag", "menu"]).succeeded();
    fleet.nodes[1].signal("KILL");
    let _killed = fleet.nodes[1].wait_exit();
    fleet.valkey.signal("CONT");
    fleet.nodes[1].start_again();
    wait_joined(&fleet, 1);
    assert_eq!(fleet.page(1, "/a"), "run 2", "it was purged here");
    // What is filled from now on is shared.
    let _key = fleet.fill(0, "/c", PAGE);
    assert_eq!(fleet.page(1, "/c"), "run 1");
}

#[test]
fn a_purge_that_the_stream_has_lost_counts_where_it_was_carried_out() {
    let mut fleet = Fleet::start(2, SHARE);
    let _key = fleet.fill(0, "/a", PAGE);
    let newest = fleet.valkey.cli(&["xrevrange", STREAM, "+", "-", "count", "1"]).text();
    let newest = newest.lines().next().unwrap().to_owned();
    fleet.nodes[0].signal("STOP");
    let tag = ["cache", "purge", "--tag", "menu", "--wait", "1"];
    let _purged = ask(&fleet.nodes[1], &tag).succeeded();
    // What a replica does that takes over without the last entry.
    let script = "local last = redis.call('xrevrange', KEYS[1], '+', '-', 'count', 1)[1][1]
        redis.call('xdel', KEYS[1], last)
        return redis.call('xsetid', KEYS[1], ARGV[1])";
    let _lost = fleet.valkey.cli(&["eval", script, "1", STREAM, &newest]).succeeded();
    wait_until("the node to notice", || fleet.status(1).contains("\"losses\":2"));
    let all = ["cache", "purge", "--tag", "none", "--wait", "1"];
    let _purged = ask(&fleet.nodes[1], &all).succeeded();
    assert_eq!(fleet.page(1, "/a"), "run 2", "it was purged here: {}", fleet.status(1));
    fleet.nodes[0].signal("CONT");
    wait_until("the other one to receive it", || fleet.page(0, "/a") == "run 2");
    // The process after it heeds that as well.
    fleet.app.say("/a", PAGE);
    fleet.nodes[1].restart("QUIT");
    wait_joined(&fleet, 1);
    assert_eq!(fleet.page(1, "/a"), "run 2", "{}", fleet.status(1));
    let _key = fleet.fill(0, "/b", PAGE);
    assert_eq!(fleet.page(1, "/b"), "run 1", "what comes later is shared");
}
