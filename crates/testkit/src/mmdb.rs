//! A writer of databases in MaxMind's format, version 2.0, for tests: networks and their records.
//!
//! It writes the public format by itself and shares no code with the product.

use std::net::IpAddr;

/// A value of a record.
#[derive(Clone, Debug, PartialEq)]
pub enum MmdbValue {
    /// UTF-8.
    Text(String),
    /// Any bytes.
    Bytes(Vec<u8>),
    /// A floating-point number of 64 bits.
    Double(f64),
    /// A floating-point number of 32 bits.
    Float(f32),
    /// An unsigned number of 16 bits.
    U16(u16),
    /// Of 32 bits.
    U32(u32),
    /// Of 64 bits.
    U64(u64),
    /// Of 128 bits.
    U128(u128),
    /// A signed number of 32 bits.
    I32(i32),
    /// A Boolean value.
    Bool(bool),
    /// A list.
    Array(Vec<Self>),
    /// Values by name, in this order.
    Map(Vec<(String, Self)>),
}

impl From<&str> for MmdbValue {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

/// A map of these.
#[must_use]
pub fn map<const N: usize>(entries: [(&str, MmdbValue); N]) -> MmdbValue {
    MmdbValue::Map(entries.map(|(key, value)| (key.to_owned(), value)).into())
}

/// The contents of a database.
#[derive(Clone, Debug)]
pub struct Mmdb {
    /// Networks, as `10.0.0.0/8`, with their records; later ones lie within or beside earlier ones.
    pub networks: Vec<(String, MmdbValue)>,
    /// 4 or 6.
    pub ip_version: u16,
    /// 24, 28 or 32.
    pub record_size: u16,
    /// When it was built, in seconds since 1970.
    pub build_epoch: u64,
}

impl Mmdb {
    /// A database of these networks for both versions of IP, with records of 28 bits.
    #[must_use]
    pub fn new<const N: usize>(networks: [(&str, MmdbValue); N]) -> Self {
        let networks = networks.map(|(network, value)| (network.to_owned(), value)).into();
        Self { networks, ip_version: 6, record_size: 28, build_epoch: 1_700_000_000 }
    }

    /// The bytes of the file.
    ///
    /// # Panics A network is invalid, or the tree is too large for the records.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        // A node has two sides: nothing, a node, or data at an offset.
        let mut nodes = vec![[TreeSide::Empty; 2]];
        let mut data = Vec::new();
        for (network, value) in &self.networks {
            let offset = data.len() as u64;
            push(value, &mut data);
            insert(&mut nodes, &self.bits(network), offset);
        }
        let count = nodes.len() as u64;
        let number = |side: TreeSide| match side {
            TreeSide::Empty => count,
            TreeSide::Node(node) => node as u64,
            TreeSide::Data(offset) => count + 16 + offset,
        };
        let mut bytes = Vec::new();
        for node in &nodes {
            let [left, right] = node.map(number);
            assert!(left.max(right) < 1 << self.record_size, "the records hold the tree");
            match self.record_size {
                28 => {
                    bytes.extend_from_slice(&left.to_be_bytes()[5..]);
                    bytes.push(((left >> 24) << 4 | right >> 24) as u8);
                    bytes.extend_from_slice(&right.to_be_bytes()[5..]);
                }
                bits => {
                    let skip = 8 - usize::from(bits) / 8;
                    bytes.extend_from_slice(&left.to_be_bytes()[skip..]);
                    bytes.extend_from_slice(&right.to_be_bytes()[skip..]);
                }
            }
        }
        bytes.extend_from_slice(&[0; 16]);
        bytes.append(&mut data);
        bytes.extend_from_slice(b"\xab\xcd\xefMaxMind.com");
        push(&self.metadata(count), &mut bytes);
        bytes
    }

    fn metadata(&self, nodes: u64) -> MmdbValue {
        map([
            ("binary_format_major_version", MmdbValue::U16(2)),
            ("binary_format_minor_version", MmdbValue::U16(0)),
            ("build_epoch", MmdbValue::U64(self.build_epoch)),
            ("database_type", "Test".into()),
            ("description", map([("en", "for tests".into())])),
            ("ip_version", MmdbValue::U16(self.ip_version)),
            ("languages", MmdbValue::Array(vec!["en".into()])),
            ("node_count", MmdbValue::U32(nodes as u32)),
            ("record_size", MmdbValue::U16(self.record_size)),
        ])
    }

