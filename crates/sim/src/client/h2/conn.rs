//! One HTTP/2 connection of a client: streams, windows, settings.

use std::collections::{BTreeMap, BTreeSet};

use bolide_wire::hpack::HpackDecoder;

use super::announced;
use crate::chance::Chance;
use crate::client::ClientFault;
use crate::client::pipe::Pipe;
use crate::fault_record::upload_byte;
use crate::h2_frame::{self as frame, END_HEADERS, END_STREAM, PADDED, SimH2Frame, kind};
use crate::request::SimRequest;
use crate::response::SimResponse;

/// The initial windows before SETTINGS (RFC 9113 §6.9.2).
const WINDOW: i64 = 65_535;
/// The largest frame that this client accepts.
const FRAME_MAX: usize = 16_384;

/// A request and its response so far.
#[derive(Debug)]
pub(super) struct SimH2Stream {
    pub(super) request: SimRequest,
    /// Where its head ends in the bytes sent.
    pub(super) end: u64,
    pub(super) response: SimResponse,
    pub(super) upload_left: usize,
    /// The server's send window.
    window: i64,
    /// This client's send window.
    upload_window: i64,
    /// Received bytes without a WINDOW_UPDATE so far.
    credit: u32,
}

/// An event on a connection.
#[derive(Clone, Copy, Debug)]
pub(super) enum H2Event {
    /// A response is complete.
    Response(u32),
    /// The server reset a stream.
    Reset(u32, u32),
    /// The server sent GOAWAY; it did not process higher streams.
    GoAway(u32, u32),
}

/// One connection.
#[derive(Debug)]
pub(super) struct SimH2Conn {
    pub(super) pipe: Pipe,
    pub(super) depth: usize,
    pub(super) streams: BTreeMap<u32, SimH2Stream>,
    pub(super) streams_max: usize,
    pub(super) goaway: Option<u32>,
    /// The server has sent SETTINGS.
    pub(super) has_begun: bool,
    pub(super) malformed: bool,
    pub(super) pings: u32,
    /// SETTINGS and PING frames sent.
    pub(super) control_frames: u32,
    /// SETTINGS wait for their acknowledgement.
    pub(super) settings_are_open: bool,
    /// Streams that the server has reset.
    resets: BTreeSet<u32>,
    next_id: u32,
    decoder: HpackDecoder,
    block: Option<(u32, u8, Vec<u8>)>,
    /// The initial stream window as announced, and as acknowledged by the server.
    announced_window: i64,
    stream_window: i64,
    window: i64,
    credit: u32,
    upload_window: i64,
    upload_initial: i64,
}

impl SimH2Conn {
    pub(super) fn new(fd: i32, port: u16, depth: usize, client_fault: ClientFault) -> Self {
        Self {
            pipe: Pipe::new(fd, port, client_fault),
            depth,
            streams: BTreeMap::new(),
            streams_max: 100,
            goaway: None,
            has_begun: false,
            malformed: false,
            pings: 0,
            control_frames: 0,
            settings_are_open: false,
            resets: BTreeSet::new(),
            next_id: 1,
            decoder: HpackDecoder::default(),
            block: None,
            announced_window: WINDOW,
            stream_window: WINDOW,
            window: WINDOW,
            credit: 0,
            upload_window: WINDOW,
            upload_initial: WINDOW,
        }
    }

    /// Announces another initial window.
    pub(super) fn change_settings(&mut self, chance: &mut Chance) {
        let window = 2000 + chance.size(200_000) as u32;
        let mut payload = vec![0, 4];
        payload.extend_from_slice(&window.to_be_bytes());
        if chance.one_in(3) {
            payload.extend_from_slice(&[0, 1, 0, 0]);
            payload.extend_from_slice(&(chance.below(5000) as u16).to_be_bytes());
        }
        frame::push(&mut self.pipe.out, kind::SETTINGS, 0, 0, &payload);
        self.announced_window = i64::from(window);
        self.settings_are_open = true;
    }

    /// Sends the head of a request in one frame or two.
    pub(super) fn request(&mut self, request: SimRequest, chance: &mut Chance) {
        let mut block = Vec::new();
        frame::push_field(&mut block, ":method", request.method());
        frame::push_field(&mut block, ":scheme", "http");
        frame::push_field(&mut block, ":path", &request.target());
        frame::push_field(&mut block, ":authority", "site");
        for (name, value) in request.fields() {
            frame::push_field(&mut block, name, &value);
        }
        if let Some(size) = announced(request.upload) {
            frame::push_field(&mut block, "content-length", &size.to_string());
        }
        let id = self.next_id;
        self.next_id += 2;
        let upload_left = request.upload.size();
        let ends = if upload_left == 0 { END_STREAM } else { 0 };
        let split = if chance.one_in(4) { chance.index(block.len()) } else { block.len() };
        let (first, rest) = block.split_at(split);
        if rest.is_empty() {
            frame::push(&mut self.pipe.out, kind::HEADERS, END_HEADERS | ends, id, first);
        } else {
            frame::push(&mut self.pipe.out, kind::HEADERS, ends, id, first);
            frame::push(&mut self.pipe.out, kind::CONTINUATION, END_HEADERS, id, rest);
        }
        let end = self.pipe.sent + self.pipe.left() as u64;
        let stream = SimH2Stream {
            request,
            end,
            response: SimResponse::default(),
            upload_left,
            window: self.stream_window,
            upload_window: self.upload_initial,
            credit: 0,
        };
        self.streams.insert(id, stream);
    }

