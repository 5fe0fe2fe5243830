//! Variables about upstream requests: servers, times, response fields; and about the request body.

use bolide_conf::model::ProxyUrl;
use bolide_conf::vars::Var;
use bolide_http::digits::push_decimal;
use bolide_http::{Name, RequestBody};
use bolide_upstream::Attempt;

use super::{VariableScope, VariableValue, joined, maybe, millis, number, once, push_status, text};
use crate::answer::PassRequest;
use crate::caching::{CacheReason, UpstreamCacheStatus};
use crate::content::params::script;
use crate::content::proxied;

impl VariableScope<'_> {
    /// The URL of the location's `proxy_pass`, as far as it is known.
    pub(crate) fn proxy_url(&self) -> Option<&ProxyUrl> {
        self.location().pass.as_ref()?.proxied.as_ref()?;
        proxied::pass_url(self)
    }

    /// Appends a variable about upstream requests.
    pub(super) fn write_origin(&self, var: &Var, out: &mut Vec<u8>) -> Option<VariableValue> {
        match var {
            Var::FastcgiScriptName => {
                let script = script(self);
                out.extend_from_slice(script.name);
                return Some(text(out, script.index));
            }
            Var::FastcgiPathInfo => return Some(text(out, script(self).path_info)),
            Var::ProxyTarget => {
                if let Some(url) = self.proxy_url() {
                    proxied::push_target(self, url, out);
                }
                return Some(VariableValue::Yes);
            }
            Var::ProxyHost => return Some(maybe(out, self.proxy_url().map(|url| &*url.host))),
            Var::ProxyPort => return Some(maybe(out, self.proxy_url().map(|url| &*url.port))),
            Var::SliceRange => return Some(self.write_slice_range(out)),
            Var::RequestBody => {
                return Some(once(self.request, var, out, |out| self.request_body(out)));
            }
            Var::RequestBodyFile => {
                return Some(once(self.request, var, out, |out| self.request_body_file(out)));
            }
            _ => {}
        }
        if let Some(found) = self.write_cached(var, out) {
            return Some(found);
        }
        let asked = self.answer.origin.as_deref()?;
        Some(match var {
            Var::UpstreamAddr => {
                each(asked, out, |attempt, out| out.extend_from_slice(attempt.peer.as_bytes()))
            }
            Var::UpstreamStatus => each(asked, out, |attempt, out| match attempt.status {
                0 => out.push(b'-'),
                status => push_status(out, status),
            }),
            Var::UpstreamConnectTime => {
                each(asked, out, |attempt, out| push_millis(attempt.connect_ms, out))
            }
            Var::UpstreamHeaderTime => {
                each(asked, out, |attempt, out| push_millis(attempt.header_ms, out))
            }
            Var::UpstreamResponseTime => each(asked, out, |attempt, out| {
                push_millis(attempt.is_over.then_some(attempt.response_ms), out);
            }),
            Var::UpstreamResponseLength => {
                each(asked, out, |attempt, out| push_decimal(out, attempt.response_len))
            }
            Var::UpstreamBytesReceived => {
                each(asked, out, |attempt, out| push_decimal(out, attempt.bytes_received))
            }
            Var::UpstreamBytesSent => {
                each(asked, out, |attempt, out| push_decimal(out, attempt.bytes_sent))
            }
            Var::UpstreamField(name) => joined(&asked.fields, name, out),
            // As in nginx, trailers that are not passed are not read.
            Var::UpstreamTrailer(name) if self.location().settings.origin.proxy.pass_trailers => {
                joined(&asked.trailers, name, out)
            }
            Var::UpstreamCookie(name) => {
                let cookies = asked.fields.all(Name::SetCookie);
                maybe(out, set_cookie(cookies, name.as_bytes()))
            }
            _ => return None,
        })
    }

    /// Appends a variable about the cache.
    fn write_cached(&self, var: &Var, out: &mut Vec<u8>) -> Option<VariableValue> {
        let object = self.answer.object.as_deref();
        let kept = object.filter(|_| self.answer.cached.is_kept());
        // As in nginx, these are for revalidation.
        let old = || {
            let caching = self.location().caching.as_ref()?;
            let confirms =
                caching.conf.revalidate && self.answer.cached == UpstreamCacheStatus::Expired;
            object.filter(|_| confirms)
        };
        match var {
            Var::UpstreamField(name) => {
                let mut fields = bolide_http::FieldMap::new();
                kept?.fields(&mut fields);
                Some(joined(&fields, name, out))
            }
            Var::UpstreamCookie(name) => {
                let mut fields = bolide_http::FieldMap::new();
                kept?.fields(&mut fields);
                Some(maybe(out, set_cookie(fields.all(Name::SetCookie), name.as_bytes())))
            }
            Var::UpstreamCacheStatus => {
                let status = self.answer.cached.text();
                out.extend_from_slice(status.as_bytes());
                Some(if status.is_empty() { VariableValue::No } else { VariableValue::Yes })
            }
            Var::PageCacheReason => {
                Some(maybe(out, self.answer.cache_reason.map(CacheReason::word)))
            }
            Var::UpstreamCacheEtag => Some(maybe(out, old().and_then(|object| object.etag()))),
            Var::UpstreamCacheLastModified => {
                let Some(at) = old().and_then(|object| object.last_modified()) else {
                    return Some(VariableValue::No);
                };
                out.extend_from_slice(&bolide_http::date::http_date(at as i64));
                Some(VariableValue::Yes)
            }
            Var::UpstreamCacheAge => {
                let Some(object) = kept else { return Some(VariableValue::No) };
                Some(number(out, object.times().age_seconds(self.now.unix_millis)))
            }
            _ => None,
        }
    }

    /// `$content_length`: for a body without a declared length, the buffered length.
    pub(super) fn content_length(&self, out: &mut Vec<u8>) -> VariableValue {
        let request = self.request;
        match request.head().body {
            RequestBody::Length(_) if request.is_length_unread => VariableValue::No,
            RequestBody::Length(len) => number(out, len),
            RequestBody::Unknown => match request.upload.spool() {
                Some(spool) if spool.is_complete() => number(out, spool.received()),
                _ => VariableValue::No,
            },
            RequestBody::None => maybe(out, request.head().fields.get(Name::ContentLength)),
        }
    }

    fn request_body(&self, out: &mut Vec<u8>) -> VariableValue {
        let upload = &self.request.upload;
        let Some(spool) = upload.spool() else {
            // As in nginx, a length of zero was read if an upstream was asked.
            let fields = &self.request.head().fields;
            let is_empty = fields.get(Name::ContentLength) == Some(b"0");
            return VariableValue::when(is_empty && self.answer.origin.is_some());
        };
        let Some(pieces) = spool.pieces().filter(|_| upload.is_wanted()) else {
            return VariableValue::No;
        };
        for piece in pieces {
            out.extend_from_slice(piece);
        }
        VariableValue::Yes
    }

    /// A file without a name is reachable by a path in `/proc` while the request lasts.
    fn request_body_file(&self, out: &mut Vec<u8>) -> VariableValue {
        if let Some(name) = self.request.upload.file_name() {
            out.extend_from_slice(name);
            return VariableValue::Yes;
        }
        let Some(spool) = self.request.upload.spool() else { return VariableValue::No };
        match spool.file() {
            Some(file) if spool.is_complete() && spool.in_memory() == 0 => {
                out.extend_from_slice(b"/proc/");
                push_decimal(out, u64::from(self.pid));
                out.extend_from_slice(b"/fd/");
                push_decimal(out, u64::from(file.raw().unsigned_abs()));
                VariableValue::Yes
            }
            _ => VariableValue::No,
        }
    }
}

