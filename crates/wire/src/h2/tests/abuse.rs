//! Peers that cause excessive load get ENHANCE_YOUR_CALM.

use super::super::abuse::{
    CONTINUATIONS_MAX, CONTROL_QUEUED_MAX, EMPTY_DATA_MAX, PINGS_MAX, PRIORITIES_MAX, SETTINGS_MAX,
    STRAYS_MAX, UNKNOWN_MAX, WINDOW_UPDATES_MAX,
};
use super::super::code::ENHANCE_YOUR_CALM;
use super::{
    Bench, END, GET, H2Settings, block, data, frame, get, headers, post, rst, settings, window,
};
use crate::patience::{CANCELS_MAX, PREMATURE_FOR, WASTES_MAX};

/// Repeats frames until the connection fails, and returns how many it accepted.
fn endure(bench: &mut Bench, mut next: impl FnMut(u32) -> Vec<u8>) -> u32 {
    let mut count = 0;
    while bench.error.is_none() {
        bench.send(&next(count));
        bench.log.clear();
        if bench.error.is_none() {
            bench.out();
        }
        count += 1;
        assert!(count < 10_000, "no limit");
    }
    let error = bench.error.unwrap();
    assert_eq!(error.code, u64::from(ENHANCE_YOUR_CALM), "{}", error.reason);
    count
}

#[test]
fn floods_of_cheap_frames_end_at_their_limits() {
    let mut bench = Bench::new();
    assert_eq!(endure(&mut bench, |_| frame(6, 0, 0, &[0; 8])), u32::from(PINGS_MAX) + 1);
    // The preface counted as one.
    let mut bench = Bench::new();
    assert_eq!(endure(&mut bench, |_| settings(&[])), u32::from(SETTINGS_MAX));
    let mut bench = Bench::new();
    let priority = |_| frame(2, 0, 1, &[0, 0, 0, 3, 0]);
    assert_eq!(endure(&mut bench, priority), u32::from(PRIORITIES_MAX) + 1);
    let mut bench = Bench::new();
    let update = |_| frame(0x10, 0, 0, b"\0\0\0\x09u=1");
    assert_eq!(endure(&mut bench, update), u32::from(PRIORITIES_MAX) + 1);
    let mut bench = Bench::new();
    assert_eq!(endure(&mut bench, |_| window(0, 1)), u32::from(WINDOW_UPDATES_MAX) + 1);
    let mut bench = Bench::new();
    assert_eq!(endure(&mut bench, |_| frame(0xaa, 0, 0, b"")), u32::from(UNKNOWN_MAX) + 1);
    let mut bench = Bench::new();
    bench.send(&post(1));
    assert_eq!(endure(&mut bench, |_| data(1, 0, b"")), u32::from(EMPTY_DATA_MAX) + 1);
    let mut bench = Bench::new();
    bench.send(&[post(1), rst(1, 8)].concat());
    assert_eq!(endure(&mut bench, |_| rst(1, 8)), u32::from(STRAYS_MAX) + 1);
}

#[test]
fn requests_that_are_cancelled_at_once_end_the_connection() {
    let resets = WASTES_MAX;
    let mut bench = Bench::new();
    let count = endure(&mut bench, |i| [get(2 * i + 1), rst(2 * i + 1, 8)].concat());
    assert_eq!(count, resets + 1);
    // A request that makes us reset it counts the same.
    let mut bench = Bench::new();
    let count = endure(&mut bench, |i| [post(2 * i + 1), window(2 * i + 1, 0)].concat());
    assert_eq!(count, resets + 1);
    let mut bench = Bench::new();
    assert_eq!(endure(&mut bench, |i| headers(2 * i + 1, END, &block(&GET[1..]))), resets + 1);
    let settings = H2Settings { max_concurrent_streams: 1, ..H2Settings::default() };
    let mut bench = Bench::open(settings);
    assert_eq!(endure(&mut bench, |i| get(2 * i + 1)), CANCELS_MAX + 2);
    // Browsers cancel later, when the user navigates away.
    let mut bench = Bench::new();
    let later = |i: u32| if i.is_multiple_of(2) { get(i + 1) } else { rst(i, 8) };
    assert_eq!(endure(&mut bench, later), 2 * CANCELS_MAX + 2);
}

