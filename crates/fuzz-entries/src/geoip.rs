//! Databases of arbitrary bytes: none makes the reader panic, and each lookup is bounded.
//!
//! A fuzz target and a replay test call this; it panics if an invariant is violated.

use std::net::{IpAddr, Ipv6Addr};

use bolide_geoip::{Decimals, GeoDatabase, GeoPath};

/// Opens bytes as a database, and looks up what databases commonly have.
pub fn database(bytes: &[u8]) {
    let Ok(database) = GeoDatabase::new(bytes.to_vec()) else { return };
    let paths: [&[&[u8]]; 5] =
        [&[], &[b"country", b"iso_code"], &[b"list", b"0"], &[b"list", b"0", b"k"], &[b"f"]];
    let addresses = [
        IpAddr::from([127, 0, 0, 1]),
        IpAddr::from([0, 0, 0, 0]),
        IpAddr::from([255, 255, 255, 255]),
        IpAddr::from(Ipv6Addr::LOCALHOST),
        IpAddr::from([0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7]),
    ];
    for path in paths {
        let path = GeoPath::new(path.iter().copied()).expect("the path is short");
        for ip in addresses {
            let (mut once, mut again) = (Vec::new(), Vec::new());
            let found = database.write(ip, &path, Decimals::Five, &mut once);
            assert!(found || once.is_empty(), "what is not there has no text");
            assert!(once.len() <= bytes.len() + 400, "a value is in the file");
            assert_eq!(database.write(ip, &path, Decimals::Five, &mut again), found);
            assert_eq!(once, again, "an address has one value");
        }
    }
}
