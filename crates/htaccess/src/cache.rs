//! LiteSpeed's directives and variables for the page cache.
//!
//! Collects their words and keeps them from round to round; the caller interprets them.

mod parse;

use std::borrow::Cow;

use bolide_http::lscache::LsCacheControl;

pub(crate) use parse::{engine, key_modify, litemage, lookup, prefix, time};

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
    /// `CacheEngine off`
    Off,
    /// `CacheMaxExpire`
    LifetimeMax(u32),
    /// `CacheStaleAge`
    StaleMax(u32),
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

/// The words of cache control that are no permission; those of [`PERMISSIONS`] are words, too.
const CONTROL_WORDS: [&[u8]; 9] = [
    b"no-cache",
    b"no-store",
    b"private",
    b"no-autoflush",
    b"set-blank",
    b"reload-after",
    b"esi=",
    b"vary=",
    b"flush",
];

/// Words of cache control that permit more than is permitted without them.
const PERMISSIONS: [&[u8]; 6] =
    [b"max-age", b"s-maxage", b"max-stale", b"public", b"shared", b"no-vary"];

impl CacheVariable {
    /// Whether its value may have this word, after a comma.
    pub(crate) fn has_word(self, word: &[u8]) -> bool {
        match self {
            Self::Control => permits(word) || begins_with_one(word, &CONTROL_WORDS),
            Self::Key => begins_with_one(word, &[b"-qs:"]) || word.eq_ignore_ascii_case(b"clear"),
            Self::Cookies | Self::CookieList => !word.is_empty(),
            Self::Switch | Self::Value => false,
        }
    }
}

/// The orders for the cache about one request. Those of rules accumulate over all rounds; of
/// directives the last one of a round counts, but `CacheKeyModify` is that of the client's path.
///
/// A round cannot take back what an earlier one forbade, and a variable that permits more counts
/// only if it is set for the path that the client sent: `/index.php` is not `/admin`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CacheOrders {
    control: Vec<u8>,
    /// What the control of earlier rounds forbids.
    forbidden: LsCacheControl,
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
    /// The lookups that earlier rounds forbid.
    no_lookup: [bool; 2],
    /// Those of each round.
    prefixes: Vec<Vec<CachePrefix>>,
    /// Whether a round with directives for prefixes is to begin a list of its own.
    begins_prefixes: bool,
    litemage: Option<bool>,
    /// The longest lifetime in seconds, and the longest time that a stale page is sent.
    lifetime_max: Option<u32>,
    stale_max: Option<u32>,
    /// Whether the path of the round is not that of the client's request.
    is_elsewhere: bool,
    /// Whether a round went through all rules for the client's path.
    is_concluded: bool,
    /// Whether a variable permits more, or would for another path.
    is_widened: bool,
}

impl CacheOrders {
    /// Words of cache control, separated by commas.
    #[must_use]
    pub fn control(&self) -> Cow<'_, [u8]> {
        let LsCacheControl { no_cache, no_store, private, .. } = self.forbidden;
        if !no_cache && !no_store && !private {
            return Cow::Borrowed(&self.control);
        }
        let mut control = self.control.clone();
        let all = [(no_cache, &b"no-cache"[..]), (no_store, b"no-store"), (private, b"private")];
        for (_, word) in all.into_iter().filter(|(is_said, _)| *is_said) {
            append(&mut control, word);
        }
        Cow::Owned(control)
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
        let prefixes = self.prefixes.iter().flatten();
        let prefixes = prefixes.map(|prefix| prefix.path.len() + size_of_val(prefix));
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

    /// The paths below which pages are cached or not, a list for each round: the last match of each
    /// counts, and one list is enough to forbid.
    pub fn prefixes(&self) -> impl Iterator<Item = &[CachePrefix]> {
        self.prefixes.iter().map(|list| &list[..])
    }

    /// Whether it depends on whether the round's path is that of the client's request.
    #[must_use]
    pub const fn asks_whether_path_is_asked(&self) -> bool {
        self.is_widened
    }

    /// Whether the round's path is that of the client's request.
    #[must_use]
    pub const fn is_of_asked_path(&self) -> bool {
        !self.is_elsewhere
    }

    /// The longest lifetime of a page in seconds, and the longest time that it is sent while it is
    /// stale.
    #[must_use]
    pub const fn times_max(&self) -> [Option<u32>; 2] {
        [self.lifetime_max, self.stale_max]
    }

    /// The value of `LiteMage`, if it is given.
    #[must_use]
    pub const fn litemage(&self) -> Option<bool> {
        self.litemage
    }

    /// The vary value. It includes that of earlier rounds: an inner round cannot join pages that an
    /// outer one separates.
    #[must_use]
    pub fn vary_value(&self) -> Cow<'_, [u8]> {
        let (earlier, value) = (&self.earlier, &self.value);
        // `vary=%{ENV:LSCACHE_VARY_VALUE}+more` continues the earlier value; others follow it.
        let rest = value.strip_prefix(&earlier[..]);
        match (&earlier[..], &value[..]) {
            (b"", value) | (value, b"") => Cow::Borrowed(value),
            (_, value) if rest.is_some_and(|it| it.is_empty() || it[0] == b'+') => {
                Cow::Borrowed(value)
            }
            (earlier, value) => Cow::Owned([earlier, &[0], value].concat()),
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
        let Self { is_elsewhere, is_concluded, is_widened, begins_prefixes, .. } = *self;
        let empty = Self::default();
        *self == Self { is_elsewhere, is_concluded, is_widened, begins_prefixes, ..empty }
    }

