//! Error-log lines at level `debug` about a request, in nginx's words. There are few, written only
//! where [`are_taken`] says that a log takes them.

use bolide_conf::model::Matcher;
use bolide_conf::vars::Var;

use crate::ctx::StepCtx;
use crate::log_lines;
use crate::request::Request;
use crate::site::{CompiledLocation, Site};
use crate::vars::VariableScope;

/// Whether a log takes lines of level `debug` about a request of this client.
pub(crate) fn are_taken(location: &CompiledLocation, site: &Site, ctx: &StepCtx<'_>) -> bool {
    location.debugs || site.debugs_client(ctx.conn.remote)
}

/// The location that a request was led to; the first time, also how it began.
#[cold]
pub(crate) fn found_location(request: &Request, site: &Site, ctx: &mut StepCtx<'_>) {
    debug_assert!(are_taken(site.location(request.location), site, ctx), "a log takes these lines");
    if !request.internal && !request.role.is_subrequest() {
        log_lines::debug(request, site, ctx, |out| {
            quoted(out, "http request line: ", &request.head().line);
        });
    }
    let conf = site.http().and_then(|http| http.locations.get(request.location as usize));
    let Some(conf) = conf else { return };
    let mark: &[u8] = if matches!(conf.matcher, Matcher::Exact(_)) { b"=" } else { b"" };
    let name: &[u8] = if matches!(conf.matcher, Matcher::Root) { b"" } else { &conf.name };
    log_lines::debug(request, site, ctx, |out| {
        quoted(out, "using configuration ", &[mark, name].concat());
    });
}

/// The upstream servers that were tried, the status, and the end of the request.
#[cold]
pub(crate) fn ended(scope: &VariableScope<'_>, ctx: &mut StepCtx<'_>) {
    debug_assert!(are_taken(scope.location(), scope.site, ctx), "a log takes these lines");
    let (request, site) = (scope.request, scope.site);
    let value = |var: Var| {
        let mut text = Vec::new();
        scope.write(&var, &mut text);
        text
    };
    let (origin, status) = (value(Var::UpstreamAddr), value(Var::Status));
    if !origin.is_empty() {
        log_lines::debug(request, site, ctx, |out| quoted(out, "http upstream: ", &origin));
    }
    log_lines::debug(request, site, ctx, |out| {
        out.extend_from_slice(b"http finalize request: ");
        out.extend_from_slice(&status);
        quoted(out, ", ", &request.uri);
    });
    if !request.role.is_subrequest() {
        log_lines::debug(request, site, ctx, |out| out.extend_from_slice(b"http close request"));
    }
}

fn quoted(out: &mut Vec<u8>, label: &str, text: &[u8]) {
    out.extend_from_slice(label.as_bytes());
    out.push(b'"');
    out.extend_from_slice(text);
    out.push(b'"');
}
