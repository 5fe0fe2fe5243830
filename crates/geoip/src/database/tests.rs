//! What databases of the test kit have, and what damaged ones do.

use std::net::IpAddr;

use bolide_testkit::mmdb::{Mmdb, MmdbValue, map};
use proptest::prelude::{ProptestConfig, any, proptest};

use super::{Decimals, GeoDatabase, GeoPath};

fn records() -> Mmdb {
    let all = map([
        ("text", "Wien".into()),
        ("long", "x".repeat(300).as_str().into()),
        ("bytes", MmdbValue::Bytes(vec![b'a', 0, 255])),
        ("double", MmdbValue::Double(48.20849)),
        ("float", MmdbValue::Float(-1.5)),
        ("u16", MmdbValue::U16(7)),
        ("u32", MmdbValue::U32(2_761_369)),
        ("u64", MmdbValue::U64(u64::MAX)),
        ("u128", MmdbValue::U128(1 << 100 | 5)),
        ("i32", MmdbValue::I32(-7)),
        ("yes", MmdbValue::Bool(true)),
        ("no", MmdbValue::Bool(false)),
        ("empty", "".into()),
        ("map", map([("0", "key".into()), ("k", "v".into())])),
        ("list", MmdbValue::Array(vec!["first".into(), map([("k", "inner".into())])])),
    ]);
    Mmdb::new([
        ("10.0.0.0/8", all),
        ("10.1.0.0/16", map([("text", "inside".into())])),
        ("2001:db8::/32", map([("text", "six".into())])),
        ("192.0.2.1/32", "a text alone".into()),
    ])
}

fn look(database: &GeoDatabase, ip: &str, path: &str, decimals: Decimals) -> Option<Vec<u8>> {
    let path = GeoPath::new(path.split_whitespace().map(str::as_bytes)).unwrap();
    let mut out = b">".to_vec();
    let found = database.write(ip.parse::<IpAddr>().unwrap(), &path, decimals, &mut out);
    assert!(found || out == b">", "what has no value leaves no text");
    found.then(|| out[1..].to_vec())
}

#[test]
fn a_path_leads_to_a_value_of_any_type() {
    for record_size in [24, 28, 32] {
        let bytes = Mmdb { record_size, ..records() }.bytes();
        let database = GeoDatabase::new(bytes).unwrap();
        assert_eq!(database.build_epoch(), 1_700_000_000);
        let rows: [(&str, &str, Option<&[u8]>); 27] = [
            ("10.9.9.9", "text", Some(b"Wien")),
            ("10.1.2.3", "text", Some(b"inside")),
            ("10.1.2.3", "u16", None),
            ("11.0.0.0", "text", None),
            ("2001:db8::1", "text", Some(b"six")),
            ("2001:db9::1", "text", None),
            ("192.0.2.1", "", Some(b"a text alone")),
            ("192.0.2.1", "text", None),
            ("10.9.9.9", "", None),
            ("10.9.9.9", "bytes", Some(b"a\0\xff")),
            ("10.9.9.9", "double", Some(b"48.20849")),
            ("10.9.9.9", "float", Some(b"-1.50000")),
            ("10.9.9.9", "u16", Some(b"7")),
            ("10.9.9.9", "u32", Some(b"2761369")),
            ("10.9.9.9", "u64", Some(b"18446744073709551615")),
            ("10.9.9.9", "u128", Some(b"0x00000010000000000000000000000005")),
            ("10.9.9.9", "i32", Some(b"-7")),
            ("10.9.9.9", "yes", Some(b"1")),
            ("10.9.9.9", "no", Some(b"0")),
            ("10.9.9.9", "empty", Some(b"")),
            ("10.9.9.9", "map", None),
            ("10.9.9.9", "map 0", Some(b"key")),
            ("10.9.9.9", "list 0", Some(b"first")),
            ("10.9.9.9", "list 1 k", Some(b"inner")),
            ("10.9.9.9", "list 2", None),
            ("10.9.9.9", "text more", None),
            ("10.9.9.9", "list", None),
        ];
        for (ip, path, wanted) in rows {
            let got = look(&database, ip, path, Decimals::Five);
            assert_eq!(got.as_deref(), wanted, "{ip} {path}, {record_size} bits");
        }
        assert_eq!(look(&database, "10.9.9.9", "double", Decimals::Four).unwrap(), b"48.2085");
        assert_eq!(look(&database, "10.9.9.9", "long", Decimals::Four).unwrap(), b"x".repeat(300));
    }
}

#[test]
fn a_database_of_ipv4_has_nothing_for_ipv6() {
    let four = Mmdb::new([("10.0.0.0/8", map([("text", "four".into())]))]);
    let database = GeoDatabase::new(Mmdb { ip_version: 4, ..four }.bytes()).unwrap();
    assert_eq!(look(&database, "10.0.0.1", "text", Decimals::Five).unwrap(), b"four");
    assert_eq!(look(&database, "2001:db8::1", "text", Decimals::Five), None);
}

#[test]
fn what_is_cut_off_or_leads_out_of_the_file_is_refused() {
    let whole = records().bytes();
    for len in [0, 10, whole.len() / 2, whole.len() - 20] {
        assert!(GeoDatabase::new(whole[..len].to_vec()).is_err(), "{len} bytes");
    }
    assert!(GeoDatabase::new(b"GEO-106FREE 20180327 Build 1".repeat(90)).is_err());
    // The first record of the tree leads far behind the file.
    let mut bent = whole;
    bent[..4].fill(0x7f);
    let error = GeoDatabase::new(bent).unwrap_err();
    assert_eq!(error.to_string(), "the search tree leads out of the file");
}

#[test]
fn a_path_has_limits() {
    let words = |count: usize, word: &'static [u8]| GeoPath::new((0..count).map(|_| word));
    assert!(words(16, b"k").is_some() && words(17, b"k").is_none());
    assert!(words(4, b"0").is_some() && words(5, b"0").is_none());
    assert!(words(1, b"\xff").is_none());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn no_damage_brings_the_reader_down(at in any::<[u16; 6]>(), with in any::<[u8; 6]>()) {
        let mut bytes = records().bytes();
        for (at, with) in at.into_iter().zip(with) {
            let at = usize::from(at) % bytes.len();
            bytes[at] = with;
        }
        crate::fuzz::database(&bytes);
    }
}
