//! Assembles the field lines of one HTTP/2 or HTTP/3 section to a [`RequestHead`], or rejects it.
//!
//! Owns every rule that the two protocols share: pseudo-header fields, names, values, `Host`,
//! cookies, limits. It knows no compression and no frame. A decoder never stops in the middle of a
//! section, because that would corrupt its dynamic table: the flaw is kept and the rest is read. A
//! malformed request takes precedence over a refused one.

use bolide_base::limits::FIELDS_MAX;
use bolide_http::{HttpVersion, Method, Name, RequestBody, RequestHead};

use crate::{Traits, WireRefusal};

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
    /// LIMIT: bytes of one name and value.
    pub field_size_max: usize,
    /// `underscores_in_headers`: names with `_` are valid.
    pub underscores_in_headers: bool,
    /// `ignore_invalid_headers`: fields with unusual but harmless names are dropped.
    pub ignore_invalid_headers: bool,
}

/// Why a section is not a valid request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flaw {
    /// A stream error (RFC 9113 §8.1.1, RFC 9114 §4.1.2): `PROTOCOL_ERROR`, `H3_MESSAGE_ERROR`.
    Malformed(&'static str),
    /// A request that gets an error response.
    Refused(WireRefusal),
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
    fields: usize,
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
        Self { rules, head, seen: 0, fields: 0, size: 0, length: None, flaw: None }
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
        self.fields += 1;
        let is_too_much = len > self.rules.field_size_max
            || self.size > self.rules.head_size_max
            || self.fields > FIELDS_MAX;
        if is_too_much {
            return self.note_excess(label, len);
        }
        if traits.has(Traits::BAD_VALUE) {
            return self.note(Flaw::Malformed("invalid field value"));
        }
        match label {
            Label::Known(name) => self.known(name, value),
            Label::Text(text) => self.other(text, traits, value),
            pseudo => self.pseudo(pseudo, value),
        }
    }

    #[cold]
    fn note_excess(&mut self, label: Label<'_>, len: usize) {
        self.note(if len > self.rules.field_size_max {
            if label == Label::Path { TOO_LONG_URI } else { TOO_LONG_FIELD }
        } else if self.size > self.rules.head_size_max {
            TOO_LARGE
        } else {
            TOO_MANY
        });
    }

    /// Keeps the first flaw; a malformed request replaces a refused one.
    #[cold]
    fn note(&mut self, flaw: Flaw) {
        if !matches!((self.flaw, flaw), (Some(Flaw::Malformed(_)), _) | (Some(_), Flaw::Refused(_)))
        {
            self.flaw = Some(flaw);
        }
    }

    /// Completes the head: composes `line`, `Host`, `Cookie` and `body`, and checks the required
    /// fields.
    ///
    /// # Errors
    ///
    /// The worst flaw of the section. The head then holds its usable part.
    pub fn finish(mut self, following: Following) -> Result<(), Flaw> {
        self.begin_fields();
        self.settle_cookies();
        self.compose_line();
        self.head.body = match (self.length, following) {
            (_, Following::Nothing) => RequestBody::None,
            (Some(length), Following::Perhaps) => RequestBody::Length(length),
            (None, Following::Perhaps) => RequestBody::Unknown,
        };
        self.head.expects_continue &= self.head.body != RequestBody::None;
        // RFC 9113 §8.1.1, RFC 9114 §4.1.2: content-length must equal the sum of the DATA frames.
        if let (Some(1..), Following::Nothing) = (self.length, following) {
            self.note(Flaw::Malformed("content-length without content"));
        }
        match self.flaw {
            Some(flaw) => Err(flaw),
            None => self.check(),
        }
    }

    fn pseudo(&mut self, label: Label<'_>, value: &[u8]) {
        let bit = match label {
            Label::Method => SEEN_METHOD,
            Label::Scheme => SEEN_SCHEME,
            Label::Authority => SEEN_AUTHORITY,
            Label::Path => SEEN_PATH,
            // RFC 9113 §8.3, RFC 9114 §4.3: undefined and response pseudo-header fields.
            _ => return self.note(Flaw::Malformed("unknown pseudo-field")),
        };
        if self.seen & SEEN_FIELD != 0 {
            return self.note(Flaw::Malformed("pseudo-field after a regular field"));
        }
        if self.seen & bit != 0 {
            return self.note(Flaw::Malformed("repeated pseudo-field"));
        }
        self.seen |= bit;
        match label {
            Label::Method => {
                self.head.method = Method::parse(value);
                self.head.method_text.extend_from_slice(value);
                if !value.iter().all(|byte| matches!(byte, b'A'..=b'Z' | b'_' | b'-')) {
                    self.note(refused(400, "client sent invalid method"));
                }
            }
            Label::Scheme if !is_scheme(value) => self.note(Flaw::Malformed("invalid :scheme")),
            Label::Authority => self.authority(value),
            Label::Path => self.head.target.extend_from_slice(value),
            _ => {}
        }
    }

    fn authority(&mut self, value: &[u8]) {
        if is_host(value) {
            self.head.authority.extend_from_slice(value);
        } else {
            self.note(refused(400, "client sent invalid host header"));
        }
    }

    #[inline]
    fn known(&mut self, name: Name, value: &[u8]) {
        self.begin_fields();
        match name {
            // RFC 9113 §8.2.2, RFC 9114 §4.2: connection-specific fields.
            Name::Connection
            | Name::KeepAlive
            | Name::ProxyConnection
            | Name::TransferEncoding
            | Name::Upgrade => return self.note(Flaw::Malformed("connection-specific field")),
            Name::Te if !value.eq_ignore_ascii_case(b"trailers") => {
                return self.note(Flaw::Malformed("te other than trailers"));
            }
            Name::ContentLength => return self.content_length(value),
            Name::Host => return self.host(value),
            Name::Cookie => return self.cookie(value),
            Name::Expect if value.eq_ignore_ascii_case(b"100-continue") => {
                self.head.expects_continue = true;
            }
            _ => {}
        }
        self.head.fields.push(name, value);
    }

    fn other(&mut self, text: &[u8], traits: Traits, value: &[u8]) {
        self.begin_fields();
        if traits.has(Traits::BAD_NAME) {
            return self.note(Flaw::Malformed("invalid field name"));
        }
        let is_odd = traits.has(Traits::ODD_NAME)
            || (traits.has(Traits::UNDERSCORE) && !self.rules.underscores_in_headers);
        if !(is_odd && self.rules.ignore_invalid_headers) {
            self.head.fields.push_parsed(Name::Other, text, value);
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
        match parse_length(value) {
            Some(length) if self.length.is_none_or(|known| known == length) => {
                self.length = Some(length);
            }
            Some(_) => self.note(Flaw::Malformed("two content-lengths")),
            None => self.note(Flaw::Malformed("invalid content-length")),
        }
    }

    fn host(&mut self, value: &[u8]) {
        if self.seen & SEEN_HOST != 0 {
            return self.note(Flaw::Malformed("repeated host"));
        }
        self.seen |= SEEN_HOST;
        if self.head.authority.is_empty() {
            self.authority(value);
            if !self.head.authority.is_empty() {
                self.head.fields.push(Name::Host, value);
            }
        } else if !self.head.authority.eq_ignore_ascii_case(value) {
            // RFC 9113 §8.3.1, RFC 9114 §4.3.1: the two must be equal.
            self.note(Flaw::Malformed("host differs from :authority"));
        }
    }

    /// RFC 9113 §8.3.1, RFC 9114 §4.3.1: checks the fields that a request must have.
    fn check(&self) -> Result<(), Flaw> {
        if self.head.method_text.is_empty() {
            return Err(Flaw::Malformed("no :method"));
        }
        if self.head.method == Method::Connect {
            return Err(refused(405, "client sent CONNECT method"));
        }
        if self.seen & SEEN_SCHEME == 0 {
            return Err(Flaw::Malformed("no :scheme"));
        }
        match (&self.head.target[..], self.head.method) {
            (path @ [b'/', ..], _) if path.iter().any(|&byte| byte <= b' ' || byte == 0x7f) => {
                return Err(refused(400, "client sent invalid \":path\" header"));
            }
            ([b'/', ..], _) | (b"*", Method::Options) => {}
            _ => return Err(Flaw::Malformed("no :path in origin form")),
        }
        if self.seen & (SEEN_AUTHORITY | SEEN_HOST) == 0 {
            // RFC 9113 §8.3.1, RFC 9114 §4.3.1: http and https require one of the two.
            return Err(Flaw::Malformed("neither :authority nor host"));
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
const TOO_LONG_URI: Flaw = refused(414, "client sent too long URI");

/// Whether `value` has only bytes that can be in a host with or without a port. RFC 9113 §8.3.1 and
/// RFC 9114 §4.3.1 forbid user information.
fn is_host(value: &[u8]) -> bool {
    let is_wrong =
        |byte: &u8| matches!(byte, 0..=b' ' | 0x7f | b'/' | b'@' | b'?' | b'#' | b'\\' | b',');
    !value.is_empty() && !value.iter().any(is_wrong)
}

/// RFC 3986 §3.1: a letter, then letters, digits, `+`, `-` and `.`.
fn is_scheme(value: &[u8]) -> bool {
    let is_right = |byte: &u8| byte.is_ascii_alphanumeric() || b"+-.".contains(byte);
    value.first().is_some_and(u8::is_ascii_alphabetic) && value.iter().all(is_right)
}

fn parse_length(value: &[u8]) -> Option<u64> {
    // LIMIT: 18 digits cannot overflow.
    if value.is_empty() || value.len() > 18 {
        return None;
    }
    value.iter().try_fold(0_u64, |sum, byte| {
        byte.is_ascii_digit().then(|| sum * 10 + u64::from(byte - b'0'))
    })
}

#[cfg(test)]
mod tests;
