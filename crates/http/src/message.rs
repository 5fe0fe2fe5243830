//! Request and response heads, free of any framing.

use crate::{FieldMap, Method, Name};

/// The protocol version of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HttpVersion {
    /// `GET /path` without a version; its response has no head.
    Http09,
    /// HTTP/1.0
    Http10,
    /// HTTP/1.1
    #[default]
    Http11,
    /// HTTP/2
    Http2,
    /// HTTP/3
    Http3,
}

impl HttpVersion {
    /// As logged by `$server_protocol`.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::Http09 => "HTTP/0.9",
            Self::Http10 => "HTTP/1.0",
            Self::Http11 => "HTTP/1.1",
            Self::Http2 => "HTTP/2.0",
            Self::Http3 => "HTTP/3.0",
        }
    }
}

/// The transport of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scheme {
    /// Without TLS.
    #[default]
    Http,
    /// Over TLS or QUIC.
    Https,
}

/// The body that follows a request head.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RequestBody {
    /// None.
    #[default]
    None,
    /// This many bytes.
    Length(u64),
    /// The body ends where its framing says.
    Unknown,
}

/// A request head after framing: checked against the grammar, not interpreted yet.
#[derive(Clone, Debug, Default)]
pub struct RequestHead {
    /// The method.
    pub method: Method,
    /// The method as spelled.
    pub method_text: Vec<u8>,
    /// The protocol version.
    pub version: HttpVersion,
    /// Origin form of the target as sent: raw path, `?`, raw query; `*` for `OPTIONS *`.
    pub target: Vec<u8>,
    /// Host and port as in `:authority`, absolute form or `Host`, in this order; empty if none.
    pub authority: Vec<u8>,
    /// Header fields, without pseudo-fields and framing fields. `Host` is kept (HTTP/1) or added.
    pub fields: FieldMap,
    /// The request line as logged by `$request`; for HTTP/2 and 3, as nginx composes it.
    pub line: Vec<u8>,
    /// The body that follows.
    pub body: RequestBody,
    /// Whether the client expects `100 Continue`, over HTTP/1.1; as in nginx, it is not sent over
    /// HTTP/2 and HTTP/3.
    pub expects_continue: bool,
    /// Bytes of the head on the wire, for `$request_length`.
    pub wire_size: u32,
    /// Whether the head arrived in 0-RTT data and may be a replay.
    pub early: bool,
    /// Whether it arrived before the response to the previous request, for `$pipe`.
    pub pipelined: bool,
    /// Whether the target came before the host, over HTTP/2.
    pub target_first: bool,
}

impl RequestHead {
    /// Empties the head and keeps its memory.
    pub fn clear(&mut self) {
        self.method = Method::Get;
        self.method_text.clear();
        self.version = HttpVersion::Http11;
        self.target.clear();
        self.authority.clear();
        self.fields.clear();
        self.line.clear();
        self.body = RequestBody::None;
        self.expects_continue = false;
        self.wire_size = 0;
        self.early = false;
        self.pipelined = false;
        self.target_first = false;
    }
}

impl RequestHead {
    /// Becomes a copy of `other` and keeps its own memory.
    pub fn copy_from(&mut self, other: &Self) {
        let Self { method, method_text, version, target, authority, fields, line, .. } = self;
        *method = other.method;
        copy_bytes(method_text, &other.method_text);
        *version = other.version;
        copy_bytes(target, &other.target);
        copy_bytes(authority, &other.authority);
        fields.copy_from(&other.fields);
        copy_bytes(line, &other.line);
        self.body = other.body;
        self.expects_continue = other.expects_continue;
        self.wire_size = other.wire_size;
        self.early = other.early;
        self.pipelined = other.pipelined;
        self.target_first = other.target_first;
    }
}

#[inline]
fn copy_bytes(to: &mut Vec<u8>, from: &[u8]) {
    to.clear();
    to.extend_from_slice(from);
}

