//! A GeoIP database in memory. It is validated when it is created; values that are corrupt all the
//! same are absent.

use std::fmt;
use std::io::Write as _;
use std::net::IpAddr;

use bolide_base::limits::{GEO_NUMBERS_MAX, GEO_PATH_MAX};
use maxminddb::{PathElement, Reader};

use crate::value::GeoValue;

/// A GeoIP database.
pub struct GeoDatabase {
    reader: Reader<Vec<u8>>,
}

/// Why bytes are not a database: one line of text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GeoDatabaseError(String);

/// The path of a value in a record: keys of maps, and indices of arrays.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GeoPath {
    words: Box<[PathWord]>,
    numbers: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct PathWord {
    key: Box<str>,
    /// The array index that the word means, if it is a number.
    index: Option<usize>,
}

/// How many decimals of a floating-point number are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decimals {
    /// As `geoip_city` writes coordinates.
    Four,
    /// As `geoip2` writes numbers.
    Five,
}

impl GeoPath {
    /// The path of these words; none if they are not UTF-8, too many, or contain too many numbers.
    #[must_use]
    pub fn new<'w>(words: impl Iterator<Item = &'w [u8]>) -> Option<Self> {
        let words = words
            .map(|word| {
                let key: Box<str> = std::str::from_utf8(word).ok()?.into();
                let is_number = !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_digit());
                let index = is_number.then(|| key.parse().ok()).flatten();
                Some(PathWord { key, index })
            })
            .collect::<Option<Box<[_]>>>()?;
        let numbers = words.iter().filter(|word| word.index.is_some()).count();
        let fits = words.len() <= GEO_PATH_MAX && numbers <= GEO_NUMBERS_MAX;
        fits.then_some(Self { words, numbers })
    }
}

impl GeoDatabase {
    /// Parses the bytes of a file.
    ///
    /// # Errors
    ///
    /// The bytes are not a MaxMind database, or it is truncated or inconsistent.
    pub fn new(bytes: Vec<u8>) -> Result<Self, GeoDatabaseError> {
        let failed = |error: maxminddb::MaxMindDbError| GeoDatabaseError(error.to_string());
        let metadata = Reader::from_source(&bytes[..]).map_err(failed)?;
        let metadata = metadata.metadata();
        let (nodes, bits) = (u64::from(metadata.node_count), metadata.record_size);
        if !leads_inside(&bytes, nodes, usize::from(bits)) {
            return Err(GeoDatabaseError("the search tree leads out of the file".to_owned()));
        }
        Ok(Self { reader: Reader::from_source(bytes).map_err(failed)? })
    }

    /// When it was built, in seconds since 1970.
    #[must_use]
    pub fn build_epoch(&self) -> u64 {
        self.reader.metadata().build_epoch
    }

    /// Appends the text, number or truth value at `path` of the record of `ip`; false if there is
    /// none. Maps and arrays have no text.
    pub fn write(&self, ip: IpAddr, path: &GeoPath, decimals: Decimals, out: &mut Vec<u8>) -> bool {
        let Ok(record) = self.reader.lookup(ip) else { return false };
        if !record.has_data() {
            return false;
        }
        // A number is an index in an array, and a key in a map.
        for keys in 0..1_u32 << path.numbers {
            let mut elements = [const { PathElement::Index(0) }; GEO_PATH_MAX];
            let mut numbers = 0;
            for (element, word) in elements.iter_mut().zip(&path.words) {
                *element = match word.index {
                    Some(index) => {
                        numbers += 1;
                        match keys >> (numbers - 1) & 1 {
                            0 => PathElement::Index(index),
                            _ => PathElement::Key(&word.key),
                        }
                    }
                    None => PathElement::Key(&word.key),
                };
            }
            let elements = &elements[..path.words.len()];
            if let Ok(Some(value)) = record.decode_path::<GeoValue<'_>>(elements) {
                return push(value, decimals, out);
            }
        }
        false
    }
}

/// Whether all records of the search tree, two of `bits` in each node, refer to another node, to no
/// data, or to data within the file.
fn leads_inside(bytes: &[u8], nodes: u64, bits: usize) -> bool {
    let node_len = bits / 4;
    let tree_len = usize::try_from(nodes).ok().and_then(|nodes| nodes.checked_mul(node_len));
    let Some(tree) = tree_len.and_then(|len| bytes.get(..len)) else { return false };
    let data_len = (bytes.len() - tree.len()) as u64;
    let is_inside = |record: u64| {
        // A number beyond the nodes is an offset after the tree and its 16 zero bytes.
        record <= nodes || (16..data_len).contains(&(record - nodes))
    };
    let number = |part: &[u8]| part.iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte));
    match bits {
        24 | 32 => tree.chunks_exact(node_len / 2).all(|part| is_inside(number(part))),
        28 => tree.chunks_exact(7).all(|node| {
            let high = u64::from(node[3]);
            is_inside(number(&node[..3]) | (high >> 4) << 24)
                && is_inside(number(&node[4..]) | (high & 15) << 24)
        }),
        _ => false,
    }
}

/// Appends a value as `geoip2` writes it.
fn push(value: GeoValue<'_>, decimals: Decimals, out: &mut Vec<u8>) -> bool {
    // Writing to a vector cannot fail.
    let _ = match value {
        GeoValue::Text(text) => out.write_all(text.as_bytes()),
        GeoValue::Bytes(bytes) => out.write_all(bytes),
        GeoValue::Float(number) => match decimals {
            Decimals::Four => write!(out, "{number:.4}"),
            Decimals::Five => write!(out, "{number:.5}"),
        },
        GeoValue::Unsigned(number) => write!(out, "{number}"),
        GeoValue::Wide(number) => write!(out, "0x{number:032x}"),
        GeoValue::Signed(number) => write!(out, "{number}"),
        GeoValue::Bool(truth) => out.write_all(if truth { b"1" } else { b"0" }),
        GeoValue::Compound => return false,
    };
    true
}

impl fmt::Debug for GeoDatabase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GeoDatabase").field("built", &self.build_epoch()).finish_non_exhaustive()
    }
}

impl fmt::Display for GeoDatabaseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for GeoDatabaseError {}

#[cfg(test)]
mod tests;
