//! A complete response as a client has read it, whatever its protocol.

/// A complete response.
#[derive(Clone, Debug, Default)]
pub struct SimResponse {
    /// The status code.
    pub status: u16,
    /// Field names in lower case, with values.
    pub fields: Vec<(String, String)>,
    /// The body without framing.
    pub body: Vec<u8>,
    /// The trailers.
    pub trailers: Vec<(String, String)>,
    /// Its framing has no place for trailers.
    pub has_no_trailers: bool,
}

impl SimResponse {
    /// The field of an application's response whose body has trailers.
    pub const TRAILED: &str = "x-trailed";
    /// The only trailer of applications.
    pub const TRAILER: (&str, &str) = ("grpc-status", "0");

    /// Whether the trailers are those of the application, and are there.
    #[must_use]
    pub fn has_its_trailers(&self) -> bool {
        let (name, value) = Self::TRAILER;
        match &*self.trailers {
            [] => self.has_no_trailers || self.field(Self::TRAILED).is_none(),
            [only] => *only == (name.to_owned(), value.to_owned()),
            _ => false,
        }
    }

    /// The first field of this name.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|(known, _)| known == name).map(|(_, value)| &**value)
    }

    /// Whether the response has no body, whatever its fields say.
    #[must_use]
    pub const fn is_bodiless(status: u16, head_only: bool) -> bool {
        head_only || matches!(status, 100..=199 | 204 | 304)
    }
}
