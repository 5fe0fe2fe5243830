//! The examples of RFC 7541 appendix C, refusals, and round trips.

use bolide_http::Name;
use proptest::prelude::{Strategy, any, prop_assert, prop_assert_eq, proptest};

use super::{FieldToken, HpackDecoder, HpackEncoder, HpackError, HpackTable, Sink, Traits, fuzz};

/// The bytes that `text` spells.
pub(super) fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
    let nibble = |digit: u8| char::from(digit).to_digit(16).unwrap() as u8;
    digits.chunks(2).map(|pair| nibble(pair[0]) << 4 | nibble(pair[1])).collect()
}

#[derive(Default)]
struct List(Vec<(String, String)>);

impl Sink for List {
    fn field(&mut self, _: FieldToken, _: Traits, name: &[u8], value: &[u8]) {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        self.0.push((text(name), text(value)));
    }
}

fn decode(decoder: &mut HpackDecoder, block: &[u8]) -> Result<Vec<(String, String)>, HpackError> {
    let mut list = List::default();
    decoder.decode(block, 1 << 16, &mut Vec::new(), &mut list).map(|()| list.0)
}

fn table(table: &HpackTable) -> Vec<(String, String)> {
    let mut list = List::default();
    for row in (0..table.len()).filter_map(|position| table.row(position)) {
        list.field(row.token, row.traits, row.name, row.value);
    }
    list.0
}

fn pairs(text: &str) -> Vec<(String, String)> {
    let pair = |line: &str| {
        let (name, value) = line.trim().split_once(' ').unwrap_or((line.trim(), ""));
        (name.to_owned(), value.to_owned())
    };
    text.lines().filter(|line| !line.trim().is_empty()).map(pair).collect()
}

/// Decodes the blocks one after the other and compares fields, table and table size.
fn check_blocks(size: u32, blocks: &[(&str, &str, &str, u32)]) {
    let mut decoder = HpackDecoder::new(size);
    for (block, fields, rows, used) in blocks {
        assert_eq!(decode(&mut decoder, &hex(block)).unwrap(), pairs(fields));
        assert_eq!(table(decoder.table()), pairs(rows));
        assert_eq!(decoder.table().size(), *used);
    }
}

#[test]
fn the_representations_of_rfc_7541_c_2_hold() {
    let custom = "custom-key custom-header";
    let literal = "400a637573746f6d2d6b65790d637573746f6d2d686561646572";
    check_blocks(4096, &[(literal, custom, custom, 55)]);
    check_blocks(4096, &[("040c2f73616d706c652f70617468", ":path /sample/path", "", 0)]);
    check_blocks(4096, &[("100870617373776f726406736563726574", "password secret", "", 0)]);
    check_blocks(4096, &[("82", ":method GET", "", 0)]);
}

const REQUESTS: [&str; 3] = [
    ":method GET\n:scheme http\n:path /\n:authority www.example.com",
    ":method GET\n:scheme http\n:path /\n:authority www.example.com\ncache-control no-cache",
    ":method GET\n:scheme https\n:path /index.html\n:authority www.example.com\n\
     custom-key custom-value",
];

const REQUEST_TABLES: [&str; 3] = [
    ":authority www.example.com",
    "cache-control no-cache\n:authority www.example.com",
    "custom-key custom-value\ncache-control no-cache\n:authority www.example.com",
];

#[test]
fn the_requests_of_rfc_7541_c_3_and_c_4_hold() {
    let plain = [
        "828684410f7777772e6578616d706c652e636f6d",
        "828684be58086e6f2d6361636865",
        "828785bf400a637573746f6d2d6b65790c637573746f6d2d76616c7565",
    ];
    let huffman = [
        "828684418cf1e3c2e5f23a6ba0ab90f4ff",
        "828684be5886a8eb10649cbf",
        "828785bf408825a849e95ba97d7f8925a849e95bb8e8b4bf",
    ];
    for blocks in [plain, huffman] {
        let row = |i: usize, used| (blocks[i], REQUESTS[i], REQUEST_TABLES[i], used);
        check_blocks(4096, &[row(0, 57), row(1, 110), row(2, 164)]);
    }
}

