//! Assembles the field lines of one HTTP/2 or HTTP/3 section to a [`RequestHead`], or rejects it.
//!
//! Owns every rule that the two protocols share: pseudo-header fields, names, values, `Host`,
//! cookies, limits. It knows no compression and no frame. A decoder never stops in the middle of a
//! section, because that would corrupt its dynamic table: the first flaw is kept and the rest is
//! read.

use bolide_http::{HttpVersion, Method, Name, RequestBody, RequestHead, host};

use crate::h1::grammar::parse_decimal;
use crate::{Traits, WireRefusal, single_fields};

/// Bytes that RFC 9113 §10.5.1 and RFC 9114 §4.2.2 add for each field of a section.
pub const FIELD_OVERHEAD: usize = 32;

/// The name of a field line, as far as a decoder knows it without parsing the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Label<'a> {
    /// `:method`
    Method,
    /// `:scheme`
    Scheme,
    /// `:authority`
    Authority,
    /// `:path`
    Path,
    /// Any other name that starts with a colon, `:status` included.
    WrongPseudo,
    /// A name from a static table, or one that [`Label::parse`] recognised and checked.
    Known(Name),
    /// Any other name as received, unchecked.
    Text(&'a [u8]),
}

impl<'a> Label<'a> {
    /// Parses a name. A known name in upper case stays [`Label::Text`] and fails later.
    #[must_use]
    pub fn parse(text: &'a [u8]) -> Self {
        match text {
            [b':', rest @ ..] => match rest {
                b"method" => Self::Method,
                b"scheme" => Self::Scheme,
                b"authority" => Self::Authority,
                b"path" => Self::Path,
                _ => Self::WrongPseudo,
            },
            _ => match Name::parse(text) {
                Name::Other => Self::Text(text),
                _ if text.iter().any(u8::is_ascii_uppercase) => Self::Text(text),
                known => Self::Known(known),
            },
        }
    }

    /// The length of the name in bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::Method | Self::Scheme => 7,
            Self::Authority => 10,
            Self::Path => 5,
            Self::WrongPseudo => 1,
            Self::Known(name) => name.text().len(),
            Self::Text(text) => text.len(),
        }
    }

    /// Whether the name is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The traits of this name and of `value`.
    #[must_use]
    #[inline]
    pub fn traits(&self, value: &[u8]) -> Traits {
        let of_value = Traits::of_value(value);
        match self {
            Self::Text(text) => Traits::of_name(text).and(of_value),
            _ => of_value,
        }
    }
}

/// The limits of a connection on request heads.
#[derive(Clone, Copy, Debug)]
pub struct PseudoRules {
    /// [`HttpVersion::Http2`] or [`HttpVersion::Http3`].
    pub version: HttpVersion,
    /// LIMIT: bytes of names, values and [`FIELD_OVERHEAD`] per field.
    pub head_size_max: usize,
    /// LIMIT: `max_headers`: field lines. Pseudo-fields, cookies and dropped fields do not count.
    pub fields_max: u32,
    /// `underscores_in_headers`: names with `_` are valid.
    pub underscores_in_headers: bool,
    /// `ignore_invalid_headers`: fields with unusual but harmless names are dropped.
    pub ignore_invalid_headers: bool,
}

/// Why a section is not a valid request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flaw {
    /// A stream error (RFC 9113 §8.1.1, RFC 9114 §4.1.2): `PROTOCOL_ERROR`, `H3_MESSAGE_ERROR`.
    /// As in nginx, a response with status 400 comes first; the text is for the error log.
    Malformed(&'static str),
    /// A request that gets an error response.
    Refused(WireRefusal),
}

impl Flaw {
    /// The status of the response and the text for the error log.
    pub(crate) const fn refusal(self) -> WireRefusal {
        match self {
            Self::Malformed(reason) => WireRefusal { status: 400, reason },
            Self::Refused(refusal) => refusal,
        }
    }
}

/// Whether content can follow a section on its stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Following {
    /// The stream ended with the section.
    Nothing,
    /// The stream goes on.
    Perhaps,
}

const SEEN_METHOD: u8 = 1;
const SEEN_SCHEME: u8 = 2;
const SEEN_AUTHORITY: u8 = 4;
const SEEN_PATH: u8 = 8;
/// A regular field came: no pseudo-header field may follow.
const SEEN_FIELD: u8 = 16;
const SEEN_HOST: u8 = 32;
const SEEN_COOKIE: u8 = 64;

