//! The entry `h2` under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| bolide_fuzz_entries::run("h2", data));
