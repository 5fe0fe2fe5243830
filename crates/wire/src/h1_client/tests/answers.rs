//! Responses: status lines, lengths, chunks, interim responses, excess bytes.

use super::{get, tell, told};
use crate::origin::fuzz::{FuzzAsk, http_head};

const HEADLESS: &str = "invalid upstream sent no valid HTTP/1.0 header";

fn invalid(text: &str) -> Vec<String> {
    vec![format!("invalid upstream sent {text}").replace('"', "\\\"")]
}

/// A response whose head ends with this line and whose body is `hi`.
fn with_line(line: &str) -> Vec<u8> {
    format!("{line}\r\nContent-Length: 2\r\n\r\nhi").into_bytes()
}

#[test]
fn an_answer_is_head_body_end() {
    let bytes = b"HTTP/1.1 404 Not Here\r\nX-A: b\nStatus: 500\r\nContent-Length: 5\r\n\r\nhello";
    let story = tell(&get(), bytes);
    let head = "head 404 Not Here, X-A: b, Status: 500, Content-Length: 5";
    assert_eq!(story.told, [head, "body hello", "end 0"]);
    assert!(story.is_idle);
    assert_eq!(story.output, b"GET / HTTP/1.1\r\nHost: origin\r\n\r\n");
}

#[test]
fn status_lines_are_taken_as_nginx_takes_them() {
    for (line, head) in [
        ("HTTP/1.0 200 OK", "head 200 OK"),
        ("HTTP/1.1 200", "head 200"),
        ("HTTP/1.1 200 ", "head 200"),
        ("HTTP/1.1  200 OK", "head 200 OK"),
        ("HTTP/1.1 2 0 0 OK", "head 200 OK"),
        ("HTTP/1.1 200  Two  Words ", "head 200 Two  Words"),
        ("HTTP/1.1 404.3 Kind", "head 404 .3 Kind"),
        ("HTTP/2.0 200 OK", "head 200 OK"),
        ("HTTP/11.12 999 x", "head 999 x"),
        ("HTTP/999.999 200 x", "head 200 x"),
        ("HTTP/1.00000001 200 x", "head 200 x"),
        ("HTTP/1.1 404 No\0p\te", "head 404 No\\x00p\\te"),
    ] {
        let head = format!("{head}, Content-Length: 2");
        assert_eq!(told(&with_line(line)), [&head, "body hi", "end 0"], "{line}");
    }
}

#[test]
fn a_response_without_a_status_line_is_an_error() {
    for line in [
        "",
        "\r",
        "HTT",
        "X-A: b",
        "http/1.1 200 OK",
        "ICY 200 OK",
        " HTTP/1.1 200 OK",
        "HTTP/0.9 200 OK",
        "HTTP/01.1 200 OK",
        "HTTP/1 200 OK",
        "HTTP/1. 200 OK",
        "HTTP/.1 200 OK",
        "HTTP/a.1 200",
        "HTTP/1000.1 200 x",
        "HTTP/1.1000 200 x",
        "HTTP/1.1",
        "HTTP/1.1 ",
        "HTTP/1.1\t200 OK",
        "HTTP/1.1 99 x",
        "HTTP/1.1 1000 x",
        "HTTP/1.1 200x",
        "HTTP/1.1 2a0 x",
        "HTTP/1.1 200 O\rK",
        "HTTP/1.1 200 OK\r",
    ] {
        let bytes = with_line(line);
        let story = tell(&get(), &bytes);
        assert_eq!(story.told, [HEADLESS], "{line}");
        assert!(!story.is_idle);
    }
}

#[test]
fn a_status_below_100_is_refused() {
    for code in ["099", "000"] {
        let line = format!("HTTP/1.1 {code} x");
        assert_eq!(told(&with_line(&line)), invalid(&format!("invalid status \"{code}\"")));
    }
}

#[test]
fn an_end_before_the_end_of_the_head_is_an_error() {
    for bytes in [&b""[..], b"HTT", b"HTTP/1.1 200", b"HTTP/1.1 200 OK\r\nX: y\r\n"] {
        assert_eq!(told(bytes), ["error upstream prematurely closed connection"]);
    }
    let bytes = b"HTTP/1.1 103 E\r\n\r\n";
    assert_eq!(told(bytes), ["head 103 E", "error upstream prematurely closed connection"]);
}

