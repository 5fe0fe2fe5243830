//! A question whether a request may come in, and what came of it.

use std::sync::Arc;

use bolide_conf::model::{AuthRequest, SetTarget};

use crate::connection::ClientAddress;
use crate::phase::limits::LimitDetail;
use bolide_limit::LimitHold;
use bolide_patterns::Captures;

/// What makes a request a question.
#[derive(Clone, Debug)]
pub struct AuthSubrequest {
    /// The path that is asked, as written.
    pub(crate) uri: Arc<[u8]>,
    /// What is read of the answer.
    pub(crate) rule: Arc<AuthRequest>,
    /// What the request knew; a question shares its variables.
    pub(crate) known: Captures,
    pub(crate) id: [u64; 2],
    /// Who asks for what it is about, if that is not who is connected.
    pub(crate) real: Option<ClientAddress>,
    /// Where the request came in, as its site counts it.
    pub(crate) listen: usize,
    /// What limits said of the request; as in nginx, none is counted twice.
    pub(crate) told: [LimitDetail; 2],
}

/// What came of a question.
#[derive(Debug, Default)]
pub struct AuthVerdict {
    pub(crate) status: u16,
    /// Whether an upstream server was asked.
    pub(crate) has_asked: bool,
    /// `WWW-Authenticate` of the origin that was asked.
    pub(crate) challenges: Vec<Vec<u8>>,
    /// `auth_request_set`
    pub(crate) values: Vec<(SetTarget, Vec<u8>)>,
    pub(crate) known: Captures,
    /// What limits said of both.
    pub(crate) told: [LimitDetail; 2],
    /// Where the question is counted: for as long as the request, as in nginx.
    pub(crate) held: LimitHold,
}
