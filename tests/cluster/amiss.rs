//! A Valkey that is hostile, full or damaged: no wrong page, no waiting, few lines in the log.

use bolide_testkit::{Valkey, wait_until};

use super::{Node, PAGE};

const STREAM: &str = "bolide:{bolide}:purges";

#[test]
fn entries_that_cannot_be_read_drop_what_is_cached() {
    let valkey = Valkey::default();
    let two = Node::joined(&valkey, "two", "");
    for (page, words, reason) in [
        ("/1", &["xadd", STREAM, "*", "hello", "world"][..], "an entry of the stream is foreign"),
        ("/2", &["xadd", STREAM, "*", "purges", "bolideC1 and rubbish"], "damaged"),
        ("/3", &["xadd", STREAM, "*", "purges", "x", "more", "y"], "foreign"),
    ] {
        let before = two.fill(page, PAGE);
        let _id = valkey.cli(words).succeeded();
        two.wait_purged(page, &before);
        let status = two.status();
        assert!(status.contains(reason), "{status}");
    }
    let log = two.log();
    assert_eq!(log.matches("all cached pages are dropped").count(), 2, "one line a minute: {log}");
    let page = two.fill("/b", PAGE);
    let one = Node::joined(&valkey, "one", "");
    one.purged(&["--tag", "menu", "--wait", "2"]);
    assert_ne!(two.page("/b"), page, "what comes behind is heard");
}

#[test]
fn a_stream_that_is_none_leaves_the_node_alone() {
    let valkey = Valkey::default();
    let two = Node::joined(&valkey, "two", "");
    let before = two.fill("/a", PAGE);
    let _gone = valkey.cli(&["del", STREAM]).succeeded();
    let _other = valkey.cli(&["hset", STREAM, "a", "b"]).succeeded();
    wait_until("the node to notice", || two.log().contains("this node goes on alone"));
    assert_eq!(two.page("/a"), before, "it serves");
    bolide_testkit::pause(1500);
    assert_eq!(two.log().matches("goes on alone").count(), 1, "{}", two.log());
    let _gone = valkey.cli(&["del", STREAM]).succeeded();
    two.wait_purged("/a", &before);
    assert!(two.status().contains("\"caught_up\":true"));
}

#[test]
fn a_stream_that_lost_entries_costs_all_nodes_what_they_cache() {
    let valkey = Valkey::default();
    let (one, two) = (Node::joined(&valkey, "one", ""), Node::joined(&valkey, "two", ""));
    one.purged(&["--tag", "menu", "--wait", "2"]);
    let before = [&one, &two].map(|node| node.fill("/a", PAGE));
    let _empty = valkey.cli(&["flushall"]).succeeded();
    one.wait_purged("/a", &before[0]);
    two.wait_purged("/a", &before[1]);
}

#[test]
fn a_valkey_without_memory_is_waited_for() {
    let valkey = Valkey::default();
    let (one, two) = (Node::joined(&valkey, "one", ""), Node::joined(&valkey, "two", ""));
    let before = two.fill("/a", PAGE);
    let _full = valkey.cli(&["config", "set", "maxmemory", "1"]).succeeded();
    let own = one.fill("/a", PAGE);
    one.purged(&["--tag", "menu"]);
    assert_ne!(one.page("/a"), own);
    wait_until("the node to notice", || one.log().contains("purges wait to be sent"));
    bolide_testkit::pause(1500);
    assert_eq!(one.log().matches("purges wait to be sent").count(), 1);
    assert_eq!(two.page("/a"), before);
    let _room = valkey.cli(&["config", "set", "maxmemory", "0"]).succeeded();
    two.wait_purged("/a", &before);
}

#[test]
fn an_entry_that_is_too_large_is_skipped() {
    let valkey = Valkey::default();
    let two = Node::joined(&valkey, "two", "");
    let before = two.fill("/a", PAGE);
    let script =
        format!("return server.call('xadd', '{STREAM}', '*', 'purges', string.rep('x', 40000000))");
    let _id = valkey.cli(&["eval", &script, "0"]).succeeded();
    two.wait_purged("/a", &before);
    wait_until("the node to be back", || two.status().contains("\"caught_up\":true"));
    assert!(two.log().contains("dropped: an entry of the stream is too large"), "{}", two.log());
    let page = two.fill("/b", PAGE);
    let one = Node::joined(&valkey, "one", "");
    one.purged(&["--tag", "menu", "--wait", "2"]);
    assert_ne!(two.page("/b"), page);
}

#[test]
fn more_purges_than_may_wait_become_one_of_everything() {
    let mut valkey = Valkey::default();
    let one = Node::joined(&valkey, "one", "purge_queue 3;");
    let two = Node::joined(&valkey, "two", "");
    let before = two.fill("/b", "X-LiteSpeed-Cache-Control: public,max-age=3600");
    valkey.kill();
    wait_until("the node to notice", || one.log().contains("this node goes on alone"));
    for tag in ["a", "b", "c", "d", "e"] {
        one.purged(&["--tag", tag]);
    }
    valkey.start_again();
    two.wait_purged("/b", &before);
    wait_until("it to be told", || one.log().contains("more purges waited than \"purge_queue\""));
    assert!(one.status().contains("\"overflows\":1"), "{}", one.status());
}

#[test]
fn old_entries_are_trimmed_and_the_stream_keeps_a_young_one() {
    let valkey = Valkey::default();
    let one = Node::joined(&valkey, "one", "purge_keep_time 2s;");
    for tag in ["a", "b", "c", "d"] {
        one.purged(&["--tag", tag, "--wait", "1"]);
    }
    let first = valkey.cli(&["xrange", STREAM, "-", "+", "count", "1"]).text();
    wait_until("old entries to go", || {
        valkey.cli(&["xrange", STREAM, "-", "+", "count", "1"]).text() != first
    });
    let page = one.fill("/a", PAGE);
    bolide_testkit::pause(4000);
    assert_eq!(one.page("/a"), page, "a node that is connected loses nothing: {}", one.log());
}

#[test]
fn a_slow_valkey_is_given_up_after_the_timeout() {
    let valkey = Valkey::default();
    let one = Node::joined(&valkey, "one", "reply_timeout 100ms;");
    valkey.signal("STOP");
    let start = std::time::Instant::now();
    wait_until("the node to notice", || one.log().contains("no answer in time"));
    // The read of the stream waits for a second by itself.
    assert!(start.elapsed().as_secs_f64() < 30.0);
    valkey.signal("CONT");
    one.wait_joined();
}
