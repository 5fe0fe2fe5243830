//! A cache of successful password checks, so that a slow hash is computed once.
//!
//! Holds fingerprints of a password and its hash, so a changed hash needs no invalidation. Failed
//! checks are not stored.

use bolide_engine::PasswordCheck;

/// LIMIT: fingerprints of one worker; the oldest is replaced.
const KNOWN_MAX: usize = 256;

/// Successful checks.
pub(crate) struct Verified {
    secret: [u8; 32],
    known: Vec<Fingerprint>,
    oldest: usize,
}

/// Identifies a password together with a hash.
pub(crate) type Fingerprint = [u8; 32];

impl Verified {
    /// An empty cache. `secret` is the process's.
    pub(crate) const fn new(secret: [u8; 32]) -> Self {
        Self { secret, known: Vec::new(), oldest: 0 }
    }

    /// The fingerprint of a check.
    pub(crate) fn fingerprint(&self, check: &PasswordCheck) -> Fingerprint {
        check.fingerprint(&self.secret)
    }

    /// Whether this check has succeeded before.
    pub(crate) fn knows(&self, fingerprint: &Fingerprint) -> bool {
        self.known.contains(fingerprint)
    }

    /// Stores a successful check.
    pub(crate) fn note(&mut self, fingerprint: Fingerprint) {
        if self.knows(&fingerprint) {
            return;
        }
        if self.known.len() < KNOWN_MAX {
            self.known.push(fingerprint);
            return;
        }
        debug_assert!(self.known.len() == KNOWN_MAX, "what is full stays full");
        self.known[self.oldest] = fingerprint;
        self.oldest = (self.oldest + 1) % KNOWN_MAX;
    }
}

impl std::fmt::Debug for Verified {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Verified").field("known", &self.known.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::{KNOWN_MAX, Verified};

    fn print(n: usize) -> [u8; 32] {
        let mut print = [0; 32];
        print[..8].copy_from_slice(&(n as u64).to_be_bytes());
        print
    }

    #[test]
    fn the_oldest_makes_room_and_nothing_is_kept_twice() {
        let mut verified = Verified::new([0; 32]);
        (0..KNOWN_MAX).for_each(|n| verified.note(print(n)));
        verified.note(print(0));
        assert!(verified.knows(&print(0)) && verified.knows(&print(KNOWN_MAX - 1)));
        (0..3).for_each(|n| verified.note(print(KNOWN_MAX + n)));
        assert!((0..3).all(|n| !verified.knows(&print(n))));
        assert!((3..KNOWN_MAX + 3).all(|n| verified.knows(&print(n))));
        assert_eq!(verified.known.len(), KNOWN_MAX);
    }

    #[test]
    fn what_it_shows_of_itself_tells_no_secret() {
        let shown = format!("{:?}", Verified::new([77; 32]));
        assert!(!shown.contains("77"), "{shown}");
    }
}
