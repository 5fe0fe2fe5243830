//! What makes a request a part of another one, by SSI or `addition`.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use bolide_ssi::SharedText;

use crate::connection::ClientAddress;
use crate::phase::limits::LimitDetail;
use bolide_patterns::Captures;

/// What a page and all its parts share.
#[derive(Debug, Default)]
pub(crate) struct SubrequestPlace {
    pub(crate) shared: Rc<RefCell<SharedText>>,
    /// Parts that were asked for.
    pub(crate) count: Cell<u32>,
    /// The charset of the page, which its parts are recoded to.
    pub(crate) charset: RefCell<Option<Vec<u8>>>,
}

/// What is given where a part fails.
#[derive(Clone, Debug)]
pub(crate) enum Failing {
    /// The page for the failure.
    Page,
    /// This text.
    Stub(Arc<Vec<u8>>),
    /// Nothing.
    Nothing,
}

/// What makes a request a part of another one.
#[derive(Clone, Debug)]
pub struct Inclusion {
    /// The path, decoded.
    pub(crate) uri: Vec<u8>,
    /// The query.
    pub(crate) args: Option<Vec<u8>>,
    /// Both as an address.
    pub(crate) target: Vec<u8>,
    pub(crate) family: Rc<SubrequestPlace>,
    /// How many others it is in.
    pub(crate) depth: u8,
    pub(crate) failing: Failing,
    /// Whether what stands for it, should there be nothing of it, is its own affair.
    pub(crate) has_stub: bool,
    /// What the other one knew; both share their variables.
    pub(crate) known: Captures,
    pub(crate) id: [u64; 2],
    /// Who asks, if that is not who is connected.
    pub(crate) real: Option<ClientAddress>,
    /// Where the request came in, as its site counts it.
    pub(crate) listen: usize,
    /// What limits said of the request; as in nginx, none is counted twice.
    pub(crate) told: [LimitDetail; 2],
}
