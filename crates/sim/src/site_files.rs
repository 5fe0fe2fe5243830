//! The files that the simulated server serves.

use crate::chance::Chance;

/// The paths of the files.
pub const FILES: &[&str] = &[
    "/www/index.html",
    "/www/small.txt",
    "/www/style.css",
    "/www/big.bin",
    "/www/big.txt",
    "/www/empty.txt",
    "/www/docs/index.html",
];

/// Directories.
pub const DIRECTORIES: &[&str] = &["/www", "/www/docs"];

/// A new random content for `path`, often of the same size as others.
#[must_use]
pub fn content(path: &str, chance: &mut Chance) -> Vec<u8> {
    let size = match path {
        "/www/empty.txt" => return Vec::new(),
        "/www/small.txt" => 40 + chance.below(3),
        "/www/style.css" => 20_000 + 1000 * chance.below(3),
        "/www/big.bin" | "/www/big.txt" => 300_000 + 10_000 * chance.below(3),
        _ => 1000 + chance.below(3),
    };
    let line = format!("{path} {:016x}\n", chance.below(u64::MAX));
    let mut bytes = line.repeat(size as usize / line.len() + 1).into_bytes();
    bytes.truncate(size as usize);
    bytes
}
