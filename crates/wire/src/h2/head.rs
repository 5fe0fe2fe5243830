//! Decoded fields in, a request head out, or why it is none (RFC 9113 §8.2, §8.3).
//!
//! Owns the rules for fields of requests and trailers. It never stops the decoder: the whole block
//! must be read, or the two ends' tables would differ, so the first flaw is kept.

use base::limits::FIELDS_MAX;
use http::{Method, Name, RequestBody, RequestHead, Version};

use super::Settings;
use crate::Refusal;
use crate::hpack::table::ENTRY_OVERHEAD;
use crate::hpack::{Sink, Token, Traits};
use crate::sched::Priority;

/// What became of a field block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// A request.
    Accepted,
    /// A request to be answered with an error.
    Refused(Refusal),
    /// RFC 9113 §8.1.1: a stream error.
    Malformed,
}

mod seen {
    pub(super) const METHOD: u8 = 1;
    pub(super) const SCHEME: u8 = 2;
    pub(super) const AUTHORITY: u8 = 4;
    pub(super) const PATH: u8 = 8;
    /// A regular field; no pseudo-field may follow.
    pub(super) const FIELD: u8 = 16;
    pub(super) const HOST: u8 = 32;
    pub(super) const COOKIE: u8 = 64;
}

const fn refused(status: u16, reason: &'static str) -> Refusal {
    Refusal { status, reason }
}

const INVALID_METHOD: Refusal = refused(400, "client sent invalid method");
const CONNECT_METHOD: Refusal = refused(405, "client sent CONNECT method");
const INVALID_PATH: Refusal = refused(400, "client sent invalid \":path\" header");
const INVALID_HOST: Refusal = refused(400, "client sent invalid host header");
const NO_HOST: Refusal = refused(400, "client sent neither \":authority\" nor \"Host\" header");
const TOO_LONG_URI: Refusal = refused(414, "client sent too long URI");
const TOO_LONG_FIELD: Refusal = refused(494, "client sent too long header line");
const TOO_LARGE: Refusal = refused(494, "client sent too large request");
const TOO_MANY: Refusal = refused(494, "client sent too many header lines");

/// A request head in the making.
#[derive(Debug)]
pub(super) struct Assembly<'a> {
    settings: &'a Settings,
    head: &'a mut RequestHead,
    seen: u8,
    fields: usize,
    size: usize,
    length: Option<u64>,
    priority: Priority,
    is_malformed: bool,
    refusal: Option<Refusal>,
}

/// What the connection has to know of a finished head.
#[derive(Clone, Copy, Debug)]
pub(super) struct Finished {
    pub(super) verdict: Verdict,
    pub(super) priority: Option<Priority>,
}

impl<'a> Assembly<'a> {
    /// Starts a head; `head` must be empty.
    pub(super) fn new(settings: &'a Settings, head: &'a mut RequestHead) -> Self {
        head.version = Version::Http2;
        Self {
            settings,
            head,
            seen: 0,
            fields: 0,
            size: 0,
            length: None,
            priority: Priority::default(),
            is_malformed: false,
            refusal: None,
        }
    }

    /// Checks what must be there and composes what nginx composes.
    pub(super) fn finish(mut self, ends_stream: bool) -> Finished {
        self.settle_cookies();
        self.begin_fields();
        self.compose_line();
        self.settle_body(ends_stream);
        let verdict = match self.check() {
            _ if self.is_malformed => Verdict::Malformed,
            Err(()) => Verdict::Malformed,
            Ok(refusal) => match self.refusal.or(refusal) {
                Some(refusal) => Verdict::Refused(refusal),
                None => Verdict::Accepted,
            },
        };
        let has_priority = self.priority != Priority::default();
        Finished { verdict, priority: has_priority.then_some(self.priority) }
    }

    fn refuse(&mut self, refusal: Refusal) {
        self.refusal.get_or_insert(refusal);
    }

