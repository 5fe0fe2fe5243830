//! HTTP/3 over one connection of a client: its own streams, the server's, requests and their
//! responses so far.

mod receive;

use std::collections::{BTreeMap, BTreeSet};

use bolide_wire::qpack::QpackDecoder;
use quinn_proto::Dir;

use super::conn::{SimH3Conn, SimH3Transport};
use super::credit::{Credit, CreditGap};
use super::frame::{self, code, kind, setting, uni};
use crate::chance::Chance;
use crate::fault_record::upload_byte;
use crate::request::{SimRequest, SimUpload};
use crate::response::SimResponse;

/// Bytes of an upload in one DATA frame, at most.
const DATA_MAX: usize = 20_000;
/// Insertions into the server's dynamic table: too few for an eviction.
const INSERTIONS_MAX: u64 = 40;

/// A request and its response so far.
#[derive(Debug)]
pub(super) struct SimH3Stream {
    pub(super) request: SimRequest,
    pub(super) response: SimResponse,
    /// A part of the response has arrived.
    pub(super) has_begun: bool,
    /// The request was sent as early data.
    pub(super) is_early: bool,
    /// Credit for the stream's window.
    credit: Credit,
    /// Gaps in the credit of the stream's window and of the connection's window.
    credit_gaps: [CreditGap; 2],
    /// Frames to be sent. The rest of the body follows them.
    out: Vec<u8>,
    upload_left: usize,
    has_ended: bool,
    input: Vec<u8>,
    /// A field section that waits for insertions.
    blocked: Option<Vec<u8>>,
    /// The server has ended the stream.
    is_over: bool,
}

/// A unidirectional stream of the server.
#[derive(Debug, Default)]
struct ServerStream {
    kind: Option<u64>,
    input: Vec<u8>,
}

/// An event of the HTTP layer.
#[derive(Clone, Copy, Debug)]
pub(super) enum H3Event {
    /// A response is complete.
    Response(u64),
    /// The server reset a stream, with this code.
    Reset(u64, u64),
    /// The server sent GOAWAY; it does not process this request or later ones.
    GoAway(u64),
}

/// The state of HTTP/3 on one connection.
#[derive(Debug, Default)]
pub(super) struct HttpLayer {
    pub(super) streams: BTreeMap<u64, SimH3Stream>,
    pub(super) goaway: Option<u64>,
    /// Streams with bytes to read.
    pub(super) readable: BTreeSet<u64>,
    /// This client's unidirectional streams and the output of each: control, encoder, decoder,
    /// reserved.
    pub(super) own: Vec<(u64, Vec<u8>)>,
    server_streams: BTreeMap<u64, ServerStream>,
    decoder: QpackDecoder,
    /// The capacity of the server's dynamic table, once its SETTINGS have arrived.
    capacity: Option<u64>,
    inserted: u64,
    blocked_max: u64,
    /// The server's SETTINGS have arrived.
    pub(super) has_settings: bool,
    /// The number of interim responses.
    pub(super) interims: u64,
    /// The window of each stream, in bytes.
    window: u32,
    /// Credit for the connection's window.
    credit: Credit,
}

impl HttpLayer {
    pub(super) fn new(transport: SimH3Transport) -> Self {
        let SimH3Transport { window, window_all, .. } = transport;
        Self { window, credit: Credit::new(window_all), ..Self::default() }
    }

    /// Opens this client's unidirectional streams; false if the server does not allow them yet.
    pub(super) fn open_streams(&mut self, conn: &mut SimH3Conn, chance: &mut Chance) -> bool {
        let capacity = if chance.one_in(2) { 4096 } else { chance.below(600) };
        let blocked = [0, 1, 16][chance.index(3)];
        self.decoder = QpackDecoder::new(capacity as usize);
        let mut settings = Vec::new();
        for (name, value) in [
            (setting::TABLE_CAPACITY, capacity),
            (setting::BLOCKED_STREAMS, blocked),
            // RFC 9114 §7.2.4.1: a reserved setting.
            (0x1f * chance.below(1000) + 0x21, chance.below(1 << 40)),
        ] {
            frame::encode_varint(&mut settings, name);
            frame::encode_varint(&mut settings, value);
        }
        for kind in [uni::CONTROL, uni::ENCODER, uni::DECODER, 0x21 + 0x1f * chance.below(9)] {
            let Some(id) = conn.open(Dir::Uni) else { return false };
            let mut out = Vec::new();
            frame::encode_varint(&mut out, kind);
            if kind == uni::CONTROL {
                frame::push(&mut out, kind::SETTINGS, &settings);
            }
            self.own.push((id, out));
        }
        true
    }

    /// The server rejected the early data: resets the state and returns the streams.
    pub(super) fn reset(&mut self) -> BTreeMap<u64, SimH3Stream> {
        let streams = std::mem::take(&mut self.streams);
        let (window, credit) = (self.window, std::mem::take(&mut self.credit));
        *self = Self { window, credit, ..Self::default() };
        streams
    }

    /// The output of one of this client's streams: control, encoder, decoder.
    fn out(&mut self, which: usize) -> Option<&mut Vec<u8>> {
        self.own.get_mut(which).map(|(_, out)| out)
    }

    /// Appends to the control stream.
    pub(super) fn control(&mut self, kind: u64, payload: &[u8]) {
        if let Some(out) = self.out(0) {
            frame::push(out, kind, payload);
        }
    }

