//! The receiving side of HTTP/3: frames of the server's streams and of responses.

use bolide_wire::pseudo::Label;
use bolide_wire::qpack::{QpackDecoder, Section};

use super::super::conn::{SimH3Conn, SimH3More, SimH3Read};
use super::super::frame::{self, kind, setting, uni};
use super::{H3Event, HttpLayer};

impl HttpLayer {
    /// Reads a part of the input. Returns whether anything was read, and the events.
    pub(in super::super) fn read(
        &mut self,
        conn: &mut SimH3Conn,
        max: usize,
        now: u64,
    ) -> Result<(bool, Vec<H3Event>), String> {
        let (mut any, mut events) = (false, Vec::new());
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
                    events.push(H3Event::Reset(id, code));
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
                self.streams.values_mut().for_each(|stream| stream.credit_gaps[1].end(now));
            }
            if is_ours {
                if let Some(stream) = self.streams.get_mut(&id) {
                    stream.input.extend_from_slice(&bytes);
                    stream.is_over |= is_over;
                    if stream.credit.read(bytes.len()) {
                        stream.credit_gaps[0].end(now);
                    }
                    stream.has_begun |= !bytes.is_empty();
                }
                events.extend(self.receive(id)?);
            } else {
                self.receive_server_stream(id, &bytes, is_over, &mut events)?;
            }
        }
        Ok((any, events))
    }

    fn receive_server_stream(
        &mut self,
        id: u64,
        bytes: &[u8],
        is_over: bool,
        events: &mut Vec<H3Event>,
    ) -> Result<(), String> {
        let own = self.server_streams.entry(id).or_default();
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
                while let Some((kind, payload)) = take_frame(&mut input)? {
                    self.receive_control(kind, &payload, events)?;
                }
                self.server_streams.entry(id).or_default().input = input;
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
                    events.extend(self.receive(id)?);
                }
            }
            // Acknowledgements of these few insertions have no effect.
            Some(uni::DECODER) => own.input.clear(),
            Some(uni::PUSH) => return Err("a push that was not allowed".to_owned()),
            Some(_) => own.input.clear(),
            None => {}
        }
        Ok(())
    }

    fn receive_control(
        &mut self,
        kind: u64,
        payload: &[u8],
        events: &mut Vec<H3Event>,
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
                // RFC 9114 §5.2: the id is that of a request, and never increases.
                if id % 4 != 0 || self.goaway.is_some_and(|before| id > before) {
                    return Err(format!("GOAWAY {id} after {:?}", self.goaway));
                }
                self.goaway = Some(id);
                events.push(H3Event::GoAway(id));
            }
            kind::DATA | kind::HEADERS | kind::PUSH_PROMISE => {
                return Err(format!("frame {kind} on the control stream"));
            }
            _ => {}
        }
        Ok(())
    }

    /// Processes the frames of one response that have arrived.
    fn receive(&mut self, id: u64) -> Result<Option<H3Event>, String> {
        let Some(stream) = self.streams.get_mut(&id) else { return Ok(None) };
        let mut input = std::mem::take(&mut stream.input);
        loop {
            let (kind, payload) = match self.streams.get_mut(&id).and_then(|s| s.blocked.take()) {
                Some(section) => (kind::HEADERS, section),
                None => match take_frame(&mut input)? {
                    Some(frame) => frame,
                    None => break,
                },
            };
            let Some(stream) = self.streams.get_mut(&id) else { return Ok(None) };
            match kind {
                kind::DATA if stream.response.status == 0 => {
                    return Err("a body before its head".to_owned());
                }
                kind::DATA => stream.response.body.extend_from_slice(&payload),
                kind::HEADERS => {
                    let Some(fields) = decode(&mut self.decoder, id, &payload)? else {
                        stream.blocked = Some(payload);
                        break;
                    };
                    self.receive_head(id, fields)?;
                }
                kind::SETTINGS | kind::GOAWAY | kind::MAX_PUSH_ID | kind::CANCEL_PUSH => {
                    return Err(format!("frame {kind} in a response"));
                }
                _ => {}
            }
        }
        let Some(stream) = self.streams.get_mut(&id) else { return Ok(None) };
        stream.input = input;
        if !stream.is_over || stream.blocked.is_some() {
            return Ok(None);
        }
        if !stream.input.is_empty() || stream.response.status == 0 {
            return Err(format!("a response ends too early: {:?}", stream.response.status));
        }
        Ok(Some(H3Event::Response(id)))
    }

    fn receive_head(&mut self, id: u64, fields: Vec<(String, String)>) -> Result<(), String> {
        let Some(stream) = self.streams.get_mut(&id) else { return Ok(()) };
        if stream.response.status != 0 {
            stream.response.trailers = fields;
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
        (stream.response.status, stream.response.fields) = (status, fields.collect());
        Ok(())
    }
}

/// Takes a complete frame from the front of `input`.
fn take_frame(input: &mut Vec<u8>) -> Result<Option<(u64, Vec<u8>)>, String> {
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

/// Decodes a field section; `None` if insertions are missing.
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
            // Responses have no other pseudo-header field.
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
