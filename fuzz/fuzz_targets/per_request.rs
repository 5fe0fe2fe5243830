//! The entry `per_request` under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| bolide_fuzz_entries::run("per_request", data));
