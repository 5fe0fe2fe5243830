//! The state of `secure_link` for a request.

/// The state of `secure_link` for a request.
#[derive(Clone, Debug, Default)]
pub(crate) struct CompiledSecureLink {
    /// `$secure_link`; the inner value is none if the link is invalid.
    pub(super) value: Option<Option<Box<[u8]>>>,
    /// `$secure_link_expires`
    pub(super) expires: Option<Box<[u8]>>,
    /// Whether `expires` was read, and is fixed.
    pub(super) is_read: bool,
    /// Whether `$secure_link` was read.
    pub(super) is_weighed: bool,
}

impl CompiledSecureLink {
    /// Clears the state of the last request.
    pub(crate) fn clear(&mut self) {
        (self.value, self.expires) = (None, None);
        (self.is_read, self.is_weighed) = (false, false);
    }
}
