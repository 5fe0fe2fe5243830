//! Range specs and their meanings; no range exceeds the representation.

use super::{
    Boundary, ByteRange, ContentRange, Multipart, RangeOutcome, parse, parse_content_range,
    push_content_range, push_unsatisfied,
};
use proptest::prelude::{any, prop, prop_assert_eq, proptest};

type Expected = Result<(u64, u64), RangeOutcome>;

const fn range(start: u64, end: u64) -> ByteRange {
    ByteRange { start, end }
}

#[test]
fn single_ranges_mean_what_rfc_9110_says() {
    let cases: [(&str, u64, Expected); 24] = [
        ("bytes=0-99", 1000, Ok((0, 100))),
        ("bytes=0-0", 1000, Ok((0, 1))),
        ("bytes=500-", 1000, Ok((500, 1000))),
        ("bytes=-100", 1000, Ok((900, 1000))),
        ("bytes=-5000", 1000, Ok((0, 1000))),
        ("bytes=900-5000", 1000, Ok((900, 1000))),
        ("bytes= 1 - 2 ", 1000, Ok((1, 3))),
        ("BYTES=1-2", 1000, Ok((1, 3))),
        ("bytes=0-", 1000, Ok((0, 1000))),
        ("bytes=1000-", 1000, Err(RangeOutcome::Unsatisfiable)),
        ("bytes=2000-3000", 1000, Err(RangeOutcome::Unsatisfiable)),
        ("bytes=-0", 1000, Err(RangeOutcome::Unsatisfiable)),
        ("bytes=10-5", 1000, Err(RangeOutcome::Unsatisfiable)),
        ("bytes=a-5", 1000, Err(RangeOutcome::Unsatisfiable)),
        ("bytes=5", 1000, Err(RangeOutcome::Unsatisfiable)),
        ("bytes=5-6x", 1000, Err(RangeOutcome::Unsatisfiable)),
        ("bytes=--5", 1000, Err(RangeOutcome::Unsatisfiable)),
        ("bytes=99999999999999999999-", 1000, Err(RangeOutcome::Unsatisfiable)),
        ("bytes=0-99999999999999999999", 1000, Err(RangeOutcome::Unsatisfiable)),
        ("bytes=0-9223372036854775807", 1000, Ok((0, 1000))),
        ("bytes=", 1000, Err(RangeOutcome::Whole)),
        ("lines=0-1", 1000, Err(RangeOutcome::Whole)),
        ("bytes=0-", 0, Err(RangeOutcome::Whole)),
        ("bytes=-5", 0, Err(RangeOutcome::Whole)),
    ];
    for (field, length, expected) in cases {
        let mut ranges = vec![range(7, 8)];
        let outcome = parse(field.as_bytes(), length, u32::MAX, &mut ranges);
        match expected {
            Ok((start, end)) => {
                assert_eq!(
                    (outcome, &ranges[..]),
                    (RangeOutcome::Partial, &[range(start, end)][..])
                );
            }
            Err(expected) => {
                assert_eq!((outcome, ranges.len()), (expected, 0), "{field}");
            }
        }
    }
}

#[test]
fn several_ranges_are_kept_in_order_up_to_the_limits() {
    let mut ranges = Vec::new();
    let field = b"bytes=10-19,0-4, 2000-, -1";
    assert_eq!(parse(field, 1000, 3, &mut ranges), RangeOutcome::Partial);
    assert_eq!(ranges, [range(10, 20), range(0, 5), range(999, 1000)]);
    assert_eq!(parse(field, 1000, 2, &mut ranges), RangeOutcome::Whole);
    assert_eq!(parse(b"bytes=0-1", 1000, 0, &mut ranges), RangeOutcome::Whole);
    assert_eq!(parse(b"bytes=0-,0-", 1000, 9, &mut ranges), RangeOutcome::Whole);
    assert_eq!(parse(b"bytes=0-,0-,x", 1000, 9, &mut ranges), RangeOutcome::Unsatisfiable);
    assert_eq!(parse(b"bytes=0-499,400-", 1000, 9, &mut ranges), RangeOutcome::Whole);
    assert_eq!(parse(b"bytes=0-499,500-", 1000, 9, &mut ranges), RangeOutcome::Partial);
    assert_eq!(parse(b"bytes=0-1,", 1000, 9, &mut ranges), RangeOutcome::Unsatisfiable);
    assert!(ranges.is_empty());
}

