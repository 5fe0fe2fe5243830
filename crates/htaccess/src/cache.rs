//! LiteSpeed's directives and variables for the page cache.
//!
//! Collects their words and keeps them from round to round; the caller interprets them.

use crate::fault::{ParseResult, shown};
use crate::lines::ArgumentWords;

/// LIMIT: bytes of words for one request, of each kind. Beyond it the request is not cached.
const TEXT_MAX: usize = 16 * 1024;
/// LIMIT: directives of one place, and paths that one request is compared with.
const DIRECTIVES_MAX: usize = 1_000;

/// Public pages, private ones, or both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheScopes {
    /// Pages for every client.
    pub public: bool,
    /// Pages of one session.
    pub private: bool,
}

/// `CacheEnable` or `CacheDisable`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CachePrefix {
    /// The URL path prefix.
    pub path: Box<[u8]>,
    /// Which pages are meant.
    pub scopes: CacheScopes,
    /// Whether they are cached.
    pub enabled: bool,
}

/// A directive.
#[derive(Clone, Debug)]
pub(crate) enum CacheLine {
    /// `CacheLookup`
    Lookup(CacheScopes, bool),
    /// `CacheEnable`, `CacheDisable`
    Prefix(CachePrefix),
    /// A word of `CacheKeyModify`.
    Key(Box<[u8]>),
    /// `LiteMage`
    LiteMage(bool),
}

/// A variable for the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CacheVariable {
    /// `Cache-Control`, `cache-ctrl`
    Control,
    /// `Cache-Vary`
    Cookies,
    /// `cache-key-mod`
    Key,
    /// `modcache`
    Switch,
    /// `LSCACHE_VARY_VALUE`, which `Cache-Control:vary=…` gives as well.
    Value,
    /// `LSCACHE_VARY_COOKIE`, which `Cache-Vary:…` adds to.
    CookieList,
}

impl CacheVariable {
    /// The variable with this name.
    pub(crate) fn parse(name: &[u8]) -> Option<Self> {
        // PERF: every variable passes here, and almost none begins with these.
        if !matches!(name.first(), Some(b'c' | b'C' | b'm' | b'M' | b'L')) {
            return None;
        }
        let is = |known: &[u8]| name.eq_ignore_ascii_case(known);
        match name {
            b"LSCACHE_VARY_VALUE" => Some(Self::Value),
            b"LSCACHE_VARY_COOKIE" => Some(Self::CookieList),
            _ if is(b"cache-control") || is(b"cache-ctrl") => Some(Self::Control),
            _ if is(b"cache-vary") => Some(Self::Cookies),
            _ if is(b"cache-key-mod") => Some(Self::Key),
            _ if is(b"modcache") => Some(Self::Switch),
            _ => None,
        }
    }
}

/// The orders for the cache about one request. Those of rules accumulate over all rounds; of
/// directives the last one counts, but `CacheKeyModify` is that of the client's path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CacheOrders {
    control: Vec<u8>,
    cookies: Vec<u8>,
    key: Vec<u8>,
    /// The vary value that rules of this round have built.
    value: Vec<u8>,
    /// That of earlier rounds.
    earlier: Vec<u8>,
    is_off: bool,
    /// Whether the directives of this round were applied.
    is_asked: bool,
    lookup: [Option<bool>; 2],
    prefixes: Vec<CachePrefix>,
    litemage: Option<bool>,
}

impl CacheOrders {
    /// Words of cache control, separated by commas.
    #[must_use]
    pub fn control(&self) -> &[u8] {
        &self.control
    }

    /// Names of cookies that pages vary by, separated by commas.
    #[must_use]
    pub fn vary_cookies(&self) -> &[u8] {
        &self.cookies
    }

    /// Words of `CacheKeyModify`, separated by commas.
    #[must_use]
    pub fn key_words(&self) -> &[u8] {
        &self.key
    }

    /// The approximate memory in bytes.
    pub(crate) fn bytes(&self) -> usize {
        let texts = [&self.control, &self.cookies, &self.key, &self.value, &self.earlier];
        let prefixes = self.prefixes.iter().map(|prefix| prefix.path.len() + size_of_val(prefix));
        texts.into_iter().map(Vec::capacity).sum::<usize>() + prefixes.sum::<usize>()
    }

    /// Whether the cache is off for the request.
    #[must_use]
    pub const fn is_off(&self) -> bool {
        self.is_off
    }

    /// Whether public and private pages are looked up, if `CacheLookup` says so.
    #[must_use]
    pub const fn lookup(&self) -> [Option<bool>; 2] {
        self.lookup
    }

    /// The paths below which pages are cached or not; the last match counts.
    #[must_use]
    pub fn prefixes(&self) -> &[CachePrefix] {
        &self.prefixes
    }

    /// The value of `LiteMage`, if it is given.
    #[must_use]
    pub const fn litemage(&self) -> Option<bool> {
        self.litemage
    }

