//! A connection between a QUIC in memory and a peer whose bytes the tests spell out.

mod errors;
mod requests;
mod responses;

use std::collections::HashMap;

use bolide_base::SendChain;
use bolide_base::chain::CopyPolicy;
use bolide_http::{Name, RequestHead, ResponseHead};
use bytes::Bytes;

use super::{H3Conn, H3Settings, QuicStreams, StreamGone, frame};
use crate::integer::push_integer;
use crate::pseudo::Label;
use crate::qpack::QpackDecoder;
use crate::{BodySource, ConnError, HeadPool, Pull, StreamId, StreamOwner, WireEvent};

/// Our control, encoder and decoder streams, in the order in which they are opened.
const CONTROL: u64 = 3;

fn settings() -> H3Settings {
    H3Settings {
        max_concurrent_streams: 100,
        head_size_max: 4000,
        field_size_max: 2000,
        fields_max: 1000,
        table_capacity: 4096,
        blocked_streams: 2,
        underscores_in_headers: false,
        ignore_invalid_headers: true,
        keepalive_requests: 1000,
    }
}

/// QUIC in memory: the written bytes, and the room.
#[derive(Debug, Default)]
struct Quic {
    opened: u64,
    /// The peer allows no more streams of ours.
    is_at_limit: bool,
    written: HashMap<u64, Vec<u8>>,
    /// The room of each stream; a missing entry means no limit.
    room: HashMap<u64, usize>,
    finished: Vec<u64>,
    gone: Vec<u64>,
    resets: Vec<(u64, u64)>,
    stops: Vec<(u64, u64)>,
    priorities: Vec<(u64, i32)>,
    /// Addresses of the written bytes, to check that they are not copied.
    pieces: Vec<*const u8>,
}

impl QuicStreams for Quic {
    fn open_uni(&mut self) -> Option<u64> {
        if self.is_at_limit {
            return None;
        }
        self.opened += 1;
        Some(self.opened * 4 - 1)
    }

    fn write(&mut self, stream: u64, bytes: &mut Bytes) -> Result<usize, StreamGone> {
        if self.gone.contains(&stream) {
            return Err(StreamGone);
        }
        assert!(!self.finished.contains(&stream), "nothing is written behind the end");
        let taken = bytes.len().min(self.room(stream));
        let part = bytes.split_to(taken);
        if let Some(room) = self.room.get_mut(&stream) {
            *room -= taken;
        }
        self.pieces.push(part.as_ptr());
        self.written.entry(stream).or_default().extend_from_slice(&part);
        Ok(taken)
    }

    fn room(&mut self, stream: u64) -> usize {
        self.room.get(&stream).copied().unwrap_or(1 << 20)
    }

    fn finish(&mut self, stream: u64) {
        assert!(!self.finished.contains(&stream), "a stream ends once");
        self.finished.push(stream);
    }

    fn reset(&mut self, stream: u64, code: u64) {
        self.resets.push((stream, code));
    }

    fn stop(&mut self, stream: u64, code: u64) {
        self.stops.push((stream, code));
    }

    fn set_priority(&mut self, stream: u64, priority: i32) {
        self.priorities.push((stream, priority));
    }
}

/// The behaviour of a body source.
#[derive(Clone, Debug)]
enum Source {
    /// Gives these pieces, then ends.
    Pieces(Vec<Bytes>),
    /// Gives one piece and has no more for now.
    Waits(Bytes),
    Breaks,
}

#[derive(Debug, Default)]
struct Bodies {
    sources: HashMap<StreamOwner, Source>,
    /// The largest pull of each user.
    asked: HashMap<StreamOwner, usize>,
    order: Vec<StreamOwner>,
}

impl BodySource for Bodies {
    fn pull(&mut self, user: StreamOwner, max: usize, out: &mut SendChain) -> Pull {
        assert!(max > 0);
        let asked = self.asked.entry(user).or_default();
        *asked = max.max(*asked);
        self.order.push(user);
        match self.sources.get_mut(&user) {
            Some(Source::Pieces(pieces)) => {
                let Some(piece) = pieces.first_mut() else { return Pull::End };
                out.push_bytes(&piece.split_to(max.min(piece.len())));
                if piece.is_empty() {
                    pieces.remove(0);
                }
                if pieces.is_empty() { Pull::End } else { Pull::More }
            }
            Some(Source::Waits(piece)) => {
                out.push_bytes(piece);
                piece.clear();
                Pull::Pending
            }
            Some(Source::Breaks) => Pull::Broken,
            None => Pull::End,
        }
    }
}

/// A connection with its surroundings.
struct World {
    settings: H3Settings,
    conn: H3Conn,
    quic: Quic,
    bodies: Bodies,
    heads: HeadPool,
    events: Vec<WireEvent>,
}

impl World {
    fn with(settings: H3Settings) -> Self {
        let (mut conn, mut quic) = (H3Conn::new(), Quic::default());
        conn.start(&settings, &mut quic);
        let (heads, events) = (HeadPool::default(), Vec::new());
        Self { settings, conn, quic, bodies: Bodies::default(), heads, events }
    }

    fn new() -> Self {
        Self::with(settings())
    }

    fn receive(&mut self, stream: u64, bytes: &[u8], fin: bool) -> Result<(), ConnError> {
        let Self { settings, conn, heads, events, .. } = self;
        let bytes = Bytes::copy_from_slice(bytes);
        conn.receive(settings, stream, bytes, fin, false, heads, events)
    }

    /// The error code of the connection.
    fn code(&mut self, stream: u64, bytes: &[u8], fin: bool) -> u64 {
        self.receive(stream, bytes, fin).map_or_else(|error| error.code, |()| 0)
    }

