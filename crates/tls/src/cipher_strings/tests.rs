//! Strings beside what OpenSSL 3.6 selects with them (`openssl ciphers`): those of Mozilla's
//! generator, of well-known applications and of OpenSSL's manual, and random ones.

use super::{CIPHERS, CipherStringError, read};

/// FNV-1a.
fn digest(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// In each line an error, or how many ciphers a string selects with a digest of the names of those
/// that encrypt; then the string.
const STRINGS: &str = include_str!("openssl.txt");

fn told(spec: &str) -> String {
    match read(spec) {
        Ok(list) => {
            let encrypt = list.names.iter().filter(|name| !name.contains("NULL"));
            let joined = encrypt.copied().collect::<Vec<_>>().join(":");
            format!("{}/{:016x}", list.names.len(), digest(&joined))
        }
        Err(CipherStringError::NoMatch) => "NOTHING".to_owned(),
        Err(CipherStringError::InvalidCommand) => "INVALID".to_owned(),
    }
}

#[test]
fn strings_select_what_openssl_selects() {
    let mut count = 0;
    for line in STRINGS.lines() {
        let (wanted, spec) = line.split_once(' ').unwrap();
        assert_eq!(told(spec), wanted, "{spec}");
        count += 1;
    }
    assert!(count > 190);
}

#[test]
fn every_word_that_adds_is_told_with_its_ciphers() {
    let list = read("DEFAULT:kEDH+AESGCM:!RC4:nonsense:@SECLEVEL=3").unwrap();
    let words: Vec<_> = list.words.iter().map(|(word, names)| (&**word, names.len())).collect();
    assert_eq!(words, [("ALL", 137), ("kEDH+AESGCM", 6), ("nonsense", 0)]);
    assert_eq!(list.level, Some(3));
    assert_eq!(CIPHERS.len(), 155);
}

proptest::proptest! {
    #[test]
    fn arbitrary_strings_are_read(spec in "[A-Za-z0-9+!@:, =.-]{0,40}|\\PC{0,20}") {
        if let Ok(list) = read(&spec) {
            proptest::prop_assert!(!list.names.is_empty() && list.names.len() <= CIPHERS.len());
        }
    }
}
