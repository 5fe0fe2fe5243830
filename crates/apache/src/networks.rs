//! Networks, as Apache writes them.

/// A network in nginx's form.
pub(crate) fn network(text: &str) -> Option<String> {
    let (address, bits) = text.split_once('/').map_or((text, None), |(a, b)| (a, Some(b)));
    if address.contains(':') {
        return address.parse::<std::net::Ipv6Addr>().ok().map(|_| text.to_owned());
    }
    let parts: Vec<&str> = address.trim_end_matches('.').split('.').collect();
    if parts.len() > 4 || parts.iter().any(|part| part.parse::<u8>().is_err()) {
        return None;
    }
    let full = parts.iter().copied().chain(std::iter::repeat_n("0", 4 - parts.len()));
    let full = full.collect::<Vec<_>>().join(".");
    let bits = match bits {
        None => 8 * parts.len(),
        Some(bits) if bits.contains('.') => {
            let mask = u32::from(bits.parse::<std::net::Ipv4Addr>().ok()?);
            let ones = mask.leading_ones();
            (mask.count_ones() == ones).then_some(ones as usize)?
        }
        Some(bits) => bits.parse().ok().filter(|bits| *bits <= 32)?,
    };
    Some(format!("{full}/{bits}"))
}

/// Whether a text is an address or a network that has private addresses, or may have.
pub(crate) fn is_private(text: &str) -> bool {
    const RANGES: [(&str, u32); 7] = [
        ("10.0.0.0", 8),
        ("127.0.0.0", 8),
        ("172.16.0.0", 12),
        ("192.168.0.0", 16),
        ("169.254.0.0", 16),
        ("100.64.0.0", 10),
        ("0.0.0.0", 8),
    ];
    let Some(net) = network(text) else { return false };
    let (address, bits) = net.split_once('/').unwrap_or((&net, "32"));
    match (address.parse::<std::net::Ipv4Addr>(), bits.parse::<u32>()) {
        (Ok(address), Ok(bits)) => RANGES.iter().any(|(other, most)| {
            let other: u32 = other.parse::<std::net::Ipv4Addr>().map_or(0, u32::from);
            let shift = 32 - bits.min(*most);
            let high = |address: u32| address.checked_shr(shift).unwrap_or(0);
            high(u32::from(address)) == high(other)
        }),
        _ => !address.starts_with('2'),
    }
}

#[cfg(test)]
mod tests {
    use super::{is_private, network};

    #[test]
    fn private_networks_are_known() {
        for private in
            ["10", "10.1.2.3", "127.0.0.1", "172.20", "192.168.1.0/24", "0.0.0.0/0", "::1"]
        {
            assert!(is_private(private), "{private}");
        }
        for public in ["192.0.2.0/24", "172.32.0.1", "11", "2001:db8::/32", "ip", "all"] {
            assert!(!is_private(public), "{public}");
        }
    }

    #[test]
    fn networks_have_all_their_parts() {
        let rows = [
            ("10", Some("10.0.0.0/8")),
            ("192.168.", Some("192.168.0.0/16")),
            ("10.1.2.3", Some("10.1.2.3/32")),
            ("10.1.0.0/255.255.0.0", Some("10.1.0.0/16")),
            ("10.1.0.0/255.0.255.0", None),
            ("2001:db8::/32", Some("2001:db8::/32")),
            ("example.org", None),
        ];
        for (text, wanted) in rows {
            assert_eq!(network(text).as_deref(), wanted, "{text}");
        }
    }
}
