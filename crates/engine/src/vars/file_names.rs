//! File names that contain variables, and the directories for relative ones.

use std::sync::Arc;

use bolide_conf::model::{Mapping, PathBases};
use bolide_conf::vars::{Template, Var};

use super::{VariableScope, VariableValue};
use crate::request::{Request, RequestNote};
use crate::site::Site;

impl VariableScope<'_> {
    /// Appends a file name with variables; a relative one is relative to a directory.
    pub(crate) fn push_file(
        &self,
        text: &Template,
        base: fn(&PathBases) -> &Arc<[u8]>,
        out: &mut Vec<u8>,
    ) {
        let start = out.len();
        self.expand(text, out);
        if out.get(start) != Some(&b'/')
            && let Some(http) = self.site.http()
        {
            let base = base(&http.bases);
            let slash = (base.last() != Some(&b'/')).then_some(b'/');
            out.splice(start..start, base.iter().copied().chain(slash));
        }
    }
}

impl VariableScope<'_> {
    /// Appends the file of the path. For a rewritten path in an alias, the part that belongs to the
    /// location is unknown.
    pub(super) fn request_filename(&self, out: &mut Vec<u8>) -> VariableValue {
        let (request, location) = (self.request, self.location());
        let is_rewritten = request.rewritten_here || request.uri_changed;
        if is_rewritten && location.settings.root.mapping != Mapping::Whole {
            let mut first = request.first_values.borrow_mut();
            // As in nginx, a failed evaluation is not repeated.
            if first.find(&Var::RequestFilename).is_none() {
                first.keep(&Var::RequestFilename, None);
                let line = alias_complaint(request, self.site);
                request.notes.borrow_mut().push(RequestNote::Alert(line));
            }
            return VariableValue::No;
        }
        self.push_path(location, &request.uri, out);
        VariableValue::Yes
    }
}

/// nginx's message in that case.
pub(crate) fn alias_complaint(request: &Request, site: &Site) -> Vec<u8> {
    let http = site.http();
    let location = http.and_then(|http| http.locations.get(request.location as usize));
    let mut line = b"\"alias\" cannot be used in location \"".to_vec();
    line.extend_from_slice(location.map_or(&b""[..], |location| &location.name));
    line.extend_from_slice(b"\" where URI was rewritten");
    line
}
