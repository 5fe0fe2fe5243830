//! `$sent_http_*`: the fields of the response, including those that framing writes.
//!
//! As in nginx, our own `Server` and `Date` are not among them.

use bolide_conf::model::CharsetOf;
use bolide_conf::vars::FieldName;
use bolide_http::status::is_bodiless;
use bolide_http::{BodyLen, FieldMap, HttpVersion, Method, Name};

use super::{VariableScope, VariableValue, joined, joined_from, maybe, number, text};
use crate::answer::Answer;
use crate::caching::Caching;
use crate::filter::charset::charset_of;
use crate::filter::passed_fields::is_for_zone;
use crate::persistence::{is_distrusted, stays};
use crate::request::Request;

impl VariableScope<'_> {
    /// Appends the value of the response field `name`.
    pub(super) fn write_sent(&self, name: &FieldName, out: &mut Vec<u8>) -> VariableValue {
        let head = &self.answer.head;
        let fields = self.sent.unwrap_or(&head.fields);
        match name.name {
            Name::ContentLength => match head.body {
                BodyLen::Exact(len) if !self.is_chunked() => number(out, len),
                _ => VariableValue::No,
            },
            Name::TransferEncoding if self.is_chunked() => text(out, b"chunked"),
            Name::TransferEncoding => VariableValue::No,
            Name::Connection if head.status == 101 => text(out, b"upgrade"),
            Name::Connection => text(out, if self.keeps() { b"keep-alive" } else { b"close" }),
            Name::KeepAlive => match self.location().settings.keepalive_header {
                Some(timeout) if !timeout.is_zero() && self.keeps() => {
                    text(out, b"timeout=");
                    number(out, timeout.as_secs())
                }
                _ => VariableValue::No,
            },
            // As in nginx, whether a file has ranges is decided after the fields of the
            // configuration.
            Name::AcceptRanges
                if self.sent.is_some()
                    || is_headless(self.request)
                    || self.request.role.is_inside() =>
            {
                copied_ranges(self).map_or(VariableValue::No, |fields| joined(fields, name, out))
            }
            // As in nginx, only a status with content, or one that confirms it, still has it.
            Name::LastModified if is_dateless(self, fields) => VariableValue::No,
            // As in nginx, our charset is appended to the type when the head is sent.
            Name::ContentType if self.sent.is_some() || is_headless(self.request) => {
                maybe(out, fields.get(Name::ContentType).map(|value| without_charset(self, value)))
            }
            Name::Location if !self.answer.location.is_empty() || self.answer.is_to_nowhere => {
                // As in nginx, a relative redirect becomes absolute when the head is sent.
                let (answer, own) = (self.answer, self.answer.location_origin);
                let has_left = answer.is_responded && !is_headless(self.request);
                let from = if has_left { 0 } else { own };
                text(out, answer.location.get(from..).unwrap_or_default())
            }
            // As in nginx, the `Vary` of `gzip_vary` is not among the fields.
            Name::Vary if self.location().settings.gzip.vary && adds_vary(self.answer, fields) => {
                joined_from(
                    fields.iter().filter(|field| field.name == name.name).skip(1),
                    name,
                    out,
                )
            }
            // The first one is ours, unless the upstream's replaced it.
            Name::Server | Name::Date
                if !self.passes(name.name) && self.answer.carried.get(name.name).is_none() =>
            {
                let own = fields.iter().filter(|field| field.name == name.name);
                joined_from(own.skip(1), name, out)
            }
            _ => joined(fields, name, out),
        }
    }

    /// Whether the upstream's own field `name` is passed.
    fn passes(&self, name: Name) -> bool {
        self.answer.is_from_origin() && !self.location().hides(name)
    }

    /// Whether the response is chunked; false until that is known.
    fn is_chunked(&self) -> bool {
        let (asked, head) = (self.request.head(), &self.answer.head);
        self.answer.is_responded
            && asked.version == HttpVersion::Http11
            && asked.method != Method::Head
            && !is_bodiless(head.status)
            && (head.trailed || head.body == BodyLen::Unknown)
            && !head.unchunked
    }

    /// Whether the connection persists, as far as is known now. nginx has forgotten that when it
    /// writes its log, except over HTTP/3, and HTTP/2 streams are no connections that could
    /// persist.
    fn keeps(&self) -> bool {
        let (asked, settings) = (self.request.head(), &self.location().settings);
        let has_left = self.answer.is_complete && asked.version < HttpVersion::Http3;
        (stays(asked) || asked.version == HttpVersion::Http3)
            && !has_left
            && !self.request.role.is_inside()
            && !self.answer.head.close
            && !is_distrusted(settings.keepalive_disable, asked)
            && !settings.keepalive_timeout.is_zero()
            && self.request.number_on_conn < settings.keepalive_requests
            && self.request.started.mono.since(self.conn.started.mono) < settings.keepalive_time
    }
}

/// The fields of the upstream response that is passed on.
fn asked_fields(answer: &Answer) -> Option<&FieldMap> {
    let asked = answer.origin.as_deref().filter(|asked| asked.is_answering())?;
    Some(&asked.fields)
}

/// The upstream's `Accept-Ranges`, if it is passed.
fn copied_ranges<'a>(scope: &VariableScope<'a>) -> Option<&'a FieldMap> {
    let location = scope.location();
    let is_page = location.caching.as_ref().is_some_and(Caching::is_page);
    let copies = !is_page
        && !is_for_zone(scope.answer, location)
        && !location.settings.origin.force_ranges
        && !location.hides(Name::AcceptRanges);
    asked_fields(scope.answer).filter(|_| copies)
}

/// Whether `Last-Modified` was dropped with the head; an invalid one is kept.
fn is_dateless(scope: &VariableScope<'_>, fields: &FieldMap) -> bool {
    let answer = scope.answer;
    answer.is_responded
        && match answer.head.status {
            200 | 206 | 304 => false,
            204 if !answer.is_from_origin() => true,
            _ => fields.get(Name::LastModified).and_then(bolide_http::date::parse).is_some(),
        }
}

/// A content type without the charset that was appended here.
fn without_charset<'a>(scope: &VariableScope<'_>, value: &'a [u8]) -> &'a [u8] {
    let of_upstream = asked_fields(scope.answer).and_then(|fields| fields.get(Name::ContentType));
    match charset_of(value) {
        Some((bare_len, name)) if of_upstream != Some(value) && gives_charset(scope, name) => {
            &value[..bare_len]
        }
        _ => value,
    }
}

/// Whether `name` is the charset of the location, or one that only an upstream can have set.
fn gives_charset(scope: &VariableScope<'_>, name: &[u8]) -> bool {
    match &scope.location().settings.charset.charset {
        CharsetOf::Off => scope.answer.is_from_origin(),
        CharsetOf::Name(template) => {
            let mut text = Vec::new();
            scope.expand(template, &mut text);
            text == name || scope.answer.is_from_origin()
        }
    }
}

/// Whether `Vary: Accept-Encoding` of a response is not the upstream's.
fn adds_vary(answer: &Answer, fields: &FieldMap) -> bool {
    let count = |fields: &FieldMap| {
        fields.all(Name::Vary).filter(|value| **value == *b"Accept-Encoding").count()
    };
    count(fields) > asked_fields(answer).map_or(0, count)
}

/// Whether a response is HTTP/0.9, which has no head.
fn is_headless(request: &Request) -> bool {
    request.head().version == HttpVersion::Http09
}