/// A request head under construction.
#[derive(Debug)]
pub struct PseudoAssembly<'a> {
    rules: &'a PseudoRules,
    head: &'a mut RequestHead,
    seen: u8,
    /// The [`single_fields`] that came.
    singles: u16,
    fields: u32,
    size: usize,
    length: Option<u64>,
    flaw: Option<Flaw>,
}

impl<'a> PseudoAssembly<'a> {
    /// Starts a head, which must be empty.
    pub fn new(rules: &'a PseudoRules, head: &'a mut RequestHead) -> Self {
        debug_assert!(
            head.fields.is_empty() && head.line.is_empty() && head.method_text.is_empty(),
            "a request head begins empty"
        );
        head.version = rules.version;
        Self { rules, head, seen: 0, singles: 0, fields: 0, size: 0, length: None, flaw: None }
    }

    /// Adds the next field line.
    #[inline]
    pub fn field(&mut self, label: Label<'_>, value: &[u8]) {
        self.checked(label, label.len() + value.len(), label.traits(value), value);
    }

    /// As [`Self::field`], for a line whose length (name and value) and traits are known.
    #[inline]
    pub fn checked(&mut self, label: Label<'_>, len: usize, traits: Traits, value: &[u8]) {
        self.size += len + FIELD_OVERHEAD;
        if traits.has(Traits::LONG) || self.size > self.rules.head_size_max {
            return self.record_excess(label, traits);
        }
        if traits.has(Traits::BAD_VALUE) {
            return self.note(Flaw::Malformed("client sent header with invalid value"));
        }
        match label {
            Label::Known(name) => self.known(name, value),
            Label::Text(text) => self.other(text, traits, value),
            pseudo => self.pseudo(pseudo, value),
        }
    }

    #[cold]
    fn record_excess(&mut self, label: Label<'_>, traits: Traits) {
        self.note(if traits.has(Traits::LONG) {
            if label == Label::Path { TOO_LONG_URI } else { TOO_LONG_FIELD }
        } else {
            TOO_LARGE
        });
    }

    /// Keeps the first flaw, as nginx stops there.
    #[cold]
    fn note(&mut self, flaw: Flaw) {
        self.flaw.get_or_insert(flaw);
    }

    /// Completes the head: composes `line`, `Host`, `Cookie` and `body`, and checks the required
    /// fields.
    ///
    /// # Errors
    ///
    /// The first flaw of the section. The head then holds its usable part, and no body.
    pub fn finish(mut self, following: Following) -> Result<(), Flaw> {
        self.begin_fields();
        self.settle_cookies();
        self.compose_line();
        self.head.body = match (self.length, following) {
            (_, Following::Nothing) => RequestBody::None,
            (Some(length), Following::Perhaps) => RequestBody::Length(length),
            (None, Following::Perhaps) => RequestBody::Unknown,
        };
        let checked = self.flaw.map_or_else(|| self.check(), Err);
        // RFC 9113 §8.1.1, RFC 9114 §4.1.2: content-length must equal the sum of the DATA frames.
        let checked = match (checked, self.length, following) {
            (Ok(()), Some(1..), Following::Nothing) => Err(Flaw::Malformed(CLOSED_EARLY)),
            (checked, ..) => checked,
        };
        if checked.is_err() {
            self.head.body = RequestBody::None;
        }
        // RFC 9110 §10.1.1: a request whose content is to follow.
        if self.head.body != RequestBody::None {
            let mut expected = self.head.fields.all(Name::Expect);
            self.head.expects_continue =
                expected.any(|value| value.eq_ignore_ascii_case(b"100-continue"));
        }
        checked
    }

    fn pseudo(&mut self, label: Label<'_>, value: &[u8]) {
        let bit = match label {
            Label::Method => SEEN_METHOD,
            Label::Scheme => SEEN_SCHEME,
            Label::Authority => SEEN_AUTHORITY,
            Label::Path => SEEN_PATH,
            // RFC 9113 §8.3, RFC 9114 §4.3: undefined and response pseudo-header fields.
            _ => return self.note(Flaw::Malformed("client sent unknown pseudo-header")),
        };
        if self.seen & SEEN_FIELD != 0 {
            // RFC 9113 §8.3, RFC 9114 §4.3. nginx minds the order over HTTP/3 only.
            return self.note(Flaw::Malformed("client sent out of order pseudo-headers"));
        }
        if self.seen & bit != 0 {
            return self.note(Flaw::Malformed(match label {
                Label::Method => "client sent duplicate \":method\" header",
                Label::Scheme => "client sent duplicate \":scheme\" header",
                Label::Authority => "client sent duplicate host header",
                _ => "client sent duplicate \":path\" header",
            }));
        }
        self.seen |= bit;
        match label {
            Label::Method => {
                self.head.method = Method::parse(value);
                self.head.method_text.extend_from_slice(value);
                if value.is_empty() {
                    self.note(Flaw::Malformed("client sent empty \":method\" header"));
                } else if !value.iter().all(|byte| matches!(byte, b'A'..=b'Z' | b'_' | b'-')) {
                    self.note(refused(400, "client sent invalid method"));
                }
            }
            Label::Scheme if !is_scheme(value) => {
                self.note(Flaw::Malformed("client sent invalid \":scheme\" header"));
            }
            Label::Authority => self.authority(value),
            Label::Path => self.path(value),
            _ => {}
        }
    }

