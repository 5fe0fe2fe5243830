//! Replies to `get`, whole, cut at every byte, and wrong.

use bolide_http::MemcachedGet;
use proptest::prelude::*;

use crate::origin::fuzz::{FuzzAsk, UpstreamStory};
use crate::{OriginConn, OriginConnSettings};

fn ask(gzip_flag: u32) -> FuzzAsk {
    FuzzAsk::of(MemcachedGet { key: b"/a".to_vec(), kind: b"text/plain".to_vec(), gzip_flag })
}

fn tell(reply: &[u8], gzip_flag: u32) -> UpstreamStory {
    UpstreamStory::tell(OriginConn::memcached, &ask(gzip_flag), &[reply])
}

const HEAD: &str = "head 200, Content-Type: text/plain, Content-Length: 3, Accept-Ranges: bytes";
const CUT: &str = "error upstream prematurely closed connection";

#[test]
fn a_value_has_its_bytes_and_an_end() {
    let story = tell(b"VALUE /a 0 3\r\nabc\r\nEND\r\n", 0);
    assert_eq!(story.output, b"get /a\r\n");
    assert_eq!(story.told, [HEAD, "body abc", "end 0"]);
    assert!(story.is_idle);
    let story = tell(b"VALUE /a 0 0\r\n\r\nEND\r\n", 0);
    assert_eq!(story.told[1..], ["end 0"]);
    assert!(story.is_idle);
}

#[test]
fn a_key_that_is_not_there_is_a_404_over_a_connection_that_stays() {
    let story = tell(b"END\r\n", 0);
    assert_eq!(story.told, ["missing /a", "head 404", "end 0"]);
    assert!(story.is_idle);
    assert!(!tell(b"END\r\nEND\r\n", 0).is_idle, "more came than was asked for");
}

#[test]
fn a_flag_says_that_the_value_is_in_gzip() {
    let coded = "head 200, Content-Type: text/plain, Content-Length: 1, Content-Encoding: gzip, \
                 Accept-Ranges: bytes";
    for (flags, flag, is_coded) in
        [("2", 2, true), ("3", 2, true), ("1", 2, false), ("4294967298", 2, true)]
    {
        let reply = format!("VALUE /a {flags} 1\r\nx\r\nEND\r\n");
        let story = tell(reply.as_bytes(), flag);
        assert_eq!(story.told[0] == coded, is_coded, "{flags} {flag}");
    }
    let told = tell(b"VALUE /a x 1\r\nx\r\nEND\r\n", 2).told;
    let text = "memcached sent invalid flags in response \\\"VALUE /a x 1\\\" for key \\\"/a\\\"";
    assert_eq!(told, [format!("invalid {text}")]);
    assert_eq!(tell(b"VALUE /a x 1\r\nx\r\nEND\r\n", 0).told.len(), 3, "it is not looked at");
}

#[test]
fn nonsense_is_an_invalid_head_in_the_words_of_nginx() {
    let invalid = [
        "ERROR\r\n",
        "SERVER_ERROR out\r\n",
        "\r\n",
        "END\n",
        "ENDX\r\n",
        "END \r\n",
        "VALUE\r\n",
        "VALUE /a\r\n",
        "VALUE /a 3\r\n",
        "VALUE /ax 0 3\r\n",
        "VALUE /a 0 3\n",
        "value /a 0 3\r\n",
    ];
    for line in invalid {
        let shown = line.trim_end_matches('\n').trim_end_matches('\r');
        let text = format!("invalid memcached sent invalid response: \\\"{shown}\\\"");
        assert_eq!(tell(line.as_bytes(), 0).told, [text], "{line:?}");
    }
    for (line, what) in [
        ("VALUE b 0 3", "key"),
        ("VALUE  /a 0 3", "key"),
        ("VALUE /a 0 x", "length"),
        ("VALUE /a 0 -3", "length"),
        ("VALUE /a 0 ", "length"),
        ("VALUE /a  0 3", "length"),
        ("VALUE /a 0 3 77", "length"),
        ("VALUE /a 0 99999999999999999999", "length"),
    ] {
        let text = format!(
            "invalid memcached sent invalid {what} in response \\\"{line}\\\" for key \\\"/a\\\""
        );
        assert_eq!(tell(format!("{line}\r\n").as_bytes(), 0).told, [text], "{line}");
    }
}

