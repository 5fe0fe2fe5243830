//! Owns: when lines are due, in which order, and what is lost.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bolide_base::Instant;
use bolide_conf::model::{LogBuffer, Syslog, SyslogServer};

use proptest::prelude::*;

use super::{Due, LogTarget, Logs, VARIABLE_KEPT, VARIABLE_MAX, VariableFile, datagrams};

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

#[test]
fn a_turn_that_is_written_in_between_loses_no_line() {
    let mut logs = Logs::new(1, 2);
    let line = [b'x'; 999];
    let (mut written, mut most) = (0, 0);
    for _ in 0..10_000 {
        logs.line(LogTarget::File(b"/a"), at(1), |out| {
            out.extend_from_slice(&line);
            out.push(b'\n');
        });
        if logs.is_crowded() {
            let pieces = drain(&mut logs, 1, Due::Only);
            most = most.max(pieces[0].1.len());
            written += pieces[0].1.lines().count();
            assert!(!logs.is_crowded());
        }
    }
    written +=
        drain(&mut logs, 1, Due::Only).iter().map(|(_, text)| text.lines().count()).sum::<usize>();
    assert_eq!((written, logs.lost()), (10_000, 0));
    assert!(most < super::TARGET_SIZE_MAX / 2, "{most}");
}

#[test]
fn a_target_that_takes_nothing_is_not_crowded() {
    let mut logs = Logs::new(1, 2);
    for _ in 0..2000 {
        logs.line(LogTarget::Stderr, at(1), |out| out.extend_from_slice(&[b'x'; 1000]));
        if logs.is_crowded() {
            let id = logs.poll_write(at(1), Due::Only).expect("it was not offered yet");
            logs.written(id, 0, at(1));
            assert!(logs.poll_write(at(1), Due::Only).is_none());
        }
        assert!(!logs.is_crowded());
    }
    assert!(logs.lost() > 0);
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
    assert!(drain(&mut logs, 30, Due::Only).is_empty());
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

#[test]
fn every_file_that_the_configuration_names_keeps_its_lines() {
    let mut logs = Logs::new(1, 2);
    let names: Vec<String> = (0..2000).map(|n| format!("/{n}")).collect();
    let buffer = |name: &String| {
        let path = Arc::new(PathBuf::from(name));
        LogBuffer { path, size: 4, flush: None, gzip: None }
    };
    logs.set_buffers(names.iter().take(1000).map(buffer).collect());
    for name in &names {
        let target = LogTarget::File(name.as_bytes());
        logs.line(target, at(0), |out| out.extend_from_slice(b"1\n"));
    }
    assert_eq!(drain(&mut logs, 0, Due::Only).len(), 1000);
    assert_eq!(drain(&mut logs, 0, Due::Everything).len(), 1000);
    assert!(logs.lost() == 0 && logs.is_empty());
}

fn variable(logs: &mut Logs, number: usize) {
    let path = format!("/{number}");
    let file = VariableFile {
        path: path.as_bytes(),
        root: b"/",
        cache: None,
        context: b"",
        serial: number as u64,
    };
    logs.line(LogTarget::Variable(file), at(0), |out| out.extend_from_slice(b"1\n"));
}

#[test]
fn names_that_requests_make_are_bounded_and_forgotten() {
    let mut logs = Logs::new(1, 2);
    for round in 0..3 {
        let lost = logs.lost();
        (0..5000).for_each(|number| variable(&mut logs, round * 5000 + number));
        let taken = drain(&mut logs, 0, Due::Only).len();
        assert_eq!(logs.lost() - lost, 5000 - taken as u64);
        assert!(taken >= VARIABLE_MAX - VARIABLE_KEPT, "{taken}");
        assert_eq!((logs.variable, logs.order.len()), (VARIABLE_KEPT, VARIABLE_KEPT));
        assert_eq!(logs.slots.len(), VARIABLE_MAX, "places are used again");
    }
}

#[test]
fn what_waits_at_a_reload_leaves_in_the_form_that_it_was_written_for() {
    let path = Arc::new(PathBuf::from("/a"));
    let buffers = |gzip| [LogBuffer { path: path.clone(), size: 4, flush: None, gzip }].into();
    let mut logs = Logs::new(1, 2);
    logs.set_buffers(buffers(Some(1)));
    put(&mut logs, 0, "12345\n");
    let id = logs.poll_write(at(0), Due::Everything).unwrap();
    assert_eq!(logs.batch(id).gzip, Some(1));
    logs.written(id, 0, at(0));
    logs.set_buffers(buffers(None));
    put(&mut logs, 2_000_000, "6\n");
    let late = at(2_000_000);
    let id = logs.poll_write(late, Due::Everything).unwrap();
    let batch = logs.batch(id);
    let packed =
        bolide_files::encode::compress(bolide_http::negotiate::Coding::Gzip, 1, b"12345\n")
            .unwrap();
    assert_eq!((batch.gzip, batch.lines), (None, &packed[..]));
    let bytes = batch.lines.len();
    logs.written(id, bytes, late);
    // The other way round: plain lines wait, and later ones are to be compressed.
    let id = logs.poll_write(late, Due::Everything).unwrap();
    logs.written(id, 0, late);
    logs.set_buffers(buffers(Some(1)));
    put(&mut logs, 9_000_000, "7\n");
    let seen = drain_with_forms(&mut logs, at(9_000_000));
    assert_eq!(seen, [(None, b"6\n".to_vec()), (Some(1), b"7\n".to_vec())]);
    assert!(logs.is_empty());
}

fn drain_with_forms(logs: &mut Logs, now: Instant) -> Vec<(Option<u8>, Vec<u8>)> {
    let mut seen = Vec::new();
    while let Some(id) = logs.poll_write(now, Due::Everything) {
        let batch = logs.batch(id);
        seen.push((batch.gzip, batch.lines.to_vec()));
        let bytes = batch.lines.len();
        logs.written(id, bytes, now);
    }
    seen
}

#[derive(Clone, Debug)]
enum Op {
    Line(u8, u8),
    Write(u8, Due),
    Wait(u32),
    Reload(u8),
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        4 => (0_u8..6, any::<u8>()).prop_map(|(file, length)| Op::Line(file, length)),
        3 => (any::<u8>(), prop_oneof![Just(Due::Only), Just(Due::Everything)])
            .prop_map(|(part, due)| Op::Write(part, due)),
        2 => (0_u32..200_000_000).prop_map(Op::Wait),
        1 => any::<u8>().prop_map(Op::Reload),
    ]
}