    fn pseudo(&mut self, token: Token, traits: Traits, value: &[u8]) {
        let bit = match token {
            Token::Method => seen::METHOD,
            Token::Scheme => seen::SCHEME,
            Token::Authority => seen::AUTHORITY,
            Token::Path => seen::PATH,
            // RFC 9113 §8.3: undefined and response pseudo-fields make a request malformed.
            Token::Status | Token::Field(_) => 0,
        };
        // RFC 9113 §8.3: each MUST come once and before all regular fields.
        let misplaced = bit == 0 || self.seen & (bit | seen::FIELD) != 0;
        if misplaced || traits.has(Traits::BAD_VALUE) {
            self.is_malformed = true;
            return;
        }
        self.seen |= bit;
        match token {
            Token::Method => {
                self.head.method = Method::parse(value);
                self.head.method_text.extend_from_slice(value);
            }
            Token::Authority => self.head.authority.extend_from_slice(value),
            Token::Path => self.head.target.extend_from_slice(value),
            _ => self.is_malformed |= value.is_empty(),
        }
    }

    /// The first regular field follows `Host`, as in HTTP/1.
    #[inline]
    fn begin_fields(&mut self) {
        if self.seen & seen::FIELD == 0 {
            self.seen |= seen::FIELD;
            if !self.head.authority.is_empty() {
                self.head.fields.push(Name::Host, &self.head.authority);
            }
        }
    }

    fn regular(&mut self, name: Name, traits: Traits, text: &[u8], value: &[u8]) {
        match name {
            // RFC 9113 §8.2.2: connection-specific fields make a request malformed.
            Name::Connection
            | Name::KeepAlive
            | Name::ProxyConnection
            | Name::TransferEncoding
            | Name::Upgrade => {
                self.is_malformed = true;
                return;
            }
            Name::Te => self.is_malformed |= !value.eq_ignore_ascii_case(b"trailers"),
            Name::ContentLength => return self.content_length(value),
            Name::Host => return self.host(value),
            Name::Cookie => return self.cookie(value),
            Name::Expect => {
                self.head.expects_continue = value.eq_ignore_ascii_case(b"100-continue");
            }
            Name::Priority => self.priority = Priority::parse(value),
            _ => {}
        }
        let is_odd = traits.has(Traits::ODD_NAME)
            || (traits.has(Traits::UNDERSCORE) && !self.settings.underscores_in_headers);
        if is_odd && self.settings.ignore_invalid_headers {
            return;
        }
        self.head.fields.push_parsed(name, text, value);
    }

    fn content_length(&mut self, value: &[u8]) {
        match parse_length(value) {
            Some(length) if self.length.is_none_or(|known| known == length) => {
                self.length = Some(length);
            }
            _ => self.is_malformed = true,
        }
    }

    fn host(&mut self, value: &[u8]) {
        if self.seen & seen::HOST != 0 {
            self.is_malformed = true;
        } else if self.head.authority.is_empty() {
            self.head.authority.extend_from_slice(value);
            self.head.fields.push(Name::Host, value);
        } else if !self.head.authority.eq_ignore_ascii_case(value) {
            // RFC 9113 §8.3.1: a Host that differs from :authority is to be treated as malformed.
            self.is_malformed = true;
        }
        self.seen |= seen::HOST;
    }

    /// RFC 9113 §8.2.3: crumbs are joined. They gather where the request line will stand later.
    fn cookie(&mut self, value: &[u8]) {
        if self.seen & seen::COOKIE != 0 {
            self.head.line.extend_from_slice(b"; ");
        }
        self.seen |= seen::COOKIE;
        self.head.line.extend_from_slice(value);
    }

    fn settle_cookies(&mut self) {
        if self.seen & seen::COOKIE != 0 {
            self.head.fields.push(Name::Cookie, &self.head.line);
            self.head.line.clear();
        }
    }

    fn compose_line(&mut self) {
        let RequestHead { line, method_text, target, .. } = &mut *self.head;
        line.reserve(method_text.len() + target.len() + 10);
        line.extend_from_slice(method_text);
        line.push(b' ');
        line.extend_from_slice(target);
        line.extend_from_slice(b" HTTP/2.0");
    }

    fn settle_body(&mut self, ends_stream: bool) {
        self.head.body = match self.length {
            // RFC 9113 §8.1.1: content-length MUST be the sum of the DATA that follows.
            Some(1..) if ends_stream => {
                self.is_malformed = true;
                RequestBody::None
            }
            _ if ends_stream => RequestBody::None,
            Some(length) => RequestBody::Length(length),
            None => RequestBody::Unknown,
        };
        self.head.expects_continue &= self.head.body != RequestBody::None;
    }

