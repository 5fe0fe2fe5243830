//! The entry `h2_client` under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| bolide_fuzz_entries::run("h2_client", data));
