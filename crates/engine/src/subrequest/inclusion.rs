//! A part of another response, by SSI or `addition`.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use bolide_ssi::SharedText;

use crate::connection::ClientAddress;
use crate::phase::limits::LimitDetail;
use bolide_patterns::Captures;

/// The state that a page shares with all its parts.
#[derive(Debug, Default)]
pub(crate) struct SubrequestPlace {
    pub(crate) shared: Rc<RefCell<SharedText>>,
    /// Requested parts.
    pub(crate) count: Cell<u32>,
    /// Whether one of them was logged (`log_subrequest`).
    pub(crate) is_logged: Cell<bool>,
    /// The charset of the page, which its parts are recoded to.
    pub(crate) charset: RefCell<Option<Vec<u8>>>,
}

/// The replacement of a failed part.
#[derive(Clone, Debug)]
pub(crate) enum Failing {
    /// The error page.
    Page,
    /// This text.
    Stub(Arc<Vec<u8>>),
    /// Nothing.
    Nothing,
}

/// The state of a part.
#[derive(Clone, Debug)]
pub struct Inclusion {
    /// The path, decoded.
    pub(crate) uri: Vec<u8>,
    /// The query.
    pub(crate) args: Option<Vec<u8>>,
    /// Path and query, encoded.
    pub(crate) target: Vec<u8>,
    pub(crate) family: Rc<SubrequestPlace>,
    /// The nesting depth.
    pub(crate) depth: u8,
    pub(crate) failing: Failing,
    /// Whether the part itself provides the replacement of an empty response.
    pub(crate) has_stub: bool,
    /// The captures and variables of the page, which both share.
    pub(crate) known: Captures,
    pub(crate) id: [u64; 2],
    /// The client's address according to a trusted proxy.
    pub(crate) real: Option<ClientAddress>,
    /// The index of the request's listen in its site.
    pub(crate) listen: usize,
    /// The results of limits for the page; as in nginx, none counts twice.
    pub(crate) limits: [LimitDetail; 2],
}