#[test]
fn a_head_of_its_largest_size_passes_and_one_byte_more_does_not() {
    let mut ask = get();
    ask.settings.head_max = 100;
    for (size, passes) in [(100, true), (101, false)] {
        let start = "HTTP/1.1 200 OK\r\n";
        let field = format!("{start}X: {}\r\n\r\n", "a".repeat(size - start.len() - 7));
        let reason = format!("HTTP/1.1 200 {}\r\n\r\n", "a".repeat(size - 17));
        for bytes in [field, reason] {
            assert_eq!(bytes.len(), size);
            let told = tell(&ask, bytes.as_bytes()).told;
            assert_eq!(told != invalid("too big header"), passes, "{told:?}");
        }
    }
}

#[test]
fn lengths_that_contradict_are_refused_with_the_words_of_nginx() {
    let both = "\"Content-Length\" and \"Transfer-Encoding\" headers at the same time";
    for (fields, text) in [
        ("Content-Length: 2|Transfer-Encoding: chunked", both),
        ("Transfer-Encoding: chunked|Content-Length: 2", both),
        ("Content-Length: 2|Transfer-Encoding: gzip", both),
        (
            "Content-Length: 2|Content-Length: 3",
            "duplicate header line: \"Content-Length: 3\", previous value: \"Content-Length: 2\"",
        ),
        (
            "Transfer-Encoding: chunked|Transfer-Encoding: chunked",
            "duplicate header line: \"Transfer-Encoding: chunked\", \
             previous value: \"Transfer-Encoding: chunked\"",
        ),
        ("Content-Length: 2x", "invalid \"Content-Length\" header: \"Content-Length: 2x\""),
        ("Content-Length:", "invalid \"Content-Length\" header: \"Content-Length: \""),
        ("Transfer-Encoding: gzip|Content-Length: 2", "unknown \"Transfer-Encoding\": \"gzip\""),
        ("Transfer-Encoding: gzip, chunked", "unknown \"Transfer-Encoding\": \"gzip, chunked\""),
        ("Transfer-Encoding: identity", "unknown \"Transfer-Encoding\": \"identity\""),
        ("Transfer-Encoding:", "unknown \"Transfer-Encoding\": \"\""),
    ] {
        let bytes = format!("HTTP/1.1 200 OK\r\n{}\r\n\r\nhi", fields.replace('|', "\r\n"));
        assert_eq!(told(bytes.as_bytes()), invalid(text), "{fields}");
    }
}

#[test]
fn a_body_without_length_ends_with_the_connection() {
    let story = tell(&get(), b"HTTP/1.1 200 OK\r\n\r\nhi");
    assert_eq!(story.told, ["head 200 OK", "body hi", "end 0"]);
    assert!(!story.is_idle);
}

#[test]
fn a_short_body_is_an_error_and_a_long_one_is_cut() {
    let head = "head 200 OK, Content-Length: 3";
    let error = "error upstream prematurely closed connection";
    let start = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n";
    assert_eq!(told(format!("{start}hi").as_bytes()), [head, "body hi", error]);
    assert_eq!(told(start.as_bytes()), [head, error]);
    let story = tell(&get(), format!("{start}hihi").as_bytes());
    assert_eq!(story.told, [head, "body hih", "excess", "end 0"]);
    assert!(!story.is_idle);
}

#[test]
fn no_body_stands_behind_a_status_that_has_none() {
    for (line, field) in [
        ("204 N", "X: y"),
        ("204 N", "Content-Length: 5"),
        ("304 N", "Content-Length: 5"),
        ("304 N", "Transfer-Encoding: chunked"),
    ] {
        let head = format!("head {line}, {field}");
        let bytes = format!("HTTP/1.1 {line}\r\n{field}\r\n\r\n");
        let story = tell(&get(), bytes.as_bytes());
        assert_eq!(story.told, [&head, "end 0"]);
        assert!(story.is_idle);
        let story = tell(&get(), format!("{bytes}more").as_bytes());
        assert_eq!(story.told, [&head, "excess", "end 0"]);
        assert!(!story.is_idle);
    }
}

