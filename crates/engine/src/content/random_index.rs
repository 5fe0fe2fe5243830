//! `random_index`: a directory is answered with a random one of its files.

use bolide_files::FileKind;

use crate::answer::Answer;
use crate::content::search::FileSearch;
use crate::ctx::StepCtx;
use crate::exchange::{NextStep, RequestStep};
use crate::request::Request;
use crate::site::Site;

impl FileSearch {
    /// Internal redirect to a random file of the directory; continues with `index` if there is
    /// none.
    pub(crate) fn random_index(
        &mut self,
        request: &mut Request,
        answer: &Answer,
        site: &Site,
        ctx: &mut StepCtx<'_>,
    ) -> NextStep {
        debug_assert!(request.uri.ends_with(b"/"), "a directory's path ends with a slash");
        self.map_path(request, answer, site, ctx);
        self.end_without_slash();
        if let Some(Ok(entries)) = ctx.files.listing(&self.path, ctx.now) {
            let is_meant = |entry: &&bolide_files::DirEntry| {
                entry.kind == FileKind::File && entry.name.first() != Some(&b'.')
            };
            let Some(last) = entries.iter().filter(is_meant).count().checked_sub(1) else {
                return NextStep::Step(RequestStep::Index(0));
            };
            let chosen = (ctx.prng.next_u64() % (last as u64 + 1)) as usize;
            let mut target = request.uri.clone();
            if let Some(entry) = entries.iter().filter(is_meant).nth(chosen) {
                target.extend_from_slice(&entry.name);
            }
            // The next request may get another file.
            request.is_straight = false;
            request.arrival.bend();
            return request.go_to_index(&target, site, ctx);
        }
        self.probe_listing(request, RequestStep::RandomIndex, site, ctx)
    }
}
