//! `sticky`: what binds a request to a server of its group, the cookie that says so to the client,
//! and the sessions that the group learns.
//!
//! `bolide_upstream` chooses the server. Easiest to break: the cookie belongs to the response for
//! one client, so that it is written after what caches store.

use bolide_conf::Template;
use bolide_conf::model::{SAME_SITES, Sticky, StickyCookie, StickyExpires, UpstreamId};
use bolide_http::digits::push_decimal;
use bolide_http::{FieldMap, Name};
use bolide_upstream::PeerBond;

use crate::answer::{Answer, BindingCookie};
use crate::ctx::StepCtx;
use crate::filter::user_id::push_cookie_date;
use crate::request::Request;
use crate::site::Site;
use crate::subrequest::RequestRole;
use crate::vars::{VariableScope, cookie_in};

/// How much of a response is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LearnMoment {
    /// Its head.
    Head,
    /// Its end, or the end of the client's connection before that.
    End,
}

/// The `sticky` of a group.
fn sticky_of(site: &Site, id: UpstreamId) -> Option<&Sticky> {
    site.http()?.upstreams.get(id.index())?.sticky.as_deref()
}

/// The id of the server that a request is bound to, or the name of its session; empty for none.
pub(super) fn bound_by(scope: &VariableScope<'_>, id: UpstreamId) -> Vec<u8> {
    match sticky_of(scope.site, id) {
        None => Vec::new(),
        Some(Sticky::Cookie(conf)) => {
            let mut lines = scope.request.head().fields.all(Name::Cookie);
            let id = lines.find_map(|line| cookie_in(line, &conf.name));
            id.map(<[u8]>::to_vec).unwrap_or_default()
        }
        Some(Sticky::Route(variables)) => first_of(scope, variables),
        Some(Sticky::Learn(conf)) => first_of(scope, &conf.lookup),
    }
}

/// The first value that is not empty.
fn first_of(scope: &VariableScope<'_>, variables: &[Template]) -> Vec<u8> {
    let mut out = Vec::new();
    for variable in variables {
        scope.expand(variable, &mut out);
        if !out.is_empty() {
            break;
        }
    }
    out
}

/// Writes the cookie for the server that was chosen. As in nginx, each upstream request has one: of
/// its last server.
pub(crate) fn bind(
    request: &Request,
    answer: &mut Answer,
    bond: &PeerBond,
    site: &Site,
    ctx: &StepCtx<'_>,
) {
    let group = answer.origin.as_ref().and_then(|asked| asked.group);
    let Some(Sticky::Cookie(conf)) = group.and_then(|id| sticky_of(site, id)) else { return };
    if !matches!(request.role, RequestRole::Client) {
        return;
    }
    let text = set_cookie(conf, &bond.id, &VariableScope::new(request, answer, site, ctx));
    let Some(asked) = &mut answer.origin else { return };
    let number = asked.later.len();
    asked.bonds.retain(|bond| bond.request != number);
    asked.bonds.push(BindingCookie { request: number, cookie: text });
}

fn set_cookie(conf: &StickyCookie, id: &[u8], scope: &VariableScope<'_>) -> Vec<u8> {
    let mut out = [&*conf.name, b"=", id].concat();
    let now = scope.now.unix_seconds();
    let expires = match conf.expires {
        StickyExpires::Session => None,
        StickyExpires::After(seconds) => Some((now.saturating_add(seconds), seconds)),
        StickyExpires::Max => Some((2_145_916_555, 315_360_000)),
    };
    if let Some((at, age)) = expires {
        out.extend_from_slice(b"; expires=");
        push_cookie_date(&mut out, i64::try_from(at).unwrap_or(i64::MAX));
        out.extend_from_slice(b"; max-age=");
        push_decimal(&mut out, age);
    }
    if let Some(domain) = &conf.domain {
        let bare = out.len();
        out.extend_from_slice(b"; domain=");
        let empty = out.len();
        scope.expand(domain, &mut out);
        if out.len() == empty {
            out.truncate(bare);
        }
    }
    if conf.http_only {
        out.extend_from_slice(b"; httponly");
    }
    if conf.secure {
        out.extend_from_slice(b"; secure");
    }
    if let Some(same_site) = &conf.same_site {
        push_same_site(&mut out, same_site, scope);
    }
    if let Some(path) = &conf.path {
        out.extend_from_slice(b"; path=");
        out.extend_from_slice(path);
    }
    for byte in out.iter_mut().filter(|byte| matches!(byte, 0 | b'\r' | b'\n')) {
        *byte = b' ';
    }
    out
}

/// As in nginx, a value that browsers do not know becomes the strictest one.
fn push_same_site(out: &mut Vec<u8>, same_site: &Template, scope: &VariableScope<'_>) {
    let mut text = Vec::new();
    scope.expand(same_site, &mut text);
    if text.is_empty() {
        return;
    }
    let is_known = SAME_SITES.iter().any(|site| site.eq_ignore_ascii_case(&text));
    out.extend_from_slice(b"; samesite=");
    out.extend_from_slice(if is_known { &text } else { b"strict" });
}

/// Adds the cookies of `sticky cookie`: as in nginx, before all fields that are not its own, so
/// that other cookies follow.
#[inline]
pub(crate) fn push_cookies(fields: &mut FieldMap, answer: &Answer) {
    // PERF: hardly any response has them.
    if let Some(asked) = answer.origin.as_deref().filter(|asked| !asked.bonds.is_empty()) {
        push_bonds(fields, &asked.bonds);
    }
}

#[cold]
fn push_bonds(fields: &mut FieldMap, bonds: &[BindingCookie]) {
    let own = std::mem::take(fields);
    let is_first = |name| {
        matches!(
            name,
            Name::Server | Name::Date | Name::ContentType | Name::LastModified | Name::Location
        )
    };
    let first = own.iter().take_while(|field| is_first(field.name)).count();
    for field in own.iter().take(first) {
        fields.push_parsed(field.name, field.text, field.value);
    }
    for bond in bonds {
        fields.push(Name::SetCookie, &bond.cookie);
    }
    for field in own.iter().skip(first) {
        fields.push_parsed(field.name, field.text, field.value);
    }
}

/// Learns the session of a response, if its group learns and this is the moment for it.
pub(crate) fn learn(
    request: &Request,
    answer: &Answer,
    moment: LearnMoment,
    site: &Site,
    ctx: &StepCtx<'_>,
) {
    let Some(asked) = answer.origin.as_deref() else { return };
    let Some(Sticky::Learn(conf)) = asked.group.and_then(|id| sticky_of(site, id)) else { return };
    if conf.at_head != (moment == LearnMoment::Head) {
        return;
    }
    let bond = asked.attempts.last().and_then(|attempt| attempt.bond.as_ref());
    let Some((id, Some(sessions))) = bond.map(|bond| (&bond.id, &bond.sessions)) else { return };
    let name = first_of(&VariableScope::new(request, answer, site, ctx), &conf.create);
    if !name.is_empty() {
        sessions.learn(&name, id, ctx.now.mono);
    }
}

/// The client leaves. As in nginx, the session of a response whose rest it does not get is learned.
pub(crate) fn learn_of_rest(request: &Request, answer: &Answer, site: &Site, ctx: &StepCtx<'_>) {
    if answer.is_fetching() {
        learn(request, answer, LearnMoment::End, site, ctx);
    }
}
