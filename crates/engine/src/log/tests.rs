//! Owns: when lines are due, in which order, and what is lost.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use base::Instant;
use conf::model::{LogBuffer, Syslog, SyslogServer};

use super::{Due, LogTarget, Logs, datagrams};

fn at(nanos: u64) -> Instant {
    Instant::from_nanos(nanos)
}

fn drain(logs: &mut Logs, now: u64, due: Due) -> Vec<(String, String)> {
    let mut seen = Vec::new();
    while let Some(id) = logs.poll_write(at(now), due) {
        let batch = logs.batch(id);
        let kind = match batch.target {
            LogTarget::File(path) => String::from_utf8(path.to_vec()).unwrap(),
            other => format!("{other:?}"),
        };
        seen.push((kind, String::from_utf8(batch.lines.to_vec()).unwrap()));
        let bytes = batch.lines.len();
        logs.written(id, bytes, at(now));
    }
    seen
}

fn buffered(size: usize, flush: Option<u64>) -> Logs {
    let mut logs = Logs::new(1, 2);
    let path = Arc::new(PathBuf::from("/a"));
    let flush = flush.map(Duration::from_nanos);
    logs.set_buffers([LogBuffer { path, size, flush, gzip: None }].into());
    logs
}

fn put(logs: &mut Logs, now: u64, line: &str) {
    logs.line(LogTarget::File(b"/a"), at(now), |out| out.extend_from_slice(line.as_bytes()));
}

#[test]
fn lines_of_one_target_leave_together_and_in_order() {
    let mut logs = Logs::new(1, 2);
    put(&mut logs, 5, "1\n");
    logs.line(LogTarget::Stderr, at(5), |out| out.extend_from_slice(b"2\n"));
    put(&mut logs, 5, "3\n");
    let seen = drain(&mut logs, 5, Due::Only);
    assert_eq!(seen.len(), 2);
    assert_eq!(seen[0].1, "1\n3\n");
    assert_eq!(seen[1], ("Stderr".to_owned(), "2\n".to_owned()));
    assert!(logs.is_empty() && drain(&mut logs, 9, Due::Everything).is_empty());
}

#[test]
fn gathered_lines_leave_when_the_next_one_does_not_fit() {
    let mut logs = buffered(4, None);
    put(&mut logs, 0, "1\n");
    put(&mut logs, 0, "2\n");
    assert!(drain(&mut logs, 9, Due::Only).is_empty(), "they fit exactly");
    put(&mut logs, 0, "3\n");
    assert_eq!(drain(&mut logs, 9, Due::Only)[0].1, "1\n2\n");
    put(&mut logs, 0, "12345\n");
    assert_eq!(drain(&mut logs, 9, Due::Only)[0].1, "3\n12345\n", "too long to be gathered");
    put(&mut logs, 0, "4\n");
    assert_eq!(drain(&mut logs, 9, Due::Everything)[0].1, "4\n");
    assert!(logs.is_empty());
}

#[test]
fn gathered_lines_leave_when_they_are_old_enough() {
    let mut logs = buffered(4, Some(10));
    put(&mut logs, 0, "1\n");
    assert_eq!(logs.next_deadline(), Some(at(10)));
    assert!(drain(&mut logs, 9, Due::Only).is_empty());
    assert_eq!(drain(&mut logs, 10, Due::Only).len(), 1);
    put(&mut logs, 20, "1\n");
    put(&mut logs, 21, "23\n");
    assert_eq!(drain(&mut logs, 21, Due::Only)[0].1, "1\n");
    assert_eq!(logs.next_deadline(), Some(at(31)), "counted from the line that stayed");
    assert_eq!(drain(&mut logs, 31, Due::Only)[0].1, "23\n");
    assert_eq!(logs.next_deadline(), None);
}

#[test]
fn what_a_slow_reader_left_is_offered_again_in_a_moment() {
    let mut logs = Logs::new(1, 2);
    put(&mut logs, 0, "123\n");
    let id = logs.poll_write(at(0), Due::Only).unwrap();
    assert_eq!(logs.written(id, 1, at(0)), 0);
    assert!(logs.poll_write(at(1), Due::Only).is_none());
    let next = logs.next_deadline().unwrap();
    assert!(next > at(1) && !logs.is_empty());
    assert_eq!(drain(&mut logs, 1_000_000, Due::Only)[0].1, "23\n");
    assert!(logs.is_empty() && logs.next_deadline().is_none());
}

#[test]
fn what_is_compressed_already_goes_before_what_came_later() {
    let mut logs = buffered(4, None);
    put(&mut logs, 0, "12345\n");
    let id = logs.poll_write(at(0), Due::Only).unwrap();
    logs.written_packed(id, b"rest", at(0));
    put(&mut logs, 0, "6\n");
    let seen = drain(&mut logs, 1_000_000, Due::Everything);
    assert_eq!((&seen[0].1[..], &seen[1].1[..]), ("rest", "6\n"));
    assert!(logs.is_empty());
}

#[test]
fn lines_for_syslog_stay_apart() {
    let mut logs = Logs::new(1, 2);
    let server = |facility| {
        Arc::new(Syslog {
            server: SyslogServer::Unix("/s".into()),
            facility,
            severity: 6,
            tag: "nginx".to_owned(),
            nohostname: false,
        })
    };
    for line in ["one", "", "three"] {
        let out = |out: &mut Vec<u8>| out.extend_from_slice(line.as_bytes());
        logs.line(LogTarget::Syslog(&server(1)), at(0), out);
    }
    logs.line(LogTarget::Syslog(&server(2)), at(0), |out| out.push(b'x'));
    let id = logs.poll_write(at(0), Due::Only).unwrap();
    let lines = logs.batch(id).lines.to_vec();
    let all: Vec<(&[u8], usize)> = datagrams(&lines).collect();
    assert_eq!(all, [(&b"one"[..], 7), (b"", 11), (b"three", 20)]);
    logs.written(id, 7, at(0));
    logs.written(id, 13, at(0));
    assert_ne!(logs.poll_write(at(0), Due::Only), Some(id), "another server's");
}

#[test]
fn a_target_that_nobody_drains_stops_growing_and_counts_its_losses() {
    let mut logs = Logs::new(1, 2);
    for _ in 0..3000 {
        let line = |out: &mut Vec<u8>| out.resize(out.len() + 1024, b'x');
        logs.line(LogTarget::Stderr, at(0), line);
    }
    assert_eq!(logs.lost(), 3000 - 1024);
    let id = logs.poll_write(at(0), Due::Only).unwrap();
    assert_eq!(logs.written(id, 1 << 20, at(0)), 3000 - 1024, "told once");
}
