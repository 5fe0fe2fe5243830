//! Flow-control windows in both directions.

use bolide_http::BodyLen;
use proptest::prelude::{any, prop_assert_eq, proptest};

use super::super::code::{FLOW_CONTROL_ERROR, NO_ERROR, PROTOCOL_ERROR, REFUSED_STREAM};
use super::super::frame::WINDOW_MAX;
use super::super::output::H2Output;
use super::super::windows::ConnRecvWindow;
use super::{
    Bench, END, H2Settings, POST, block, data, frame, get, headers, plain, post, settings, window,
    with,
};

#[test]
fn sending_stops_at_either_window_and_goes_on_with_updates() {
    let mut bench = Bench::new();
    bench.send(&[settings(&[(4, 100)]), get(1)].concat());
    bench.answer(1, 250);
    assert_eq!(bench.out()[2..], ["DATA 1 100"]);
    assert!(!bench.conn.has_output());
    bench.send(&window(1, 50));
    assert_eq!(bench.out(), ["DATA 1 50"]);
    // The initial window shrinks below what is in use, then grows.
    bench.send(&settings(&[(4, 60)]));
    bench.send(&window(1, 30));
    assert_eq!(bench.out(), ["SETTINGS ack"]);
    bench.send(&window(1, 20));
    assert_eq!(bench.out(), ["DATA 1 10"]);
    bench.send(&settings(&[(4, 65_535)]));
    assert_eq!(bench.out(), ["SETTINGS ack", "DATA 1 90 end"]);
}

#[test]
fn the_connection_window_is_shared() {
    let mut bench = Bench::new();
    bench.send(&[settings(&[(4, 1 << 20)]), get(1), get(3)].concat());
    bench.answer(1, 60_000);
    bench.answer(3, 60_000);
    let sent: usize = bytes_of(&bench.out());
    assert_eq!((sent, bench.conn.has_output()), (65_535, false));
    bench.send(&window(0, 1000));
    assert!(bench.conn.has_output());
    assert_eq!(bench.out(), ["DATA 1 1000"]);
    bench.send(&window(0, 100_000));
    assert_eq!(bytes_of(&bench.out()), 120_000 - 66_535);
    assert!(bench.conn.is_idle());
}

fn bytes_of(lines: &[String]) -> usize {
    let data = lines.iter().filter_map(|line| line.strip_prefix("DATA "));
    data.map(|line| line.split(' ').nth(1).unwrap().parse::<usize>().unwrap()).sum()
}

#[test]
fn a_body_is_told_in_order_and_its_room_given_back() {
    let mut bench = Bench::new();
    bench.send(&post(1));
    for _ in 0..4 {
        bench.send(&data(1, 0, &[0; 16_000]));
    }
    assert_eq!(bench.events()[1..], ["body 1 16000"; 4]);
    assert!(bench.out().is_empty(), "nothing is consumed");
    let stream = bench.streams[&1];
    bench.conn.body_consumed(stream, 30_000);
    assert!(bench.out().is_empty());
    bench.conn.body_consumed(stream, 3_000);
    assert_eq!(bench.out(), ["WINDOW_UPDATE 1 33000"]);
    // Credit for more than was reported is ignored.
    bench.conn.body_consumed(stream, 1_000_000);
    bench.send(&data(1, END, &[0; 10]));
    assert_eq!(bench.events(), ["body 1 10", "end 1"]);
    bench.conn.body_consumed(stream, 10);
    assert!(bench.out().is_empty(), "a finished body needs no room");
}

#[test]
fn overrunning_a_window_is_an_error_of_its_scope() {
    let mut bench = Bench::open(H2Settings { recv_window: 1000, ..H2Settings::default() });
    bench.send(&[post(1), data(1, 0, &[0; 1000]), data(1, 0, b"x")].concat());
    assert_eq!(bench.out(), [format!("RST_STREAM 1 {FLOW_CONTROL_ERROR}")]);
}

