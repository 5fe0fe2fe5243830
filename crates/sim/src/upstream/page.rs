//! The responses of an application for pages that are cached.

use super::param;
use crate::chance::Chance;
use crate::fault_record::AppReaction;
use crate::kernel::Kernel;
use crate::pages::{PageAudience, PageLocation, PageModel, purge_header};

/// A response before faults are applied.
#[derive(Debug)]
pub(super) struct PageReply {
    /// Lines of the head.
    pub(super) head: String,
    pub(super) body: Vec<u8>,
}

/// The request and its client.
struct PageRequest<'a> {
    place: PageLocation,
    page: usize,
    params: &'a [u8],
    cookies: String,
}

impl PageRequest<'_> {
    fn cookie(&self, name: &str) -> Option<String> {
        let mut pairs = self.cookies.split("; ").filter_map(|pair| pair.split_once('='));
        pairs.find(|(known, _)| *known == name).map(|(_, value)| value.to_owned())
    }

    fn visitor(&self) -> PageAudience {
        PageAudience::Visitor(self.cookie("visitor").unwrap_or_default())
    }

    /// The audience of the response, and the fields that state it.
    fn audience(&self, chance: &mut Chance, age_max: u64) -> (PageAudience, String) {
        let page = self.page;
        let age = chance.between(1, age_max);
        let public = format!(
            "X-LiteSpeed-Cache-Control: public,max-age={age}\r\nX-LiteSpeed-Tag: p{page},site\r\n"
        );
        let session = self.cookie("lsc_private");
        match (self.place, session) {
            (PageLocation::Page | PageLocation::Brief, _) | (PageLocation::Mixed, None) => {
                (PageAudience::All, public)
            }
            (PageLocation::Esi, _) => {
                (PageAudience::All, public.replacen("public,", "public,esi=on,", 1))
            }
            (PageLocation::Flip, _) if chance.one_in(2) => (PageAudience::All, public),
            (PageLocation::Zone | PageLocation::Rare | PageLocation::Lone, _) => {
                (PageAudience::All, String::new())
            }
            (PageLocation::Http, _) => {
                let (stale, failed) = (chance.below(4), chance.below(8));
                let control = format!(
                    "Cache-Control: public, max-age={age}, stale-while-revalidate={stale}, \
                     stale-if-error={failed}\r\nSurrogate-Key: p{page} site\r\n"
                );
                (PageAudience::All, control)
            }
            (PageLocation::Private | PageLocation::Mixed, Some(session)) => {
                let control = format!(
                    "X-LiteSpeed-Cache-Control: private,max-age={age}\r\n\
                     X-LiteSpeed-Tag: p{page},public:g{page}\r\n"
                );
                (PageAudience::Session(session), control)
            }
            (PageLocation::Private, None) => {
                (self.visitor(), "X-LiteSpeed-Cache-Control: private,max-age=9\r\n".to_owned())
            }
            (PageLocation::NoStore | PageLocation::Flip, _) => {
                let no =
                    ["X-LiteSpeed-Cache-Control: no-cache\r\n", "Cache-Control: no-store\r\n", ""];
                (self.visitor(), no[chance.index(no.len())].to_owned())
            }
        }
    }

    /// The language that the response varies by, and the field that states it.
    fn language(&self) -> (Option<String>, &'static str) {
        if !self.place.varies(self.page) {
            return (None, "");
        }
        match self.place {
            PageLocation::Page | PageLocation::Private => {
                let lang = self.cookie("lang").unwrap_or_default();
                (Some(lang), "X-LiteSpeed-Vary: cookie=lang\r\n")
            }
            _ => (Some(param(self.params, b"HTTP_LANG")), "Vary: Lang\r\n"),
        }
    }
}

/// The response to a request for a page or an edit; `None` for other requests.
pub(super) fn answer(
    (token, rest): (&str, &str),
    params: &[u8],
    reaction: AppReaction,
    chance: &mut Chance,
    kernel: &mut Kernel,
) -> Option<PageReply> {
    let cookies = param(params, b"HTTP_COOKIE");
    let now = kernel.nanos;
    if token == "edit" {
        let (number, page) = rest.split_once('.')?;
        let (number, page) = (number.parse().ok()?, page.parse().ok()?);
        let session = cookies.split("; ").find_map(|pair| pair.strip_prefix("lsc_private="));
        let head = match number {
            // Both spellings mean the same.
            7.. => format!("X-LiteSpeed-Purge2: {}\r\n", purge_header(number, page, session).0),
            _ => format!("X-LiteSpeed-Purge: {}\r\n", purge_header(number, page, session).0),
        };
        return Some(PageReply { head, body: format!("edited at {now}").into_bytes() });
    }
    let (place, page) = (PageLocation::named(token)?, rest.parse().ok()?);
    let request = PageRequest { place, page, params, cookies };
    if reaction == AppReaction::Unavailable {
        let head = "Status: 503 Busy\r\n".to_owned();
        return Some(PageReply { head, body: b"busy".to_vec() });
    }
    let (audience, control) = request.audience(chance, kernel.age_max);
    let (lang, vary) = request.language();
    let pages: &mut PageModel = &mut kernel.pages;
    let known = param(params, b"HTTP_IF_NONE_MATCH");
    let is_same = pages.by_etag(&known).is_some_and(|version| {
        let same = (version.place, version.page) == (place, page);
        same && version.lang == lang && version.audience == audience
    });
    if is_same && !matches!(audience, PageAudience::Visitor(_)) && chance.one_in(2) {
        pages.revalidate(&known, now);
        let head = format!("Status: 304 Not Modified\r\nETag: {known}\r\n{control}{vary}");
        return Some(PageReply { head, body: Vec::new() });
    }
    let version = pages.issue(place, page, lang, audience, now);
    let head = format!("ETag: {}\r\n{control}{vary}", version.etag());
    Some(PageReply { head, body: version.body() })
}
