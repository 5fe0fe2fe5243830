//! Round trips of the file format, and the detection of changes.

use proptest::collection::vec;
use proptest::prelude::*;

use super::{CHUNK, Record, Summer, head_size, pack_tags, sum, unpack_tags};
use crate::object::{ObjectHead, ObjectKind, Times, pack_head};
use crate::tags::Tags;

fn tags(all: &[(Vec<u8>, bool)]) -> Tags {
    let mut tags = Tags::default();
    for (tag, public) in all {
        if *public {
            tags.push_public(tag);
        } else {
            tags.push(tag);
        }
    }
    tags
}

/// A file with this key, tags and body.
fn file(texts: &[Vec<u8>; 5], all: &[(Vec<u8>, bool)], body: &[u8]) -> Vec<u8> {
    let mut head = ObjectHead { status: 200, ..ObjectHead::default() };
    head.fields.push_text(b"content-type", b"text/html");
    let (packed, tags) = (pack_head(&head), pack_tags(&tags(all)));
    let mut sums = Summer::default();
    body.chunks(777).for_each(|part| sums.add(part));
    let sums = sums.finish();
    let record = Record {
        seal: 7,
        sequence: 9,
        kind: ObjectKind::Content,
        is_stale: false,
        status: 200,
        times: Times { created_ms: 1, expires_ms: 2, stale_seconds: 3, error_seconds: 4 },
        body_len: body.len() as u64,
        namespace: &texts[0],
        url: &texts[1],
        vary: &texts[2],
        session: &texts[3],
        etag: &texts[4],
        tags: &tags,
        head: &packed,
        sums: &sums,
    };
    let mut out = Vec::new();
    assert!(record.encode(&mut out));
    assert_eq!((out.len(), head_size(&out)), (record.size(), Some(record.size())));
    assert_eq!(Record::decode(&out), Some(record));
    out.extend_from_slice(body);
    out
}

/// A valid checksum proves nothing of what was written: where others may write, it is theirs.
#[test]
fn a_response_that_no_origin_can_send_is_no_object() {
    let decoded = |status: u16, name: &[u8], value: &[u8]| {
        let mut head = ObjectHead { status, ..ObjectHead::default() };
        head.controls.push_text(b"Any", b"\0\r\n");
        head.fields.push_text(name, value);
        let packed = pack_head(&head);
        let record = Record {
            seal: 0,
            sequence: 1,
            kind: ObjectKind::Content,
            is_stale: false,
            status,
            times: Times::default(),
            body_len: 0,
            namespace: b"page:a",
            url: b"http://a:80/",
            vary: b"",
            session: b"",
            etag: b"",
            tags: b"",
            head: &packed,
            sums: b"",
        };
        let mut out = Vec::new();
        assert!(record.encode(&mut out));
        Record::decode(&out).is_some()
    };
    for status in 0..=1001 {
        let is_good = (200..1000).contains(&status) && status != 304;
        assert_eq!(decoded(status, b"a", b"b"), is_good, "{status}");
    }
    for byte in 0..=u8::MAX {
        let is_in_names = byte > b' ' && byte != b':' && byte != 0x7f;
        assert_eq!(decoded(200, &[b'a', byte], b"b"), is_in_names, "{byte} in a name");
        let is_in_values = ![0, b'\r', b'\n'].contains(&byte);
        assert_eq!(decoded(200, b"a", &[b'b', byte]), is_in_values, "{byte} in a value");
    }
    assert!(!decoded(200, b"", b"b"));
}

/// Whether a file is complete and its contents are unchanged.
fn is_good(bytes: &[u8]) -> bool {
    Record::decode(bytes).is_some_and(|record| record.has_body(&bytes[record.size()..]))
}

fn sample() -> Vec<u8> {
    let texts = [&b"zone:one"[..], b"/a?b", b"\x01\0\0\0m", b"", b"\"e\""].map(<[u8]>::to_vec);
    let body: Vec<u8> = (0..CHUNK * 2 + 99).map(|at| ((at * 31) >> 3) as u8).collect();
    file(&texts, &[(b"post-1".to_vec(), false), (b"all".to_vec(), true)], &body)
}

#[test]
fn no_flipped_bit_goes_unseen() {
    let good = sample();
    assert!(is_good(&good));
    let body = good.len() - CHUNK * 2 - 99;
    for at in (0..body + 64).chain((body..good.len()).step_by(997)) {
        for bit in 0..8 {
            let mut bad = good.clone();
            bad[at] ^= 1 << bit;
            assert!(!is_good(&bad), "byte {at}, bit {bit}");
        }
    }
}

#[test]
fn no_torn_file_is_good() {
    let good = sample();
    for len in (0..600).chain((600..good.len()).step_by(499)) {
        assert!(!is_good(&good[..len]), "{len} bytes");
        let mut holed = good.clone();
        holed[len..].fill(0);
        assert!(holed == good || !is_good(&holed), "zeroes from {len}");
    }
    let mut longer = good;
    longer.push(0);
    assert!(!is_good(&longer));
}

#[test]
fn zeroes_of_different_lengths_have_different_sums() {
    let zeroes = [0; 300];
    let mut sums: Vec<u64> = (0..300).map(|len| sum(&zeroes[..len])).collect();
    sums.sort_unstable();
    sums.dedup();
    assert_eq!(sums.len(), 300);
}

proptest! {
    #[test]
    fn what_is_written_is_read_again(
        texts in [vec(any::<u8>(), 0..40), vec(any::<u8>(), 0..400), vec(any::<u8>(), 0..99),
                  vec(any::<u8>(), 0..99), vec(any::<u8>(), 0..40)],
        all in vec((vec(any::<u8>(), 0..30), any::<bool>()), 0..9),
        body in vec(any::<u8>(), 0..5000),
    ) {
        let bytes = file(&texts, &all, &body);
        let record = Record::decode(&bytes).unwrap();
        prop_assert_eq!([record.namespace, record.url, record.vary, record.session, record.etag],
            [&texts[0][..], &texts[1], &texts[2], &texts[3], &texts[4]]);
        let again = unpack_tags(record.tags);
        let again: Vec<_> = again.iter().map(|(tag, public)| (tag.to_vec(), public)).collect();
        prop_assert_eq!(again, all);
        prop_assert!(record.has_body(&bytes[record.size()..]));
    }

    #[test]
    fn any_change_is_seen(at in any::<prop::sample::Index>(), to in vec(any::<u8>(), 1..20)) {
        let good = sample();
        let mut bad = good.clone();
        let at = at.index(bad.len());
        let end = bad.len().min(at + to.len());
        bad[at..end].copy_from_slice(&to[..end - at]);
        prop_assert!(bad == good || !is_good(&bad));
    }
}
