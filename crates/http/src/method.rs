//! Request methods (RFC 9110 §9) as a closed set plus everything else.

/// A request method. Unknown ones keep their text in [`crate::RequestHead::method_text`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Method {
    /// `GET`
    #[default]
    Get,
    /// `HEAD`
    Head,
    /// `POST`
    Post,
    /// `PUT`
    Put,
    /// `DELETE`
    Delete,
    /// `OPTIONS`
    Options,
    /// `PATCH`
    Patch,
    /// `TRACE`
    Trace,
    /// `CONNECT`
    Connect,
    /// `PURGE`, as in page caches.
    Purge,
    /// Any other token.
    Other,
}

impl Method {
    /// The method that `text` names; methods are case-sensitive.
    #[must_use]
    pub const fn parse(text: &[u8]) -> Self {
        match text {
            b"GET" => Self::Get,
            b"HEAD" => Self::Head,
            b"POST" => Self::Post,
            b"PUT" => Self::Put,
            b"DELETE" => Self::Delete,
            b"OPTIONS" => Self::Options,
            b"PATCH" => Self::Patch,
            b"TRACE" => Self::Trace,
            b"CONNECT" => Self::Connect,
            b"PURGE" => Self::Purge,
            _ => Self::Other,
        }
    }

    /// Whether the method is safe, so that it may be sent in 0-RTT (RFC 8470 §4).
    #[must_use]
    pub const fn is_safe(self) -> bool {
        matches!(self, Self::Get | Self::Head | Self::Options | Self::Trace)
    }
}
