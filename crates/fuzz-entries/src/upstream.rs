//! The upstream clients with arbitrary bytes, and their invariants.
//!
//! The driver acts as a worker (starts, pulls, feeds), and parses requests as an application would,
//! with independent code.

#[path = "upstream_requests.rs"]
mod requests;

use bolide_base::SendChain;
use bolide_base::chain::CopyPolicy;
use bolide_http::{
    AppForm, AppMessage, Http2Head, MemcachedGet, Params, Scheme, UpstreamHead, UpstreamMessage,
    UpstreamVersion,
};

use bolide_wire::{BodySource, Pull, StreamOwner};
use bolide_wire::{OriginConn, OriginConnSettings, OriginError, OriginEvent};

pub(crate) use requests::{
    read_chunks, read_fcgi, read_h2, read_http, read_lsapi, read_scgi, read_uwsgi,
};

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

/// Feeds `data` as the bytes of an HTTP/2 upstream.
///
/// # Panics
///
/// An invariant does not hold.
pub fn http2(data: &[u8]) {
    fuzz(OriginConn::http2, data);
}

/// Feeds `data` as the bytes of an application over uwsgi or SCGI.
///
/// # Panics
///
/// An invariant does not hold.
pub fn per_request(data: &[u8]) {
    fuzz(OriginConn::per_request, data);
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
        params.push(b"HTTP_UPGRADE", b"echo");
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
        OriginConn::Http2(_) => {
            let mut asked = http2_head(b"POST", b"/a.B/C");
            params.iter().for_each(|(name, value)| asked.head.push(name, value));
            asked.into()
        }
        OriginConn::Memcached(_) => {
            MemcachedGet { key: b"key".to_vec(), gzip_flag: 2, ..MemcachedGet::default() }.into()
        }
        OriginConn::Fcgi(_) | OriginConn::Lsapi(_) => params.into(),
        OriginConn::PerRequest(_) => {
            let form = if seed & 128 == 0 { AppForm::Scgi } else { uwsgi(seed) };
            AppMessage { form, params }.into()
        }
    };
    let body_len = usize::from(seed) % 5 * 150;
    let first = if seed & 16 == 0 { First::Send } else { First::Receive };
    let takes_unknown = matches!(fresh(), OriginConn::Http(_) | OriginConn::Http2(_));
    let has_length = !takes_unknown || seed & 128 == 0;
    let room = 300 + usize::from(seed);
    let ask = FuzzAsk { message, body_len, has_length, settings, first, room };
    let mut whole = UpstreamStory::tell(fresh, &ask, &[input]);
    let pieces: Vec<&[u8]> = input.chunks(1 + usize::from(seed) % 9).collect();
    let mut pieces = UpstreamStory::tell(fresh, &ask, &pieces);
    if matches!(fresh(), OriginConn::Http(_) | OriginConn::PerRequest(_)) {
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
            OriginConn::PerRequest(_) if seed & 128 == 0 => read_scgi(&whole.output),
            OriginConn::PerRequest(_) => read_uwsgi(&whole.output, seed, b"text"),
            OriginConn::Http2(_) => read_h2(&whole.output),
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

/// The form of a uwsgi packet with these modifiers.
pub(crate) fn uwsgi(modifier: u8) -> AppForm {
    AppForm::Uwsgi { modifiers: [modifier, !modifier], text: b"text".as_slice().into() }
}

/// The head of a request over HTTP/1.1; fields can be added.
pub(crate) fn http_head(method: &[u8], target: &[u8]) -> UpstreamHead {
    let (method, target) = (
        |out: &mut Vec<u8>| out.extend_from_slice(method),
        |out: &mut Vec<u8>| out.extend_from_slice(target),
    );
    UpstreamHead::new(UpstreamVersion::V11, method, target)
}

/// The head of a request over HTTP/2; fields can be added.
pub(crate) fn http2_head(method: &[u8], target: &[u8]) -> Http2Head {
    let (method, target) = (
        |out: &mut Vec<u8>| out.extend_from_slice(method),
        |out: &mut Vec<u8>| out.extend_from_slice(target),
    );
    let head = UpstreamHead::new(UpstreamVersion::V2, method, target);
    Http2Head { scheme: Scheme::Http, authority: b"origin.test".to_vec(), head }
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