    /// Whether all rules were evaluated for the path of the client's request.
    #[must_use]
    pub const fn is_concluded(&self) -> bool {
        self.is_concluded
    }

    /// A round is over that went through all rules.
    pub(crate) const fn conclude(&mut self) {
        self.is_concluded |= !self.is_elsewhere;
    }

    /// The cache is off for the request.
    pub(crate) const fn turn_off(&mut self) {
        self.is_off = true;
    }

    /// Begins another round.
    pub(crate) fn enter_round(&mut self, is_sent_path: bool) {
        self.is_elsewhere = !is_sent_path;
        let said = LsCacheControl::of(&self.control());
        self.forbidden.no_cache = said.no_cache;
        self.forbidden.no_store = said.no_store;
        self.forbidden.private = said.private;
        for (no, said) in self.no_lookup.iter_mut().zip(self.lookup) {
            *no |= said == Some(false);
        }
        self.begins_prefixes = true;
        self.is_widened = false;
        if !self.value.is_empty() {
            self.earlier = self.vary_value().into_owned();
            self.value.clear();
        }
        debug_assert!(self.value.is_empty(), "a round makes its own value");
    }

    /// Whether a variable that permits more counts; `is_for_sent_path` if a condition is about the
    /// path that the client sent. Such a condition cannot replace the rules for that path, which
    /// may have ended before it.
    const fn widens(&mut self, is_for_sent_path: bool) -> bool {
        self.is_widened = true;
        !self.is_elsewhere || is_for_sent_path && !self.is_concluded
    }

    /// Applies an assignment of a variable.
    pub(crate) fn hear(&mut self, variable: CacheVariable, value: &[u8], is_for_sent_path: bool) {
        let words = value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii);
        let words = words.filter(|word| !word.is_empty());
        match variable {
            CacheVariable::Control => {
                for word in words {
                    match word.split_at_checked(5) {
                        Some((start, token)) if start.eq_ignore_ascii_case(b"vary=") => {
                            self.set_value(token);
                        }
                        _ if permits(word) && !self.widens(is_for_sent_path) => {}
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
            CacheVariable::Key => {
                for word in words {
                    if word.eq_ignore_ascii_case(b"clear") || self.widens(is_for_sent_path) {
                        self.is_off |= !add(&mut self.key, word);
                    }
                }
            }
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
                CacheLine::Prefix(prefix) => self.add_prefix(prefix),
                CacheLine::Key(_) if keeps_key => {}
                CacheLine::Key(word) => self.is_off |= !add(&mut self.key, word),
                CacheLine::LiteMage(on) => self.litemage = Some(*on),
                CacheLine::Off => self.is_off = true,
                CacheLine::LifetimeMax(max) => lower(&mut self.lifetime_max, *max),
                CacheLine::StaleMax(max) => lower(&mut self.stale_max, *max),
            }
        }
        for (said, no) in self.lookup.iter_mut().zip(self.no_lookup) {
            *said = if no { Some(false) } else { *said };
        }
        // The same files say the same in each round.
        if let [earlier @ .., last] = &self.prefixes[..]
            && earlier.contains(last)
        {
            self.prefixes.pop();
        }
    }

    fn add_prefix(&mut self, prefix: &CachePrefix) {
        if std::mem::take(&mut self.begins_prefixes) || self.prefixes.is_empty() {
            self.prefixes.push(Vec::new());
        }
        let count = self.prefixes.iter().map(Vec::len).sum::<usize>();
        if let Some(own) = self.prefixes.last_mut() {
            own.retain(|known| known != prefix);
            match count < DIRECTIVES_MAX {
                true => own.push(prefix.clone()),
                false => self.is_off = true,
            }
        }
    }
}

/// Lowers a limit.
fn lower(limit: &mut Option<u32>, to: u32) {
    *limit = Some(limit.map_or(to, |limit| limit.min(to)));
}

/// Whether a word of cache control permits more than is permitted without it.
fn permits(word: &[u8]) -> bool {
    begins_with_one(word, &PERMISSIONS)
}

/// Whether a word begins with one of these: as in the protocol, a word counts by its beginning.
fn begins_with_one(word: &[u8], all: &[&[u8]]) -> bool {
    let begins = |known: &&[u8]| {
        word.get(..known.len()).is_some_and(|start| start.eq_ignore_ascii_case(known))
    };
    all.iter().any(begins)
}

fn append(text: &mut Vec<u8>, word: &[u8]) {
    if !text.is_empty() {
        text.push(b',');
    }
    text.extend_from_slice(word);
}

/// Adds a word; returns whether there was room.
fn add(text: &mut Vec<u8>, word: &[u8]) -> bool {
    let has_room = text.len() + word.len() < TEXT_MAX;
    if has_room {
        append(text, word);
    }
    has_room
}

#[cfg(test)]
mod tests;
