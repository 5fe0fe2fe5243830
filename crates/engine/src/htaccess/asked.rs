//! The URL that the client asked for, which no internal redirect changes: LiteSpeed's `ORG_REQ_URI`
//! and `ORG_QUERY_STRING`.

use bolide_http::uri::{MergeSlashes, normalise};

use crate::request::Request;
use crate::subrequest::{RequestRole, Subrequest};

/// The text of a truth.
pub(super) const fn truth(is_true: bool) -> &'static [u8] {
    if is_true { b"true" } else { b"false" }
}

impl Request {
    /// Path and query of a subrequest.
    fn asked_within(&self) -> Option<(&[u8], Option<&[u8]>)> {
        let RequestRole::Subrequest(subrequest) = &self.role else { return None };
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
    pub(super) fn push_asked_path(&self, merge: MergeSlashes, out: &mut Vec<u8>) {
        if let Some((path, _)) = self.asked_within() {
            out.extend_from_slice(path);
            return;
        }
        let (target, mut decoded) = (&self.head().target, Vec::new());
        if let Ok(parsed) = normalise(target, merge, &mut decoded) {
            out.extend_from_slice(parsed.path(target, &decoded));
        }
    }

    /// Whether the path is still that one.
    pub(super) fn has_asked_path(&self, merge: MergeSlashes) -> bool {
        let mut asked = Vec::new();
        self.push_asked_path(merge, &mut asked);
        asked == self.uri
    }

    /// Appends the query.
    pub(super) fn push_asked_query(&self, merge: MergeSlashes, out: &mut Vec<u8>) {
        if let Some((_, args)) = self.asked_within() {
            out.extend_from_slice(args.unwrap_or_default());
            return;
        }
        let target = &self.head().target;
        if let Ok(parsed) = normalise(target, merge, &mut Vec::new()) {
            out.extend_from_slice(parsed.args(target));
        }
    }
}
