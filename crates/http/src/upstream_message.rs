//! A request to an upstream, in the form of its protocol.
//!
//! Owns params, heads and keys; `wire` owns their encoding, and refuses what a protocol cannot
//! carry.

use std::sync::Arc;

use crate::hop_by_hop::is_hop;
use crate::message::Scheme;
use crate::structured::is_token;
use crate::{Name, Params};

/// A request to an upstream, without its body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UpstreamMessage {
    /// The parameters of an application, for FastCGI and LSAPI.
    Cgi(Params),
    /// The head of an HTTP/1 request.
    Http(UpstreamHead),
    /// The head of an HTTP/2 request.
    Http2(Http2Head),
    /// The key of a memcached request.
    Memcached(MemcachedGet),
    /// The variables of an application that has a connection for each request: uwsgi and SCGI.
    App(AppMessage),
}

impl UpstreamMessage {
    /// The parameters, or the fields of the head, in order.
    pub fn pairs(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        let (params, behind) = match self {
            Self::Cgi(params) => (Some(params), 0),
            Self::Http(head) => (Some(&head.fields), LINE_ENTRIES),
            Self::Http2(asked) => (Some(&asked.head.fields), LINE_ENTRIES),
            Self::App(asked) => (Some(&asked.params), 0),
            Self::Memcached(_) => (None, 0),
        };
        params.into_iter().flat_map(Params::iter).skip(behind)
    }
}

impl From<Params> for UpstreamMessage {
    fn from(params: Params) -> Self {
        Self::Cgi(params)
    }
}

impl From<UpstreamHead> for UpstreamMessage {
    fn from(head: UpstreamHead) -> Self {
        Self::Http(head)
    }
}

impl From<Http2Head> for UpstreamMessage {
    fn from(asked: Http2Head) -> Self {
        Self::Http2(asked)
    }
}

impl From<MemcachedGet> for UpstreamMessage {
    fn from(get: MemcachedGet) -> Self {
        Self::Memcached(get)
    }
}

impl From<AppMessage> for UpstreamMessage {
    fn from(asked: AppMessage) -> Self {
        Self::App(asked)
    }
}

/// The HTTP version of a request to an upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UpstreamVersion {
    /// HTTP/1.0
    V10,
    /// HTTP/1.1
    V11,
    /// HTTP/2, whose heads have no line for it.
    V2,
}

impl UpstreamVersion {
    /// As in the request line.
    #[must_use]
    pub const fn text(self) -> &'static [u8] {
        match self {
            Self::V10 => b"HTTP/1.0",
            Self::V11 => b"HTTP/1.1",
            Self::V2 => b"HTTP/2.0",
        }
    }
}

/// Entries before the fields.
const LINE_ENTRIES: usize = 1;

/// The head of an HTTP/1 request to an upstream: a request line, and fields in order, with those of
/// the framing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpstreamHead {
    version: UpstreamVersion,
    /// The first entry is the method with the target, the others are the fields.
    fields: Params,
}

impl UpstreamHead {
    /// A head without fields. `method` and `target` append to their argument.
    #[must_use]
    pub fn new(
        version: UpstreamVersion,
        method: impl FnOnce(&mut Vec<u8>),
        target: impl FnOnce(&mut Vec<u8>),
    ) -> Self {
        let mut fields = Params::with_room();
        fields.push_writing(method, target);
        Self { version, fields }
    }

    /// The version.
    #[must_use]
    pub const fn version(&self) -> UpstreamVersion {
        self.version
    }

    fn line(&self) -> (&[u8], &[u8]) {
        self.fields.iter().next().unwrap_or_default()
    }

    /// The method.
    #[must_use]
    pub fn method(&self) -> &[u8] {
        self.line().0
    }

    /// The request target.
    #[must_use]
    pub fn target(&self) -> &[u8] {
        self.line().1
    }

    /// The fields in order.
    pub fn fields(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.fields.iter().skip(LINE_ENTRIES)
    }

    /// Whether HTTP/1 can carry the method and the target: a line end or a zero byte would begin
    /// another line.
    #[must_use]
    pub fn has_encodable_line(&self) -> bool {
        let (method, target) = self.line();
        !method.is_empty() && !target.is_empty() && !is_broken(method) && !is_broken(target)
    }

    /// The same for all of it.
    #[must_use]
    pub fn is_encodable(&self) -> bool {
        self.has_encodable_line()
            && !self.fields().any(|(name, value)| is_broken(name) || is_broken(value))
    }

    /// Appends a field.
    pub fn push(&mut self, name: &[u8], value: &[u8]) {
        self.fields.push(name, value);
    }

    /// Appends a field whose name and value are written in place; both may only append.
    pub fn push_writing(
        &mut self,
        name: impl FnOnce(&mut Vec<u8>),
        value: impl FnOnce(&mut Vec<u8>),
    ) {
        self.fields.push_writing(name, value);
    }

