//! The same applications behind HTTP/2, over gRPC or not: a request is converted to
//! FastCGI params, and the output becomes frames.
//!
//! An application counts every window, opens its own bit by bit, and changes its settings.

use bolide_wire::hpack::HpackDecoder;

use super::{After, Conn, SimUpstream, param, push_pair};
use crate::chance::Chance;
use crate::fault_record::AppReaction;
use crate::h2_frame::{
    self as frame, ACK, END_HEADERS, END_STREAM, PADDED, PREFACE, SimH2Frame, kind,
};
use crate::response::SimResponse;

/// The initial windows before SETTINGS (RFC 9113 §6.9.2).
const WINDOW: i64 = 65_535;
/// The largest frame that an application accepts.
const FRAME_MAX: usize = 16_384;
/// A frame type that no specification has.
const UNKNOWN: u8 = 0x2a;
/// RFC 9113 §7: the errors of a stream that an application resets.
const RESET_CODES: [u32; 4] = [0, 2, 7, 8];

/// The HTTP/2 state of a connection.
#[derive(Debug)]
pub(super) struct AppH2 {
    has_preface: bool,
    has_sent_settings: bool,
    decoder: HpackDecoder,
    /// The stream of the request; 0 before the first.
    stream: u32,
    /// A field block that continues, and its first flags.
    block: Option<(u8, Vec<u8>)>,
    /// What the worker may still send.
    window: i64,
    stream_window: i64,
    /// The initial window of streams that the worker has acknowledged.
    initial: i64,
    /// The one that it has not acknowledged.
    announced: Option<i64>,
    /// Received bytes without a `WINDOW_UPDATE` so far.
    credit: u32,
    stream_credit: u32,
    /// The declared length of the request's body.
    declared: Option<usize>,
    pings: u32,
}

impl AppH2 {
    fn new() -> Self {
        Self {
            has_preface: false,
            has_sent_settings: false,
            decoder: HpackDecoder::default(),
            stream: 0,
            block: None,
            window: WINDOW,
            stream_window: WINDOW,
            initial: WINDOW,
            announced: None,
            credit: 0,
            stream_credit: 0,
            declared: None,
            pings: 0,
        }
    }

    /// Announces another initial window; it may close the window, for a while.
    fn change_settings(&mut self, out: &mut Vec<u8>, chance: &mut Chance) {
        let window = if chance.one_in(4) { 0 } else { chance.size(200_000) as u32 };
        let mut payload = vec![0, 4];
        payload.extend_from_slice(&window.to_be_bytes());
        frame::push(out, kind::SETTINGS, 0, 0, &payload);
        self.has_sent_settings = true;
        let window = i64::from(window);
        // A larger one may be used before it is acknowledged.
        self.stream_window += (window - self.initial).max(0);
        self.announced = Some(window);
    }

    /// The acknowledged settings are in force.
    fn take_ack(&mut self) -> Result<(), String> {
        let window = self.announced.take().ok_or("SETTINGS that were not sent are acknowledged")?;
        self.stream_window += (window - self.initial).min(0);
        self.initial = window;
        Ok(())
    }

    /// Whether the worker waits for a larger window.
    const fn owes_credit(&self) -> bool {
        self.credit > 0 || self.stream_credit > 0 || self.stream_window <= 0
    }

    /// Opens the windows, and says what is of no use.
    fn chatter(&mut self, out: &mut Vec<u8>, has_body: bool, chance: &mut Chance) {
        if !self.has_sent_settings {
            return self.change_settings(out, chance);
        }
        if self.credit > 0 && chance.one_in(3) {
            frame::push(out, kind::WINDOW_UPDATE, 0, 0, &self.credit.to_be_bytes());
            self.window += i64::from(std::mem::take(&mut self.credit));
        }
        if !has_body && self.stream > 0 && self.owes_credit() && chance.one_in(3) {
            let more = std::mem::take(&mut self.stream_credit) + chance.below(20_000) as u32;
            frame::push(out, kind::WINDOW_UPDATE, 0, self.stream, &more.max(1).to_be_bytes());
            self.stream_window += i64::from(more.max(1));
        }
        if chance.one_in(60) && self.announced.is_none() {
            self.change_settings(out, chance);
        }
        if chance.one_in(60) && self.pings < 3 {
            frame::push(out, kind::PING, 0, 0, b"are you?");
            self.pings += 1;
        }
    }

