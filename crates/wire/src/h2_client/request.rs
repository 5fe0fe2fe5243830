//! Encodes the preface and the head of a request (RFC 9113 §3.4, §8.3.1).
//!
//! The caller chooses the fields; the encoder leaves out those that are specific to a connection.

use bolide_http::{Http2Head, Name, Scheme};

use crate::h1::grammar::parse_decimal;
use crate::h2::frame::{
    FrameHeader, FrameKind, PREFACE, WINDOW_INITIAL, WINDOW_MAX, flag, push_settings, push_u32,
    setting,
};
use crate::hpack::HpackEncoder;

/// What a connection begins with: no pushes, and windows as large as can be.
pub(super) fn push_preface(out: &mut Vec<u8>) {
    out.extend_from_slice(PREFACE);
    push_settings(out, &[(setting::ENABLE_PUSH, 0), (setting::INITIAL_WINDOW_SIZE, WINDOW_MAX)]);
    push_u32(out, FrameKind::WindowUpdate, 0, WINDOW_MAX - WINDOW_INITIAL);
}

/// An encoder that leaves the dynamic table alone: a connection carries the requests of several
/// clients, and the lengths of one would tell what another has sent (RFC 7541 §7.1.2).
pub(super) fn encoder() -> HpackEncoder {
    let mut encoder = HpackEncoder::new();
    encoder.limit_table(0);
    encoder
}

/// Appends the head as HEADERS and, where it is larger than a frame, CONTINUATION.
pub(super) fn push_head(
    out: &mut Vec<u8>,
    encoder: &mut HpackEncoder,
    asked: &Http2Head,
    (stream, ends): (u32, bool),
    frame_size: u32,
) {
    debug_assert!(stream % 2 == 1, "RFC 9113 §5.1.1: the streams of clients are odd");
    let block = encode(encoder, asked);
    let mut kind = FrameKind::Headers;
    let mut rest = &block[..];
    loop {
        let (piece, behind) = rest.split_at(rest.len().min(frame_size as usize));
        let is_first = kind == FrameKind::Headers;
        let mut flags = if ends && is_first { flag::END_STREAM } else { 0 };
        if behind.is_empty() {
            flags |= flag::END_HEADERS;
        }
        let header = FrameHeader { len: piece.len() as u32, kind, flags, stream };
        out.extend_from_slice(&header.bytes());
        out.extend_from_slice(piece);
        if behind.is_empty() {
            return;
        }
        (kind, rest) = (FrameKind::Continuation, behind);
    }
}

fn encode(encoder: &mut HpackEncoder, asked: &Http2Head) -> Vec<u8> {
    let mut block = Vec::with_capacity(asked.head.size());
    encoder.begin(&mut block);
    encoder.request(
        asked.head.method(),
        match asked.scheme {
            Scheme::Http => b"http",
            Scheme::Https => b"https",
        },
        asked.head.target(),
        &asked.authority,
        &mut block,
    );
    for (text, value) in asked.head.fields() {
        let name = Name::parse(text);
        match (name, parse_decimal(value)) {
            (Name::ContentLength, Some(length)) => encoder.content_length(length, &mut block),
            // RFC 9113 §8.2.2: of its codings only `trailers`, which is what the caller passes.
            _ => encoder.field(name, text, value.trim_ascii(), &mut block),
        }
    }
    block
}