/// Writes a value for each attempt: `, ` between those of one request, ` : ` between requests.
fn each(
    asked: &PassRequest,
    out: &mut Vec<u8>,
    write: impl Fn(&Attempt, &mut Vec<u8>),
) -> VariableValue {
    for (at, attempt) in asked.attempts.iter().enumerate() {
        if at > 0 {
            let separator: &[u8] = if asked.later.contains(&at) { b" : " } else { b", " };
            out.extend_from_slice(separator);
        }
        write(attempt, out);
    }
    if asked.attempts.is_empty() { VariableValue::No } else { VariableValue::Yes }
}

fn push_millis(value: Option<u64>, out: &mut Vec<u8>) {
    match value {
        Some(value) => {
            millis(out, value);
        }
        None => out.push(b'-'),
    }
}

/// The value of the first cookie called `name` that an upstream set.
fn set_cookie<'a>(mut cookies: impl Iterator<Item = &'a [u8]>, name: &[u8]) -> Option<&'a [u8]> {
    cookies.find_map(|cookie| {
        let end = memchr::memchr(b';', cookie).unwrap_or(cookie.len());
        let pair = cookie[..end].trim_ascii();
        let mark = memchr::memchr(b'=', pair)?;
        pair[..mark].eq_ignore_ascii_case(name).then_some(&pair[mark + 1..])
    })
}

#[cfg(test)]
mod tests {
    use super::set_cookie;

    #[test]
    fn the_first_cookie_of_a_name_counts_without_its_attributes() {
        let cookies = [&b"a=1; Path=/"[..], b"b=2;x=y", b"A=3"];
        assert_eq!(set_cookie(cookies.into_iter(), b"a"), Some(&b"1"[..]));
        assert_eq!(set_cookie(cookies.into_iter(), b"b"), Some(&b"2"[..]));
        assert_eq!(set_cookie(cookies.into_iter(), b"x"), None);
    }
}
