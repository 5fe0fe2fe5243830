//! Random visitors, their cookies and requests, and other events on a site.
//!
//! Every request is valid for its framing.

use std::fmt::Write as _;

use super::site::SESSIONS;
use super::{AudienceSite, Dice};

/// The values of the cookie `member`.
pub(super) const MEMBERS: [&str; 2] = ["member-alice", "member-bob"];
/// Session identifiers; several visitors may use the same one.
const SECRETS: [&str; 3] = [
    "0123456789abcdef0123456789abcdef",
    "fedcba9876543210fedcba9876543210",
    "00112233445566778899aabbccddeeff",
];
/// Names and passwords for `Authorization`.
const LOGINS: [&str; 2] = ["Basic YWxpY2U6c2VjcmV0", "Basic Ym9iOnNlY3JldA=="];

/// An event.
#[derive(Clone, Debug)]
pub enum VisitorAct {
    /// One request, or several concurrent ones.
    Ask(Vec<VisitorAsk>),
    /// This many seconds pass.
    Wait(u64),
    /// The configuration changes.
    Reload,
    /// The server is killed and started again.
    Crash,
}

/// A request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VisitorAsk {
    /// The method.
    pub method: &'static str,
    /// The target in the request line.
    pub target: String,
    /// The Host field.
    pub host: String,
    /// The other fields.
    pub fields: Vec<(&'static str, String)>,
    /// Whether the client sends the validators that it has.
    pub(super) revisits: bool,
}

impl VisitorAsk {
    /// The request as HTTP/1.1 text.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text =
            format!("{} {} HTTP/1.1\r\nHost: {}\r\n", self.method, self.target, self.host);
        for (name, value) in &self.fields {
            let _ = write!(text, "{name}: {value}\r\n");
        }
        if self.method == "POST" {
            text.push_str("Content-Length: 0\r\n");
        }
        text.push_str("\r\n");
        text
    }

    /// The same request without ranges and conditions.
    #[must_use]
    pub fn plain(&self) -> Self {
        let mut ask = self.clone();
        let shapes = ["Range", "If-None-Match", "Accept-Encoding", "Cache-Control"];
        ask.fields.retain(|(name, _)| !shapes.contains(name));
        ask
    }

    /// Whether the response has no body.
    #[must_use]
    pub fn is_head(&self) -> bool {
        self.method == "HEAD"
    }

    /// The value of a field.
    pub(super) fn field(&self, wanted: &str) -> Option<&str> {
        self.fields.iter().find(|(name, _)| *name == wanted).map(|(_, value)| &**value)
    }

    /// The host as purges use it, and path with query.
    pub(super) fn address(&self) -> (String, &str) {
        let (host, path) = match self.target.strip_prefix("http://") {
            Some(rest) => rest.split_at(rest.find('/').unwrap_or(rest.len())),
            None => (&*self.host, &*self.target),
        };
        (host.to_ascii_lowercase(), path)
    }
}