    fn transmit(&mut self) {
        self.transmit_within(1 << 20);
    }

    fn transmit_within(&mut self, room: usize) {
        let mut scratch = SendChain::new(CopyPolicy::Shared(1024));
        let Self { conn, quic, bodies, events, .. } = self;
        conn.transmit(room, &mut scratch, events, bodies, quic);
        assert!(scratch.is_empty());
    }

    fn take_events(&mut self) -> Vec<WireEvent> {
        std::mem::take(&mut self.events)
    }

    /// Sends a complete GET on `stream` and binds it to `user`.
    fn get(&mut self, stream: u64, user: StreamOwner) -> StreamId {
        self.request(stream, user, &headers(&GET), true).0
    }

    fn request(
        &mut self,
        stream: u64,
        user: StreamOwner,
        bytes: &[u8],
        fin: bool,
    ) -> (StreamId, Box<RequestHead>) {
        self.receive(stream, bytes, fin).unwrap();
        let at = self.events.iter().position(|event| matches!(event, WireEvent::Request { .. }));
        let WireEvent::Request { stream, head } = self.events.remove(at.unwrap()) else { panic!() };
        self.conn.bind(stream, user);
        (stream, head)
    }

    fn written(&self, stream: u64) -> &[u8] {
        self.quic.written.get(&stream).map_or(&[], |bytes| bytes)
    }

    /// The frames on one of our streams.
    fn frames(&self, stream: u64) -> Vec<(u64, Vec<u8>)> {
        frames(self.written(stream))
    }
}

const GET: [(&str, &str); 4] =
    [(":method", "GET"), (":scheme", "https"), (":authority", "a.example"), (":path", "/")];

const POST: [(&str, &str); 4] =
    [(":method", "POST"), (":scheme", "https"), (":authority", "a.example"), (":path", "/p")];

/// A section of literals.
fn section(lines: &[(&str, &str)]) -> Vec<u8> {
    let mut out = vec![0, 0];
    for (name, value) in lines {
        push_integer(&mut out, 0x20, 3, name.len() as u64);
        out.extend_from_slice(name.as_bytes());
        push_integer(&mut out, 0, 7, value.len() as u64);
        out.extend_from_slice(value.as_bytes());
    }
    out
}

fn frame_of(kind: u64, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    frame::encode_header(&mut out, kind, payload.len() as u64);
    out.extend_from_slice(payload);
    out
}

fn headers(lines: &[(&str, &str)]) -> Vec<u8> {
    frame_of(1, &section(lines))
}

fn data(bytes: &[u8]) -> Vec<u8> {
    frame_of(0, bytes)
}

fn varints(numbers: &[u64]) -> Vec<u8> {
    let mut out = Vec::new();
    for &number in numbers {
        frame::encode_varint(&mut out, number);
    }
    out
}

/// The beginning of a control stream: its type and SETTINGS.
fn control(settings: &[u64]) -> Vec<u8> {
    [vec![0], frame_of(4, &varints(settings))].concat()
}

fn join(parts: &[&[u8]]) -> Vec<u8> {
    parts.concat()
}

fn frames(mut bytes: &[u8]) -> Vec<(u64, Vec<u8>)> {
    let mut frames = Vec::new();
    while !bytes.is_empty() {
        let (kind, len, used) = frame::parse_header(bytes).unwrap();
        let (payload, rest) = bytes[used..].split_at(len as usize);
        frames.push((kind, payload.to_vec()));
        bytes = rest;
    }
    frames
}

/// The lines of a response section without a table.
fn lines(section: &[u8]) -> Vec<(String, String)> {
    let mut lines = Vec::new();
    QpackDecoder::new(0)
        .decode(section, |label, value| {
            let name = match label {
                Label::WrongPseudo => ":status".to_owned(),
                Label::Known(name) => name.text().to_ascii_lowercase(),
                Label::Text(text) => String::from_utf8(text.to_vec()).unwrap(),
                other => panic!("{other:?} in a response"),
            };
            lines.push((name, String::from_utf8(value.to_vec()).unwrap()));
        })
        .unwrap();
    lines
}

fn response(status: u16, body: bolide_http::BodyLen) -> ResponseHead {
    let mut head = ResponseHead { status, body, ..ResponseHead::default() };
    head.fields.push(Name::Server, b"bolide");
    head
}

/// Events in a form that can be compared; adjacent body pieces are joined.
fn told(events: &[WireEvent]) -> Vec<String> {
    let mut told: Vec<String> = Vec::new();
    for event in events {
        let text = match event {
            WireEvent::Request { head, .. } => {
                let fields: Vec<_> = head
                    .fields
                    .iter()
                    .map(|field| {
                        let value = String::from_utf8_lossy(field.value);
                        format!("{}={value}", String::from_utf8_lossy(field.text))
                    })
                    .collect();
                let line = String::from_utf8_lossy(&head.line);
                format!("request {line} {fields:?} {:?}", head.body)
            }
            WireEvent::Refused { refusal, .. } => format!("refused {}", refusal.status),
            WireEvent::Body { user, bytes } => {
                let text = String::from_utf8_lossy(bytes);
                let mark = format!("body {user} ");
                if let Some(last) = told.last_mut().filter(|last| last.starts_with(&mark)) {
                    last.push_str(&text);
                    continue;
                }
                format!("{mark}{text}")
            }
            WireEvent::BodyEnd { user } => format!("end {user}"),
            WireEvent::BodyRefused { user, .. } => format!("body refused {user}"),
            WireEvent::Reset { user } => format!("reset {user}"),
            WireEvent::Sent { user, body_bytes, .. } => format!("sent {user} {body_bytes}"),
        };
        told.push(text);
    }
    told
}
