//! Scripts for the whole machine: frames in, events and frames out, both as short lines.

mod abuse;
mod errors;
mod flow;
mod properties;
mod requests;
mod responses;

use std::collections::BTreeMap;

use bolide_base::chain::CopyPolicy;
use bolide_base::{Instant, Now, SendChain};
use bolide_http::{BodyLen, Name, RequestHead, ResponseHead};

use super::frame::{FrameHeader, FrameKind, PREFACE, flag};
use super::{H2Conn, H2Settings, fuzz};
use crate::hpack::{FieldToken, HpackDecoder, Sink, Traits};
use crate::{BodySource, ConnError, HeadPool, Pull, StreamId, StreamOwner, WireEvent};

const END: u8 = flag::END_STREAM;
const HEAD: u8 = flag::END_HEADERS;

/// A frame as bytes.
fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let [_, a, b, c] = (payload.len() as u32).to_be_bytes();
    let [d, e, f, g] = stream.to_be_bytes();
    [&[a, b, c, kind, flags, d, e, f, g], payload].concat()
}

fn settings(entries: &[(u16, u32)]) -> Vec<u8> {
    let entry = |(id, value): &(u16, u32)| [&id.to_be_bytes()[..], &value.to_be_bytes()].concat();
    frame(4, 0, 0, &entries.iter().flat_map(entry).collect::<Vec<_>>())
}

/// A field block of plain literals.
fn block(fields: &[(&str, &str)]) -> Vec<u8> {
    let mut out = Vec::new();
    for (name, value) in fields {
        for text in [name, value] {
            if std::ptr::eq(text, name) {
                out.push(0);
            }
            crate::integer::push_integer(&mut out, 0, 7, text.len() as u32);
            out.extend_from_slice(text.as_bytes());
        }
    }
    out
}

const GET: [(&str, &str); 4] =
    [(":method", "GET"), (":scheme", "http"), (":path", "/"), (":authority", "a")];
const POST: [(&str, &str); 4] =
    [(":method", "POST"), (":scheme", "http"), (":path", "/"), (":authority", "a")];

fn with(base: &[(&'static str, &'static str)], more: &[(&'static str, &'static str)]) -> Vec<u8> {
    block(&[base, more].concat())
}

fn headers(stream: u32, flags: u8, block: &[u8]) -> Vec<u8> {
    frame(1, flags | HEAD, stream, block)
}

fn get(stream: u32) -> Vec<u8> {
    headers(stream, END, &block(&GET))
}

fn post(stream: u32) -> Vec<u8> {
    headers(stream, 0, &block(&POST))
}

fn data(stream: u32, flags: u8, payload: &[u8]) -> Vec<u8> {
    frame(0, flags, stream, payload)
}

fn number(kind: u8, stream: u32, value: u32) -> Vec<u8> {
    frame(kind, 0, stream, &value.to_be_bytes())
}

fn rst(stream: u32, code: u32) -> Vec<u8> {
    number(3, stream, code)
}

fn window(stream: u32, increment: u32) -> Vec<u8> {
    number(8, stream, increment)
}

/// The request bodies of `GET` and `POST`, and the response bodies by owner.
#[derive(Default)]
struct Bodies(BTreeMap<StreamOwner, Vec<(usize, Pull)>>);

impl BodySource for Bodies {
    fn pull(&mut self, user: StreamOwner, max: usize, out: &mut SendChain) -> Pull {
        let Some(steps) = self.0.get_mut(&user) else { return Pull::Pending };
        let Some((bytes, pull)) = steps.first_mut() else { return Pull::Pending };
        let now = (*bytes).min(max);
        out.push_slice(&vec![b'x'; now]);
        *bytes -= now;
        if *bytes > 0 {
            return Pull::More;
        }
        let pull = *pull;
        steps.remove(0);
        pull
    }
}

/// Decodes response heads as the peer would.
#[derive(Default)]
struct Fields(Vec<String>);

impl Sink for Fields {
    fn field(&mut self, _: FieldToken, _: Traits, name: &[u8], value: &[u8]) {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        self.0.push(format!("{}={}", text(name), text(value)));
    }
}

/// A connection with its surroundings; owners are stream ids.
struct Bench {
    conn: H2Conn,
    settings: H2Settings,
    heads: HeadPool,
    raw: Vec<WireEvent>,
    now: Now,
    room: usize,
    chunk_size: u32,
    bodies: Bodies,
    held: Vec<u8>,
    log: Vec<String>,
    decoder: HpackDecoder,
    streams: BTreeMap<u32, StreamId>,
    last_head: Option<Box<RequestHead>>,
    error: Option<ConnError>,
    sent: fuzz::H2Sent,
}

impl Bench {
    fn with(settings: H2Settings) -> Self {
        Self {
            conn: H2Conn::new(),
            settings,
            heads: HeadPool::default(),
            raw: Vec::new(),
            now: Now { mono: Instant::from_nanos(0), unix_millis: 0 },
            room: 1 << 20,
            chunk_size: bolide_http::CHUNK_SIZE,
            bodies: Bodies::default(),
            held: Vec::new(),
            log: Vec::new(),
            decoder: HpackDecoder::new(4096),
            streams: BTreeMap::new(),
            last_head: None,
            error: None,
            sent: fuzz::H2Sent::default(),
        }
    }

    /// A connection after the exchange of prefaces.
    fn open(settings: H2Settings) -> Self {
        let mut bench = Self::with(settings);
        bench.send(&[PREFACE, &self::settings(&[]), &frame(4, 1, 0, &[])].concat());
        assert_eq!(bench.out()[2..], ["SETTINGS ack"]);
        bench
    }

    fn new() -> Self {
        Self::open(H2Settings::default())
    }

