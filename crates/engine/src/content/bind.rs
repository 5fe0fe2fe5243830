//! By which address of ours an origin is called: `proxy_bind` and its kin.

use bolide_conf::local_address;
use bolide_conf::model::{Bind, OriginSettings};
use bolide_upstream::LocalAddress;

use crate::answer::Answer;
use crate::ctx::StepCtx;
use crate::request::Request;
use crate::site::Site;
use crate::vars::VariableScope;

/// What the request is sent from, if that is not left to the system. As in nginx, what
/// variables make of it may be empty, and is left out if it is no address.
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