/// Buffers of the files whose bits are set.
fn some_buffers(bits: u8) -> Arc<[LogBuffer]> {
    let some = (0..6).filter(|file| bits & (1 << file) != 0);
    let buffer = |file| LogBuffer {
        path: Arc::new(PathBuf::from(format!("/{file}"))),
        size: 100,
        flush: (file % 2 == 0).then_some(Duration::from_millis(5)),
        gzip: None,
    };
    some.map(buffer).collect()
}

fn take(logs: &mut Logs, now: Instant, due: Due, part: u8, got: &mut [Vec<u8>; 6]) {
    while let Some(id) = logs.poll_write(now, due) {
        let batch = logs.batch(id);
        let LogTarget::File(path) = batch.target else { panic!("{batch:?}") };
        let bytes = batch.lines.len() * usize::from(part) / 255;
        got[usize::from(path[1] - b'0')].extend_from_slice(&batch.lines[..bytes]);
        logs.written(id, bytes, now);
    }
}

proptest! {
    #[test]
    fn lines_arrive_whole_in_order_and_in_time(ops in proptest::collection::vec(op(), 0..80)) {
        let mut logs = Logs::new(1, 2);
        let (mut now, mut sent, mut got) = (0_u64, <[Vec<u8>; 6]>::default(), Default::default());
        for (turn, op) in ops.into_iter().enumerate() {
            match op {
                Op::Line(file, length) => {
                    let line = vec![turn as u8; usize::from(length)];
                    let path = format!("/{file}");
                    let target = LogTarget::File(path.as_bytes());
                    logs.line(target, at(now), |out| out.extend_from_slice(&line));
                    sent[usize::from(file)].extend(line);
                }
                Op::Write(part, due) => take(&mut logs, at(now), due, part, &mut got),
                Op::Wait(nanos) => now += u64::from(nanos),
                Op::Reload(bits) => logs.set_buffers(some_buffers(bits)),
            }
        }
        // A sleeper finds something due at the next deadline, until only lines are left that
        // are gathered without a time.
        take(&mut logs, at(now), Due::Only, 255, &mut got);
        for _ in 0..100 {
            let Some(next) = logs.next_deadline() else { break };
            take(&mut logs, next, Due::Only, 255, &mut got);
            now = now.max(next.as_nanos());
        }
        prop_assert!(logs.next_deadline().is_none());
        prop_assert!(logs.slots.iter().all(|slot| slot.flush_at().is_none() && !slot.has_ready()));
        take(&mut logs, at(now), Due::Everything, 255, &mut got);
        prop_assert!(logs.is_empty());
        prop_assert_eq!(sent, got);
    }
}
