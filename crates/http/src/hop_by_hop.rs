//! Hop-by-hop fields, which are not forwarded (RFC 9110 §7.6.1).
//!
//! Every message that leaves, to upstreams and to clients, uses this module. Owns the names that
//! are always hop-by-hop, and those that a message's `Connection` lists. Framing is not decided
//! here: each protocol has its own.

use crate::fields::Field;
use crate::{FieldMap, Name};

/// Options of `Connection` that are not field names, or are covered by [`is_hop`].
const USUAL: [&[u8]; 8] = [
    b"keep-alive",
    b"close",
    b"upgrade",
    b"te",
    b"http2-settings",
    b"transfer-encoding",
    b"proxy-connection",
    b"connection",
];

/// Whether a field is hop-by-hop even if `Connection` does not list it.
#[must_use]
pub const fn is_hop(name: Name) -> bool {
    matches!(
        name,
        Name::Connection
            | Name::Http2Settings
            | Name::KeepAlive
            | Name::ProxyConnection
            | Name::Te
            | Name::TransferEncoding
            | Name::Upgrade
    )
}

/// Whether a field is not allowed in trailers or in an interim response: fields that frame a
/// message or concern one connection (RFC 9110 §6.5.1, §8.6).
#[must_use]
pub const fn is_no_trailer(name: Name) -> bool {
    is_hop(name) || matches!(name, Name::ContentLength)
}

/// The fields that the `Connection` of one message lists.
#[derive(Debug, Default)]
pub struct Hops {
    /// Names beyond the usual options, in lower case and in order.
    named: Vec<Vec<u8>>,
}

impl Hops {
    /// The fields that `fields` list; the usual options allocate nothing.
    #[must_use]
    pub fn of(fields: &FieldMap) -> Self {
        let mut named: Vec<Vec<u8>> = Vec::new();
        for value in fields.all(Name::Connection) {
            let options = value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii);
            let is_usual = |option: &[u8]| USUAL.iter().any(|it| it.eq_ignore_ascii_case(option));
            let unusual = options.filter(|option| !option.is_empty() && !is_usual(option));
            named.extend(unusual.map(<[u8]>::to_ascii_lowercase));
        }
        // Sorted, since a client may list thousands of names and send a thousand fields.
        named.sort_unstable();
        Self { named }
    }

    /// Whether a field is hop-by-hop.
    #[must_use]
    pub fn has(&self, field: Field<'_>) -> bool {
        is_hop(field.name) || self.names(field.text)
    }

    /// Whether `Connection` lists this name, which is not one of the fixed ones.
    #[must_use]
    pub fn names(&self, text: &[u8]) -> bool {
        !self.named.is_empty() && self.named.binary_search(&text.to_ascii_lowercase()).is_ok()
    }

    /// Whether one of `fields` is dropped only because `Connection` lists it: the upstream then
    /// receives another message than this server did.
    #[must_use]
    pub fn hide_any(&self, fields: &FieldMap) -> bool {
        !self.named.is_empty() && fields.iter().any(|field| self.names(field.text))
    }

    /// Removes the fields that `Connection` lists; the usual hop-by-hop fields stay.
    pub fn remove_named(&self, fields: &mut FieldMap) {
        if !self.named.is_empty() {
            fields.remove_where(|field| self.names(field.text));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Hops;
    use crate::{FieldMap, Name};

    fn fields(lines: &[(&str, &str)]) -> FieldMap {
        let mut fields = FieldMap::new();
        lines.iter().for_each(|(name, value)| fields.push_text(name.as_bytes(), value.as_bytes()));
        fields
    }

    #[test]
    fn what_connection_lists_goes_no_further() {
        let mut message = fields(&[
            ("Connection", "close, X-One ,, x-two"),
            ("X-One", "1"),
            ("connection", "ETag"),
            ("X-Two", "2"),
            ("X-Three", "3"),
            ("Etag", "\"a\""),
            ("Proxy-Connection", "keep-alive"),
        ]);
        let hops = Hops::of(&message);
        let left = |fields: &FieldMap| {
            let left = fields.iter().filter(|field| !hops.has(*field));
            left.map(|field| field.text.to_vec()).collect::<Vec<_>>()
        };
        assert_eq!(left(&message), [b"X-Three"]);
        assert!(hops.hide_any(&message));
        hops.remove_named(&mut message);
        assert!(message.get(Name::Etag).is_none() && message.get(Name::ProxyConnection).is_some());
    }

    #[test]
    fn the_usual_options_hide_nothing_else() {
        let message = fields(&[("Connection", "Keep-Alive, Upgrade"), ("Upgrade", "websocket")]);
        let hops = Hops::of(&message);
        assert!(hops.named.is_empty() && !hops.hide_any(&message));
        assert_eq!(message.iter().filter(|field| hops.has(*field)).count(), 2);
    }
}
