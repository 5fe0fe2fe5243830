//! What requests are told apart by: URL, cookies and fields, session.
//!
//! Owns the parts of keys; how they are joined so that they cannot run together is the key
//! builder's business. `Accept-Encoding` is in no part: one object holds all codings.

use http::cookies::{Cookies, php_name};
use http::message::Scheme;
use http::{Fields, Method, Name};

use crate::rules::gate::Environment;
use crate::rules::policy::{Policy, SessionRule};
use crate::rules::query;

/// A request as the rules see it.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'a> {
    /// The method.
    pub method: Method,
    /// Its fields.
    pub fields: &'a Fields,
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
    /// The client's address as text.
    pub address: &'a [u8],
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
pub fn url(out: &mut Vec<u8>, facts: &Facts<'_>, policy: &Policy) {
    url_of(out, facts, facts.target, policy);
}

/// Appends the URL part that a request for `target` on the same host would have: for purges.
pub fn url_of(out: &mut Vec<u8>, facts: &Facts<'_>, target: &[u8], policy: &Policy) {
    let scheme: &[u8] = match facts.scheme {
        Scheme::Http => b"http://",
        Scheme::Https => b"https://",
    };
    out.extend_from_slice(scheme);
    out.extend_from_slice(facts.host);
    out.push(b':');
    http::digits::push_decimal(out, facts.port.into());
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

/// One piece of the vary part of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VaryPart<'a> {
    /// A cookie with its value, or without it if the request has none.
    Cookie(&'a [u8], Option<&'a [u8]>),
    /// The value that rewrite rules or the answer set.
    Value(&'a [u8]),
}

impl VaryPart<'_> {
    /// Appends it as text: `name=value;`, `name;`, or the value.
    pub fn push(&self, out: &mut Vec<u8>) {
        match self {
            Self::Cookie(name, value) => {
                out.extend_from_slice(name);
                if let Some(value) = value {
                    out.push(b'=');
                    out.extend_from_slice(value);
                }
                out.push(b';');
            }
            Self::Value(value) => out.extend_from_slice(value),
        }
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
    policy: &'a Policy,
    environment: &'a Environment,
    cookies: &Cookies<'a>,
    value: Option<&'a [u8]>,
    mut take: impl FnMut(VaryPart<'a>),
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
            take(VaryPart::Cookie(name, Some(value)));
        }
        last = name;
    }
    let listed = policy.vary_cookies.iter().chain(&environment.vary_cookies);
    for name in listed.filter(|name| !name.starts_with(VARY_PREFIX)) {
        each_read_as(cookies, name, &mut take);
    }
    if let Some(value) = value.or(environment.vary_value.as_deref()) {
        take(VaryPart::Value(value));
    }
}

/// Whether it is a cookie of those that always count, or read as one.
fn is_own(name: &[u8]) -> bool {
    // PERF: almost no cookie begins so.
    matches!(name, [b'_' | b'.' | b'%' | b'[' | b'+', ..])
        && php_name(name).take(VARY_PREFIX.len()).eq(VARY_PREFIX.iter().copied())
}

/// All cookies that an application may read as `name`, or that there is none.
fn each_read_as<'a>(cookies: &Cookies<'a>, name: &'a [u8], take: &mut impl FnMut(VaryPart<'a>)) {
    let mut is_there = false;
    for (sent, value) in cookies.read_as(name) {
        is_there = true;
        take(VaryPart::Cookie(sent, Some(value)));
    }
    if !is_there {
        take(VaryPart::Cookie(name, None));
    }
}

/// What begins the name of a cookie among the names that a URL's answers depend on; no field's name
/// holds `=`.
pub(crate) const COOKIE: &[u8] = b"cookie=";

/// The name, among those, of the set of codings that a request takes: an answer in one of the
/// common codings is for all who take the same ones, however they say so.
pub(crate) const CODINGS: &[u8] = b"codings=";

/// Appends what tells a request apart by `name`, one of [`Decision::vary`](super::Decision::vary).
pub fn named<'a>(out: &mut Vec<u8>, name: &'a [u8], fields: &Fields, cookies: &Cookies<'a>) {
    if name == CODINGS {
        let lines = fields.all(Name::AcceptEncoding);
        // Who names a coding in one line and refuses it in another is told apart by both.
        for line in lines {
            out.push(http::negotiate::accepted(line).bits());
        }
        return;
    }
    match name.strip_prefix(COOKIE) {
        Some(cookie) => each_read_as(cookies, cookie, &mut |part: VaryPart<'a>| part.push(out)),
        None => http::vary::push_selecting(out, name, fields),
    }
}

/// Bytes of a value that can be a session's.
const SESSION_MIN: usize = 16;
/// Cookies known to name a session, the best first; `*` stands for any rest.
const SESSIONS: &[&[u8]] = &[
    b"lsc_private",
    b"xf_session",
    b"frontend",
    b"wp_woocommerce_session_*",
    b"wordpress_logged_in_*",
    b"PHPSESSID",
];
/// Cookies that name no session, beside those that begin with `__` or `_lscache_vary`.
const NO_SESSIONS: &[&[u8]] =
    &[b"has_js", b"wordpress_test_cookie", b"ls_smartpush", b"bb_forum_view"];

/// Appends what the private objects of a client are found by; whether it has a session at all. If
/// it has none, nothing is private to it.
pub fn session(
    out: &mut Vec<u8>,
    cookies: &Cookies<'_>,
    address: &[u8],
    rule: SessionRule,
) -> bool {
    let rank = |name: &[u8]| {
        SESSIONS.iter().position(|pattern| match pattern.strip_suffix(b"*") {
            Some(prefix) => {
                name.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix))
            }
            None => name.eq_ignore_ascii_case(pattern),
        })
    };
    let start = out.len();
    let known = cookies
        .iter()
        .filter(|pair| pair.1.len() >= SESSION_MIN)
        .filter_map(|pair| Some((rank(pair.0)?, pair)))
        .min_by_key(|ranked| ranked.0);
    match known {
        Some((_, (name, value))) => VaryPart::Cookie(name, Some(value)).push(out),
        None if rule.any_cookie => {
            let is_one = |name: &[u8]| {
                !name.starts_with(b"__")
                    && !name.starts_with(VARY_PREFIX)
                    && !NO_SESSIONS.contains(&name)
            };
            for (name, value) in cookies.iter().filter(|pair| is_one(pair.0)) {
                VaryPart::Cookie(name, Some(value)).push(out);
            }
        }
        None => {}
    }
    if out.len() == start {
        return false;
    }
    if rule.address {
        out.push(b'@');
        out.extend_from_slice(address);
    }
    true
}
