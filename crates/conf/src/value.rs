//! Numbers, sizes and times as nginx writes them.

use std::net::Ipv4Addr;
use std::time::Duration;

/// The status of a response that ends an exchange: it has three digits, and one below 200 would
/// announce another head (RFC 9110 §15.2).
#[must_use]
pub fn final_status(word: &[u8]) -> Option<u16> {
    number(word).and_then(|status| u16::try_from(status).ok()).filter(|it| (200..=999).contains(it))
}

/// A decimal number of digits only; `None` when empty, malformed or too large.
#[must_use]
pub fn number(text: &[u8]) -> Option<i64> {
    if text.is_empty() {
        return None;
    }
    text.iter().try_fold(0_i64, |sum, byte| {
        if !byte.is_ascii_digit() {
            return None;
        }
        sum.checked_mul(10)?.checked_add(i64::from(byte - b'0'))
    })
}

/// Bytes with an optional `k` or `m`.
#[must_use]
pub fn size(text: &[u8]) -> Option<u64> {
    match text.last()?.to_ascii_lowercase() {
        b'g' => None,
        _ => offset(text),
    }
}

/// Bytes with an optional `k`, `m` or `g`.
#[must_use]
pub fn offset(text: &[u8]) -> Option<u64> {
    let (last, rest) = text.split_last()?;
    let (digits, scale) = match last.to_ascii_lowercase() {
        b'k' => (rest, 1 << 10),
        b'm' => (rest, 1 << 20),
        b'g' => (rest, 1 << 30),
        _ => (text, 1),
    };
    let bytes = number(digits)?.checked_mul(scale)?;
    u64::try_from(bytes).ok()
}

/// Whether a time may be finer than a second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Whole seconds; `ms` is refused.
    Seconds,
    /// Milliseconds.
    Millis,
}

/// A time: numbers with `y M w d h m s`, largest first; a bare last number is seconds. With
/// milliseconds there is `ms` and neither `y` nor `M`.
#[must_use]
pub fn time(text: &[u8], unit: Unit) -> Option<Duration> {
    let mut total = 0_i64;
    let mut step = 0;
    let mut rest = text;
    loop {
        let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let value = number(&rest[..digits])?;
        rest = &rest[digits..];
        let (rank, seconds, used) = match rest {
            // Years and months do not fit a number of milliseconds.
            [b'y' | b'M', ..] if unit == Unit::Millis => return None,
            [b'y', ..] => (1, 365 * 86_400, 1),
            [b'M', ..] => (2, 30 * 86_400, 1),
            [b'w', ..] => (3, 7 * 86_400, 1),
            [b'd', ..] => (4, 86_400, 1),
            [b'h', ..] => (5, 3600, 1),
            [b'm', b's', ..] if unit == Unit::Millis => (8, 0, 2),
            [b'm', b's', ..] => return None,
            [b'm', ..] => (6, 60, 1),
            [b's', ..] => (7, 1, 1),
            [] | [b' ', ..] => (9, 1, 0),
            _ => return None,
        };
        let scale = match unit {
            Unit::Seconds => seconds,
            Unit::Millis => (seconds * 1000).max(1),
        };
        if rank <= step {
            return None;
        }
        step = rank;
        total = total.checked_add(value.checked_mul(scale)?)?;
        rest = &rest[used..];
        while let [b' ', tail @ ..] = rest {
            rest = tail;
        }
        if rest.is_empty() {
            let make = match unit {
                Unit::Seconds => Duration::from_secs,
                Unit::Millis => Duration::from_millis,
            };
            return u64::try_from(total).ok().map(make);
        }
    }
}

/// An address of four decimal numbers; as in nginx, a number may be empty or begin with zeros, and
/// 255.255.255.255 is invalid.
#[must_use]
pub fn ipv4(text: &[u8]) -> Option<Ipv4Addr> {
    let (mut bits, mut octet, mut dots) = (0_u32, 0_u32, 0);
    for byte in text {
        match byte {
            b'0'..=b'9' => {
                octet = octet * 10 + u32::from(byte - b'0');
                if octet > 255 {
                    return None;
                }
            }
            b'.' if dots < 3 => {
                bits = bits << 8 | octet;
                octet = 0;
                dots += 1;
            }
            _ => return None,
        }
    }
    let bits = bits << 8 | octet;
    (dots == 3 && bits != u32::MAX).then_some(Ipv4Addr::from_bits(bits))
}