#[test]
fn the_responses_of_rfc_7541_c_5_and_c_6_hold_with_evictions() {
    let plain = [
        "4803333032580770726976617465611d4d6f6e2c203231204f637420323031332032303a31333a32312047\
         4d546e1768747470733a2f2f7777772e6578616d706c652e636f6d",
        "4803333037c1c0bf",
        "88c1611d4d6f6e2c203231204f637420323031332032303a31333a323220474d54c05a04677a69707738666f\
         6f3d4153444a4b48514b425a584f5157454f50495541585157454f49553b206d61782d6167653d333630303b\
         2076657273696f6e3d31",
    ];
    let huffman = [
        "488264025885aec3771a4b6196d07abe941054d444a8200595040b8166e082a62d1bff6e919d29ad171863c7\
         8f0b97c8e9ae82ae43d3",
        "4883640effc1c0bf",
        "88c16196d07abe941054d444a8200595040b8166e084a62d1bffc05a839bd9ab77ad94e7821dd7f2e6c7b335\
         dfdfcd5b3960d5af27087f3672c1ab270fb5291f9587316065c003ed4ee5b1063d5007",
    ];
    let (date, later) =
        ("date Mon, 21 Oct 2013 20:13:21 GMT", "date Mon, 21 Oct 2013 20:13:22 GMT");
    let (private, location) = ("cache-control private", "location https://www.example.com");
    let cookie = "set-cookie foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1";
    let gzip = "content-encoding gzip";
    let fields = [
        format!(":status 302\n{private}\n{date}\n{location}"),
        format!(":status 307\n{private}\n{date}\n{location}"),
        format!(":status 200\n{private}\n{later}\n{location}\n{gzip}\n{cookie}"),
    ];
    let rows = [
        format!("{location}\n{date}\n{private}\n:status 302"),
        format!(":status 307\n{location}\n{date}\n{private}"),
        format!("{cookie}\n{gzip}\n{later}"),
    ];
    for blocks in [plain, huffman] {
        let row = |i: usize, used| (blocks[i], &fields[i][..], &rows[i][..], used);
        check_blocks(256, &[row(0, 222), row(1, 222), row(2, 215)]);
    }
}

#[test]
fn broken_blocks_are_refused_with_their_reason() {
    for (block, error) in [
        ("80", HpackError::Index),
        ("be", HpackError::Index),
        ("7e0161", HpackError::Index),
        ("ff", HpackError::Truncated),
        ("ffffffffffffff", HpackError::Integer),
        ("40", HpackError::Truncated),
        ("400a6375", HpackError::Truncated),
        ("0003616263", HpackError::Truncated),
        ("008161", HpackError::Huffman),
        ("0084ffffffff00", HpackError::Huffman),
        // A size update above what we allow, and one that is not at the start.
        ("3fe21f", HpackError::SizeUpdate),
        ("8220", HpackError::SizeUpdate),
    ] {
        assert_eq!(decode(&mut HpackDecoder::new(4096), &hex(block)), Err(error), "{block}");
    }
    assert_eq!(decode(&mut HpackDecoder::new(4096), &hex("203fe11f82")).unwrap().len(), 1);
    // Static entry 15 with an empty value costs 46 bytes each time.
    let mut decoder = HpackDecoder::new(4096);
    let result = decoder.decode(&[0x8f; 100], 4500, &mut Vec::new(), &mut List::default());
    assert_eq!(result, Err(HpackError::TooLarge));
}

#[test]
fn an_inserted_name_may_evict_the_entry_it_came_from() {
    let mut decoder = HpackDecoder::new(70);
    decode(&mut decoder, &hex("400a637573746f6d2d6b65790d637573746f6d2d686561646572")).unwrap();
    let fields = decode(&mut decoder, &hex("7e0161")).unwrap();
    assert_eq!(fields, pairs("custom-key a"));
    assert_eq!(table(decoder.table()), pairs("custom-key a"));
}

