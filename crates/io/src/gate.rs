//! Reserves the last descriptors for the control thread, files and upstream connections, so that
//! clients cannot use all.
//!
//! The kernel gives out the lowest free number, so a high number means that all lower ones are in
//! use. Easiest to break: the limit, and the number of other open descriptors, may change while the
//! server runs.

use bolide_base::limits::DESCRIPTORS_RESERVED;

use crate::sys;

/// Whether one worker may accept clients.
#[derive(Debug)]
pub(crate) struct AcceptGate {
    /// The lowest free number when the worker started.
    first: i32,
    /// Numbers from this one on are reserved.
    reserved_from: u64,
    /// The last client's number was a reserved one.
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
            self.is_near = sys::lowest_free(self.first).is_none_or(|free| self.is_reserved(free));
        }
        self.is_near
    }

    /// A client was accepted.
    pub(crate) fn note(&mut self, fd: i32) {
        self.is_near = self.is_reserved(fd);
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
