//! A correct application. Its responses depend only on what the server forwards. It marks each
//! response with what it depends on, and declares every dependency on the client as HTTP, nginx or
//! LSCache allow. So the server is at fault if a response reaches the wrong client.
//!
//! It knows no framing. Its only deliberate fault: it repeats a query in an ESI page.

use std::collections::BTreeMap;

use super::visitors::MEMBERS;
use super::{AudienceSite, Dice};

/// A request, with parameters as in CGI.
#[derive(Clone, Debug, Default)]
pub struct AppReceived {
    /// The parameters by name; `HTTP_*` are the fields.
    pub params: BTreeMap<String, String>,
}

impl AppReceived {
    /// An HTTP request: request line and fields, one per line.
    #[must_use]
    pub fn by_http(head: &str) -> Self {
        let mut params = BTreeMap::new();
        let mut lines = head.lines();
        let mut words = lines.next().unwrap_or_default().split(' ');
        let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        for (name, value) in [
            ("REQUEST_METHOD", method),
            ("REQUEST_URI", target),
            ("DOCUMENT_URI", path),
            ("QUERY_STRING", query),
        ] {
            params.insert(name.to_owned(), value.to_owned());
        }
        for (name, value) in lines.filter_map(|line| line.split_once(": ")) {
            let name = match name.to_ascii_lowercase().as_str() {
                "x-way" => "WAY".to_owned(),
                "x-cache" => "CACHE".to_owned(),
                "x-server" => "SERVER_NAME".to_owned(),
                // The original address of a rewritten request, by which purges select.
                "x-address" => "ADDRESS".to_owned(),
                other => format!("HTTP_{}", other.to_ascii_uppercase().replace('-', "_")),
            };
            params.insert(name, value.to_owned());
        }
        Self { params }
    }

    /// A FastCGI request, from its PARAMS records.
    #[must_use]
    pub fn by_fastcgi(params: &[u8]) -> Self {
        Self { params: crate::app::pairs(params) }
    }

    /// Whether the response has no body.
    fn is_head(&self) -> bool {
        self.param("REQUEST_METHOD") == "HEAD"
    }

    fn param(&self, name: &str) -> &str {
        self.params.get(name).map_or("", |value| value)
    }

    /// The cookie with this name as PHP reads it: the first one.
    fn cookie(&self, name: &str) -> &str {
        let pairs = self.param("HTTP_COOKIE").split(';').map(str::trim);
        let mut values = pairs.filter_map(|pair| pair.split_once('='));
        values.find(|(known, _)| *known == name).map_or("-", |(_, value)| value)
    }
}

/// A response of the application.
#[derive(Clone, Debug, Default)]
pub struct AudienceSaid {
    /// The status.
    pub status: u16,
    /// The fields.
    pub fields: Vec<(&'static str, String)>,
    /// The body.
    pub body: String,
}

impl AudienceSaid {
    fn head(&self) -> String {
        let lines = self.fields.iter().map(|(name, value)| format!("{name}: {value}\r\n"));
        format!("Content-Type: text/html\r\n{}", lines.collect::<String>())
    }

    /// The HTTP/1.1 response to `received`.
    #[must_use]
    pub fn in_http(&self, received: &AppReceived) -> Vec<u8> {
        let body = if received.is_head() { "" } else { &*self.body };
        let (status, len, head) = (self.status, self.body.len(), self.head());
        let end = "Connection: close\r\n\r\n";
        format!("HTTP/1.1 {status} X\r\n{head}Content-Length: {len}\r\n{end}{body}").into_bytes()
    }

    /// The same in FastCGI records.
    ///
    /// # Panics It exceeds one record.
    #[must_use]
    pub fn in_fastcgi(&self, received: &AppReceived) -> Vec<u8> {
        let body = if received.is_head() { "" } else { &*self.body };
        let text = format!("Status: {} X\r\n{}\r\n{body}", self.status, self.head());
        let (stdout, end) = (6, 3);
        let mut out = Vec::new();
        for (kind, content) in [(stdout, text.as_bytes()), (stdout, b""), (end, &[0; 8])] {
            let len = u16::try_from(content.len()).unwrap().to_be_bytes();
            out.extend_from_slice(&[1, kind, 0, 1, len[0], len[1], 0, 0]);
            out.extend_from_slice(content);
        }
        out
    }
}

/// The dependencies of a response.
#[derive(Clone, Debug)]
pub(super) struct AudienceStamp {
    /// The dependencies as text, without the number of the response.
    pub(super) told: String,
    /// The requested address.
    pub(super) url: String,
    /// The whole body.
    pub(super) body: String,
    /// Whether purges by address reach it. They do not reach private responses, and nginx's zones
    /// have purges of their own.
    pub(super) is_reached: bool,
    /// The server, and the tag of a public response.
    pub(super) tag: Option<(String, String)>,
}

/// The audience of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Audience {
    Everybody,
    Session,
    Role,
    Origin,
    Language,
    Device,
    User,
}

