//! Cookies of a request as a view of names and values (RFC 6265 §5.4), and that view after a
//! response has set some.
//!
//! Owns splitting, nothing else: no decoding, no quotes, no jar. Names are compared exactly.
//! Nothing is stored: each lookup walks the fields, which are short.

use crate::{FieldMap, Name, date};

/// LIMIT: cookies read from one request; further ones are ignored.
const COOKIES_MAX: usize = 512;

/// A view of names with values. Creating and reading one allocates nothing; merging does.
#[derive(Clone, Debug)]
pub struct Cookies<'a> {
    request: &'a FieldMap,
    /// Cookies that a response set, or deleted.
    merged: Vec<(&'a [u8], Option<&'a [u8]>)>,
}

impl<'a> Cookies<'a> {
    /// The cookies of a request.
    #[must_use]
    pub const fn of(request: &'a FieldMap) -> Self {
        Self { request, merged: Vec::new() }
    }

    /// The view after `response` has set and deleted cookies, as far as the client would send them
    /// with `request`; `now` is in seconds since 1970.
    pub fn merge(&mut self, response: &'a FieldMap, request: CookieUrl<'_>, now: u64) {
        for line in response.all(Name::SetCookie) {
            let mut parts = line.split(|&byte| byte == b';');
            let (name, value) = split_pair(parts.next().unwrap_or_default());
            let is_sent = || request.is_reached(parts.clone());
            if !name.is_empty() && self.merged.len() < COOKIES_MAX && is_sent() {
                self.merged.retain(|pair| pair.0 != name);
                self.merged.push((name, (!is_deletion(parts, now)).then_some(value)));
            }
        }
    }

    /// The value of a cookie; the first one of a repeated name in the request.
    #[must_use]
    pub fn get(&self, name: &[u8]) -> Option<&'a [u8]> {
        match self.merged.iter().find(|pair| pair.0 == name) {
            Some((_, value)) => *value,
            None => self.sent().find(|pair| pair.0 == name).map(|pair| pair.1),
        }
    }

    /// All cookies: those of the request that are still set, in their order, repeated names
    /// included; then those that the response set.
    pub fn iter(&self) -> impl Iterator<Item = (&'a [u8], &'a [u8])> {
        let is_old = |name: &[u8]| self.merged.iter().any(|pair| pair.0 == name);
        let set = self.merged.iter().filter_map(|&(name, value)| Some((name, value?)));
        self.sent().filter(move |pair| !is_old(pair.0)).chain(set)
    }

    /// Every cookie that an application may read as `name`. PHP reads `a.b`, `a b`, `a[b` and, in
    /// old versions, `a%5fb` as `a_b`, and `a[x]` as a part of `a`. Of a repeated name some
    /// applications take the first and some the last.
    pub fn read_as<'b>(
        &self,
        name: &'b [u8],
    ) -> impl Iterator<Item = (&'a [u8], &'a [u8])> + use<'_, 'a, 'b> {
        self.iter().filter(move |pair| pair.0 == name || is_read_as(pair.0, name))
    }

    /// Whether there are no cookies.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.iter().next().is_none()
    }

    /// Whether the request has more cookies than this view reads.
    #[must_use]
    pub fn is_cut(&self) -> bool {
        let lines = || self.request.all(Name::Cookie);
        // A cookie takes at least two bytes, its separator included.
        lines().map(|line| line.len() + 1).sum::<usize>() >= 2 * COOKIES_MAX
            && lines().map(|line| memchr::memchr_iter(b';', line).count() + 1).sum::<usize>()
                > COOKIES_MAX
    }

    fn sent(&self) -> impl Iterator<Item = (&'a [u8], &'a [u8])> + use<'a> {
        let request = self.request;
        let lines = request.all(Name::Cookie);
        let pairs = lines.flat_map(|line| line.split(|&byte| byte == b';')).map(split_pair);
        pairs.filter(|pair| !pair.0.is_empty()).take(COOKIES_MAX)
    }
}

/// The URL of a request, to which a cookie may belong.
#[derive(Clone, Copy, Debug)]
pub struct CookieUrl<'a> {
    /// Its host, in lower case, without port.
    pub host: &'a [u8],
    /// Its path.
    pub path: &'a [u8],
}

impl CookieUrl<'_> {
    /// Whether a cookie with these attributes would be sent to it (RFC 6265 §5.1.3, §5.1.4). A
    /// cookie for another path is another cookie, even if it has the same name.
    fn is_reached<'b>(&self, attributes: impl Iterator<Item = &'b [u8]>) -> bool {
        let (mut domain, mut path) = (&b""[..], &b""[..]);
        for (name, value) in attributes.map(split_pair) {
            if name.eq_ignore_ascii_case(b"domain") {
                domain = value.strip_prefix(b".").unwrap_or(value);
            } else if name.eq_ignore_ascii_case(b"path") {
                path = value;
            }
        }
        self.is_in_domain(domain) && self.is_below(path)
    }

    fn is_in_domain(&self, domain: &[u8]) -> bool {
        let Some(at) = self.host.len().checked_sub(domain.len()) else { return false };
        let (before, end) = self.host.split_at(at);
        domain.is_empty()
            || end.eq_ignore_ascii_case(domain) && (before.is_empty() || before.ends_with(b"."))
    }

    fn is_below(&self, path: &[u8]) -> bool {
        // Without a path that begins with a slash, it is the directory of the request.
        !path.starts_with(b"/")
            || self.path.strip_prefix(path).is_some_and(|rest| {
                rest.is_empty() || path.ends_with(b"/") || rest.starts_with(b"/")
            })
    }
}

