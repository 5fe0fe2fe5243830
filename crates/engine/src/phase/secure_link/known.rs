//! What a request knows of its link.

/// What a request knows of its link once it was asked.
#[derive(Clone, Debug, Default)]
pub(crate) struct CompiledSecureLink {
    /// `$secure_link`; the inner value is none if the link proves nothing.
    pub(super) value: Option<Option<Box<[u8]>>>,
    /// `$secure_link_expires`
    pub(super) expires: Option<Box<[u8]>>,
    /// Whether that was read, and is what it was then.
    pub(super) is_told: bool,
    /// Whether `$secure_link` was asked for.
    pub(super) is_weighed: bool,
}

impl CompiledSecureLink {
    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        (self.value, self.expires) = (None, None);
        (self.is_told, self.is_weighed) = (false, false);
    }
}
