//! Writes response heads, pulled bodies, and our unidirectional streams.
//!
//! Owns the cache of the previous response head and the loop that pulls one stream's body into
//! DATA. It pulls no more than QUIC accepts at once.

use bolide_base::{Segment, SendChain};
use bolide_http::status::is_bodiless;
use bolide_http::{BodyLen, FieldMap, Name, ResponseHead};
use bytes::Bytes;

use super::QuicStreams;
use super::frame::{self, kind};
use super::streams::{H3Body, H3Stream};
use crate::qpack::{QpackEncoder, References};
use crate::sendable::sendable;
use crate::{BodySource, Pull};

/// LIMIT: bytes of an incremental response before others of its urgency have their turn.
const QUANTUM: usize = 64 * 1024;
/// LIMIT: bytes of a DATA frame header.
const DATA_HEADER_MAX: usize = 9;

/// An encoded response head.
#[derive(Clone, Debug)]
pub(super) struct EncodedHead {
    /// HEADERS, then the DATA frame header of a body of known length.
    pub(super) bytes: Bytes,
    pub(super) body: H3Body,
    pub(super) references: Option<References>,
}

/// The previous response head. Servers often repeat a head.
#[derive(Debug, Default)]
pub(super) struct ReplyCache {
    head: ResponseHead,
    is_head_request: bool,
    version: u64,
    encoded: Option<EncodedHead>,
}

impl ReplyCache {
    /// The encoded form of `head`, from the cache if it equals the previous one.
    pub(super) fn encode(
        &mut self,
        encoder: &mut QpackEncoder,
        head: &ResponseHead,
        is_head_request: bool,
    ) -> EncodedHead {
        if let Some(encoded) = &self.encoded
            && self.version == encoder.version()
            && self.is_head_request == is_head_request
            && self.head.status == head.status
            && self.head.body == head.body
            && self.head.fields.is_identical(&head.fields)
            && (encoded.references.is_none() || encoder.may_refer())
        {
            return encoded.clone();
        }
        let (encoded, is_settled) = encode(encoder, head, is_head_request);
        self.encoded = None;
        if is_settled {
            self.head.copy_from(head);
            self.is_head_request = is_head_request;
            self.version = encoder.version();
            self.encoded = Some(encoded.clone());
        }
        encoded
    }
}

fn encode(
    encoder: &mut QpackEncoder,
    head: &ResponseHead,
    is_head_request: bool,
) -> (EncodedHead, bool) {
    // RFC 9110 §6.4.1, §8.6: no content for HEAD, 1xx, 204, 304, and no length for the latter
    // three.
    let is_bodiless = is_bodiless(head.status);
    let length = match head.body {
        BodyLen::Exact(length) if !is_bodiless => Some(length),
        _ => None,
    };
    let body = match head.body {
        BodyLen::None | BodyLen::Exact(0) => H3Body::Done,
        _ if is_bodiless || is_head_request => H3Body::Done,
        BodyLen::Exact(length) => H3Body::Exact(length),
        BodyLen::Unknown => H3Body::Unknown,
    };
    // The length takes two bytes; a longer section moves by two more.
    let mut out = Vec::with_capacity(256);
    out.extend_from_slice(&[kind::HEADERS as u8, 0, 0]);
    let sent = sendable(&head.fields);
    let fields = || {
        let kept = |field: &bolide_http::fields::Field<'_>| !is_framing(field.name);
        sent.iter().filter(kept).map(|field| (field.name, field.text, field.value))
    };
    let done = encoder.encode(head.status, length, fields, &mut out);
    let len = out.len() - 3;
    if len < 0x4000 {
        out[1..3].copy_from_slice(&(len as u16 | 0x4000).to_be_bytes());
    } else {
        out.splice(1..3, (len as u32 | 0x8000_0000).to_be_bytes());
    }
    if let H3Body::Exact(length) = body {
        frame::encode_header(&mut out, kind::DATA, length);
    }
    let bytes = Bytes::from(out);
    (EncodedHead { bytes, body, references: done.references }, done.is_settled)
}

/// RFC 9114 §4.2: fields that HTTP/3 does not have, or that the encoder writes itself.
const fn is_framing(name: Name) -> bool {
    matches!(
        name,
        Name::Connection
            | Name::ContentLength
            | Name::KeepAlive
            | Name::ProxyConnection
            | Name::TransferEncoding
            | Name::Upgrade
    )
}

/// Queues the trailers of `stream` behind its body, if there are any.
#[cold]
pub(super) fn trail(stream: &mut H3Stream, encoder: &mut QpackEncoder, fields: &FieldMap) {
    stream.send.is_trailed = false;
    let fields = sendable(fields);
    let kept = fields.iter().filter(|field| !is_framing(field.name));
    let mut section = Vec::new();
    encoder.encode_plain(kept.map(|field| (field.name, field.text, field.value)), &mut section);
    if !fields.is_empty() {
        let mut out = Vec::with_capacity(section.len() + DATA_HEADER_MAX);
        frame::encode_header(&mut out, kind::HEADERS, section.len() as u64);
        out.append(&mut section);
        stream.send.head_bytes += out.len() as u64;
        stream.send.rest.push_back(Bytes::from(out));
    }
}

