//! The responses of an application for pages that are cached.

use super::param;
use crate::chance::Chance;
use crate::deeds::Deed;
use crate::kernel::Kernel;
use crate::pages::{PageModel, PagePlace, Whom, drops};

/// An answer before it is spoiled.
#[derive(Debug)]
pub(super) struct PageReply {
    /// Lines of the head.
    pub(super) head: String,
    pub(super) body: Vec<u8>,
}

/// The question and its client.
struct Question<'a> {
    place: PagePlace,
    page: usize,
    params: &'a [u8],
    cookies: String,
}

impl Question<'_> {
    fn cookie(&self, name: &str) -> Option<String> {
        let mut pairs = self.cookies.split("; ").filter_map(|pair| pair.split_once('='));
        pairs.find(|(known, _)| *known == name).map(|(_, value)| value.to_owned())
    }

    fn visitor(&self) -> Whom {
        Whom::Visitor(self.cookie("visitor").unwrap_or_default())
    }

    /// The audience of the answer, and what says so.
    fn audience(&self, chance: &mut Chance, age_max: u64) -> (Whom, String) {
        let page = self.page;
        let age = chance.between(1, age_max);
        let public = format!(
            "X-LiteSpeed-Cache-Control: public,max-age={age}\r\nX-LiteSpeed-Tag: p{page},site\r\n"
        );
        let session = self.cookie("lsc_private");
        match (self.place, session) {
            (PagePlace::Page | PagePlace::Brief, _) | (PagePlace::Mixed, None) => {
                (Whom::All, public)
            }
            (PagePlace::Whole, _) => (Whom::All, public.replacen("public,", "public,esi=on,", 1)),
            (PagePlace::Flip, _) if chance.one_in(2) => (Whom::All, public),
            (PagePlace::Zone | PagePlace::Rare | PagePlace::Lone, _) => (Whom::All, String::new()),
            (PagePlace::Http, _) => {
                let (stale, failed) = (chance.below(4), chance.below(8));
                let control = format!(
                    "Cache-Control: public, max-age={age}, stale-while-revalidate={stale}, \
                     stale-if-error={failed}\r\nSurrogate-Key: p{page} site\r\n"
                );
                (Whom::All, control)
            }
            (PagePlace::Own | PagePlace::Mixed, Some(session)) => {
                let control = format!(
                    "X-LiteSpeed-Cache-Control: private,max-age={age}\r\n\
                     X-LiteSpeed-Tag: p{page},public:g{page}\r\n"
                );
                (Whom::Session(session), control)
            }
            (PagePlace::Own, None) => {
                (self.visitor(), "X-LiteSpeed-Cache-Control: private,max-age=9\r\n".to_owned())
            }
            (PagePlace::Never | PagePlace::Flip, _) => {
                let no =
                    ["X-LiteSpeed-Cache-Control: no-cache\r\n", "Cache-Control: no-store\r\n", ""];
                (self.visitor(), no[chance.index(no.len())].to_owned())
            }
        }
    }

    /// The language that the answer depends on, and what says that it does.
    fn language(&self) -> (Option<String>, &'static str) {
        if !self.place.varies(self.page) {
            return (None, "");
        }
        match self.place {
            PagePlace::Page | PagePlace::Own => {
                let lang = self.cookie("lang").unwrap_or_default();
                (Some(lang), "X-LiteSpeed-Vary: cookie=lang\r\n")
            }
            _ => (Some(param(self.params, b"HTTP_LANG")), "Vary: Lang\r\n"),
        }
    }
}

/// The answer to a request for a page or an edit; none if it asks for neither.
pub(super) fn answer(
    (token, rest): (&str, &str),
    params: &[u8],
    deed: Deed,
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
            // The two spellings are the same.
            7.. => format!("X-LiteSpeed-Purge2: {}\r\n", drops(number, page, session).0),
            _ => format!("X-LiteSpeed-Purge: {}\r\n", drops(number, page, session).0),
        };
        return Some(PageReply { head, body: format!("edited at {now}").into_bytes() });
    }
    let (place, page) = (PagePlace::named(token)?, rest.parse().ok()?);
    let question = Question { place, page, params, cookies };
    if deed == Deed::Busy {
        let head = "Status: 503 Busy\r\n".to_owned();
        return Some(PageReply { head, body: b"busy".to_vec() });
    }
    let (whom, control) = question.audience(chance, kernel.age_max);
    let (lang, vary) = question.language();
    let pages: &mut PageModel = &mut kernel.pages;
    let known = param(params, b"HTTP_IF_NONE_MATCH");
    let is_same = pages.tagged(&known).is_some_and(|version| {
        let same = (version.place, version.page) == (place, page);
        same && version.lang == lang && version.whom == whom
    });
    if is_same && !matches!(whom, Whom::Visitor(_)) && chance.one_in(2) {
        pages.revalidate(&known, now);
        let head = format!("Status: 304 Not Modified\r\nETag: {known}\r\n{control}{vary}");
        return Some(PageReply { head, body: Vec::new() });
    }
    let version = pages.issue(place, page, lang, whom, now);
    let head = format!("ETag: {}\r\n{control}{vary}", version.etag());
    Some(PageReply { head, body: version.body() })
}
