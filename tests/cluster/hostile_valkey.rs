//! A Valkey that is hostile, full or damaged: no wrong page, no waiting, few lines in the log.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpStream;

use bolide_testkit::{Valkey, wait_until};

use super::{Keeps, Node, PAGE, block};
use crate::explain::ask;

const STREAM: &str = "bolide:{bolide}:purges";

#[test]
fn unreadable_entries_drop_the_cache() {
    let valkey = Valkey::default();
    let two = Node::joined(&valkey, "two", "");
    for (page, words, reason) in [
        ("/1", &["xadd", STREAM, "*", "hello", "world"][..], "an entry of the stream is foreign"),
        ("/2", &["xadd", STREAM, "*", "purges", "bolideC2 and rubbish"], "damaged"),
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
    assert_ne!(two.page("/b"), page, "later entries are received");
}

#[test]
fn a_node_continues_alone_if_the_stream_has_another_type() {
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
fn all_nodes_drop_their_caches_if_the_stream_lost_entries() {
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
    let _id = valkey.cli(&["eval", &oversize(STREAM, "purges"), "0"]).succeeded();
    two.wait_purged("/a", &before);
    wait_until("the node to be back", || two.status().contains("\"caught_up\":true"));
    assert!(two.log().contains("dropped: an entry of the stream is too large"), "{}", two.log());
    let page = two.fill("/b", PAGE);
    let one = Node::joined(&valkey, "one", "");
    one.purged(&["--tag", "menu", "--wait", "2"]);
    assert_ne!(two.page("/b"), page);
}

/// A script that adds an entry of 40 MB.
fn oversize(stream: &str, field: &str) -> String {
    format!("return server.call('xadd', '{stream}', '*', '{field}', string.rep('x', 40000000))")
}

/// One that stays in the stream costs what was cached when it came, and nothing after that: neither
/// a look at the newest purges nor a restart, wherever in the stream it is.
#[test]
fn an_entry_that_is_too_large_is_named_and_passed_once() {
    let valkey = Valkey::default();
    let mut two = Node::start(Keeps::OnDisk, &block(&valkey, "two", "reply_timeout 20s;"));
    two.wait_joined();
    let before = two.fill("/a", PAGE);
    let id = valkey.cli(&["eval", &oversize(STREAM, "purges"), "0"]).succeeded().text();
    two.wait_purged("/a", &before);
    let id = id.trim().trim_matches('"').to_owned();
    let wanted = format!("the entry {id} of the stream is too large to be read, and was skipped");
    wait_until("the entry to be named", || two.log().contains(&wanted));
    let page = two.fill("/b", PAGE);
    let listed = ask(&two.server, &["cluster", "purges"]).succeeded().text();
    assert!(listed.contains(&format!("{id} ?: unreadable, as it has 40000102 bytes")), "{listed}");
    // Now it is the first one of the stream.
    let _trimmed = valkey.cli(&["xtrim", STREAM, "minid", "=", &id]).succeeded();
    let one = Node::joined(&valkey, "one", "");
    one.purged(&["--tag", "other", "--wait", "2"]);
    assert_eq!(two.page("/b"), page, "{}", two.log());
    wait_until("the page is a file", || {
        ask(&two.server, &["cache", "list"]).text().contains("and on disk")
    });
    bolide_testkit::pause(1500);
    two.server.restart("TERM");
    two.wait_joined();
    assert_eq!(two.page("/b"), page, "{}", two.log());
    let log = two.log();
    assert_eq!(log.matches("goes on alone").count(), 1, "the reply to who waits: {log}");
    assert_eq!(log.matches("is too large to be read").count(), 1, "{log}");
}

/// A node that is killed and finds nothing but such an entry has its place all the same.
#[test]
fn a_node_starts_with_an_entry_that_is_too_large() {
    let valkey = Valkey::default();
    let mut two = Node::joined(&valkey, "two", "");
    two.server.signal("KILL");
    two.server.wait_exit();
    let script = format!("server.call('del', '{STREAM}') {}", oversize(STREAM, "purges"));
    let _id = valkey.cli(&["eval", &script, "0"]).succeeded();
    hears_purges_after_its_start(&valkey, &mut two);
}

/// Entries of few bytes and so many parts that a reply with all of them is too large.
#[test]
fn entries_of_many_parts_are_passed() {
    const PARTS: usize = 600_000;
    let valkey = Valkey::default();
    let mut two = Node::joined(&valkey, "two", "");
    two.server.signal("KILL");
    two.server.wait_exit();
    let mut stream = TcpStream::connect(("127.0.0.1", valkey.port())).unwrap();
    for _ in 0..9 {
        let (parts, length) = (PARTS + 3, STREAM.len());
        let head = format!("*{parts}\r\n$4\r\nXADD\r\n${length}\r\n{STREAM}\r\n$1\r\n*\r\n");
        stream.write_all(&[head.into_bytes(), b"$1\r\nx\r\n".repeat(PARTS)].concat()).unwrap();
        let (mut reply, mut reader) = (String::new(), BufReader::new(&stream));
        for _line in ["its length", "the id"] {
            let _bytes = reader.read_line(&mut reply).unwrap();
        }
        assert!(reply.starts_with('$'), "{reply}");
    }
    hears_purges_after_its_start(&valkey, &mut two);
}

/// A node that was killed comes back, and a purge of another node reaches it.
fn hears_purges_after_its_start(valkey: &Valkey, two: &mut Node) {
    two.server.start_again();
    two.wait_joined();
    let page = two.fill("/b", PAGE);
    let one = Node::joined(valkey, "one", "");
    one.purged(&["--tag", "menu", "--wait", "2"]);
    assert_ne!(two.page("/b"), page);
}

/// Without the right to run scripts the connection ends with the reply, and the next one goes on
/// behind the entry.
#[test]
fn an_entry_that_is_too_large_is_passed_without_scripts() {
    let valkey = Valkey::default();
    assert!(valkey.cli(&["acl", "setuser", "default", "-eval"]).text().contains("OK"));
    let mut two = Node::joined(&valkey, "two", "");
    let add = |more: &str| {
        assert!(valkey.cli(&["acl", "setuser", "default", "+eval"]).text().contains("OK"));
        let script = format!("{more} {}", oversize(STREAM, "purges"));
        let _id = valkey.cli(&["eval", &script, "0"]).succeeded();
        assert!(valkey.cli(&["acl", "setuser", "default", "-eval"]).text().contains("OK"));
    };
    let before = two.fill("/a", PAGE);
    add("");
    two.wait_purged("/a", &before);
    two.server.signal("KILL");
    two.server.wait_exit();
    add(&format!("server.call('del', '{STREAM}')"));
    hears_purges_after_its_start(&valkey, &mut two);
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
    wait_until("the log line", || one.log().contains("more purges waited than \"purge_queue\""));
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
fn a_slow_valkey_is_abandoned_after_the_timeout() {
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