/// The result of a stream's turn to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum H3SendTurn {
    /// All bytes were handed to QUIC.
    Done,
    /// All bytes except the trailers were handed to QUIC.
    Trailers,
    /// QUIC accepts no more for now.
    Blocked,
    /// There is nothing to write for now.
    Pending,
    /// The room of this call is used up, or the quantum of the stream is.
    Spent,
    /// The QUIC stream is gone.
    Gone,
    /// The body cannot be completed.
    Broken,
}

/// Writes the pending bytes of `stream`, at most `room`.
pub(super) fn serve(
    stream: &mut H3Stream,
    room: &mut usize,
    scratch: &mut SendChain,
    bodies: &mut impl BodySource,
    quic: &mut impl QuicStreams,
) -> H3SendTurn {
    let mut quantum = if stream.priority.incremental { QUANTUM } else { usize::MAX };
    loop {
        if stream.send.is_paced
            && let Some(turn) = send_paced_head(stream, room, bodies, quic)
        {
            return turn;
        }
        if let Some(turn) = flush(stream, room, quic) {
            return turn;
        }
        let max = match stream.send.body {
            H3Body::Done if stream.send.is_trailed => return H3SendTurn::Trailers,
            H3Body::Done if stream.send.is_answered => return H3SendTurn::Done,
            H3Body::Done => return H3SendTurn::Pending,
            H3Body::Exact(left) => usize::try_from(left).unwrap_or(usize::MAX),
            H3Body::Unknown => usize::MAX,
        };
        if stream.send.is_pending {
            return H3SendTurn::Pending;
        }
        if *room == 0 || quantum == 0 {
            return H3SendTurn::Spent;
        }
        let takes = quic.room(stream.id);
        if takes == 0 {
            return H3SendTurn::Blocked;
        }
        let mut max = max.min(takes).min(*room).min(quantum);
        if stream.send.body == H3Body::Unknown {
            // Leaves room for the frame header; bytes that do not fit wait.
            max = max.saturating_sub(DATA_HEADER_MAX).max(1);
        }
        let pull = bodies.pull(stream.user, max, scratch);
        let pulled = scratch.len();
        let is_sound = account(stream, pull, pulled) && enqueue(stream, scratch, pulled, quic);
        scratch.clear();
        if !is_sound {
            return H3SendTurn::Broken;
        }
        let spent = usize::try_from(pulled).unwrap_or(usize::MAX);
        *room = room.saturating_sub(spent);
        quantum = quantum.saturating_sub(spent);
    }
}

/// Writes as much of the head as its pace allows. `None` means all of it.
#[cold]
fn send_paced_head(
    stream: &mut H3Stream,
    room: &mut usize,
    bodies: &mut impl BodySource,
    quic: &mut impl QuicStreams,
) -> Option<H3SendTurn> {
    let send = &mut stream.send;
    if send.head.is_empty() {
        return None;
    }
    let want = send.head.len().min(quic.room(stream.id));
    if want == 0 {
        return Some(H3SendTurn::Blocked);
    }
    let admitted = bodies.admit(stream.user, want);
    debug_assert!(admitted <= want, "no more is admitted than there is");
    if admitted > 0 {
        let mut part = send.head.slice(..admitted);
        match quic.write(stream.id, &mut part) {
            Ok(written) => *room = room.saturating_sub(written),
            Err(_) => return Some(H3SendTurn::Gone),
        }
        let written = admitted - part.len();
        drop(send.head.split_to(written));
        if !part.is_empty() {
            return Some(H3SendTurn::Blocked);
        }
    }
    send.is_held = admitted < want;
    match (send.head.is_empty(), send.is_held) {
        (true, _) => None,
        (false, true) => Some(H3SendTurn::Pending),
        (false, false) => Some(H3SendTurn::Blocked),
    }
}

/// Writes the bytes in front of the body. `None` means that all were written.
fn flush(
    stream: &mut H3Stream,
    room: &mut usize,
    quic: &mut impl QuicStreams,
) -> Option<H3SendTurn> {
    let send = &mut stream.send;
    while !send.head.is_empty() {
        match quic.write(stream.id, &mut send.head) {
            Ok(written) => *room = room.saturating_sub(written),
            Err(_) => return Some(H3SendTurn::Gone),
        }
        if !send.head.is_empty() {
            return Some(H3SendTurn::Blocked);
        }
    }
    while let Some(front) = send.rest.front_mut() {
        match quic.write(stream.id, front) {
            Ok(_) if front.is_empty() => drop(send.rest.pop_front()),
            Ok(_) => return Some(H3SendTurn::Blocked),
            Err(_) => return Some(H3SendTurn::Gone),
        }
    }
    None
}

