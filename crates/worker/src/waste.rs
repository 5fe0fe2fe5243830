//! Wasted requests by client address, over all connections of this worker.
//!
//! An address over the limit loses the connection that wastes the next request; connections that
//! waste none stay, so that other clients behind the address do not suffer.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};

use bolide_base::{Instant, Now};
use bolide_engine::ClientAddress;

/// LIMIT: wasted requests of one address that time has not paid off.
const WASTES_MAX: u32 = 100;
/// Wasted requests paid off per second.
const SECOND_PAYS: u32 = 2;
/// LIMIT: stored addresses.
const KNOWN_MAX: usize = 4096;

/// The wasted requests of one address.
#[derive(Clone, Copy, Debug)]
struct Wasted {
    count: u32,
    paid_until: Instant,
}

impl Wasted {
    /// Pays off by elapsed time.
    const fn rest(&mut self, now: Now) {
        let seconds = now.mono.since(self.paid_until).as_secs();
        if seconds > 0 {
            let paid = if seconds > WASTES_MAX as u64 { WASTES_MAX } else { seconds as u32 };
            self.count = self.count.saturating_sub(paid * SECOND_PAYS);
            self.paid_until = now.mono;
        }
    }
}

/// Wasted requests by address.
#[derive(Debug, Default)]
pub(crate) struct WasteByAddress(HashMap<IpAddr, Wasted>);

impl WasteByAddress {
    /// Adds `count` wasted requests of a client; returns whether its address is over the limit.
    /// Clients without an address, and those that a proxy does not name, are not counted together.
    #[cold]
    pub(crate) fn are_too_many(
        &mut self,
        client: Option<ClientAddress>,
        count: u32,
        now: Now,
    ) -> bool {
        match client {
            Some(ClientAddress::Inet(addr)) => self.note(addr.ip(), count, now),
            Some(ClientAddress::Unix) | None => false,
        }
    }

    /// Adds `count` wasted requests of a client at `ip`; returns whether it is over the limit.
    fn note(&mut self, ip: IpAddr, count: u32, now: Now) -> bool {
        if self.0.len() >= KNOWN_MAX {
            self.forget(now);
        }
        debug_assert!(self.0.len() < KNOWN_MAX, "addresses are forgotten in time");
        let fresh = Wasted { count: 0, paid_until: now.mono };
        let wasted = self.0.entry(network(ip)).or_insert(fresh);
        wasted.rest(now);
        wasted.count = wasted.count.saturating_add(count);
        wasted.count > WASTES_MAX
    }

    /// Drops addresses that are paid off; all of them if there are none.
    #[cold]
    fn forget(&mut self, now: Now) {
        self.0.retain(|_, wasted| {
            wasted.rest(now);
            wasted.count > 0
        });
        if self.0.len() >= KNOWN_MAX {
            self.0.clear();
        }
    }
}

/// The addresses that one client controls: an IPv6 network.
fn network(ip: IpAddr) -> IpAddr {
    match ip.to_canonical() {
        IpAddr::V6(ip) => IpAddr::V6(Ipv6Addr::from_bits(ip.to_bits() & !u128::from(u64::MAX))),
        ip => ip,
    }
}

#[cfg(test)]
mod tests {
    use super::{KNOWN_MAX, WASTES_MAX, WasteByAddress};
    use bolide_base::{Instant, Now};
    use std::net::{IpAddr, Ipv4Addr};

    fn at(seconds: u64) -> Now {
        Now { mono: Instant::from_nanos(seconds * 1_000_000_000), unix_millis: 0 }
    }

    #[test]
    fn an_address_may_waste_so_many_and_time_pays() {
        let mut wasters = WasteByAddress::default();
        let ip = |last: u8| IpAddr::V4(Ipv4Addr::new(192, 0, 2, last));
        assert!(!wasters.note(ip(1), WASTES_MAX, at(0)));
        assert!(wasters.note(ip(1), 1, at(0)));
        assert!(!wasters.note(ip(2), 1, at(0)), "others are others");
        assert!(!wasters.note(ip(1), 1, at(1)));
        assert!(!wasters.note(ip(1), WASTES_MAX, at(1000)));
        let one: IpAddr = "2001:db8::1".parse().unwrap();
        let other: IpAddr = "2001:db8::ffff:2".parse().unwrap();
        assert!(!wasters.note(one, WASTES_MAX, at(0)) && wasters.note(other, 1, at(0)));
    }

    #[test]
    fn the_table_is_bounded() {
        let mut wasters = WasteByAddress::default();
        for n in 0..3 * KNOWN_MAX as u32 {
            wasters.note(IpAddr::V4(Ipv4Addr::from_bits(n)), 1, at(0));
            assert!(wasters.0.len() <= KNOWN_MAX);
        }
    }
}