#[test]
fn a_body_that_does_not_know_of_its_small_window_is_refused() {
    let begin = |recv_window, request: Vec<u8>| {
        let mut bench = Bench::with(H2Settings { recv_window, ..H2Settings::default() });
        bench.send(&[super::PREFACE, &settings(&[]), &request].concat());
        bench
    };
    let inserting = [&block(&POST)[..], &[0x40, 1, b'x', 1, b'y']].concat();
    let mut bench = begin(65_534, headers(1, 0, &inserting));
    assert_eq!(bench.out().last(), Some(&format!("RST_STREAM 1 {REFUSED_STREAM}")));
    assert!(bench.events().is_empty() && bench.conn.requests() == 0);
    // The tables stay in step, and what had not to wait is served.
    bench.send(&[get(3), frame(4, 1, 0, &[])].concat());
    bench.send(&headers(5, 0, &[&block(&POST)[..], &[0xbe]].concat()));
    assert_eq!(bench.events(), ["request 3 GET / HTTP/2.0", "request 5 POST / HTTP/2.0"]);
    assert_eq!(bench.fields(), ["Host: a", "x: y"]);
    let mut bench = begin(65_535, post(1));
    assert_eq!(bench.events(), ["request 1 POST / HTTP/2.0"]);
}

#[test]
fn data_must_add_up_to_content_length() {
    let trailers = headers(1, END, &block(&[("x-sum", "1")]));
    let padded = frame(0, 8 | END, 1, &[1, b'a', b'b', 0]);
    for (length, frames, ok) in [
        ("4", vec![data(1, 0, b"ab"), data(1, END, b"cd")], true),
        ("4", vec![data(1, 0, b"abcd"), data(1, END, b"")], true),
        ("4", vec![data(1, END, b"abc")], false),
        ("4", vec![data(1, 0, b"abcde")], false),
        ("4", vec![data(1, 0, b"abc"), data(1, 0, b"de"), data(1, END, b"f")], false),
        ("0", vec![data(1, END, b"")], true),
        ("0", vec![data(1, END, b"a")], false),
        ("2", vec![padded.clone()], true),
        ("3", vec![padded], false),
        ("2", vec![data(1, 0, b"ab"), trailers.clone()], true),
        ("2", vec![data(1, 0, b"a"), trailers], false),
    ] {
        let mut bench = Bench::new();
        bench.send(&headers(1, 0, &with(&POST, &[("content-length", length)])));
        bench.send(&frames.concat());
        assert!(bench.out().is_empty(), "{length} {frames:?}");
        let told = if ok { "end 1" } else { "body refused 1" };
        assert_eq!(bench.events().last().unwrap(), told, "{length} {frames:?}");
        // The response is complete; the reset of a malformed request comes behind it.
        bench.answer(1, 1);
        let mut lines = bench.out_twice().split_off(1);
        assert_eq!(lines.remove(0), "DATA 1 1 end");
        let reset = format!("RST_STREAM 1 {PROTOCOL_ERROR}");
        assert_eq!(lines, if ok { vec![] } else { vec![reset] }, "{length} {frames:?}");
        bench.send(&data(1, 0, b"late"));
        assert_eq!(bench.error.is_some(), ok, "the stream is over for both, or for us alone");
    }
}

#[test]
fn a_wrong_length_before_the_binding_is_told_after_it() {
    let mut bench = Bench::new();
    let head = headers(1, 0, &with(&POST, &[("content-length", "4")]));
    bench.send(&[head, data(1, END, b"abc")].concat());
    bench.out();
    assert_eq!(bench.events()[1..], ["body 1 3", "body refused 1"]);
}

#[test]
fn a_wrong_length_of_a_body_that_nothing_reads_is_told_to_the_client_alone() {
    let mut bench = Bench::new();
    bench.send(&headers(1, 0, &with(&POST, &[("content-length", "4")])));
    bench.conn.discard_body(bench.streams[&1]);
    bench.send(&data(1, END, b"abc"));
    assert_eq!(bench.events().len(), 1);
    bench.answer(1, 1);
    let lines = bench.out_twice();
    assert_eq!(lines[1..], ["DATA 1 1 end".to_owned(), format!("RST_STREAM 1 {PROTOCOL_ERROR}")]);
    // Behind the response the stream is reset already.
    bench.send(&headers(3, 0, &with(&POST, &[("content-length", "4")])));
    bench.answer(3, 1);
    assert_eq!(bench.out_twice().last(), Some(&format!("RST_STREAM 3 {NO_ERROR}")));
    bench.send(&data(3, END, b"abc"));
    bench.send(&data(3, END, b"abc"));
    assert!(bench.out().is_empty() && bench.error.is_none());
}

