//! Records after the handshake of TLS 1.3, some of which no library would send.

use proptest::prelude::{any, proptest};
use rustls::version::{TLS12, TLS13};

use super::{BOTH, Pair, Visitor, acceptor, meet};
use crate::records::Lane;
use crate::session::Stage;
use crate::{AcceptorOptions, TlsError, TlsSession, fuzz, names};

const SUITES: [&str; 3] =
    ["TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"];

fn options(suite: &str) -> AcceptorOptions {
    AcceptorOptions { ciphersuites: names::ciphersuites(suite).0, ..AcceptorOptions::default() }
}

/// An established session whose client consists of its keys only.
struct Forger {
    server: TlsSession,
    sealing: Lane,
    opening: Lane,
    plain: Vec<u8>,
}

impl Forger {
    fn new() -> Self {
        let acceptor = acceptor(&AcceptorOptions::default());
        let pair = meet(&acceptor, &Visitor::new(&TLS13, BOTH, &[]), "a.example").unwrap();
        let secrets = pair.client.dangerous_extract_secrets().unwrap();
        let (sealing, opening) = (Lane::new(secrets.tx).unwrap(), Lane::new(secrets.rx).unwrap());
        Self { server: pair.server, sealing, opening, plain: Vec::new() }
    }

    fn record(&mut self, kind: u8, content: &[u8]) -> Vec<u8> {
        let mut record = Vec::new();
        self.sealing.seal(kind, content, &mut record).unwrap();
        record
    }

    /// Passes `bytes` to the server; on failure also returns its alert.
    fn give(&mut self, mut bytes: Vec<u8>) -> Result<crate::TlsReceived, (TlsError, Option<u8>)> {
        let mut out = Vec::new();
        let result = self.server.receive(&mut bytes, &mut self.plain, &mut out);
        result.map_err(|error| (error, self.alert(&out)))
    }

    /// The fatal alert in `out`.
    fn alert(&mut self, out: &[u8]) -> Option<u8> {
        let (header, body) = out.split_first_chunk()?;
        let mut body = body.to_vec();
        let inner = self.opening.open(*header, &mut body).unwrap();
        assert_eq!((inner[0], inner[2], inner.len()), (2, 21, 3));
        Some(inner[1])
    }
}

#[test]
fn tls_13_is_sealed_here_and_tls_12_by_the_library() {
    let acceptor = acceptor(&AcceptorOptions::default());
    let new = meet(&acceptor, &Visitor::new(&TLS13, BOTH, &[]), "a.example").unwrap();
    assert!(matches!(new.server.stage, Stage::Records(_)));
    let old = meet(&acceptor, &Visitor::new(&TLS12, BOTH, &[]), "a.example").unwrap();
    assert!(matches!(old.server.stage, Stage::Library(_)));
}

#[test]
fn every_suite_carries_bytes_both_ways_and_changes_its_keys() {
    for suite in SUITES {
        let acceptor = acceptor(&options(suite));
        let mut pair = meet(&acceptor, &Visitor::new(&TLS13, BOTH, &[]), "a.example").unwrap();
        assert_eq!(pair.server.cipher(), suite);
        for round in 0..4_u8 {
            pair.say(&[round; 40_000]);
            pair.client.refresh_traffic_keys().unwrap();
            pair.say(&[round]);
            pair.run().unwrap();
            assert!(pair.plain == [round; 40_001], "{suite}");
            pair.plain.clear();
            pair.server.seal(&[round; 100], &mut pair.out).unwrap();
            pair.run().unwrap();
            assert_eq!(pair.heard(100), [round; 100]);
        }
    }
}

#[test]
fn what_comes_with_the_last_flight_is_not_lost() {
    for (refreshes, closes) in [(0, false), (1, false), (3, false), (1, true)] {
        let acceptor = acceptor(&AcceptorOptions::default());
        let visitor = Visitor::new(&TLS13, BOTH, &[]);
        let mut pair = Pair::new(&acceptor, visitor.client("a.example"), usize::MAX);
        let mut wire = Vec::new();
        pair.client.write_tls(&mut wire).unwrap();
        pair.server.receive(&mut wire, &mut pair.plain, &mut pair.out).unwrap();
        let answer = std::mem::take(&mut pair.out);
        pair.feed_client(&answer).unwrap();
        assert!(!pair.client.is_handshaking() && pair.server.is_handshaking());
        for _ in 0..refreshes {
            pair.client.refresh_traffic_keys().unwrap();
        }
        pair.say(b"early");
        if closes {
            pair.client.send_close_notify();
        }
        wire.clear();
        while pair.client.wants_write() {
            pair.client.write_tls(&mut wire).unwrap();
        }
        let received = pair.server.receive(&mut wire, &mut pair.plain, &mut pair.out).unwrap();
        assert_eq!((received.consumed, received.peer_closed), (wire.len(), closes));
        assert_eq!(pair.plain, b"early");
        pair.server.seal(b"answer", &mut pair.out).unwrap();
        pair.run().unwrap();
        assert_eq!(pair.heard(6), b"answer");
    }
}

