//! Names of files that variables give, and where relative ones begin.

use std::sync::Arc;

use bolide_conf::model::PathBases;
use bolide_conf::vars::Template;

use super::VariableScope;

impl VariableScope<'_> {
    /// Appends the name of a file that variables give; a relative one is below a directory.
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
