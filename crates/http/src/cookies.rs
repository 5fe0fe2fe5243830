//! Cookies of a request as a view of names and values (RFC 6265 §5.4), and that view after a
//! response has set some.
//!
//! Owns splitting, nothing else: no decoding, no quotes, no jar. Names are compared exactly.
//! Nothing is kept: every question walks the fields, which are short.

use crate::{Fields, Name, date};

/// LIMIT: cookies seen in one request; further ones are as if they were not sent.
const COOKIES_MAX: usize = 512;

/// A view of names with values. Making one and asking it allocates nothing; merging does.
#[derive(Clone, Debug)]
pub struct Cookies<'a> {
    request: &'a Fields,
    /// What a response set, or deleted.
    merged: Vec<(&'a [u8], Option<&'a [u8]>)>,
}

impl<'a> Cookies<'a> {
    /// The cookies of a request.
    #[must_use]
    pub const fn of(request: &'a Fields) -> Self {
        Self { request, merged: Vec::new() }
    }

    /// The view after `response` has set and deleted cookies; `now` is in seconds since 1970.
    pub fn merge(&mut self, response: &'a Fields, now: u64) {
        for line in response.all(Name::SetCookie) {
            let mut parts = line.split(|&byte| byte == b';');
            let (name, value) = split_pair(parts.next().unwrap_or_default());
            if !name.is_empty() && self.merged.len() < COOKIES_MAX {
                self.merged.retain(|pair| pair.0 != name);
                self.merged.push((name, (!is_deletion(parts, now)).then_some(value)));
            }
        }
    }

    /// The value of a cookie; of a name that repeats in the request, the first.
    #[must_use]
    pub fn get(&self, name: &[u8]) -> Option<&'a [u8]> {
        match self.merged.iter().find(|pair| pair.0 == name) {
            Some((_, value)) => *value,
            None => self.sent().find(|pair| pair.0 == name).map(|pair| pair.1),
        }
    }

    /// All of them: those of the request that are still so in their order, repeated names too,
    /// then those that were set.
    pub fn iter(&self) -> impl Iterator<Item = (&'a [u8], &'a [u8])> {
        let is_old = |name: &[u8]| self.merged.iter().any(|pair| pair.0 == name);
        let set = self.merged.iter().filter_map(|&(name, value)| Some((name, value?)));
        self.sent().filter(move |pair| !is_old(pair.0)).chain(set)
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.iter().next().is_none()
    }

    fn sent(&self) -> impl Iterator<Item = (&'a [u8], &'a [u8])> + use<'a> {
        let request = self.request;
        let lines = request.all(Name::Cookie);
        let pairs = lines.flat_map(|line| line.split(|&byte| byte == b';')).map(split_pair);
        pairs.filter(|pair| !pair.0.is_empty()).take(COOKIES_MAX)
    }
}

fn split_pair(text: &[u8]) -> (&[u8], &[u8]) {
    let (name, value) = match memchr::memchr(b'=', text) {
        Some(at) => (&text[..at], &text[at + 1..]),
        None => (text, &[][..]),
    };
    (name.trim_ascii(), value.trim_ascii())
}

/// Whether attributes say that the cookie is over (RFC 6265 §5.3: `Max-Age` before `Expires`).
fn is_deletion<'a>(attributes: impl Iterator<Item = &'a [u8]>, now: u64) -> bool {
    let (mut by_age, mut by_date) = (None, None);
    for (name, value) in attributes.map(split_pair) {
        if name.eq_ignore_ascii_case(b"max-age") {
            let is_number = value.iter().all(u8::is_ascii_digit) && !value.is_empty();
            let is_zero = is_number && value.iter().all(|&digit| digit == b'0');
            let is_negative = value.starts_with(b"-");
            by_age = (is_number || is_negative).then_some(is_zero || is_negative).or(by_age);
        } else if name.eq_ignore_ascii_case(b"expires") {
            by_date = date::parse(value).map(|moment| moment <= now).or(by_date);
        }
    }
    by_age.or(by_date).unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::Cookies;
    use crate::{Fields, Name};

    #[test]
    fn the_first_of_a_name_counts_and_responses_change_the_view() {
        let mut request = Fields::new();
        request.push(Name::Cookie, b"a=1; b = 2 ;a=3;;=x; flag");
        request.push(Name::Cookie, b"c=4=5; gone=1; later=1");
        let mut cookies = Cookies::of(&request);
        assert_eq!(cookies.iter().count(), 7);
        assert_eq!(cookies.get(b"a"), Some(&b"1"[..]));
        assert_eq!(cookies.get(b"b"), Some(&b"2"[..]));
        assert_eq!(cookies.get(b"c"), Some(&b"4=5"[..]));
        assert_eq!(cookies.get(b"flag"), Some(&b""[..]));
        assert_eq!(cookies.get(b"A"), None);
        let mut response = Fields::new();
        response.push(Name::SetCookie, b"a=9; Path=/");
        response.push(Name::SetCookie, b"gone=x; expires=Thu, 01 Jan 1970 00:00:01 GMT");
        response.push(Name::SetCookie, b"b=; Max-Age=0; Expires=Fri, 01 Jan 2100 00:00:00 GMT");
        response
            .push(Name::SetCookie, b"later=2; Max-Age=5; Expires=Thu, 01 Jan 1970 00:00:01 GMT");
        cookies.merge(&response, 1_000_000);
        assert_eq!(cookies.get(b"a"), Some(&b"9"[..]));
        assert_eq!((cookies.get(b"gone"), cookies.get(b"b")), (None, None));
        assert_eq!(cookies.get(b"later"), Some(&b"2"[..]));
        let left: Vec<_> = cookies.iter().map(|pair| pair.0).collect();
        assert_eq!(left, [&b"flag"[..], b"c", b"a", b"later"]);
    }
}