    /// Starts a request. Returns the request if the server allows no further stream now.
    pub(super) fn request(
        &mut self,
        conn: &mut SimH3Conn,
        request: SimRequest,
        is_early: bool,
        chance: &mut Chance,
    ) -> Option<SimRequest> {
        let Some(id) = conn.open(Dir::Bi) else { return Some(request) };
        let section = self.section(&request, chance);
        let mut out = Vec::new();
        if chance.one_in(8) {
            frame::push(&mut out, 0x21 + 0x1f * chance.below(1000), b"nothing");
        }
        frame::push(&mut out, kind::HEADERS, &section);
        if chance.one_in(10) {
            let mut payload = Vec::new();
            frame::encode_varint(&mut payload, id);
            payload.extend_from_slice(format!("u={}", chance.below(8)).as_bytes());
            self.control(kind::PRIORITY_UPDATE, &payload);
        }
        let stream = SimH3Stream {
            upload_left: request.upload.size(),
            credit: Credit::new(self.window),
            credit_gaps: [CreditGap::new(request.since); 2],
            request,
            response: SimResponse::default(),
            has_begun: false,
            is_early,
            out,
            has_ended: false,
            input: Vec::new(),
            blocked: None,
            is_over: false,
        };
        self.streams.insert(id, stream);
        None
    }

    fn section(&mut self, request: &SimRequest, chance: &mut Chance) -> Vec<u8> {
        let mut section = Vec::new();
        let capacity = self.capacity.unwrap_or(0);
        let may_wait = (self.streams.len() as u64) < self.blocked_max;
        let has_room = capacity >= 4096 && self.inserted < INSERTIONS_MAX;
        let refers = may_wait && has_room && chance.one_in(2);
        if refers {
            let first = self.inserted == 0;
            let number = self.inserted;
            if let Some(out) = self.out(1) {
                if first {
                    frame::push_capacity(out, 4096);
                }
                frame::push_insertion(out, "x-sim", &format!("entry {number}"));
            }
            self.inserted += 1;
            frame::push_prefix(&mut section, self.inserted, capacity);
        } else {
            frame::push_prefix(&mut section, 0, capacity);
        }
        let method = request.method();
        match (method, chance.one_in(2)) {
            ("GET", true) => frame::push_static(&mut section, 17),
            ("HEAD", true) => frame::push_static(&mut section, 18),
            ("POST", true) => frame::push_static(&mut section, 20),
            _ => frame::push_field(&mut section, ":method", method),
        }
        frame::push_static(&mut section, 23);
        frame::push_field(&mut section, ":path", &request.target());
        frame::push_field(&mut section, ":authority", "site");
        if refers {
            frame::push_newest(&mut section);
        }
        for (name, value) in request.fields() {
            frame::push_field(&mut section, name, &value);
        }
        if let SimUpload::Length(size) = request.upload {
            frame::push_field(&mut section, "content-length", &size.to_string());
        }
        if chance.one_in(6) {
            frame::push_field(&mut section, "priority", &format!("u={}, i", chance.below(8)));
        }
        section
    }

    /// Sends a part of the output. Returns whether anything was sent.
    pub(super) fn write(&mut self, conn: &mut SimH3Conn, chance: &mut Chance) -> bool {
        let mut any = false;
        if self.decoder.has_output()
            && let Some((_, out)) = self.own.get_mut(2)
        {
            self.decoder.poll_output(out);
        }
        for (id, out) in &mut self.own {
            // The encoder stream may arrive late, so that field sections must wait for it.
            if !out.is_empty() && !chance.one_in(3) {
                let taken = conn.write(*id, out).unwrap_or(out.len());
                out.drain(..taken);
                any |= taken > 0;
            } else {
                any |= !out.is_empty();
            }
        }
        for (id, stream) in &mut self.streams {
            any |= stream.write(conn, *id, chance);
        }
        any
    }
}

impl SimH3Stream {
    /// The longest time without a grant of credit, in nanoseconds.
    pub(super) fn longest_credit_gap(&self, now: u64) -> u64 {
        self.credit_gaps.iter().map(|gap| gap.longest(now)).max().unwrap_or(0)
    }

    /// Whether the whole request was sent.
    pub(super) const fn is_sent(&self) -> bool {
        self.has_ended
    }

    /// Discards the rest of the output, after STOP_SENDING.
    pub(super) fn discard_output(&mut self) {
        self.out.clear();
        (self.upload_left, self.has_ended) = (0, true);
    }

    fn write(&mut self, conn: &mut SimH3Conn, id: u64, chance: &mut Chance) -> bool {
        if self.has_ended {
            return false;
        }
        if self.out.is_empty() && self.upload_left > 0 {
            let n = chance.size(self.upload_left.min(DATA_MAX));
            let at = self.request.upload.size() - self.upload_left;
            let bytes: Vec<u8> = (at..at + n).map(upload_byte).collect();
            frame::push(&mut self.out, kind::DATA, &bytes);
            self.upload_left -= n;
        }
        if !self.out.is_empty() {
            let n = chance.size(self.out.len());
            let Some(taken) = conn.write(id, &self.out[..n]) else {
                conn.reset(id, code::NO_ERROR);
                self.discard_output();
                return true;
            };
            self.out.drain(..taken);
            if !self.out.is_empty() || self.upload_left > 0 {
                return taken > 0;
            }
        }
        if self.out.is_empty() && self.upload_left == 0 {
            conn.finish(id);
            self.has_ended = true;
        }
        true
    }
}

/// The code of CONNECTION_CLOSE when the client has no request left.
pub(super) const CLOSE_CODE: u64 = code::NO_ERROR;
/// The code for a cancelled request.
pub(super) const CANCELLED: u64 = code::REQUEST_CANCELLED;
