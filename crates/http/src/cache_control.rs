//! Cache directives of requests and responses (RFC 9111 §5.2, RFC 5861, RFC 9213).
//!
//! Owns the parsing of `Cache-Control`, targeted fields, `Surrogate-Control`, `Expires`, `Age` and
//! `X-Accel-Expires`; decides nothing. Contradictory fields yield the result that caches less: the
//! smallest of several numbers, zero for an invalid number.

use crate::structured::{self, Bare, Value};
use crate::{FieldMap, Name, date};

/// The largest number of seconds represented (RFC 9111 §1.2.2); larger ones become this one.
pub const SECONDS_MAX: u32 = 1 << 31;

/// Directives of a response, from any of the fields.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheControl {
    /// `no-store`
    pub no_store: bool,
    /// `no-cache`, with or without field names.
    pub no_cache: bool,
    /// `private`, with or without field names.
    pub private: bool,
    /// `public`
    pub public: bool,
    /// `must-revalidate`
    pub must_revalidate: bool,
    /// `proxy-revalidate`
    pub proxy_revalidate: bool,
    /// `must-understand`
    pub must_understand: bool,
    /// `max-age` in seconds.
    pub max_age: Option<u32>,
    /// `s-maxage` in seconds.
    pub s_maxage: Option<u32>,
    /// `stale-while-revalidate` in seconds (RFC 5861 §3).
    pub stale_while_revalidate: Option<u32>,
    /// `stale-if-error` in seconds (RFC 5861 §4).
    pub stale_if_error: Option<u32>,
}

impl CacheControl {
    /// The directives of all lines of `Cache-Control`.
    #[must_use]
    pub fn of<'a>(lines: impl Iterator<Item = &'a [u8]>) -> Self {
        let mut control = Self::default();
        for line in lines {
            control.add(line);
        }
        control
    }

    /// Adds the directives of one line.
    pub fn add(&mut self, line: &[u8]) {
        for directive in Directives(line) {
            self.set(directive.name, || directive.seconds());
        }
    }

    /// Applies one directive; `seconds` parses its argument.
    fn set(&mut self, name: &[u8], seconds: impl FnOnce() -> u32) {
        let mut lower = [0; 24];
        let Some(lower) = lower.get_mut(..name.len()) else { return };
        lower.copy_from_slice(name);
        lower.make_ascii_lowercase();
        let number = match &*lower {
            b"no-store" => return self.no_store = true,
            b"no-cache" => return self.no_cache = true,
            b"private" => return self.private = true,
            b"public" => return self.public = true,
            b"must-revalidate" => return self.must_revalidate = true,
            b"proxy-revalidate" => return self.proxy_revalidate = true,
            b"must-understand" => return self.must_understand = true,
            b"max-age" => &mut self.max_age,
            b"s-maxage" => &mut self.s_maxage,
            b"stale-while-revalidate" => &mut self.stale_while_revalidate,
            b"stale-if-error" => &mut self.stale_if_error,
            _ => return,
        };
        let new = seconds();
        *number = Some(number.map_or(new, |old| old.min(new)));
    }

    /// The freshness lifetime for a shared cache: `s-maxage` before `max-age`.
    #[must_use]
    pub const fn shared_lifetime(&self) -> Option<u32> {
        match self.s_maxage {
            Some(seconds) => Some(seconds),
            None => self.max_age,
        }
    }

    /// Whether a stale response must not be sent (RFC 9111 §4.2.4).
    #[must_use]
    pub const fn forbids_stale(&self) -> bool {
        // RFC 9111 §5.2.2.10: s-maxage implies proxy-revalidate.
        self.must_revalidate || self.proxy_revalidate || self.no_cache || self.s_maxage.is_some()
    }
}

/// Directives of a request (RFC 9111 §5.2.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequestControl {
    /// `no-cache`, or `Pragma: no-cache` without a `Cache-Control` (RFC 9111 §5.4).
    pub no_cache: bool,
    /// `no-store`
    pub no_store: bool,
    /// `only-if-cached`
    pub only_if_cached: bool,
    /// `max-age` in seconds.
    pub max_age: Option<u32>,
    /// `max-stale` in seconds; without an argument it is [`SECONDS_MAX`].
    pub max_stale: Option<u32>,
    /// `min-fresh` in seconds.
    pub min_fresh: Option<u32>,
}

