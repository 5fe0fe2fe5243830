//! Owns: that addresses in fields are read as nginx reads them.

use bolide_conf::model::{Network, Who};
use proptest::prelude::*;

use super::{client, is_trusted, parse};
use crate::ctx::ClientAddress;

fn trusted() -> Vec<Who> {
    let net = |net: [u8; 4], mask: [u8; 4]| Who::Network(Network::V4(net.into(), mask.into()));
    vec![net([127, 0, 0, 1], [255; 4]), net([10, 0, 0, 0], [255, 0, 0, 0])]
}

fn peer(text: &str) -> ClientAddress {
    ClientAddress::Inet(text.parse().unwrap())
}

fn found(fields: &[&str], recursive: bool) -> String {
    let values = fields.iter().map(|value| value.as_bytes());
    match client(peer("127.0.0.1:5"), values, &trusted(), recursive) {
        Some(ClientAddress::Inet(addr)) => addr.to_string(),
        Some(ClientAddress::Unix) => "unix:".to_owned(),
        None => "none".to_owned(),
    }
}

#[test]
fn an_address_may_have_a_port_and_must_be_one() {
    for (word, wanted) in [
        ("1.2.3.4", "1.2.3.4:0"),
        ("1.2.3.4:80", "1.2.3.4:80"),
        ("[::1]:80", "[::1]:80"),
        ("[::1]", "[::1]:0"),
        ("::1", "[::1]:0"),
        ("[1.2.3.4]:80", "1.2.3.4:80"),
        ("01.2.3.4", "1.2.3.4:0"),
    ] {
        assert_eq!(parse(word.as_bytes()).map(|addr| addr.to_string()).as_deref(), Some(wanted));
    }
    for word in [
        "",
        "x",
        "1.2.3",
        "1.2.3.256",
        "1.2.3.4:",
        "1.2.3.4:0",
        "1.2.3.4:99999",
        "1.2.3.4:80x",
        "unix:/a",
        "unix:",
        "[::1]:0",
        "[::1",
        "fe80::1%eth0",
        "localhost",
        "255.255.255.255",
        "1.2.3.4\t5.6.7.8",
        ",1.2.3.4",
    ] {
        assert_eq!(parse(word.as_bytes()), None, "{word}");
    }
}

#[test]
fn without_recursion_the_last_word_counts() {
    for (fields, wanted) in [
        (&["1.1.1.1, 10.0.0.1"][..], "10.0.0.1:0"),
        (&["1.1.1.1", "10.0.0.1:90"], "10.0.0.1:90"),
        (&["1.1.1.1, x"], "none"),
        (&["10.0.0.1", ""], "none"),
        (&[",10.0.0.1"], "none"),
        (&["10.0.0.1 , "], "10.0.0.1:0"),
        (&[], "none"),
    ] {
        assert_eq!(found(fields, false), wanted, "{fields:?}");
    }
}

#[test]
fn with_recursion_the_last_word_that_is_not_trusted_counts() {
    for (fields, wanted) in [
        (&["1.1.1.1, 10.0.0.1,10.0.0.2"][..], "1.1.1.1:0"),
        (&["10.0.0.1, 10.0.0.2"], "10.0.0.1:0"),
        (&["1.1.1.1, 2.2.2.2", "10.0.0.1, 10.0.0.2"], "2.2.2.2:0"),
        (&["10.0.0.1", "1.1.1.1"], "1.1.1.1:0"),
        (&["x", "10.0.0.1"], "10.0.0.1:0"),
        (&["x 10.0.0.1"], "10.0.0.1:0"),
        (&["10.0.0.3", "x", "10.0.0.1"], "10.0.0.1:0"),
        (&["[::1]:80, 10.0.0.1"], "[::1]:80"),
        (&["1.1.1.1,, ,10.0.0.1"], "1.1.1.1:0"),
    ] {
        assert_eq!(found(fields, true), wanted, "{fields:?}");
    }
}

proptest! {
    /// Only an address from the fields ever replaces the client, and only if it was trusted.
    #[test]
    fn nothing_is_invented(fields in prop::collection::vec("[0-9a-f.:, \\[\\]x]{0,40}", 0..4),
                           recursive: bool, from in "(127|10|9)\\.0\\.0\\.1") {
        let asker = peer(&format!("{from}:5"));
        let values = fields.iter().map(String::as_bytes);
        if let Some(ClientAddress::Inet(addr)) = client(asker, values, &trusted(), recursive) {
            prop_assert!(is_trusted(&trusted(), asker));
            let words = fields.iter().flat_map(|field| field.split([' ', ',']));
            prop_assert!(words.filter_map(|word| parse(word.as_bytes())).any(|one| one == addr));
        }
    }
}