fn split_pair(text: &[u8]) -> (&[u8], &[u8]) {
    let (name, value) = match memchr::memchr(b'=', text) {
        Some(at) => (&text[..at], &text[at + 1..]),
        None => (text, &[][..]),
    };
    (name.trim_ascii(), value.trim_ascii())
}

fn is_read_as(sent: &[u8], name: &[u8]) -> bool {
    let is_special = |byte: &u8| matches!(byte, b'.' | b' ' | b'[' | b'%' | b'+');
    (sent.iter().any(is_special) || name.iter().any(is_special))
        && php_name(sent).eq(php_name(name))
}

/// The name that PHP gives to a cookie sent as `sent`.
pub fn php_name(sent: &[u8]) -> impl Iterator<Item = u8> {
    let (mut at, mut is_over) = (0, false);
    std::iter::from_fn(move || {
        let byte = *sent.get(at).filter(|_| !is_over)?;
        let digit = |at: usize| sent.get(at).and_then(|byte| char::from(*byte).to_digit(16));
        let (byte, len) = match (byte, digit(at + 1), digit(at + 2)) {
            (b'%', Some(high), Some(low)) => ((high << 4 | low) as u8, 3),
            (b'+', ..) => (b' ', 1),
            (byte, ..) => (byte, 1),
        };
        at += len;
        match byte {
            b'[' if memchr::memchr(b']', &sent[at..]).is_some() => {
                is_over = true;
                None
            }
            b'[' | b'.' | b' ' => Some(b'_'),
            byte => Some(byte),
        }
    })
}

/// Whether attributes delete the cookie (RFC 6265 §5.3: `Max-Age` before `Expires`).
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
    use super::{CookieUrl, Cookies};
    use crate::{FieldMap, Name};

    #[test]
    fn the_first_of_a_name_counts_and_responses_change_the_view() {
        let mut request = FieldMap::new();
        request.push(Name::Cookie, b"a=1; b = 2 ;a=3;;=x; flag");
        request.push(Name::Cookie, b"c=4=5; gone=1; later=1");
        let mut cookies = Cookies::of(&request);
        assert_eq!(cookies.iter().count(), 7);
        assert_eq!(cookies.get(b"a"), Some(&b"1"[..]));
        assert_eq!(cookies.get(b"b"), Some(&b"2"[..]));
        assert_eq!(cookies.get(b"c"), Some(&b"4=5"[..]));
        assert_eq!(cookies.get(b"flag"), Some(&b""[..]));
        assert_eq!(cookies.get(b"A"), None);
        let mut response = FieldMap::new();
        response.push(Name::SetCookie, b"a=9; Path=/");
        response.push(Name::SetCookie, b"gone=x; expires=Thu, 01 Jan 1970 00:00:01 GMT");
        response.push(Name::SetCookie, b"b=; Max-Age=0; Expires=Fri, 01 Jan 2100 00:00:00 GMT");
        response
            .push(Name::SetCookie, b"later=2; Max-Age=5; Expires=Thu, 01 Jan 1970 00:00:01 GMT");
        response.push(Name::SetCookie, b"c=6; path=/old/");
        response.push(Name::SetCookie, b"c=7; domain=other.example; path=/");
        let url = CookieUrl { host: b"a.example", path: b"/x" };
        cookies.merge(&response, url, 1_000_000);
        assert_eq!(cookies.get(b"a"), Some(&b"9"[..]));
        assert_eq!((cookies.get(b"gone"), cookies.get(b"b")), (None, None));
        assert_eq!(cookies.get(b"later"), Some(&b"2"[..]));
        let left: Vec<_> = cookies.iter().map(|pair| pair.0).collect();
        assert_eq!(left, [&b"flag"[..], b"c", b"a", b"later"]);
        assert_eq!(cookies.get(b"c"), Some(&b"4=5"[..]));
    }

    #[test]
    fn a_cookie_reaches_its_domain_and_its_path() {
        let url = CookieUrl { host: b"www.a.example", path: b"/shop/cart" };
        let is_reached = |text: &str| url.is_reached(text.as_bytes().split(|byte| *byte == b';'));
        for text in [
            "",
            "path=/",
            "Path=/shop",
            "path=/shop/",
            "path=/shop/cart",
            "path=x",
            "domain=A.example",
            "domain=.a.example; path=/",
            "domain=www.a.example",
            "path=/no; path=/shop",
        ] {
            assert!(is_reached(text), "{text}");
        }
        for text in [
            "path=/sho",
            "path=/shop/cart/",
            "path=/wp-admin",
            "domain=example.org",
            "domain=ww.a.example",
            "domain=b.www.a.example",
            "domain=.example; path=/old/",
        ] {
            assert!(!is_reached(text), "{text}");
        }
    }

    #[test]
    fn a_cookie_is_found_by_every_name_that_php_takes_for_its_own() {
        let mut request = FieldMap::new();
        request.push(Name::Cookie, b"a.b=1; a_b=2; a%5Fb=3; a_b[x]=4; a[b=5; a_b=6; a-b=7; a_bc=8");
        let cookies = Cookies::of(&request);
        let found: Vec<_> = cookies.read_as(b"a_b").map(|pair| pair.1).collect();
        assert_eq!(found, [&b"1"[..], b"2", b"3", b"4", b"5", b"6"]);
        assert_eq!(cookies.read_as(b"a-b").count(), 1);
        assert_eq!(cookies.read_as(b"a.b").count(), 6);
        assert_eq!(cookies.read_as(b"b").count(), 0);
    }

    #[test]
    fn an_excess_of_cookies_is_reported() {
        for (count, is_cut) in [(512, false), (513, true)] {
            let mut request = FieldMap::new();
            request.push(Name::Cookie, "a;".repeat(count - 1).as_bytes());
            assert_eq!(Cookies::of(&request).is_cut(), is_cut, "{count}");
        }
    }
}
