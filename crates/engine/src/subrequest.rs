//! What a request is to the server: a client's, or one that the server makes inside itself.
//!
//! Owns the closed set of purposes, so that no request has two. The worker owns the tree of parents
//! and children (`crates/worker/src/subrequests.rs`).

mod auth;
mod inclusion;
mod lineage;
mod mirrored;
mod slice;

use bolide_http::{BodyLen, FieldMap};

pub use auth::{AuthSubrequest, AuthVerdict};
pub use inclusion::Inclusion;
pub(crate) use inclusion::{Failing, SubrequestPlace};
pub use lineage::Lineage;
pub(crate) use lineage::{FragmentAncestry, FragmentFamily, is_same_site};
pub(crate) use lineage::{FragmentSource, GivenFragment, KeptAs};
pub use mirrored::Mirrored;
pub use slice::SliceRequest;
pub(crate) use slice::{SliceRange, Slicing};

/// A request that the server makes inside itself, and what for.
#[derive(Debug)]
pub enum Subrequest {
    /// `<esi:include>`: a fragment of a page, which passes all checks of a client's request.
    Fragment(Box<Lineage>),
    /// `<!--#include-->`, `add_before_body` and `add_after_body`: a part of another response.
    Part(Box<Inclusion>),
    /// `auth_request`: only the head of its answer counts.
    Auth(Box<AuthSubrequest>),
    /// `mirror`: nothing of its answer counts.
    Mirror(Box<Mirrored>),
    /// `slice`: the next bytes of another response.
    Slice(Box<SliceRequest>),
}

/// On whose behalf a request is answered.
#[derive(Debug, Default)]
pub(crate) enum RequestRole {
    /// A client's.
    #[default]
    Client,
    /// A client's that has its answer; the request goes on where `post_action` says.
    PostAction(Box<PostActionState>),
    /// Another request's.
    Subrequest(Subrequest),
}

impl RequestRole {
    /// Whether another request asked for this one.
    pub(crate) const fn is_subrequest(&self) -> bool {
        matches!(self, Self::Subrequest(_))
    }

    /// Whether it is a subrequest as nginx has them, which shares what the request that it is for
    /// knows. A fragment of a page is one of a client's.
    pub(crate) const fn is_inside(&self) -> bool {
        match self {
            Self::Subrequest(subrequest) => !matches!(subrequest, Subrequest::Fragment(_)),
            Self::Client | Self::PostAction(_) => false,
        }
    }

    /// What makes it a fragment of a page with ESI.
    pub(crate) const fn fragment(&self) -> Option<&Lineage> {
        match self {
            Self::Subrequest(Subrequest::Fragment(lineage)) => Some(lineage),
            _ => None,
        }
    }

    /// What makes it a part of another response.
    pub(crate) const fn part(&self) -> Option<&Inclusion> {
        match self {
            Self::Subrequest(Subrequest::Part(inclusion)) => Some(inclusion),
            _ => None,
        }
    }

    /// The same, to change it.
    pub(crate) const fn part_mut(&mut self) -> Option<&mut Inclusion> {
        match self {
            Self::Subrequest(Subrequest::Part(inclusion)) => Some(inclusion),
            _ => None,
        }
    }

    /// What makes it an authorization subrequest.
    pub(crate) const fn auth(&self) -> Option<&AuthSubrequest> {
        match self {
            Self::Subrequest(Subrequest::Auth(auth)) => Some(auth),
            _ => None,
        }
    }

    /// What makes it a copy of another request.
    pub(crate) const fn mirrored(&self) -> Option<&Mirrored> {
        match self {
            Self::Subrequest(Subrequest::Mirror(mirrored)) => Some(mirrored),
            _ => None,
        }
    }

    /// What makes it a slice of another response.
    pub(crate) const fn slice(&self) -> Option<&SliceRequest> {
        match self {
            Self::Subrequest(Subrequest::Slice(slice)) => Some(slice),
            _ => None,
        }
    }

    /// Whether no client gets what is answered.
    pub(crate) const fn has_no_client(&self) -> bool {
        matches!(self, Self::PostAction(_) | Self::Subrequest(Subrequest::Mirror(_)))
    }

    /// What the client got, if the request goes on behind its answer.
    pub(crate) const fn post_action(&self) -> Option<&PostActionState> {
        match self {
            Self::PostAction(state) => Some(state),
            _ => None,
        }
    }
}

/// What the client was told, for the log.
#[derive(Debug)]
pub(crate) struct PostActionState {
    pub(crate) fields: FieldMap,
    pub(crate) body: BodyLen,
}