/// A visitor who returns.
#[derive(Clone, Debug)]
struct Visitor {
    cookies: Vec<(String, String)>,
    fields: Vec<(&'static str, String)>,
}

impl Visitor {
    fn any(site: &AudienceSite, dice: &mut Dice) -> Self {
        let mut cookies: Vec<(String, String)> = Vec::new();
        let mut fields = Vec::new();
        if dice.one_in(3) {
            cookies.push(("role".to_owned(), (*dice.pick(&["admin", "editor"])).to_owned()));
        }
        if dice.one_in(2) {
            let name = if dice.one_in(5) { "member-nobody" } else { *dice.pick(&MEMBERS) };
            cookies.push(("member".to_owned(), name.to_owned()));
        }
        for _ in 0..dice.below(4) {
            // A login session is unique; a cart session may be shared.
            let (name, secrets) = match dice.one_in(2) {
                true => (dice.pick(&site.logins).clone(), &SECRETS[..]),
                false => ((*dice.pick(&SESSIONS)).to_owned(), &SECRETS[..1]),
            };
            if cookies.iter().all(|(known, _)| *known != name) {
                cookies.push((name, (*dice.pick(secrets)).to_owned()));
            }
        }
        if dice.one_in(3) {
            cookies.push(("_lscache_vary".to_owned(), (*dice.pick(&["x", "y"])).to_owned()));
        }
        if dice.one_in(4) {
            fields.push(("Authorization", (*dice.pick(&LOGINS)).to_owned()));
        }
        if dice.one_in(4) {
            fields.push(("X-Real-IP", format!("10.0.0.{}", 1 + dice.below(2))));
        }
        if dice.one_in(3) {
            fields.push(("Origin", format!("https://o{}.test", dice.below(2))));
        }
        if dice.one_in(3) {
            fields.push(("Accept-Language", (*dice.pick(&["de", "en"])).to_owned()));
        }
        if dice.one_in(4) {
            fields.push(("X-Dev", (*dice.pick(&["1", "2"])).to_owned()));
        }
        if site.counts {
            fields.push(("X-Burst", format!("b{}", dice.below(3))));
        }
        Self { cookies, fields }
    }

    fn ask(&self, method: &'static str, target: &str, host: &str, dice: &mut Dice) -> VisitorAsk {
        let mut cookies: Vec<String> =
            self.cookies.iter().map(|(name, value)| format!("{name}={value}")).collect();
        if cookies.len() > 1 && dice.one_in(4) {
            cookies.rotate_left(1);
        }
        let mut fields = self.fields.clone();
        let forged = dice.one_in(6).then(|| forged(dice));
        fields.extend(forged);
        if !cookies.is_empty() {
            fields.push(("Cookie", cookies.join("; ")));
        }
        let mut revisits = false;
        if method == "GET" {
            match dice.below(12) {
                0 => fields.push(("Accept-Encoding", "gzip".to_owned())),
                1 => fields.push(("Range", "bytes=0-19".to_owned())),
                2 => fields.push(("Cache-Control", "no-cache".to_owned())),
                3 => revisits = true,
                _ => {}
            }
        }
        let (target, host) = said(target, host, dice);
        VisitorAsk { method, target, host, fields, revisits }
    }
}

/// A forged field of an attacker, or of a proxy that forwards one.
fn forged(dice: &mut Dice) -> (&'static str, String) {
    let pair = *dice.pick(&["_lscache_vary=x", "_lscache_vary=y", "role=admin", "role=editor"]);
    let host = *dice.pick(&["a.test", "evil.test", "b.test"]);
    match dice.below(7) {
        0 => ("X-Forwarded-Host", host.to_owned()),
        1 | 5 => ("Forwarded", pair.to_owned()),
        2 => ("Forwarded", format!("host={host};proto=http")),
        3 => ("X-Original-URL", "/pub/p0".to_owned()),
        4 => ("X-Forwarded-Proto", pair.to_owned()),
        _ => ("X-Rewrite-URL", "/members/p0".to_owned()),
    }
}

/// Target and Host field of a request to `host`, in one of many forms.
fn said(target: &str, host: &str, dice: &mut Dice) -> (String, String) {
    match dice.below(36) {
        0 => (format!("http://{host}{target}"), host.to_owned()),
        1 => (format!("http://{host}{target}"), "evil.test".to_owned()),
        2 => (target.to_owned(), format!("{host}:1337")),
        3 => (target.to_owned(), format!("{}.", host.to_ascii_uppercase())),
        4 => (target.to_owned(), host.to_ascii_uppercase()),
        5 => (target.to_owned(), format!("{host}:80")),
        6 => (target.to_owned(), format!("{host}.")),
        7 => (target.to_owned(), "evil.test".to_owned()),
        8 => (target.replacen("/p", "/%70", 1), host.to_owned()),
        9 => (target.replacen('/', "//", 1), host.to_owned()),
        10 => (format!("http://{host}:81{target}"), host.to_owned()),
        _ => (target.to_owned(), host.to_owned()),
    }
}

/// An address with this prefix.
fn page(prefix: &str, dice: &mut Dice) -> String {
    let name = match dice.below(12) {
        0 => format!("f{}", dice.below(2)),
        1 => format!("p{}?utm_source=x", dice.below(2)),
        2 => format!("p{}?a=1", dice.below(2)),
        3 if prefix == "/pub/" => return echo(dice),
        _ => format!("p{}", dice.below(3)),
    };
    format!("{prefix}{name}")
}

/// An address whose page repeats its query.
fn echo(dice: &mut Dice) -> String {
    let mark = dice.below(1000);
    let to = *dice.pick(&["/pub/p0", "/pub/p1", "/pub/f0", "/pub/f1", "/members/p0"]);
    let scope =
        *dice.pick(&["", " cache-control=\"public,max-age=99\"", " cache-control=\"private\""]);
    let text = match dice.below(4) {
        0 => format!("word{mark}"),
        1 => format!("<esi:include src=\"{to}\"/>"),
        _ => format!("<esi:inline name=\"{to}\"{scope}>REFLECTED{mark}</esi:inline>"),
    };
    let mut quoted = String::new();
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' => quoted.push(char::from(byte)),
            _ => {
                let _ = write!(quoted, "%{byte:02X}");
            }
        }
    }
    format!("/pub/e{}?q={quoted}", dice.below(2))
}

