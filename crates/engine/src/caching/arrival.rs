//! How a request arrived where it is answered, as far as that tells its answer from others.

use bolide_conf::Template;
use bolide_conf::model::PassTo;

/// A turn inside the server that was taken for what an application or an error said.
#[derive(Clone, Copy, Debug)]
pub(crate) enum InternalRedirect {
    /// `error_page` for this status.
    ErrorPage(u16),
    /// `X-Accel-Redirect`
    Accel,
    /// A rule of a `.htaccess` file, which the keys of zones know nothing of.
    Htaccess,
}

/// How a request arrived where it is answered.
#[derive(Clone, Debug, Default)]
pub(crate) struct RequestArrival {
    /// The turns that it took.
    pub(super) turns: Vec<u8>,
    /// Whether its path or location depended on more than its address.
    is_turned: bool,
    /// Whether access was refused to it on its way.
    is_refused: bool,
    /// Whether its answer depends on what no key has.
    is_unkeyed: bool,
    /// Whether it left the location for which a store was asked.
    has_left: bool,
}

impl RequestArrival {
    /// Forgets the request.
    #[inline]
    pub(crate) fn clear(&mut self) {
        self.turns.clear();
        (self.is_turned, self.is_refused) = (false, false);
        (self.is_unkeyed, self.has_left) = (false, false);
    }

    /// It is answered elsewhere, for what was said of it.
    pub(crate) fn turn(&mut self, turn: InternalRedirect) {
        self.is_turned = true;
        match turn {
            InternalRedirect::ErrorPage(status) => {
                self.turns.push(b'e');
                self.turns.extend_from_slice(&status.to_le_bytes());
            }
            InternalRedirect::Accel => self.turns.push(b'x'),
            InternalRedirect::Htaccess => self.turns.push(b'h'),
        }
    }

    /// A store was asked for it where it was: it is asked again wherever it goes, the same location
    /// included.
    pub(crate) const fn leave(&mut self) {
        self.has_left = true;
    }

    /// Whether it left since a store was asked, which is about to be asked again.
    pub(super) const fn take_leave(&mut self) -> bool {
        std::mem::replace(&mut self.has_left, false)
    }

    /// Its path or location depended on more than its address: an `if`, a `rewrite`, a variable.
    pub(crate) const fn bend(&mut self) {
        self.is_turned = true;
    }

    /// An application is told `value` by this name, and may answer otherwise for it.
    pub(crate) fn note_variable(&mut self, name: &[u8], value: &[u8]) {
        self.is_turned = true;
        self.turns.push(b'v');
        for text in [name, value] {
            self.turns.extend_from_slice(&(text.len() as u64).to_le_bytes());
            self.turns.extend_from_slice(text);
        }
    }

    /// Its answer depends on what no key has: no store has a part in it.
    pub(crate) const fn leave_unkeyed(&mut self) {
        self.is_unkeyed = true;
    }

    /// Whether its answer depends on what no key has.
    pub(crate) const fn is_unkeyed(&self) -> bool {
        self.is_unkeyed
    }

    /// Access was refused to it.
    pub(crate) const fn refuse(&mut self) {
        self.is_refused = true;
    }

    /// Whether its path or location depended on more than its address.
    pub(crate) const fn is_turned(&self) -> bool {
        self.is_turned
    }

    /// Whether access was refused to it on its way.
    pub(crate) const fn is_refused(&self) -> bool {
        self.is_refused
    }
}

/// The text that says which origin is asked, if that may depend on more than the address.
pub(crate) fn varying_origin(to: &PassTo) -> Option<&Template> {
    match to {
        PassTo::Text(template) if !template.follows_target() => Some(template),
        PassTo::Text(_) | PassTo::Group(_) => None,
    }
}