    /// The rules of RFC 9113 §8.3.1; an error is malformed.
    fn check(&self) -> Result<Option<Refusal>, ()> {
        if self.head.method_text.is_empty() {
            return Err(());
        }
        let is_method_byte = |byte: &u8| matches!(byte, b'A'..=b'Z' | b'_' | b'-');
        if !self.head.method_text.iter().all(is_method_byte) {
            return Ok(Some(INVALID_METHOD));
        }
        if self.head.method == Method::Connect {
            return Ok(Some(CONNECT_METHOD));
        }
        if self.seen & seen::SCHEME == 0 {
            return Err(());
        }
        let is_blank = |byte: &u8| *byte <= b' ' || *byte == 0x7f;
        match (&self.head.target[..], self.head.method) {
            ([b'/', rest @ ..], _) if rest.iter().any(is_blank) => return Ok(Some(INVALID_PATH)),
            ([b'/', ..], _) | (b"*", Method::Options) => {}
            // A target that was not kept because it is too long is refused for that.
            ([], _) if self.seen & seen::PATH != 0 && self.refusal.is_some() => {}
            _ => return Err(()),
        }
        Ok(match &self.head.authority[..] {
            [] => Some(NO_HOST),
            host if !is_host(host) => Some(INVALID_HOST),
            _ => None,
        })
    }
}

impl Sink for Assembly<'_> {
    #[inline]
    fn field(&mut self, token: Token, traits: Traits, name: &[u8], value: &[u8]) {
        let len = name.len() + value.len();
        self.size += len + ENTRY_OVERHEAD;
        self.fields += 1;
        if len > self.settings.field_size_max {
            if token == Token::Path {
                self.seen |= seen::PATH;
                return self.refuse(TOO_LONG_URI);
            }
            return self.refuse(TOO_LONG_FIELD);
        }
        if self.size > self.settings.head_size_max {
            return self.refuse(TOO_LARGE);
        }
        if self.fields > FIELDS_MAX {
            return self.refuse(TOO_MANY);
        }
        match token {
            Token::Field(known) if !traits.has(Traits::BAD_NAME) => {
                self.begin_fields();
                self.is_malformed |= traits.has(Traits::BAD_VALUE);
                self.regular(known, traits, name, value);
            }
            pseudo_or_bad => self.pseudo(pseudo_or_bad, traits, value),
        }
    }
}

/// Reads a block whose fields nobody wants.
pub(super) struct Swallow;

impl Sink for Swallow {
    fn field(&mut self, _: Token, _: Traits, _: &[u8], _: &[u8]) {}
}

/// Reads trailers, which are dropped if they are well-formed.
#[derive(Default)]
pub(super) struct Trailers {
    /// RFC 9113 §8.1: pseudo-fields in trailers, and what is wrong anywhere.
    pub(super) are_malformed: bool,
}

impl Sink for Trailers {
    fn field(&mut self, token: Token, traits: Traits, _: &[u8], _: &[u8]) {
        let is_bad = traits.has(Traits::BAD_NAME) || traits.has(Traits::BAD_VALUE);
        let is_wrong = match token {
            Token::Field(
                Name::Connection
                | Name::KeepAlive
                | Name::ProxyConnection
                | Name::TransferEncoding
                | Name::Upgrade,
            ) => true,
            Token::Field(_) => false,
            _ => true,
        };
        self.are_malformed |= is_bad || is_wrong;
    }
}

/// What cannot stand in a host with or without a port; RFC 9113 §8.3.1 forbids user names.
fn is_host(value: &[u8]) -> bool {
    let is_wrong =
        |byte: &u8| matches!(byte, 0..=b' ' | 0x7f | b'/' | b'@' | b'?' | b'#' | b'\\' | b',');
    !value.iter().any(is_wrong)
}

fn parse_length(value: &[u8]) -> Option<u64> {
    // LIMIT: 18 digits cannot overflow and are more than anybody sends.
    if value.is_empty() || value.len() > 18 {
        return None;
    }
    value.iter().try_fold(0_u64, |sum, byte| {
        byte.is_ascii_digit().then(|| sum * 10 + u64::from(byte - b'0'))
    })
}
