//! Reads the frames of an upstream (RFC 9113 §4, §6).
//!
//! Content is not gathered here: it goes on as it comes.

use bolide_http::{Name, OriginHead};

use super::H2Client;
use super::fields::{FieldSection, ResponseFields, undecodable};
use super::flaw::{invalid, name, too_many, too_much_padding, unexpected, unknown_stream};
use super::reader::{ClientBlock, ClientReading};
use crate::cgi::{self, BodyLength, CgiPhase, CgiRule};
use crate::h2::frame::{FrameHeader, FrameKind, HEADER_LEN, flag};
use crate::{OriginError, OriginEvent};

/// LIMIT: bytes of a frame: we announce no more than the initial value.
const FRAME_MAX: u32 = bolide_base::limits::H2_FRAME_SIZE_MAX as u32;
/// LIMIT: CONTINUATION frames of one block.
const CONTINUATIONS_MAX: u32 = 64;
/// LIMIT: how much larger than the largest head a decoded block may be: names and values are
/// compressed, and 32 bytes per field count.
const DECODED_FACTOR: usize = 4;

impl H2Client {
    /// Reads all of `input`.
    pub(super) fn read(
        &mut self,
        mut input: &[u8],
        events: &mut Vec<OriginEvent>,
    ) -> Result<(), OriginError> {
        while self.read_part(&mut input, events)? {}
        Ok(())
    }

    /// Reads up to the end of a part of a frame; false if more bytes are needed for that.
    fn read_part(
        &mut self,
        input: &mut &[u8],
        events: &mut Vec<OriginEvent>,
    ) -> Result<bool, OriginError> {
        match self.reader.reading {
            ClientReading::Header => {
                if !self.reader.gather(HEADER_LEN, input) {
                    return Ok(false);
                }
                let bytes = *self.reader.partial.first_chunk().expect("a header is gathered");
                self.reader.partial.clear();
                self.reader.reading = self.begin_frame(FrameHeader::parse(bytes))?;
            }
            ClientReading::Payload(header) => {
                if !self.reader.gather(header.len as usize, input) {
                    return Ok(false);
                }
                let mut payload = std::mem::take(&mut self.reader.partial);
                self.reader.reading = ClientReading::Header;
                self.take_frame(&header, &payload, events)?;
                payload.clear();
                payload.shrink_to(super::BUFFER_KEPT);
                self.reader.partial = payload;
            }
            ClientReading::PadLength { len, ends } => {
                let Some((padding, rest)) = input.split_first() else { return Ok(false) };
                *input = rest;
                let padding = u32::from(*padding);
                let left = (len - 1).checked_sub(padding).ok_or_else(too_much_padding)?;
                self.reader.reading = ClientReading::Data { left, padding, ends };
            }
            ClientReading::Data { left, padding, ends } if left > 0 => {
                let (piece, rest) = input.split_at(input.len().min(left as usize));
                *input = rest;
                if piece.is_empty() {
                    return Ok(false);
                }
                self.reader.pay();
                self.take_data(piece, events)?;
                let left = left - piece.len() as u32;
                self.reader.reading = ClientReading::Data { left, padding, ends };
            }
            ClientReading::Data { padding, ends, .. } => {
                if ends {
                    self.end_response(events)?;
                }
                self.reader.reading = ClientReading::Skip(padding);
            }
            ClientReading::Skip(left) => {
                let skipped = input.len().min(left as usize);
                *input = &input[skipped..];
                let left = left - skipped as u32;
                if left > 0 {
                    self.reader.reading = ClientReading::Skip(left);
                    return Ok(false);
                }
                self.reader.reading = ClientReading::Header;
            }
            ClientReading::Nothing => return Ok(false),
        }
        Ok(true)
    }

