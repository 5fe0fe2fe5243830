//! Requests to upstreams as applications parse them, with code of their own.

/// A request as the application parses it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct FuzzRequest {
    /// The request line (HTTP).
    pub(crate) line: Vec<u8>,
    pub(crate) pairs: Vec<(Vec<u8>, Vec<u8>)>,
    pub(crate) body: Vec<u8>,
    pub(crate) is_whole: bool,
    pub(crate) is_aborted: bool,
    /// Whether to keep the connection (FastCGI).
    pub(crate) keeps: bool,
    /// Type and content length of each record (FastCGI).
    pub(crate) records: Vec<(u8, usize)>,
}

/// Parses FastCGI records (FastCGI specification §3).
pub(crate) fn read_fcgi(mut bytes: &[u8]) -> FuzzRequest {
    let (mut request, mut params) = (FuzzRequest::default(), Vec::new());
    let mut expected = [1].as_slice();
    while let [version, kind, id @ .., _, _, _, _] = bytes.get(..8).unwrap_or_default() {
        assert_eq!((*version, id), (1, [0, 1].as_slice()), "version and id");
        assert!(expected.contains(kind), "record {kind} where {expected:?} may stand");
        let len = usize::from(u16::from_be_bytes([bytes[4], bytes[5]]));
        let content = &bytes[8..8 + len];
        request.records.push((*kind, len));
        bytes = &bytes[8 + len + usize::from(bytes[6])..];
        expected = match (*kind, len) {
            (1, 8) => {
                assert_eq!(content[..2], [0, 1], "the role of a responder");
                request.keeps = content[2] == 1;
                &[4]
            }
            (4, 0) => &[5, 2],
            (4, _) => &[4],
            (5, 0) => {
                request.is_whole = true;
                &[2]
            }
            (5, _) => &[5, 2],
            (2, 0) => {
                request.is_aborted = true;
                &[]
            }
            other => panic!("record {other:?}"),
        };
        match *kind {
            4 => params.extend_from_slice(content),
            5 => request.body.extend_from_slice(content),
            _ => {}
        }
    }
    assert!(bytes.is_empty(), "only whole records leave");
    let mut rest = params.as_slice();
    while !rest.is_empty() {
        let (name, value) = (take_length(&mut rest), take_length(&mut rest));
        request.pairs.push((rest[..name].to_vec(), rest[name..name + value].to_vec()));
        rest = &rest[name + value..];
    }
    request
}

fn take_length(rest: &mut &[u8]) -> usize {
    let (length, size) = match **rest {
        [first @ 0..=127, ..] => (u32::from(first), 1),
        [first, b, c, d, ..] => (u32::from_be_bytes([first & 127, b, c, d]), 4),
        _ => panic!("a cut length"),
    };
    *rest = &rest[size..];
    length as usize
}

/// Parses an LSAPI packet as LiteSpeed's library does; the client's fields become variables again.
pub(crate) fn read_lsapi(bytes: &[u8]) -> FuzzRequest {
    let int = |at: usize| {
        let four = bytes[at..at + 4].try_into().expect("four bytes are four");
        i32::from_le_bytes(four)
    };
    let at_int = |at: usize| usize::try_from(int(at)).expect("an offset is not negative");
    assert_eq!(&bytes[..4], b"LS\x01\0", "a request, little-endian");
    let size = at_int(4);
    assert!(size <= 262_144, "the most that is taken");
    let mut at = 44;
    let mut request = FuzzRequest::default();
    for count in [at_int(40), at_int(36)] {
        for _ in 0..count {
            let length = |at| usize::from(u16::from_be_bytes([bytes[at], bytes[at + 1]]));
            let (name, value) = (length(at), length(at + 2));
            at += 4;
            let text = &bytes[at..at + name + value];
            assert!(text[name - 1] == 0 && text[name + value - 1] == 0, "zeros end texts");
            request.pairs.push((text[..name - 1].to_vec(), text[name..name + value - 1].to_vec()));
            at += name + value;
        }
        assert_eq!(bytes[at..at + 4], [0; 4], "zeros end a list");
        at += 4;
    }
    at = at.next_multiple_of(8);
    let unknown_at = at + 152;
    let lines_at = unknown_at + 16 * at_int(32);
    let field = |place: usize, len: usize| bytes[lines_at + place..lines_at + place + len].to_vec();
    for known in 0..25 {
        let length =
            usize::from(u16::from_le_bytes([bytes[at + known * 2], bytes[at + known * 2 + 1]]));
        let place = at_int(at + 52 + known * 4);
        if place != 0 {
            let name = format!("known {known}").into_bytes();
            request.pairs.push((name, field(place, length)));
        }
    }
    for unknown in 0..at_int(32) {
        let entry = unknown_at + unknown * 16;
        let name = field(at_int(entry), at_int(entry + 4));
        let upper =
            name.iter().map(|byte| if *byte == b'-' { b'_' } else { byte.to_ascii_uppercase() });
        let name = b"HTTP_".iter().copied().chain(upper).collect();
        request.pairs.push((name, field(at_int(entry + 8), at_int(entry + 12))));
    }
    assert_eq!(lines_at + at_int(8), size, "the parts fill the packet");
    for pointed in [16, 20, 24, 28] {
        assert!(at_int(pointed) >= 44 && at_int(pointed) < lines_at, "values stand in the list");
    }
    let body_len = usize::try_from(int(12)).expect("tests have small bodies");
    let body = &bytes[size..];
    request.is_whole = body.len() >= body_len;
    let (body, rest) = body.split_at(body.len().min(body_len));
    request.body = body.to_vec();
    request.is_aborted = rest == b"LS\x02\0\x08\0\0\0";
    assert!(request.is_aborted || rest.is_empty(), "nothing stands behind the body");
    request
}

