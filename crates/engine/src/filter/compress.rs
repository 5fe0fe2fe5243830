//! The content coding of a response, by nginx's rules.
//!
//! Decides only; the content handler looks up precompressed files and cached compressed forms.

use bolide_conf::model::{Expires, ExpiresRule, Gzip, GzipProxied, Precompressed};
use bolide_http::negotiate::{Coding, Codings, accepted};
use bolide_http::{FieldMap, HttpVersion, Name};

use crate::media_types::MediaType;
use crate::request::Request;
use crate::site::CompiledLocation;

/// The server's preference.
pub(crate) const ORDER: [Coding; 3] = [Coding::Brotli, Coding::Zstd, Coding::Gzip];

/// The decision about compression.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CodingChoice {
    /// The coding to apply.
    pub(crate) coding: Option<Coding>,
    /// Whether the response depends on `Accept-Encoding`.
    pub(crate) varies: bool,
}

/// The codings that the client accepts; none where compression is disabled for the request.
pub(crate) fn client_codings(request: &Request, location: &CompiledLocation) -> Codings {
    codings(request, location, |request, gzip| {
        is_allowed_for_proxies(request, gzip) || is_own_private(location, Validators::Carried)
    })
}

/// As [`client_codings`]; none where nothing is compressed.
#[inline]
pub(crate) fn wanted_codings(request: &Request, location: &CompiledLocation) -> Codings {
    if location.coded { client_codings(request, location) } else { Codings::NONE }
}

/// The codings for a generated text.
pub(crate) fn codings_for_text(request: &Request, location: &CompiledLocation) -> Codings {
    codings(request, location, |request, gzip| {
        is_allowed_for_proxies(request, gzip) || is_own_private(location, Validators::Missing)
    })
}

/// Whether a response has `Last-Modified`, and `ETag` where that counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Validators {
    Carried,
    Missing,
}

/// The codings for an upstream response, by its fields; `now` is in seconds since 1970.
pub(crate) fn codings_for_origin(
    request: &Request,
    location: &CompiledLocation,
    answer: &FieldMap,
    now: u64,
) -> Codings {
    codings(request, location, |request, gzip| {
        is_allowed_for_proxies(request, gzip) || is_private(answer, gzip.proxied, now)
    })
}

fn codings(
    request: &Request,
    location: &CompiledLocation,
    for_proxies: impl Fn(&Request, &Gzip) -> bool,
) -> Codings {
    let Some(field) = request.head().fields.get(Name::AcceptEncoding) else { return Codings::NONE };
    // The client gets the response whose subrequest this is, not this one.
    if request.role.is_subrequest() {
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
    let oldest = if gzip.http10 { HttpVersion::Http10 } else { HttpVersion::Http11 };
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

/// Whether `gzip_proxied` permits compression for any response.
fn is_allowed_for_proxies(request: &Request, gzip: &Gzip) -> bool {
    gzip.proxied.any
        || (gzip.proxied.auth && request.head().fields.get(Name::Authorization).is_some())
}

/// Whether `gzip_proxied` matches generated responses here, by the `Expires` and `Cache-Control`
/// that the location adds. A value with variables matches nothing.
fn is_own_private(location: &CompiledLocation, validators: Validators) -> bool {
    let settings = &location.settings;
    let proxied = settings.gzip.proxied;
    if proxied == GzipProxied::default() {
        return false;
    }
    match &*settings.expires {
        Expires::Fixed(ExpiresRule::Off) => {}
        Expires::Fixed(ExpiresRule::Epoch) => return proxied.expired,
        Expires::Fixed(ExpiresRule::After(seconds) | ExpiresRule::Modified(seconds)) => {
            return proxied.expired && *seconds < 0;
        }
        Expires::Fixed(_) | Expires::Variable { .. } => return false,
    }
    let mut controls = settings.add_headers.iter().filter(|added| is_cache_control(&added.name));
    if let Some(first) = controls.next() {
        let mut texts = std::iter::once(first).chain(controls).map(|added| added.value.as_text());
        return texts.any(|text| text.is_some_and(|text| names_privacy(text, proxied)));
    }
    let has = validators == Validators::Carried;
    !has || !(proxied.no_last_modified || proxied.no_etag && settings.etag)
}

fn is_cache_control(name: &[u8]) -> bool {
    name.eq_ignore_ascii_case(b"cache-control")
}

/// Whether a `Cache-Control` matches `gzip_proxied`.
fn names_privacy(value: &[u8], proxied: GzipProxied) -> bool {
    value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii).any(|item| {
        proxied.no_cache && item.starts_with(b"no-cache")
            || proxied.no_store && item.starts_with(b"no-store")
            || proxied.private && item.starts_with(b"private")
    })
}

/// Whether an upstream response matches `gzip_proxied`, in nginx's order of checks.
fn is_private(answer: &FieldMap, proxied: GzipProxied, now: u64) -> bool {
    if proxied == GzipProxied::default() {
        return false;
    }
    if let Some(expires) = answer.get(Name::Expires) {
        let date = answer.get(Name::Date).map_or(Some(now), bolide_http::date::parse);
        let expires = bolide_http::date::parse(expires);
        return proxied.expired && expires.is_some_and(|expires| date.is_none_or(|d| expires < d));
    }
    if answer.get(Name::CacheControl).is_some() {
        return answer.all(Name::CacheControl).any(|value| names_privacy(value, proxied));
    }
    !(proxied.no_last_modified && answer.get(Name::LastModified).is_some()
        || proxied.no_etag && answer.get(Name::Etag).is_some())
}

/// The use of a precompressed sibling (`.br`, `.zst`, `.gz`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sibling {
    /// None: it need not be looked up.
    Useless,
    /// Its existence shows that the response depends on `Accept-Encoding`.
    Telling,
    /// It is sent.
    Wanted,
}

