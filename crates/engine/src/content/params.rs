//! What an application is told about a request, and how it is found.

use std::net::SocketAddr;
use std::path::Path;

use conf::model::{PeerAddress, UpstreamId, UpstreamKind};
use http::Params;
use upstream::request::Target;

use crate::site::{Origin, Site};
use crate::vars::Scope;

/// Writes what the origin of `pass` is told.
pub(crate) fn write(scope: &Scope<'_>, pass: &Origin, body_len: Option<u64>, out: &mut Params) {
    let settings = &scope.location().settings.origin;
    let _ = (pass, body_len);
    for param in settings.params.iter() {
        let mut value = Vec::new();
        scope.expand(&param.value, &mut value);
        if !(param.if_not_empty && value.is_empty()) {
            out.push(&param.name, &value);
        }
    }
}

/// Appends the path of the script that a pool would run.
pub(crate) fn push_script(scope: &Scope<'_>, out: &mut Vec<u8>) {
    scope.push_path(scope.location(), &scope.request.uri, out);
}

/// Whom a text with variables named: a group, or an address.
pub(crate) fn parse_target(text: &[u8], site: &Site) -> Option<Target> {
    let groups = &site.http()?.upstreams;
    let known = |kind| matches!(kind, UpstreamKind::Block | UpstreamKind::Pool(_));
    let group = groups
        .iter()
        .position(|group| known(group.kind) && group.name.as_bytes().eq_ignore_ascii_case(text));
    if let Some(index) = group {
        return Some(Target::Group(UpstreamId(index as u32)));
    }
    let text = std::str::from_utf8(text).ok()?;
    if let Some(path) = text.strip_prefix("unix:") {
        let path = path.strip_suffix(':').unwrap_or(path);
        return Some(Target::Address(PeerAddress::Unix(Path::new(path).into())));
    }
    text.parse::<SocketAddr>().ok().map(|address| Target::Address(PeerAddress::Inet(address)))
}
