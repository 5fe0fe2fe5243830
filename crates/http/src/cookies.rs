//! Cookies of a request as a view of names and values (RFC 6265 §5.4), and that view after a
//! response has set some.
//!
//! Owns splitting, nothing else: no decoding, no quotes, no jar. Names are compared exactly.

use crate::{Fields, Name, date};

/// LIMIT: cookies seen in one request; further ones are as if they were not sent.
const COOKIES_MAX: usize = 512;

/// Names with values, each name once.
#[derive(Clone, Debug, Default)]
pub struct Cookies<'a> {
    pairs: Vec<(&'a [u8], &'a [u8])>,
}

impl<'a> Cookies<'a> {
    /// The cookies of a request; of a name that repeats, the first.
    #[must_use]
    pub fn of(request: &'a Fields) -> Self {
        let mut cookies = Self::default();
        let pieces = request.all(Name::Cookie).flat_map(|line| line.split(|&byte| byte == b';'));
        for piece in pieces {
            let (name, value) = split_pair(piece);
            if cookies.pairs.len() >= COOKIES_MAX {
                break;
            }
            if !name.is_empty() && cookies.get(name).is_none() {
                cookies.pairs.push((name, value));
            }
        }
        cookies
    }

    /// The view after `response` has set and deleted cookies; `now` is in seconds since 1970.
    pub fn merge(&mut self, response: &'a Fields, now: u64) {
        for line in response.all(Name::SetCookie) {
            let mut parts = line.split(|&byte| byte == b';');
            let (name, value) = split_pair(parts.next().unwrap_or_default());
            if name.is_empty() {
                continue;
            }
            self.pairs.retain(|pair| pair.0 != name);
            if !is_deletion(parts, now) && self.pairs.len() < COOKIES_MAX {
                self.pairs.push((name, value));
            }
        }
    }

    /// The value of a cookie.
    #[must_use]
    pub fn get(&self, name: &[u8]) -> Option<&'a [u8]> {
        self.pairs.iter().find(|pair| pair.0 == name).map(|pair| pair.1)
    }

    /// All of them, as they came.
    pub fn iter(&self) -> impl Iterator<Item = (&'a [u8], &'a [u8])> {
        self.pairs.iter().copied()
    }

    /// Whether there is none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.pairs.is_empty()
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
        let seen: Vec<_> = cookies.iter().map(|pair| (pair.0.to_vec(), pair.1.to_vec())).collect();
        assert_eq!(seen.len(), 6);
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
    }
}
