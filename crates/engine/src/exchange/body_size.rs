//! `client_max_body_size`: refuses larger request bodies with 413.

use crate::ctx::StepCtx;
use crate::exchange::NextStep;
use crate::request::Request;
use crate::site::{CompiledLocation, Site};

/// Refuses a body that is too large.
pub(crate) fn refuse_body(
    request: &mut Request,
    len: u64,
    site: &Site,
    ctx: &mut StepCtx<'_>,
) -> NextStep {
    request.log_error(site, ctx, |out| {
        out.extend_from_slice(b"client intended to send too large body: ");
        bolide_http::digits::push_decimal(out, len);
        out.extend_from_slice(b" bytes");
    });
    request.upload.refuse(ctx.effects);
    NextStep::Fail(413)
}

/// Whether `len` bytes exceed the limit of the location, or of a `.htaccess` file.
pub(super) fn is_too_large(request: &Request, location: &CompiledLocation, len: u64) -> bool {
    let files = request.htaccess.as_ref().map_or(0, |files| files.body_max);
    [location.settings.client_max_body_size, files].iter().any(|max| *max != 0 && len > *max)
}