#[test]
fn worn_keys_are_changed_before_more_is_sealed() {
    for suite in SUITES {
        let acceptor = acceptor(&options(suite));
        let mut pair = meet(&acceptor, &Visitor::new(&TLS13, BOTH, &[]), "a.example").unwrap();
        for round in 0..3_u8 {
            let Stage::Records(records) = &mut pair.server.stage else { panic!("not ours") };
            records.wear_out();
            pair.server.seal(&vec![round; 20_000], &mut pair.out).unwrap();
            // Two records of data, between them a key update.
            assert_eq!(pair.out.len(), 20_000 + 2 * 22 + 27);
            let answer = std::mem::take(&mut pair.out);
            pair.feed_client(&answer).unwrap();
            assert!(pair.heard(20_000) == vec![round; 20_000]);
        }
        pair.say(b"still good");
        pair.run().unwrap();
        assert_eq!(pair.plain, b"still good");
    }
}

#[test]
fn one_answer_is_given_to_many_wishes_for_new_keys() {
    let acceptor = acceptor(&AcceptorOptions::default());
    let mut pair = meet(&acceptor, &Visitor::new(&TLS13, BOTH, &[]), "a.example").unwrap();
    for _ in 0..32 {
        pair.client.refresh_traffic_keys().unwrap();
    }
    pair.say(b"x");
    pair.run().unwrap();
    assert_eq!(pair.plain, b"x");
    pair.server.seal(b"y", &mut pair.out).unwrap();
    assert_eq!(pair.out.len(), 27 + 23);
    pair.run().unwrap();
    assert_eq!(pair.heard(1), b"y");
    for _ in 0..33 {
        pair.client.refresh_traffic_keys().unwrap();
    }
    pair.say(b"z");
    assert!(pair.run().is_err(), "a flood of updates");
}

#[test]
fn records_that_must_not_come_are_refused_with_the_alert_of_the_rfc() {
    let long = vec![b'x'; 16 * 1024 + 1];
    let padded = [b"x", &[0; 16 * 1024 + 1][..]].concat();
    let cases: [(u8, &[u8], Option<u8>); 15] = [
        (22, &[24, 0, 0, 1, 2], Some(47)),
        (22, &[24, 0, 0, 2, 0, 0], Some(10)),
        (22, &[1, 0, 0, 0], Some(10)),
        (22, &[4, 0, 0, 1, 0], Some(10)),
        (20, &[1], Some(10)),
        (24, b"heartbeat", Some(10)),
        (99, b"what", Some(10)),
        (0, &[], Some(10)),
        (0, &[0; 100], Some(10)),
        (21, &[1], Some(50)),
        (21, &[1, 0, 0], Some(50)),
        (21, &[2, 40], None),
        (21, &[1, 80], None),
        (23, &long, Some(22)),
        (23, &padded, Some(22)),
    ];
    for (kind, content, alert) in cases {
        let mut forger = Forger::new();
        let record = forger.record(kind, content);
        let (error, told) = forger.give(record).unwrap_err();
        assert_eq!(told, alert, "{kind} {:?}: {error}", &content[..content.len().min(8)]);
        assert_eq!(error.is_alert_from_peer(), alert.is_none());
        assert!(forger.server.seal(b"x", &mut Vec::new()).is_err());
        assert!(forger.give(Vec::new()).is_err() && forger.plain.is_empty());
    }
}

#[test]
fn headers_that_must_not_come_are_refused_before_the_rest() {
    let cases: [([u8; 5], u8); 5] = [
        ([20, 3, 3, 0, 1], 10),
        ([21, 3, 3, 0, 2], 10),
        ([22, 3, 3, 0, 5], 10),
        ([23, 3, 3, 0x41, 1], 22),
        ([23, 3, 3, 0xff, 0xff], 22),
    ];
    for (header, alert) in cases {
        let mut forger = Forger::new();
        assert_eq!(forger.give(header.to_vec()).unwrap_err().1, Some(alert), "{header:?}");
    }
    let mut forger = Forger::new();
    let received = forger.give(vec![23, 3, 3, 0x41, 0]).unwrap();
    assert_eq!(received.consumed, 0, "the largest record is waited for");
}