    /// Takes complete frames of one request.
    fn read(&mut self, conn: &mut Conn) -> Result<(), String> {
        if !self.has_preface {
            if conn.input.len() < PREFACE.len() {
                return Ok(());
            }
            if !conn.input.starts_with(PREFACE) {
                return Err("a connection begins without the preface".to_owned());
            }
            conn.input.drain(..PREFACE.len());
            self.has_preface = true;
        }
        while let Some(frame) = frame::take(&mut conn.input) {
            if frame.payload.len() > FRAME_MAX {
                return Err(format!("a frame of {} bytes", frame.payload.len()));
            }
            if self.block.is_some() && frame.kind != kind::CONTINUATION {
                return Err("a field block is interrupted".to_owned());
            }
            self.receive(frame, conn)?;
            if matches!(conn.after, After::Close { .. }) {
                break;
            }
        }
        Ok(())
    }

    fn receive(&mut self, frame: SimH2Frame, conn: &mut Conn) -> Result<(), String> {
        let SimH2Frame { kind, flags, stream, payload } = frame;
        match kind {
            kind::HEADERS if stream > self.stream && stream % 2 == 1 => {
                if conn.has_params || conn.after != After::Read {
                    return Err("a request before the last one has ended".to_owned());
                }
                self.stream = stream;
                // What the worker has not acknowledged may count already, if it is larger.
                self.stream_window = self.initial.max(self.announced.unwrap_or(0));
                self.stream_credit = 0;
                self.receive_block(flags, payload, conn)
            }
            kind::HEADERS | kind::DATA if stream != self.stream || conn.has_body => {
                Err(format!("frame {kind} on the closed stream {stream}"))
            }
            kind::HEADERS => self.receive_block(flags, payload, conn),
            kind::CONTINUATION => {
                let (first, mut block) = self.block.take().ok_or("CONTINUATION of nothing")?;
                block.extend_from_slice(&payload);
                self.receive_block(first | flags & END_HEADERS, block, conn)
            }
            kind::DATA => self.receive_data(flags, &payload, conn),
            kind::RST_STREAM => {
                // The worker gave up: what it has not read is of no use.
                (conn.output, conn.written) = (Vec::new(), 0);
                conn.after = After::Close { rude: false };
                Ok(())
            }
            kind::SETTINGS if flags & ACK != 0 => self.take_ack(),
            kind::SETTINGS => {
                frame::push(&mut conn.output, kind::SETTINGS, ACK, 0, &[]);
                Ok(())
            }
            kind::PING if flags & ACK != 0 => {
                self.pings = self.pings.checked_sub(1).ok_or("an answer to a PING not sent")?;
                Ok(())
            }
            kind::WINDOW_UPDATE if frame::number(&payload) > 0 => Ok(()),
            kind::WINDOW_UPDATE | kind::PUSH_PROMISE | kind::PING => {
                Err(format!("an unexpected frame {kind}"))
            }
            _ => Ok(()),
        }
    }

    fn receive_data(&mut self, flags: u8, payload: &[u8], conn: &mut Conn) -> Result<(), String> {
        let len = payload.len() as u32;
        self.window -= i64::from(len);
        self.stream_window -= i64::from(len);
        if len > 0 && (self.window < 0 || self.stream_window < 0) {
            let (all, own) = (self.window, self.stream_window);
            return Err(format!(
                "a window was overrun: {all} of the connection, {own} of a stream"
            ));
        }
        self.credit += len;
        self.stream_credit += len;
        if !conn.has_params || flags & PADDED != 0 {
            return Err("unexpected data".to_owned());
        }
        conn.body.extend_from_slice(payload);
        self.end_request(flags, conn)
    }