    /// How many fields there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.fields.len() - LINE_ENTRIES
    }

    /// Whether there are no fields.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of method, target, names and values.
    #[must_use]
    pub fn size(&self) -> usize {
        self.fields.size()
    }
}

/// The head of an HTTP/2 request to an upstream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Http2Head {
    /// `:scheme`
    pub scheme: Scheme,
    /// `:authority`; empty for none.
    pub authority: Vec<u8>,
    /// Method, target and fields.
    pub head: UpstreamHead,
}

impl Http2Head {
    /// The same request as over HTTP/1.1: names are in lower case, and fields that concern one
    /// connection are left out (RFC 9113 §8.2.2), as are those whose names are no tokens. An
    /// `authority` replaces `Host`.
    #[must_use]
    pub fn of(like: &UpstreamHead, scheme: Scheme, authority: &[u8]) -> Self {
        let (method, target) = like.line();
        let mut head = UpstreamHead::new(
            UpstreamVersion::V2,
            |out| out.extend_from_slice(method),
            |out| out.extend_from_slice(target),
        );
        for (text, value) in like.fields() {
            let is_kept = match Name::parse(text) {
                Name::Host => authority.is_empty(),
                Name::Te => value.eq_ignore_ascii_case(b"trailers"),
                name => !is_hop(name) && text.iter().all(|byte| is_token(*byte)),
            };
            if is_kept && !text.is_empty() {
                head.push(&text.to_ascii_lowercase(), value);
            }
        }
        Self { scheme, authority: authority.to_vec(), head }
    }

    /// Whether the upstream reads what is meant: names are tokens (a colon would make a
    /// pseudo-header field), and no text has a line end or a zero byte (RFC 9113 §8.2.1, §10.3).
    #[must_use]
    pub fn is_encodable(&self) -> bool {
        let is_name = |name: &[u8]| !name.is_empty() && name.iter().all(|b| is_token(*b));
        self.head.is_encodable()
            && !is_broken(&self.authority)
            && self.head.fields().all(|(name, _)| is_name(name))
    }
}

/// Whether a text has a line end or a zero byte.
fn is_broken(text: &[u8]) -> bool {
    memchr::memchr3(b'\r', b'\n', 0, text).is_some()
}

/// A `get` of memcached.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemcachedGet {
    /// The key, escaped: without spaces and control characters.
    pub key: Vec<u8>,
    /// The media type of the response; empty for none.
    pub kind: Vec<u8>,
    /// The bit that marks gzip values; 0 for none.
    pub gzip_flag: u32,
}

/// A request to an application over uwsgi or SCGI.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AppMessage {
    /// The form of its head.
    pub form: AppForm,
    /// The variables in order.
    pub params: Params,
}

/// The form of the head of an [`AppMessage`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AppForm {
    /// A uwsgi packet.
    Uwsgi {
        /// `modifier1` and `modifier2`.
        modifiers: [u8; 2],
        /// Bytes behind the variables, which count as such.
        text: Arc<[u8]>,
    },
    /// SCGI's netstring, which begins with the length of the body.
    Scgi,
}

impl AppForm {
    /// LIMIT: bytes of a uwsgi packet, whose length has two bytes.
    pub const PACKET_MAX: usize = 0xffff;

    /// Bytes of a uwsgi packet without its header.
    #[must_use]
    pub fn packet_size(params: &Params, text: &[u8]) -> usize {
        let lengths = 2 + 2;
        let pairs = params.iter().map(|(name, value)| lengths + name.len() + value.len());
        pairs.sum::<usize>() + text.len()
    }
}

#[cfg(test)]
mod tests {
    use super::{UpstreamHead, UpstreamMessage, UpstreamVersion};
    use crate::Params;

    #[test]
    fn a_head_has_its_line_before_its_fields() {
        let method = |out: &mut Vec<u8>| out.extend_from_slice(b"GET");
        let target = |out: &mut Vec<u8>| out.extend_from_slice(b"/a");
        let mut head = UpstreamHead::new(UpstreamVersion::V10, method, target);
        assert!(head.is_empty());
        head.push(b"A", b"1");
        assert_eq!((head.method(), head.target(), head.len()), (&b"GET"[..], &b"/a"[..], 1));
        assert_eq!(head.version().text(), b"HTTP/1.0");
        let fields = [(&b"A"[..], &b"1"[..])];
        assert!(head.fields().eq(fields));
        assert!(UpstreamMessage::Http(head).pairs().eq(fields));
        let mut params = Params::new();
        params.push(b"A", b"1");
        assert!(UpstreamMessage::Cgi(params).pairs().eq(fields));
    }
}
