//! Field names that the server itself knows, as one byte each.

macro_rules! names {
    ($($variant:ident = $text:literal),+ $(,)?) => {
        /// A field name: one the server knows, or [`Name::Other`] with its text next to it.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum Name {
            $(#[doc = concat!("`", $text, "`")] $variant,)+
            /// Any other name; its text is compared case-insensitively.
            Other,
        }

        const TEXTS: &[&str] = &[$($text),+];
        pub(crate) const ALL: &[Name] = &[$(Name::$variant),+];
    };
}

names! {
    Accept = "Accept",
    AcceptCharset = "Accept-Charset",
    AcceptEncoding = "Accept-Encoding",
    AcceptLanguage = "Accept-Language",
    AcceptRanges = "Accept-Ranges",
    AccessControlAllowOrigin = "Access-Control-Allow-Origin",
    Age = "Age",
    Allow = "Allow",
    AltSvc = "Alt-Svc",
    Authorization = "Authorization",
    CacheControl = "Cache-Control",
    Connection = "Connection",
    ContentDisposition = "Content-Disposition",
    ContentEncoding = "Content-Encoding",
    ContentLanguage = "Content-Language",
    ContentLength = "Content-Length",
    ContentLocation = "Content-Location",
    ContentRange = "Content-Range",
    ContentSecurityPolicy = "Content-Security-Policy",
    ContentType = "Content-Type",
    Cookie = "Cookie",
    Date = "Date",
    EarlyData = "Early-Data",
    Etag = "ETag",
    Expect = "Expect",
    Expires = "Expires",
    Forwarded = "Forwarded",
    From = "From",
    Host = "Host",
    Http2Settings = "HTTP2-Settings",
    IfMatch = "If-Match",
    IfModifiedSince = "If-Modified-Since",
    IfNoneMatch = "If-None-Match",
    IfRange = "If-Range",
    IfUnmodifiedSince = "If-Unmodified-Since",
    KeepAlive = "Keep-Alive",
    LastModified = "Last-Modified",
    Link = "Link",
    Location = "Location",
    MaxForwards = "Max-Forwards",
    Origin = "Origin",
    Pragma = "Pragma",
    Priority = "Priority",
    ProxyAuthenticate = "Proxy-Authenticate",
    ProxyAuthorization = "Proxy-Authorization",
    ProxyConnection = "Proxy-Connection",
    Range = "Range",
    Referer = "Referer",
    Refresh = "Refresh",
    RetryAfter = "Retry-After",
    Server = "Server",
    SetCookie = "Set-Cookie",
    StrictTransportSecurity = "Strict-Transport-Security",
    Te = "TE",
    Trailer = "Trailer",
    TransferEncoding = "Transfer-Encoding",
    Upgrade = "Upgrade",
    UpgradeInsecureRequests = "Upgrade-Insecure-Requests",
    UserAgent = "User-Agent",
    Vary = "Vary",
    Via = "Via",
    WwwAuthenticate = "WWW-Authenticate",
    XContentTypeOptions = "X-Content-Type-Options",
    XForwardedFor = "X-Forwarded-For",
    XForwardedProto = "X-Forwarded-Proto",
    XFrameOptions = "X-Frame-Options",
    XRealIp = "X-Real-IP",
    XRequestedWith = "X-Requested-With",
}

/// The longest known name.
const LEN_MAX: usize = 27;
/// Slots of the lookup table; a power of two, so sparse that [`hash`] has no collision (tested).
const SLOTS: usize = 1024;

const fn hash(len: usize, first: u8, middle: u8, last: u8) -> usize {
    let (a, b, c) = ((first | 0x20) as usize, (middle | 0x20) as usize, (last | 0x20) as usize);
    (len.wrapping_mul(61) ^ a.wrapping_mul(7) ^ b.wrapping_mul(29) ^ c.wrapping_mul(113)) % SLOTS
}

const fn hash_of(text: &[u8]) -> usize {
    hash(text.len(), text[0], text[text.len() / 2], text[text.len() - 1])
}

/// Chains of at most two names share a slot; 0xff is empty.
const TABLE: [[u8; 4]; SLOTS] = {
    let mut table = [[0xff_u8; 4]; SLOTS];
    let mut i = 0;
    while i < TEXTS.len() {
        let slot = hash_of(TEXTS[i].as_bytes());
        let mut way = 0;
        while table[slot][way] != 0xff {
            way += 1;
        }
        table[slot][way] = i as u8;
        i += 1;
    }
    table
};

impl Name {
    /// The name that `text` spells in any case, or [`Name::Other`].
    #[must_use]
    #[inline]
    pub fn parse(text: &[u8]) -> Self {
        if text.is_empty() || text.len() > LEN_MAX {
            return Self::Other;
        }
        for &way in &TABLE[hash_of(text)] {
            let Some(known) = TEXTS.get(usize::from(way)) else { return Self::Other };
            if known.as_bytes().eq_ignore_ascii_case(text) {
                return ALL[usize::from(way)];
            }
        }
        Self::Other
    }

    /// The canonical spelling; empty for [`Name::Other`].
    #[must_use]
    #[inline]
    pub fn text(self) -> &'static str {
        TEXTS.get(self as usize).copied().unwrap_or("")
    }

    /// Whether a field describes the request's content, or selects the form or part of the
    /// response. Subrequests do not inherit such fields.
    #[must_use]
    pub const fn is_about_content(self) -> bool {
        matches!(
            self,
            Self::ContentEncoding
                | Self::ContentLength
                | Self::Expect
                | Self::IfMatch
                | Self::IfModifiedSince
                | Self::IfNoneMatch
                | Self::IfRange
                | Self::IfUnmodifiedSince
                | Self::Range
                | Self::TransferEncoding
        )
    }
}

#[cfg(test)]
mod tests {
    use super::{ALL, LEN_MAX, Name, TEXTS};

    #[test]
    fn every_known_name_is_found_in_any_case_and_others_are_not() {
        for (name, text) in ALL.iter().zip(TEXTS) {
            assert_eq!(Name::parse(text.as_bytes()), *name);
            assert_eq!(Name::parse(text.to_ascii_lowercase().as_bytes()), *name);
            assert_eq!(Name::parse(text.to_ascii_uppercase().as_bytes()), *name);
            assert_eq!(name.text(), *text);
            assert!(text.len() <= LEN_MAX);
        }
        assert_eq!(Name::parse(b"Content-Typo"), Name::Other);
        assert_eq!(Name::parse(b""), Name::Other);
    }
}
