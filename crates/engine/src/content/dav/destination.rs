//! `Destination` of `COPY` and `MOVE` (RFC 4918 §10.3): the path of this server that it names.
//!
//! Refuses other servers, and paths outside of the location's directory.

use bolide_conf::model::Mapping;
use bolide_http::Scheme;

use crate::answer::Answer;
use crate::content::confine::leads_out;
use crate::ctx::StepCtx;
use crate::filter::accel::is_unsafe;
use crate::request::Request;
use crate::site::Site;
use crate::vars::VariableScope;

/// Why a destination is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NoDestination {
    /// It is not a URL, or has another scheme.
    Invalid,
    /// It names another server.
    Foreign,
}

/// The decoded path in the field.
pub(super) fn read_destination(
    request: &Request,
    site: &Site,
    ctx: &mut StepCtx<'_>,
) -> Result<Vec<u8>, u16> {
    let Some(value) = request.head().fields.get_text(b"Destination") else {
        request.log_error(site, ctx, |out| {
            out.extend_from_slice(b"client sent no \"Destination\" header");
        });
        return Err(400);
    };
    let found = path_of(value, ctx.conn.scheme, &request.host);
    let path = match found {
        Ok(target) => target.split(|byte| *byte == b'?').next().unwrap_or_default(),
        Err(NoDestination::Invalid) => return invalid(request, value, site, ctx),
        Err(NoDestination::Foreign) => {
            request.log_error(site, ctx, |out| {
                out.extend_from_slice(b"\"Destination\" URI \"");
                bolide_http::escape::push_log(out, value);
                out.extend_from_slice(b"\" is handled by different repository than the source URI");
            });
            return Err(400);
        }
    };
    let mut decoded = Vec::with_capacity(path.len());
    bolide_http::uri::push_decoded(&mut decoded, path);
    if is_unsafe(&decoded) {
        request.log_error(site, ctx, |out| {
            out.extend_from_slice(b"unsafe URI \"");
            bolide_http::escape::push_log(out, &decoded);
            out.extend_from_slice(b"\" was detected");
        });
        return invalid(request, value, site, ctx);
    }
    if decoded.ends_with(b"/") != request.uri.ends_with(b"/") {
        request.log_error(site, ctx, |out| {
            out.extend_from_slice(b"both URI \"");
            out.extend_from_slice(&request.uri);
            out.extend_from_slice(b"\" and \"Destination\" URI \"");
            out.extend_from_slice(&decoded);
            out.extend_from_slice(b"\" should be either collections or non-collections");
        });
        return Err(409);
    }
    Ok(decoded)
}

/// Its path on disk, in the location of the request.
pub(super) fn map(
    request: &Request,
    answer: &Answer,
    uri: &[u8],
    site: &Site,
    ctx: &mut StepCtx<'_>,
) -> Result<Vec<u8>, u16> {
    let location = site.location(request.location);
    let is_within = match location.settings.root.mapping {
        Mapping::Without(len) => request.uri.get(..len).is_some_and(|name| uri.starts_with(name)),
        Mapping::Nothing | Mapping::Whole => true,
    };
    let scope = VariableScope::new(request, answer, site, ctx);
    if !is_within || leads_out(&scope, location, uri) {
        request.log_error(site, ctx, |out| {
            out.extend_from_slice(b"\"Destination\" URI \"");
            out.extend_from_slice(uri);
            out.extend_from_slice(b"\" must be within location prefix when using \"alias\"");
        });
        return Err(400);
    }
    let mut path = Vec::new();
    scope.push_path(location, uri, &mut path);
    Ok(path)
}

fn invalid<T>(
    request: &Request,
    value: &[u8],
    site: &Site,
    ctx: &mut StepCtx<'_>,
) -> Result<T, u16> {
    super::invalid_field(request, "Destination", value, site, ctx);
    Err(400)
}

/// The path and query of a URL of this server.
fn path_of<'a>(value: &'a [u8], scheme: Scheme, host: &[u8]) -> Result<&'a [u8], NoDestination> {
    if value.first() == Some(&b'/') {
        return Ok(value);
    }
    let prefix: &[u8] = match scheme {
        Scheme::Http => b"http://",
        Scheme::Https => b"https://",
    };
    let rest = value.strip_prefix(prefix).ok_or(NoDestination::Invalid)?;
    if host.is_empty() {
        return Err(NoDestination::Invalid);
    }
    let rest = rest.strip_prefix(host).ok_or(NoDestination::Foreign)?;
    match rest.first() {
        Some(b'/' | b':') => {}
        Some(_) => return Err(NoDestination::Foreign),
        None => return Err(NoDestination::Invalid),
    }
    let slash = memchr::memchr(b'/', rest).ok_or(NoDestination::Invalid)?;
    Ok(&rest[slash..])
}

#[cfg(test)]
mod tests {
    use super::{NoDestination, path_of};
    use bolide_http::Scheme;

    #[test]
    fn a_destination_is_a_path_or_an_address_of_this_server() {
        use NoDestination::{Foreign, Invalid};
        for (value, found) in [
            ("/a?b", Ok("/a?b")),
            ("http://x.test/a", Ok("/a")),
            ("http://x.test:81/a/", Ok("/a/")),
            ("http://x.testy/a", Err(Foreign)),
            ("http://y.test/a", Err(Foreign)),
            ("http://x.test", Err(Invalid)),
            ("http://x.test:81", Err(Invalid)),
            ("https://x.test/a", Err(Invalid)),
            ("a", Err(Invalid)),
            ("", Err(Invalid)),
        ] {
            let found = found.map(str::as_bytes);
            assert_eq!(path_of(value.as_bytes(), Scheme::Http, b"x.test"), found, "{value}");
        }
        assert_eq!(path_of(b"https://x.test/a", Scheme::Https, b"x.test"), Ok(&b"/a"[..]));
        assert_eq!(path_of(b"http:///a", Scheme::Http, b""), Err(Invalid));
    }
}
