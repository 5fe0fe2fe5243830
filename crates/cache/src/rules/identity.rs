//! The parts of cache keys: URL, cookies and fields, session.
//!
//! The key builder joins the parts unambiguously. `Accept-Encoding` is in no part: one object has
//! all codings.

use bolide_http::cookies::{CookieUrl, Cookies, php_name};
use bolide_http::message::Scheme;
use bolide_http::{FieldMap, Method, Name};

use crate::rules::claims::{ForwardedClaim, claims};
use crate::rules::gate::Environment;
use crate::rules::policy::CachePolicy;
use crate::rules::query::{self, QueryRules};

/// A request as the rules see it.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'a> {
    /// The method.
    pub method: Method,
    /// Its fields.
    pub fields: &'a FieldMap,
    /// The scheme of the connection.
    pub scheme: Scheme,
    /// The requested host, in lower case, without port.
    pub host: &'a [u8],
    /// The port of the connection.
    pub port: u16,
    /// The first name of the server block.
    pub server: &'a [u8],
    /// Path and query as received, before any rewriting.
    pub target: &'a [u8],
    /// The host as the client wrote it, with its port if it has one.
    pub authority: &'a [u8],
    /// How the request reached its location; empty if the address alone determines it.
    pub arrival: &'a [u8],
    /// The variables of rewrite rules or of an ESI element.
    pub environment: &'a Environment,
}

impl<'a> Facts<'a> {
    /// The URL to which cookies may belong.
    #[must_use]
    pub fn cookie_url(&self) -> CookieUrl<'a> {
        CookieUrl { host: self.host, path: split_target(self.target).0 }
    }

    /// The query as received, without `?`.
    #[must_use]
    pub fn query(&self) -> &'a [u8] {
        split_target(self.target).1.unwrap_or_default()
    }
}

/// The path and the query; `/x?` has an empty one and is another URL than `/x` (RFC 3986 §6.2.3).
pub(super) fn split_target(target: &[u8]) -> (&[u8], Option<&[u8]>) {
    match memchr::memchr(b'?', target) {
        Some(at) => (&target[..at], Some(&target[at + 1..])),
        None => (target, None),
    }
}

/// Appends the URL part of a request's key: scheme, host, port, server, path and the relevant
/// query.
pub fn url(out: &mut Vec<u8>, facts: &Facts<'_>, policy: &CachePolicy) {
    url_of(out, facts, facts.target, policy);
}

/// Appends the URL part of a request for `target` on the same host.
pub fn url_of(out: &mut Vec<u8>, facts: &Facts<'_>, target: &[u8], policy: &CachePolicy) {
    push_origin(out, facts);
    push_target(out, target, [&policy.query, &facts.environment.query]);
}

/// Appends what the URL parts of keys begin with.
pub fn push_origin(out: &mut Vec<u8>, facts: &Facts<'_>) {
    let scheme: &[u8] = match facts.scheme {
        Scheme::Http => b"http://",
        Scheme::Https => b"https://",
    };
    out.extend_from_slice(scheme);
    out.extend_from_slice(facts.host);
    out.push(b':');
    bolide_http::digits::push_decimal(out, facts.port.into());
    if facts.server != facts.host {
        // No host or path contains a space.
        out.push(b' ');
        out.extend_from_slice(facts.server);
        out.push(b' ');
    }
}

/// Appends a path and the rest of its query after `rules`, of which the second may clear the first.
pub fn push_target(out: &mut Vec<u8>, target: &[u8], rules: [&QueryRules; 2]) {
    let (path, query) = split_target(target);
    out.extend_from_slice(path);
    query::push(out, query, rules);
}

/// Appends a query that the request got on its way, without the parameters that keys exclude.
pub fn query_of(out: &mut Vec<u8>, args: &[u8], policy: &CachePolicy, environment: &Environment) {
    let args = (!args.is_empty()).then_some(args);
    query::push(out, args, [&policy.query, &environment.query]);
}

