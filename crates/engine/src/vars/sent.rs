//! `$sent_http_*`: what the answer says, also in those fields that framing writes.
//!
//! A field of the server's own, `Server` or `Date`, is as in nginx no field of the answer.

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
    /// Appends what the answer says in the field `name`.
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
            // As in nginx, whether a file has ranges is decided behind what the configuration adds.
            Name::AcceptRanges
                if self.sent.is_some()
                    || is_headless(self.request)
                    || self.request.role.is_inside() =>
            {
                copied_ranges(self).map_or(VariableValue::No, |fields| joined(fields, name, out))
            }
            // As in nginx, only what has content, or confirms it, has it still.
            Name::LastModified if is_dateless(self, fields) => VariableValue::No,
            // As in nginx, the charset that is ours joins the type when the head leaves.
            Name::ContentType if self.sent.is_some() || is_headless(self.request) => {
                maybe(out, fields.get(Name::ContentType).map(|value| without_charset(self, value)))
            }
            Name::Location if !self.answer.location.is_empty() || self.answer.is_to_nowhere => {
                // As in nginx, a path of ours becomes an address when the head leaves.
                let (answer, own) = (self.answer, self.answer.location_origin);
                let has_left = answer.is_responded && !is_headless(self.request);
                let from = if has_left { 0 } else { own };
                text(out, answer.location.get(from..).unwrap_or_default())
            }
            // As in nginx, what `gzip_vary` adds is no field of the answer.
            Name::Vary if self.location().settings.gzip.vary && adds_vary(self.answer, fields) => {
                joined_from(
                    fields.iter().filter(|field| field.name == name.name).skip(1),
                    name,
                    out,
                )
            }
            // The first one is ours, unless an origin's took its place.
            Name::Server | Name::Date
                if !self.passes(name.name) && self.answer.carried.get(name.name).is_none() =>
            {
                let own = fields.iter().filter(|field| field.name == name.name);
                joined_from(own.skip(1), name, out)
            }
            _ => joined(fields, name, out),
        }
    }

    /// Whether the origin's own field `name` is sent on.
    fn passes(&self, name: Name) -> bool {
        self.answer.is_from_origin() && !self.location().hides(name)
    }

    /// Whether the answer leaves in chunks; not before it is known.
    fn is_chunked(&self) -> bool {
        let (asked, head) = (self.request.head(), &self.answer.head);
        self.answer.is_responded
            && asked.version == HttpVersion::Http11
            && asked.method != Method::Head
            && !is_bodiless(head.status)
            && (head.trailed || head.body == BodyLen::Unknown)
            && !head.unchunked
    }

    /// Whether the connection stays, as far as is known now. nginx's log is written when it has
    /// forgotten that, but over HTTP/3, and streams of HTTP/2 are no connections that could stay.
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

/// The fields of the origin whose answer is passed on.
fn asked_fields(answer: &Answer) -> Option<&FieldMap> {
    let asked = answer.origin.as_deref().filter(|asked| asked.is_answering())?;
    Some(&asked.fields)
}

/// What the answer says of ranges if that is what its origin says.
fn copied_ranges<'a>(scope: &VariableScope<'a>) -> Option<&'a FieldMap> {
    let location = scope.location();
    let is_page = location.caching.as_ref().is_some_and(Caching::is_page);
    let copies = !is_page
        && !is_for_zone(scope.answer, location)
        && !location.settings.origin.force_ranges
        && !location.hides(Name::AcceptRanges);
    asked_fields(scope.answer).filter(|_| copies)
}

/// Whether the date of the answer has been forgotten with its head; what is none is kept.
fn is_dateless(scope: &VariableScope<'_>, fields: &FieldMap) -> bool {
    let answer = scope.answer;
    answer.is_responded
        && match answer.head.status {
            200 | 206 | 304 => false,
            204 if !answer.is_from_origin() => true,
            _ => fields.get(Name::LastModified).and_then(bolide_http::date::parse).is_some(),
        }
}

/// A content type without the charset that was put to it here.
fn without_charset<'a>(scope: &VariableScope<'_>, value: &'a [u8]) -> &'a [u8] {
    let told = asked_fields(scope.answer).and_then(|fields| fields.get(Name::ContentType));
    match charset_of(value) {
        Some((bare_len, name)) if told != Some(value) && gives_charset(scope, name) => {
            &value[..bare_len]
        }
        _ => value,
    }
}

/// Whether `name` is the charset of the location, or one that only an origin can have meant.
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

/// Whether `Vary: Accept-Encoding` among the fields of an answer is not its origin's.
fn adds_vary(answer: &Answer, fields: &FieldMap) -> bool {
    let count = |fields: &FieldMap| {
        fields.all(Name::Vary).filter(|value| **value == *b"Accept-Encoding").count()
    };
    count(fields) > asked_fields(answer).map_or(0, count)
}

/// Whether an answer is one of HTTP/0.9, which has no head.
fn is_headless(request: &Request) -> bool {
    request.head().version == HttpVersion::Http09
}
