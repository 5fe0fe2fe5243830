//! Passes every file of `fuzz/corpus` to every fuzz entry, and variants of it to its own entry.
//!
//! `BOLIDE_FUZZ=target:file:variant` replays one and prints its bytes (without `:variant`: the
//! unchanged file); `BOLIDE_FUZZ_VARIANTS=n` sets the number of variants of each file.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::{env, fs};

use bolide_base::prng::Prng;
use bolide_fuzz_entries::{ALL, Entry};

/// Variants of each file: they take a few seconds without optimisation.
const VARIANTS: u64 = 150;
/// LIMIT: bytes of a variant.
const SIZE_MAX: usize = 6000;
/// Words that parsers look for.
const WORDS: &[&[u8]] = &[
    b"\r\n",
    b"\n",
    b"\0",
    b" ",
    b":",
    b";",
    b"\"",
    b"\\",
    b"{",
    b"}",
    b"$",
    b"%2e",
    b"/../",
    b"*",
    b"HTTP/1.1",
    b"Host: a\r\n",
    b"0\r\n\r\n",
    b"ffffffff",
    b"-1",
    b"99999999999999999999",
    b"\xff\xff\xff\xff",
    b"\x7f\xff\xff\xff",
    b"\x80",
    b"\x3f\xe1\x1f",
    b"\0\0\0\x04\x01\0\0\0\0",
    b"\0\0\x01\x01\x05\0\0\0\x05\x82",
    b"\0\0\x04\x08\0\0\0\0\0\0\0\0\x01",
    b"include main.conf;",
];

struct Seed {
    target: String,
    name: String,
    data: Vec<u8>,
}

/// The entries of a directory, sorted by name.
fn list(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).expect("a directory of the corpus can be read");
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

fn name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn corpus() -> Vec<Seed> {
    let mut seeds = Vec::new();
    for target in list(&Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus")) {
        for file in list(&target) {
            let data = fs::read(&file).expect("a file of the corpus can be read");
            seeds.push(Seed { target: name(&target), name: name(&file), data });
        }
    }
    seeds
}

/// Variant number `variant` of `data`, always the same; 0 is `data` itself.
fn mutate(data: &[u8], variant: u64) -> Vec<u8> {
    let mut out = data.to_vec();
    if variant == 0 {
        return out;
    }
    let mut prng = Prng::new(variant ^ (data.len() as u64) << 32);
    for _ in 0..=prng.below(4) {
        let at = prng.below(out.len() as u64 + 1) as usize;
        let len = (1 + prng.below(16) as usize).min(out.len() - at);
        match prng.below(8) {
            0 if at < out.len() => out[at] ^= 1 << prng.below(8),
            1 if at < out.len() => out[at] = prng.next_u64() as u8,
            2 if at < out.len() => out[at] = out[at].wrapping_add(1 + prng.below(4) as u8),
            3 => drop(out.drain(at..at + len)),
            4 => out.truncate(at),
            5 => {
                let word = WORDS[prng.below(WORDS.len() as u64) as usize];
                out.splice(at..at, word.iter().copied());
            }
            6 => {
                let word = WORDS[prng.below(WORDS.len() as u64) as usize];
                out.splice(at..at + len, word.iter().copied());
            }
            _ => {
                let piece: Vec<u8> = out[at..at + len].to_vec();
                let times = 1 + prng.below(12) as usize;
                let to = prng.below(out.len() as u64 + 1) as usize;
                out.splice(to..to, piece.repeat(times));
            }
        }
    }
    out.truncate(SIZE_MAX);
    out
}

fn play(entry: Entry, name: &str, seed: &Seed, variant: u64) {
    let data = mutate(&seed.data, variant);
    if catch_unwind(AssertUnwindSafe(|| entry(&data))).is_err() {
        let Seed { target, name: file, .. } = seed;
        panic!(
            "entry {name} with variant {variant} of {target}/{file}: {}\n\
             again: BOLIDE_FUZZ={name}:{target}/{file}:{variant} cargo test --test fuzz_replay",
            data.escape_ascii()
        );
    }
}

fn target(name: &str) -> Entry {
    let found = ALL.iter().find(|(known, _)| *known == name);
    found.unwrap_or_else(|| panic!("no entry {name}")).1
}

#[test]
fn no_file_of_the_corpora_breaks_any_entry() {
    let seeds = corpus();
    if let Ok(wanted) = env::var("BOLIDE_FUZZ") {
        let mut parts = wanted.split(':');
        let (name, file) = (parts.next().unwrap_or(""), parts.next().unwrap_or(""));
        let variant = parts.next().map_or(0, |number| number.parse().expect("a number"));
        let is_it = |seed: &&Seed| format!("{}/{}", seed.target, seed.name) == file;
        let seed = seeds.iter().find(is_it).unwrap_or_else(|| panic!("no file {file}"));
        println!("{}", mutate(&seed.data, variant).escape_ascii());
        return play(target(name), name, seed, variant);
    }
    for seed in &seeds {
        assert!(seed.data.len() <= 4096, "{}/{} is small", seed.target, seed.name);
        for (name, entry) in ALL {
            play(*entry, name, seed, 0);
        }
    }
    for (name, _) in ALL {
        assert!(seeds.iter().any(|seed| seed.target == *name), "{name} has a corpus");
    }
}

#[test]
fn no_variant_of_a_corpus_file_breaks_its_entry() {
    if env::var_os("BOLIDE_FUZZ").is_some() {
        return;
    }
    let variants = env::var("BOLIDE_FUZZ_VARIANTS")
        .map_or(VARIANTS, |number| number.parse().expect("BOLIDE_FUZZ_VARIANTS is a number"));
    for seed in corpus() {
        let entry = target(&seed.target);
        for variant in 1..=variants {
            play(entry, &seed.target, &seed, variant);
        }
    }
}
