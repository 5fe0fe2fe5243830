//! Decoded field sections of responses: a head with its status, or trailers.
//!
//! It accepts what nginx accepts. The first flaw is kept and the rest is read, or the dynamic
//! tables of the two sides would differ.

use bolide_http::{FieldMap, Name, OriginHead};

use super::flaw::invalid;
use crate::cgi::trim;
use crate::hpack::{FieldToken, HpackError, Sink};
use crate::{OriginError, Traits};

/// LIMIT: bytes of a field in the error log.
const SHOWN_MAX: usize = 200;

/// Which section is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FieldSection {
    Head,
    Trailers,
}

/// A section under construction.
#[derive(Debug)]
pub(super) struct ResponseFields {
    section: FieldSection,
    status: Option<u16>,
    fields: FieldMap,
    flaw: Option<OriginError>,
}

impl ResponseFields {
    pub(super) const fn new(section: FieldSection) -> Self {
        Self { section, status: None, fields: FieldMap::new(), flaw: None }
    }

    /// The head, whose block has `size` bytes.
    ///
    /// # Errors
    ///
    /// The first flaw.
    pub(super) fn into_head(self, size: usize) -> Result<Box<OriginHead>, OriginError> {
        if let Some(flaw) = self.flaw {
            return Err(flaw);
        }
        let status = self.status.ok_or_else(no_status)?;
        let wire_size = u32::try_from(size).unwrap_or(u32::MAX);
        let fields = self.fields;
        Ok(Box::new(OriginHead { status, fields, wire_size, ..OriginHead::default() }))
    }

    /// The trailers.
    ///
    /// # Errors
    ///
    /// The first flaw.
    pub(super) fn into_trailers(self) -> Result<FieldMap, OriginError> {
        self.flaw.map_or(Ok(self.fields), Err)
    }

    fn read(
        &mut self,
        token: FieldToken,
        traits: Traits,
        name: &[u8],
        value: &[u8],
    ) -> Result<(), OriginError> {
        let FieldToken::Field(known) = token else {
            return self.pseudo(token, name, value);
        };
        if name.is_empty() {
            return Err(invalid("upstream sent zero http2 header name length"));
        }
        if name[0] == b':' {
            return self.pseudo(token, name, value);
        }
        let has_line_end = || memchr::memchr3(0, b'\r', b'\n', value).is_some();
        if traits.has(Traits::BAD_NAME) || traits.has(Traits::BAD_VALUE) && has_line_end() {
            return Err(shown("upstream sent invalid header: \"", name, value));
        }
        if self.section == FieldSection::Head && self.status.is_none() {
            return Err(no_status());
        }
        let is_hop = matches!(
            known,
            Name::Connection
                | Name::KeepAlive
                | Name::ProxyConnection
                | Name::TransferEncoding
                | Name::Upgrade
        );
        if name.len() <= usize::from(u16::MAX) && !is_hop {
            self.fields.push_parsed(known, name, trim(value));
        }
        Ok(())
    }

    /// RFC 9113 §8.3.2: `:status` comes first in a head, and nothing else has a colon.
    fn pseudo(&mut self, token: FieldToken, name: &[u8], value: &[u8]) -> Result<(), OriginError> {
        if self.section == FieldSection::Trailers {
            return Err(shown("upstream sent invalid trailer \"", name, value));
        }
        if token != FieldToken::Status {
            return Err(shown("upstream sent invalid header \"", name, value));
        }
        if self.status.is_some() {
            return Err(invalid("upstream sent duplicate :status header"));
        }
        if !self.fields.is_empty() {
            return Err(shown("upstream sent invalid header \"", name, value));
        }
        let [a @ b'0'..=b'9', b @ b'0'..=b'9', c @ b'0'..=b'9'] = *value else {
            return Err(of_status("invalid", value));
        };
        let status = [a, b, c].iter().fold(0, |code, digit| code * 10 + u16::from(digit - b'0'));
        if status < 100 || status == 101 {
            return Err(of_status("unexpected", value));
        }
        self.status = Some(status);
        Ok(())
    }
}

impl Sink for ResponseFields {
    fn field(&mut self, token: FieldToken, traits: Traits, name: &[u8], value: &[u8]) {
        if self.flaw.is_none() {
            self.flaw = self.read(token, traits, name, value).err();
        }
    }
}

/// nginx's words for a block that cannot be decoded.
pub(super) fn undecodable(error: HpackError) -> OriginError {
    match error {
        HpackError::Truncated => invalid("upstream sent truncated http2 header"),
        HpackError::Integer => invalid("upstream sent http2 header with too large an integer"),
        HpackError::Huffman => invalid("upstream sent invalid encoded header"),
        HpackError::Index => invalid("upstream sent invalid http2 table index"),
        HpackError::SizeUpdate => invalid("upstream sent invalid http2 dynamic table size update"),
        HpackError::TooLarge => OriginError::HeadTooBig,
    }
}

fn no_status() -> OriginError {
    invalid("upstream sent no :status header")
}

fn of_status(what: &str, value: &[u8]) -> OriginError {
    let value = &value[..value.len().min(SHOWN_MAX)];
    invalid([b"upstream sent ", what.as_bytes(), b" :status \"", value, b"\""].concat())
}

fn shown(before: &str, name: &[u8], value: &[u8]) -> OriginError {
    let field = [name, b": ", value].concat();
    invalid([before.as_bytes(), &field[..field.len().min(SHOWN_MAX)], b"\""].concat())
}
