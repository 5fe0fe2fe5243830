//! `random_index`: a directory is answered with one of its files, chosen by chance.

use bolide_files::{FileKind, Known, Want};

use crate::answer::Answer;
use crate::content::search::FileSearch;
use crate::ctx::{StepCtx, StepEffect};
use crate::exchange::{NextStep, RequestStep};
use crate::request::Request;
use crate::site::Site;

impl FileSearch {
    /// Goes to one of the files of the directory that the path names; to `index`, if there is none.
    pub(crate) fn random_index(
        &mut self,
        request: &mut Request,
        answer: &Answer,
        site: &Site,
        ctx: &mut StepCtx<'_>,
    ) -> NextStep {
        debug_assert!(request.uri.ends_with(b"/"), "a directory's path ends with a slash");
        let location = site.location(request.location);
        self.map_path(request, answer, site, ctx);
        if self.path.len() > 1 && self.path.last() == Some(&b'/') {
            self.path.pop();
        }
        if let Some(entries) = ctx.files.listing(&self.path, ctx.now) {
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
            // The next request for the same may be led elsewhere.
            request.is_straight = false;
            request.arrival.bend();
            return request.go_to_index(&target, site, ctx);
        }
        if self.waited_for_listing
            && let Known::Missing(failure) = ctx.files.lookup(&self.path, ctx.now, &location.policy)
        {
            return self.listing_failed(request, failure, site, ctx);
        }
        self.waited_for_listing = true;
        let probe = ctx.files.probe(&self.path, Want::List, &location.policy);
        ctx.effects.push(StepEffect::Probe(Box::new(probe)));
        NextStep::Probe(RequestStep::RandomIndex)
    }
}