    /// Checks what can be told by the header of a frame.
    fn begin_frame(&mut self, header: FrameHeader) -> Result<ClientReading, OriginError> {
        let FrameHeader { len, kind, stream, .. } = header;
        if len > FRAME_MAX {
            return Err(invalid(format!("upstream sent too large http2 frame: {len}")));
        }
        if self.reader.block.is_some() != (kind == FrameKind::Continuation) {
            return Err(unexpected(kind));
        }
        if !self.reader.count() {
            return Err(too_many(kind));
        }
        let is_of_connection =
            matches!(kind, FrameKind::Settings | FrameKind::Ping | FrameKind::GoAway);
        if is_of_connection && stream != 0 {
            let text = "frame with non-zero stream id";
            return Err(invalid(format!("upstream sent {} {text}: {stream}", name(kind))));
        }
        let is_long_enough = match kind {
            FrameKind::Settings => len.is_multiple_of(6),
            FrameKind::Ping => len == 8,
            FrameKind::GoAway => len >= 8,
            FrameKind::WindowUpdate | FrameKind::RstStream => len == 4,
            _ => true,
        };
        if kind == FrameKind::Settings && header.has(flag::ACK) && len > 0 {
            let text = "upstream sent settings frame with ack flag and non-zero length";
            return Err(invalid(format!("{text}: {len}")));
        }
        if !is_long_enough {
            let text = "frame with invalid length";
            return Err(invalid(format!("upstream sent {} {text}: {len}", name(kind))));
        }
        match kind {
            FrameKind::Data => self.begin_data(&header),
            FrameKind::Headers | FrameKind::Continuation if stream != self.stream => {
                Err(unknown_stream(stream))
            }
            FrameKind::Headers if self.answer.phase() == CgiPhase::Over => {
                Err(invalid(format!("upstream sent frame for closed stream {stream}")))
            }
            FrameKind::PushPromise => Err(invalid("upstream sent unexpected push promise frame")),
            FrameKind::WindowUpdate if stream == 0 => Ok(ClientReading::Payload(header)),
            FrameKind::WindowUpdate | FrameKind::RstStream if !self.knows(stream) => {
                Err(unknown_stream(stream))
            }
            FrameKind::Priority | FrameKind::PriorityUpdate | FrameKind::Unknown => {
                Ok(ClientReading::Skip(len))
            }
            _ => Ok(ClientReading::Payload(header)),
        }
    }

    /// Whether this is the stream of the request, or of an earlier one.
    const fn knows(&self, stream: u32) -> bool {
        stream % 2 == 1 && stream <= self.stream
    }

    fn begin_data(&mut self, header: &FrameHeader) -> Result<ClientReading, OriginError> {
        let FrameHeader { len, stream, .. } = *header;
        if self.answer.phase() == CgiPhase::Head {
            return Err(unexpected(FrameKind::Data));
        }
        if stream != self.stream {
            let text = "upstream sent data frame for unknown stream";
            return Err(invalid(format!("{text} {stream}")));
        }
        if self.answer.phase() == CgiPhase::Over {
            return Err(invalid(format!("upstream sent frame for closed stream {stream}")));
        }
        self.windows.take(stream, len, &mut self.answers).map_err(invalid)?;
        let ends = header.has(flag::END_STREAM);
        match header.has(flag::PADDED) {
            true if len == 0 => Err(too_much_padding()),
            true => Ok(ClientReading::PadLength { len, ends }),
            false => Ok(ClientReading::Data { left: len, padding: 0, ends }),
        }
    }

    fn take_frame(
        &mut self,
        header: &FrameHeader,
        payload: &[u8],
        events: &mut Vec<OriginEvent>,
    ) -> Result<(), OriginError> {
        match header.kind {
            FrameKind::Headers => self.take_headers(header, payload, events),
            FrameKind::Continuation => self.take_continuation(header, payload, events),
            FrameKind::Settings if header.has(flag::ACK) => Ok(()),
            FrameKind::Settings => self.take_settings(payload),
            FrameKind::Ping if header.has(flag::ACK) => Ok(()),
            FrameKind::Ping => self.answer_with(FrameKind::Ping, payload),
            FrameKind::GoAway => self.take_goaway(payload),
            FrameKind::WindowUpdate => self.take_window_update(header.stream, payload),
            FrameKind::RstStream => self.take_reset(header.stream, payload),
            _ => Ok(()),
        }
    }

    fn take_headers(
        &mut self,
        header: &FrameHeader,
        payload: &[u8],
        events: &mut Vec<OriginEvent>,
    ) -> Result<(), OriginError> {
        let mut fragment = payload;
        if header.has(flag::PADDED) {
            let len = crate::h2::frame::strip_padding(header, payload);
            fragment = &payload[1..=len.ok_or_else(too_much_padding)?];
        }
        if header.has(flag::PRIORITY) {
            fragment = fragment
                .get(5..)
                .ok_or_else(|| invalid("upstream sent headers frame with invalid length"))?;
        }
        let ends = header.has(flag::END_STREAM);
        let block = ClientBlock { bytes: fragment.to_vec(), continuations: 0, ends };
        self.take_block(block, header.has(flag::END_HEADERS), events)
    }