    /// RFC 9113 §8.3.1, RFC 9114 §4.3.1: the path is in origin form. As in nginx, the asterisk of
    /// OPTIONS is none.
    #[inline]
    fn path(&mut self, value: &[u8]) {
        if value.first() != Some(&b'/') {
            self.note(Flaw::Malformed(if value.is_empty() {
                "client sent empty \":path\" header"
            } else {
                "client sent invalid \":path\" header"
            }));
            return;
        }
        self.head.target_first = self.seen & SEEN_AUTHORITY == 0;
        self.head.target.extend_from_slice(value);
        if value.iter().any(|&byte| byte <= b' ' || byte == 0x7f) {
            self.note(refused(400, "client sent invalid \":path\" header"));
        }
    }

    fn authority(&mut self, value: &[u8]) {
        if host::is_valid(value) {
            self.head.authority.extend_from_slice(value);
        } else {
            self.note(refused(400, "client sent invalid host header"));
        }
    }

    #[inline]
    fn known(&mut self, name: Name, value: &[u8]) {
        self.begin_fields();
        if name == Name::Cookie {
            return self.cookie(value);
        }
        self.count();
        match name {
            // RFC 9113 §8.2.2, RFC 9114 §4.2: connection-specific fields.
            Name::Connection
            | Name::KeepAlive
            | Name::ProxyConnection
            | Name::TransferEncoding
            | Name::Upgrade => {
                return self.note(Flaw::Malformed("client sent connection-specific header"));
            }
            Name::Te if !value.eq_ignore_ascii_case(b"trailers") => {
                return self.note(Flaw::Malformed("client sent \"TE\" header other than trailers"));
            }
            Name::ContentLength => return self.content_length(value),
            Name::Host => return self.host(value),
            _ => {}
        }
        let mark = single_fields::mark(name);
        if self.singles & mark != 0 {
            return self.note(refused(400, single_fields::REPEATED));
        }
        self.singles |= mark;
        self.head.fields.push(name, value);
    }

    fn other(&mut self, text: &[u8], traits: Traits, value: &[u8]) {
        self.begin_fields();
        if traits.has(Traits::BAD_NAME) {
            return self.note(Flaw::Malformed("client sent invalid header name"));
        }
        let is_odd = traits.has(Traits::ODD_NAME)
            || (traits.has(Traits::UNDERSCORE) && !self.rules.underscores_in_headers);
        if !(is_odd && self.rules.ignore_invalid_headers) {
            self.count();
            self.head.fields.push_parsed(Name::Other, text, value);
        }
    }

    /// Counts a line that `max_headers` counts.
    #[inline]
    fn count(&mut self) {
        self.fields += 1;
        if self.fields > self.rules.fields_max {
            self.note(TOO_MANY);
        }
    }

    /// RFC 9113 §8.2.3, RFC 9114 §4.2.1: cookie crumbs are joined to one field. They gather in the
    /// buffer that holds the request line later.
    fn cookie(&mut self, value: &[u8]) {
        if self.seen & SEEN_COOKIE != 0 {
            self.head.line.extend_from_slice(b"; ");
        }
        self.seen |= SEEN_COOKIE;
        self.head.line.extend_from_slice(value);
    }

    fn settle_cookies(&mut self) {
        if self.seen & SEEN_COOKIE != 0 {
            self.head.fields.push(Name::Cookie, &self.head.line);
            self.head.line.clear();
        }
    }

    /// `Host` comes first, as HTTP/1 clients send it.
    #[inline]
    fn begin_fields(&mut self) {
        if self.seen & SEEN_FIELD == 0 {
            self.seen |= SEEN_FIELD;
            if !self.head.authority.is_empty() {
                self.head.fields.push(Name::Host, &self.head.authority);
            }
        }
    }

