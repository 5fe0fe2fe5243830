//! `$invalid_referer`: `valid_referers`.

use bolide_conf::Regex;
use bolide_conf::model::{Referers, ServerName};
use bolide_http::Name;

use crate::keys::VariableKeys;
use crate::request::RequestNote;
use crate::vars::VariableScope;
use bolide_patterns::MatchFailure;

/// The longest host that is looked up.
const HOST_MAX: usize = 256;

impl VariableScope<'_> {
    /// Whether the `Referer` is valid for the location.
    pub(crate) fn has_valid_referer(&self) -> bool {
        let Some(referers) = &self.location().settings.referers else { return true };
        let Some(referer) = self.request.head().fields.get(Name::Referer) else {
            return referers.none;
        };
        let after = |scheme: &[u8]| {
            let (start, rest) = referer.split_at_checked(scheme.len())?;
            start.eq_ignore_ascii_case(scheme).then_some(rest)
        };
        // As in nginx, a value that is too short for a host with a dot is invalid.
        let rest = (referer.len() >= "http://i.ru".len())
            .then(|| after(b"http://").or_else(|| after(b"https://")))
            .flatten();
        let Some(rest) = rest else { return referers.blocked };
        let host_len = rest.iter().position(|byte| matches!(byte, b'/' | b':'));
        let (host, tail) = rest.split_at(host_len.unwrap_or(rest.len()));
        if host.len() > HOST_MAX {
            return false;
        }
        let host = host.to_ascii_lowercase();
        if let Some(path) = path_of(referers, &host) {
            let slash = memchr::memchr(b'/', tail).unwrap_or(tail.len());
            return tail[slash..].starts_with(path);
        }
        referers.server_names && self.is_own_name(&host)
            || referers.regexes.iter().any(|regex| self.is_match(regex, rest))
    }

    /// Whether an expression matches; a match that exceeds its limit is logged and counts as none.
    fn is_match(&self, regex: &Regex, text: &[u8]) -> bool {
        regex.matches(text).unwrap_or_else(|error| {
            let failure = MatchFailure::new(error, text, regex.source());
            self.request.notes.borrow_mut().push(RequestNote::Match(failure));
            false
        })
    }

    fn is_own_name(&self, host: &[u8]) -> bool {
        let Some(http) = self.site.http() else { return false };
        let Some(server) = http.servers.get(self.request.server as usize) else { return false };
        server.names.iter().any(|name| match name {
            ServerName::Exact(name) => !name.is_empty() && name.as_bytes() == host,
            ServerName::Suffix(name) => host.len() > name.len() && host.ends_with(name.as_bytes()),
            ServerName::SuffixOrSelf(name) => {
                host == &name.as_bytes()[1..]
                    || host.len() > name.len() && host.ends_with(name.as_bytes())
            }
            ServerName::Prefix(name) => {
                host.len() > name.len() && host.starts_with(name.as_bytes())
            }
            ServerName::Regex(regex) => self.is_match(regex, host),
        })
    }
}

/// The path prefix for `host`, if it is one of the hosts.
fn path_of<'a>(referers: &'a Referers, host: &[u8]) -> Option<&'a [u8]> {
    let mut keys = VariableKeys::default();
    for (index, (key, _)) in referers.hosts.iter().enumerate() {
        keys.add(key, index as u32);
    }
    let index = keys.find(host)? as usize;
    referers.hosts.get(index).map(|(_, path)| &path[..])
}