    fn receive_block(&mut self, flags: u8, block: Vec<u8>, conn: &mut Conn) -> Result<(), String> {
        if flags & END_HEADERS == 0 {
            self.block = Some((flags, block));
            return Ok(());
        }
        let fields = frame::decode_block(&mut self.decoder, &block)?;
        if conn.has_params {
            // Trailers.
            return self.end_request(flags | END_STREAM, conn);
        }
        self.declared = None;
        for (name, value) in &fields {
            match &**name {
                ":method" => push_pair(&mut conn.params, "REQUEST_METHOD", value),
                ":path" => {
                    let (path, query) = value.split_once('?').unwrap_or((value, ""));
                    push_pair(&mut conn.params, "QUERY_STRING", query);
                    push_pair(&mut conn.params, "PATH", path);
                }
                "content-length" => self.declared = value.parse().ok(),
                "connection" | "transfer-encoding" => return Err(format!("a field {name}")),
                name => {
                    let name = name.to_ascii_uppercase().replace('-', "_");
                    push_pair(&mut conn.params, &format!("HTTP_{name}"), value);
                }
            }
        }
        (conn.has_params, conn.keeps) = (true, true);
        self.end_request(flags, conn)
    }

    fn end_request(&self, flags: u8, conn: &mut Conn) -> Result<(), String> {
        conn.has_body = flags & END_STREAM != 0;
        match self.declared {
            Some(len) if conn.has_body && len != conn.body.len() => {
                Err(format!("a body of {} bytes is declared as {len}", conn.body.len()))
            }
            _ => Ok(()),
        }
    }
}

/// Takes the frames of a request from the input. Returns whether the worker waits for a
/// window.
///
/// # Errors
///
/// What the worker does against RFC 9113.
pub(super) fn parse(conn: &mut Conn, chance: &mut Chance) -> Result<bool, String> {
    let mut h2 = conn.h2.take().unwrap_or_else(|| Box::new(AppH2::new()));
    let done = h2.read(conn);
    let mut owes = false;
    if conn.after == After::Read {
        h2.chatter(&mut conn.output, conn.has_body, chance);
        owes = conn.has_params && !conn.has_body && h2.owes_credit();
    }
    conn.h2 = Some(h2);
    done.map(|()| owes)
}

/// The stream of the connection's request.
fn stream_of(conn: &Conn) -> u32 {
    conn.h2.as_ref().map_or(0, |h2| h2.stream)
}

