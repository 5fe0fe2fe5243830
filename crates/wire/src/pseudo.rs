//! Turns the field lines of one HTTP/2 or HTTP/3 section into a [`RequestHead`], or says why not.
//!
//! Owns every rule that the two protocols share: pseudo-fields, names, values, `Host`, cookies,
//! limits. It knows no compression and no frame, and never stops a decoder in the middle: the
//! first flaw is kept and the rest of the section is swallowed.

use base::limits::FIELDS_MAX;
use http::{Method, Name, RequestBody, RequestHead, Version};

use crate::Refusal;

/// Bytes that RFC 9113 §10.5.1 and RFC 9114 §4.2.2 add to each field when they count a section.
pub const FIELD_OVERHEAD: usize = 32;

/// The name of a field line, as far as a decoder knows it without looking at the text.
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
    /// Any other name as it came, unchecked.
    Text(&'a [u8]),
}

impl<'a> Label<'a> {
    /// The label that `text` spells; a known name in upper case stays [`Label::Text`] and fails.
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

    /// Bytes of the name.
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

    /// Whether the name has no bytes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// What a connection allows in a request head.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// [`Version::Http2`] or [`Version::Http3`].
    pub version: Version,
    /// Bytes of names, values and [`FIELD_OVERHEAD`] per field.
    pub head_size_max: usize,
    /// Bytes of one name and value.
    pub field_size_max: usize,
    /// `underscores_in_headers`: names with `_` are as good as others.
    pub underscores_in_headers: bool,
    /// `ignore_invalid_headers`: fields with odd but harmless names are dropped.
    pub ignore_invalid_headers: bool,
}

/// Why a section is no request to be served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flaw {
    /// RFC 9113 §8.1.1, RFC 9114 §4.1.2: a stream error (`PROTOCOL_ERROR`, `H3_MESSAGE_ERROR`).
    Malformed(&'static str),
    /// To be answered with an error page.
    Refused(Refusal),
}

/// Whether bytes can follow a section on its stream.
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
/// A regular field came: no pseudo-field may follow.
const SEEN_FIELD: u8 = 16;
const SEEN_HOST: u8 = 32;

/// A request head in the making; see the module text.
#[derive(Debug)]
pub struct Assembly<'a> {
    rules: &'a Rules,
    head: &'a mut RequestHead,
    cookies: &'a mut Vec<u8>,
    seen: u8,
    fields: usize,
    size: usize,
    length: Option<u64>,
    flaw: Option<Flaw>,
}

impl<'a> Assembly<'a> {
    /// Starts a head. `head` must be empty; `cookies` is scratch that keeps its memory.
    pub fn new(rules: &'a Rules, head: &'a mut RequestHead, cookies: &'a mut Vec<u8>) -> Self {
        cookies.clear();
        head.version = rules.version;
        Self { rules, head, cookies, seen: 0, fields: 0, size: 0, length: None, flaw: None }
    }

    /// Takes the next field line.
    #[inline]
    pub fn field(&mut self, label: Label<'_>, value: &[u8]) {
        if self.flaw.is_some() {
            return;
        }
        if let Err(flaw) = self.try_field(label, value) {
            self.flaw = Some(flaw);
        }
    }

    /// Completes the head: checks what must be there, composes `line`, `Host`, `Cookie`, `body`.
    ///
    /// # Errors
    ///
    /// The first flaw of the section; the head then holds what was read before it.
    pub fn finish(mut self, following: Following) -> Result<(), Flaw> {
        self.head.body = match (self.length, following) {
            (_, Following::Nothing) => RequestBody::None,
            (Some(length), Following::Perhaps) => RequestBody::Length(length),
            (None, Following::Perhaps) => RequestBody::Unknown,
        };
        self.head.expects_continue &= self.head.body != RequestBody::None;
        self.compose_line();
        if let Some(flaw) = self.flaw {
            return Err(flaw);
        }
        self.check_pseudo()?;
        self.settle_host()?;
        if !self.cookies.is_empty() {
            self.head.fields.push(Name::Cookie, self.cookies);
        }
        match (self.length, following) {
            // RFC 9114 §4.1.2: content-length has to equal the sum of the DATA that follows.
            (Some(1..), Following::Nothing) => {
                Err(Flaw::Malformed("content-length without content"))
            }
            _ => Ok(()),
        }
    }

    #[inline]
    fn try_field(&mut self, label: Label<'_>, value: &[u8]) -> Result<(), Flaw> {
        let bytes = label.len() + value.len();
        self.size += bytes + FIELD_OVERHEAD;
        self.fields += 1;
        if bytes > self.rules.field_size_max {
            return Err(if label == Label::Path { TOO_LONG_URI } else { TOO_LONG_FIELD });
        }
        if self.size > self.rules.head_size_max {
            return Err(TOO_LARGE);
        }
        if self.fields > FIELDS_MAX {
            return Err(TOO_MANY);
        }
        match label {
            Label::Known(name) => self.known(name, value),
            Label::Text(text) => self.other(text, value),
            pseudo => self.pseudo(pseudo, value),
        }
    }

