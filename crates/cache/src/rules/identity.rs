//! What requests are told apart by: URL, cookies and fields, session.
//!
//! Owns the parts of keys; how they are joined so that they cannot run together is the key
//! builder's business. `Accept-Encoding` is in no part: one object holds all codings.

use bolide_http::cookies::{Cookies, php_name};
use bolide_http::message::Scheme;
use bolide_http::{FieldMap, Method, Name};

use crate::rules::claims::{ForwardedClaim, claims};
use crate::rules::gate::Environment;
use crate::rules::policy::CachePolicy;
use crate::rules::query;

/// A request as the rules see it.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'a> {
    /// The method.
    pub method: Method,
    /// Its fields.
    pub fields: &'a FieldMap,
    /// How it came.
    pub scheme: Scheme,
    /// The host that it is for, in lower case, without port.
    pub host: &'a [u8],
    /// The port that it came to.
    pub port: u16,
    /// The first name of the server that answers.
    pub server: &'a [u8],
    /// Path and query as the client sent them, before any rewriting.
    pub target: &'a [u8],
    /// The host as the client wrote it, with its port if there was one.
    pub authority: &'a [u8],
    /// How the request arrived where it is answered; empty where the address alone decides that.
    pub arrival: &'a [u8],
    /// What rewrite rules or an ESI element said.
    pub environment: &'a Environment,
}

impl<'a> Facts<'a> {
    /// The query as sent, without `?`.
    #[must_use]
    pub fn query(&self) -> &'a [u8] {
        split_target(self.target).1
    }
}

fn split_target(target: &[u8]) -> (&[u8], &[u8]) {
    match memchr::memchr(b'?', target) {
        Some(at) => (&target[..at], &target[at + 1..]),
        None => (target, &[]),
    }
}

/// Appends the URL part of the key of a request: scheme, host, port, server, path and what the
/// rules leave of the query.
pub fn url(out: &mut Vec<u8>, facts: &Facts<'_>, policy: &CachePolicy) {
    url_of(out, facts, facts.target, policy);
}

/// Appends the URL part that a request for `target` on the same host would have: for purges.
pub fn url_of(out: &mut Vec<u8>, facts: &Facts<'_>, target: &[u8], policy: &CachePolicy) {
    let scheme: &[u8] = match facts.scheme {
        Scheme::Http => b"http://",
        Scheme::Https => b"https://",
    };
    out.extend_from_slice(scheme);
    out.extend_from_slice(facts.host);
    out.push(b':');
    bolide_http::digits::push_decimal(out, facts.port.into());
    if facts.server != facts.host {
        // A blank stands in no host and no path.
        out.push(b' ');
        out.extend_from_slice(facts.server);
        out.push(b' ');
    }
    let (path, query) = split_target(target);
    out.extend_from_slice(path);
    query::push(out, query, [&policy.query, &facts.environment.query]);
}

/// One piece of the vary part of a key. Its first byte says of which kind it is, so that a client
/// cannot write one kind of piece by means of another.
#[derive(Clone, Copy, Debug)]
pub enum KeyPiece<'a> {
    /// The host as the client wrote it, where that is more than a name in lower case.
    Host(&'a [u8]),
    /// What the client claims about the address.
    Claim(ForwardedClaim<'a>),
    /// How the request arrived where it is answered.
    Arrival(&'a [u8]),
    /// A cookie with its value, or without it if the request has none.
    Cookie(&'a [u8], Option<&'a [u8]>),
    /// The value that rewrite rules or the answer set.
    Value(&'a [u8]),
    /// The page that an inline of ESI came with.
    Inline(&'a [u8]),
    /// The one copy of a page that says `no-vary`.
    Unvaried,
    /// A request that asks past what is kept.
    Past([u64; 2]),
}

/// The kinds whose pieces say no more than the address does.
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
            Self::Unvaried => b'u',
            Self::Past(_) => b'p',
        }
    }

    /// Appends its kind and its text; of a cookie that is `name=value;` or `name;`.
    pub fn push(&self, out: &mut Vec<u8>) {
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
            Self::Host(text) | Self::Arrival(text) | Self::Value(text) | Self::Inline(text) => {
                out.extend_from_slice(text);
            }
            Self::Unvaried => {}
            Self::Past(id) => id.iter().for_each(|word| out.extend_from_slice(&word.to_le_bytes())),
        }
    }
}

