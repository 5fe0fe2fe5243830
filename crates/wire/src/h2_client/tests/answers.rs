//! Responses: the events that each produces, and nginx's error messages for invalid ones.

use super::*;

#[test]
fn a_response_has_a_head_messages_and_trailers() {
    let frames = [ok(), data(b"hel"), data(b"lo"), trailers()];
    let head = "head 200, Content-Type: application/grpc";
    assert_eq!(told(&frames), [head, "body hello", "trailers, grpc-status: 0", "end 0"]);
    assert!(tell(&call(), &frames.concat()).is_idle);
    assert_eq!(told(&[ok(), last_data(b"x")]), [head, "body x", "end 0"]);
    assert_eq!(told(&[ok(), last_data(b"")]), [head, "end 0"]);
}

#[test]
fn a_response_that_ends_with_its_head_has_no_body() {
    let only = frame(HEADERS, WHOLE | END, 1, &block(&[(":status", "200"), ("grpc-status", "5")]));
    assert_eq!(told(&[only]), ["head 200, grpc-status: 5, Content-Length: 0", "end 0"]);
    let sized =
        frame(HEADERS, WHOLE | END, 1, &block(&[(":status", "200"), ("content-length", "3")]));
    assert_eq!(
        told(std::slice::from_ref(&sized)),
        ["invalid upstream prematurely closed stream"],
        "it can still be a 502"
    );
    let mut ask = call();
    ask.settings.answers_head = true;
    assert_eq!(tell(&ask, &sized).told, ["head 200, Content-Length: 3", "end 0"]);
}

#[test]
fn padding_priorities_and_continuations_mean_nothing() {
    let fields = block(&[(":status", "200")]);
    let padded = [&[3], &[0, 0, 0, 0, 9][..], &fields, &[0; 3]].concat();
    let frames = [
        frame(HEADERS, WHOLE | 0x28, 1, &padded),
        frame(DATA, 8, 1, b"\x02hello\0\0"),
        frame(DATA, 8, 1, b"\x02\0\0"),
        frame(2, 0, 1, &[0; 5]),
        frame(0x42, 0xff, 9, b"whatever"),
        last_data(b""),
    ];
    assert_eq!(told(&frames), ["head 200", "body hello", "end 0"]);
    let cut = [
        frame(HEADERS, END, 1, &fields[..4]),
        frame(CONTINUATION, 0, 1, b""),
        frame(CONTINUATION, WHOLE, 1, &fields[4..]),
    ];
    assert_eq!(told(&cut), ["head 200, Content-Length: 0", "end 0"]);
}

#[test]
fn interim_responses_come_before_the_final_one() {
    let early = head(&[(":status", "103"), ("link", "</a>")]);
    assert_eq!(told(&[early.clone(), ok(), last_data(b"x")])[0], "head 103, Link: </a>");
    let many = vec![early; 33];
    assert_eq!(
        told(&many).last().map(String::as_str),
        Some("invalid upstream sent too many early headers")
    );
}

#[test]
fn fields_that_are_about_a_connection_are_dropped_and_blanks_are_cut() {
    let odd = head(&[
        (":status", "200"),
        ("connection", "close"),
        ("transfer-encoding", "chunked"),
        ("upgrade", "x"),
        ("fo_o", " a "),
    ]);
    assert_eq!(told(&[odd, last_data(b"")])[0], "head 200, fo_o: a");
}

/// The text of the error that these frames bring.
fn error(frames: &[Vec<u8>]) -> String {
    let told = told(frames);
    let last = told.last().expect("something is told");
    last.strip_prefix("invalid upstream ").unwrap_or(last).to_owned()
}

