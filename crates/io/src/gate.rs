//! Keeps the last descriptors from clients, for what the control thread has to open, for files and
//! for origins.
//!
//! The kernel gives the lowest number that is free, so a high one means that all below are taken.
//! Easiest to break: the limit, and what is open beside clients, may change while the server runs.

use bolide_base::limits::DESCRIPTORS_RESERVED;

use crate::sys;

/// Whether clients may be taken, of one worker.
#[derive(Debug)]
pub(crate) struct AcceptGate {
    /// The lowest number that was free when the worker began, which it holds.
    first: i32,
    /// From this number on descriptors are kept from clients.
    reserved_from: u64,
    /// The last client's number says that there may be no other.
    is_near: bool,
}

impl AcceptGate {
    /// For a worker one of whose first descriptors this is.
    pub(crate) fn new(first: i32) -> Self {
        Self { first, reserved_from: reserved_from(first, sys::nofile().0), is_near: false }
    }

    /// Whether no client may be taken now.
    pub(crate) fn is_shut(&mut self) -> bool {
        if self.is_near {
            self.reserved_from = reserved_from(self.first, sys::nofile().0);
            self.is_near = sys::lowest_free(self.first).is_none_or(|free| self.is_reserved(free));
        }
        self.is_near
    }

    /// A client was taken.
    pub(crate) fn note(&mut self, fd: i32) {
        self.is_near = self.is_reserved(fd);
    }

    fn is_reserved(&self, fd: i32) -> bool {
        u64::try_from(fd).is_ok_and(|fd| fd >= self.reserved_from)
    }
}

/// Where few are left to begin with, three quarters of them are for clients.
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
