//! HTTP/3 over one connection of a client: its own streams, the server's, requests and their
//! responses so far.

use std::collections::{BTreeMap, BTreeSet};

use bolide_wire::pseudo::Label;
use bolide_wire::qpack::{QpackDecoder, Section};
use quinn_proto::Dir;

use super::conn::{SimH3Conn, SimH3More, SimH3Read, SimH3Transport};
use super::credit::{Credit, Silence};
use super::frame::{self, code, kind, setting, uni};
use crate::ask::{SimAnswer, SimAsk, SimUpload};
use crate::chance::Chance;
use crate::deeds::upload_byte;

/// Bytes of an upload in one frame, at most.
const DATA_MAX: usize = 20_000;
/// Entries of our table: so few that none is ever dropped.
const INSERTIONS_MAX: u64 = 40;

/// A request and what came of it so far.
#[derive(Debug)]
pub(super) struct SimH3Stream {
    pub(super) ask: SimAsk,
    pub(super) answer: SimAnswer,
    /// Something of the answer has come.
    pub(super) has_begun: bool,
    /// It left before the handshake was over.
    pub(super) is_early: bool,
    /// What was read of its own window.
    credit: Credit,
    /// Words of room in its own window, and in that of all streams.
    silences: [Silence; 2],
    /// Frames that are still to be sent, and bytes of the body behind them.
    out: Vec<u8>,
    upload_left: usize,
    has_ended: bool,
    input: Vec<u8>,
    /// A section that waits for insertions.
    blocked: Option<Vec<u8>>,
    /// The server has ended its side.
    is_over: bool,
}

/// A stream of the server's.
#[derive(Debug, Default)]
struct Own {
    kind: Option<u64>,
    input: Vec<u8>,
}

/// What is new.
#[derive(Clone, Copy, Debug)]
pub(super) enum SimH3News {
    /// A complete answer.
    Answer(u64),
    /// A stream was given up, with this code.
    Reset(u64, u64),
    /// The server goes: requests from this one on were not looked at.
    GoAway(u64),
}

/// Everything above the transport.
#[derive(Debug, Default)]
pub(super) struct Talk {
    pub(super) streams: BTreeMap<u64, SimH3Stream>,
    pub(super) goaway: Option<u64>,
    /// Streams with something to read.
    pub(super) readable: BTreeSet<u64>,
    /// Our own streams, and what is to be sent on each: control, encoder, decoder, and others.
    pub(super) own: Vec<(u64, Vec<u8>)>,
    theirs: BTreeMap<u64, Own>,
    decoder: QpackDecoder,
    /// Bytes of the table that we may make, once the server has said.
    capacity: Option<u64>,
    inserted: u64,
    blocked_max: u64,
    /// The server has said something.
    pub(super) has_settings: bool,
    /// What the server has told of a request, in a head of its own, counts nothing.
    pub(super) interims: u64,
    /// Bytes of the window of each stream.
    window: u32,
    /// What was read of the window of all streams.
    credit: Credit,
}

impl Talk {
    pub(super) fn new(transport: SimH3Transport) -> Self {
        let SimH3Transport { window, window_all, .. } = transport;
        Self { window, credit: Credit::new(window_all), ..Self::default() }
    }