#[test]
fn characters_are_judged_once_and_remembered() {
    #[derive(Default)]
    struct Last(Traits);
    impl Sink for Last {
        fn field(&mut self, _: FieldToken, traits: Traits, _: &[u8], _: &[u8]) {
            self.0 = traits;
        }
    }
    for (name, value, expected) in [
        ("a-1", "x y", Traits::NONE),
        ("a_1", "x", Traits::UNDERSCORE),
        ("a!", "x", Traits::ODD_NAME),
        ("", "x", Traits::BAD_NAME),
        ("A", "x", Traits::BAD_NAME),
        ("a:b", "x", Traits::BAD_NAME),
        (":foo", "x", Traits::BAD_NAME),
        (":path", "/", Traits::NONE),
        ("a", " x", Traits::BAD_VALUE),
        ("a", "x\t", Traits::BAD_VALUE),
        ("a", "\t", Traits::BAD_VALUE),
        ("a", "x\0y", Traits::BAD_VALUE),
        ("a", "x\r\ny", Traits::BAD_VALUE),
        ("a", "", Traits::NONE),
    ] {
        let mut block = vec![0x40, name.len() as u8];
        block.extend_from_slice(name.as_bytes());
        block.push(value.len() as u8);
        block.extend_from_slice(value.as_bytes());
        let (mut decoder, mut last) = (HpackDecoder::new(4096), Last::default());
        for block in [&block[..], &[0xbe]] {
            decoder.decode(block, 4096, &mut Vec::new(), &mut last).unwrap();
            assert_eq!(last.0, expected, "{name}: {value}");
        }
        // A new value keeps the traits of the name.
        decoder.decode(&[0x7e, 1, b'v'], 4096, &mut Vec::new(), &mut last).unwrap();
        assert_eq!(last.0, expected.of_its_name());
    }
}

#[test]
fn what_may_be_indexed_is_and_the_rest_is_not() {
    let (mut encoder, mut out) = (HpackEncoder::new(), Vec::new());
    encoder.status(200, &mut out);
    assert_eq!(out, [0x88]);
    for (name, first) in [
        (Name::Server, 0x76),
        (Name::AltSvc, 0x40),
        (Name::SetCookie, 0x1f),
        (Name::Location, 0x0f),
    ] {
        out.clear();
        encoder.field(name, b"", b"some value", &mut out);
        assert_eq!(out[0], first, "{name:?}");
    }
    // Alt-Svc is the newest entry, Server the one before.
    out.clear();
    encoder.field(Name::Server, b"", b"some value", &mut out);
    encoder.field(Name::AltSvc, b"", b"some value", &mut out);
    assert_eq!(out, [0x80 | 63, 0x80 | 62]);
    let generation = encoder.generation();
    out.clear();
    encoder.field(Name::Connection, b"", b"close", &mut out);
    encoder.field(Name::TransferEncoding, b"", b"chunked", &mut out);
    assert!(out.is_empty());
    encoder.content_length(1024, &mut out);
    assert_eq!(out[..2], [0x0f, 13]);
    let status = |encoder: &mut HpackEncoder| {
        let mut out = Vec::new();
        encoder.status(301, &mut out);
        out
    };
    assert_eq!(generation, encoder.generation());
    assert_eq!((status(&mut encoder)[0], status(&mut encoder)), (0x48, vec![0x80 | 62]));
    assert_ne!(generation, encoder.generation());
}

#[test]
fn values_that_change_with_every_resource_do_not_push_stable_ones_out() {
    let (mut encoder, mut out) = (HpackEncoder::new(), Vec::new());
    encoder.field(Name::Server, b"", b"bolide", &mut out);
    for i in 0..200_u32 {
        encoder.field(Name::Etag, b"", i.to_string().as_bytes(), &mut out);
        encoder.field(Name::Other, b"X-Request-Id", i.to_string().as_bytes(), &mut out);
    }
    assert_eq!(encoder.table().len(), 9);
}

#[test]
fn the_peers_table_size_is_obeyed_and_announced() {
    let (mut encoder, mut decoder) = (HpackEncoder::new(), HpackDecoder::new(4096));
    let mut send = |encoder: &mut HpackEncoder, starts: &[u8]| {
        let mut out = Vec::new();
        encoder.begin(&mut out);
        assert_eq!(out, starts);
        encoder.field(Name::Server, b"", b"bolide", &mut out);
        assert_eq!(decode(&mut decoder, &out).unwrap(), pairs("server bolide"));
        assert_eq!(table(decoder.table()), table(encoder.table()));
    };
    send(&mut encoder, &[]);
    encoder.limit_table(100_000);
    send(&mut encoder, &[]);
    encoder.limit_table(0);
    assert_eq!(encoder.generation(), None);
    send(&mut encoder, &[0x20]);
    assert!(encoder.table().is_empty());
    encoder.limit_table(100);
    encoder.limit_table(50);
    encoder.limit_table(200);
    send(&mut encoder, &[0x3f, 50 - 31, 0x3f, 0x80 | (200 - 31 - 128), 1]);
}

fn fields() -> impl Strategy<Value = Vec<(usize, Vec<u8>, Vec<u8>)>> {
    let text = |max| proptest::collection::vec(any::<u8>(), 0..max);
    proptest::collection::vec((0..14_usize, text(20), text(90)), 0..30)
}

