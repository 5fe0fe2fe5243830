//! A correct application. Its responses depend only on what the server forwards. It marks each
//! response with what it depends on, and declares every dependency on the client as HTTP, nginx or
//! LSCache allow. So the server is at fault if a response reaches the wrong client.
//!
//! It knows no framing. Its only deliberate fault: it repeats a query in an ESI page.

mod message;
mod policy;

use super::AudienceSite;
use super::visitors::MEMBERS;
pub use message::{AudienceAppRequest, AudienceAppResponse};
use policy::{Audience, Policy, http_fields, lscache_fields};

/// The dependencies of a response.
#[derive(Clone, Debug)]
pub(super) struct AudienceMark {
    /// The dependencies as text, without the number of the response.
    pub(super) dependencies: String,
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

/// The application and all its responses.
#[derive(Clone, Debug)]
pub struct AudienceApp {
    logins: Vec<String>,
    trusts_forwarded_host: bool,
    nature: u64,
    pub(super) marks: Vec<AudienceMark>,
    /// Purged tags of servers, and the number of the last response before the purge.
    pub(super) purged: Vec<(String, String, usize)>,
}

impl AudienceApp {
    /// The application of a site.
    #[must_use]
    pub fn new(site: &AudienceSite) -> Self {
        Self {
            logins: site.logins.clone(),
            trusts_forwarded_host: site.trusts_forwarded_host,
            nature: site.nature,
            marks: Vec::new(),
            purged: Vec::new(),
        }
    }

