//! `userid`: cookies that identify clients.
//!
//! Owns the two forms of the identifier and its encoding. An identifier is determined when a
//! variable or the response head first needs it; its random part comes from the request.

use bolide_conf::model::{UserId, UserIdExpires, UserIdMode};
use bolide_conf::vars::Var;
use bolide_http::date::http_date;
use bolide_http::{FieldMap, Name};

use crate::ctx::ClientAddress;
use crate::request::RequestNote;
use crate::vars::{VariableScope, VariableValue, cookie_in};

/// Characters of an identifier in a cookie, without padding.
const LETTERS: usize = 22;
/// The latest expiry time for browsers: 31 December 2037, 23:55:55.
const MAX: i64 = 2_145_916_555;
/// The latest time whose year has four digits.
const DATES_END: i64 = 253_402_300_799;

/// An identifier as its sixteen bytes; the last four are never all zero.
type Identifier = [u8; 16];

/// The identifiers of a request.
#[derive(Debug, Default)]
pub(crate) struct KnownUser {
    /// The client's identifier, and whether it has the mark; parsed once.
    got: Option<Option<(Identifier, bool)>>,
    /// The new identifier; decided once.
    set: Option<Option<Identifier>>,
}

impl KnownUser {
    /// Clears the state of the last request.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }
}

impl VariableScope<'_> {
    /// `$uid_got`
    pub(crate) fn write_uid_got(&self, out: &mut Vec<u8>) -> VariableValue {
        let user = UserOfRequest::of(self);
        let got = user.got().map(|(id, _)| id);
        push_named(user.conf, got, out)
    }

    /// `$uid_set`
    pub(crate) fn write_uid_set(&self, out: &mut Vec<u8>) -> VariableValue {
        let user = UserOfRequest::of(self);
        push_named(user.conf, user.set(), out)
    }
}

/// A request with its `userid` settings.
struct UserOfRequest<'s> {
    scope: &'s VariableScope<'s>,
    conf: &'s UserId,
}

impl<'s> UserOfRequest<'s> {
    fn of(scope: &'s VariableScope<'s>) -> Self {
        Self { scope, conf: &scope.location().settings.user_id }
    }

    fn got(&self) -> Option<(Identifier, bool)> {
        if self.conf.mode == UserIdMode::Off {
            return None;
        }
        if let Some(known) = self.scope.request.user.borrow().got {
            return known;
        }
        let got = self.read_cookie();
        self.scope.request.user.borrow_mut().got = Some(got);
        got
    }

    /// The identifier in the first cookie with the name.
    fn read_cookie(&self) -> Option<(Identifier, bool)> {
        let fields = &self.scope.request.head().fields;
        let (line, text) = fields
            .all(Name::Cookie)
            .find_map(|line| Some((line, cookie_in(line, &self.conf.name)?)))?;
        let refuse = |why: &str| {
            let mut note = format!("client sent {why} userid cookie \"").into_bytes();
            bolide_http::escape::push_log(&mut note, line);
            note.push(b'"');
            let note = String::from_utf8_lossy(&note).into_owned();
            self.scope.request.notes.borrow_mut().push(RequestNote::Text(note));
            None
        };
        let Some(letters) = text.get(..LETTERS) else { return refuse("too short") };
        let mut bytes = Vec::with_capacity(16);
        let id = match bolide_base::base64::push_base64(letters, &mut bytes) {
            true => Identifier::try_from(&bytes[..]).ok(),
            false => None,
        };
        let Some(id) = id else { return refuse("invalid") };
        let is_marked = self
            .conf
            .mark
            .is_some_and(|mark| text.get(LETTERS..=LETTERS + 1) == Some(&[mark, b'=']));
        (id[12..] != [0; 4]).then_some((id, is_marked))
    }

    fn set(&self) -> Option<Identifier> {
        if matches!(self.conf.mode, UserIdMode::Off | UserIdMode::Log) {
            return None;
        }
        if let Some(known) = self.scope.request.user.borrow().set {
            return known;
        }
        let mut reset = Vec::new();
        self.scope.write(&Var::UidReset, &mut reset);
        let got = self.got();
        let set = match got {
            Some((id, _)) if !matches!(&reset[..], b"" | b"0") => {
                if reset == b"log" {
                    let mut line = b"userid cookie \"".to_vec();
                    push_named(self.conf, Some(id), &mut line);
                    line.extend_from_slice(b"\" was reset");
                    self.scope.request.notes.borrow_mut().push(RequestNote::Notice(line));
                }
                Some(self.new_id())
            }
            // The same identifier again, with the current settings.
            Some((id, is_marked)) => (self.conf.mark.is_some() && !is_marked).then_some(id),
            None => Some(self.new_id()),
        };
        self.scope.request.user.borrow_mut().set = Some(set);
        set
    }

    /// A unique identifier: server, time and random bits.
    fn new_id(&self) -> Identifier {
        let now = self.scope.now.unix_seconds() as u32;
        let [first, second] = self.scope.request.id;
        let (chance, more) = (first as u32, (second >> 32) as u32);
        let mut id = Identifier::default();
        if self.conf.mode == UserIdMode::V1 {
            let words = [self.conf.service.unwrap_or(0), now, chance, more | 1];
            for (place, word) in id.chunks_exact_mut(4).zip(words) {
                place.copy_from_slice(&word.to_le_bytes());
            }
            return id;
        }
        let service = match self.conf.service {
            Some(service) => service.to_be_bytes(),
            None => of_server(self.scope.conn.local),
        };
        // The last byte encodes the form's version.
        let words =
            [service, now.to_be_bytes(), chance.to_be_bytes(), (more << 8 | 2).to_be_bytes()];
        for (place, word) in id.chunks_exact_mut(4).zip(words) {
            place.copy_from_slice(&word);
        }
        id
    }
}

