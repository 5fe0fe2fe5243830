//! The request to memcached: the escaped `$memcached_key`, and the type of its value.

use bolide_conf::model::Protocol;
use bolide_http::MemcachedGet;

use crate::site::CompiledLocation;
use crate::vars::VariableScope;

/// The line of the error log where there is no key.
pub(crate) const KEYLESS: &[u8] = b"the \"$memcached_key\" variable is not set";

/// The request; none if the key is not set.
pub(crate) fn write(scope: &VariableScope<'_>) -> Option<MemcachedGet> {
    let settings = &scope.location().settings;
    let mut text = Vec::new();
    if let Some(template) = &settings.origin.memcached_key {
        scope.expand(template, &mut text);
    }
    if text.is_empty() {
        return None;
    }
    let mut key = Vec::with_capacity(text.len());
    push_escaped(&text, &mut key);
    let kind = scope.site.location(scope.request.location).kinds.of_path(&scope.request.uri);
    let gzip_flag = settings.origin.memcached_gzip_flag;
    Some(MemcachedGet { key, kind: kind.media.to_vec(), gzip_flag })
}

/// Whether memcached has no value for the key: the response is a generated error page.
pub(crate) fn has_none(location: &CompiledLocation, status: u16) -> bool {
    let protocol = location.pass.as_ref().map(|pass| pass.conf.protocol);
    protocol == Some(Protocol::Memcached) && status == 404
}

/// As in nginx: escapes the bytes that would end the key, and `%`.
fn push_escaped(key: &[u8], out: &mut Vec<u8>) {
    for &byte in key {
        if byte <= b' ' || byte == b'%' {
            out.extend_from_slice(format!("%{byte:02X}").as_bytes());
        } else {
            out.push(byte);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::push_escaped;

    #[test]
    fn spaces_controls_and_percents_are_escaped() {
        let mut out = Vec::new();
        push_escaped(b"/a b%c\x7f\xc3\t\r\n\"", &mut out);
        assert_eq!(out, b"/a%20b%25c\x7f\xc3%09%0D%0A\"");
    }
}