    /// Sends parts of request bodies, as far as the windows allow.
    pub(super) fn upload(&mut self, chance: &mut Chance) -> bool {
        if !self.pipe.is_flushed() || self.malformed || self.pipe.ended {
            return false;
        }
        let mut any = false;
        for (&id, stream) in &mut self.streams {
            let window = self.upload_window.min(stream.upload_window);
            let max = stream.upload_left.min(usize::try_from(window).unwrap_or(0)).min(FRAME_MAX);
            if max == 0 {
                continue;
            }
            let n = chance.size(max);
            stream.upload_left -= n;
            stream.upload_window -= n as i64;
            self.upload_window -= n as i64;
            let flags = if stream.upload_left == 0 { END_STREAM } else { 0 };
            let at = stream.request.upload.size() - stream.upload_left - n;
            let bytes: Vec<u8> = (at..at + n).map(upload_byte).collect();
            frame::push(&mut self.pipe.out, kind::DATA, flags, id, &bytes);
            any = true;
        }
        any
    }

    /// Sends WINDOW_UPDATE frames for some of the received bytes.
    pub(super) fn credit(&mut self, chance: &mut Chance) -> bool {
        if !self.owes_credit() || !chance.one_in(3) {
            return false;
        }
        let mut any = false;
        let out = &mut self.pipe.out;
        if self.credit > 0 {
            frame::push(out, kind::WINDOW_UPDATE, 0, 0, &self.credit.to_be_bytes());
            self.window += i64::from(std::mem::take(&mut self.credit));
            any = true;
        }
        for (&id, stream) in &mut self.streams {
            if stream.credit > 0 && chance.one_in(2) {
                frame::push(out, kind::WINDOW_UPDATE, 0, id, &stream.credit.to_be_bytes());
                stream.window += i64::from(std::mem::take(&mut stream.credit));
                any = true;
            }
        }
        any
    }

    pub(super) fn owes_credit(&self) -> bool {
        let owes = self.credit > 0 || self.streams.values().any(|stream| stream.credit > 0);
        owes && !self.malformed && !self.pipe.ended
    }

    /// Processes frames of the input up to the next event.
    pub(super) fn poll(&mut self, chance: &mut Chance) -> Result<Option<H2Event>, String> {
        while let Some(frame) = frame::take(&mut self.pipe.input) {
            if frame.payload.len() > FRAME_MAX {
                return Err(format!("a frame of {} bytes", frame.payload.len()));
            }
            if self.block.is_some() && frame.kind != kind::CONTINUATION {
                return Err("a field block was interrupted".to_owned());
            }
            if let Some(event) = self.receive(frame, chance)? {
                return Ok(Some(event));
            }
        }
        Ok(None)
    }

    fn receive(
        &mut self,
        frame: SimH2Frame,
        chance: &mut Chance,
    ) -> Result<Option<H2Event>, String> {
        let SimH2Frame { kind, flags, stream, payload } = frame;
        // RFC 9113 §5.1, §5.4.2: no frame may follow the reset of a stream.
        if self.resets.contains(&stream) {
            return Err(format!("frame {kind} behind the reset of stream {stream}"));
        }
        if stream >= self.next_id {
            return Err(format!("frame {kind} on the idle stream {stream}"));
        }
        match kind {
            kind::DATA => return self.receive_data(flags, stream, &payload),
            kind::HEADERS => {
                if flags & PADDED != 0 {
                    return Err("padded fields".to_owned());
                }
                return self.receive_block(stream, flags, payload);
            }
            kind::CONTINUATION => {
                let Some((id, first, mut block)) = self.block.take() else {
                    return Err("CONTINUATION of nothing".to_owned());
                };
                if id != stream {
                    return Err("CONTINUATION of another stream".to_owned());
                }
                block.extend_from_slice(&payload);
                return self.receive_block(stream, first | flags & END_HEADERS, block);
            }
            kind::RST_STREAM => {
                self.resets.insert(stream);
                return Ok(Some(H2Event::Reset(stream, frame::number(&payload))));
            }
            kind::SETTINGS if flags & 1 != 0 => self.receive_ack()?,
            kind::SETTINGS => {
                self.has_begun = true;
                self.receive_settings(&payload, chance);
            }
            kind::PING if flags & 1 != 0 => {
                if payload != b"12345678" || self.pings == 0 {
                    return Err("a PING that was not sent is acknowledged".to_owned());
                }
                self.pings -= 1;
            }
            kind::PING => frame::push(&mut self.pipe.out, kind::PING, 1, 0, &payload),
            kind::GOAWAY => {
                let last = frame::number(&payload);
                self.goaway = Some(last);
                let code = frame::number(payload.get(4..).unwrap_or_default());
                return Ok(Some(H2Event::GoAway(last, code)));
            }
            kind::WINDOW_UPDATE => {
                let more = i64::from(frame::number(&payload));
                if stream == 0 {
                    self.upload_window += more;
                } else if let Some(stream) = self.streams.get_mut(&stream) {
                    stream.upload_window += more;
                }
            }
            kind::PUSH_PROMISE => return Err("a push".to_owned()),
            _ => {}
        }
        Ok(None)
    }

