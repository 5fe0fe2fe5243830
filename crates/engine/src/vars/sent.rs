//! `$sent_http_*`: what the answer says, also in those fields that framing writes.
//!
//! A field of the server's own, `Server` or `Date`, is as in nginx no field of the answer.

use bolide_conf::vars::FieldName;
use bolide_http::status::is_bodiless;
use bolide_http::{BodyLen, HttpVersion, Method, Name};

use super::{VariableScope, VariableValue, joined, joined_from, number, text};
use crate::persistence::{is_distrusted, stays};

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
            // The first one is ours, unless an origin's took its place.
            Name::Server | Name::Date if !self.passes(name.name) => joined_from(
                fields.iter().filter(|field| field.name == name.name).skip(1),
                name,
                out,
            ),
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
    /// forgotten that, and streams of HTTP/2 and 3 are no connections that could stay.
    fn keeps(&self) -> bool {
        let (asked, settings) = (self.request.head(), &self.location().settings);
        stays(asked)
            && !self.answer.is_complete
            && !self.answer.head.close
            && !is_distrusted(settings.keepalive_disable, asked)
            && !settings.keepalive_timeout.is_zero()
            && self.request.number_on_conn < settings.keepalive_requests
            && self.request.started.mono.since(self.conn.started.mono) < settings.keepalive_time
    }
}