    /// The vary value. It includes that of earlier rounds: an inner round cannot join pages that an
    /// outer one separates.
    #[must_use]
    pub fn vary_value(&self) -> Vec<u8> {
        let (earlier, value) = (&self.earlier, &self.value);
        // `vary=%{ENV:LSCACHE_VARY_VALUE}+more` continues the earlier value; others follow it.
        let rest = value.strip_prefix(&earlier[..]);
        match (&earlier[..], &value[..]) {
            (b"", value) | (value, b"") => value.to_vec(),
            (_, value) if rest.is_some_and(|it| it.is_empty() || it[0] == b'+') => value.to_vec(),
            (earlier, value) => [earlier, &[0], value].concat(),
        }
    }

    /// The value of the variable `name` for rules.
    pub(crate) fn variable(&self, name: &[u8]) -> Option<&[u8]> {
        let text = match name {
            b"LSCACHE_VARY_VALUE" => &self.value,
            b"LSCACHE_VARY_COOKIE" => &self.cookies,
            _ => return None,
        };
        (!text.is_empty()).then_some(text)
    }

    /// Whether there are no orders.
    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Begins another round.
    pub(crate) fn enter_round(&mut self) {
        if !self.value.is_empty() {
            self.earlier = self.vary_value();
            self.value.clear();
        }
        debug_assert!(self.value.is_empty(), "a round makes its own value");
    }

    /// Applies an assignment of a variable.
    pub(crate) fn hear(&mut self, variable: CacheVariable, value: &[u8]) {
        let words = value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii);
        let words = words.filter(|word| !word.is_empty());
        match variable {
            CacheVariable::Control => {
                for word in words {
                    match word.split_at_checked(5) {
                        Some((start, token)) if start.eq_ignore_ascii_case(b"vary=") => {
                            self.set_value(token);
                        }
                        _ => self.is_off |= !add(&mut self.control, word),
                    }
                }
            }
            CacheVariable::Cookies | CacheVariable::CookieList => {
                for word in words {
                    let name = word.strip_prefix(b"cookie=").unwrap_or(word);
                    self.is_off |= !add(&mut self.cookies, name);
                }
            }
            CacheVariable::Key => words.for_each(|word| self.is_off |= !add(&mut self.key, word)),
            CacheVariable::Switch => self.is_off |= value == b"0",
            CacheVariable::Value => self.set_value(value),
        }
    }

    fn set_value(&mut self, value: &[u8]) {
        self.is_off |= value.len() > TEXT_MAX;
        self.value.clear();
        self.value.extend_from_slice(&value[..value.len().min(TEXT_MAX)]);
    }

    /// Applies the directives of a round.
    pub(crate) fn obey<'a>(&mut self, directives: impl Iterator<Item = &'a CacheLine>) {
        let keeps_key = std::mem::replace(&mut self.is_asked, true);
        for directive in directives {
            match directive {
                CacheLine::Lookup(scopes, on) => {
                    for (said, is_meant) in
                        self.lookup.iter_mut().zip([scopes.public, scopes.private])
                    {
                        *said = if is_meant { Some(*on) } else { *said };
                    }
                }
                CacheLine::Prefix(prefix) => {
                    self.prefixes.retain(|known| known != prefix);
                    match self.prefixes.len() < DIRECTIVES_MAX {
                        true => self.prefixes.push(prefix.clone()),
                        false => self.is_off = true,
                    }
                }
                CacheLine::Key(_) if keeps_key => {}
                CacheLine::Key(word) => self.is_off |= !add(&mut self.key, word),
                CacheLine::LiteMage(on) => self.litemage = Some(*on),
            }
        }
    }
}

/// Adds a word; returns whether there was room.
fn add(text: &mut Vec<u8>, word: &[u8]) -> bool {
    if text.len() + word.len() >= TEXT_MAX {
        return false;
    }
    if !text.is_empty() {
        text.push(b',');
    }
    text.extend_from_slice(word);
    true
}

fn on_or_off(name: &str, word: &[u8]) -> ParseResult<bool> {
    match &word.to_ascii_lowercase()[..] {
        b"on" => Ok(true),
        b"off" => Ok(false),
        _ => Err(format!("{name} must be On or Off")),
    }
}

/// `[public | private] LAST`
fn scoped(name: &str, arguments: &[u8]) -> ParseResult<(CacheScopes, Vec<u8>)> {
    let words: Vec<Vec<u8>> = ArgumentWords::new(arguments).collect();
    let both = CacheScopes { public: true, private: true };
    match &words[..] {
        [last] => Ok((both, last.clone())),
        [first, last] if first.eq_ignore_ascii_case(b"public") => {
            Ok((CacheScopes { private: false, ..both }, last.clone()))
        }
        [first, last] if first.eq_ignore_ascii_case(b"private") => {
            Ok((CacheScopes { public: false, ..both }, last.clone()))
        }
        [first, _] => Err(format!("{name}: '{}' is neither public nor private", shown(first))),
        _ => Err(format!("{name} takes one or two arguments")),
    }
}

