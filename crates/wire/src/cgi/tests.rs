//! The heads that nginx 1.30 accepts and refuses.

use super::HeadParser;
use crate::OriginError;

/// The head as text, or the text of the error log.
fn read(input: &[u8]) -> String {
    match HeadParser::default().receive(input, 8192) {
        Ok((_, None)) => "partial".to_owned(),
        Ok((used, Some(head))) => {
            assert_eq!(head.wire_size as usize, used);
            let fields = head.fields.iter().map(|field| {
                format!("{}={}", field.text.escape_ascii(), field.value.escape_ascii())
            });
            let fields = fields.collect::<Vec<_>>().join(" ");
            let reason = head.reason.escape_ascii();
            format!("{} [{reason}] {fields} +{}", head.status, input[used..].escape_ascii())
        }
        Err(error) => error.text().escape_ascii().to_string().replace("\\\"", "\""),
    }
}

#[test]
fn lines_end_with_lf_and_any_number_of_cr_before_it() {
    assert_eq!(read(b"X-A: b\r\nX-B:c\r\n\r\nbody"), "0 [] X-A=b X-B=c +body");
    assert_eq!(read(b"X-A: b\nX-B:c\n\nbody"), "0 [] X-A=b X-B=c +body");
    assert_eq!(read(b"X-A: b\r\r\r\n\nbody"), "0 [] X-A=b +body");
    assert_eq!(read(b"\r\nbody"), "0 []  +body");
    assert_eq!(read(b"X-A: b\r\n"), "partial");
    assert_eq!(read(b"X-A: b\r\n\r"), "partial");
}

#[test]
fn a_name_without_colon_is_a_field_without_value() {
    assert_eq!(read(b"X-A\r\nX-B\n\n"), "0 [] X-A= X-B= +");
    assert_eq!(read(b"X-A:\r\nX-B: \t \n\n"), "0 [] X-A= X-B= +");
}

#[test]
fn odd_names_and_controls_in_values_pass() {
    assert_eq!(read(b"X_A: b\nX(A)/@: b\nX\xe4A: b\n\n"), r"0 [] X_A=b X(A)/@=b X\xe4A=b +");
    assert_eq!(read(b"X-A: \t a\x01\x7f\x0b:b \t\n\n"), r"0 [] X-A=a\x01\x7f\x0b:b +");
}

#[test]
fn the_status_is_taken_out_and_its_first_line_counts() {
    assert_eq!(read(b"Status: 404 Nope Here\nX-A: b\n\n"), "404 [Nope Here] X-A=b +");
    assert_eq!(read(b"sTATUS: 999\n\n"), "999 []  +");
    assert_eq!(read(b"Status: 404 a\nStatus: 403 b\n\n"), "404 [a]  +");
    assert_eq!(read(b"Status: 2000 x\n\n"), "200 []  +");
    assert_eq!(read(b"Status: 103 Early Hints\n\n"), "103 [Early Hints]  +");
    for bad in ["40x", "40", "", "099 x", "-10", "+200", "2 00", "101", "1013 x"] {
        let head = format!("Status: {bad}\r\n\r\n");
        assert_eq!(read(head.as_bytes()), format!("upstream sent invalid status \"{bad}\""));
    }
}

#[test]
fn a_number_that_begins_like_an_interim_status_is_none() {
    for bad in ["1000", "1000 X", "1030", "100x", "1999"] {
        let head = format!("Status: {bad}\r\n\r\nStatus: 404\r\n\r\n");
        assert_eq!(read(head.as_bytes()), format!("upstream sent invalid status \"{bad}\""));
    }
}

#[test]
fn a_status_line_of_http_is_passed_over() {
    assert_eq!(read(b"HTTP/1.1 404 Not\0 Found\r\nX-A: b\r\n\r\n"), "0 [] X-A=b +");
    assert_eq!(read(b"http/1.1 404\n\n"), r#"upstream sent invalid header: "http/1.1\\x20...""#);
}

#[test]
fn what_is_no_field_is_refused_and_shown_up_to_the_bad_byte() {
    let cases: [(&[u8], &str); 11] = [
        (b"X-A: b\r\n c\r\n\r\n", r"\\x20..."),
        (b"X-A: b\r\n\tc\r\n\r\n", r"\\x09..."),
        (b"X-A: b\0c\n\n", r"X-A: b\\x00..."),
        (b"X-A: \0c\n\n", r"X-A: \\x00..."),
        (b"X\0A: c\n\n", r"X\\x00..."),
        (b"X-A: b\rc\n\n", r"X-A: b\\x0d..."),
        (b"X-A: b\n\r\r\nbody", r"\\x0d..."),
        (b"X-A b\n\n", r"X-A\\x20..."),
        (b"X-A : b\n\n", r"X-A\\x20..."),
        (b": b\n\n", r"\\x3a..."),
        (b"X\x7fA: b\n\n", r"X\\x7f..."),
    ];
    for (input, shown) in cases {
        assert_eq!(read(input), format!("upstream sent invalid header: \"{shown}\""));
    }
}

#[test]
fn the_log_shows_no_more_than_the_start_of_a_bad_line() {
    let line = [b"X-A: ".as_slice(), &[b'a'; 4000], b"\0\n"].concat();
    assert!(read(&line).len() < 300);
}

#[test]
fn names_of_more_than_64_kilobytes_are_refused() {
    let line = [&[b'a'; 65_536][..], b": b\n\n"].concat();
    let read = HeadParser::default().receive(&line, 1 << 20);
    assert!(matches!(read, Err(OriginError::InvalidHead(_))));
    let read = HeadParser::default().receive(&line[1..], 1 << 20);
    assert_eq!(read.expect("a head").1.expect("complete").fields.size(), 65_536);
}

#[test]
fn a_head_of_its_largest_size_passes_and_one_byte_more_does_not() {
    for cut in [1, 7, 100] {
        for (size, passes) in [(100, true), (101, false)] {
            let head = [b"X-A: ".as_slice(), &vec![b'a'; size - 9], b"\r\n\r\n"].concat();
            let mut parser = HeadParser::default();
            let found = head.chunks(cut).try_fold(false, |_, piece| {
                parser.receive(piece, 100).map(|(_, head)| head.is_some())
            });
            assert_eq!(found, if passes { Ok(true) } else { Err(OriginError::HeadTooBig) });
        }
    }
}

#[test]
fn a_head_of_a_megabyte_in_single_bytes_is_searched_once() {
    // This would not end if each byte had the previous ones scanned again.
    let line = [b"X-A: ".as_slice(), &vec![b'a'; 1 << 20], b"\r\n\r\n"].concat();
    let mut parser = HeadParser::default();
    let mut heads =
        line.chunks(1).filter_map(|byte| parser.receive(byte, 2 << 20).expect("there is room").1);
    let head = heads.next().expect("it is complete");
    assert_eq!(head.fields.get_text(b"x-a").map(<[u8]>::len), Some(1 << 20));
    assert!(heads.next().is_none());
}