    /// The bits of a network's prefix from the root of the tree on.
    fn bits(&self, network: &str) -> Vec<usize> {
        let (address, len) = network.split_once('/').expect("a network has a length");
        let len: usize = len.parse().expect("a length is a number");
        let (number, width, above) = match address.parse().expect("an address") {
            IpAddr::V4(ip) if self.ip_version == 4 => (u128::from(ip.to_bits()), 32, 0),
            IpAddr::V4(ip) => (u128::from(ip.to_bits()), 128, 96),
            IpAddr::V6(ip) => (ip.to_bits(), 128, 0),
        };
        (0..above + len).map(|bit| (number >> (width - 1 - bit) & 1) as usize).collect()
    }
}

#[derive(Clone, Copy, Debug)]
enum TreeSide {
    Empty,
    Node(usize),
    Data(u64),
}

fn insert(nodes: &mut Vec<[TreeSide; 2]>, bits: &[usize], offset: u64) {
    let (last, way) = bits.split_last().expect("a network is not everything");
    let mut node = 0;
    for bit in way {
        node = match nodes[node][*bit] {
            TreeSide::Node(next) => next,
            // A network inherits the record of the network that contains it.
            side => {
                let next = nodes.len();
                nodes.push([side; 2]);
                nodes[node][*bit] = TreeSide::Node(next);
                next
            }
        };
    }
    nodes[node][*last] = TreeSide::Data(offset);
}

/// Appends a value with its control bytes.
fn push(value: &MmdbValue, out: &mut Vec<u8>) {
    match value {
        MmdbValue::Text(text) => push_bytes(2, text.as_bytes(), out),
        MmdbValue::Double(number) => push_bytes(3, &number.to_be_bytes(), out),
        MmdbValue::Bytes(bytes) => push_bytes(4, bytes, out),
        MmdbValue::U16(number) => push_number(5, &number.to_be_bytes(), out),
        MmdbValue::U32(number) => push_number(6, &number.to_be_bytes(), out),
        MmdbValue::Map(entries) => {
            push_control(7, entries.len(), out);
            for (key, value) in entries {
                push_bytes(2, key.as_bytes(), out);
                push(value, out);
            }
        }
        MmdbValue::I32(number) => push_bytes(8, &number.to_be_bytes(), out),
        MmdbValue::U64(number) => push_number(9, &number.to_be_bytes(), out),
        MmdbValue::U128(number) => push_number(10, &number.to_be_bytes(), out),
        MmdbValue::Array(values) => {
            push_control(11, values.len(), out);
            values.iter().for_each(|value| push(value, out));
        }
        MmdbValue::Bool(truth) => push_control(14, usize::from(*truth), out),
        MmdbValue::Float(number) => push_bytes(15, &number.to_be_bytes(), out),
    }
}

fn push_bytes(kind: u8, bytes: &[u8], out: &mut Vec<u8>) {
    push_control(kind, bytes.len(), out);
    out.extend_from_slice(bytes);
}

/// An unsigned number has no leading zeros.
fn push_number(kind: u8, bytes: &[u8], out: &mut Vec<u8>) {
    let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
    push_bytes(kind, &bytes[zeros..], out);
}

fn push_control(kind: u8, size: usize, out: &mut Vec<u8>) {
    assert!(size < 65_821, "tests have no larger values");
    let (low, more): (u8, Vec<u8>) = match size {
        0..29 => (size as u8, Vec::new()),
        29..285 => (29, vec![(size - 29) as u8]),
        _ => (30, ((size - 285) as u16).to_be_bytes().to_vec()),
    };
    // Kinds above seven stand in a byte of their own.
    match kind {
        0..8 => out.push(kind << 5 | low),
        _ => out.extend_from_slice(&[low, kind - 7]),
    }
    out.extend(more);
}