/// The properties of a page for all clients.
#[derive(Clone, Debug)]
struct Policy {
    audience: Audience,
    /// Whether it sends LSCache fields where a page cache is configured.
    speaks_lscache: bool,
    /// Whether it depends on the vary cookie that always counts.
    has_variant: bool,
    word: usize,
    has_parts: bool,
    sets_cookie: bool,
    status: u16,
}

impl Policy {
    fn of(nature: u64, way: &str, name: &str) -> Self {
        let mut dice = Dice::about(nature, &format!("{way} {name}"));
        let audience = *dice.pick(&[
            Audience::Everybody,
            Audience::Everybody,
            Audience::Everybody,
            Audience::Everybody,
            Audience::Session,
            Audience::Session,
            Audience::Session,
            Audience::Session,
            Audience::Role,
            Audience::Origin,
            Audience::Language,
            Audience::Device,
            Audience::User,
        ]);
        // LSCache has no fields for these dependencies.
        let is_lscache = !matches!(audience, Audience::Language | Audience::Device);
        let is_fragment = name.starts_with('f');
        let is_whole = is_fragment || !name.starts_with('p');
        let word = dice.below(60) as usize;
        let status = match dice.below(12) {
            0 => 404,
            1 => 403,
            2 => 301,
            _ => 200,
        };
        Self {
            audience,
            speaks_lscache: is_lscache && (!dice.one_in(3) || is_fragment),
            has_variant: audience == Audience::Everybody && dice.one_in(3),
            word,
            has_parts: !is_whole && dice.one_in(4),
            sets_cookie: audience == Audience::Everybody && dice.one_in(8),
            status: if is_whole { 200 } else { status },
        }
    }
}

/// The application and all its responses.
#[derive(Clone, Debug)]
pub struct AudienceApp {
    logins: Vec<String>,
    believes: bool,
    nature: u64,
    pub(super) stamps: Vec<AudienceStamp>,
    /// Purged tags of servers, and the number of the last response before the purge.
    pub(super) dropped: Vec<(String, String, usize)>,
}

impl AudienceApp {
    /// The application of a site.
    #[must_use]
    pub fn new(site: &AudienceSite) -> Self {
        Self {
            logins: site.logins.clone(),
            believes: site.believes,
            nature: site.nature,
            stamps: Vec::new(),
            dropped: Vec::new(),
        }
    }

    /// The response to a request.
    pub fn answer(&mut self, got: &AppReceived) -> AudienceSaid {
        let way = got.param("WAY").to_owned();
        let is_member = MEMBERS.contains(&got.cookie("member"));
        match way.rsplit(':').next() {
            Some("auth") => {
                let status = if is_member { 200 } else { 401 + 2 * (self.nature % 2) as u16 };
                self.refuse(got, status)
            }
            _ if got.param("REQUEST_METHOD") == "POST" => self.change(got),
            Some("acc") if is_member => {
                let name = last_segment(got.param("DOCUMENT_URI"));
                let mut said = self.refuse(got, 200);
                let to = match self.nature % 5 {
                    0 => "@again".to_owned(),
                    _ => format!("/protected/{name}"),
                };
                said.fields.push(("X-Accel-Redirect", to));
                said
            }
            Some("acc") => self.refuse(got, 403),
            _ => self.page(got),
        }
    }

    /// An uncacheable response for this client alone.
    fn refuse(&mut self, got: &AppReceived, status: u16) -> AudienceSaid {
        let depends = [("member", got.cookie("member").to_owned())];
        let number = self.stamp(got, &depends, None);
        let mut fields = vec![("X-Stamp", number.to_string())];
        if got.param("CACHE") == "page" && self.nature.is_multiple_of(3) {
            fields.push(("X-LiteSpeed-Cache-Control", "no-cache".to_owned()));
        }
        fields.push(("Cache-Control", "private, no-store".to_owned()));
        let body = self.finish(number, "");
        AudienceSaid { status, fields, body }
    }

    /// A POST, which purges the page that it changes.
    fn change(&mut self, got: &AppReceived) -> AudienceSaid {
        let mut said = self.refuse(got, 200);
        let tag = got.param("QUERY_STRING").strip_prefix("t=");
        let Some(tag) = tag.filter(|_| got.param("CACHE") == "page") else { return said };
        let (server, last) = (got.param("SERVER_NAME").to_owned(), self.stamps.len());
        let (value, dropped) = match tag {
            "0" => ("*".to_owned(), "*".to_owned()),
            _ => (format!("public, tag=t{tag}"), format!("t{tag}")),
        };
        said.fields.push(("X-LiteSpeed-Purge", value));
        self.dropped.push((server, dropped, last));
        said
    }

