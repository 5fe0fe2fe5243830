//! The handling of a request by a cache, as `Cache-Status` reports it (RFC 9211).
//!
//! Owns the writing of our member of the list; members of earlier caches stay in front of it.

use crate::digits;
use crate::structured;

/// Why a request was forwarded (RFC 9211 §2.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forward {
    /// The configuration bypasses the cache.
    Bypass,
    /// The cache does not answer this method.
    Method,
    /// No response was stored for the URI.
    UriMiss,
    /// The stored responses were selected by other request fields.
    VaryMiss,
    /// No response was stored; URI or Vary miss is not known.
    Miss,
    /// The request's directives required it.
    Request,
    /// The stored response is stale.
    Stale,
    /// Only a part was stored.
    Partial,
}

impl Forward {
    /// As written in the field.
    #[must_use]
    pub const fn token(self) -> &'static str {
        match self {
            Self::Bypass => "bypass",
            Self::Method => "method",
            Self::UriMiss => "uri-miss",
            Self::VaryMiss => "vary-miss",
            Self::Miss => "miss",
            Self::Request => "request",
            Self::Stale => "stale",
            Self::Partial => "partial",
        }
    }
}

/// One cache's handling of one request. `hit` and `forward` exclude one another: `forward` means
/// that it was not a hit.
#[derive(Clone, Copy, Debug, Default)]
pub struct CacheStatus<'a> {
    /// Why the request was forwarded upstream; `None` is a hit.
    pub forward: Option<Forward>,
    /// Whether the cache generated the response itself: neither a hit nor forwarded.
    pub is_own: bool,
    /// The status of the upstream response.
    pub forward_status: Option<u16>,
    /// Seconds of freshness left; negative for a stale response.
    pub ttl: Option<i64>,
    /// Whether the response was stored.
    pub stored: bool,
    /// Whether the request was collapsed with another one.
    pub collapsed: bool,
    /// The cache key, for clients that may see it.
    pub key: Option<&'a [u8]>,
    /// Any further detail.
    pub detail: Option<&'a [u8]>,
}

impl CacheStatus<'_> {
    /// Appends the member of the cache called `name`.
    pub fn push(&self, out: &mut Vec<u8>, name: &[u8]) {
        push_word(out, name);
        match self.forward {
            None if self.is_own => {}
            None => out.extend_from_slice(b"; hit"),
            Some(why) => {
                out.extend_from_slice(b"; fwd=");
                out.extend_from_slice(why.token().as_bytes());
            }
        }
        if let Some(status) = self.forward_status {
            out.extend_from_slice(b"; fwd-status=");
            digits::push_decimal(out, status.into());
        }
        if let Some(ttl) = self.ttl {
            out.extend_from_slice(if ttl < 0 { b"; ttl=-" } else { b"; ttl=" });
            digits::push_decimal(out, ttl.unsigned_abs());
        }
        if self.stored {
            out.extend_from_slice(b"; stored");
        }
        if self.collapsed {
            out.extend_from_slice(b"; collapsed");
        }
        for (parameter, value) in [(&b"; key="[..], self.key), (b"; detail=", self.detail)] {
            if let Some(value) = value {
                out.extend_from_slice(parameter);
                push_word(out, value);
            }
        }
    }
}

/// A token where the text is one, else a string.
fn push_word(out: &mut Vec<u8>, text: &[u8]) {
    let starts = text.first().is_some_and(|&byte| byte.is_ascii_alphabetic() || byte == b'*');
    let is_rest = |&byte: &u8| structured::is_token(byte) || matches!(byte, b':' | b'/');
    if starts && text.iter().all(is_rest) {
        out.extend_from_slice(text);
    } else {
        structured::push_string(out, text);
    }
}

#[cfg(test)]
mod tests {
    use super::{CacheStatus, Forward};

    #[test]
    fn members_read_as_the_rfc_writes_them() {
        let text = |status: CacheStatus<'_>| {
            let mut out = Vec::new();
            status.push(&mut out, b"Bolide");
            assert!(crate::structured::list(&out).is_some());
            String::from_utf8(out).unwrap()
        };
        let hit = CacheStatus { ttl: Some(57), ..CacheStatus::default() };
        assert_eq!(text(hit), "Bolide; hit; ttl=57");
        let stale = CacheStatus { ttl: Some(-3), detail: Some(b"swr"), ..hit };
        assert_eq!(text(stale), "Bolide; hit; ttl=-3; detail=swr");
        let miss = CacheStatus {
            forward: Some(Forward::UriMiss),
            stored: true,
            collapsed: true,
            key: Some(b"http://a/\"b\""),
            ..CacheStatus::default()
        };
        assert_eq!(
            text(miss),
            "Bolide; fwd=uri-miss; stored; collapsed; key=\"http://a/\\\"b\\\"\""
        );
        let own = CacheStatus { is_own: true, detail: Some(b"why"), ..CacheStatus::default() };
        assert_eq!(text(own), "Bolide; detail=why");
        let refreshed = CacheStatus {
            forward: Some(Forward::Stale),
            forward_status: Some(304),
            ..CacheStatus::default()
        };
        assert_eq!(text(refreshed), "Bolide; fwd=stale; fwd-status=304");
    }
}