/// Parses a uwsgi packet and the body behind it.
pub(crate) fn read_uwsgi(bytes: &[u8], modifier: u8, text: &[u8]) -> FuzzRequest {
    let [modifier1, low, high, modifier2, rest @ ..] = bytes else { panic!("a cut header") };
    assert_eq!((*modifier1, *modifier2), (modifier, !modifier), "both modifiers");
    let (packet, body) = rest.split_at(usize::from(u16::from_le_bytes([*low, *high])));
    let mut vars = packet.strip_suffix(text).expect("the text stands behind the variables");
    let mut take = || {
        let [low, high, rest @ ..] = vars else { panic!("a cut length") };
        let (part, rest) = rest.split_at(usize::from(u16::from_le_bytes([*low, *high])));
        vars = rest;
        (part.to_vec(), vars.is_empty())
    };
    let mut request = FuzzRequest { body: body.to_vec(), is_whole: true, ..FuzzRequest::default() };
    let mut is_last = packet.len() == text.len();
    while !is_last {
        let name = take().0;
        let value;
        (value, is_last) = take();
        request.pairs.push((name, value));
    }
    request
}

/// Parses an SCGI request; its first header must have the length of the body.
pub(crate) fn read_scgi(bytes: &[u8]) -> FuzzRequest {
    let at = memchr::memchr(b':', bytes).expect("a netstring has a length");
    let size = std::str::from_utf8(&bytes[..at]).ok().and_then(|digits| digits.parse().ok());
    let (headers, rest) = bytes[at + 1..].split_at(size.expect("a length is a number"));
    let body = rest.strip_prefix(b",").expect("a netstring ends with a comma");
    let mut parts = headers.split(|byte| *byte == 0);
    let mut request = FuzzRequest { body: body.to_vec(), ..FuzzRequest::default() };
    while let (Some(name), Some(value)) = (parts.next(), parts.next()) {
        request.pairs.push((name.to_vec(), value.to_vec()));
    }
    let length = (b"CONTENT_LENGTH".to_vec(), body.len().to_string().into_bytes());
    request.is_whole = request.pairs.first() == Some(&length);
    request.pairs.remove(0);
    request
}

/// Parses a request (RFC 9112).
pub(crate) fn read_http(bytes: &[u8]) -> FuzzRequest {
    let mut rest = bytes;
    let mut line = || {
        let end = memchr::memmem::find(rest, b"\r\n").expect("a line has an end");
        let line = &rest[..end];
        rest = &rest[end + 2..];
        line
    };
    let mut request = FuzzRequest { line: line().to_vec(), ..FuzzRequest::default() };
    loop {
        let field = line();
        if field.is_empty() {
            break;
        }
        let at = memchr::memmem::find(field, b": ").expect("a field has a colon");
        request.pairs.push((field[..at].to_vec(), field[at + 2..].to_vec()));
    }
    (request.body, request.is_whole) = (rest.to_vec(), true);
    request
}

/// Parses a chunked request body. Returns whether the last chunk arrived.
pub(crate) fn read_chunks(mut bytes: &[u8]) -> (Vec<u8>, bool) {
    let mut body = Vec::new();
    while let Some(end) = memchr::memmem::find(bytes, b"\r\n") {
        let digits = std::str::from_utf8(&bytes[..end]).expect("digits are text");
        let size = usize::from_str_radix(digits, 16).expect("a size is a number");
        body.extend_from_slice(&bytes[end + 2..end + 2 + size]);
        assert_eq!(&bytes[end + 2 + size..end + 4 + size], b"\r\n", "a chunk has an end");
        bytes = &bytes[end + 4 + size..];
        if size == 0 {
            assert!(bytes.is_empty(), "nothing stands behind the last chunk");
            return (body, true);
        }
    }
    (body, false)
}

/// Parses the frames of the first stream of an HTTP/2 connection (RFC 9113 §4). Names and values
/// stay compressed: `line` is the field block.
pub(crate) fn read_h2(bytes: &[u8]) -> FuzzRequest {
    let mut request = FuzzRequest::default();
    let mut rest = bytes
        .strip_prefix(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
        .expect("a connection begins with the preface");
    let mut is_first = true;
    while let [a, b, c, kind, flags, s @ ..] = rest.get(..9).unwrap_or_default() {
        let len = u32::from_be_bytes([0, *a, *b, *c]) as usize;
        let stream = u32::from_be_bytes(s.try_into().expect("four bytes"));
        assert!(len <= 16_384, "a frame has no more than the upstream takes");
        let payload = &rest[9..9 + len];
        rest = &rest[9 + len..];
        assert!(!is_first || *kind == 4, "SETTINGS come first");
        is_first = false;
        assert!(!request.is_aborted, "nothing comes behind a reset");
        assert_eq!(stream, u32::from(matches!(kind, 0 | 1 | 3 | 9)), "the stream of frame {kind}");
        let ends = matches!(kind, 0 | 1) && flags & 1 != 0;
        assert!(!(request.is_whole && matches!(kind, 0 | 1)), "nothing comes behind the end");
        request.is_whole |= ends;
        match kind {
            0 => request.body.extend_from_slice(payload),
            1 | 9 => request.line.extend_from_slice(payload),
            3 => request.is_aborted = true,
            4 | 6 | 8 => {}
            other => panic!("frame {other}"),
        }
    }
    assert!(rest.is_empty(), "only whole frames leave");
    request
}