    fn page(&mut self, got: &AppReceived) -> AudienceSaid {
        let way = got.param("WAY").to_owned();
        let name = last_segment(got.param("DOCUMENT_URI"));
        let policy = Policy::of(self.nature, &way, &name);
        let listens = got.param("CACHE") == "page" && policy.speaks_lscache;
        let depends = self.depends(&policy, got, listens);
        let tag = format!("t{}", 1 + policy.word % 2);
        let is_public = matches!(policy.audience, Audience::Everybody | Audience::Role);
        let number = self.stamp(got, &depends, (listens && is_public).then_some(tag));
        let mut said = AudienceSaid { status: policy.status, ..AudienceSaid::default() };
        said.fields.push(("X-Stamp", number.to_string()));
        said.fields.push(("ETag", format!("\"{number}\"")));
        if policy.status == 301 {
            said.fields.push(("Location", format!("/pub/p0?from={name}")));
        }
        if policy.audience == Audience::Origin {
            let origin = got.param("HTTP_ORIGIN");
            let allowed = if origin.is_empty() { "none" } else { origin };
            said.fields.push(("Access-Control-Allow-Origin", allowed.to_owned()));
            said.fields.push(("Vary", "Origin".to_owned()));
        }
        if policy.sets_cookie {
            said.fields.push(("Set-Cookie", format!("seen={number}")));
        }
        let mut text = String::new();
        let mut is_assembled = policy.has_parts;
        if name.starts_with('e') {
            text = unquoted(got.param("QUERY_STRING").trim_start_matches("q="));
            is_assembled = true;
        } else if policy.has_parts && listens {
            text = self.parts(got);
        }
        if listens {
            lscache_words(&policy, is_assembled, &mut said.fields);
            if let Some((_, tag)) = &self.stamps[number].tag {
                said.fields.push(("X-LiteSpeed-Tag", tag.clone()));
            }
        } else {
            http_words(&policy, got.param("CACHE"), &mut said.fields);
            if is_assembled && got.param("CACHE") == "page" {
                let words = "content=\"ESI/1.0\"".to_owned();
                said.fields.push(("Surrogate-Control", words));
            }
        }
        said.body = self.finish(number, &text);
        said
    }

    /// The dependencies of such a response beyond address and way.
    fn depends(
        &self,
        policy: &Policy,
        got: &AppReceived,
        listens: bool,
    ) -> Vec<(&'static str, String)> {
        let mut depends = Vec::new();
        match policy.audience {
            Audience::Everybody => {}
            Audience::Session => {
                for login in &self.logins {
                    depends.push(("session", format!("{login}={}", got.cookie(login))));
                }
            }
            Audience::Role => depends.push(("role", got.cookie("role").to_owned())),
            Audience::Origin => depends.push(("origin", got.param("HTTP_ORIGIN").to_owned())),
            Audience::Language => {
                depends.push(("language", got.param("HTTP_ACCEPT_LANGUAGE").to_owned()));
            }
            Audience::Device => depends.push(("device", got.param("HTTP_X_DEV").to_owned())),
            Audience::User => {
                depends.push(("user", got.param("HTTP_AUTHORIZATION").to_owned()));
            }
        }
        if policy.has_variant && listens {
            depends.push(("variant", got.cookie("_lscache_vary").to_owned()));
        }
        depends
    }

    /// The parts of a page: includes and inlines.
    fn parts(&mut self, got: &AppReceived) -> String {
        let mut text = String::from("<esi:include src=\"/pub/f0\"/>");
        let server = got.param("WAY").split(':').next().unwrap_or_default();
        let way = format!("{server}:pub");
        let policy = Policy::of(self.nature, &way, "f1");
        let scope = match policy.audience {
            Audience::Everybody if !policy.has_variant => "public,max-age=99",
            Audience::Session => "private,max-age=99",
            _ => "",
        };
        if !scope.is_empty() && self.nature.is_multiple_of(2) {
            // An inline is the response of its address for this client.
            let mut other = got.clone();
            for (name, value) in [
                ("WAY", &*way),
                ("DOCUMENT_URI", "/pub/f1"),
                ("REQUEST_URI", "/pub/f1"),
                ("ADDRESS", "/pub/f1"),
            ] {
                other.params.insert(name.to_owned(), value.to_owned());
            }
            let depends = self.depends(&policy, &other, true);
            let number = self.stamp(&other, &depends, None);
            let part = self.finish(number, "");
            text.push_str(&format!(
                "<esi:inline name=\"/pub/f1\" cache-control=\"{scope}\">{part}</esi:inline>"
            ));
        }
        text.push_str("<esi:include src=\"/pub/f1\"/>");
        if self.nature.is_multiple_of(3) {
            text.push_str("<esi:include src=\"/members/p0\"/>");
        }
        text
    }

