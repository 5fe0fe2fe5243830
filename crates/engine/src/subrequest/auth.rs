//! An authorization subrequest, and its result.

use std::sync::Arc;

use bolide_conf::model::{AuthRequest, SetTarget};

use crate::connection::ClientAddress;
use crate::phase::limits::LimitDetail;
use bolide_limit::LimitHold;
use bolide_patterns::Captures;

/// The state of an authorization subrequest.
#[derive(Clone, Debug)]
pub struct AuthSubrequest {
    /// The URI of `auth_request`, as written.
    pub(crate) uri: Arc<[u8]>,
    /// The directives that use its response.
    pub(crate) rule: Arc<AuthRequest>,
    /// The captures and variables of the main request, which it shares.
    pub(crate) known: Captures,
    pub(crate) id: [u64; 2],
    /// The client's address according to a trusted proxy.
    pub(crate) real: Option<ClientAddress>,
    /// The index of the main request's listen in its site.
    pub(crate) listen: usize,
    /// The results of limits for the main request; as in nginx, none counts twice.
    pub(crate) limits: [LimitDetail; 2],
}

/// The result of an authorization subrequest.
#[derive(Debug, Default)]
pub struct AuthVerdict {
    pub(crate) status: u16,
    /// Whether an upstream was asked.
    pub(crate) has_asked: bool,
    /// `WWW-Authenticate` of its response.
    pub(crate) challenges: Vec<Vec<u8>>,
    /// `auth_request_set`
    pub(crate) values: Vec<(SetTarget, Vec<u8>)>,
    pub(crate) known: Captures,
    /// The results of limits for both requests.
    pub(crate) limits: [LimitDetail; 2],
    /// Where the subrequest is counted: until the main request ends, as in nginx.
    pub(crate) held: LimitHold,
}