    /// Offers bytes, binds new streams, and keeps unconsumed bytes.
    fn send(&mut self, bytes: &[u8]) {
        self.held.extend_from_slice(bytes);
        let input = std::mem::take(&mut self.held);
        let result =
            self.conn.receive(&self.settings, self.now, &input, &mut self.heads, &mut self.raw);
        match result {
            Ok(used) => self.held = input[used..].to_vec(),
            Err(error) => self.error = Some(error),
        }
        self.take_events();
    }

    fn take_events(&mut self) {
        for event in std::mem::take(&mut self.raw) {
            let line = match event {
                WireEvent::Request { stream, head } => {
                    format!("request {}", self.bind(stream, head))
                }
                WireEvent::Refused { stream, head, refusal } => {
                    let line = self.bind(stream, head);
                    format!("refused {line} {} {}", refusal.status, refusal.reason)
                }
                WireEvent::Body { user, bytes } => format!("body {user} {}", bytes.len()),
                WireEvent::BodyEnd { user } => format!("end {user}"),
                WireEvent::BodyRefused { user, .. } => format!("body refused {user}"),
                WireEvent::Reset { user } => format!("reset {user}"),
                WireEvent::Sent { user, body_bytes, .. } => format!("sent {user} {body_bytes}"),
            };
            self.log.push(line);
        }
    }

    fn bind(&mut self, stream: StreamId, head: Box<RequestHead>) -> String {
        let id = (stream.0 >> 32) as u32;
        self.streams.insert(id, stream);
        self.conn.bind(stream, u64::from(id));
        let line = format!("{id} {}", String::from_utf8_lossy(&head.line));
        self.last_head = Some(head);
        line
    }

    fn events(&mut self) -> Vec<String> {
        std::mem::take(&mut self.log)
    }

    fn head(&self) -> &RequestHead {
        self.last_head.as_deref().unwrap()
    }

    /// Field lines of the last request.
    fn fields(&self) -> Vec<String> {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let fields = self.head().fields.iter();
        fields.map(|field| format!("{}: {}", text(field.text), text(field.value))).collect()
    }

    /// The output as one line per frame.
    fn out(&mut self) -> Vec<String> {
        let mut out = SendChain::new(CopyPolicy::Contiguous);
        self.conn.transmit(self.now, self.room, &mut out, &mut self.raw, &mut self.bodies);
        self.take_events();
        let mut rest = out.contiguous().unwrap();
        self.sent.check(rest);
        let mut lines = Vec::new();
        while let Some((bytes, tail)) = rest.split_first_chunk::<9>() {
            let header = FrameHeader::parse(*bytes);
            let (payload, tail) = tail.split_at(header.len as usize);
            lines.push(self.line(&header, payload));
            rest = tail;
        }
        assert!(rest.is_empty(), "whole frames leave");
        lines
    }

    /// The output of two writes: a reset behind a response comes with the second.
    fn out_twice(&mut self) -> Vec<String> {
        [self.out(), self.out()].concat()
    }

    fn line(&mut self, header: &FrameHeader, payload: &[u8]) -> String {
        let id = header.stream;
        let first = super::frame::read_u32(payload).unwrap_or(0);
        let second = payload.get(4..).and_then(super::frame::read_u32).unwrap_or(0);
        let end = if header.has(END) { " end" } else { "" };
        match header.kind {
            FrameKind::Data => format!("DATA {id} {}{end}", payload.len()),
            FrameKind::Headers => {
                assert!(header.has(HEAD), "the scripts send no long heads");
                let mut fields = Fields::default();
                self.decoder.decode(payload, 1 << 16, &mut Vec::new(), &mut fields).unwrap();
                format!("HEADERS {id} {}{end}", fields.0.join(" "))
            }
            FrameKind::RstStream => format!("RST_STREAM {id} {first}"),
            FrameKind::Settings if header.has(flag::ACK) => "SETTINGS ack".to_owned(),
            FrameKind::Settings => format!("SETTINGS {}", payload.len() / 6),
            FrameKind::Ping => format!("PING {} {first:x}", header.flags),
            FrameKind::GoAway => format!("GOAWAY {first} {second}"),
            FrameKind::WindowUpdate => format!("WINDOW_UPDATE {id} {first}"),
            other => panic!("no server sends {other:?}"),
        }
    }

    /// Responds on a stream with a body of this many bytes.
    fn answer(&mut self, id: u32, bytes: usize) {
        self.bodies.0.insert(u64::from(id), vec![(bytes, Pull::End)]);
        let mut head = plain(200, BodyLen::Exact(bytes as u64));
        head.chunk_size = self.chunk_size;
        self.respond(id, &head);
    }

    fn respond(&mut self, id: u32, head: &ResponseHead) {
        self.conn.respond(self.streams[&id], head).unwrap();
    }

    /// Checks that the connection ended with this code and this last stream.
    #[track_caller]
    fn expect_goaway(&mut self, last: u32, code: u32) {
        let error = self.error.expect("the connection is over");
        assert_eq!(error.code, u64::from(code), "{}", error.reason);
        assert_eq!(self.out().last(), Some(&format!("GOAWAY {last} {code}")));
        assert!(self.conn.is_closing() && self.conn.is_idle());
        self.send(b"whatever comes");
        assert!(self.held.is_empty() && self.out().is_empty());
    }
}

fn plain(status: u16, body: BodyLen) -> ResponseHead {
    ResponseHead { status, body, ..ResponseHead::default() }
}

fn served(status: u16, body: BodyLen) -> ResponseHead {
    let mut head = plain(status, body);
    head.fields.push(Name::Server, b"bolide");
    head.fields.push(Name::ContentType, b"text/html");
    head
}