impl RequestControl {
    /// The directives of a request's `Cache-Control` and `Pragma`.
    #[must_use]
    pub fn of(fields: &FieldMap) -> Self {
        let mut control = Self::default();
        if fields.get(Name::CacheControl).is_none() {
            control.no_cache = fields
                .all(Name::Pragma)
                .flat_map(Directives)
                .any(|directive| directive.name.eq_ignore_ascii_case(b"no-cache"));
            return control;
        }
        for directive in fields.all(Name::CacheControl).flat_map(Directives) {
            control.set(&directive);
        }
        control
    }

    fn set(&mut self, directive: &CacheDirective<'_>) {
        let is = |name: &[u8]| directive.name.eq_ignore_ascii_case(name);
        if is(b"no-cache") {
            self.no_cache = true;
        } else if is(b"no-store") {
            self.no_store = true;
        } else if is(b"only-if-cached") {
            self.only_if_cached = true;
        } else if is(b"max-age") {
            let new = directive.seconds();
            self.max_age = Some(self.max_age.map_or(new, |old| old.min(new)));
        } else if is(b"min-fresh") {
            // The larger value is the stricter one; an invalid number counts as 0.
            self.min_fresh = self.min_fresh.max(seconds(directive.argument));
        } else if is(b"max-stale") {
            let new = if directive.has_argument { directive.seconds() } else { SECONDS_MAX };
            self.max_stale = Some(self.max_stale.map_or(new, |old| old.min(new)));
        }
    }
}

/// A targeted field's directives (RFC 9213 §2.1). `None` if it is absent, empty or not a
/// dictionary; the next field then decides. Members of the wrong type are ignored.
#[must_use]
pub fn targeted<'a>(lines: impl Iterator<Item = &'a [u8]>) -> Option<CacheControl> {
    let text = structured::join(lines)?;
    let members = structured::dictionary(&text)?;
    if members.is_empty() {
        return None;
    }
    let mut control = CacheControl::default();
    for (name, value) in members {
        match value {
            Value::Item(Bare::Boolean(false)) => {}
            Value::Item(Bare::Integer(number)) => {
                // A negative number is not a delta-seconds: stale at once.
                control.set(name, || u32::try_from(number.max(0)).unwrap_or(SECONDS_MAX));
            }
            _ if is_number(name) => {}
            _ => control.set(name, || 0),
        }
    }
    control.hold();
    Some(control)
}

fn is_number(name: &[u8]) -> bool {
    matches!(name, b"max-age" | b"s-maxage" | b"stale-while-revalidate" | b"stale-if-error")
}

impl CacheControl {
    /// Limits all numbers to [`SECONDS_MAX`].
    fn hold(&mut self) {
        for number in [
            &mut self.max_age,
            &mut self.s_maxage,
            &mut self.stale_while_revalidate,
            &mut self.stale_if_error,
        ] {
            *number = number.map(|seconds| seconds.min(SECONDS_MAX));
        }
    }
}

/// The contents of `Surrogate-Control`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Surrogate {
    /// Its directives; `max-age=A+B` also sets `stale_while_revalidate` to B.
    pub control: CacheControl,
    /// Whether `content="ESI/1.0"` requests ESI processing.
    pub esi: bool,
}

/// Parses `Surrogate-Control`; `None` if the field is absent. Directives targeted at another device
/// (`max-age=60;name`) count as if they had no target.
#[must_use]
pub fn surrogate<'a>(lines: impl Iterator<Item = &'a [u8]>) -> Option<Surrogate> {
    let mut found = None;
    for line in lines {
        let surrogate: &mut Surrogate = found.get_or_insert_default();
        for directive in Directives(line) {
            let argument = directive.argument;
            let argument = argument.split(|&byte| byte == b';').next().unwrap_or_default();
            if directive.name.eq_ignore_ascii_case(b"content") {
                surrogate.esi |= memchr::memmem::find(directive.argument, b"ESI/").is_some();
            } else if directive.name.eq_ignore_ascii_case(b"max-age") {
                let mut parts = argument.splitn(2, |&byte| byte == b'+');
                let age = parts.next().and_then(seconds).unwrap_or(0);
                surrogate.control.set(b"max-age", || age);
                if let Some(extra) = parts.next() {
                    let extra = seconds(extra).unwrap_or(0);
                    surrogate.control.set(b"stale-while-revalidate", || extra);
                }
            } else {
                let name = directive.name.split(|&byte| byte == b';').next().unwrap_or_default();
                surrogate.control.set(name, || seconds(argument).unwrap_or(0));
            }
        }
    }
    found
}

