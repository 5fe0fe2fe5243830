//! A copy of a request for another location, whose answer no client gets.

use std::sync::Arc;

use bolide_base::Spool;
use bolide_http::Method;

use crate::connection::ClientAddress;
use crate::phase::limits::LimitDetail;
use bolide_patterns::Captures;

/// What makes a request a copy of another one.
#[derive(Clone, Debug)]
pub struct Mirrored {
    /// The path, as written.
    pub(crate) uri: Arc<[u8]>,
    /// The query of the other one.
    pub(crate) args: Option<Vec<u8>>,
    pub(crate) method: Method,
    /// The body, if it is copied.
    pub(crate) body: Option<Spool>,
    /// What the other one knew.
    pub(crate) known: Captures,
    pub(crate) id: [u64; 2],
    /// Who asks, if that is not who is connected.
    pub(crate) real: Option<ClientAddress>,
    /// Where the request came in, as its site counts it.
    pub(crate) listen: usize,
    /// What limits said of the request; as in nginx, none is counted twice.
    pub(crate) told: [LimitDetail; 2],
}
