//! Whether a file lies below the directory that `root` or `alias` names.
//!
//! Owns the one rule about `..` in paths that are put together: the configuration may write it, a
//! request may not bring it in. Paths of requests have no dot segments, but what is left of one
//! behind a location's name may begin with them (`/i../x` in `location /i`), and so may what
//! variables hold. Links are no matter of this file; see `disable_symlinks`.

use bolide_conf::vars::{Template, TemplatePart};

use crate::content::climbs::climbs;
use crate::site::CompiledLocation;
use crate::vars::VariableScope;

/// Whether an origin answers that is asked for an address, not for a file.
pub(crate) fn is_proxied(location: &CompiledLocation) -> bool {
    location.pass.as_ref().is_some_and(|pass| pass.proxied.is_some())
}

/// Whether the values of variables lead out of the directory that begins `root`, or that its first
/// variable names: which one that is, is the configuration's business.
fn root_strays(scope: &VariableScope<'_>, location: &CompiledLocation, climbed: usize) -> bool {
    let template = &location.settings.root.path;
    let mut first = Vec::new();
    if let Some(TemplatePart::Var(var)) = template.parts().first() {
        scope.write(var, &mut first);
        // The prefix comes first.
        if first.first() != Some(&b'/')
            && let Some(http) = scope.site.http()
        {
            first.extend_from_slice(b"/");
            first.extend_from_slice(&http.bases.prefix);
        }
    }
    climbed > written_climbs(template) + climbs(&first)
}

/// The steps upwards that the configuration itself writes.
pub(crate) fn written_climbs(template: &Template) -> usize {
    let mut text = Vec::new();
    for part in template.parts() {
        match part {
            TemplatePart::Text(bytes) => text.extend_from_slice(bytes),
            // Something that is no dot.
            TemplatePart::Var(_) => text.push(b'x'),
        }
    }
    climbs(&text)
}

/// Whether the file of another path than the request's lies elsewhere.
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

fn strays(scope: &VariableScope<'_>, location: &CompiledLocation) -> bool {
    leads_out(scope, location, &scope.request.uri)
}

/// Whether the request's file lies elsewhere than below the directory of its location. To be
/// asked when nothing that variables follow can change any more.
#[inline]
pub(crate) fn leaves_root(scope: &VariableScope<'_>, location: &CompiledLocation) -> bool {
    (scope.request.has_dots || location.maps_beyond_root) && strays(scope, location)
}

/// As [`leaves_root`] for a location that roams, as far as it is known when the location
/// is: before an `if` may ask whether the file is there.
pub(crate) fn leaves_alias(scope: &VariableScope<'_>, location: &CompiledLocation) -> bool {
    location.fixed_root.is_some() && !is_proxied(location) && strays(scope, location)
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