#[test]
fn what_is_cut_off_is_never_complete() {
    let whole = b"VALUE /a 0 3\r\nabc\r\nEND\r\n";
    for end in 0..whole.len() {
        let story = tell(&whole[..end], 0);
        assert_eq!(story.told.last().map(String::as_str), Some(CUT), "{end}");
        assert!(!story.is_idle);
    }
}

#[test]
fn a_wrong_end_is_told_and_ends_the_connection() {
    for reply in [&b"VALUE /a 0 3\r\nabc\r\nENX\r\n"[..], b"VALUE /a 0 3\r\nabcd\r\nEND\r\n"] {
        let story = tell(reply, 0);
        assert_eq!(story.told, [HEAD, "body abc", "bad trailer", "end 0"]);
        assert!(!story.is_idle);
    }
    let story = tell(b"VALUE /a 0 3\r\nabc\r\nEND\r\nmore", 0);
    assert_eq!(story.told, [HEAD, "body abc", "end 0"]);
    assert!(!story.is_idle);
}

#[test]
fn a_line_has_to_fit_the_buffer() {
    let settings = OriginConnSettings { head_max: 14, keep: true, answers_head: false };
    let mut ask = FuzzAsk { settings, ..ask(0) };
    let of = |ask: &FuzzAsk, reply: &[u8]| {
        UpstreamStory::tell(OriginConn::memcached, ask, &[reply]).told
    };
    assert_eq!(of(&ask, b"VALUE /a 0 3\r\nabc\r\nEND\r\n").len(), 3);
    ask.settings.head_max = 13;
    let too_big = ["invalid upstream sent too big header"];
    assert_eq!(of(&ask, b"VALUE /a 0 3\r\nabc\r\nEND\r\n"), too_big);
    assert_eq!(of(&ask, b"VALUE /a 0 3\r"), too_big);
}

#[test]
fn head_reads_no_value() {
    let settings = OriginConnSettings { answers_head: true, ..FuzzAsk::default().settings };
    let ask = FuzzAsk { settings, ..ask(0) };
    let reply = b"VALUE /a 0 3\r\nabc\r\nEND\r\n";
    let story = UpstreamStory::tell(OriginConn::memcached, &ask, &[reply]);
    assert_eq!(story.told, [HEAD, "end 0"]);
    assert!(!story.is_idle);
}

#[test]
fn a_key_with_a_space_or_an_end_of_a_line_is_not_asked_for() {
    for key in [&b""[..], b"a b", b"a\r\nflush_all", b"a\0"] {
        let ask = FuzzAsk::of(MemcachedGet { key: key.to_vec(), ..MemcachedGet::default() });
        let story = UpstreamStory::tell(OriginConn::memcached, &ask, &[]);
        assert!(story.is_broken && story.output.is_empty());
    }
}

proptest! {
    #[test]
    fn any_value_arrives_whole_however_it_is_cut(
        value in proptest::collection::vec(any::<u8>(), 0..200),
        flags in any::<u32>(),
        size in 1_usize..20,
    ) {
        let line = format!("VALUE /a {flags} {}\r\n", value.len());
        let reply = [line.as_bytes(), &value, b"\r\nEND\r\n"].concat();
        let whole = tell(&reply, 0);
        let pieces: Vec<&[u8]> = reply.chunks(size).collect();
        let cut = UpstreamStory::tell(OriginConn::memcached, &ask(0), &pieces);
        prop_assert_eq!(&whole, &cut);
        prop_assert!(whole.is_idle);
        let body = whole.told.iter().find_map(|told| told.strip_prefix("body "));
        let wanted = value.escape_ascii().to_string();
        prop_assert_eq!(body.unwrap_or_default(), wanted);
    }

    #[test]
    fn no_bytes_are_misread(reply in proptest::collection::vec(any::<u8>(), 0..100)) {
        let whole = tell(&reply, 2);
        let pieces: Vec<&[u8]> = reply.chunks(1).collect();
        let cut = UpstreamStory::tell(OriginConn::memcached, &ask(2), &pieces);
        prop_assert_eq!(whole, cut);
    }
}
