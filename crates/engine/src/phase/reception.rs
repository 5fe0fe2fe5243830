//! Steps before the configuration of the server applies: the real client's address, responses to
//! ACME challenges, and the redirect to HTTPS of `auto_https`.

use bolide_http::Method;

use crate::answer::Answer;
use crate::ctx::StepCtx;
use crate::exchange::{NextStep, RequestStep};
use crate::explain::trace::trace_text;
use crate::phase::real_ip::find_client;
use crate::request::Request;
use crate::site::Site;
use crate::subrequest::RequestRole;

/// The path prefix of ACME challenges.
const PREFIX: &[u8] = b"/.well-known/acme-challenge/";
/// The type of a challenge response.
const MEDIA_TYPE: &[u8] = b"application/octet-stream";

/// The first step of a request whose server is known.
#[inline]
pub(crate) fn receive(
    request: &mut Request,
    answer: &mut Answer,
    site: &Site,
    ctx: &mut StepCtx<'_>,
) -> NextStep {
    let server = site.server(request.server);
    if server.decides_early {
        if server.has_real_ip {
            find_client(request, site, ctx);
        }
        if let Some(next) = answer_first(request, answer, site, ctx) {
            return next;
        }
    }
    NextStep::Step(RequestStep::Server)
}

/// Responds to an ACME challenge, or redirects to HTTPS; `None` otherwise.
fn answer_first(
    request: &mut Request,
    answer: &mut Answer,
    site: &Site,
    ctx: &mut StepCtx<'_>,
) -> Option<NextStep> {
    if !matches!(request.role, RequestRole::Client) {
        return None;
    }
    if let Some(token) = request.uri.strip_prefix(PREFIX) {
        if !matches!(request.method, Method::Get | Method::Head) || site.challenges.is_none() {
            return None;
        }
        let found = site.proof(&request.host, token);
        trace_text(request, || match found {
            Some(_) => "an issuer's challenge: answered with its key authorization".to_owned(),
            None => "no challenge of an issuer has this name and token now".to_owned(),
        });
        let content = found?;
        let settings = &site.location(request.location).settings;
        let kind = crate::media_types::kind(settings, &MEDIA_TYPE.into());
        return Some(answer.send_text(request, &kind, 200, content, site, ctx));
    }
    let redirect = site.server(request.server).redirect.as_ref()?;
    // A client is not redirected to a handshake that fails or has a certificate for other names.
    if ctx.conn.tls.is_some() || !site.is_certified(&request.host) {
        return None;
    }
    trace_text(request, || "auto_https: HTTP is redirected to HTTPS".to_owned());
    Some(answer.returned(request, redirect, site, ctx))
}