/// One directive of a list.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CacheDirective<'a> {
    pub(crate) name: &'a [u8],
    pub(crate) argument: &'a [u8],
    pub(crate) has_argument: bool,
    /// Whitespace surrounds `=`.
    is_loose: bool,
}

impl CacheDirective<'_> {
    /// The argument as delta-seconds; 0 if it is invalid (RFC 9111 §4.2.1: then it is stale).
    fn seconds(&self) -> u32 {
        if self.is_loose { 0 } else { seconds(self.argument).unwrap_or(0) }
    }
}

/// The directives of a line; commas inside quotes do not separate.
pub(crate) struct Directives<'a>(pub(crate) &'a [u8]);

impl<'a> Iterator for Directives<'a> {
    type Item = CacheDirective<'a>;

    fn next(&mut self) -> Option<CacheDirective<'a>> {
        loop {
            if self.0.is_empty() {
                return None;
            }
            let element = next_element(&mut self.0).trim_ascii();
            if element.is_empty() {
                continue;
            }
            let equals = memchr::memchr(b'=', element);
            let (name, argument) = match equals {
                Some(at) => (&element[..at], &element[at + 1..]),
                None => (element, &[][..]),
            };
            let (bare_name, bare) = (name.trim_ascii(), argument.trim_ascii());
            let is_loose = bare_name.len() != name.len() || bare.len() != argument.len();
            return Some(CacheDirective {
                name: bare_name,
                argument: unquote(bare),
                has_argument: equals.is_some(),
                is_loose,
            });
        }
    }
}

/// Removes the text up to the next comma outside quotes from `rest`, with the comma.
pub(crate) fn next_element<'a>(rest: &mut &'a [u8]) -> &'a [u8] {
    let text = *rest;
    let (mut at, mut quoted) = (0, false);
    while let Some(&byte) = text.get(at) {
        match byte {
            b'"' => quoted = !quoted,
            b'\\' if quoted => at += 1,
            b',' if !quoted => break,
            _ => {}
        }
        at += 1;
    }
    let end = at.min(text.len());
    *rest = text.get(end + 1..).unwrap_or_default();
    &text[..end]
}

fn unquote(text: &[u8]) -> &[u8] {
    match text {
        [b'"', inner @ .., b'"'] => inner,
        other => other,
    }
}

/// Delta-seconds (RFC 9111 §1.2.2): digits only; too large a number becomes [`SECONDS_MAX`].
#[must_use]
pub fn seconds(text: &[u8]) -> Option<u32> {
    if text.is_empty() || !text.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let number = text
        .iter()
        .fold(0_u32, |sum, digit| sum.saturating_mul(10).saturating_add(u32::from(digit - b'0')));
    Some(number.min(SECONDS_MAX))
}

/// The `Expires` of a response, in seconds since 1970. An invalid date, or one in a zone other than
/// `GMT`, is 0, the past (RFC 9111 §5.3, RFC 9110 §5.6.7); of several fields the earliest counts.
#[must_use]
pub fn expires(fields: &FieldMap) -> Option<u64> {
    fields.all(Name::Expires).map(|text| date::parse_strictly(text).unwrap_or(0)).min()
}

/// The age of a response on arrival, in seconds: the first `Age`; an invalid number is 0 (RFC 9111
/// §5.1).
#[must_use]
pub fn age(fields: &FieldMap) -> u32 {
    let first = fields.get(Name::Age).unwrap_or_default();
    let first = first.split(|&byte| byte == b',').next().unwrap_or_default();
    seconds(first.trim_ascii()).unwrap_or(0)
}

/// The contents of `X-Accel-Expires`, as nginx parses them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccelExpires {
    /// `0`: do not cache.
    Off,
    /// Cache for this many seconds.
    Seconds(u32),
    /// `@`: cache until this second since 1970.
    Until(u64),
}

/// Parses `X-Accel-Expires`; `None` for a value that nginx rejects.
#[must_use]
pub fn accel_expires(text: &[u8]) -> Option<AccelExpires> {
    match text.strip_prefix(b"@") {
        Some(moment) if seconds(moment).is_some() => {
            let fold = |sum: u64, digit: &u8| {
                sum.saturating_mul(10).saturating_add(u64::from(digit - b'0'))
            };
            Some(AccelExpires::Until(moment.iter().fold(0, fold)))
        }
        Some(_) => None,
        None => match seconds(text)? {
            0 => Some(AccelExpires::Off),
            delay => Some(AccelExpires::Seconds(delay)),
        },
    }
}

#[cfg(test)]
mod tests;