#[test]
fn the_answer_to_head_ends_with_its_head() {
    let mut ask = get();
    ask.settings.answers_head = true;
    for field in ["X: y", "Content-Length: 5", "Transfer-Encoding: chunked"] {
        let head = format!("head 200 OK, {field}");
        let bytes = format!("HTTP/1.1 200 OK\r\n{field}\r\n\r\n");
        let story = tell(&ask, bytes.as_bytes());
        assert_eq!(story.told, [&head, "end 0"]);
        assert!(story.is_idle);
        let story = tell(&ask, format!("{bytes}hello").as_bytes());
        assert_eq!(story.told, [&head, "end 0"]);
        assert!(!story.is_idle, "bytes behind it belong to no request");
    }
    assert_eq!(tell(&ask, b"hello").told, [HEADLESS]);
}

#[test]
fn only_answers_of_1_1_without_close_keep_the_connection() {
    for (version, option, stays) in [
        ("1.1", "X: y", true),
        ("1.1", "Connection: keep-alive", true),
        ("1.2", "X: y", true),
        ("2.0", "X: y", true),
        ("1.01", "X: y", true),
        ("1.1", "Connection: close", false),
        ("1.1", "Connection: foo, Close", false),
        ("1.1", "Connection: keep-alive\r\nConnection: close", false),
        ("1.1", "Connection: xclosex", false),
        ("1.0", "X: y", false),
        ("1.0", "Connection: keep-alive", false),
    ] {
        let bytes = format!("HTTP/{version} 200 OK\r\n{option}\r\nContent-Length: 2\r\n\r\nhi");
        let mut ask = get();
        assert_eq!(tell(&ask, bytes.as_bytes()).is_idle, stays, "{version} {option}");
        ask.settings.keep = false;
        assert!(!tell(&ask, bytes.as_bytes()).is_idle);
    }
}

#[test]
fn chunks_are_joined_and_their_extensions_passed_over() {
    let head = "head 200 OK, Transfer-Encoding: CHUNKED";
    for chunks in [
        "2\r\nhi\r\n0\r\n\r\n",
        "2;a=b\r\nhi\r\n0;x\r\n\r\n",
        "2 \r\nhi\r\n0\t\r\n\r\n",
        "0000000000000000000000002\r\nhi\r\n000\r\n\r\n",
        "2;\x01\x7f\0\r\nhi\r\n0\r\n\r\n",
        "1\r\nh\r\n1  ; x\r\ni\r\n0\r\n\r\n",
        "2  x\r\nhi\r\n0\r\n\r\n",
        "2\r\nhi\r\n0\r\n: x\r\n y\r\n\r\n",
    ] {
        let bytes = format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: CHUNKED\r\n\r\n{chunks}");
        let story = tell(&get(), bytes.as_bytes());
        assert_eq!(story.told, [head, "body hi", "end 0"], "{chunks:?}");
        assert!(story.is_idle);
        let story = tell(&get(), format!("{bytes}more").as_bytes());
        assert_eq!(story.told, [head, "body hi", "excess chunk", "end 0"]);
        assert!(!story.is_idle);
    }
    let bytes = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nA\r\n0123456789\r\n\
        a\r\n0123456789\r\n0\r\n\r\n";
    assert_eq!(told(bytes)[1], "body 01234567890123456789");
}