    fn pseudo(&mut self, label: Label<'_>, value: &[u8]) -> Result<(), Flaw> {
        let bit = match label {
            Label::Method => SEEN_METHOD,
            Label::Scheme => SEEN_SCHEME,
            Label::Authority => SEEN_AUTHORITY,
            Label::Path => SEEN_PATH,
            // RFC 9114 §4.3: undefined and response pseudo-fields are malformed in requests.
            _ => return Err(Flaw::Malformed("unknown pseudo-field")),
        };
        if self.seen & SEEN_FIELD != 0 {
            return Err(Flaw::Malformed("pseudo-field after a regular field"));
        }
        if self.seen & bit != 0 {
            return Err(Flaw::Malformed("repeated pseudo-field"));
        }
        self.seen |= bit;
        match label {
            Label::Method => {
                self.head.method = Method::parse(value);
                self.head.method_text.extend_from_slice(value);
                if !value.iter().all(|byte| matches!(byte, b'A'..=b'Z' | b'_' | b'-')) {
                    return Err(refused(400, "client sent invalid method"));
                }
            }
            Label::Scheme if value.is_empty() => return Err(Flaw::Malformed("empty :scheme")),
            Label::Authority => {
                check_host(value)?;
                self.head.authority.extend_from_slice(value);
            }
            Label::Path => self.head.target.extend_from_slice(value),
            _ => {}
        }
        Ok(())
    }

    #[inline]
    fn known(&mut self, name: Name, value: &[u8]) -> Result<(), Flaw> {
        self.begin_fields();
        check_value(value)?;
        match name {
            // RFC 9113 §8.2.2, RFC 9114 §4.2: connection-specific fields.
            Name::Connection
            | Name::KeepAlive
            | Name::ProxyConnection
            | Name::TransferEncoding
            | Name::Upgrade => return Err(Flaw::Malformed("connection-specific field")),
            Name::Te if !value.eq_ignore_ascii_case(b"trailers") => {
                return Err(Flaw::Malformed("te other than trailers"));
            }
            Name::ContentLength => return self.content_length(value),
            Name::Host => return self.host(value),
            Name::Cookie => {
                // RFC 9113 §8.2.3, RFC 9114 §4.2.1: crumbs become one field again.
                if !self.cookies.is_empty() {
                    self.cookies.extend_from_slice(b"; ");
                }
                self.cookies.extend_from_slice(value);
                return Ok(());
            }
            Name::Expect if value.eq_ignore_ascii_case(b"100-continue") => {
                self.head.expects_continue = true;
            }
            _ => {}
        }
        self.head.fields.push(name, value);
        Ok(())
    }

    fn other(&mut self, text: &[u8], value: &[u8]) -> Result<(), Flaw> {
        self.begin_fields();
        check_value(value)?;
        match spelling(text, self.rules) {
            Spelling::Good => {}
            Spelling::Odd if self.rules.ignore_invalid_headers => return Ok(()),
            Spelling::Odd => {}
            Spelling::Wrong => return Err(Flaw::Malformed("invalid field name")),
        }
        self.head.fields.push_parsed(Name::Other, text, value);
        Ok(())
    }

    /// `Host` stands first, as clients of HTTP/1 send it.
    #[inline]
    fn begin_fields(&mut self) {
        if self.seen & SEEN_FIELD == 0 {
            self.seen |= SEEN_FIELD;
            if self.seen & SEEN_AUTHORITY != 0 {
                self.head.fields.push(Name::Host, &self.head.authority);
            }
        }
    }

    fn content_length(&mut self, value: &[u8]) -> Result<(), Flaw> {
        let parsed = parse_length(value).ok_or(Flaw::Malformed("invalid content-length"))?;
        if self.length.replace(parsed).is_some_and(|length| length != parsed) {
            return Err(Flaw::Malformed("two content-lengths"));
        }
        Ok(())
    }

    fn host(&mut self, value: &[u8]) -> Result<(), Flaw> {
        if self.seen & SEEN_HOST != 0 {
            return Err(Flaw::Malformed("repeated host"));
        }
        self.seen |= SEEN_HOST;
        if self.head.authority.is_empty() {
            check_host(value)?;
            self.head.authority.extend_from_slice(value);
            self.head.fields.push(Name::Host, value);
            return Ok(());
        }
        // RFC 9114 §4.3.1: where both are present they have to be the same.
        if !self.head.authority.eq_ignore_ascii_case(value) {
            return Err(Flaw::Malformed("host differs from :authority"));
        }
        Ok(())
    }