#[test]
fn padding_counts_for_windows_and_is_given_back_at_once() {
    let mut bench = Bench::open(H2Settings { recv_window: 400, ..H2Settings::default() });
    bench.send(&post(1));
    let padded = [&[100][..], b"abc", &[0; 100]].concat();
    bench.send(&frame(0, 8, 1, &padded));
    bench.send(&frame(0, 8, 1, &padded));
    assert_eq!(bench.events()[1..], ["body 1 3", "body 1 3"]);
    assert_eq!(bench.out(), ["WINDOW_UPDATE 1 202"]);
    bench.send(&frame(0, 8 | END, 1, &[3, 0, 0, 0]));
    assert_eq!(bench.events(), ["end 1"]);
}

#[test]
fn what_comes_before_the_binding_is_kept() {
    let mut bench = Bench::new();
    bench.send(&[post(1), data(1, 0, b"abc"), data(1, END, b"de")].concat());
    assert_eq!(bench.events(), ["request 1 POST / HTTP/2.0"]);
    assert!(bench.conn.has_output());
    bench.out();
    assert_eq!(bench.events(), ["body 1 3", "body 1 2", "end 1"]);
    bench.send(&[post(3), data(3, END, b"abc")].concat());
    bench.send(b"");
    assert_eq!(bench.events()[1..], ["body 3 3", "end 3"]);
}

#[test]
fn a_discarded_body_gives_back_the_window_of_the_connection_only() {
    let mut bench = Bench::new();
    bench.send(&[post(1), data(1, 0, &[0; 16_000])].concat());
    bench.out();
    bench.conn.discard_body(bench.streams[&1]);
    bench.events();
    for _ in 0..3 {
        bench.send(&data(1, 0, &[0; 16_000]));
        assert!(bench.out().is_empty(), "its stream will be reset");
    }
    bench.send(&data(1, END, b""));
    assert!(bench.events().is_empty() && bench.error.is_none());
    bench.answer(1, 1);
    assert_eq!(bench.out()[1..], ["DATA 1 1 end"]);
}

#[test]
fn the_rest_of_a_request_that_nothing_reads_is_not_waited_for() {
    let start = |bench: &mut Bench, id: u32| {
        bench.send(&post(id));
        bench.answer(id, 1);
        // Clients that read both at once take the response for lost.
        assert_eq!(bench.out().last(), Some(&format!("DATA {id} 1 end")));
        assert!(bench.conn.has_output());
        assert_eq!(bench.out(), [format!("RST_STREAM {id} {NO_ERROR}")]);
        assert!(!bench.conn.has_output());
        assert_eq!(bench.events()[1..], [format!("sent {id} 1")]);
        assert!(bench.conn.is_idle());
    };
    let mut bench = Bench::new();
    start(&mut bench, 1);
    bench.send(&[data(1, 0, b"x"), data(1, END, b"y"), get(3)].concat());
    assert!(bench.out().is_empty() && bench.error.is_none());
    assert_eq!(bench.events(), ["request 3 GET / HTTP/2.0"]);
    // A head that ends the response is followed as closely.
    bench.send(&post(5));
    bench.respond(5, &plain(204, BodyLen::None));
    let told = ["HEADERS 5 :status=204 end".to_owned(), format!("RST_STREAM 5 {NO_ERROR}")];
    assert_eq!(bench.out_twice(), told);
    // Such streams are no obstacle to new ones, and do not use up the connection's window.
    let mut bench = Bench::open(H2Settings { max_concurrent_streams: 2, ..H2Settings::default() });
    for id in (1..200).step_by(2) {
        start(&mut bench, id);
        for _ in 0..3 {
            bench.send(&data(id, 0, &[0; 16_384]));
        }
    }
    assert_eq!(bench.error, None);
    bench.conn.shrink();
    bench.send(&data(199, 0, b"x"));
    assert!(bench.out().is_empty() && bench.error.is_none());
}