#[test]
fn broken_chunks_are_refused() {
    for (chunks, body) in [
        ("2\nhi\r\n0\r\n\r\n", ""),
        (" 2\r\nhi\r\n0\r\n\r\n", ""),
        ("\r\n2\r\nhi\r\n", ""),
        ("x\r\nhi\r\n0\r\n\r\n", ""),
        ("-1\r\nhi\r\n", ""),
        ("2\rxhi\r\n0\r\n\r\n", ""),
        ("2x\r\nhi\r\n0\r\n\r\n", ""),
        ("ffffffffffffffff\r\nhi", ""),
        (";\r\nhi", ""),
        ("7fffffffffffffff\r\nhi", ""),
        ("10000000000000000\r\nhi", ""),
        ("2\r\r\nhi\r\n", ""),
        ("2;a=\"\n\"\r\nhi\r\n", ""),
        ("2\r\nhi0\r\n\r\n", "hi"),
        ("2\r\nhihi\r\n", "hi"),
        ("2\r\nhi\n0\r\n\r\n", "hi"),
        ("2\r\nhi\r\n\r\n0\r\n\r\n", "hi"),
        ("0\n\r\n", ""),
        ("0\r\n\n", ""),
        ("0\r\nX: y\n\r\n", ""),
        ("0\r\nX: y\r\n\n", ""),
        ("0\r\n\rx", ""),
        ("0\r\nA\rx: y\r\n\r\n", ""),
    ] {
        let bytes = format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{chunks}");
        let body = (!body.is_empty()).then(|| format!("body {body}"));
        let told: Vec<String> = told(bytes.as_bytes()).into_iter().skip(1).collect();
        let error = invalid("invalid chunked response");
        assert_eq!(told, body.into_iter().chain(error).collect::<Vec<_>>(), "{chunks:?}");
    }
}

#[test]
fn an_end_before_the_last_chunk_is_an_error() {
    let error = "error upstream prematurely closed connection";
    for (chunks, body) in [
        ("", ""),
        ("2\r\nh", "h"),
        ("2\r\nhi", "hi"),
        ("2\r\nhi\r\n", "hi"),
        ("0", ""),
        ("0\r\n", ""),
        ("0\r\nX: y\r\n", ""),
        ("0\r\n\r", ""),
        ("07ffffffffffffff\r\nhi", "hi"),
    ] {
        let bytes = format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{chunks}");
        let told = told(bytes.as_bytes());
        assert_eq!(told.last().map(String::as_str), Some(error), "{chunks:?}");
        assert_eq!(told.contains(&format!("body {body}")), !body.is_empty());
    }
}

#[test]
fn trailers_are_told_before_the_end() {
    let head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n";
    let bytes = [&head[..], b"X-Sum: 1 \r\nbad line\r\nETag: \"a\"\r\n\r\n"].concat();
    let story = tell(&get(), &bytes);
    assert_eq!(story.told[1..], ["body hi", "trailers, X-Sum: 1, ETag: \\\"a\\\"", "end 0"]);
    assert!(story.is_idle);
    let long = format!("X: y\r\nX-Long: {}\r\nX: y\r\n\r\n", "a".repeat(9000));
    let story = tell(&get(), &[&head[..], long.as_bytes()].concat());
    assert_eq!(story.told[1..], ["body hi", "end 0"], "too many are let go");
}

#[test]
fn early_heads_come_before_the_answer_and_have_no_body() {
    let bytes =
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.0 103 E\r\nContent-Length: x\r\nLink: a\r\n\r\n\
        HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi";
    let story = tell(&get(), bytes);
    let early = "head 103 E, Content-Length: x, Link: a";
    let head = "head 200 OK, Content-Length: 2";
    assert_eq!(story.told, ["head 100 Continue", early, head, "body hi", "end 0"]);
    assert!(story.is_idle);
    let told = told(b"HTTP/1.1 103 E\r\n\r\nhello");
    assert_eq!(told, ["head 103 E", HEADLESS]);
    let many = b"HTTP/1.1 103 E\r\n\r\n".repeat(40);
    assert_eq!(super::told(&many).last(), invalid("too many early headers").last());
}

#[test]
fn an_answer_that_comes_before_the_request_ends_it_and_the_connection() {
    let head = http_head(b"POST", b"/");
    let bytes = b"HTTP/1.1 413 Large\r\nContent-Length: 0\r\n\r\n";
    for has_length in [true, false] {
        let first = crate::origin::fuzz::First::Receive;
        let ask = FuzzAsk { body_len: 3000, has_length, first, ..FuzzAsk::of(head.clone()) };
        let story = tell(&ask, bytes);
        assert_eq!(story.told, ["head 413 Large, Content-Length: 0", "end 0"]);
        assert!(!story.is_idle && story.output.is_empty());
    }
}
