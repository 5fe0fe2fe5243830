//! The LSCache protocol: the cache control that an application sends in `X-LiteSpeed-*`.
//!
//! Owns the grammar of cache control, tags, purges and vary; decides nothing and stores nothing.
//! Parsing is lenient, as LSCache applications expect: unknown words are skipped. The easiest rule
//! to break: `max-age` implies public and cancels an earlier `no-cache`, while `private` stays, and
//! a later `no-cache` wins.

use crate::cache_control::{SECONDS_MAX, seconds};

/// The audience of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CacheScope {
    /// All clients.
    Public,
    /// One session.
    Private,
}

/// Cache control as it accumulates over configuration, request and response.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LsCacheControl {
    /// `no-cache`
    pub no_cache: bool,
    /// `no-store`
    pub no_store: bool,
    /// `public`, or implied by an age.
    pub public: bool,
    /// `public`
    pub says_public: bool,
    /// `private`; it takes precedence over `public`.
    pub private: bool,
    /// `shared`: a private object that its tag finds.
    pub shared: bool,
    /// `no-vary`: one copy for all cookies.
    pub no_vary: bool,
    /// `no-autoflush`: a POST leaves the session's objects alone.
    pub no_autoflush: bool,
    /// `set-blank`
    pub set_blank: bool,
    /// `reload-after`
    pub reload_after: bool,
    /// `esi=on` or `esi=off`.
    pub esi: Option<bool>,
    /// `max-age` in seconds.
    pub max_age: Option<u32>,
    /// `s-maxage` in seconds; wins over `max-age` in any position.
    pub s_maxage: Option<u32>,
    /// `max-stale`: seconds that a stale object may be sent while it is refreshed.
    pub max_stale: Option<u32>,
}

impl LsCacheControl {
    /// Adds the words of one line to those of earlier lines.
    pub fn add(&mut self, line: &[u8]) {
        for word in line.split(|&byte| byte == b',').map(<[u8]>::trim_ascii) {
            self.word(word);
        }
    }

    /// The words of one line alone.
    #[must_use]
    pub fn of(line: &[u8]) -> Self {
        let mut control = Self::default();
        control.add(line);
        control
    }

    fn word(&mut self, word: &[u8]) {
        if let Some(argument) = after(word, b"max-age=") {
            self.age(argument, Age::Any);
        } else if let Some(argument) = after(word, b"s-maxage=") {
            self.age(argument, Age::Shared);
        } else if let Some(argument) = after(word, b"max-stale=") {
            self.max_stale = leading_seconds(argument).or(self.max_stale);
        } else if let Some(argument) = after(word, b"esi=") {
            self.esi = match argument {
                _ if after(argument, b"on").is_some() => Some(true),
                _ if after(argument, b"off").is_some() => Some(false),
                _ => self.esi,
            };
        } else if let Some(&(_, flag)) = FLAGS.iter().find(|row| after(word, row.0).is_some()) {
            self.flag(flag);
        }
    }

    const fn flag(&mut self, flag: Flag) {
        match flag {
            Flag::NoCache => self.no_cache = true,
            Flag::NoStore => self.no_store = true,
            Flag::Public => {
                (self.public, self.says_public) = (true, true);
                self.private = false;
            }
            Flag::Private => self.private = true,
            Flag::Shared => self.shared = true,
            Flag::NoVary => self.no_vary = true,
            Flag::NoAutoflush => self.no_autoflush = true,
            Flag::SetBlank => self.set_blank = true,
            Flag::ReloadAfter => self.reload_after = true,
        }
    }

    fn age(&mut self, argument: &[u8], age: Age) {
        let Some(seconds) = leading_seconds(argument) else { return };
        match age {
            Age::Any => self.max_age = Some(seconds),
            Age::Shared => self.s_maxage = Some(seconds),
        }
        self.public = true;
        self.no_cache = false;
        self.no_store = false;
    }

    /// The freshness lifetime of an object in seconds.
    #[must_use]
    pub const fn lifetime(&self) -> Option<u32> {
        match self.s_maxage {
            Some(seconds) => Some(seconds),
            None => self.max_age,
        }
    }

    /// Whether the response may be stored, and for which audience: private takes precedence.
    #[must_use]
    pub const fn scope(&self) -> Option<CacheScope> {
        if self.no_cache || self.no_store {
            None
        } else if self.private || self.shared {
            Some(CacheScope::Private)
        } else if self.public {
            Some(CacheScope::Public)
        } else {
            None
        }
    }
}

#[derive(Clone, Copy)]
enum Age {
    Any,
    Shared,
}

#[derive(Clone, Copy)]
enum Flag {
    NoCache,
    NoStore,
    Public,
    Private,
    Shared,
    NoVary,
    NoAutoflush,
    SetBlank,
    ReloadAfter,
}

/// Words without argument; a longer word with such a prefix counts as the word.
const FLAGS: &[(&[u8], Flag)] = &[
    (b"no-cache", Flag::NoCache),
    (b"no-store", Flag::NoStore),
    (b"public", Flag::Public),
    (b"private", Flag::Private),
    (b"shared", Flag::Shared),
    (b"no-vary", Flag::NoVary),
    (b"no-autoflush", Flag::NoAutoflush),
    (b"set-blank", Flag::SetBlank),
    (b"reload-after", Flag::ReloadAfter),
];