/// Whether the sibling of `coding` is sent only to clients that accept it.
pub(crate) fn depends_on_client(location: &CompiledLocation, coding: Coding) -> bool {
    precompressed(location, coding) != Precompressed::Always
}

fn precompressed(location: &CompiledLocation, coding: Coding) -> Precompressed {
    let settings = &location.settings;
    match coding {
        Coding::Gzip => settings.gzip.precompressed,
        Coding::Brotli => settings.brotli.precompressed,
        Coding::Zstd => settings.zstd.precompressed,
    }
}

/// The use of the sibling of `coding`.
pub(crate) fn sibling(location: &CompiledLocation, client: Codings, coding: Coding) -> Sibling {
    let settings = &location.settings;
    match precompressed(location, coding) {
        Precompressed::Off => Sibling::Useless,
        Precompressed::Always => Sibling::Wanted,
        Precompressed::On if client.contains(coding) => Sibling::Wanted,
        Precompressed::On if settings.gzip.vary => Sibling::Telling,
        Precompressed::On => Sibling::Useless,
    }
}

/// The coding to apply to a body of `len` bytes and type `kind`.
pub(crate) fn choose(
    request: &Request,
    location: &CompiledLocation,
    kind: &MediaType,
    status: u16,
    len: Option<u64>,
    client: Codings,
) -> CodingChoice {
    if kind.is_coded_last() {
        return CodingChoice::default();
    }
    choose_last(request, location, kind, status, len, client)
}

/// The codings that the location applies to a type, unless a `.htaccess` file overrides them.
fn made(request: &Request, location: &CompiledLocation, kind: &MediaType, status: u16) -> Codings {
    let own = [(Coding::Gzip, kind.gzip), (Coding::Brotli, kind.brotli), (Coding::Zstd, kind.zstd)];
    let own = own.iter().filter(|(_, is_made)| *is_made);
    let own = own.fold(Codings::NONE, |all, (coding, _)| all.with(*coding));
    match location.htaccess {
        Some(_) => crate::htaccess::effects::codings(request, location, &kind.media, status, own),
        None => own,
    }
}

/// As [`choose`] for a body that other filters have changed.
pub(crate) fn choose_last(
    request: &Request,
    location: &CompiledLocation,
    kind: &MediaType,
    status: u16,
    len: Option<u64>,
    client: Codings,
) -> CodingChoice {
    let made = made(request, location, kind, status);
    if made.is_empty() || !matches!(status, 200 | 403 | 404) {
        return CodingChoice::default();
    }
    let settings = &location.settings;
    let applies = |coding: &Coding| {
        let min = match coding {
            Coding::Gzip => settings.gzip.min_length,
            Coding::Brotli => settings.brotli.min_length,
            Coding::Zstd => settings.zstd.min_length,
        };
        made.contains(*coding) && len.is_none_or(|len| len >= min)
    };
    let mut choice = CodingChoice::default();
    for coding in ORDER.iter().filter(|coding| applies(coding)) {
        choice.varies = true;
        if choice.coding.is_none() && client.contains(*coding) {
            choice.coding = Some(*coding);
        }
    }
    choice
}

/// The configured level of a coding.
pub(crate) fn level(location: &CompiledLocation, coding: Coding) -> i8 {
    let settings = &location.settings;
    let unsigned = |level: u8| i8::try_from(level).unwrap_or(i8::MAX);
    match coding {
        Coding::Gzip => unsigned(settings.gzip.level),
        Coding::Brotli => unsigned(settings.brotli.level),
        Coding::Zstd => settings.zstd.level,
    }
}