/// Counts the pulled bytes. `false` means that the source broke its length or failed.
fn account(stream: &mut H3Stream, pull: Pull, pulled: u64) -> bool {
    let send = &mut stream.send;
    send.body_bytes += pulled;
    send.is_pending = pull == Pull::Pending || (pull == Pull::More && pulled == 0);
    match (send.body, pull) {
        (_, Pull::Broken) => return false,
        (H3Body::Exact(left), _) if pulled > left => return false,
        (H3Body::Exact(left), _) if pulled == left => send.body = H3Body::Done,
        (H3Body::Exact(_), Pull::End) => return false,
        (H3Body::Exact(left), _) => send.body = H3Body::Exact(left - pulled),
        (H3Body::Unknown, Pull::End) => send.body = H3Body::Done,
        (H3Body::Unknown | H3Body::Done, _) => {}
    }
    // INVARIANT: a complete body is never pending.
    send.is_pending &= send.body != H3Body::Done;
    debug_assert!(
        send.body != H3Body::Exact(0),
        "a body is done with the last byte of its declared length"
    );
    true
}

/// Hands the pulled segments to QUIC. `false` means a file segment, which QUIC cannot send.
fn enqueue(
    stream: &mut H3Stream,
    scratch: &SendChain,
    pulled: u64,
    quic: &mut impl QuicStreams,
) -> bool {
    let is_framed = stream.send.is_framed;
    let mut prefix = Vec::new();
    if is_framed && pulled > 0 {
        frame::encode_header(&mut prefix, kind::DATA, pulled);
    }
    for segment in scratch.segments() {
        let bytes = match segment {
            Segment::Inline(start, end) => {
                let inline = scratch.inline(*start, *end);
                if prefix.is_empty() {
                    Bytes::copy_from_slice(inline)
                } else {
                    prefix.extend_from_slice(inline);
                    Bytes::from(std::mem::take(&mut prefix))
                }
            }
            Segment::Bytes(bytes) => {
                if !prefix.is_empty() {
                    put(stream, Bytes::from(std::mem::take(&mut prefix)), quic);
                }
                bytes.clone()
            }
            Segment::File(_) => return false,
        };
        put(stream, bytes, quic);
    }
    true
}

/// Writes `bytes` behind the waiting ones; what QUIC does not accept waits, too.
fn put(stream: &mut H3Stream, mut bytes: Bytes, quic: &mut impl QuicStreams) {
    if stream.send.rest.is_empty() {
        // The next flush detects a stream that is gone.
        let _ = quic.write(stream.id, &mut bytes);
    }
    if !bytes.is_empty() {
        stream.send.rest.push_back(bytes);
    }
}

/// One of our unidirectional streams. It opens with its first bytes.
#[derive(Debug, Default)]
pub(super) struct Out {
    id: Option<u64>,
    is_typed: bool,
    pending: Vec<u8>,
    queue: Bytes,
    is_blocked: bool,
}

impl Out {
    /// The buffer of the bytes to send next. The stream's type goes before the first bytes.
    pub(super) fn pending(&mut self, kind: u64) -> &mut Vec<u8> {
        if !std::mem::replace(&mut self.is_typed, true) {
            frame::encode_varint(&mut self.pending, kind);
        }
        &mut self.pending
    }

    /// Whether a flush could write something.
    pub(super) fn has_output(&self) -> bool {
        !self.is_blocked && (!self.pending.is_empty() || !self.queue.is_empty())
    }

    /// Whether this is the stream `id`.
    pub(super) fn is(&self, id: u64) -> bool {
        self.id == Some(id)
    }

    /// QUIC accepts bytes again.
    pub(super) const fn unblock(&mut self) {
        self.is_blocked = false;
    }

    /// The peer may allow the stream that it did not before.
    pub(super) const fn open_again(&mut self) {
        if self.id.is_none() {
            self.is_blocked = false;
        }
    }

    /// Writes as much as QUIC accepts.
    pub(super) fn flush(&mut self, quic: &mut impl QuicStreams) {
        loop {
            if self.queue.is_empty() {
                if self.pending.is_empty() {
                    return;
                }
                self.queue = Bytes::copy_from_slice(&self.pending);
                self.pending.clear();
            }
            let Some(id) = self.id.or_else(|| quic.open_uni()) else {
                self.is_blocked = true;
                return;
            };
            self.id = Some(id);
            // `handle_stopped` reports a critical stream that is gone.
            if quic.write(id, &mut self.queue).is_err() {
                self.queue.clear();
            }
            if !self.queue.is_empty() {
                self.is_blocked = true;
                return;
            }
        }
    }
}
