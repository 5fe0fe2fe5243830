//! A request body that was streamed to an upstream: its rest is of no use to another one.

use bolide_http::RequestBody;

use crate::ctx::StepCtx;
use crate::exchange::NextStep;
use crate::request::Request;
use crate::site::Site;

/// Fails a request whose body is needed and was streamed before: the next upstream would take the
/// rest of it, or nothing, for the whole. A request whose method an internal redirect changed needs
/// none.
pub(crate) fn refuse_rest(
    request: &mut Request,
    site: &Site,
    ctx: &mut StepCtx<'_>,
) -> Option<NextStep> {
    if !request.upload.is_streamed() || request.head().body == RequestBody::None {
        return None;
    }
    request.upload.refuse(ctx.effects);
    if request.method != request.head().method {
        return None;
    }
    request.log_error(site, ctx, |out| {
        out.extend_from_slice(b"the request body was passed on as it came and is gone");
    });
    Some(NextStep::Fail(502))
}
