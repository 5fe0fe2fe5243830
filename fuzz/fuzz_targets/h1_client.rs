//! The entry `h1_client` under libFuzzer.
#![no_main]

#[path = "../entries.rs"]
mod entries;

libfuzzer_sys::fuzz_target!(|data: &[u8]| entries::run("h1_client", data));