/// Whether the vary part of a key tells its requests apart by nothing but the address.
#[must_use]
pub fn is_of_address(mut vary: &[u8]) -> bool {
    while let Some((len, rest)) = vary.split_first_chunk::<4>() {
        let Some((piece, rest)) = rest.split_at_checked(u32::from_le_bytes(*len) as usize) else {
            return false;
        };
        if !piece.first().is_some_and(|kind| OF_ADDRESS.contains(kind)) {
            return false;
        }
        vary = rest;
    }
    true
}

/// Calls `take` with the pieces that belong to every key of a page: what applications may take for
/// the address, and how the request arrived.
pub fn of_address<'a>(facts: &Facts<'a>, mut take: impl FnMut(KeyPiece<'a>)) {
    // An application may build its links from what it sees.
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

/// Cookies whose names begin so are always vary cookies.
const VARY_PREFIX: &[u8] = b"_lscache_vary";
/// LIMIT: such cookies of one request; further ones do not count.
const VARY_OWN_MAX: usize = 16;

/// Calls `take` with the pieces that are known before an answer is: the cookies `_lscache_vary…`
/// that are there, by name; those that the configuration and rewrite rules name, there or not, in
/// their order; the vary value (`value` in place of the rewrite rules').
/// Nothing at all if the environment says `no-vary`.
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
    // By name without a list of them: each time the first name behind the last one.
    let own = |last: &[u8]| {
        let names = cookies.iter().map(|pair| pair.0);
        names.filter(|name| *name > last && is_own(name)).min()
    };
    let mut last: &[u8] = b"";
    for _ in 0..VARY_OWN_MAX {
        let Some(name) = own(last) else { break };
        for (_, value) in cookies.iter().filter(|pair| pair.0 == name) {
            take(KeyPiece::Cookie(name, Some(value)));
        }
        last = name;
    }
    let listed = policy.vary_cookies.iter().chain(&environment.vary_cookies);
    for name in listed.filter(|name| !name.starts_with(VARY_PREFIX)) {
        each_read_as(cookies, name, &mut take);
    }
    if let Some(value) = value.or(environment.vary_value.as_deref()) {
        take(KeyPiece::Value(value));
    }
}

/// Whether it is a cookie of those that always count, or read as one.
fn is_own(name: &[u8]) -> bool {
    // PERF: almost no cookie begins so.
    matches!(name, [b'_' | b'.' | b'%' | b'[' | b'+', ..])
        && php_name(name).take(VARY_PREFIX.len()).eq(VARY_PREFIX.iter().copied())
}

/// All cookies that an application may read as `name`, or that there is none.
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

/// What begins the name of a cookie among the names that a URL's answers depend on; no field's name
/// holds `=`.
pub(crate) const COOKIE: &[u8] = b"cookie=";

/// The name, among those, of the set of codings that a request takes: an answer in one of the
/// common codings is for all who take the same ones, however they say so.
pub(crate) const CODINGS: &[u8] = b"codings=";

/// Appends what tells a request apart by `name`, one of [`Decision::vary`](super::Decision::vary).
pub fn named<'a>(out: &mut Vec<u8>, name: &'a [u8], fields: &FieldMap, cookies: &Cookies<'a>) {
    if name == CODINGS {
        out.push(b'e');
        let lines = fields.all(Name::AcceptEncoding);
        // Who names a coding in one line and refuses it in another is told apart by both.
        for line in lines {
            out.push(bolide_http::negotiate::accepted(line).bits());
        }
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

/// LIMIT: bytes that the value of a cookie has at least which makes a session; shorter ones can be
/// guessed.
const SESSION_MIN: usize = 16;
/// Cookies that say who is logged in: they belong to every session.
const LOGINS: &[u8] = b"wordpress_logged_in_";

/// Appends what the private objects of a client are found by: every cookie that `is_session` knows,
/// and those of a log-in, whatever their length. Whether it has a session at all: one of those that
/// are known has a value long enough. If it has none, nothing is private to it.
pub fn session(
    out: &mut Vec<u8>,
    cookies: &Cookies<'_>,
    is_session: impl Fn(&[u8]) -> bool,
) -> bool {
    let start = out.len();
    let mut is_one = false;
    for (name, value) in cookies.iter() {
        let is_known = is_session(name);
        if is_known || php_name(name).take(LOGINS.len()).eq(LOGINS.iter().copied()) {
            is_one |= is_known && value.len() >= SESSION_MIN;
            KeyPiece::Cookie(name, Some(value)).push(out);
        }
    }
    if !is_one {
        out.truncate(start);
    }
    is_one
}
