//! The ancestry of a fragment of an ESI page.

use std::cell::Cell;
use std::rc::Rc;

use bolide_cache::FillMoment;
use bolide_http::FieldMap;
use bolide_http::lscache::{self, CacheScope, LsCacheControl};
use bytes::Bytes;

use super::CombinedHead;
use crate::connection::ClientAddress;
use crate::phase::limits::LimitDetail;
use crate::route::LocationIndex;

/// The state that all fragments of one page share.
#[derive(Debug)]
pub(crate) struct FragmentFamily {
    /// The path and query of the client's request.
    pub(crate) page: Vec<u8>,
    /// The page's type.
    pub(crate) content_type: Vec<u8>,
    /// Requested fragments.
    pub(crate) count: Cell<u32>,
    /// Bytes of fragments.
    pub(crate) size: Cell<u64>,
    /// The results of limits for the page: its fragments are not counted again.
    pub(crate) limits: [LimitDetail; 2],
    /// The index of the page's listen in its site.
    pub(crate) listen: usize,
}

/// A page, or a fragment in it.
#[derive(Debug)]
pub(crate) struct FragmentAncestry {
    pub(crate) target: Vec<u8>,
    /// 0 for the page.
    pub(crate) depth: u8,
    pub(crate) parent: Option<Rc<Self>>,
}

impl FragmentAncestry {
    pub(crate) fn is_or_descends_from(&self, target: &[u8]) -> bool {
        self.target == target
            || self.parent.as_ref().is_some_and(|parent| parent.is_or_descends_from(target))
    }
}

/// The part of a combined response for one fragment.
#[derive(Debug)]
pub(crate) struct GivenFragment {
    /// The part's own directives.
    pub(crate) control: LsCacheControl,
    /// Whether its include is for the session only.
    pub(crate) is_private: bool,
    /// In the form of `X-LiteSpeed-Tag`.
    pub(crate) tags: Bytes,
    /// The response that it came in.
    pub(crate) whole: Rc<CombinedHead>,
    pub(crate) body: Bytes,
    /// When the combined request was sent.
    pub(crate) moment: Option<Rc<FillMoment>>,
}

/// The source of a fragment.
#[derive(Clone, Debug, Default)]
pub(crate) enum FragmentSource {
    /// Its URL, cached or fetched.
    #[default]
    Anywhere,
    /// The cache only.
    Kept,
    /// A part of a combined response, instead of a fetch.
    Given(Rc<GivenFragment>),
    /// The combined request with this form.
    Combined(Bytes),
}

/// The key of a stored fragment.
#[derive(Clone, Debug, Default)]
pub(crate) enum KeptAs {
    /// Its URL.
    #[default]
    Itself,
    /// Its URL, for includes in responses of the same combined request.
    Combined { by: Rc<[u8]> },
    /// These tags, if it is private and has them all; of a combined response, by the URL of that.
    Shared { tags: Bytes, given_by: Option<Rc<[u8]>> },
}

impl KeptAs {
    /// Decides for a response with these fields and this scope.
    pub(crate) fn settle(&mut self, fields: &FieldMap, scope: CacheScope) {
        let Self::Shared { tags, given_by } = self else { return };
        let lines = || fields.all_text(b"X-LiteSpeed-Tag");
        let has = |wanted: &[u8]| {
            let mut all = lines().flat_map(|line| lscache::tags(line, CacheScope::Private));
            all.any(|tag| tag.text == wanted)
        };
        let has_all = lscache::tags(tags, CacheScope::Private).all(|tag| has(tag.text));
        if scope == CacheScope::Public || !has_all {
            *self = given_by.take().map_or(Self::Itself, |by| Self::Combined { by });
        }
    }
}

/// The page whose inlines a fragment may be.
#[derive(Clone, Debug)]
pub(crate) struct IncludingPage {
    /// Its id; empty if it has none.
    pub(crate) id: Vec<u8>,
    /// Where its settings are.
    pub(crate) location: LocationIndex,
    /// Its value of `page_cache_vary`.
    pub(crate) vary_value: Option<Box<[u8]>>,
}

/// The ancestry of a fragment.
#[derive(Clone, Debug)]
pub struct Lineage {
    pub(crate) family: Rc<FragmentFamily>,
    pub(crate) own: Rc<FragmentAncestry>,
    /// The include's cache directives.
    pub(crate) control: LsCacheControl,
    pub(crate) source: FragmentSource,
    /// The URL of the combined request, if its page has one (`combine`).
    pub(crate) combined_by: Option<Rc<[u8]>>,
    /// The tags by which it is found among the objects of its session.
    pub(crate) shared: Option<Bytes>,
    pub(crate) includer: IncludingPage,
    /// The client's address according to a trusted proxy.
    pub(crate) real: Option<ClientAddress>,
}

impl Lineage {
    /// `ESI_REFERER`
    pub(crate) fn page(&self) -> &[u8] {
        &self.family.page
    }

    /// The key under which its response is stored.
    pub(crate) fn kept_as(&self) -> KeptAs {
        let is_given = matches!(self.source, FragmentSource::Given(_));
        let given_by = self.combined_by.clone().filter(|_| is_given);
        match (&self.shared, given_by) {
            (Some(tags), given_by) => KeptAs::Shared { tags: tags.clone(), given_by },
            (None, Some(by)) => KeptAs::Combined { by },
            (None, None) => KeptAs::Itself,
        }
    }

    /// The form of a combined request, if it is one.
    pub(crate) const fn form(&self) -> Option<&Bytes> {
        match &self.source {
            FragmentSource::Combined(form) => Some(form),
            _ => None,
        }
    }

    /// `ESI_CONTENT_TYPE`
    pub(crate) fn content_type(&self) -> &[u8] {
        &self.family.content_type
    }
}

/// Whether an authority in a URL means the host of the page: on the port that was requested or
/// reached, or on the default port of either scheme.
pub(crate) fn is_same_site(authority: &[u8], host: &[u8], ports: [u16; 2]) -> bool {
    let mut name = Vec::new();
    match bolide_http::host::normalise(authority, &mut name) {
        Ok(port) => {
            name == host
                && port.is_none_or(|port| matches!(port, 80 | 443) || ports.contains(&port))
        }
        Err(_) => false,
    }
}