    /// Creates a mark and returns its number.
    fn stamp(
        &mut self,
        got: &AppReceived,
        depends: &[(&'static str, String)],
        tag: Option<String>,
    ) -> usize {
        let (way, document) = (got.param("WAY"), got.param("DOCUMENT_URI"));
        let url = without_tracking(got.param("REQUEST_URI"));
        let mut host = got.param("HTTP_HOST");
        let forwarded = got.param("HTTP_X_FORWARDED_HOST");
        if self.believes && got.param("CACHE") == "page" && !forwarded.is_empty() {
            host = forwarded;
        }
        if last_segment(document).starts_with('f') {
            // A page with an inline fragment does not know the requested host.
            host = "";
        }
        let mut told = format!("way={way} document={document} url={url} host={host}");
        for (name, value) in depends {
            told.push_str(&format!(" {name}={value}"));
        }
        let tag = tag.map(|tag| (got.param("SERVER_NAME").to_owned(), tag));
        let own = ["ADDRESS", "REQUEST_URI"].map(|name| got.param(name));
        let address = own.into_iter().find(|text| !text.is_empty()).unwrap_or_default().to_owned();
        let is_own = depends.iter().any(|(name, _)| *name == "session");
        let is_reached = got.param("CACHE") != "zone" && !is_own;
        self.stamps.push(AudienceStamp {
            told,
            url: address,
            body: String::new(),
            is_reached,
            tag,
        });
        self.stamps.len() - 1
    }

    /// The body with this mark.
    fn finish(&mut self, number: usize, text: &str) -> String {
        let body = format!("[#{number}] {text}\n{}\n", "all that there is to say. ".repeat(4));
        self.stamps[number].body.clone_from(&body);
        body
    }
}

fn lscache_words(policy: &Policy, is_assembled: bool, fields: &mut Vec<(&'static str, String)>) {
    let mut words: &[&str] = &["public,max-age=120", "public,max-age=2", "public,s-maxage=90"];
    match policy.audience {
        Audience::Everybody if !policy.has_variant => {
            words = &["public,max-age=120", "public,max-age=2", "public,max-age=90,no-vary"];
        }
        Audience::Session => words = &["private,max-age=120", "private,max-age=60", "no-cache"],
        Audience::User => words = &["no-cache", "no-store"],
        Audience::Role => fields.push(("X-LiteSpeed-Vary", "cookie=role".to_owned())),
        _ => {}
    }
    let mut text = words[policy.word % words.len()].to_owned();
    if is_assembled {
        text.push_str(",esi=on");
    }
    fields.push(("X-LiteSpeed-Cache-Control", text));
}

fn http_words(policy: &Policy, cache: &str, fields: &mut Vec<(&'static str, String)>) {
    let public = ["public, max-age=120", "s-maxage=60", "max-age=2, stale-while-revalidate=60"];
    let private = ["private, max-age=60", "private, no-store", "no-store", "private, no-cache"];
    let vary = match policy.audience {
        Audience::Everybody => {
            match policy.word % 5 {
                0 => {}
                1 if cache == "zone" => fields.push(("X-Accel-Expires", "60".to_owned())),
                word => fields.push(("Cache-Control", public[word % 3].to_owned())),
            }
            return;
        }
        Audience::Session | Audience::Role if policy.word.is_multiple_of(3) => "Cookie",
        Audience::Session | Audience::Role | Audience::User => {
            fields.push(("Cache-Control", private[policy.word % 4].to_owned()));
            return;
        }
        Audience::Origin => "",
        Audience::Language => "Accept-Language",
        Audience::Device => "X-Dev",
    };
    if !vary.is_empty() {
        fields.push(("Vary", vary.to_owned()));
    }
    fields.push(("Cache-Control", public[policy.word % 3].to_owned()));
}

fn last_segment(path: &str) -> String {
    path.rsplit('/').next().unwrap_or_default().to_owned()
}

/// An address without tracking parameters.
fn without_tracking(url: &str) -> String {
    let Some((path, query)) = url.split_once('?') else { return url.to_owned() };
    let kept: Vec<&str> = query.split('&').filter(|pair| !pair.starts_with("utm_")).collect();
    match kept.is_empty() {
        true => path.to_owned(),
        false => format!("{path}?{}", kept.join("&")),
    }
}

fn unquoted(text: &str) -> String {
    let mut plain = Vec::new();
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        if byte != b'%' {
            plain.push(byte);
            continue;
        }
        let two: Vec<u8> = bytes.by_ref().take(2).collect();
        let digits = std::str::from_utf8(&two).unwrap_or_default();
        plain.push(u8::from_str_radix(digits, 16).unwrap_or(b'?'));
    }
    String::from_utf8_lossy(&plain).into_owned()
}