#[test]
fn the_texts_of_partial_answers_are_nginxs() {
    let mut out = Vec::new();
    push_content_range(&mut out, range(0, 100), 1234);
    assert_eq!(out, b"bytes 0-99/1234");
    out.clear();
    push_unsatisfied(&mut out, 0);
    assert_eq!(out, b"bytes */0");
    out.clear();
    let boundary = Boundary::new(42);
    boundary.push_content_type(&mut out);
    assert_eq!(out, b"multipart/byteranges; boundary=00000000000000000042");
    out.clear();
    let multipart = Multipart { boundary, content_type: b"text/plain", length: 10 };
    multipart.push_part(&mut out, range(0, 3));
    assert_eq!(
        out,
        b"\r\n--00000000000000000042\r\nContent-Type: text/plain\r\n\
          Content-Range: bytes 0-2/10\r\n\r\n"
    );
    out.clear();
    Multipart { content_type: b"", ..multipart }.push_part(&mut out, range(9, 10));
    assert_eq!(out, b"\r\n--00000000000000000042\r\nContent-Range: bytes 9-9/10\r\n\r\n");
    out.clear();
    multipart.push_end(&mut out);
    assert_eq!(out, b"\r\n--00000000000000000042--\r\n");
}

proptest! {
    #[test]
    fn no_range_leaves_the_representation(
        field in "bytes=([0-9]{0,4}-[0-9]{0,4},? ?){0,6}",
        bytes in any::<Vec<u8>>(),
        length in 0_u64..3000,
        max in 0_u32..5,
    ) {
        crate::fuzz::check_range(field.as_bytes(), length, max);
        crate::fuzz::check_range(&bytes, length, max);
    }

    #[test]
    fn the_announced_length_is_that_of_the_written_body(
        spans in prop::collection::vec((0_u64..5000, 1_u64..5000), 1..6),
        content_type in "[a-z/]{0,12}",
        chance in any::<u64>(),
    ) {
        let ranges: Vec<_> =
            spans.iter().map(|&(start, len)| range(start, start + len)).collect();
        let content_type = content_type.as_bytes();
        let multipart =
            Multipart { boundary: Boundary::new(chance), content_type, length: 10_000 };
        let mut out = Vec::new();
        for &range in &ranges {
            multipart.push_part(&mut out, range);
            out.resize(out.len() + range.len() as usize, 0);
        }
        multipart.push_end(&mut out);
        assert_eq!(multipart.body_len(&ranges), out.len() as u64);
    }
}

#[test]
fn the_first_byte_is_where_the_first_range_begins() {
    for (field, expected) in [
        ("bytes=5-", Some(5)),
        ("BYTES= 5-9,1-2", Some(5)),
        ("bytes=-5", None),
        ("bytes=x", None),
        ("lines=5-", None),
        ("bytes", None),
        ("bytes=99999999999999999999-", None),
    ] {
        assert_eq!(super::first_byte(field.as_bytes()), expected, "{field}");
    }
}

#[test]
fn content_ranges_are_read_as_nginx_reads_them() {
    let read = |text: &str| parse_content_range(text.as_bytes());
    let part = |start, end, whole| Some(ContentRange { start, end, whole });
    assert_eq!(read("bytes 0-6/100"), part(0, 7, Some(100)));
    assert_eq!(read("bytes 7-13/*"), part(7, 14, None));
    assert_eq!(read("bytes   0 - 6 / 7  "), part(0, 7, Some(7)));
    assert_eq!(read("bytes 6-0/100"), part(6, 1, Some(100)));
    for text in [
        "",
        "bytes",
        "bytes */100",
        "lines 0-6/7",
        "bytes=0-6/7",
        "Bytes 0-6/7",
        "bytes 0-6",
        "bytes 0-6/",
        "bytes 0-6/x",
        "bytes 0-6/7x",
        "bytes -6/7",
        "bytes 0-/7",
        "bytes 0-99999999999999999999/7",
        "bytes 0-6/99999999999999999999",
    ] {
        assert_eq!(read(text), None, "{text}");
    }
}

proptest! {
    #[test]
    fn content_ranges_that_are_written_are_read(start in 0_u64..1 << 60, len in 1_u64..1 << 60) {
        let (range, whole) = (ByteRange { start, end: start + len }, start + len + 5);
        let mut text = Vec::new();
        push_content_range(&mut text, range, whole);
        let ByteRange { start, end } = range;
        prop_assert_eq!(
            parse_content_range(&text),
            Some(ContentRange { start, end, whole: Some(whole) })
        );
    }

    #[test]
    fn any_content_range_is_read_or_refused(text in proptest::collection::vec(any::<u8>(), 0..40)) {
        let text = [b"bytes ", &text[..]].concat();
        let _said = parse_content_range(&text);
    }
}