#[test]
fn errors_have_nginx_s_words() {
    let heads: [(&[(&str, &str)], &str); 13] = [
        (&[("content-type", "a")], "sent no :status header"),
        (&[("a", "b"), (":status", "200")], "sent no :status header"),
        (&[(":status", "200"), (":status", "200")], "sent duplicate :status header"),
        (&[(":status", "2x0")], "sent invalid :status \"2x0\""),
        (&[(":status", "20")], "sent invalid :status \"20\""),
        (&[(":status", "099")], "sent unexpected :status \"099\""),
        (&[(":status", "101")], "sent unexpected :status \"101\""),
        (&[(":status", "200"), (":foo", "1")], "sent invalid header \":foo: 1\""),
        (&[(":status", "200"), ("Foo", "1")], "sent invalid header: \"Foo: 1\""),
        (&[(":status", "200"), ("fo o", "1")], "sent invalid header: \"fo o: 1\""),
        (&[(":status", "200"), ("", "1")], "sent zero http2 header name length"),
        (&[(":status", "200"), ("a", "b\nc")], "sent invalid header: \"a: b\\nc\""),
        (
            &[(":status", "200"), ("content-length", "x")],
            "sent invalid \"Content-Length\" header: \"Content-Length: x\"",
        ),
    ];
    for (fields, text) in heads {
        assert_eq!(error(&[head(fields)]).replace("\\\"", "\""), text);
    }
    let sized = head(&[(":status", "200"), ("content-length", "2")]);
    let rows: [(&[Vec<u8>], &str); 31] = [
        (&[data(b"x")], "sent unexpected http2 frame: 0"),
        (&[frame(CONTINUATION, 4, 1, b"")], "sent unexpected http2 frame: 9"),
        (
            &[frame(HEADERS, 0, 1, b""), frame(PING, 0, 0, &[0; 8])],
            "sent unexpected http2 frame: 6",
        ),
        (&[frame(5, 4, 1, b"")], "sent unexpected push promise frame"),
        (&[frame(HEADERS, 5, 3, b"")], "sent frame for unknown stream 3"),
        (&[frame(WINDOW_UPDATE, 0, 3, &[1; 4])], "sent frame for unknown stream 3"),
        (&[frame(RST_STREAM, 0, 0, &[1; 4])], "sent frame for unknown stream 0"),
        (&[ok(), frame(DATA, 0, 3, b"x")], "sent data frame for unknown stream 3"),
        (&[frame(RST_STREAM, 0, 1, &[0, 0, 0, 2])], "rejected request with error 2"),
        (&[frame(RST_STREAM, 0, 1, &[0, 0, 0, 7])], "rejected request with error 7"),
        (&[ok(), data(b"x"), frame(RST_STREAM, 0, 1, &[0; 4])], "rejected request with error 0"),
        (&[frame(GOAWAY, 0, 0, &[0; 8])], "sent goaway with error 0"),
        (&[frame(GOAWAY, 0, 0, &[0; 4])], "sent goaway frame with invalid length: 4"),
        (&[frame(GOAWAY, 0, 1, &[0; 8])], "sent goaway frame with non-zero stream id: 1"),
        (&[frame(SETTINGS, 0, 0, &[0; 5])], "sent settings frame with invalid length: 5"),
        (&[frame(SETTINGS, 0, 1, b"")], "sent settings frame with non-zero stream id: 1"),
        (
            &[frame(SETTINGS, 1, 0, &[0; 6])],
            "sent settings frame with ack flag and non-zero length: 6",
        ),
        (
            &[frame(SETTINGS, 0, 0, &[0, 4, 0x80, 0, 0, 0])],
            "sent settings frame with too large initial window size: 2147483648",
        ),
        (
            &[frame(SETTINGS, 0, 0, &[0, 5, 0, 0, 0, 1])],
            "sent settings frame with invalid frame size: 1",
        ),
        (&[frame(PING, 0, 0, &[0; 7])], "sent ping frame with invalid length: 7"),
        (&[frame(PING, 0, 1, &[0; 8])], "sent ping frame with non-zero stream id: 1"),
        (&[frame(WINDOW_UPDATE, 0, 0, &[0x7f, 0xff, 0xff, 0xff])], "sent too large window update"),
        (&[frame(WINDOW_UPDATE, 0, 1, &[0x7f, 0xff, 0xff, 0xff])], "sent too large window update"),
        (&[frame(WINDOW_UPDATE, 0, 1, &[0; 3])], "sent window update frame with invalid length: 3"),
        (&[frame(RST_STREAM, 0, 1, &[0; 3])], "sent rst stream frame with invalid length: 3"),
        (&[b"HTTP/1.1 400 Bad Request\r\n".to_vec()], "sent too large http2 frame: 4740180"),
        (&[ok(), frame(HEADERS, 4, 1, b"")], "sent trailer without end stream flag"),
        (
            &[ok(), frame(HEADERS, 5, 1, &block(&[(":status", "200")]))],
            "sent invalid trailer \\\":status: 200\\\"",
        ),
        (&[sized.clone(), last_data(b"x")], "prematurely closed stream"),
        (&[sized, data(b"xyz")], "sent response body larger than indicated content length"),
        (&[ok(), frame(DATA, 8, 1, &[2, 0])], "sent http2 frame with too long padding"),
    ];
    for (frames, text) in rows {
        assert_eq!(error(frames), text);
    }
}

#[test]
fn blocks_that_cannot_be_decoded_have_nginx_s_words() {
    for (block, text) in [
        (&b"\x80"[..], "sent invalid http2 table index"),
        (b"\xff\x0f", "sent invalid http2 table index"),
        (b"\x3f\xff\xff\x7f\x88", "sent invalid http2 dynamic table size update"),
        (b"\x88\x00\x05ab", "sent truncated http2 header"),
        (b"\x88\x00\x01a\x81\x00", "sent invalid encoded header"),
    ] {
        assert_eq!(error(&[frame(HEADERS, WHOLE, 1, block)]), text);
    }
}

#[test]
fn heads_have_a_largest_size_as_they_come_and_decoded() {
    let large = |count: usize| {
        let field = ("x-a", "0123456789012345678901234567890123456789");
        [vec![(":status", "200")], vec![field; count]].concat()
    };
    assert!(error(&[head(&large(20)), last_data(b"")]).ends_with("end 0"));
    assert_eq!(error(&[head(&large(200))]), "sent too big header");
    let pieces =
        [frame(HEADERS, 0, 1, &block(&large(100))), frame(CONTINUATION, 0, 1, &block(&large(100)))];
    assert_eq!(error(&pieces), "sent too big header");
    // An indexed field of 3000 bytes, again and again.
    let long = [&[0x40, 1, b'a', 0x7f, 0xb9, 0x16][..], &[b'v'; 3000]].concat();
    let bomb = [&[0x88][..], &long, &[0xbe; 200]].concat();
    assert_eq!(error(&[frame(HEADERS, WHOLE, 1, &bomb)]), "sent too big header");
}

#[test]
fn a_connection_that_ends_too_early_is_an_error() {
    assert_eq!(told(&[]), ["error upstream prematurely closed connection"]);
    let whole = [ok(), data(b"hello"), trailers()].concat();
    for end in 0..whole.len() {
        let told = tell(&call(), &whole[..end]).told;
        let last = told.last().expect("an error is told");
        assert_eq!(last, "error upstream prematurely closed connection", "after {end} bytes");
    }
}