    fn check_pseudo(&self) -> Result<(), Flaw> {
        if self.seen & SEEN_METHOD == 0 || self.head.method_text.is_empty() {
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
                Err(refused(400, "client sent invalid \":path\" header"))
            }
            ([b'/', ..], _) | (b"*", Method::Options) => Ok(()),
            _ => Err(Flaw::Malformed("no :path in origin form")),
        }
    }

    fn settle_host(&mut self) -> Result<(), Flaw> {
        self.begin_fields();
        if self.seen & (SEEN_AUTHORITY | SEEN_HOST) == 0 {
            // RFC 9114 §4.3.1: one of the two has to be there for https.
            return Err(refused(400, "client sent neither \":authority\" nor \"Host\" header"));
        }
        Ok(())
    }

    fn compose_line(&mut self) {
        let RequestHead { line, method_text, target, .. } = &mut *self.head;
        line.extend_from_slice(method_text);
        line.push(b' ');
        line.extend_from_slice(target);
        line.push(b' ');
        line.extend_from_slice(self.rules.version.text().as_bytes());
    }
}

/// What is wrong with a field line of a trailer section, if anything.
///
/// # Errors
///
/// The reason, when the message is malformed (RFC 9114 §4.3: no pseudo-fields in trailers).
pub fn check_trailer(label: Label<'_>, value: &[u8]) -> Result<(), &'static str> {
    let name_is_good = match label {
        Label::Known(
            Name::Connection
            | Name::KeepAlive
            | Name::ProxyConnection
            | Name::TransferEncoding
            | Name::Upgrade,
        ) => return Err("connection-specific field in trailers"),
        Label::Known(_) => true,
        Label::Text(text) => {
            !text.is_empty() && text.iter().all(|byte| SPELLING[usize::from(*byte)] != WRONG)
        }
        _ => return Err("pseudo-field in trailers"),
    };
    if name_is_good && check_value(value).is_ok() { Ok(()) } else { Err("invalid trailer field") }
}

const fn refused(status: u16, reason: &'static str) -> Flaw {
    Flaw::Refused(Refusal { status, reason })
}

/// For a section over the limit, as other bounds on it say too.
pub const TOO_LARGE_REFUSAL: Refusal =
    Refusal { status: 494, reason: "client sent too large request" };
const TOO_LARGE: Flaw = Flaw::Refused(TOO_LARGE_REFUSAL);
const TOO_LONG_FIELD: Flaw = refused(494, "client sent too long header line");
const TOO_MANY: Flaw = refused(494, "client sent too many header lines");
const TOO_LONG_URI: Flaw = refused(414, "client sent too long URI");

enum Spelling {
    Good,
    Odd,
    Wrong,
}

const GOOD: u8 = 0;
const ODD: u8 = 1;
const UNDERSCORE: u8 = 2;
const WRONG: u8 = 4;

/// How each byte of a name is seen: nginx drops odd ones, RFC 9113 §8.2.1 forbids wrong ones.
const SPELLING: [u8; 256] = {
    let mut table = [ODD; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = match byte as u8 {
            b'a'..=b'z' | b'0'..=b'9' | b'-' => GOOD,
            b'_' => UNDERSCORE,
            b'A'..=b'Z' | b':' | 0..=b' ' | 0x7f.. => WRONG,
            _ => ODD,
        };
        byte += 1;
    }
    table
};

fn spelling(text: &[u8], rules: &Rules) -> Spelling {
    let all = text.iter().fold(GOOD, |all, &byte| all | SPELLING[usize::from(byte)]);
    if text.is_empty() || all & WRONG != 0 {
        Spelling::Wrong
    } else if all & ODD != 0 || (all & UNDERSCORE != 0 && !rules.underscores_in_headers) {
        Spelling::Odd
    } else {
        Spelling::Good
    }
}

/// RFC 9113 §8.2.1, RFC 9114 §10.3: no NUL, CR, LF; no white space at either end.
#[inline]
fn check_value(value: &[u8]) -> Result<(), Flaw> {
    let bad = value.iter().fold(false, |bad, &byte| bad | matches!(byte, 0 | b'\n' | b'\r'));
    let edge = |byte: Option<&u8>| matches!(byte, Some(b' ' | b'\t'));
    if bad || edge(value.first()) || edge(value.last()) {
        return Err(Flaw::Malformed("invalid field value"));
    }
    Ok(())
}

/// What can never stand in a host with or without a port; RFC 9114 §4.3.1 forbids user names.
fn check_host(value: &[u8]) -> Result<(), Flaw> {
    let bad =
        |byte: &u8| matches!(byte, 0..=b' ' | 0x7f | b'/' | b'@' | b'?' | b'#' | b'\\' | b',');
    if value.is_empty() || value.iter().any(bad) {
        return Err(refused(400, "client sent invalid host header"));
    }
    Ok(())
}

fn parse_length(value: &[u8]) -> Option<u64> {
    if value.is_empty() || value.len() > 18 {
        return None;
    }
    value.iter().try_fold(0_u64, |sum, byte| {
        byte.is_ascii_digit().then(|| sum * 10 + u64::from(byte - b'0'))
    })
}

#[cfg(test)]
mod tests;
