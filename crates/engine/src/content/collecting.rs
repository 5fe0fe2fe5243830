//! Buffers the request body before a step is made; a large one in a file.

use bolide_base::Spool;
use bolide_conf::model::BodyFiles;

use crate::answer::Answer;
use crate::body::{FileHolds, UploadProgress};
use crate::ctx::{SpoolPlace, StepCtx, StepEffect, Wake};
use crate::exchange::{NextStep, RequestStep};
use crate::request::Request;
use crate::site::{CompiledLocation, Site};

impl Request {
    /// Continues to buffer the request body.
    pub(crate) fn collect(
        &mut self,
        answer: &Answer,
        step: RequestStep,
        wake: Wake,
        site: &Site,
        ctx: &mut StepCtx<'_>,
    ) -> NextStep {
        let location = site.location(self.location);
        match wake {
            Wake::Body(bytes) => {
                let len = bytes.len();
                self.body_received += len as u64;
                let was_writing = self.upload.spool().is_some_and(Spool::wants_writing);
                self.upload.push(bytes);
                if self.is_body_too_large(answer, len, site, ctx) {
                    self.upload.refuse(ctx.effects);
                    return NextStep::Fail(413);
                }
                if was_writing {
                    return NextStep::Collect(step);
                }
            }
            Wake::BodyEnd => {
                self.upload.finish();
                if self.upload.spool().is_some_and(Spool::wants_writing) {
                    return NextStep::Collect(step);
                }
            }
            _ => {}
        }
        let progress = self.upload.settle(ctx.effects);
        if step == RequestStep::Dav {
            return collected_in(self, progress, step, file_with_name(location), ctx);
        }
        collected(self, progress, step, location, ctx)
    }
}

/// What the file of a buffered body contains.
pub(crate) fn holds(location: &CompiledLocation, site: &Site) -> FileHolds {
    match location.settings.client_body_in_file_only {
        BodyFiles::Unnamed if site.names_body_file => FileHolds::Everything,
        BodyFiles::Unnamed => FileHolds::Rest,
        files => FileHolds::Always { is_removed: files == BodyFiles::Removed },
    }
}

/// The result of buffering the request body; `step` when it is complete.
pub(crate) fn collected(
    request: &mut Request,
    progress: UploadProgress,
    step: RequestStep,
    location: &CompiledLocation,
    ctx: &mut StepCtx<'_>,
) -> NextStep {
    let place = &location.settings.client_body_temp_path;
    let place = match location.settings.client_body_in_file_only {
        BodyFiles::Unnamed => SpoolPlace::Unnamed(place.path.clone()),
        BodyFiles::Kept | BodyFiles::Removed => file_with_name(location),
    };
    collected_in(request, progress, step, place, ctx)
}

/// Where a body file with a name is created.
pub(crate) fn file_with_name(location: &CompiledLocation) -> SpoolPlace {
    SpoolPlace::Named(location.settings.client_body_temp_path.clone())
}

/// As [`collected`], with the place of its file.
pub(crate) fn collected_in(
    request: &mut Request,
    progress: UploadProgress,
    step: RequestStep,
    place: SpoolPlace,
    ctx: &mut StepCtx<'_>,
) -> NextStep {
    match progress {
        UploadProgress::Waiting => NextStep::Collect(step),
        UploadProgress::Writing => {
            ctx.effects.push(StepEffect::Spool(place));
            NextStep::Collect(step)
        }
        UploadProgress::Complete => NextStep::Step(step),
        UploadProgress::Failed => {
            request.upload.refuse(ctx.effects);
            NextStep::Fail(500)
        }
    }
}