impl SimUpstream {
    /// The application's output in frames, and whether the connection is kept.
    pub(super) fn frames(
        &mut self,
        answer: &[u8],
        reaction: AppReaction,
        conn: &Conn,
    ) -> (Vec<u8>, bool) {
        let at = answer.windows(4).position(|four| four == b"\r\n\r\n").unwrap_or(answer.len());
        let (head, body) = (&answer[..at], answer.get(at + 4..).unwrap_or_default());
        let head = String::from_utf8_lossy(head);
        let id = stream_of(conn);
        let mut out = Vec::new();
        if self.chance.one_in(5) {
            let mut block = Vec::new();
            frame::push_field(&mut block, ":status", "103");
            self.push_block(&mut out, 0, id, &block);
        }
        let stated = head.split("\r\n").find_map(|line| line.strip_prefix("Status: "));
        let status = stated.and_then(|status| status.get(..3)).unwrap_or("200");
        let is_bare = param(&conn.params, b"REQUEST_METHOD") == "HEAD" || status == "304";
        let mut block = Vec::new();
        if head.contains(": ") {
            frame::push_field(&mut block, ":status", status);
        }
        for (name, value) in head.split("\r\n").filter_map(|line| line.split_once(": ")) {
            if name != "Status" {
                frame::push_field(&mut block, &name.to_ascii_lowercase(), value);
            }
        }
        let ends = is_bare && self.chance.one_in(2);
        let has_trailers = !ends && self.chance.one_in(2);
        if has_trailers && !is_bare {
            frame::push_field(&mut block, SimResponse::TRAILED, "yes");
        }
        self.push_block(&mut out, if ends { END_STREAM } else { 0 }, id, &block);
        if ends {
            return (out, true);
        }
        if !is_bare {
            self.push_body(&mut out, id, body);
        }
        if reaction == AppReaction::Malformed {
            let (kind, flags, stream, payload): (u8, u8, u32, &[u8]) = [
                (kind::DATA, 0, id + 2, &b"astray"[..]),
                (kind::SETTINGS, 0, 0, b"\0\x04\xff\xff\xff\xff"),
                (kind::HEADERS, END_HEADERS | END_STREAM, id, b"\xff\xff\xff\xff\xff\xff"),
                (kind::PUSH_PROMISE, END_HEADERS, id, b"\0\0\0\x02\x82"),
                (kind::WINDOW_UPDATE, 0, 0, b"\x7f\xff\xff\xff"),
                (kind::CONTINUATION, END_HEADERS, id, b"\x82"),
            ][self.chance.index(6)];
            frame::push(&mut out, kind, flags, stream, payload);
        }
        let is_kept = !self.chance.one_in(4);
        if !is_kept {
            frame::push(&mut out, kind::GOAWAY, 0, 0, &[id.to_be_bytes(), [0; 4]].concat());
        }
        if has_trailers {
            let (name, value) = SimResponse::TRAILER;
            let mut block = Vec::new();
            frame::push_field(&mut block, name, value);
            self.push_block(&mut out, END_STREAM, id, &block);
        } else {
            frame::push(&mut out, kind::DATA, END_STREAM, id, b"");
        }
        (out, is_kept)
    }

    /// Appends DATA frames of random size and padding, with others in between.
    fn push_body(&mut self, out: &mut Vec<u8>, id: u32, mut rest: &[u8]) {
        while !rest.is_empty() {
            let (piece, behind) = rest.split_at(self.chance.size(rest.len().min(FRAME_MAX - 300)));
            rest = behind;
            if self.chance.one_in(3) {
                let padding = self.chance.below(256) as u8;
                let zeroes = vec![0; usize::from(padding)];
                frame::push(out, kind::DATA, PADDED, id, &[&[padding], piece, &zeroes].concat());
            } else {
                frame::push(out, kind::DATA, 0, id, piece);
            }
            if self.chance.one_in(20) {
                frame::push(out, UNKNOWN, 0xff, id, b"of no meaning");
            }
        }
    }

    /// Appends a field block in one frame or more.
    fn push_block(&mut self, out: &mut Vec<u8>, flags: u8, id: u32, block: &[u8]) {
        let first = match self.chance.one_in(3) {
            true => self.chance.index(block.len()),
            false => block.len(),
        };
        let (first, rest) = block.split_at(first.min(FRAME_MAX));
        let last = |rest: &[u8]| if rest.is_empty() { END_HEADERS } else { 0 };
        frame::push(out, kind::HEADERS, flags | last(rest), id, first);
        let mut pieces = rest.chunks(FRAME_MAX).peekable();
        while let Some(piece) = pieces.next() {
            let flags = if pieces.peek().is_none() { END_HEADERS } else { 0 };
            frame::push(out, kind::CONTINUATION, flags, id, piece);
        }
    }

    /// An application that closes before its response may say so.
    pub(super) fn push_refusal(&mut self, conn: &mut Conn) {
        let id = stream_of(conn);
        let code = RESET_CODES[self.chance.index(RESET_CODES.len())].to_be_bytes();
        match self.chance.below(3) {
            0 => frame::push(&mut conn.output, kind::RST_STREAM, 0, id, &code),
            1 => {
                let last = if self.chance.one_in(2) { id } else { 0 };
                let payload = [last.to_be_bytes(), code].concat();
                frame::push(&mut conn.output, kind::GOAWAY, 0, 0, &payload);
            }
            _ => {}
        }
    }
}
