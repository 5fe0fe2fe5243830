//! Where a fragment of a page with ESI comes from.

use std::cell::Cell;
use std::rc::Rc;

use bolide_http::FieldMap;
use bolide_http::lscache::{self, CacheScope, LsCacheControl};
use bytes::Bytes;

use crate::connection::ClientAddress;
use crate::phase::limits::LimitDetail;

/// What all fragments of one page share.
#[derive(Debug)]
pub(crate) struct FragmentFamily {
    /// Path and query that the client asked for.
    pub(crate) page: Vec<u8>,
    /// The page's type.
    pub(crate) content_type: Vec<u8>,
    /// Fragments that were asked for.
    pub(crate) count: Cell<u32>,
    /// Bytes that came of them.
    pub(crate) size: Cell<u64>,
    /// What `limit_req` and `limit_conn` said of the page: its fragments are not counted again.
    pub(crate) told: [LimitDetail; 2],
    /// Where the page was asked for, as its site counts it.
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

/// What the answer to a request for several fragments has for one of them.
#[derive(Debug)]
pub(crate) struct GivenFragment {
    /// As `X-LiteSpeed-Cache-Control`.
    pub(crate) control: Vec<u8>,
    /// As `X-LiteSpeed-Tag`.
    pub(crate) tags: Bytes,
    pub(crate) content_type: Vec<u8>,
    pub(crate) body: Bytes,
}

/// Who answers for a fragment.
#[derive(Clone, Debug, Default)]
pub(crate) enum FragmentSource {
    /// The origin that its address leads to.
    #[default]
    Anywhere,
    /// What is kept; no origin is asked.
    Kept,
    /// What came with others, instead of an origin.
    Given(Rc<GivenFragment>),
    /// It asks for others, by this form.
    Combined(Bytes),
}

/// What a fragment's answer is kept as.
#[derive(Clone, Debug, Default)]
pub(crate) enum KeptAs {
    /// The answer of its address.
    #[default]
    Itself,
    /// What includes of its address get where the same address brings them.
    Combined { by: Rc<[u8]> },
    /// What includes with these tags get, if it is private and has them all; if it came with
    /// others, by the answer of this address.
    Shared { tags: Bytes, given_by: Option<Rc<[u8]>> },
}

impl KeptAs {
    /// Decides for an answer with these fields, which is for `scope`.
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

/// Where a fragment comes from.
#[derive(Clone, Debug)]
pub struct Lineage {
    pub(crate) family: Rc<FragmentFamily>,
    pub(crate) own: Rc<FragmentAncestry>,
    /// What the include says about looking it up.
    pub(crate) control: LsCacheControl,
    pub(crate) source: FragmentSource,
    /// The address that brings it and others together, if its page has one (`combine`).
    pub(crate) combined_by: Option<Rc<[u8]>>,
    /// The tags that it is found by, whatever its address, among those of its session.
    pub(crate) shared: Option<Bytes>,
    /// The URL part of the key of the text that includes it; empty if that has none.
    pub(crate) includer: Vec<u8>,
    /// Who asks for the page, where the connection's other end only hands on.
    pub(crate) real: Option<ClientAddress>,
}

impl Lineage {
    /// `ESI_REFERER`
    pub(crate) fn page(&self) -> &[u8] {
        &self.family.page
    }

    /// The URL part of the key of the text that includes this one; empty if that has none.
    pub(crate) fn includer(&self) -> &[u8] {
        &self.includer
    }

    /// What its answer is kept as.
    pub(crate) fn kept_as(&self) -> KeptAs {
        let is_given = matches!(self.source, FragmentSource::Given(_));
        let given_by = self.combined_by.clone().filter(|_| is_given);
        match (&self.shared, given_by) {
            (Some(tags), given_by) => KeptAs::Shared { tags: tags.clone(), given_by },
            (None, Some(by)) => KeptAs::Combined { by },
            (None, None) => KeptAs::Itself,
        }
    }

    /// The form by which it asks for others, if it does.
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

/// Whether an authority in an address means the host that the page is from: on the port that
/// was asked for or reached, or on that of either scheme.
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