fn push(own: &mut Vec<CacheLine>, one: CacheLine) -> ParseResult<()> {
    if own.len() >= DIRECTIVES_MAX {
        return Err(format!("more than {DIRECTIVES_MAX} directives for the cache"));
    }
    own.push(one);
    Ok(())
}

/// `CacheLookup [public | private] on | off`
pub(crate) fn lookup(own: &mut Vec<CacheLine>, arguments: &[u8]) -> ParseResult<()> {
    let (scopes, word) = scoped("CacheLookup", arguments)?;
    push(own, CacheLine::Lookup(scopes, on_or_off("CacheLookup", &word)?))
}

/// `CacheEnable [public | private] /PATH`, `CacheDisable …`
pub(crate) fn prefix(
    own: &mut Vec<CacheLine>,
    name: &str,
    arguments: &[u8],
    enabled: bool,
) -> ParseResult<()> {
    let (scopes, path) = scoped(name, arguments)?;
    if path.first() != Some(&b'/') {
        return Err(format!("{name} takes a path with a slash"));
    }
    push(own, CacheLine::Prefix(CachePrefix { path: path.into(), scopes, enabled }))
}

/// `CacheKeyModify clear | -qs:NAME…`
pub(crate) fn key_modify(own: &mut Vec<CacheLine>, arguments: &[u8]) -> ParseResult<()> {
    let mut count = 0;
    for word in ArgumentWords::new(arguments) {
        let is_name = word.len() > 4
            && word[..4].eq_ignore_ascii_case(b"-qs:")
            && !word.iter().any(|byte| byte.is_ascii_whitespace() || *byte == b',');
        if !is_name && !word.eq_ignore_ascii_case(b"clear") {
            return Err(format!("CacheKeyModify: '{}' is not known", shown(&word)));
        }
        push(own, CacheLine::Key(word.into()))?;
        count += 1;
    }
    match count {
        0 => Err("CacheKeyModify requires at least one argument".to_owned()),
        _ => Ok(()),
    }
}

/// `LiteMage on | off`
pub(crate) fn litemage(own: &mut Vec<CacheLine>, arguments: &[u8]) -> ParseResult<()> {
    let words: Vec<Vec<u8>> = ArgumentWords::new(arguments).collect();
    match &words[..] {
        [word] => push(own, CacheLine::LiteMage(on_or_off("LiteMage", word)?)),
        _ => Err("LiteMage takes one argument".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::{CacheOrders, CacheVariable, TEXT_MAX};

    fn said(words: &[(&str, &str)]) -> CacheOrders {
        let mut orders = CacheOrders::default();
        for (name, value) in words {
            let variable = CacheVariable::parse(name.as_bytes()).expect(name);
            orders.hear(variable, value.as_bytes());
        }
        orders
    }

    #[test]
    fn words_add_up_and_the_vary_value_is_the_last_one() {
        let orders = said(&[
            ("Cache-Control", "no-autoflush"),
            ("cache-ctrl", "vary=+a, max-age=5"),
            ("CACHE-CONTROL", "vary=+a+b"),
            ("Cache-Vary", ",one"),
            ("cache-vary", "cookie=two,"),
            ("cache-key-mod", "-qs:x"),
        ]);
        assert_eq!(orders.control(), b"no-autoflush,max-age=5");
        assert_eq!(orders.vary_value(), b"+a+b");
        assert_eq!(orders.vary_cookies(), b"one,two");
        assert_eq!(orders.key_words(), b"-qs:x");
        assert!(!orders.is_off());
        assert!(CacheVariable::parse(b"Cache-Controls").is_none());
    }

    #[test]
    fn a_round_cannot_take_back_what_the_one_before_told_apart() {
        let mut orders = said(&[("Cache-Control", "vary=+a+b")]);
        orders.enter_round();
        assert_eq!(orders.variable(b"LSCACHE_VARY_VALUE"), None, "rules begin anew");
        assert_eq!(orders.vary_value(), b"+a+b");
        for (next, wanted) in
            [("vary=+a", "+a+b\0+a"), ("vary=+a+b", "+a+b"), ("vary=+a+b+c", "+a+b+c")]
        {
            let mut orders = orders.clone();
            orders.hear(CacheVariable::Control, next.as_bytes());
            assert_eq!(orders.vary_value(), wanted.as_bytes());
            orders.enter_round();
            orders.enter_round();
            assert_eq!(orders.vary_value(), wanted.as_bytes());
        }
    }

    #[test]
    fn what_is_beyond_a_limit_keeps_the_request_out() {
        for name in ["Cache-Control", "Cache-Vary", "cache-key-mod", "LSCACHE_VARY_VALUE"] {
            let orders = said(&[(name, &"x".repeat(TEXT_MAX + 1))]);
            assert!(orders.is_off(), "{name}");
        }
        assert!(said(&[("modcache", "0")]).is_off());
        assert!(!said(&[("modcache", "1")]).is_off());
    }
}
