//! `Expires` directives by media type.

use super::Applied;
use crate::expires::ExpiresAfter;

impl Applied<'_> {
    /// The expiry of a response with this type.
    #[must_use]
    pub fn expires(&self, media_type: &[u8]) -> Option<ExpiresAfter> {
        if self.last(|settings| settings.expiry.active) != Some(true) {
            return None;
        }
        let essence = media_type.split(|byte| *byte == b';').next().unwrap_or_default();
        let essence = essence.trim_ascii();
        let major = essence.iter().position(|byte| *byte == b'/').map(|at| &essence[..at]);
        let of = |wanted: &dyn Fn(&[u8]) -> bool| {
            self.last(|settings| {
                settings
                    .expiry
                    .by_type
                    .iter()
                    .rfind(|(name, _)| wanted(name))
                    .map(|(_, rule)| *rule)
            })
        };
        // As in Apache, wildcards count only in the last place that has any directive.
        let has_wildcards = self
            .last(|settings| settings.expiry.is_given().then(|| settings.expiry.has_wildcards()))
            .unwrap_or(false);
        of(&|name| name.eq_ignore_ascii_case(essence))
            .or_else(|| {
                of(&|name| {
                    let wild = name.strip_suffix(b"/*").filter(|_| has_wildcards);
                    wild.is_some_and(|name| {
                        major.is_some_and(|major| major.eq_ignore_ascii_case(name))
                    })
                })
            })
            .or_else(|| self.last(|settings| settings.expiry.default))
    }
}
