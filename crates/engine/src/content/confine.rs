//! Whether a file lies below the directory that `root` or `alias` names.
//!
//! Owns the one rule about `..` in composed paths: the configuration may write it, a request may
//! not contribute it. A request path has no dot segments, but its rest after a location's prefix
//! may begin with them (`/i../x` in `location /i`), and so may values of variables. Symbolic links
//! are the business of `disable_symlinks`.

use bolide_conf::vars::{Template, TemplatePart};

use crate::answer::Answer;
use crate::content::climbs::climbs;
use crate::ctx::StepCtx;
use crate::request::Request;
use crate::site::{CompiledLocation, Site};
use crate::vars::VariableScope;
use crate::vars::preview::preview;

/// Whether an upstream answers that needs no file.
pub(crate) fn is_proxied(location: &CompiledLocation) -> bool {
    location.pass.as_ref().is_some_and(|pass| pass.is_http())
}

/// Whether values of variables lead out of the directory that `root` begins with, or that its first
/// variable names: that directory is the configuration's choice.
fn root_strays(scope: &VariableScope<'_>, location: &CompiledLocation, climbed: usize) -> bool {
    let template = &location.settings.root.path;
    let mut first = Vec::new();
    if let Some(TemplatePart::Var(var)) = template.parts().first() {
        scope.write(var, &mut first);
        // A relative path begins with the prefix.
        if first.first() != Some(&b'/')
            && let Some(http) = scope.site.http()
        {
            first.extend_from_slice(b"/");
            first.extend_from_slice(&http.bases.prefix);
        }
    }
    climbed > written_climbs(template) + climbs(&first)
}

/// The number of `..` segments that the configuration itself writes.
pub(crate) fn written_climbs(template: &Template) -> usize {
    let mut text = Vec::new();
    for part in template.parts() {
        match part {
            TemplatePart::Text(bytes) => text.extend_from_slice(bytes),
            // Any byte that is not a dot.
            TemplatePart::Var(_) => text.push(b'x'),
        }
    }
    climbs(&text)
}

/// Whether the file of a path other than the request's is outside of the directory.
pub(crate) fn leads_out(
    scope: &VariableScope<'_>,
    location: &CompiledLocation,
    uri: &[u8],
) -> bool {
    let mut path = Vec::new();
    scope.push_root(location, &mut path);
    let root = climbs(&path);
    if root > 0 && location.fixed_root.is_none() && root_strays(scope, location, root) {
        return true;
    }
    path.clear();
    scope.push_path(location, uri, &mut path);
    climbs(&path) > root
}

#[cold]
fn strays(request: &Request, answer: &Answer, site: &Site, ctx: &StepCtx<'_>) -> bool {
    let scope = VariableScope::new(request, answer, site, ctx);
    let location = scope.location();
    match location.fixed_root {
        Some(_) => leads_out(&scope, location, &request.uri),
        // nginx does not evaluate the root here, and `$1` may change by it.
        None => preview(&scope, |scope| leads_out(scope, location, &request.uri)),
    }
}

/// Whether the request's file is outside of its location's directory. Call it when no variable of
/// the path can change any more.
#[inline]
pub(crate) fn leaves_root(
    request: &Request,
    answer: &Answer,
    site: &Site,
    ctx: &StepCtx<'_>,
) -> bool {
    (request.has_dots || site.location(request.location).maps_beyond_root)
        && strays(request, answer, site, ctx)
}

/// As [`leaves_root`] for a location with `maps_beyond_root`, called when the location is chosen,
/// before an `if` may test the file.
pub(crate) fn leaves_alias(
    request: &Request,
    answer: &Answer,
    site: &Site,
    ctx: &StepCtx<'_>,
) -> bool {
    let location = site.location(request.location);
    location.maps_beyond_root
        && location.fixed_root.is_some()
        && !is_proxied(location)
        && strays(request, answer, site, ctx)
}

#[cfg(test)]
mod tests {
    use super::{climbs, written_climbs};
    use bolide_conf::vars::{Template, TemplatePart, Var};

    #[test]
    fn only_whole_segments_of_two_dots_lead_upwards() {
        for (path, count) in [
            (&b"/a/b"[..], 0),
            (b"/a..b/..c/d../...", 0),
            (b"/a/..", 1),
            (b"../a", 1),
            (b"/a/../../b/..", 3),
        ] {
            assert_eq!(climbs(path), count, "{}", String::from_utf8_lossy(path));
        }
    }

    #[test]
    fn what_a_variable_completes_is_not_the_configurations() {
        let text = |text: &[u8]| TemplatePart::Text(text.into());
        let template = |parts| Template::new(parts);
        assert_eq!(
            written_climbs(&template(vec![text(b"/a/../b/"), TemplatePart::Var(Var::Uri)])),
            1
        );
        assert_eq!(written_climbs(&template(vec![text(b"/a/.."), TemplatePart::Var(Var::Uri)])), 0);
        assert_eq!(written_climbs(&template(vec![text(b"/a/."), TemplatePart::Var(Var::Uri)])), 0);
    }
}
