//! `Allow`: the methods that a location supports, for a 405 (RFC 9110 §15.5.6).
//!
//! Every generated 405 gets it here; a 405 of an upstream is passed on unchanged.

use bolide_http::{Method, Name};

use crate::answer::{Allowed, Answer};
use crate::request::Request;
use crate::site::{CompiledLocation, Site};

/// Records the location that refused the method; an error page may come from another one.
#[cold]
pub(crate) fn record_refused_method(request: &Request, answer: &mut Answer, site: &Site) {
    answer.allowed = Some(allowed_at(site.location(request.location)));
}

/// RFC 9110 §15.5.6: a 405 lists the supported methods, without the refused one.
#[cold]
pub(crate) fn say_allowed(request: &Request, answer: &mut Answer, site: &Site) {
    debug_assert_eq!(answer.head.status, 405, "only a refused method asks for the others");
    let is_ours = !answer.is_from_origin() && answer.object.is_none();
    let here = || is_ours.then(|| allowed_at(site.location(request.location)));
    let Some(allowed) = answer.allowed.or_else(here) else { return };
    let fields = &mut answer.head.fields;
    if fields.get(Name::Allow).is_some() {
        return;
    }
    let head = request.head();
    let refused = std::str::from_utf8(&head.method_text).unwrap_or_default();
    let is_left = |method: &&str| match head.method {
        // A resource that refuses GET refuses HEAD as well.
        Method::Get => !matches!(*method, "GET" | "HEAD"),
        _ => *method != refused,
    };
    let left: Vec<&str> = allowed.methods().into_iter().filter(is_left).collect();
    fields.push(Name::Allow, left.join(", ").as_bytes());
}

fn allowed_at(location: &CompiledLocation) -> Allowed {
    if location.pass.is_some() {
        Allowed::All
    } else {
        Allowed::Reading(location.settings.dav.methods)
    }
}