/// An address in the system's older forms: one to four numbers, decimal, octal or hexadecimal, of
/// which the last fills the remaining bytes.
#[must_use]
pub fn numeric_host(text: &str) -> Option<Ipv4Addr> {
    let numbers: Option<Vec<u32>> = text.split('.').map(c_number).collect();
    let numbers = numbers.filter(|numbers| numbers.len() <= 4)?;
    let (last, octets) = numbers.split_last()?;
    let room = 32 - 8 * octets.len() as u32;
    let mut bits = u64::from(*last);
    for (place, octet) in octets.iter().enumerate() {
        if *octet > 255 {
            return None;
        }
        bits |= u64::from(*octet) << (24 - 8 * place);
    }
    let fits = room == 32 || *last >> room == 0;
    fits.then_some(Ipv4Addr::from_bits(bits as u32))
}

/// A number as C writes it.
fn c_number(text: &str) -> Option<u32> {
    match text.as_bytes() {
        [b'0', b'x' | b'X', _, ..] => u32::from_str_radix(&text[2..], 16).ok(),
        [b'0', _, ..] => u32::from_str_radix(&text[1..], 8).ok(),
        [b'0'..=b'9', ..] => text.parse().ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::{Unit, number, numeric_host, offset, size, time};
    use std::time::Duration;

    #[test]
    fn sizes_take_k_and_m_and_only_offsets_take_g() {
        assert_eq!(size(b"8k"), Some(8192));
        assert_eq!(size(b"1M"), Some(1 << 20));
        assert_eq!(size(b"1g"), None);
        assert_eq!(offset(b"2G"), Some(2 << 30));
        for bad in [&b""[..], b"k", b"-1", b"1.5k", b"9999999999999999999", b"9223372036854775807k"]
        {
            assert_eq!(offset(bad), None, "{}", bad.escape_ascii());
        }
        assert_eq!(number(b"007"), Some(7));
    }

    #[test]
    fn times_add_up_from_large_to_small() {
        let seconds = |text: &str| time(text.as_bytes(), Unit::Seconds).map(|time| time.as_secs());
        assert_eq!(seconds("1h30m"), Some(5400));
        assert_eq!(seconds("1M1d"), Some(31 * 86_400));
        assert_eq!(seconds("1y"), Some(365 * 86_400));
        assert_eq!(seconds("65"), Some(65));
        assert_eq!(seconds("1m 30s"), Some(90));
        assert_eq!(seconds("9223372036854775807"), Some(i64::MAX as u64));
        for bad in ["", "1s1m", "1s1s", "5ms", "s", "1x", "-1", "1m1h", "99999999999999999999"] {
            assert_eq!(seconds(bad), None, "{bad}");
        }
        assert_eq!((time(b"1y", Unit::Millis), time(b"1M", Unit::Millis)), (None, None));
        assert_eq!(time(b"1w", Unit::Millis), Some(Duration::from_secs(7 * 86_400)));
        assert_eq!(time(b"1s500ms", Unit::Millis), Some(Duration::from_millis(1500)));
    }

    #[test]
    fn a_host_of_numbers_is_an_address_as_the_system_reads_it() {
        let rows = [
            ("2147483647", Some([127, 255, 255, 255])),
            ("127.1", Some([127, 0, 0, 1])),
            ("1.2.3", Some([1, 2, 0, 3])),
            ("0x7f.010.0.1", Some([127, 8, 0, 1])),
            ("1.2.3.4", Some([1, 2, 3, 4])),
            ("4294967296", None),
            ("1.2.3.256", None),
            ("256.1", None),
            ("1.2.3.4.5", None),
            ("08", None),
            ("0x", None),
            ("1..2", None),
            ("", None),
            ("a", None),
        ];
        for (text, expected) in rows {
            assert_eq!(numeric_host(text), expected.map(Into::into), "{text}");
        }
    }
}
