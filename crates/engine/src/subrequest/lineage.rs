//! Where a fragment of a page with ESI comes from.

use std::cell::Cell;
use std::rc::Rc;

use bolide_http::lscache::LsCacheControl;

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

/// Where a fragment comes from.
#[derive(Clone, Debug)]
pub struct Lineage {
    pub(crate) family: Rc<FragmentFamily>,
    pub(crate) own: Rc<FragmentAncestry>,
    /// What the include says about looking it up.
    pub(crate) control: LsCacheControl,
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