    /// Opens our streams; false when the server allows none yet.
    pub(super) fn begin(&mut self, conn: &mut SimH3Conn, chance: &mut Chance) -> bool {
        let capacity = if chance.one_in(2) { 4096 } else { chance.below(600) };
        let blocked = [0, 1, 16][chance.index(3)];
        self.decoder = QpackDecoder::new(capacity as usize);
        let mut settings = Vec::new();
        for (name, value) in [
            (setting::TABLE_CAPACITY, capacity),
            (setting::BLOCKED_STREAMS, blocked),
            // RFC 9114 §7.2.4.1: of no meaning.
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

    /// What is sent early was refused: nothing of it ever was.
    pub(super) fn forget(&mut self) -> BTreeMap<u64, SimH3Stream> {
        let streams = std::mem::take(&mut self.streams);
        let (window, credit) = (self.window, std::mem::take(&mut self.credit));
        *self = Self { window, credit, ..Self::default() };
        streams
    }

    /// What is to be sent on one of our own streams: control, encoder, decoder.
    fn out(&mut self, which: usize) -> Option<&mut Vec<u8>> {
        self.own.get_mut(which).map(|(_, out)| out)
    }

    /// Appends to the control stream.
    pub(super) fn control(&mut self, kind: u64, payload: &[u8]) {
        if let Some(out) = self.out(0) {
            frame::push(out, kind, payload);
        }
    }

    /// Makes the first bytes of a request; gives it back when the server allows no more now.
    pub(super) fn request(
        &mut self,
        conn: &mut SimH3Conn,
        ask: SimAsk,
        is_early: bool,
        chance: &mut Chance,
    ) -> Option<SimAsk> {
        let Some(id) = conn.open(Dir::Bi) else { return Some(ask) };
        let section = self.section(&ask, chance);
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
            upload_left: ask.upload.size(),
            credit: Credit::new(self.window),
            silences: [Silence::new(ask.since); 2],
            ask,
            answer: SimAnswer::default(),
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

    fn section(&mut self, ask: &SimAsk, chance: &mut Chance) -> Vec<u8> {
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
        let method = ask.method();
        match (method, chance.one_in(2)) {
            ("GET", true) => frame::push_static(&mut section, 17),
            ("HEAD", true) => frame::push_static(&mut section, 18),
            ("POST", true) => frame::push_static(&mut section, 20),
            _ => frame::push_field(&mut section, ":method", method),
        }
        frame::push_static(&mut section, 23);
        frame::push_field(&mut section, ":path", &ask.target());
        frame::push_field(&mut section, ":authority", "site");
        if refers {
            frame::push_newest(&mut section);
        }
        for (name, value) in ask.fields() {
            frame::push_field(&mut section, name, &value);
        }
        if let SimUpload::Length(size) = ask.upload {
            frame::push_field(&mut section, "content-length", &size.to_string());
        }
        if chance.one_in(6) {
            frame::push_field(&mut section, "priority", &format!("u={}, i", chance.below(8)));
        }
        section
    }

    /// Sends some of what is to be sent; whether anything was.
    pub(super) fn write(&mut self, conn: &mut SimH3Conn, chance: &mut Chance) -> bool {
        let mut any = false;
        if self.decoder.has_output()
            && let Some((_, out)) = self.own.get_mut(2)
        {
            self.decoder.poll_output(out);
        }
        for (id, out) in &mut self.own {
            // The encoder's stream may come late, so that sections wait for it.
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

    /// Reads some of what is there, and finds out what it means.
    pub(super) fn read(
        &mut self,
        conn: &mut SimH3Conn,
        max: usize,
        now: u64,
    ) -> Result<(bool, Vec<SimH3News>), String> {
        let (mut any, mut news) = (false, Vec::new());
        for id in std::mem::take(&mut self.readable) {
            let is_ours = id % 4 == 0;
            if is_ours && max == 0 {
                self.readable.insert(id);
                continue;
            }
            if is_ours && !self.streams.contains_key(&id) {
                continue;
            }
            let read = conn.read(id, if is_ours { max } else { usize::MAX });
            let (bytes, is_over) = match read {
                SimH3Read::Gone => continue,
                SimH3Read::Reset(_) if !is_ours => {
                    return Err("a stream of its own is reset".to_owned());
                }
                SimH3Read::Reset(code) => {
                    any = true;
                    news.push(SimH3News::Reset(id, code));
                    continue;
                }
                SimH3Read::End(bytes) => (bytes, true),
                SimH3Read::Bytes(bytes, more) => {
                    if more == SimH3More::Perhaps {
                        self.readable.insert(id);
                    }
                    (bytes, false)
                }
            };
            any |= !bytes.is_empty() || is_over;
            if self.credit.read(bytes.len()) {
                self.streams.values_mut().for_each(|stream| stream.silences[1].end(now));
            }
            if is_ours {
                if let Some(stream) = self.streams.get_mut(&id) {
                    stream.input.extend_from_slice(&bytes);
                    stream.is_over |= is_over;
                    if stream.credit.read(bytes.len()) {
                        stream.silences[0].end(now);
                    }
                    stream.has_begun |= !bytes.is_empty();
                }
                news.extend(self.receive(id)?);
            } else {
                self.receive_theirs(id, &bytes, is_over, &mut news)?;
            }
        }
        Ok((any, news))
    }

    fn receive_theirs(
        &mut self,
        id: u64,
        bytes: &[u8],
        is_over: bool,
        news: &mut Vec<SimH3News>,
    ) -> Result<(), String> {
        let own = self.theirs.entry(id).or_default();
        own.input.extend_from_slice(bytes);
        if own.kind.is_none()
            && let Some((kind, used)) = frame::parse_varint(&own.input)
        {
            own.input.drain(..used);
            own.kind = Some(kind);
        }
        let kind = own.kind;
        if is_over && kind.is_some_and(|kind| kind <= uni::DECODER) {
            return Err("a critical stream is ended".to_owned());
        }
        match kind {
            Some(uni::CONTROL) => {
                let mut input = std::mem::take(&mut own.input);
                while let Some((kind, payload)) = take(&mut input)? {
                    self.receive_control(kind, &payload, news)?;
                }
                self.theirs.entry(id).or_default().input = input;
            }
            Some(uni::ENCODER) => {
                let input = std::mem::take(&mut own.input);
                self.decoder.receive(&input).map_err(|_| "the encoder's stream is bad")?;
                let waiting: Vec<u64> = self
                    .streams
                    .iter()
                    .filter(|(_, stream)| stream.blocked.is_some())
                    .map(|(id, _)| *id)
                    .collect();
                for id in waiting {
                    news.extend(self.receive(id)?);
                }
            }
            // What it acknowledges of our few entries changes nothing for us.
            Some(uni::DECODER) => own.input.clear(),
            Some(uni::PUSH) => return Err("a push that nobody allowed".to_owned()),
            Some(_) => own.input.clear(),
            None => {}
        }
        Ok(())
    }

    fn receive_control(
        &mut self,
        kind: u64,
        payload: &[u8],
        news: &mut Vec<SimH3News>,
    ) -> Result<(), String> {
        if self.has_settings == (kind == kind::SETTINGS) {
            return Err("SETTINGS do not come first, or twice".to_owned());
        }
        match kind {
            kind::SETTINGS => {
                self.has_settings = true;
                let mut rest = payload;
                self.capacity = Some(0);
                while !rest.is_empty() {
                    let (name, used) = frame::parse_varint(rest).ok_or("SETTINGS are cut")?;
                    rest = &rest[used..];
                    let (value, used) = frame::parse_varint(rest).ok_or("SETTINGS are cut")?;
                    rest = &rest[used..];
                    match name {
                        setting::TABLE_CAPACITY => self.capacity = Some(value),
                        setting::BLOCKED_STREAMS => self.blocked_max = value,
                        _ => {}
                    }
                }
            }
            kind::GOAWAY => {
                let (id, _) = frame::parse_varint(payload).ok_or("GOAWAY is cut")?;
                // RFC 9114 §5.2: it names a request, and never a later one than before.
                if id % 4 != 0 || self.goaway.is_some_and(|before| id > before) {
                    return Err(format!("GOAWAY {id} after {:?}", self.goaway));
                }
                self.goaway = Some(id);
                news.push(SimH3News::GoAway(id));
            }
            kind::DATA | kind::HEADERS | kind::PUSH_PROMISE => {
                return Err(format!("frame {kind} on the control stream"));
            }
            _ => {}
        }
        Ok(())
    }

    /// What the frames at hand of one answer mean.
    fn receive(&mut self, id: u64) -> Result<Option<SimH3News>, String> {
        let Some(stream) = self.streams.get_mut(&id) else { return Ok(None) };
        let mut input = std::mem::take(&mut stream.input);
        loop {
            let (kind, payload) = match self.streams.get_mut(&id).and_then(|s| s.blocked.take()) {
                Some(section) => (kind::HEADERS, section),
                None => match take(&mut input)? {
                    Some(frame) => frame,
                    None => break,
                },
            };
            let Some(stream) = self.streams.get_mut(&id) else { return Ok(None) };
            match kind {
                kind::DATA if stream.answer.status == 0 => {
                    return Err("a body before its head".to_owned());
                }
                kind::DATA => stream.answer.body.extend_from_slice(&payload),
                kind::HEADERS => {
                    let Some(fields) = decode(&mut self.decoder, id, &payload)? else {
                        stream.blocked = Some(payload);
                        break;
                    };
                    self.receive_head(id, fields)?;
                }
                kind::SETTINGS | kind::GOAWAY | kind::MAX_PUSH_ID | kind::CANCEL_PUSH => {
                    return Err(format!("frame {kind} in an answer"));
                }
                _ => {}
            }
        }
        let Some(stream) = self.streams.get_mut(&id) else { return Ok(None) };
        stream.input = input;
        if !stream.is_over || stream.blocked.is_some() {
            return Ok(None);
        }
        if !stream.input.is_empty() || stream.answer.status == 0 {
            return Err(format!("an answer ends too early: {:?}", stream.answer.status));
        }
        Ok(Some(SimH3News::Answer(id)))
    }

    fn receive_head(&mut self, id: u64, fields: Vec<(String, String)>) -> Result<(), String> {
        let Some(stream) = self.streams.get_mut(&id) else { return Ok(()) };
        if stream.answer.status != 0 {
            // Trailers.
            return Ok(());
        }
        let mut fields = fields.into_iter();
        let status = fields.next().filter(|(name, _)| name == ":status");
        let Some(status) = status.and_then(|(_, value)| value.parse().ok()) else {
            return Err("the first field is not the status".to_owned());
        };
        if (100..200).contains(&status) {
            self.interims += 1;
            return Ok(());
        }
        (stream.answer.status, stream.answer.fields) = (status, fields.collect());
        Ok(())
    }
}

impl SimH3Stream {
    /// Nanoseconds for which the server was told nothing of room, at most.
    pub(super) fn silence(&self, now: u64) -> u64 {
        self.silences.iter().map(|silence| silence.longest(now)).max().unwrap_or(0)
    }

    /// Whether all of the request has been sent.
    pub(super) const fn is_sent(&self) -> bool {
        self.has_ended
    }

    /// Drops the bytes still to be sent, after STOP_SENDING.
    pub(super) fn mute(&mut self) {
        self.out.clear();
        (self.upload_left, self.has_ended) = (0, true);
    }

    fn write(&mut self, conn: &mut SimH3Conn, id: u64, chance: &mut Chance) -> bool {
        if self.has_ended {
            return false;
        }
        if self.out.is_empty() && self.upload_left > 0 {
            let n = chance.size(self.upload_left.min(DATA_MAX));
            let at = self.ask.upload.size() - self.upload_left;
            let bytes: Vec<u8> = (at..at + n).map(upload_byte).collect();
            frame::push(&mut self.out, kind::DATA, &bytes);
            self.upload_left -= n;
        }
        if !self.out.is_empty() {
            let n = chance.size(self.out.len());
            let Some(taken) = conn.write(id, &self.out[..n]) else {
                conn.reset(id, code::NO_ERROR);
                self.mute();
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

/// Takes a complete frame from the front of `input`.
fn take(input: &mut Vec<u8>) -> Result<Option<(u64, Vec<u8>)>, String> {
    let Some((kind, len, used)) = frame::parse_header(input) else { return Ok(None) };
    if len > 1 << 24 {
        return Err(format!("a frame of {len} bytes"));
    }
    let end = used + len as usize;
    let Some(payload) = input.get(used..end) else { return Ok(None) };
    let payload = payload.to_vec();
    input.drain(..end);
    Ok(Some((kind, payload)))
}

/// The fields of a section; none while insertions are missing.
fn decode(
    decoder: &mut QpackDecoder,
    stream: u64,
    section: &[u8],
) -> Result<Option<Vec<(String, String)>>, String> {
    let mut fields = Vec::new();
    let done = decoder.decode(section, |label, value| {
        let name = match label {
            Label::Known(name) => name.text().to_ascii_lowercase(),
            Label::Text(text) => String::from_utf8_lossy(text).into_owned(),
            // The only one that answers may have.
            Label::WrongPseudo => ":status".to_owned(),
            Label::Method | Label::Scheme | Label::Authority | Label::Path => ":?".to_owned(),
        };
        fields.push((name, String::from_utf8_lossy(value).into_owned()));
    });
    match done {
        Ok(Section::Blocked { .. }) => Ok(None),
        Ok(Section::Complete { required }) => {
            decoder.acknowledge(stream, required);
            Ok(Some(fields))
        }
        Err(_) => Err("fields cannot be decoded".to_owned()),
    }
}

/// What this client says when it has no more to ask.
pub(super) const FAREWELL: u64 = code::NO_ERROR;
/// What it says of a request that it does not want any more.
pub(super) const CANCELLED: u64 = code::REQUEST_CANCELLED;
