//! The upstream clients with arbitrary bytes, and their invariants.
//!
//! The driver acts as a worker (starts, pulls, feeds), and parses requests as an application would,
//! with independent code.

use bolide_base::SendChain;
use bolide_base::chain::CopyPolicy;
use bolide_http::{MemcachedGet, Params, UpstreamHead, UpstreamMessage, UpstreamVersion};

use bolide_wire::{BodySource, Pull, StreamOwner};
use bolide_wire::{OriginConn, OriginConnSettings, OriginError, OriginEvent};

/// Feeds `data` as the bytes of a FastCGI application.
///
/// # Panics
///
/// An invariant does not hold.
pub fn fcgi(data: &[u8]) {
    fuzz(OriginConn::fcgi, data);
}

/// Feeds `data` as the bytes of an LSAPI application.
///
/// # Panics
///
/// An invariant does not hold.
pub fn lsapi(data: &[u8]) {
    fuzz(OriginConn::lsapi, data);
}

/// Feeds `data` as the bytes of an HTTP upstream.
///
/// # Panics
///
/// An invariant does not hold.
pub fn http(data: &[u8]) {
    fuzz(OriginConn::http, data);
}

/// Feeds `data` as the bytes of memcached.
///
/// # Panics
///
/// An invariant does not hold.
pub fn memcached(data: &[u8]) {
    fuzz(OriginConn::memcached, data);
}

fn fuzz(fresh: fn() -> OriginConn, data: &[u8]) {
    let Some((&seed, input)) = data.split_first() else { return };
    let settings = OriginConnSettings {
        head_max: 60 + usize::from(seed) * 4,
        keep: seed & 1 == 0,
        answers_head: seed & 14 == 14,
    };
    let mut params = Params::new();
    if seed & 64 == 64 {
        params.push(b"Upgrade", b"echo");
    }
    for pair in input.chunks(1 + usize::from(seed)).take(40) {
        let (name, value) = pair.split_at(pair.len().min(usize::from(pair[0]) % 40));
        params.push_writing(|out| push_clean(out, name, seed), |out| push_clean(out, value, seed));
    }
    let message = match fresh() {
        OriginConn::Http(_) => {
            let mut head = http_head(b"GET", b"/");
            params.iter().for_each(|(name, value)| head.push(name, value));
            head.into()
        }
        OriginConn::Memcached(_) => {
            MemcachedGet { key: b"key".to_vec(), gzip_flag: 2, ..MemcachedGet::default() }.into()
        }
        OriginConn::Fcgi(_) | OriginConn::Lsapi(_) => params.into(),
    };
    let body_len = usize::from(seed) % 5 * 150;
    let first = if seed & 16 == 0 { First::Send } else { First::Receive };
    let has_length = !matches!(fresh(), OriginConn::Http(_)) || seed & 128 == 0;
    let room = 300 + usize::from(seed);
    let ask = FuzzAsk { message, body_len, has_length, settings, first, room };
    let mut whole = UpstreamStory::tell(fresh, &ask, &[input]);
    let pieces: Vec<&[u8]> = input.chunks(1 + usize::from(seed) % 9).collect();
    let mut pieces = UpstreamStory::tell(fresh, &ask, &pieces);
    if matches!(fresh(), OriginConn::Http(_)) {
        whole.forget_warnings();
        pieces.forget_warnings();
    }
    assert_eq!(whole, pieces, "the cut of the input changes its meaning");
    if !whole.is_broken && (whole.is_idle || first == First::Send) {
        let read = match fresh() {
            OriginConn::Fcgi(_) => read_fcgi(&whole.output),
            OriginConn::Lsapi(_) => read_lsapi(&whole.output),
            OriginConn::Memcached(_) => {
                return assert_eq!(whole.output, b"get key\r\n", "the request is whole");
            }
            OriginConn::Http(_) if has_length => read_http(&whole.output),
            OriginConn::Http(_) => {
                let mut read = read_http(&whole.output);
                (read.body, read.is_whole) = read_chunks(&read.body);
                read
            }
        };
        assert!(read.is_whole && read.body == body(body_len), "the request is whole");
    }
}

/// The head of a request over HTTP/1.1; fields can be added.
pub(crate) fn http_head(method: &[u8], target: &[u8]) -> UpstreamHead {
    let (method, target) = (
        |out: &mut Vec<u8>| out.extend_from_slice(method),
        |out: &mut Vec<u8>| out.extend_from_slice(target),
    );
    UpstreamHead::new(UpstreamVersion::V11, method, target)
}

/// The params of a `GET`.
pub(crate) fn cgi_params() -> Params {
    let mut params = Params::new();
    params.push(b"REQUEST_METHOD", b"GET");
    params
}

/// Mostly bytes that do not end a line.
fn push_clean(out: &mut Vec<u8>, text: &[u8], seed: u8) {
    let clean = |byte: &u8| if matches!(byte, 0 | b'\r' | b'\n' | b':') { b'_' } else { *byte };
    out.extend(text.iter().map(|byte| if seed & 32 == 0 { clean(byte) } else { *byte }));
}

/// Whether the request is sent before or after its response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum First {
    Send,
    Receive,
}

/// A request and the framing of its body.
#[derive(Debug)]
pub(crate) struct FuzzAsk {
    pub(crate) message: UpstreamMessage,
    pub(crate) body_len: usize,
    /// Whether the length is known.
    pub(crate) has_length: bool,
    pub(crate) settings: OriginConnSettings,
    pub(crate) first: First,
    pub(crate) room: usize,
}

impl FuzzAsk {
    /// A request without a body, over a connection that is kept open.
    pub(crate) fn of(message: impl Into<UpstreamMessage>) -> Self {
        let settings = OriginConnSettings { keep: true, ..OriginConnSettings::default() };
        let (message, first) = (message.into(), First::Send);
        Self { message, body_len: 0, has_length: true, settings, first, room: 1000 }
    }
}