    fn take_continuation(
        &mut self,
        header: &FrameHeader,
        payload: &[u8],
        events: &mut Vec<OriginEvent>,
    ) -> Result<(), OriginError> {
        let Some(mut block) = self.reader.block.take() else {
            return Err(unexpected(FrameKind::Continuation));
        };
        block.continuations += 1;
        if block.continuations > CONTINUATIONS_MAX {
            return Err(invalid("upstream sent too many continuation frames"));
        }
        block.bytes.extend_from_slice(payload);
        self.take_block(*block, header.has(flag::END_HEADERS), events)
    }

    /// Handles a field block, or keeps an incomplete one.
    fn take_block(
        &mut self,
        block: ClientBlock,
        is_complete: bool,
        events: &mut Vec<OriginEvent>,
    ) -> Result<(), OriginError> {
        let head_max = self.settings.head_max;
        if block.bytes.len() > head_max {
            return Err(OriginError::HeadTooBig);
        }
        if !is_complete {
            self.reader.block = Some(Box::new(block));
            return Ok(());
        }
        let is_head = self.answer.phase() == CgiPhase::Head;
        let mut fields =
            ResponseFields::new(if is_head { FieldSection::Head } else { FieldSection::Trailers });
        let size_max = head_max.saturating_mul(DECODED_FACTOR);
        let scratch = &mut self.reader.scratch;
        let decoded = self.decoder.decode(&block.bytes, size_max, scratch, &mut fields);
        decoded.map_err(undecodable)?;
        self.reader.pay();
        if is_head {
            return self.take_head(fields.into_head(block.bytes.len())?, block.ends, events);
        }
        let trailers = fields.into_trailers()?;
        if !block.ends {
            return Err(invalid("upstream sent trailer without end stream flag"));
        }
        self.check_length()?;
        self.answer.flush(events);
        if !trailers.is_empty() {
            events.push(OriginEvent::Trailers(Box::new(trailers)));
        }
        self.end_response(events)
    }

    fn take_head(
        &mut self,
        mut head: Box<OriginHead>,
        ends: bool,
        events: &mut Vec<OriginEvent>,
    ) -> Result<(), OriginError> {
        if cgi::is_early(head.status) {
            // RFC 9113 §8.1: an interim response does not end the stream.
            return match ends {
                true => Err(invalid("upstream prematurely closed stream")),
                false => self.answer.early_head(head, events),
            };
        }
        self.left = match cgi::read_framing(&head.fields)? {
            BodyLength::Known(length) => Some(length),
            BodyLength::Chunked | BodyLength::Open => None,
        };
        let has_body = !self.settings.answers_head && !matches!(head.status, 204 | 304);
        if !has_body {
            self.left = None;
        }
        if ends {
            self.check_length()?;
        }
        if ends && has_body && self.left.is_none() {
            // As in nginx, a response without a body says so: it ends with its head.
            head.fields.push(Name::ContentLength, b"0");
        }
        self.answer.begin_body(head, CgiRule::Any, events);
        if ends { self.end_response(events) } else { Ok(()) }
    }

    fn take_data(
        &mut self,
        piece: &[u8],
        events: &mut Vec<OriginEvent>,
    ) -> Result<(), OriginError> {
        if self.answer.is_complete() {
            // By method or status there is no body.
            return Ok(());
        }
        let max = self.left.map_or(usize::MAX, |left| usize::try_from(left).unwrap_or(usize::MAX));
        let taken = &piece[..piece.len().min(max)];
        self.left = self.left.map(|left| left - taken.len() as u64);
        if !taken.is_empty() {
            self.answer.body(taken, 0, events);
        }
        if taken.len() < piece.len() {
            let text = "upstream sent response body larger than indicated content length";
            return Err(invalid(text));
        }
        Ok(())
    }

    /// Refuses a body that is shorter than its declared length.
    fn check_length(&self) -> Result<(), OriginError> {
        match self.left {
            Some(1..) => Err(invalid("upstream prematurely closed stream")),
            _ => Ok(()),
        }
    }

    fn end_response(&mut self, events: &mut Vec<OriginEvent>) -> Result<(), OriginError> {
        debug_assert!(self.reader.block.is_none(), "a response does not end within a block");
        self.check_length()?;
        self.answer.end(0, events);
        self.stop();
        Ok(())
    }
}
