//! The roles of a request: a client's, one of `post_action`, or a subrequest, with its purpose.
//!
//! The purposes are a closed set, so no request has two. The worker owns the tree of parents and
//! children (`crates/worker/src/subrequests.rs`).

mod auth;
mod combined_head;
mod inclusion;
mod lineage;
mod mirrored;
mod slice;

use bolide_http::{BodyLen, FieldMap};

pub use auth::{AuthSubrequest, AuthVerdict};
pub use combined_head::CombinedHead;
pub use inclusion::Inclusion;
pub(crate) use inclusion::{Failing, SubrequestPlace};
pub use lineage::Lineage;
pub(crate) use lineage::{FragmentAncestry, FragmentFamily, is_same_site};
pub(crate) use lineage::{FragmentSource, GivenFragment, IncludingPage, KeptAs};
pub use mirrored::Mirrored;
pub use slice::SliceRequest;
pub(crate) use slice::{SliceRange, Slicing};

/// A request that the server makes for another one, by purpose.
#[derive(Debug)]
pub enum Subrequest {
    /// `<esi:include>`: a fragment of a page, which passes all checks of a client's request.
    Fragment(Box<Lineage>),
    /// `<!--#include-->`, `add_before_body` and `add_after_body`: a part of another response.
    Part(Box<Inclusion>),
    /// `auth_request`: only the head of its response counts.
    Auth(Box<AuthSubrequest>),
    /// `mirror`: its response is discarded.
    Mirror(Box<Mirrored>),
    /// `slice`: the next range of another response.
    Slice(Box<SliceRequest>),
}

/// Who a request belongs to.
#[derive(Debug, Default)]
pub(crate) enum RequestRole {
    /// A client.
    #[default]
    Client,
    /// A client that has its response already; `post_action` continues the request.
    PostAction(Box<PostActionState>),
    /// Another request.
    Subrequest(Subrequest),
}

impl RequestRole {
    /// Whether another request started this one.
    pub(crate) const fn is_subrequest(&self) -> bool {
        matches!(self, Self::Subrequest(_))
    }

    /// Whether it is a subrequest in nginx's sense, which shares variables with its parent. A
    /// fragment is processed like a client's request instead.
    pub(crate) const fn is_inside(&self) -> bool {
        match self {
            Self::Subrequest(subrequest) => !matches!(subrequest, Subrequest::Fragment(_)),
            Self::Client | Self::PostAction(_) => false,
        }
    }

    /// Its ancestry, if it is a fragment of an ESI page.
    pub(crate) const fn fragment(&self) -> Option<&Lineage> {
        match self {
            Self::Subrequest(Subrequest::Fragment(lineage)) => Some(lineage),
            _ => None,
        }
    }

    /// Its place, if it is a part of another response.
    pub(crate) const fn part(&self) -> Option<&Inclusion> {
        match self {
            Self::Subrequest(Subrequest::Part(inclusion)) => Some(inclusion),
            _ => None,
        }
    }

    /// As [`Self::part`], mutable.
    pub(crate) const fn part_mut(&mut self) -> Option<&mut Inclusion> {
        match self {
            Self::Subrequest(Subrequest::Part(inclusion)) => Some(inclusion),
            _ => None,
        }
    }

    /// Its state, if it is an authorization subrequest.
    pub(crate) const fn auth(&self) -> Option<&AuthSubrequest> {
        match self {
            Self::Subrequest(Subrequest::Auth(auth)) => Some(auth),
            _ => None,
        }
    }

    /// Its original, if it is a mirror subrequest.
    pub(crate) const fn mirrored(&self) -> Option<&Mirrored> {
        match self {
            Self::Subrequest(Subrequest::Mirror(mirrored)) => Some(mirrored),
            _ => None,
        }
    }

    /// Its range, if it is a slice of another response.
    pub(crate) const fn slice(&self) -> Option<&SliceRequest> {
        match self {
            Self::Subrequest(Subrequest::Slice(slice)) => Some(slice),
            _ => None,
        }
    }

    /// Whether its response is discarded.
    pub(crate) const fn has_no_client(&self) -> bool {
        matches!(self, Self::PostAction(_) | Self::Subrequest(Subrequest::Mirror(_)))
    }

    /// What the client got, if `post_action` continues the request.
    pub(crate) const fn post_action(&self) -> Option<&PostActionState> {
        match self {
            Self::PostAction(state) => Some(state),
            _ => None,
        }
    }
}

/// The response as the client got it, for the log.
#[derive(Debug)]
pub(crate) struct PostActionState {
    pub(crate) fields: FieldMap,
    pub(crate) body: BodyLen,
}