/// The text after `prefix`, compared case-insensitively.
fn after<'a>(text: &'a [u8], prefix: &[u8]) -> Option<&'a [u8]> {
    let (start, rest) = text.split_at_checked(prefix.len())?;
    start.eq_ignore_ascii_case(prefix).then_some(rest)
}

/// The number at the beginning of the text.
fn leading_seconds(text: &[u8]) -> Option<u32> {
    let text = text.trim_ascii_start();
    let text = text.strip_prefix(b"\"").unwrap_or(text);
    let end = text.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(text.len());
    seconds(&text[..end]).map(|number| number.min(SECONDS_MAX))
}

/// A tag of `X-LiteSpeed-Tag`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LsTag<'a> {
    /// The purges that apply to it: public ones if it has the word or is in a public object.
    pub scope: CacheScope,
    /// The tag; it may be empty.
    pub text: &'a [u8],
}

/// The tags of one line, in an object of `scope`.
pub fn tags(line: &[u8], scope: CacheScope) -> impl Iterator<Item = LsTag<'_>> {
    line.split(|&byte| byte == b',').map(move |tag| {
        let tag = tag.trim_ascii();
        match after(tag, b"public:") {
            Some(text) => LsTag { scope: CacheScope::Public, text: text.trim_ascii() },
            None => LsTag { scope, text: tag },
        }
    })
}

/// The effect of a purge on the objects that it finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PurgeEffect {
    /// They are gone.
    Dead,
    /// They are served stale while they are refreshed.
    Stale,
}

/// The target of a purge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LsTarget<'a> {
    /// `*`: all objects of the scope.
    All,
    /// Objects with this tag.
    Tag(&'a [u8]),
    /// Objects with a tag of this prefix (`abc*`).
    Prefix(&'a [u8]),
    /// Objects of this path and query, in all variants.
    Url(&'a [u8]),
}

/// One purge of `X-LiteSpeed-Purge`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LsPurge<'a> {
    /// Which objects: public ones, or those of the requesting session.
    pub scope: CacheScope,
    /// The effect on them.
    pub effect: PurgeEffect,
    /// Which they are.
    pub target: LsTarget<'a>,
}

/// Calls `take` with each purge of a line of `X-LiteSpeed-Purge` or `-Purge2`.
pub fn purges<'a>(line: &'a [u8], mut take: impl FnMut(LsPurge<'a>)) {
    for section in line.split(|&byte| byte == b';') {
        let mut rest = section.trim_ascii();
        let scope = if let Some(tail) = takes_word(rest, b"private") {
            rest = tail;
            CacheScope::Private
        } else {
            rest = takes_word(rest, b"public").unwrap_or(rest);
            CacheScope::Public
        };
        let stale = takes_word(rest, b"stale");
        rest = stale.unwrap_or(rest);
        let effect = if stale.is_some() { PurgeEffect::Stale } else { PurgeEffect::Dead };
        while !rest.is_empty() {
            // A URL may contain commas: it is the rest of its section.
            let end = memchr::memchr(b',', rest).filter(|_| !rest.starts_with(b"/"));
            let (target, tail) = match end {
                Some(at) => (&rest[..at], &rest[at + 1..]),
                None => (rest, &[][..]),
            };
            rest = tail.trim_ascii_start();
            if let Some((target, suffix)) = purge_target(target.trim_ascii()) {
                take(LsPurge { scope, effect: suffix.unwrap_or(effect), target });
            }
        }
    }
}

/// The rest after `word` and a comma.
fn takes_word<'a>(text: &'a [u8], word: &[u8]) -> Option<&'a [u8]> {
    let rest = after(text, word)?.trim_ascii_start().strip_prefix(b",")?;
    Some(rest.trim_ascii_start())
}

fn purge_target(text: &[u8]) -> Option<(LsTarget<'_>, Option<PurgeEffect>)> {
    let named = after(text, b"tag=");
    let (text, suffix) = match text.strip_suffix(b"~s").or(text.strip_suffix(b"~stale")) {
        Some(shorter) => (shorter, Some(PurgeEffect::Stale)),
        None => (text, None),
    };
    let tag = after(text, b"tag=").unwrap_or(text).trim_ascii();
    let target = match tag {
        b"*" => LsTarget::All,
        // An empty tag needs the explicit form.
        b"" if named.is_none() => return None,
        _ if named.is_none() && tag.starts_with(b"/") => LsTarget::Url(tag),
        [prefix @ .., b'*'] => LsTarget::Prefix(prefix),
        _ => LsTarget::Tag(tag),
    };
    Some((target, suffix))
}

/// One word of `X-LiteSpeed-Vary`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LsVary<'a> {
    /// `cookie=NAME`: the response depends on this cookie.
    Cookie(&'a [u8]),
    /// `value=TOKEN`: replaces the value that distinguishes copies.
    Value(&'a [u8]),
}

/// The words of one line of `X-LiteSpeed-Vary`.
pub fn varies(line: &[u8]) -> impl Iterator<Item = LsVary<'_>> {
    line.split(|&byte| byte == b',').map(<[u8]>::trim_ascii).filter_map(|word| {
        let cookie = after(word, b"cookie=").map(<[u8]>::trim_ascii);
        match cookie {
            Some(b"") => None,
            Some(name) => Some(LsVary::Cookie(name)),
            None => after(word, b"value=").map(|value| LsVary::Value(value.trim_ascii())),
        }
    })
}

#[cfg(test)]
mod tests;