/// A piece of the vary part of a key. Its first byte is its kind, so that a client cannot imitate
/// one kind by another.
#[derive(Clone, Copy, Debug)]
pub enum KeyPiece<'a> {
    /// The host as the client wrote it, unless it is a plain name in lower case.
    Host(&'a [u8]),
    /// A field about the requested address.
    Claim(ForwardedClaim<'a>),
    /// How the request reached its location.
    Arrival(&'a [u8]),
    /// A cookie with its value, or without one if the request does not have it.
    Cookie(&'a [u8], Option<&'a [u8]>),
    /// The vary value of rewrite rules or of the response.
    Value(&'a [u8]),
    /// The page that an ESI inline came with.
    Inline(&'a [u8]),
    /// A cookie `X-Magento-Vary`, as sent.
    MagentoVary(&'a [u8], &'a [u8]),
    /// What a GraphQL client says by this field, if it does.
    GraphQl(&'a [u8], Option<&'a [u8]>),
    /// The `No-Vary-Search` by which parameters were left out of the URL.
    Search(&'a [u8]),
    /// The one copy of a page with `no-vary`.
    Unvaried,
    /// A request that bypasses the stored copies.
    Past([u64; 2]),
}

/// The kinds whose pieces depend on the address only.
const OF_ADDRESS: &[u8] = b"hf";

impl KeyPiece<'_> {
    const fn kind(&self) -> u8 {
        match self {
            Self::Host(_) => b'h',
            Self::Claim(_) => b'f',
            Self::Arrival(_) => b'a',
            Self::Cookie(..) => b'c',
            Self::Value(_) => b'v',
            Self::Inline(_) => b'i',
            Self::MagentoVary(..) => b'm',
            Self::GraphQl(..) => b'g',
            Self::Search(_) => b'q',
            Self::Unvaried => b'u',
            Self::Past(_) => b'p',
        }
    }

    /// Appends kind and text; a cookie is `name=value;` or `name;`.
    pub fn push(&self, out: &mut Vec<u8>) {
        debug_assert!(
            OF_ADDRESS.contains(&self.kind()) == matches!(self, Self::Host(_) | Self::Claim(_)),
            "the kinds of the address are those that depend on it alone"
        );
        out.push(self.kind());
        match self {
            Self::Claim(claim) => claim.push(out),
            Self::Cookie(name, value) => {
                out.extend_from_slice(name);
                if let Some(value) = value {
                    out.push(b'=');
                    out.extend_from_slice(value);
                }
                out.push(b';');
            }
            Self::Host(text)
            | Self::Arrival(text)
            | Self::Value(text)
            | Self::Inline(text)
            | Self::Search(text) => {
                out.extend_from_slice(text);
            }
            Self::MagentoVary(name, value) | Self::GraphQl(name, Some(value)) => {
                out.extend_from_slice(name);
                out.push(b'=');
                out.extend_from_slice(value);
            }
            Self::GraphQl(name, None) => out.extend_from_slice(name),
            Self::Unvaried => {}
            Self::Past(id) => id.iter().for_each(|word| out.extend_from_slice(&word.to_le_bytes())),
        }
    }
}

/// The kinds of the pieces in the vary part of a key; none for what is no piece.
fn kinds(mut vary: &[u8]) -> impl Iterator<Item = Option<u8>> {
    std::iter::from_fn(move || {
        let (len, rest) = vary.split_first_chunk::<4>()?;
        let Some((piece, rest)) = rest.split_at_checked(u32::from_le_bytes(*len) as usize) else {
            vary = b"";
            return Some(None);
        };
        vary = rest;
        Some(piece.first().copied())
    })
}

/// Whether the vary part of a key depends on nothing but the address.
#[must_use]
pub fn is_of_address(vary: &[u8]) -> bool {
    kinds(vary).all(|kind| kind.is_some_and(|kind| OF_ADDRESS.contains(&kind)))
}

/// Whether the vary part of a key says that a `No-Vary-Search` left parameters out of the URL.
#[must_use]
pub fn is_narrowed(vary: &[u8]) -> bool {
    kinds(vary).any(|kind| kind == Some(KeyPiece::Search(b"").kind()))
}

/// Calls `take` with the pieces of every key of a page: what applications may use as the address,
/// and how the request reached its location.
pub fn of_address<'a>(facts: &Facts<'a>, mut take: impl FnMut(KeyPiece<'a>)) {
    // An application may build its links from these.
    if facts.authority != facts.host {
        take(KeyPiece::Host(facts.authority));
    }
    if let Some(field) = facts.fields.get(Name::Host)
        && field != facts.authority
    {
        take(KeyPiece::Host(field));
    }
    claims(facts.fields, |claim| take(KeyPiece::Claim(claim)));
    if !facts.arrival.is_empty() {
        take(KeyPiece::Arrival(facts.arrival));
    }
}

/// The name prefix of cookies that always belong to the key.
const VARY_PREFIX: &[u8] = b"_lscache_vary";
/// LIMIT: names of cookies that are sorted.
const SORTED_MAX: usize = 16;

/// Calls `take` with the pieces that are known before the response: the `_lscache_vary…` cookies of
/// the request, by name; the cookies of the configuration and rewrite rules, present or not, in
/// their order; the vary value (`value` instead of that of the rewrite rules). No pieces with
/// `no-vary` in the environment.
pub fn vary_base<'a>(
    policy: &'a CachePolicy,
    environment: &'a Environment,
    cookies: &Cookies<'a>,
    value: Option<&'a [u8]>,
    mut take: impl FnMut(KeyPiece<'a>),
) {
    if environment.control.no_vary {
        return;
    }
    by_name(cookies, is_own, |name, value| take(KeyPiece::Cookie(name, Some(value))));
    let listed = policy.vary_cookies.iter().chain(&environment.vary_cookies);
    for name in listed.filter(|name| !name.starts_with(VARY_PREFIX)) {
        each_read_as(cookies, name, &mut take);
    }
    if let Some(value) = value.or(environment.vary_value.as_deref()) {
        take(KeyPiece::Value(value));
    }
}

/// Calls `take` with the cookies that are `wanted`, in order of their names: the order in which a
/// client sends them means nothing. Those behind the first [`SORTED_MAX`] names come as they were
/// sent, so that a client cannot make this expensive.
fn by_name<'a>(
    cookies: &Cookies<'a>,
    wanted: impl Fn(&[u8]) -> bool,
    mut take: impl FnMut(&'a [u8], &'a [u8]),
) {
    let mut last: &[u8] = b"";
    for _ in 0..SORTED_MAX {
        // Without a list: each time the smallest name after the last one.
        let names = cookies.iter().map(|pair| pair.0);
        let Some(name) = names.filter(|name| *name > last && wanted(name)).min() else { return };
        for (_, value) in cookies.iter().filter(|pair| pair.0 == name) {
            take(name, value);
        }
        last = name;
    }
    for (name, value) in cookies.iter().filter(|pair| pair.0 > last && wanted(pair.0)) {
        take(name, value);
    }
}

/// Whether it is a cookie that always belongs to the key, or PHP reads it as one.
fn is_own(name: &[u8]) -> bool {
    // PERF: almost no cookie begins with these.
    matches!(name, [b'_' | b'.' | b'%' | b'[' | b'+', ..])
        && php_name(name).take(VARY_PREFIX.len()).eq(VARY_PREFIX.iter().copied())
}

/// All cookies that an application may read as `name`, or a piece without value.
fn each_read_as<'a>(cookies: &Cookies<'a>, name: &'a [u8], take: &mut impl FnMut(KeyPiece<'a>)) {
    let mut is_there = false;
    for (sent, value) in cookies.read_as(name) {
        is_there = true;
        take(KeyPiece::Cookie(sent, Some(value)));
    }
    if !is_there {
        take(KeyPiece::Cookie(name, None));
    }
}

/// The prefix of a cookie among the names that a URL varies by. No field name contains `=`.
pub(crate) const COOKIE: &[u8] = b"cookie=";

/// The name, among those, of the set of codings that a request accepts. A response in a common
/// coding is valid for all requests that accept the same codings, however they spell it.
pub(crate) const CODINGS: &[u8] = b"codings=";

/// The prefix of a field by whose value as sent the zones of nginx tell requests apart.
pub(crate) const SENT: &[u8] = b"sent=";

/// Appends the value of a request for `name`, one of
/// [`StoreDecision::vary`](super::StoreDecision::vary).
pub fn named<'a>(out: &mut Vec<u8>, name: &'a [u8], fields: &FieldMap, cookies: &Cookies<'a>) {
    if name == CODINGS {
        out.push(b'e');
        let lines = fields.all(Name::AcceptEncoding);
        // A coding may be accepted in one line and refused in another, so every line counts.
        for line in lines {
            out.push(bolide_http::negotiate::accepted(line).bits());
        }
        return;
    }
    if let Some(field) = name.strip_prefix(SENT) {
        debug_assert!(!field.is_empty(), "`Vary` names no field without a name");
        out.push(b's');
        push_sent(out, field, fields);
        return;
    }
    match name.strip_prefix(COOKIE) {
        Some(cookie) => each_read_as(cookies, cookie, &mut |part: KeyPiece<'a>| part.push(out)),
        None => {
            out.push(b'n');
            bolide_http::vary::push_selecting(out, name, fields);
        }
    }
}

/// Appends the name and the value of a field as nginx compares it: byte by byte, its lines joined
/// by commas. Of three lists only the words count. A field that is absent is like an empty one.
fn push_sent(out: &mut Vec<u8>, name: &[u8], fields: &FieldMap) {
    let is_list = matches!(name, b"accept-charset" | b"accept-encoding" | b"accept-language");
    out.extend_from_slice(name);
    out.push(b':');
    let mut is_first = true;
    let mut push = |word: &[u8]| {
        if !std::mem::take(&mut is_first) {
            out.push(b',');
        }
        out.extend_from_slice(word);
    };
    for line in fields.all_text(name) {
        if is_list {
            let words = line.split(|byte| b", ".contains(byte));
            words.filter(|word| !word.is_empty()).for_each(&mut push);
        } else {
            push(line);
        }
    }
}

/// LIMIT: bytes of a session cookie's value, at least; shorter values can be guessed.
const SESSION_MIN: usize = 16;
/// The name prefix of login cookies, which belong to every session.
const LOGINS: &[u8] = b"wordpress_logged_in_";

/// Appends the key of a client's private objects: every cookie that `is_session` knows, and login
/// cookies of any length. Returns whether it has a session: a known cookie with a value that is
/// long enough. Without a session it appends nothing.
pub fn session(
    out: &mut Vec<u8>,
    cookies: &Cookies<'_>,
    is_session: impl Fn(&[u8]) -> bool,
) -> bool {
    let start = out.len();
    let mut is_one = false;
    let is_login = |name: &[u8]| php_name(name).take(LOGINS.len()).eq(LOGINS.iter().copied());
    by_name(
        cookies,
        |name| is_session(name) || is_login(name),
        |name, value| {
            is_one |= value.len() >= SESSION_MIN && is_session(name);
            KeyPiece::Cookie(name, Some(value)).push(out);
        },
    );
    if !is_one {
        out.truncate(start);
    }
    debug_assert_eq!(is_one, out.len() > start, "a session has a key, and no session has none");
    is_one
}
