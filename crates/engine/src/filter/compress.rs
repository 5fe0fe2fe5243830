//! Which content coding an answer gets, by nginx's rules.
//!
//! Decides only; files beside the original and compressed forms made on the fly are looked up by
//! the content that owns the body.

use conf::model::{Gzip, GzipProxied, Precompressed};
use http::negotiate::{Coding, Codings, accepted};
use http::{Fields, Name, Version};

use crate::kinds::Kind;
use crate::request::Request;
use crate::site::Location;

/// The server's preference.
pub(crate) const ORDER: [Coding; 3] = [Coding::Brotli, Coding::Zstd, Coding::Gzip];

/// What a response filter would make of an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Choice {
    /// The coding to make on the fly.
    pub(crate) coding: Option<Coding>,
    /// Whether the answer depends on `Accept-Encoding`.
    pub(crate) varies: bool,
}

/// The codings that the client takes in this location, or none where compression is refused.
pub(crate) fn client_codings(request: &Request, location: &Location) -> Codings {
    codings(request, location, is_allowed_for_proxies)
}

/// The same for the answer of an origin, whose fields have a say; `now` is in seconds since 1970.
pub(crate) fn codings_for_origin(
    request: &Request,
    location: &Location,
    answer: &Fields,
    now: u64,
) -> Codings {
    codings(request, location, |request, gzip| {
        is_allowed_for_proxies(request, gzip) || is_private(answer, gzip.proxied, now)
    })
}

fn codings(
    request: &Request,
    location: &Location,
    for_proxies: impl Fn(&Request, &Gzip) -> bool,
) -> Codings {
    let Some(field) = request.head().fields.get(Name::AcceptEncoding) else { return Codings::NONE };
    if request.inclusion.is_some() {
        return Codings::NONE;
    }
    let codings = accepted(field);
    if codings.is_empty() || !is_allowed(request, &location.settings.gzip, for_proxies) {
        return Codings::NONE;
    }
    codings
}

/// `gzip_http_version`, `gzip_proxied` and `gzip_disable`.
fn is_allowed(
    request: &Request,
    gzip: &Gzip,
    for_proxies: impl Fn(&Request, &Gzip) -> bool,
) -> bool {
    let oldest = if gzip.http10 { Version::Http10 } else { Version::Http11 };
    if request.head().version < oldest {
        return false;
    }
    let fields = &request.head().fields;
    if fields.get(Name::Via).is_some() && !for_proxies(request, gzip) {
        return false;
    }
    if gzip.disable.is_empty() {
        return true;
    }
    let Some(agent) = fields.get(Name::UserAgent) else { return true };
    !gzip.disable.iter().any(|pattern| pattern.is_match(agent))
}

/// Our own answers carry validators and no `Expires` or `Cache-Control` at this point, so that
/// of the other parameters only these can apply.
fn is_allowed_for_proxies(request: &Request, gzip: &Gzip) -> bool {
    gzip.proxied.any
        || (gzip.proxied.auth && request.head().fields.get(Name::Authorization).is_some())
}

/// Whether an origin's answer is one that `gzip_proxied` names, by nginx's order of questions.
fn is_private(answer: &Fields, proxied: GzipProxied, now: u64) -> bool {
    if proxied == GzipProxied::default() {
        return false;
    }
    if let Some(expires) = answer.get(Name::Expires) {
        let date = answer.get(Name::Date).map_or(Some(now), http::date::parse);
        let expires = http::date::parse(expires);
        return proxied.expired && expires.is_some_and(|expires| date.is_none_or(|d| expires < d));
    }
    let says = |word: &[u8]| {
        answer.all(Name::CacheControl).any(|value| {
            value.split(|byte| *byte == b',').any(|item| item.trim_ascii().starts_with(word))
        })
    };
    if answer.get(Name::CacheControl).is_some() {
        return proxied.no_cache && says(b"no-cache")
            || proxied.no_store && says(b"no-store")
            || proxied.private && says(b"private");
    }
    !(proxied.no_last_modified && answer.get(Name::LastModified).is_some()
        || proxied.no_etag && answer.get(Name::Etag).is_some())
}

/// What a sibling file (`.br`, `.zst`, `.gz`) is good for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sibling {
    /// Nothing: it need not be looked for.
    Useless,
    /// It only shows that the answer depends on `Accept-Encoding`.
    Telling,
    /// It is what the client gets.
    Wanted,
}

/// Whether the sibling of `coding` is for those only who ask for it.
pub(crate) fn depends_on_client(location: &Location, coding: Coding) -> bool {
    precompressed(location, coding) != Precompressed::Always
}

fn precompressed(location: &Location, coding: Coding) -> Precompressed {
    let settings = &location.settings;
    match coding {
        Coding::Gzip => settings.gzip.precompressed,
        Coding::Brotli => settings.brotli.precompressed,
        Coding::Zstd => settings.zstd.precompressed,
    }
}

/// What the sibling of `coding` would be good for.
pub(crate) fn sibling(location: &Location, client: Codings, coding: Coding) -> Sibling {
    let settings = &location.settings;
    match precompressed(location, coding) {
        Precompressed::Off => Sibling::Useless,
        Precompressed::Always => Sibling::Wanted,
        Precompressed::On if client.contains(coding) => Sibling::Wanted,
        Precompressed::On if settings.gzip.vary => Sibling::Telling,
        Precompressed::On => Sibling::Useless,
    }
}

/// The coding to make on the fly for a body of `len` bytes and type `kind`.
pub(crate) fn choose(
    location: &Location,
    kind: &Kind,
    status: u16,
    len: Option<u64>,
    client: Codings,
) -> Choice {
    if !kind.is_codable() {
        return Choice::default();
    }
    choose_last(location, kind, status, len, client)
}

/// The same for a body that was changed already.
pub(crate) fn choose_last(
    location: &Location,
    kind: &Kind,
    status: u16,
    len: Option<u64>,
    client: Codings,
) -> Choice {
    if !kind.has_coding() || !matches!(status, 200 | 403 | 404) {
        return Choice::default();
    }
    let settings = &location.settings;
    let applies = |coding: &Coding| {
        let (on, min) = match coding {
            Coding::Gzip => (kind.gzip, settings.gzip.min_length),
            Coding::Brotli => (kind.brotli, settings.brotli.min_length),
            Coding::Zstd => (kind.zstd, settings.zstd.min_length),
        };
        on && len.is_none_or(|len| len >= min)
    };
    let mut choice = Choice::default();
    for coding in ORDER.iter().filter(|coding| applies(coding)) {
        choice.varies = true;
        if choice.coding.is_none() && client.contains(*coding) {
            choice.coding = Some(*coding);
        }
    }
    choice
}

/// The configured level of a coding.
pub(crate) fn level(location: &Location, coding: Coding) -> i8 {
    let settings = &location.settings;
    let unsigned = |level: u8| i8::try_from(level).unwrap_or(i8::MAX);
    match coding {
        Coding::Gzip => unsigned(settings.gzip.level),
        Coding::Brotli => unsigned(settings.brotli.level),
        Coding::Zstd => settings.zstd.level,
    }
}
