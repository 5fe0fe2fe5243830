//! Encodes response heads and chooses the framing of the body (RFC 9112 §4, §6).
//!
//! The choice depends on the version and method of the request and on the status and length of the
//! response. Fields keep their order; the framing fields stand where nginx puts them.

use bolide_http::status::{is_bodiless, reason};
use bolide_http::{BodyLen, HttpVersion, Name, ResponseHead};

use super::grammar::push_decimal;
use super::head::After;
use crate::sendable::blank;

/// How a response body is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BodyFraming {
    /// No body.
    Empty,
    /// The number of bytes that are still to be sent.
    Exact(u64),
    /// `chunked`, for a body of unknown length.
    Chunked,
    /// Everything until the connection closes.
    UntilClose,
}

/// The framing field of the head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Delimiter {
    /// None.
    Nothing,
    /// `Content-Length`
    Length(u64),
    /// `Transfer-Encoding: chunked`
    Chunked,
}

/// The properties of a request that decide the framing of its response.
#[derive(Clone, Copy, Debug)]
pub(super) struct RequestFacts {
    pub(super) version: HttpVersion,
    pub(super) wants: Wants,
}

/// Whether the response may have a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wants {
    /// The method was `HEAD`.
    HeadOnly,
    /// Any other method.
    Body,
}

/// Chooses how the body is announced and sent, and whether its end closes the connection.
pub(super) const fn frame(
    asked: RequestFacts,
    head: &ResponseHead,
) -> (Delimiter, BodyFraming, After) {
    if is_bodiless(head.status) {
        // RFC 9110 §8.6, RFC 9112 §6.1: neither field in 1xx and 204. nginx sends none in 304,
        // either.
        return match (head.status, head.body) {
            (101, BodyLen::Unknown) => (Delimiter::Nothing, BodyFraming::UntilClose, After::Close),
            (101, _) => (Delimiter::Nothing, BodyFraming::Empty, After::Close),
            _ => (Delimiter::Nothing, BodyFraming::Empty, After::KeepAlive),
        };
    }
    let is_modern = matches!(asked.version, HttpVersion::Http11);
    if head.trailed && is_modern && !head.unchunked && matches!(asked.wants, Wants::Body) {
        // RFC 9112 §7.1.2: trailers need chunked framing.
        return (Delimiter::Chunked, BodyFraming::Chunked, After::KeepAlive);
    }
    match (head.body, asked.wants) {
        (BodyLen::Exact(len), Wants::HeadOnly) | (BodyLen::Exact(len @ 0), Wants::Body) => {
            (Delimiter::Length(len), BodyFraming::Empty, After::KeepAlive)
        }
        (BodyLen::None | BodyLen::Unknown, Wants::HeadOnly) => {
            (Delimiter::Nothing, BodyFraming::Empty, After::KeepAlive)
        }
        (BodyLen::Exact(len), Wants::Body) => {
            (Delimiter::Length(len), BodyFraming::Exact(len), After::KeepAlive)
        }
        // RFC 9112 §6.3: without a length the client reads until the connection closes.
        (BodyLen::None, Wants::Body) => (Delimiter::Nothing, BodyFraming::Empty, After::Close),
        (BodyLen::Unknown, Wants::Body) if is_modern && !head.unchunked => {
            (Delimiter::Chunked, BodyFraming::Chunked, After::KeepAlive)
        }
        (BodyLen::Unknown, Wants::Body) => {
            (Delimiter::Nothing, BodyFraming::UntilClose, After::Close)
        }
    }
}

/// Appends trailer fields (RFC 9112 §7.1.2), without those that frame messages.
pub(super) fn encode_trailers(out: &mut Vec<u8>, fields: &bolide_http::FieldMap) {
    for field in fields.iter().filter(|field| !is_framing(field.name)) {
        push_field(out, field.text, field.value);
    }
}

/// RFC 9110 §6.5.1: fields that a trailer section must not have.
const fn is_framing(name: Name) -> bool {
    matches!(name, Name::ContentLength | Name::TransferEncoding | Name::Connection)
}

/// Appends an interim response (1xx except 101): no framing fields, no connection options.
pub(super) fn encode_interim(out: &mut Vec<u8>, head: &ResponseHead) {
    push_status(out, head.status);
    for field in head.fields.iter() {
        push_field(out, field.text, field.value);
    }
    out.extend_from_slice(b"\r\n");
}

/// Appends the head of a final response.
pub(super) fn encode(out: &mut Vec<u8>, head: &ResponseHead, delimiter: Delimiter, after: After) {
    push_status(out, head.status);
    let (mut length, mut connection) = (Some(delimiter), Some(delimiter));
    let offers = head.status == 426 && head.fields.get(Name::Upgrade).is_some();
    for field in head.fields.iter() {
        match field.name {
            Name::Server | Name::Date | Name::ContentType => {}
            Name::LastModified | Name::Location => push_length(out, length.take()),
            Name::ContentLength | Name::TransferEncoding | Name::Connection => continue,
            _ => {
                push_length(out, length.take());
                push_connection(out, connection.take(), head.status, after, offers);
            }
        }
        push_field(out, field.text, field.value);
    }
    push_length(out, length);
    push_connection(out, connection, head.status, after, offers);
    out.extend_from_slice(b"\r\n");
}

fn push_status(out: &mut Vec<u8>, status: u16) {
    out.extend_from_slice(b"HTTP/1.1 ");
    push_decimal(out, u64::from(status));
    out.push(b' ');
    out.extend_from_slice(reason(status).as_bytes());
    out.extend_from_slice(b"\r\n");
}

#[inline]
fn push_length(out: &mut Vec<u8>, delimiter: Option<Delimiter>) {
    if let Some(Delimiter::Length(length)) = delimiter {
        out.extend_from_slice(b"Content-Length: ");
        push_decimal(out, length);
        out.extend_from_slice(b"\r\n");
    }
}

#[inline]
fn push_connection(
    out: &mut Vec<u8>,
    due: Option<Delimiter>,
    status: u16,
    after: After,
    offers_upgrade: bool,
) {
    let Some(delimiter) = due else { return };
    if delimiter == Delimiter::Chunked {
        out.extend_from_slice(b"Transfer-Encoding: chunked\r\n");
    }
    // RFC 9110 §7.8: a sender of `Upgrade` also sends the connection option.
    out.extend_from_slice(match after {
        _ if status == 101 => b"Connection: upgrade\r\n",
        After::KeepAlive if offers_upgrade => b"Connection: keep-alive, upgrade\r\n",
        After::KeepAlive => b"Connection: keep-alive\r\n",
        After::Close if offers_upgrade => b"Connection: close, upgrade\r\n",
        After::Close => b"Connection: close\r\n",
    });
}

#[inline]
fn push_field(out: &mut Vec<u8>, text: &[u8], value: &[u8]) {
    debug_assert!(
        memchr::memchr3(b'\r', b'\n', b':', text).is_none(),
        "a field name cannot end its line or itself"
    );
    out.extend_from_slice(text);
    out.extend_from_slice(b": ");
    if memchr::memchr3(b'\r', b'\n', 0, value).is_none() {
        out.extend_from_slice(value);
    } else {
        // RFC 9110 §5.5: these bytes would end the field line and allow response splitting.
        out.extend(value.iter().map(|byte| blank(*byte)));
    }
    out.extend_from_slice(b"\r\n");
}
