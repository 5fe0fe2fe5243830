//! The hashes that distribute clients: CRC-32, points on a circle, and the one of `ip_hash`.
//!
//! Owns arithmetic only. It is nginx's, so that clients keep their servers when this server
//! replaces nginx.

/// A point on the circle of `hash … consistent`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Point {
    /// Where.
    pub(crate) at: u32,
    /// Its `server` line.
    pub(crate) server: u32,
}

/// Points per unit of weight.
const POINTS_PER_WEIGHT: u32 = 160;

const TABLE: [u32; 256] = table();

/// CRC-32 (ISO 3309) that can be continued.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Crc(u32);

impl Crc {
    pub(crate) const fn new() -> Self {
        Self(!0)
    }

    pub(crate) fn add(mut self, bytes: &[u8]) -> Self {
        for &byte in bytes {
            self.0 = TABLE[((self.0 ^ u32::from(byte)) & 0xff) as usize] ^ (self.0 >> 8);
        }
        self
    }

    pub(crate) const fn value(self) -> u32 {
        !self.0
    }
}

/// One round of `ip_hash`; the first starts with 89.
pub(crate) fn ip_round(hash: u32, address: &[u8]) -> u32 {
    address.iter().fold(hash, |hash, &byte| (hash * 113 + u32::from(byte)) % 6271)
}

/// The circle of servers: name, number, weight. Each point is the hash of host, NUL, port and the
/// previous point, as in memcached clients.
pub(crate) fn points<'a>(servers: impl Iterator<Item = (&'a str, u32, u32)>) -> Vec<Point> {
    let mut points = Vec::new();
    for (name, server, weight) in servers {
        let (host, port) = host_and_port(name);
        let base = Crc::new().add(host).add(&[0]).add(port);
        let mut at = 0_u32;
        for _ in 0..weight.saturating_mul(POINTS_PER_WEIGHT) {
            at = base.add(&at.to_le_bytes()).value();
            points.push(Point { at, server });
        }
    }
    points.sort_by_key(|point| point.at);
    points.dedup_by_key(|point| point.at);
    points
}

/// Index of the first point at or after `hash`; the circle wraps around.
pub(crate) fn point_at(points: &[Point], hash: u32) -> usize {
    let index = points.partition_point(|point| point.at < hash);
    if index == points.len() { 0 } else { index }
}

/// The texts before and after the colon of a server's name.
fn host_and_port(name: &str) -> (&[u8], &[u8]) {
    let bytes = name.as_bytes();
    if bytes.len() >= 5 && bytes[..5].eq_ignore_ascii_case(b"unix:") {
        return (&bytes[5..], b"");
    }
    let digits = bytes.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
    match bytes.len().checked_sub(digits + 1) {
        Some(colon) if bytes[colon] == b':' => (&bytes[..colon], &bytes[colon + 1..]),
        _ => (bytes, b""),
    }
}

const fn table() -> [u32; 256] {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 1 == 1 { 0xedb8_8320 ^ (crc >> 1) } else { crc >> 1 };
            bit += 1;
        }
        table[byte] = crc;
        byte += 1;
    }
    table
}
