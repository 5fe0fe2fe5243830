//! Reserves the last descriptors for the control thread, files and upstream connections, so that
//! clients cannot use all.
//!
//! The kernel gives out the lowest free number, so a high number means that all lower ones are in
//! use. Easiest to break: the limit, and the number of other open descriptors, may change while the
//! server runs.

use bolide_base::limits::DESCRIPTORS_RESERVED;

use crate::sys;

/// So close to the reserved numbers each client is checked before it is accepted.
const MARGIN: i32 = 16;

/// Whether one worker may accept clients.
#[derive(Debug)]
pub(crate) struct AcceptGate {
    /// The lowest free number when the worker started.
    first: i32,
    /// Numbers from this one on are reserved.
    reserved_from: u64,
    /// The number of a client was reserved, or almost: each further one is checked first.
    is_near: bool,
}

impl AcceptGate {
    /// The gate of a worker; the descriptor is one of its first.
    pub(crate) fn new(first: i32) -> Self {
        Self { first, reserved_from: reserved_from(first, sys::nofile().0), is_near: false }
    }

    /// Whether no client may be accepted now.
    pub(crate) fn is_shut(&mut self) -> bool {
        if self.is_near {
            self.reserved_from = reserved_from(self.first, sys::nofile().0);
            let free = sys::lowest_free(self.first);
            // A client that leaves frees a low number, and the one after it takes a high one.
            self.is_near = free.is_none_or(|free| self.is_reserved(free.saturating_add(MARGIN)));
            return free.is_none_or(|free| self.is_reserved(free));
        }
        false
    }

    /// A client was accepted.
    pub(crate) fn note(&mut self, fd: i32) {
        self.is_near |= self.is_reserved(fd.saturating_add(MARGIN));
    }

    fn is_reserved(&self, fd: i32) -> bool {
        u64::try_from(fd).is_ok_and(|fd| fd >= self.reserved_from)
    }
}

/// If the limit is low, three quarters of the descriptors are for clients.
fn reserved_from(first: i32, limit: u64) -> u64 {
    let start = u64::try_from(first).unwrap_or_default();
    limit - DESCRIPTORS_RESERVED.min(limit.saturating_sub(start) / 4)
}

#[cfg(test)]
mod tests {
    use bolide_base::limits::DESCRIPTORS_RESERVED;

    use super::reserved_from;

    #[test]
    fn some_are_kept_from_clients_but_never_most() {
        for (first, limit, from) in [
            (20, 1024, 1024 - DESCRIPTORS_RESERVED),
            (20, u64::MAX, u64::MAX - DESCRIPTORS_RESERVED),
            (20, 100, 80),
            (99, 100, 100),
            (100, 100, 100),
            (200, 100, 100),
        ] {
            assert_eq!(reserved_from(first, limit), from, "{first} of {limit}");
        }
    }
}
