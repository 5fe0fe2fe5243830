//! How a request arrived at its location, as far as that distinguishes its response.

use bolide_conf::Template;
use bolide_conf::model::PassTo;

/// An internal redirect caused by a response, an error or a rule.
#[derive(Clone, Copy, Debug)]
pub(crate) enum InternalRedirect {
    /// `error_page` for this status.
    ErrorPage(u16),
    /// `X-Accel-Redirect`
    Accel,
    /// A rule of a `.htaccess` file, which is not part of the keys of zones.
    Htaccess,
}

/// How a request arrived at its location.
#[derive(Clone, Debug, Default)]
pub(crate) struct RequestArrival {
    /// The internal redirects on its way.
    pub(super) turns: Vec<u8>,
    /// Whether its path or location depended on more than its URL.
    is_turned: bool,
    /// Whether access was refused on its way.
    is_refused: bool,
    /// Whether its response depends on something that no key has.
    is_unkeyed: bool,
    /// Whether it left the location of the last cache lookup.
    has_left: bool,
    /// The places whose checks it passed, in order; 0 if no place had any.
    checks: u64,
    /// The last one of them.
    last_check: u64,
}

impl RequestArrival {
    /// Clears the state of the last request.
    #[inline]
    pub(crate) fn clear(&mut self) {
        self.turns.clear();
        (self.is_turned, self.is_refused) = (false, false);
        (self.is_unkeyed, self.has_left) = (false, false);
        (self.checks, self.last_check) = (0, 0);
    }

    /// Records an internal redirect.
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

    /// A cache lookup was made in this location: the next location makes another one, even if it is
    /// the same.
    pub(crate) const fn leave(&mut self) {
        self.has_left = true;
    }

    /// Whether it left the location of the last lookup; resets the note.
    pub(super) const fn take_leave(&mut self) -> bool {
        std::mem::replace(&mut self.has_left, false)
    }

    /// Its path or location depended on more than its URL: an `if`, a `rewrite`, a variable.
    pub(crate) const fn bend(&mut self) {
        self.is_turned = true;
    }

    /// An application gets the variable `name` with `value`, and may respond differently.
    pub(crate) fn record_variable(&mut self, name: &[u8], value: &[u8]) {
        self.is_turned = true;
        self.turns.push(b'v');
        for text in [name, value] {
            self.turns.extend_from_slice(&(text.len() as u64).to_le_bytes());
            self.turns.extend_from_slice(text);
        }
    }

    /// Its response depends on something that no key has: the cache is not involved.
    pub(crate) const fn leave_unkeyed(&mut self) {
        self.is_unkeyed = true;
    }

    /// Whether its response depends on something that no key has.
    pub(crate) const fn is_unkeyed(&self) -> bool {
        self.is_unkeyed
    }

    /// Access was refused.
    pub(crate) const fn refuse(&mut self) {
        self.is_refused = true;
    }

    /// Whether its path or location depended on more than its URL.
    pub(crate) const fn is_turned(&self) -> bool {
        self.is_turned
    }

    /// It is checked here: another client, or another request, may be refused.
    pub(crate) const fn check_at(&mut self, place: u64) {
        let place = place.wrapping_add(1);
        // A check that waited goes on.
        if place != self.last_check {
            self.last_check = place;
            let mixed = (self.checks ^ place).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            self.checks = mixed.rotate_left(29) | 1;
        }
        debug_assert!(self.checks != 0, "who was checked did not pass freely");
    }

    /// The places whose checks it passed: equal for requests that passed the same ones, and 0 if
    /// there were none.
    pub(crate) const fn checks(&self) -> u64 {
        self.checks
    }

    /// Whether access was refused on its way.
    pub(crate) const fn is_refused(&self) -> bool {
        self.is_refused
    }
}

/// The text that selects the upstream, if it may depend on more than the URL.
pub(crate) fn varying_origin(to: &PassTo) -> Option<&Template> {
    match to {
        PassTo::Text(template) if !template.follows_target() => Some(template),
        PassTo::Text(_) | PassTo::Group(_) => None,
    }
}