#[test]
fn unread_bodies_of_dead_streams_do_not_eat_the_connection_window() {
    let mut bench = Bench::new();
    for id in (1..400).step_by(2) {
        bench.send(&[post(id), data(id, 0, &[0; 16_000])].concat());
        bench.out();
        match id % 3 {
            0 => bench.send(&super::rst(id, 8)),
            1 => bench.conn.reset(bench.streams[&id], 8),
            _ => bench.respond(id, &plain(204, BodyLen::None)),
        }
        bench.out();
    }
    assert_eq!(bench.error, None);
    assert_eq!(bench.conn.flow.recv.granted(), WINDOW_MAX);
}

#[test]
fn uploads_that_nothing_reads_yet_take_nothing_from_the_one_that_is_read() {
    let mut bench = Bench::new();
    for id in (1..255).step_by(2) {
        bench.send(&post(id));
        for _ in 0..4 {
            bench.send(&data(id, 0, &[0; 16_384]));
        }
    }
    bench.send(&post(255));
    bench.out();
    let stream = bench.streams[&255];
    bench.conn.body_wanted(stream, 1 << 20);
    for _ in 0..1000 {
        bench.send(&data(255, 0, &[0; 16_384]));
        bench.conn.body_consumed(stream, 16_384);
        bench.out();
    }
    bench.send(&data(255, END, b"x"));
    assert_eq!((bench.error, bench.events().last().unwrap().as_str()), (None, "end 255"));
    assert!(!bench.conn.is_shut());
}

#[test]
fn a_shut_window_of_a_connection_opens_with_the_first_byte_that_is_consumed() {
    let (mut window, mut out) = (ConnRecvWindow::new(), H2Output::new());
    assert!(window.take(WINDOW_MAX - 1).is_some() && !window.is_shut());
    assert!(window.take(2).is_none(), "more than it may");
    assert!(window.take(1).is_some() && window.is_shut());
    window.credit(0, &mut out);
    assert!(out.is_empty() && window.is_shut());
    for open in [1, 2, 4] {
        window.credit(open - open / 2, &mut out);
        assert!(!window.is_shut());
    }
    assert_eq!(window.granted(), 4);
}

#[test]
fn a_body_that_is_read_gets_its_window_then() {
    let mut bench = Bench::open(H2Settings { recv_window: 100, ..H2Settings::default() });
    bench.send(&[post(1), data(1, 0, &[0; 60])].concat());
    let stream = bench.streams[&1];
    bench.conn.body_wanted(stream, 1000);
    assert_eq!(bench.out(), ["WINDOW_UPDATE 1 900"]);
    // From now on a WINDOW_UPDATE is sent for half of the new window.
    bench.send(&data(1, 0, &[0; 440]));
    bench.conn.body_consumed(stream, 500);
    assert!(bench.out().is_empty());
    bench.send(&data(1, 0, &[0; 1]));
    bench.conn.body_consumed(stream, 1);
    assert_eq!(bench.out(), ["WINDOW_UPDATE 1 501"]);
    // Wanting it again changes nothing.
    bench.conn.body_wanted(stream, 1000);
    assert!(bench.out().is_empty());
    bench.send(&data(1, END, b"x"));
    bench.conn.body_wanted(stream, 5000);
    assert!(bench.out().is_empty(), "nothing more comes");
}

#[test]
fn a_body_that_fits_needs_no_wider_window() {
    let mut bench = Bench::open(H2Settings { recv_window: 100, ..H2Settings::default() });
    for (id, length, told) in [(1, "100", &[][..]), (3, "101", &["WINDOW_UPDATE 3 900"])] {
        let fields = with(&POST, &[("content-length", length)]);
        bench.send(&headers(id, 0, &fields));
        bench.conn.body_wanted(bench.streams[&id], 1000);
        assert_eq!(bench.out(), told);
    }
}

#[test]
fn without_a_window_the_rest_of_a_request_is_not_waited_for() {
    let mut bench = Bench::open(H2Settings { recv_window: 0, ..H2Settings::default() });
    bench.send(&post(1));
    bench.answer(1, 1);
    let lines = bench.out_twice();
    assert_eq!(lines[1..], ["DATA 1 1 end".to_owned(), format!("RST_STREAM 1 {NO_ERROR}")]);
    assert_eq!(bench.conn.streams_open(), 0);
    // A discarded body gets no window before the response, either.
    let mut bench = Bench::open(H2Settings { recv_window: 100, ..H2Settings::default() });
    bench.send(&[post(1), data(1, 0, &[0; 90])].concat());
    bench.conn.discard_body(bench.streams[&1]);
    assert!(bench.out().is_empty());
    bench.answer(1, 1);
    assert_eq!(bench.out_twice().last(), Some(&format!("RST_STREAM 1 {NO_ERROR}")));
}