const NAMES: [Name; 13] = [
    Name::Server,
    Name::Date,
    Name::Etag,
    Name::SetCookie,
    Name::ContentType,
    Name::AltSvc,
    Name::Vary,
    Name::Location,
    Name::CacheControl,
    Name::XFrameOptions,
    Name::AcceptRanges,
    Name::Authorization,
    Name::LastModified,
];

proptest! {
    #[test]
    fn what_is_encoded_decodes_with_any_table_sizes(
        blocks in proptest::collection::vec((fields(), 0..6000_u32), 1..8),
    ) {
        let (mut encoder, mut decoder) = (HpackEncoder::new(), HpackDecoder::new(4096));
        for (fields, size) in blocks {
            let (mut out, mut expected) = (Vec::new(), Vec::new());
            encoder.limit_table(size);
            encoder.begin(&mut out);
            for (i, text, value) in &fields {
                let (name, text) = match NAMES.get(*i) {
                    Some(name) => (*name, name.text().as_bytes()),
                    None => (Name::Other, &text[..]),
                };
                encoder.field(name, text, value, &mut out);
                expected.push((text.to_ascii_lowercase(), value.clone()));
            }
            let mut list = Raw::default();
            let result = decoder.decode(&out, usize::MAX, &mut Vec::new(), &mut list);
            prop_assert_eq!(result, Ok(()));
            prop_assert_eq!(list.0, expected);
            prop_assert_eq!(table(encoder.table()), table(decoder.table()));
            prop_assert!(encoder.table().size() <= size);
        }
    }

    #[test]
    fn any_bytes_keep_the_invariants(data in proptest::collection::vec(any::<u8>(), 0..600)) {
        fuzz::fuzz(&data);
    }

    #[test]
    fn the_table_agrees_with_a_list(
        ops in proptest::collection::vec((any::<u8>(), 0..60_usize, 0..300_u32), 0..200),
    ) {
        let mut table = HpackTable::new(256);
        let (mut list, mut max) = (Vec::<Vec<u8>>::new(), 256_usize);
        let size = |list: &[Vec<u8>]| list.iter().map(|v| v.len() + 33).sum::<usize>();
        for (byte, len, resize) in ops {
            if resize < 60 {
                max = resize as usize * 8;
                table.resize(max as u32);
            } else {
                let value = vec![byte; len];
                table.insert(FieldToken::Field(Name::Other), Traits::NONE, b"n", &value);
                list.insert(0, value);
            }
            while size(&list) > max {
                list.pop();
            }
            prop_assert_eq!(table.size() as usize, size(&list));
            let rows = (0..table.len()).map(|i| table.row(i).unwrap().value.to_vec());
            prop_assert_eq!(rows.collect::<Vec<_>>(), list.clone());
        }
    }
}

#[derive(Default)]
struct Raw(Vec<(Vec<u8>, Vec<u8>)>);

impl Sink for Raw {
    fn field(&mut self, _: FieldToken, _: Traits, name: &[u8], value: &[u8]) {
        self.0.push((name.to_vec(), value.to_vec()));
    }
}

#[test]
fn a_string_is_long_by_its_encoded_length() {
    struct Long(Vec<bool>);
    impl Sink for Long {
        fn field(&mut self, _: FieldToken, traits: Traits, _: &[u8], _: &[u8]) {
            self.0.push(traits.has(Traits::LONG));
        }
    }
    // The code of `a` has five bits: eight of them are five bytes.
    let coded = [0b0001_1000, 0b1100_0110, 0b0011_0001, 0b1000_1100, 0b0110_0011];
    let plain = |len: u8| [&[0x40, 1, b'x', len][..], &vec![b'a'; usize::from(len)]].concat();
    let huffman = |fives: u8| {
        [&[0x40, 1, b'x', 0x80 | (5 * fives)][..], &coded.repeat(usize::from(fives))].concat()
    };
    let mut decoder = HpackDecoder::new(4096);
    decoder.bound_strings(20);
    for (block, is_long) in [
        (plain(20), false),
        (plain(21), true),
        (huffman(4), false),
        (huffman(5), true),
        // The entry that the last one left.
        (vec![0xbe], false),
        ([&[0x40, 21][..], &[b'n'; 21], &[1, b'v']].concat(), true),
    ] {
        let mut long = Long(Vec::new());
        decoder.decode(&block, 1000, &mut Vec::new(), &mut long).unwrap();
        assert_eq!(long.0, [is_long], "{block:?}");
    }
}
