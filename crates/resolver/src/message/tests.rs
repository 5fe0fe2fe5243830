//! Messages that servers send, good and bad.

use super::{DnsFault, DnsRecords, DnsReply, Family, question};
use crate::resolver::Transport;

/// An answer to the question for the A records of `a.example`, with id 7.
fn message(flags: u16, count: u16, records: &[u8]) -> Vec<u8> {
    let mut out = question(7, b"a.example", Family::V4).expect("a good name");
    out[2..4].copy_from_slice(&flags.to_be_bytes());
    out[6..8].copy_from_slice(&count.to_be_bytes());
    out.extend_from_slice(records);
    out
}

fn record(kind: u16, class: u16, ttl: u32, data: &[u8]) -> Vec<u8> {
    let mut out = b"\xc0\x0c".to_vec();
    out.extend_from_slice(&kind.to_be_bytes());
    out.extend_from_slice(&class.to_be_bytes());
    out.extend_from_slice(&ttl.to_be_bytes());
    out.extend_from_slice(&(data.len() as u16).to_be_bytes());
    out.extend_from_slice(data);
    out
}

fn fault(message: &[u8], over: Transport) -> String {
    match DnsReply::read(message, over) {
        Err(fault) => fault.to_string(),
        Ok(reply) => reply.read_records().expect_err("a fault").to_string(),
    }
}

fn datagram_fault(message: &[u8]) -> String {
    fault(message, Transport::Datagram)
}

fn records(count: u16, records: &[u8]) -> Result<DnsRecords, DnsFault> {
    DnsReply::read(&message(0x8180, count, records), Transport::Datagram)?.read_records()
}

#[test]
fn a_question_asks_for_recursion_and_one_type() {
    let wanted = b"\x12\x34\x01\0\0\x01\0\0\0\0\0\0\x01a\x07example\0\0\x1c\0\x01";
    assert_eq!(question(0x1234, b"a.example", Family::V6).as_deref(), Some(&wanted[..]));
    assert_eq!(question(1, b"a..b", Family::V4), None);
}

#[test]
fn headers_that_are_no_answers_are_thrown_away() {
    for (flags, wanted) in [
        (0x0180, "invalid UDP DNS response 7 fl:0180"),
        (0x8980, "invalid UDP DNS response 7 fl:8980"),
        // AD, CD and Z, which were not asked for.
        (0x81a0, "invalid UDP DNS response 7 fl:81A0"),
        (0x8190, "invalid UDP DNS response 7 fl:8190"),
        (0x81c0, "invalid UDP DNS response 7 fl:81C0"),
        (0x8181, "DNS error (1: Format error), query id:7"),
        (0x8186, "DNS error (6: Unknown error), query id:7"),
    ] {
        assert_eq!(datagram_fault(&message(flags, 0, b"")), wanted);
    }
    let cut = message(0x8380, 0, b"");
    assert_eq!(fault(&cut, Transport::Stream), "invalid TCP DNS response 7 fl:8380");
    assert!(DnsReply::read(&cut, Transport::Datagram).is_ok_and(|reply| reply.is_truncated));
    for len in 0..12 {
        assert_eq!(datagram_fault(&message(0x8180, 0, b"")[..len]), "short DNS response");
    }
}

#[test]
fn questions_that_are_not_one_plain_name_are_thrown_away() {
    let good = message(0x8180, 0, b"");
    let changed = |at: usize, byte: u8| {
        let mut bytes = good.clone();
        bytes[at] = byte;
        datagram_fault(&bytes)
    };
    assert_eq!(changed(5, 2), "invalid number of questions in DNS response");
    assert_eq!(changed(5, 0), "invalid number of questions in DNS response");
    assert_eq!(changed(12, 0xc0), "unexpected compression pointer in DNS response");
    assert_eq!(changed(12, 0x41), "unexpected compression pointer in DNS response");
    assert_eq!(changed(12, 0), "zero-length domain name in DNS response");
    assert_eq!(changed(12, 60), "short DNS response");
    let len = good.len();
    assert_eq!(changed(len - 1, 3), "unknown query class 3 in DNS response");
    assert_eq!(changed(len - 3, 15), "unknown query type 15 in DNS response");
    assert_eq!(datagram_fault(&good[..len - 1]), "short DNS response");
    // More records than could stand behind it.
    assert_eq!(datagram_fault(&message(0x8180, 2, &[0; 23])), "short DNS response");
}

#[test]
fn addresses_count_whatever_name_they_stand_under() {
    let mut both = record(5, 1, 60, b"\x01b\0");
    both.extend_from_slice(b"\x01z\0\0\x01\0\x01\0\0\0\x09\0\x04\x01\x02\x03\x04");
    both.extend_from_slice(&record(39, 1, 70, b"whatever"));
    both.extend_from_slice(&record(16, 1, 70, b"text"));
    both.extend_from_slice(&record(1, 1, 70, &[5, 6, 7, 8]));
    let found = records(5, &both).expect("good records");
    let shown: Vec<String> = found.addresses.iter().map(ToString::to_string).collect();
    assert_eq!(shown, ["1.2.3.4", "5.6.7.8"]);
    assert_eq!((found.ttl, found.unexpected.as_slice()), (9, &[16][..]));
    assert!(found.alias.is_some());
}

#[test]
fn negative_ttls_are_zero() {
    let found = records(1, &record(1, 1, 0x8000_0000, &[1, 2, 3, 4])).expect("a good record");
    assert_eq!(found.ttl, 0);
}

#[test]
fn records_that_are_not_what_they_should_be_are_faults() {
    let text = |count, bytes: &[u8]| datagram_fault(&message(0x8180, count, bytes));
    assert_eq!(text(1, &record(1, 3, 9, &[0; 4])), "unexpected RR class 3 in DNS response");
    assert_eq!(text(1, &record(1, 1, 9, &[0; 5])), "invalid A record in DNS response");
    assert_eq!(text(1, &record(28, 1, 9, &[0; 16])), "unexpected AAAA record in DNS response");
    assert_eq!(text(1, b"\0\0\x01\0\x01\0\0\0\x09\0\x04\0\0\0\0"), "invalid name in DNS response");
    let cut = |kind, data: &[u8]| {
        let mut bytes = record(kind, 1, 9, data);
        bytes.pop();
        text(1, &bytes)
    };
    for kind in [1, 5, 39, 16] {
        assert_eq!(cut(kind, &[1, 2, 3, 4]), "short DNS response", "{kind}");
    }
    // The name of the record does not end.
    assert_eq!(text(1, &[63; 20]), "short DNS response");
}