/// The address that the client reached, or its last bytes.
fn of_server(local: ClientAddress) -> [u8; 4] {
    match local.ip().map(|ip| ip.to_canonical()) {
        Some(std::net::IpAddr::V4(ip)) => ip.octets(),
        Some(std::net::IpAddr::V6(ip)) => {
            let [.., a, b, c, d] = ip.octets();
            [a, b, c, d]
        }
        None => [0; 4],
    }
}

/// Appends `NAME=` and an identifier as four numbers, in the byte order of mod_uid.
fn push_named(conf: &UserId, id: Option<Identifier>, out: &mut Vec<u8>) -> VariableValue {
    if let Some(id) = id {
        out.extend_from_slice(&conf.name);
        out.push(b'=');
        for word in id.chunks_exact(4) {
            for byte in word.iter().rev() {
                let digit = |value: u8| b"0123456789ABCDEF"[usize::from(value)];
                out.extend_from_slice(&[digit(byte >> 4), digit(byte & 15)]);
            }
        }
    }
    VariableValue::when(id.is_some())
}

/// Adds the cookie to a response, if the client gets one.
#[cold]
pub(super) fn push_user_id(fields: &mut FieldMap, scope: &VariableScope<'_>) {
    if scope.request.role.is_subrequest() {
        return;
    }
    let user = UserOfRequest::of(scope);
    let (conf, Some(id)) = (user.conf, user.set()) else { return };
    fields.push_writing(Name::SetCookie, |out| {
        push_cookie(out, conf, id, scope.now.unix_seconds() as i64);
    });
    if !conf.p3p.is_empty() {
        fields.push_text(b"P3P", &conf.p3p);
    }
}

fn push_cookie(out: &mut Vec<u8>, conf: &UserId, id: Identifier, now: i64) {
    out.extend_from_slice(&conf.name);
    out.push(b'=');
    push_letters(out, id, conf.mark.unwrap_or(b'='));
    let at = match conf.expires {
        UserIdExpires::Off => None,
        UserIdExpires::Max => Some(MAX),
        UserIdExpires::After(seconds) => {
            let seconds = i64::try_from(seconds).unwrap_or(i64::MAX);
            Some(now.saturating_add(seconds).min(DATES_END))
        }
    };
    if let Some(at) = at {
        out.extend_from_slice(b"; expires=");
        push_cookie_date(out, at);
    }
    if let Some(domain) = &conf.domain {
        out.extend_from_slice(b"; domain=");
        out.extend_from_slice(domain);
    }
    out.extend_from_slice(b"; path=");
    out.extend_from_slice(&conf.path);
    for (is_set, text) in [(conf.flags.secure, "; secure"), (conf.flags.http_only, "; httponly")] {
        if is_set {
            out.extend_from_slice(text.as_bytes());
        }
    }
    if let Some(site) = conf.flags.same_site {
        out.extend_from_slice(b"; ");
        out.extend_from_slice(site.as_bytes());
    }
}

/// Appends an identifier in base64; the first padding character carries the mark.
fn push_letters(out: &mut Vec<u8>, id: Identifier, mark: u8) {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let number = u128::from_be_bytes(id);
    for at in 0..21 {
        out.push(DIGITS[(number >> (122 - 6 * at)) as usize & 63]);
    }
    out.push(DIGITS[(number << 4) as usize & 63]);
    out.extend_from_slice(&[mark, b'=']);
}

/// Appends the date of a cookie; its year has two digits as long as that is unambiguous.
pub(crate) fn push_cookie_date(out: &mut Vec<u8>, at: i64) {
    let mut text = http_date(at);
    (text[7], text[11]) = (b'-', b'-');
    let year = if at > MAX { 12 } else { 14 };
    out.extend_from_slice(&text[..12]);
    out.extend_from_slice(&text[year..]);
}

#[cfg(test)]
mod tests {
    use bolide_conf::model::UserId;

    use super::{push_cookie_date, push_letters, push_named};

    #[test]
    fn an_identifier_has_the_letters_and_numbers_of_nginx() {
        let id = *b"\x01\x00\x00\x7f\x6b\x04\x71\x02\xb3\x1f\x03\x0a\x03\x03\x02\x02";
        let mut text = Vec::new();
        push_letters(&mut text, id, b'q');
        text.push(b' ');
        push_named(&UserId::default(), Some(id), &mut text);
        let wanted = "AQAAf2sEcQKzHwMKAwMCAgq= uid=7F0000010271046B0A031FB302020303";
        assert_eq!(String::from_utf8(text).unwrap(), wanted);
    }

    #[test]
    fn the_year_of_a_cookie_has_two_digits_until_2037() {
        for (at, wanted) in [
            (784_111_777, "Sun, 06-Nov-94 08:49:37 GMT"),
            (2_145_916_555, "Thu, 31-Dec-37 23:55:55 GMT"),
            (4_949_048_957, "Wed, 30-Oct-2126 15:49:17 GMT"),
        ] {
            let mut text = Vec::new();
            push_cookie_date(&mut text, at);
            assert_eq!(String::from_utf8(text).unwrap(), wanted);
        }
    }
}
