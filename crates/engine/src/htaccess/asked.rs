//! The URL that the client asked for, which no internal redirect changes: LiteSpeed's `ORG_REQ_URI`
//! and `ORG_QUERY_STRING`.

use bolide_http::uri::{MergeSlashes, normalise};

use crate::request::Request;
use crate::subrequest::{RequestRole, Subrequest};

/// The text of a truth.
pub(super) const fn truth(is_true: bool) -> &'static [u8] {
    if is_true { b"true" } else { b"false" }
}

/// That URL of a request; of a subrequest, the one that it was made for.
#[derive(Clone, Copy)]
pub(super) struct AskedUrl<'a>(pub(super) &'a Request);

impl<'a> AskedUrl<'a> {
    /// Path and query of a subrequest.
    fn within(self) -> Option<(&'a [u8], Option<&'a [u8]>)> {
        let RequestRole::Subrequest(subrequest) = &self.0.role else { return None };
        match subrequest {
            // It has a request target of its own.
            Subrequest::Fragment(_) => None,
            Subrequest::Auth(auth) => Some((&auth.uri, None)),
            Subrequest::Part(part) => Some((&part.uri, part.args.as_deref())),
            Subrequest::Mirror(mirrored) => Some((&mirrored.uri, mirrored.args.as_deref())),
            Subrequest::Slice(slice) => Some((&slice.uri, slice.args.as_deref())),
        }
    }

    /// Appends the path, decoded.
    pub(super) fn push_path(self, merge: MergeSlashes, out: &mut Vec<u8>) {
        if let Some((path, _)) = self.within() {
            out.extend_from_slice(path);
            return;
        }
        let (target, mut decoded) = (&self.0.head().target, Vec::new());
        if let Ok(parsed) = normalise(target, merge, &mut decoded) {
            out.extend_from_slice(parsed.path(target, &decoded));
        }
    }

    /// Whether the path of the request is still that one.
    pub(super) fn is_current(self, merge: MergeSlashes) -> bool {
        let mut asked = Vec::new();
        self.push_path(merge, &mut asked);
        asked == self.0.uri
    }

    /// Appends the query.
    pub(super) fn push_query(self, merge: MergeSlashes, out: &mut Vec<u8>) {
        if let Some((_, args)) = self.within() {
            out.extend_from_slice(args.unwrap_or_default());
            return;
        }
        let target = &self.0.head().target;
        if let Ok(parsed) = normalise(target, merge, &mut Vec::new()) {
            out.extend_from_slice(parsed.args(target));
        }
    }
}
