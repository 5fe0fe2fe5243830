//! The arithmetic of paces.

use bolide_base::Instant;
use bolide_engine::Rate;

use super::{Allowance, AnswerPace, PacedFraming, Throttle};

fn at(millis: u64) -> Instant {
    Instant::from_nanos(millis * 1_000_000)
}

fn pace(per_second: u64, after: u64, since: u64) -> AnswerPace {
    AnswerPace::new(Rate { since: at(since), per_second, after }, PacedFraming::Bare)
}

/// The times at which so many bytes leave, and how many each time.
fn writes(pace: &mut AnswerPace, mut now: Instant, mut bytes: u64) -> Vec<(u64, u64)> {
    let mut writes = Vec::new();
    while bytes > 0 {
        match pace.allowed(now) {
            Allowance::Bytes(allowed) => {
                let written = bytes.min(allowed as u64);
                pace.advance(written);
                bytes -= written;
                writes.push((now.as_nanos() / 1_000_000, written));
            }
            Allowance::From(at) => {
                assert!(at > now, "a wait ends later than it begins");
                now = at;
            }
        }
    }
    writes
}

#[test]
fn a_second_s_worth_leaves_at_once_and_then_one_each_second() {
    let times = writes(&mut pace(100, 0, 5000), at(5000), 310);
    assert_eq!(times, [(5000, 100), (6000, 100), (7000, 100), (8000, 10)]);
}

#[test]
fn the_clock_knows_whole_seconds_only() {
    // A tenth of a second later another second has begun.
    let times = writes(&mut pace(100, 0, 5900), at(6000), 500);
    assert_eq!(times, [(6000, 200), (8000, 200), (10_000, 100)]);
    // In the same second there is no more, however late in it.
    let times = writes(&mut pace(1000, 0, 5000), at(5990), 1500);
    assert_eq!(times, [(5990, 1000), (6990, 500)]);
}

#[test]
fn what_left_without_waiting_is_waited_for_afterwards() {
    let mut pace = pace(100, 0, 0);
    pace.skip(250);
    assert_eq!(pace.allowed(at(0)), Allowance::From(at(1501)));
    assert_eq!(pace.allowed(at(1501)), Allowance::From(at(2002)));
    assert_eq!(pace.allowed(at(2002)), Allowance::Bytes(50));
}

#[test]
fn bytes_before_the_limit_begins_cost_no_time() {
    let times = writes(&mut pace(100, 1000, 0), at(0), 1250);
    assert_eq!(times, [(0, 1100), (1000, 100), (2000, 50)]);
    let mut pace = pace(100, 1000, 0);
    assert_eq!(pace.allowed(at(0)), Allowance::Bytes(1100));
    pace.advance(1000);
    assert_eq!(pace.allowed(at(0)), Allowance::Bytes(100), "of the same write");
    assert_eq!(pace.allowed(at(1)), Allowance::Bytes(100));
}

#[test]
fn pieces_of_one_write_share_its_allowance() {
    let mut pace = pace(100, 0, 0);
    assert_eq!(pace.allowed(at(0)), Allowance::Bytes(100));
    pace.advance_bare(30);
    assert_eq!(pace.allowed(at(0)), Allowance::Bytes(70));
    pace.advance(20);
    assert_eq!(pace.allowed(at(1)), Allowance::From(at(500)));
    assert!(pace.is_to_be_woken(at(500)) && !pace.is_to_be_woken(at(500)));
}

#[test]
fn what_surrounds_the_pieces_of_a_body_counts() {
    for (framing, bytes, around) in [
        (PacedFraming::Bare, 100, 0),
        (PacedFraming::Chunked, 0xfff, 7),
        (PacedFraming::H2, 100, 9),
        (PacedFraming::H3, 63, 2),
        (PacedFraming::H3, 64, 3),
    ] {
        let rate = Rate { since: at(0), per_second: 10_000, after: 0 };
        let mut pace = AnswerPace::new(rate, framing);
        let _allowed = pace.allowed(at(0));
        pace.advance(bytes);
        assert_eq!(pace.sent, bytes + around, "{framing:?}");
    }
}

#[test]
fn an_origin_is_read_at_its_pace() {
    let mut throttle = Throttle::new(1000, at(0)).unwrap();
    assert_eq!(throttle.allowed(at(0)), 1000);
    throttle.advance(1000);
    assert_eq!(throttle.allowed(at(0)), 0);
    assert_eq!(throttle.allowed(at(100)), 100);
    assert!(Throttle::new(0, at(0)).is_none());
}