/// An upload by a client that obeys flow control, to a reader that consumes everything at once.
#[derive(Clone, Copy, Debug)]
struct Upload {
    /// The window in our settings, and the window that the reader wants.
    announced: u32,
    wanted: u32,
    total: u64,
    tells_length: bool,
    /// Bytes that come before the client applies our settings, and whether they are consumed by
    /// then. There are none where our settings narrow the window.
    early: u64,
    reads_early: bool,
    chunk: u64,
    padding: u8,
}

impl Upload {
    /// Runs it. Returns the received bytes; they are fewer than the body if it stalls.
    fn run(self) -> u64 {
        let mut bench =
            Bench::with(H2Settings { recv_window: self.announced, ..H2Settings::default() });
        let length = self.total.to_string();
        let mut fields = POST.to_vec();
        if self.tells_length {
            fields.push(("content-length", &length));
        }
        let head = headers(1, 0, &block(&fields));
        let narrows = self.announced < 65_535;
        let ack = if narrows { frame(4, 1, 0, &[]) } else { Vec::new() };
        bench.send(&[super::PREFACE, &settings(&[]), &ack, &head].concat());
        let stream = bench.streams[&1];
        if self.reads_early || narrows {
            bench.conn.body_wanted(stream, self.wanted);
        }
        let first = i64::from(self.announced).min(65_535);
        let (mut window, mut left, mut is_early) = (first, self.total, !narrows);
        loop {
            let until = if is_early { self.total - self.early.min(self.total) } else { 0 };
            while left > until && window > 0 {
                let padding = i64::from(self.padding).min(window - 2).max(-1);
                let most = (window - padding - 1).min(16_000 - padding) as u64;
                let now = self.chunk.min(left - until).min(most);
                let mut payload = vec![0; (now as i64 + padding + 1) as usize];
                // Padding needs room, too.
                if padding >= 0 {
                    payload[0] = padding as u8;
                }
                left -= now;
                window -= payload.len() as i64;
                let flags = if padding >= 0 { 8 } else { 0 } | if left == 0 { END } else { 0 };
                bench.send(&data(1, flags, &payload));
                if !is_early || self.reads_early {
                    bench.conn.body_consumed(stream, now as usize);
                }
            }
            let lines = bench.out();
            let told = lines.iter().filter_map(|line| line.strip_prefix("WINDOW_UPDATE 1 "));
            window += told.map(|bytes| bytes.parse::<i64>().unwrap()).sum::<i64>();
            if is_early {
                is_early = false;
                window += i64::from(self.announced) - 65_535;
                bench.send(&frame(4, 1, 0, &[]));
                bench.conn.body_wanted(stream, self.wanted);
                bench.conn.body_consumed(stream, usize::MAX);
            } else if left == 0 || (window <= 0 && !bench.conn.has_output() && lines.is_empty()) {
                assert_eq!((bench.error, left == 0), (None, bench.log.contains(&"end 1".into())));
                return self.total - left;
            }
        }
    }
}

const UPLOAD: Upload = Upload {
    announced: 65_536,
    wanted: 1 << 20,
    total: 60_000,
    tells_length: true,
    early: 0,
    reads_early: true,
    chunk: 1000,
    padding: 0,
};

#[test]
fn padding_does_not_use_up_the_window_of_a_body_that_would_fit() {
    assert_eq!(Upload { padding: 255, ..UPLOAD }.run(), 60_000);
}

proptest! {
    #[test]
    fn an_upload_that_is_read_never_stalls(
        announced in 0..70_000_u32,
        wanted in 100..200_000_u32,
        total in 1..100_000_u64,
        tells_length in any::<bool>(),
        early in 0..65_535_u64,
        reads_early in any::<bool>(),
        chunk in 500..16_000_u64,
        padding: u8,
    ) {
        let upload =
            Upload { announced, wanted, total, tells_length, early, reads_early, chunk, padding };
        prop_assert_eq!(upload.run(), total);
    }
}