    fn receive_data(
        &mut self,
        flags: u8,
        id: u32,
        payload: &[u8],
    ) -> Result<Option<H2Event>, String> {
        let len = payload.len() as i64;
        self.window -= len;
        self.credit += len as u32;
        if self.window < 0 {
            return Err(format!("the connection's window was overrun by {}", -self.window));
        }
        let padding = if flags & PADDED != 0 { usize::from(payload[0]) + 1 } else { 0 };
        // A stream that this client has reset may continue for a while.
        let Some(stream) = self.streams.get_mut(&id) else { return Ok(None) };
        stream.window -= len;
        stream.credit += len as u32;
        if len > 0 && stream.window < 0 {
            return Err(format!("the window of stream {id} was overrun by {}", -stream.window));
        }
        if stream.response.status == 0 {
            return Err(format!("data before fields on stream {id}"));
        }
        let data = &payload[padding.min(1)..payload.len() - padding.saturating_sub(1)];
        stream.response.body.extend_from_slice(data);
        Ok((flags & END_STREAM != 0).then_some(H2Event::Response(id)))
    }

    fn receive_block(
        &mut self,
        id: u32,
        flags: u8,
        block: Vec<u8>,
    ) -> Result<Option<H2Event>, String> {
        if flags & END_HEADERS == 0 {
            self.block = Some((id, flags, block));
            return Ok(None);
        }
        let fields = frame::decode_block(&mut self.decoder, &block)?;
        let Some(stream) = self.streams.get_mut(&id) else { return Ok(None) };
        // RFC 9110 §15.2: interim responses come before the final one.
        if stream.response.status >= 200 {
            stream.response.trailers = fields;
            return match flags & END_STREAM {
                0 => Err("a second head".to_owned()),
                _ => Ok(Some(H2Event::Response(id))),
            };
        }
        let mut fields = fields.into_iter();
        let status = fields.next().filter(|(name, _)| name == ":status");
        let Some(status) = status.and_then(|(_, value)| value.parse().ok()) else {
            return Err("the first field is not the status".to_owned());
        };
        stream.response.status = status;
        stream.response.fields = fields.collect();
        Ok((flags & END_STREAM != 0).then_some(H2Event::Response(id)))
    }

    /// The acknowledged settings are in force: windows change by the difference.
    fn receive_ack(&mut self) -> Result<(), String> {
        if !self.settings_are_open {
            return Err("SETTINGS that were not sent are acknowledged".to_owned());
        }
        self.settings_are_open = false;
        let moved = self.announced_window - self.stream_window;
        self.stream_window = self.announced_window;
        for stream in self.streams.values_mut() {
            stream.window += moved;
        }
        Ok(())
    }

    fn receive_settings(&mut self, payload: &[u8], chance: &mut Chance) {
        for entry in payload.chunks_exact(6) {
            let value = frame::number(&entry[2..]);
            match entry[1] {
                3 => self.streams_max = value as usize,
                4 => {
                    let moved = i64::from(value) - self.upload_initial;
                    self.upload_initial = i64::from(value);
                    for stream in self.streams.values_mut() {
                        stream.upload_window += moved;
                    }
                }
                _ => {}
            }
        }
        frame::push(&mut self.pipe.out, kind::SETTINGS, 1, 0, &[]);
        // Sometimes the client grants more credit for the connection.
        if chance.one_in(2) {
            let more = 1 + chance.below(100_000) as u32;
            frame::push(&mut self.pipe.out, kind::WINDOW_UPDATE, 0, 0, &more.to_be_bytes());
            self.window += i64::from(more);
        }
    }
}
