//! A copy of a request for another location; its response is discarded.

use std::sync::Arc;

use bolide_base::Spool;
use bolide_http::Method;

use crate::connection::ClientAddress;
use crate::phase::limits::LimitDetail;
use bolide_patterns::Captures;

/// The state of a copy.
#[derive(Clone, Debug)]
pub struct Mirrored {
    /// The path, as written.
    pub(crate) uri: Arc<[u8]>,
    /// The query of the original.
    pub(crate) args: Option<Vec<u8>>,
    pub(crate) method: Method,
    /// The body, if it is copied.
    pub(crate) body: Option<Spool>,
    /// The captures and variables of the original.
    pub(crate) known: Captures,
    pub(crate) id: [u64; 2],
    /// The client's address according to a trusted proxy.
    pub(crate) real: Option<ClientAddress>,
    /// The index of the request's listen in its site.
    pub(crate) listen: usize,
    /// The results of limits for the original; as in nginx, none counts twice.
    pub(crate) limits: [LimitDetail; 2],
}
