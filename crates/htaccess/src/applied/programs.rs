//! What directives say about programs: which files are theirs, and PHP's settings.

use super::Applied;
use crate::settings::PhpSetting;

impl<'a> Applied<'a> {
    /// Whether one of the directives gives the extension of a file called `name` a handler or a
    /// type for which `is_program` holds, or has files of any extension handled by one; a later
    /// directive may say something else.
    #[must_use]
    pub fn names_program(&self, name: &[u8], is_program: impl Fn(&[u8]) -> bool) -> bool {
        self.all().any(|settings| settings.mime.names_program(name, &is_program))
    }

    /// Settings of PHP, in their order.
    pub fn php(&self) -> impl Iterator<Item = &'a PhpSetting> {
        self.all().flat_map(|settings| &settings.php)
    }

    /// Whether scripts must not run. No later directive takes `never` back.
    #[must_use]
    pub fn refuses_php(&self) -> bool {
        let all = || self.php().filter(|setting| *setting.name == *b"engine");
        if all().any(|setting| setting.value.eq_ignore_ascii_case(b"never")) {
            return true;
        }
        let engine = all().last();
        let value = engine.map(|setting| setting.value.to_ascii_lowercase());
        matches!(value.as_deref(), Some(b"0" | b"off" | b"false" | b"no" | b""))
    }
}