/// The length of a response body; framing turns it into `Content-Length`, chunks or stream ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BodyLen {
    /// No body and no `Content-Length` (204, 304).
    #[default]
    None,
    /// Exactly this many bytes; for a response to `HEAD`, the length that `GET` would have.
    Exact(u64),
    /// Known only at its end. With status 101 on HTTP/1: a tunnel, whose bytes pass unframed.
    Unknown,
}

/// A response head. Framing adds length, coding and connection fields itself.
#[derive(Clone, Debug)]
pub struct ResponseHead {
    /// Status code.
    pub status: u16,
    /// Fields in the order of sending, without `Content-Length`, `Transfer-Encoding`, `Connection`.
    pub fields: FieldMap,
    /// The body.
    pub body: BodyLen,
    /// Whether the connection must close after this response (HTTP/1 only).
    pub close: bool,
    /// Whether the end of the body may bring trailer fields.
    pub trailed: bool,
    /// Whether chunks are forbidden, where HTTP/1.1 would use them (`chunked_transfer_encoding
    /// off`).
    pub unchunked: bool,
    /// Bytes of the body in one DATA frame at most (HTTP/2 only).
    pub chunk_size: u32,
}

impl Default for ResponseHead {
    fn default() -> Self {
        Self {
            status: 0,
            fields: FieldMap::default(),
            body: BodyLen::None,
            close: false,
            trailed: false,
            unchunked: false,
            chunk_size: CHUNK_SIZE,
        }
    }
}

/// Bytes of the body in one DATA frame by default: the largest frame that every client accepts (RFC
/// 9113 §4.2).
pub const CHUNK_SIZE: u32 = 16 << 10;

impl ResponseHead {
    /// Empties the head and keeps its memory.
    pub fn clear(&mut self) {
        self.status = 0;
        self.fields.clear();
        self.body = BodyLen::None;
        self.close = false;
        self.trailed = false;
        self.unchunked = false;
        self.chunk_size = CHUNK_SIZE;
    }

    /// Becomes a copy of `other` and keeps its own memory.
    pub fn copy_from(&mut self, other: &Self) {
        self.status = other.status;
        self.fields.copy_from(&other.fields);
        self.body = other.body;
        self.close = other.close;
        self.trailed = other.trailed;
        self.unchunked = other.unchunked;
        self.chunk_size = other.chunk_size;
    }
}

/// The head of an upstream response, without its framing, not interpreted yet.
#[derive(Clone, Debug, Default)]
pub struct OriginHead {
    /// Status code; 0 when the upstream sent none (CGI: a `Location` makes it 302, else it is 200).
    pub status: u16,
    /// The reason phrase, if the upstream sent one.
    pub reason: Vec<u8>,
    /// All fields in their order, `Status` excluded.
    pub fields: FieldMap,
    /// Bytes of the head on the wire.
    pub wire_size: u32,
}

impl OriginHead {
    /// The status that it means: a `Location` without a status is a redirect (RFC 3875 §6.2.3).
    #[must_use]
    pub fn status_or_implied(&self) -> u16 {
        match self.status {
            0 if self.fields.get(Name::Location).is_some() => 302,
            0 => 200,
            status => status,
        }
    }

    /// The length of the body that it states.
    #[must_use]
    pub fn length(&self) -> Option<u64> {
        std::str::from_utf8(self.fields.get(Name::ContentLength)?).ok()?.parse().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::OriginHead;
    use crate::Name;

    #[test]
    fn a_length_is_a_number_or_none() {
        let stated = |value: &[u8]| {
            let mut head = OriginHead::default();
            head.fields.push(Name::ContentLength, value);
            head.length()
        };
        assert_eq!(OriginHead::default().length(), None);
        assert_eq!((stated(b"0"), stated(b"512")), (Some(0), Some(512)));
        assert_eq!((stated(b""), stated(b"5 bytes"), stated(b"-1")), (None, None, None));
    }
}