impl Default for FuzzAsk {
    fn default() -> Self {
        Self::of(cgi_params())
    }
}

/// The events of one response for the owner of a connection, and the bytes sent.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct UpstreamStory {
    /// Events as text; the pieces of the body are joined.
    pub(crate) told: Vec<String>,
    /// Bytes sent.
    pub(crate) output: Vec<u8>,
    /// Whether the connection could carry another request before it ended.
    pub(crate) is_idle: bool,
    /// Whether the request could not be encoded.
    pub(crate) is_broken: bool,
    body: Vec<u8>,
}

impl UpstreamStory {
    /// Runs one request whose response arrives in these pieces and then ends.
    pub(crate) fn tell(fresh: fn() -> OriginConn, ask: &FuzzAsk, pieces: &[&[u8]]) -> Self {
        let mut conn = fresh();
        let mut story = Self::default();
        assert!(conn.is_idle(), "a fresh connection is idle");
        let body_len = ask.has_length.then_some(ask.body_len as u64);
        conn.start(&ask.message, body_len, &ask.settings);
        assert!(!conn.is_idle(), "a connection carries one request");
        if ask.first == First::Send {
            story.send(&mut conn, ask);
        }
        let mut events = Vec::new();
        let fed = pieces.iter().try_for_each(|piece| {
            let received = conn.receive(piece, &mut events);
            // The content of a record is the largest buffer.
            let held_max = ask.settings.head_max.max(65_536);
            assert!(conn.held() <= held_max + ask.settings.head_max, "what is held is bounded");
            received.map(|used| assert_eq!(used, piece.len(), "everything is taken"))
        });
        story.is_idle = conn.is_idle();
        let ended = fed.and_then(|()| conn.handle_eof(&mut events));
        assert!(!conn.is_idle(), "a connection that ended carries nothing");
        story.take(events);
        if let Err(error) = ended {
            story.fail(&error);
        }
        story.send(&mut conn, ask);
        story.is_broken = conn.is_broken();
        story
    }

    fn send(&mut self, conn: &mut OriginConn, ask: &FuzzAsk) {
        let mut body = Body { at: 0, left: ask.body_len, pauses: false };
        let mut out = SendChain::new(CopyPolicy::Contiguous);
        while conn.has_output() {
            out.clear();
            conn.transmit(ask.room, &mut out, 7, &mut body);
            self.output.extend_from_slice(out.contiguous().expect("only slices were pushed"));
            conn.body_ready();
        }
    }

    fn take(&mut self, events: Vec<OriginEvent>) {
        let mut is_over = false;
        for event in events {
            assert!(!is_over, "nothing is told behind the end");
            if let OriginEvent::Body(piece) = event {
                assert!(!piece.is_empty(), "a piece of a body has bytes");
                self.body.extend_from_slice(&piece);
                continue;
            }
            self.tell_body();
            is_over = matches!(event, OriginEvent::End { .. });
            self.told.push(match event {
                OriginEvent::Head(head) => {
                    let mut text = format!("head {}", head.status);
                    if !head.reason.is_empty() {
                        text += &format!(" {}", head.reason.escape_ascii());
                    }
                    for field in head.fields.iter() {
                        let (name, value) = (field.text.escape_ascii(), field.value.escape_ascii());
                        text += &format!(", {name}: {value}");
                    }
                    text
                }
                OriginEvent::Body(_) => continue,
                OriginEvent::Stderr(text) => format!("stderr {}", text.escape_ascii()),
                OriginEvent::Excess => "excess".to_owned(),
                OriginEvent::ExcessChunk => "excess chunk".to_owned(),
                OriginEvent::Missing(key) => format!("missing {}", key.escape_ascii()),
                OriginEvent::BadTrailer => "bad trailer".to_owned(),
                OriginEvent::Trailers(fields) => {
                    let mut text = "trailers".to_owned();
                    for field in fields.iter() {
                        let (name, value) = (field.text.escape_ascii(), field.value.escape_ascii());
                        text += &format!(", {name}: {value}");
                    }
                    text
                }
                OriginEvent::End { app_status } => format!("end {app_status}"),
            });
        }
        self.tell_body();
    }

    /// Drops the HTTP warnings that depend on how reads split the end of a response.
    pub(crate) fn forget_warnings(&mut self) {
        self.told.retain(|told| !told.starts_with("excess"));
    }

    fn tell_body(&mut self) {
        if !self.body.is_empty() {
            self.told.push(format!("body {}", self.body.escape_ascii()));
            self.body.clear();
        }
    }

    fn fail(&mut self, error: &OriginError) {
        self.told.push(format!(
            "{} {}",
            if error.is_invalid() { "invalid" } else { "error" },
            error.text().escape_ascii()
        ));
    }
}

/// A body that arrives in pieces, with pauses.
struct Body {
    at: usize,
    left: usize,
    pauses: bool,
}

impl BodySource for Body {
    fn pull(&mut self, user: StreamOwner, max: usize, out: &mut SendChain) -> Pull {
        assert!(max > 0 && user == 7, "a body is asked for at least one byte");
        self.pauses = !self.pauses;
        if self.pauses {
            return Pull::Pending;
        }
        let size = max.min(self.left).min(20_000);
        out.push_slice(&body(self.at + size)[self.at..]);
        self.at += size;
        self.left -= size;
        if self.left == 0 { Pull::End } else { Pull::More }
    }
}

/// The request body of this length.
pub(crate) fn body(len: usize) -> Vec<u8> {
    (0..len).map(|at| b'a' + (at % 23) as u8).collect()
}

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