#[test]
fn records_too_short_for_a_tag_and_changed_ones_have_a_bad_mac() {
    for body in [0_usize, 1, 15, 16] {
        let mut forger = Forger::new();
        let record = [&[23, 3, 3, 0, body as u8][..], &vec![0; body]].concat();
        assert_eq!(forger.give(record).unwrap_err().1, Some(20));
    }
    // A changed version, a changed body, a repeated record, a missing one.
    let forgeries: [fn(&mut Forger) -> Vec<u8>; 4] = [
        |forger| {
            let mut record = forger.record(23, b"x");
            record[2] = 4;
            record
        },
        |forger| {
            let mut record = forger.record(23, b"x");
            record[5] ^= 1;
            record
        },
        |forger| {
            let record = forger.record(23, b"x");
            forger.give(record.clone()).unwrap();
            record
        },
        |forger| {
            forger.record(23, b"x");
            forger.record(23, b"x")
        },
    ];
    for forge in forgeries {
        let mut forger = Forger::new();
        let record = forge(&mut forger);
        assert_eq!(forger.give(record).unwrap_err().1, Some(20));
    }
}

#[test]
fn padding_and_empty_records_are_nothing_to_the_reader() {
    let mut forger = Forger::new();
    // The type of a padded record precedes the zeros.
    let mut wire = forger.record(0, b"a\x17\0\0\0");
    wire.extend(forger.record(23, b""));
    wire.extend(forger.record(0, b"\x17"));
    wire.extend(forger.record(23, &[b'b'; 16 * 1024]));
    wire.extend(forger.record(21, &[1, 90]));
    wire.extend(forger.record(23, b"c\0"));
    let len = wire.len();
    assert_eq!(forger.give(wire).unwrap().consumed, len);
    assert_eq!(forger.plain.len(), 1 + 16 * 1024 + 2);
    assert!(forger.plain.starts_with(b"ab") && forger.plain.ends_with(b"bc\0"));
    for _ in 0..3 {
        let record = forger.record(21, &[1, 90]);
        forger.give(record).unwrap();
    }
    let record = forger.record(21, &[1, 90]);
    assert!(forger.give(record).is_err(), "a flood of warnings");
}

#[test]
fn nothing_behind_a_close_is_looked_at() {
    let mut forger = Forger::new();
    let mut wire = forger.record(21, &[1, 0]);
    wire.extend(b"anything");
    let len = wire.len();
    let received = forger.give(wire).unwrap();
    assert_eq!((received.consumed, received.peer_closed), (len, true));
    let received = forger.give(b"more".to_vec()).unwrap();
    assert_eq!((received.consumed, received.peer_closed), (4, true));
    let mut out = Vec::new();
    forger.server.seal(b"late", &mut out).unwrap();
    assert_eq!(out.len(), 4 + 22);
}

#[test]
fn nothing_is_sealed_behind_our_close() {
    let mut forger = Forger::new();
    let mut out = Vec::new();
    forger.server.close(&mut out);
    assert_eq!(out.len(), 2 + 22);
    assert!(forger.server.seal(b"x", &mut out).is_err());
    let record = forger.record(23, b"unread");
    forger.give(record).unwrap();
    let record = forger.record(20, b"bad");
    assert_eq!(forger.give(record).unwrap_err().1, None, "no alert behind a close");
}

proptest! {
    #[test]
    fn sealed_bytes_never_break_a_session(data: Vec<u8>) {
        fuzz::records(&data);
    }

    #[test]
    fn any_bytes_come_out_as_they_went_in(len in 0_usize..50_000, byte in any::<u8>()) {
        let mut forger = Forger::new();
        let mut out = Vec::new();
        forger.server.seal(&vec![byte; len], &mut out).unwrap();
        let (mut rest, mut heard) = (&mut out[..], Vec::new());
        while let Some((header, behind)) = rest.split_first_chunk_mut::<5>() {
            let len = usize::from(u16::from_be_bytes([header[3], header[4]]));
            let (body, after) = behind.split_at_mut(len);
            let inner = forger.opening.open(*header, body).unwrap();
            let (kind, content) = inner.split_last().unwrap();
            assert!(*kind == 23 && content.len() <= 16 * 1024);
            heard.extend_from_slice(content);
            rest = after;
        }
        assert!(heard == vec![byte; len]);
    }
}