#[test]
fn requests_that_have_waited_are_cancelled_for_nothing() {
    // Calls of gRPC whose deadlines expire, a hundred at a time, each time after this wait.
    let rounds = |wait: u64, phase: u64| {
        let endless = H2Settings { keepalive_requests: 1_000_000, ..H2Settings::default() };
        let mut bench = Bench::open(endless);
        let pass = |bench: &mut Bench, nanos| {
            bench.now.mono = bench.now.mono.after(std::time::Duration::from_nanos(nanos));
        };
        pass(&mut bench, phase);
        (0..50).find(|round| {
            let ids = || (0..100).map(|n| 2 * (100 * round + n) + 1);
            bench.send(&ids().flat_map(get).collect::<Vec<u8>>());
            pass(&mut bench, wait);
            bench.send(&ids().flat_map(|id| rst(id, 8)).collect::<Vec<u8>>());
            bench.error.is_some()
        })
    };
    for phase in (0..10).map(|at| at * PREMATURE_FOR / 7) {
        assert_eq!(rounds(PREMATURE_FOR, phase), None, "{phase}");
        // Others have the credit of time, which is 20 a second.
        let endured = rounds(PREMATURE_FOR / 2 - 1, phase);
        assert!(endured.is_some_and(|round| round < 5), "{phase}: {endured:?}");
    }
}

#[test]
fn the_responses_to_malformed_requests_earn_nothing() {
    let mut bench = Bench::new();
    let mut id = 1;
    while bench.error.is_none() {
        bench.send(&headers(id, END, &block(&GET[1..])));
        if bench.error.is_none() {
            bench.answer(id, 1);
            bench.out();
        }
        id += 2;
    }
    assert_eq!(id / 2, WASTES_MAX + 1);
    assert_eq!(bench.conn.take_wasted(), WASTES_MAX + 1);
}

#[test]
fn a_client_that_also_asks_and_waits_is_left_alone() {
    let mut bench = Bench::open(H2Settings { keepalive_requests: 10_000, ..H2Settings::default() });
    for i in 0..2000_u32 {
        let (served, cancelled) = (4 * i + 1, 4 * i + 3);
        bench.send(&[get(served), frame(6, 0, 0, &[0; 8]), window(0, 100)].concat());
        bench.answer(served, 10);
        bench.send(&[get(cancelled), rst(cancelled, 8)].concat());
        bench.out();
    }
    assert_eq!(bench.error, None);
}

#[test]
fn header_blocks_are_bounded_in_frames_and_bytes() {
    let mut bench = Bench::new();
    bench.send(&frame(1, END, 1, &[]));
    assert_eq!(endure(&mut bench, |_| frame(9, 0, 1, &[])), CONTINUATIONS_MAX);
    let mut bench = Bench::new();
    bench.send(&frame(1, END, 1, &[0; 16_384]));
    assert_eq!(endure(&mut bench, |_| frame(9, 0, 1, &[0; 16_384])), 8);
    // A block of few bytes that decodes to many.
    let mut bench = Bench::new();
    let mut bomb = vec![0x40, 1, b'x'];
    crate::integer::push_integer(&mut bomb, 0, 7, 3900_u32);
    bomb.extend_from_slice(&[b'y'; 3900]);
    bomb.extend_from_slice(&[0xbe; 100]);
    bench.send(&headers(1, END, &bomb));
    bench.expect_goaway(0, ENHANCE_YOUR_CALM);
    // Empty names cost their overhead.
    let mut bench = Bench::new();
    bench.send(&headers(1, END, &[0; 3 * 5000]));
    bench.expect_goaway(0, ENHANCE_YOUR_CALM);
}

#[test]
fn a_peer_that_does_not_read_cannot_make_us_queue_for_ever() {
    let mut bench =
        Bench::open(H2Settings { keepalive_requests: u64::MAX, ..H2Settings::default() });
    let mut id = 1;
    while bench.error.is_none() {
        // Requests pay for the pings, but the client does not read the answers.
        bench.send(&[get(id), frame(6, 0, 0, &[0; 8]), frame(6, 0, 0, &[0; 8])].concat());
        if bench.error.is_none() {
            bench.respond(id, &super::plain(204, bolide_http::BodyLen::None));
            bench.conn.ended.clear();
            let slot = bench.conn.streams.slot(bench.streams[&id]).unwrap();
            bench.conn.finish(slot, &mut bench.raw);
        }
        id += 2;
    }
    assert_eq!(id / 2, CONTROL_QUEUED_MAX / 2 + 1);
    assert_eq!(bench.error.unwrap().code, u64::from(ENHANCE_YOUR_CALM));
}

#[test]
fn resets_behind_responses_that_are_not_read_count() {
    let mut bench =
        Bench::open(H2Settings { keepalive_requests: u64::MAX, ..H2Settings::default() });
    for id in (1..).step_by(2).take(CONTROL_QUEUED_MAX as usize + 2) {
        bench.send(&post(id));
        if bench.error.is_some() {
            break;
        }
        bench.respond(id, &super::plain(204, bolide_http::BodyLen::None));
        bench.conn.ended.clear();
        let slot = bench.conn.streams.slot(bench.streams[&id]).unwrap();
        bench.conn.finish(slot, &mut bench.raw);
    }
    assert_eq!(bench.error.unwrap().code, u64::from(ENHANCE_YOUR_CALM));
}