/// The events on a site.
pub(super) fn acts(site: &AudienceSite, dice: &mut Dice) -> Vec<VisitorAct> {
    let visitors: Vec<Visitor> = (0..3 + dice.below(2)).map(|_| Visitor::any(site, dice)).collect();
    let hot: Vec<(String, String)> = (0..2)
        .map(|_| {
            let prefix = dice.pick(&site.pages).clone();
            (page(&prefix, dice), dice.pick(&site.hosts).clone())
        })
        .collect();
    let somewhere = |dice: &mut Dice| match dice.one_in(5) {
        true => {
            let prefix = dice.pick(&site.pages).clone();
            (page(&prefix, dice), dice.pick(&site.hosts).clone())
        }
        false => dice.pick(&hot).clone(),
    };
    let one = |dice: &mut Dice| {
        let (target, host) = somewhere(dice);
        let method = if dice.one_in(12) { "HEAD" } else { "GET" };
        dice.pick(&visitors).clone().ask(method, &target, &host, dice)
    };
    let mut acts = Vec::new();
    for _ in 0..16 {
        acts.push(match dice.below(24) {
            0 => {
                let (target, host) = somewhere(dice);
                let fields = if dice.one_in(2) { vec![] } else { visitors[0].fields.clone() };
                VisitorAct::Ask(vec![VisitorAsk {
                    method: "PURGE",
                    target,
                    host,
                    fields,
                    revisits: false,
                }])
            }
            1 => {
                let host = dice.pick(&site.hosts).clone();
                let target = format!("/pub/edit?t={}", dice.below(3));
                let ask = dice.pick(&visitors).clone().ask("POST", &target, &host, dice);
                VisitorAct::Ask(vec![ask])
            }
            2 => {
                let (target, host) = somewhere(dice);
                VisitorAct::Ask(vec![
                    dice.pick(&visitors).clone().ask("POST", &target, &host, dice),
                ])
            }
            3 => VisitorAct::Wait(*dice.pick(&[1, 3, 30, 100])),
            4 if dice.one_in(2) => VisitorAct::Reload,
            5 if site.has_tree => VisitorAct::Crash,
            6..=8 if !site.counts => {
                let (target, host) = somewhere(dice);
                let mut ask = || dice.pick(&visitors).clone().ask("GET", &target, &host, dice);
                VisitorAct::Ask(vec![ask(), ask()])
            }
            _ => VisitorAct::Ask(vec![one(dice)]),
        });
    }
    acts
}