    /// The response to a request.
    pub fn answer(&mut self, got: &AudienceAppRequest) -> AudienceAppResponse {
        let way = got.param("WAY").to_owned();
        let is_member = MEMBERS.contains(&got.cookie("member"));
        match way.rsplit(':').next() {
            Some("auth") => {
                let status = if is_member { 200 } else { 401 + 2 * (self.nature % 2) as u16 };
                self.refuse(got, status)
            }
            _ if last_segment(got.param("DOCUMENT_URI")) == "m0" => self.combined(got),
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
    fn refuse(&mut self, got: &AudienceAppRequest, status: u16) -> AudienceAppResponse {
        let depends = [("member", got.cookie("member").to_owned())];
        let number = self.mark(got, &depends, None);
        let mut fields = vec![("X-Stamp", number.to_string())];
        if got.param("CACHE") == "page" && self.nature.is_multiple_of(3) {
            fields.push(("X-LiteSpeed-Cache-Control", "no-cache".to_owned()));
        }
        fields.push(("Cache-Control", "private, no-store".to_owned()));
        let body = self.finish(number, "");
        AudienceAppResponse { status, fields, body }
    }

    /// A POST, which purges the page that it changes.
    fn change(&mut self, got: &AudienceAppRequest) -> AudienceAppResponse {
        let mut said = self.refuse(got, 200);
        let tag = got.param("QUERY_STRING").strip_prefix("t=");
        let Some(tag) = tag.filter(|_| got.param("CACHE") == "page") else { return said };
        let (server, last) = (got.param("SERVER_NAME").to_owned(), self.marks.len());
        let (value, purged) = match tag {
            "0" => ("*".to_owned(), "*".to_owned()),
            _ => (format!("public, tag=t{tag}"), format!("t{tag}")),
        };
        said.fields.push(("X-LiteSpeed-Purge", value));
        self.purged.push((server, purged, last));
        said
    }

    /// A response that contains the fragment `f1`, and says of its audience what that would say.
    fn combined(&mut self, got: &AudienceAppRequest) -> AudienceAppResponse {
        let (part, policy, listens) = self.fragment(got);
        let mut said = AudienceAppResponse { status: 200, ..AudienceAppResponse::default() };
        match listens {
            true => lscache_fields(&policy, false, &mut said.fields),
            false => http_fields(&policy, got.param("CACHE"), &mut said.fields),
        }
        // What no field declares is left to the part.
        let scope = match policy.audience {
            Audience::Origin => "no-cache",
            Audience::Session | Audience::User => "max-age=99",
            _ if policy.word.is_multiple_of(2) => "max-age=99",
            _ => "public,max-age=99",
        };
        // What depends on the settings of its own location is asked for there.
        if !policy.has_variant {
            said.body = format!(
                "<esi:inline name=\"/pub/f1\" cache-control=\"{scope}\">{part}</esi:inline>"
            );
        }
        said
    }

    /// The response of `/pub/f1` for the client of another request, its policy, and whether it has
    /// LSCache's fields.
    fn fragment(&mut self, got: &AudienceAppRequest) -> (String, Policy, bool) {
        let server = got.param("WAY").split(':').next().unwrap_or_default();
        let way = format!("{server}:pub");
        let policy = Policy::of(self.nature, &way, "f1");
        let mut other = got.clone();
        for (name, value) in [
            ("WAY", &*way),
            ("DOCUMENT_URI", "/pub/f1"),
            ("REQUEST_URI", "/pub/f1"),
            ("ADDRESS", "/pub/f1"),
        ] {
            other.params.insert(name.to_owned(), value.to_owned());
        }
        let listens = got.param("CACHE") == "page" && policy.sends_lscache;
        let depends = self.depends(&policy, &other, listens);
        let number = self.mark(&other, &depends, None);
        (self.finish(number, ""), policy, listens)
    }

    fn page(&mut self, got: &AudienceAppRequest) -> AudienceAppResponse {
        let way = got.param("WAY").to_owned();
        let name = last_segment(got.param("DOCUMENT_URI"));
        let policy = Policy::of(self.nature, &way, &name);
        let listens = got.param("CACHE") == "page" && policy.sends_lscache;
        let depends = self.depends(&policy, got, listens);
        let tag = format!("t{}", 1 + policy.word % 2);
        let is_public = matches!(policy.audience, Audience::Public | Audience::Role);
        let number = self.mark(got, &depends, (listens && is_public).then_some(tag));
        let mut said =
            AudienceAppResponse { status: policy.status, ..AudienceAppResponse::default() };
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
            lscache_fields(&policy, is_assembled, &mut said.fields);
            if let Some((_, tag)) = &self.marks[number].tag {
                said.fields.push(("X-LiteSpeed-Tag", tag.clone()));
            }
        } else {
            http_fields(&policy, got.param("CACHE"), &mut said.fields);
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
        got: &AudienceAppRequest,
        listens: bool,
    ) -> Vec<(&'static str, String)> {
        let mut depends = Vec::new();
        match policy.audience {
            Audience::Public => {}
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
    fn parts(&mut self, got: &AudienceAppRequest) -> String {
        let mut text = String::from("<esi:include src=\"/pub/f0\"/>");
        let server = got.param("WAY").split(':').next().unwrap_or_default();
        let way = format!("{server}:pub");
        let policy = Policy::of(self.nature, &way, "f1");
        let scope = match policy.audience {
            Audience::Public if !policy.has_variant => "public,max-age=99",
            Audience::Session => "private,max-age=99",
            _ => "",
        };
        if !scope.is_empty() && self.nature.is_multiple_of(2) {
            let (part, ..) = self.fragment(got);
            text.push_str(&format!(
                "<esi:inline name=\"/pub/f1\" cache-control=\"{scope}\">{part}</esi:inline>"
            ));
        }
        // Not with an inline of the same address.
        if !self.nature.is_multiple_of(2) {
            let from = if self.nature.is_multiple_of(3) { "members" } else { "pub" };
            text.push_str(&format!(
                "<esi:include src=\"/{from}/m0\" combine=\"main\"/>\
                 <esi:include src=\"/pub/f1\" combine=\"sub\"/>"
            ));
        } else {
            text.push_str("<esi:include src=\"/pub/f1\"/>");
        }
        if self.nature.is_multiple_of(3) {
            text.push_str("<esi:include src=\"/members/p0\"/>");
        }
        text
    }

    /// Creates a mark and returns its number.
    fn mark(
        &mut self,
        got: &AudienceAppRequest,
        depends: &[(&'static str, String)],
        tag: Option<String>,
    ) -> usize {
        let (way, document) = (got.param("WAY"), got.param("DOCUMENT_URI"));
        let url = without_tracking(got.param("REQUEST_URI"));
        let mut host = got.param("HTTP_HOST");
        let forwarded = got.param("HTTP_X_FORWARDED_HOST");
        if self.trusts_forwarded_host && got.param("CACHE") == "page" && !forwarded.is_empty() {
            host = forwarded;
        }
        if last_segment(document).starts_with('f') {
            // A page with an inline fragment does not know the requested host.
            host = "";
        }
        let mut dependencies = format!("way={way} document={document} url={url} host={host}");
        for (name, value) in depends {
            dependencies.push_str(&format!(" {name}={value}"));
        }
        let tag = tag.map(|tag| (got.param("SERVER_NAME").to_owned(), tag));
        let own = ["ADDRESS", "REQUEST_URI"].map(|name| got.param(name));
        let address = own.into_iter().find(|text| !text.is_empty()).unwrap_or_default().to_owned();
        let is_own = depends.iter().any(|(name, _)| *name == "session");
        let is_reached = got.param("CACHE") != "zone" && !is_own;
        self.marks.push(AudienceMark {
            dependencies,
            url: address,
            body: String::new(),
            is_reached,
            tag,
        });
        self.marks.len() - 1
    }

    /// The body with this mark.
    fn finish(&mut self, number: usize, text: &str) -> String {
        let body = format!("[#{number}] {text}\n{}\n", "all that there is to say. ".repeat(4));
        self.marks[number].body.clone_from(&body);
        body
    }
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