    fn content_length(&mut self, value: &[u8]) {
        match parse_decimal(value) {
            Some(length) if self.length.is_none() => {
                self.length = Some(length);
                // As over HTTP/1: a declared length of zero is passed on.
                self.head.fields.push(Name::ContentLength, value);
            }
            Some(_) => self.note(Flaw::Malformed(single_fields::REPEATED)),
            None => {
                self.note(Flaw::Malformed("client sent invalid \"Content-Length\" header"));
            }
        }
    }

    fn host(&mut self, value: &[u8]) {
        if self.seen & SEEN_HOST != 0 {
            return self.note(Flaw::Malformed("client sent duplicate host header"));
        }
        self.seen |= SEEN_HOST;
        if self.head.authority.is_empty() {
            self.authority(value);
            if !self.head.authority.is_empty() {
                self.head.fields.push(Name::Host, value);
            }
        } else if self.head.authority != value {
            // RFC 9113 §8.3.1, RFC 9114 §4.3.1: the two must be equal.
            self.note(Flaw::Malformed(
                "client sent \":authority\" and \"Host\" headers with different values",
            ));
        }
    }

    /// RFC 9113 §8.3.1, RFC 9114 §4.3.1: checks the fields that a request must have.
    fn check(&self) -> Result<(), Flaw> {
        if self.seen & SEEN_METHOD == 0 {
            return Err(Flaw::Malformed("client sent no \":method\" header"));
        }
        if self.head.method == Method::Connect {
            return Err(refused(405, "client sent CONNECT method"));
        }
        if self.seen & SEEN_SCHEME == 0 {
            return Err(Flaw::Malformed("client sent no \":scheme\" header"));
        }
        if self.seen & SEEN_PATH == 0 {
            return Err(Flaw::Malformed("client sent no \":path\" header"));
        }
        if self.seen & (SEEN_AUTHORITY | SEEN_HOST) == 0 {
            // RFC 9113 §8.3.1, RFC 9114 §4.3.1: http and https require one of the two.
            let reason = "client sent neither \":authority\" nor \"Host\" header";
            return Err(Flaw::Malformed(reason));
        }
        Ok(())
    }

    fn compose_line(&mut self) {
        let RequestHead { line, method_text, target, .. } = &mut *self.head;
        line.reserve(method_text.len() + target.len() + 10);
        line.extend_from_slice(method_text);
        line.push(b' ');
        line.extend_from_slice(target);
        line.push(b' ');
        line.extend_from_slice(self.rules.version.text().as_bytes());
    }
}

/// Checks a field line of a trailer section.
///
/// # Errors
///
/// The reason why the message is malformed (RFC 9113 §8.1, RFC 9114 §4.3: no pseudo-header fields).
pub fn check_trailer(label: Label<'_>, traits: Traits) -> Result<(), &'static str> {
    if traits.has(Traits::BAD_NAME) || traits.has(Traits::BAD_VALUE) {
        return Err("invalid trailer field");
    }
    match label {
        Label::Known(
            Name::Connection
            | Name::KeepAlive
            | Name::ProxyConnection
            | Name::TransferEncoding
            | Name::Upgrade,
        ) => Err("connection-specific field in trailers"),
        Label::Known(_) | Label::Text(_) => Ok(()),
        _ => Err("pseudo-field in trailers"),
    }
}

const fn refused(status: u16, reason: &'static str) -> Flaw {
    Flaw::Refused(WireRefusal { status, reason })
}

/// The refusal of a section that exceeds the limit; the bounds of the decoders use it, too.
pub const TOO_LARGE_REFUSAL: WireRefusal =
    WireRefusal { status: 494, reason: "client sent too large request" };
const TOO_LARGE: Flaw = Flaw::Refused(TOO_LARGE_REFUSAL);
const TOO_LONG_FIELD: Flaw = refused(494, "client sent too long header line");
const TOO_MANY: Flaw = refused(494, "client sent too many header lines");
/// The request ends before its declared length.
pub(crate) const CLOSED_EARLY: &str = "client prematurely closed stream";
/// The request goes on behind its declared length.
pub(crate) const LARGER_THAN_DECLARED: &str =
    "client intended to send body data larger than declared";
const TOO_LONG_URI: Flaw = refused(414, "client sent too long URI");

/// RFC 3986 §3.1: a letter, then letters, digits, `+`, `-` and `.`.
fn is_scheme(value: &[u8]) -> bool {
    let is_right = |byte: &u8| byte.is_ascii_alphanumeric() || b"+-.".contains(byte);
    value.first().is_some_and(u8::is_ascii_alphabetic) && value.iter().all(is_right)
}

#[cfg(test)]
mod tests;
