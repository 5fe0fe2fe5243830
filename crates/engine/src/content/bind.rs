//! `proxy_bind` and its kin: the local address of an upstream connection.

use bolide_conf::local_address;
use bolide_conf::model::{Bind, OriginSettings};
use bolide_upstream::LocalAddress;

use crate::answer::Answer;
use crate::ctx::StepCtx;
use crate::request::Request;
use crate::site::Site;
use crate::vars::VariableScope;

/// The local address; none if the system chooses it. As in nginx, the value of variables may be
/// empty, and an invalid address is ignored.
pub(crate) fn bind_to(
    request: &Request,
    answer: &Answer,
    settings: &OriginSettings,
    site: &Site,
    ctx: &mut StepCtx<'_>,
) -> Option<LocalAddress> {
    let template = match settings.bind.as_ref()? {
        Bind::At(at, text) => return Some(LocalAddress { at: *at, text: text.clone() }),
        Bind::Computed(template) => template,
    };
    let mut text = Vec::new();
    VariableScope::new(request, answer, site, ctx).expand(template, &mut text);
    if text.is_empty() {
        return None;
    }
    let Some(at) = local_address::parse(&text) else {
        request.log_error(site, ctx, |out| {
            out.extend_from_slice(b"invalid local address \"");
            out.extend_from_slice(&text);
            out.push(b'"');
        });
        return None;
    };
    Some(LocalAddress { at, text: String::from_utf8_lossy(&text).into() })
}
