//! The examples of RFC 9204 Appendix B, and both sides against models of their peers.

use bolide_http::Name;
use proptest::prelude::*;

use super::{BadInstruction, QpackDecoder, QpackEncoder, QpackFault, References, Section, fuzz};
use crate::integer::push_integer;
use crate::pseudo::Label;

type Lines = Vec<(Vec<u8>, Vec<u8>)>;

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
    let pair = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.chunks(2).map(pair).collect()
}

fn name_of(label: Label<'_>) -> Vec<u8> {
    match label {
        Label::Method => b":method".to_vec(),
        Label::Scheme => b":scheme".to_vec(),
        Label::Authority => b":authority".to_vec(),
        Label::Path => b":path".to_vec(),
        Label::WrongPseudo => b":status".to_vec(),
        Label::Known(name) => name.text().to_ascii_lowercase().into_bytes(),
        Label::Text(text) => text.to_vec(),
    }
}

fn decode(decoder: &mut QpackDecoder, bytes: &[u8]) -> Result<(Section, Lines), QpackFault> {
    let mut lines = Vec::new();
    let done = decoder.decode(bytes, |label, value| lines.push((name_of(label), value.to_vec())));
    done.map(|section| (section, lines))
}

fn line(name: &str, value: &str) -> (Vec<u8>, Vec<u8>) {
    (name.as_bytes().to_vec(), value.as_bytes().to_vec())
}

fn output(decoder: &mut QpackDecoder) -> Vec<u8> {
    let mut out = Vec::new();
    decoder.poll_output(&mut out);
    out
}

#[test]
fn the_examples_of_rfc_9204_appendix_b_come_out() {
    let mut decoder = QpackDecoder::new(220);
    let complete = |required| Section::Complete { required };
    // B.1: literal with name reference.
    let done = decode(&mut decoder, &hex("0000 510b 2f69 6e64 6578 2e68 746d 6c"));
    assert_eq!(done, Ok((complete(0), vec![line(":path", "/index.html")])));
    // B.2: two insertions, referred to with post-base indexes.
    let section = hex("0381 10 11");
    assert_eq!(decode(&mut decoder, &section), Ok((Section::Blocked { required: 2 }, vec![])));
    let instructions = hex("3fbd01 c00f 7777 772e 6578 616d 706c 652e 636f 6d
         c10c 2f73 616d 706c 652f 7061 7468");
    assert_eq!(decoder.receive(&instructions), Ok(3));
    assert_eq!(decoder.table_size(), 106);
    let lines = vec![line(":authority", "www.example.com"), line(":path", "/sample/path")];
    assert_eq!(decode(&mut decoder, &section), Ok((complete(2), lines)));
    decoder.acknowledge(4, 2);
    assert_eq!(output(&mut decoder), [0x84]);
    // B.3: an insertion that only an increment acknowledges.
    let instruction = hex("4a63 7573 746f 6d2d 6b65 790c 6375 7374 6f6d 2d76 616c 7565");
    assert_eq!(decoder.receive(&instruction), Ok(1));
    assert_eq!(output(&mut decoder), [0x01]);
    assert_eq!(decoder.table_size(), 160);
    // B.4: a duplicate, and a stream that is cancelled.
    assert_eq!(decoder.receive(&[0x02]), Ok(1));
    assert_eq!(decoder.table_size(), 217);
    let lines = vec![
        line(":authority", "www.example.com"),
        line(":path", "/"),
        line("custom-key", "custom-value"),
    ];
    assert_eq!(decode(&mut decoder, &hex("0500 80 c1 81")), Ok((complete(4), lines)));
    let _ = output(&mut decoder);
    decoder.cancel(8);
    assert_eq!(output(&mut decoder), [0x48]);
    // B.5: an insertion with a dynamic name reference that evicts.
    assert_eq!(decoder.receive(&hex("810d 6375 7374 6f6d 2d76 616c 7565 32")), Ok(1));
    assert_eq!((decoder.table_size(), decoder.inserted()), (215, 5));
    let newest = decode(&mut decoder, &hex("0600 80"));
    assert_eq!(newest, Ok((complete(5), vec![line("custom-key", "custom-value2")])));
    // The first entry is gone.
    assert_eq!(decode(&mut decoder, &hex("0600 84")), Err(QpackFault::Invalid));
}

#[test]
fn wrong_instructions_of_an_encoder_are_refused() {
    for (instructions, why) in [
        ("3fbe01", "capacity above the limit"),
        ("c00f", ""),
        ("c0 0f77 7777 2e65 7861 6d70 6c65 2e63 6f6d", "insertion without capacity"),
        ("3fbd01 00", "duplicate of nothing"),
        ("3fbd01 80 0161", "name of nothing"),
        ("3fbd01 ff24 0161", "static row 99"),
        ("3fbd01 4161 7f81 06", "longer than any table"),
        ("3fbd01 c0 8101", "wrong Huffman padding"),
        ("3fffffffffffffffffff7f", "too large an integer"),
    ] {
        let mut decoder = QpackDecoder::new(220);
        let done = decoder.receive(&hex(instructions));
        assert_eq!(done.is_err(), !why.is_empty(), "{instructions} {why}");
    }
    let mut large = hex("3fbd01 41 61 7fff00");
    large.extend([b'x'; 300]);
    assert_eq!(QpackDecoder::new(220).receive(&large), Err(QpackFault::Invalid));
}

#[test]
fn wrong_sections_are_refused() {
    for section in [
        "",
        "00",
        "0000 ff24",
        "0000 80",
        "0000 10",
        "0000 40 00",
        "0000 00 00",
        "0000 51",
        "0000 510b 2f",
        "0000 2361",
        "0080",
        "0d00",
        "0000 5f",
        "0000 5081ff ff",
    ] {
        let mut decoder = QpackDecoder::new(220);
        assert_eq!(
            decode(&mut decoder, &hex(section)).map(|(section, _)| section),
            Err(QpackFault::Invalid),
            "{section}"
        );
    }
    // Without a table the only valid count is 0.
    assert_eq!(decode(&mut QpackDecoder::new(0), &hex("0200")), Err(QpackFault::Invalid));
    // A reference at or above the required count.
    let mut decoder = QpackDecoder::new(220);
    decoder.receive(&hex("3fbd01 c00161 c00162")).unwrap();
    assert!(decode(&mut decoder, &hex("0200 80")).is_ok());
    assert_eq!(decode(&mut decoder, &hex("0201 80")), Err(QpackFault::Invalid));
    assert_eq!(decode(&mut decoder, &hex("0200 10")), Err(QpackFault::Invalid));
}

#[test]
fn wrong_instructions_of_a_decoder_are_refused() {
    for instructions in ["84", "00", "01", "3fffffffffffffffffff7f"] {
        let mut encoder = QpackEncoder::default();
        encoder.allow(4096);
        assert_eq!(encoder.receive(&hex(instructions)), Err(BadInstruction), "{instructions}");
    }
    // Cancelling a stream without references is no error.
    assert_eq!(QpackEncoder::default().receive(&hex("48")), Ok(()));
    assert_eq!(QpackEncoder::default().receive(&hex("7f")), Ok(()));
}

const LONG: &str = "default-src 'self'; img-src *; script-src 'self' 'unsafe-inline'";

fn respond(encoder: &mut QpackEncoder, stream: u64, value: &str) -> (Vec<u8>, Option<References>) {
    let mut out = Vec::new();
    let fields = [
        (Name::ContentSecurityPolicy, &b"Content-Security-Policy"[..], value.as_bytes()),
        (Name::Server, b"Server", b"bolide"),
    ];
    let encoded = encoder.encode(200, Some(7), || fields.iter().copied(), &mut out);
    encoder.track(stream, encoded.references);
    (out, encoded.references)
}

fn expected(value: &str) -> Lines {
    vec![
        line(":status", "200"),
        line("content-security-policy", value),
        line("server", "bolide"),
        line("content-length", "7"),
    ]
}

#[test]
fn a_field_is_inserted_when_seen_again_and_referred_to_when_acknowledged() {
    let (mut encoder, mut decoder) = (QpackEncoder::default(), QpackDecoder::new(4096));
    encoder.allow(4096);
    let mut instructions = Vec::new();
    let (first, references) = respond(&mut encoder, 0, LONG);
    assert_eq!(references, None);
    encoder.poll_output(&mut instructions);
    assert!(instructions.is_empty(), "seen once");
    let (second, references) = respond(&mut encoder, 4, LONG);
    assert_eq!((references, &second), (None, &first));
    encoder.poll_output(&mut instructions);
    assert_eq!(decoder.receive(&instructions), Ok(2));
    let version = encoder.version();
    encoder.receive(&output(&mut decoder)).unwrap();
    assert!(encoder.version() > version, "an acknowledgment changes what is encoded");
    let (third, references) = respond(&mut encoder, 8, LONG);
    assert_eq!(references, Some(References { lowest: 0, required: 1 }));
    assert!(third.len() + 40 < second.len());
    let done = decode(&mut decoder, &third).unwrap();
    assert_eq!(done, (Section::Complete { required: 1 }, expected(LONG)));
    decoder.acknowledge(8, 1);
    encoder.receive(&output(&mut decoder)).unwrap();
    assert_eq!(encoder.receive(&[0x88]), Err(BadInstruction), "acknowledged twice");
}

/// Passes instructions and acknowledgments of insertions in both directions.
fn exchange(encoder: &mut QpackEncoder, decoder: &mut QpackDecoder) {
    let mut instructions = Vec::new();
    encoder.poll_output(&mut instructions);
    decoder.receive(&instructions).unwrap();
    encoder.receive(&output(decoder)).unwrap();
}

#[test]
fn an_entry_that_a_section_under_way_needs_is_not_evicted() {
    let (mut encoder, mut decoder) = (QpackEncoder::default(), QpackDecoder::new(500));
    encoder.allow(500);
    let values: Vec<String> = (0..4).map(|i| format!("{i}{}", "v".repeat(60))).collect();
    for _ in 0..2 {
        for value in &values {
            assert_eq!(respond(&mut encoder, 0, value).1, None);
            exchange(&mut encoder, &mut decoder);
        }
    }
    assert_eq!(decoder.inserted(), 4);
    let (section, references) = respond(&mut encoder, 8, &values[0]);
    assert_eq!(references, Some(References { lowest: 0, required: 1 }));
    // A new entry has no room while the section is outstanding, and has room after its
    // cancellation.
    let newcomer = "w".repeat(60);
    for cancelled in [false, true] {
        for _ in 0..40 {
            respond(&mut encoder, 0, &newcomer);
            exchange(&mut encoder, &mut decoder);
        }
        assert_eq!(decoder.inserted(), if cancelled { 5 } else { 4 });
        if !cancelled {
            assert_eq!(decode(&mut decoder, &section).unwrap().1, expected(&values[0]));
        }
        encoder.receive(&[0x48]).unwrap();
    }
    assert_eq!(decode(&mut decoder, &section), Err(QpackFault::Invalid));
}

/// A peer's encoder that uses every representation at random.
#[derive(Default)]
struct Model {
    entries: Lines,
    dropped: usize,
    capacity: usize,
}

impl Model {
    fn size(&self) -> usize {
        self.entries[self.dropped..].iter().map(|(n, v)| n.len() + v.len() + 32).sum()
    }

    fn push(&mut self, entry: (Vec<u8>, Vec<u8>)) {
        self.entries.push(entry);
        while self.size() > self.capacity {
            self.dropped += 1;
        }
    }

    fn insert(&mut self, pick: usize, value: &[u8], out: &mut Vec<u8>) {
        let live = self.entries.len() - self.dropped;
        let relative = pick % live.max(1);
        let (name, from) = match pick % 4 {
            0 if live > 0 => (self.entries[self.entries.len() - 1 - relative].clone(), 0),
            1 if live > 0 => (self.entries[self.entries.len() - 1 - relative].clone(), 1),
            2 => ((b"user-agent".to_vec(), vec![]), 2),
            _ => ((vec![b'n'; 1 + pick % 9], vec![]), 3),
        };
        let entry = if from == 0 { name } else { (name.0, value.to_vec()) };
        if entry.0.len() + entry.1.len() + 32 > self.capacity {
            return;
        }
        match from {
            0 => return (push_integer(out, 0, 5, relative as u64), self.push(entry)).1,
            1 => push_integer(out, 0x80, 6, relative as u64),
            2 => push_integer(out, 0xc0, 6, 95_u64),
            _ => {
                push_integer(out, 0x40, 5, entry.0.len() as u64);
                out.extend_from_slice(&entry.0);
            }
        }
        plain(value, out);
        self.push(entry);
    }

    fn section(&self, picks: &[usize], base_pick: usize, capacity_max: usize) -> (Vec<u8>, Lines) {
        let live = self.entries.len() - self.dropped;
        let base = self.entries.len() - base_pick % (self.entries.len() + 1).min(9);
        let (mut body, mut lines, mut required) = (Vec::new(), Vec::new(), 0);
        for &pick in picks {
            if live == 0 || pick % 5 == 0 {
                push_integer(&mut body, 0xc0, 6, 17_u64);
                lines.push(line(":method", "GET"));
                continue;
            }
            let index = self.dropped + pick % live;
            required = required.max(index + 1);
            let entry = &self.entries[index];
            let (flags, bits, number) = match (index < base, pick % 2) {
                (true, 0) => (0x80, 6, base - index - 1),
                (true, _) => (0x40, 4, base - index - 1),
                (false, 0) => (0x10, 4, index - base),
                (false, _) => (0, 3, index - base),
            };
            push_integer(&mut body, flags, bits, number as u64);
            if pick % 2 == 0 {
                lines.push(entry.clone());
            } else {
                plain(b"other", &mut body);
                lines.push((entry.0.clone(), b"other".to_vec()));
            }
        }
        let mut out = Vec::new();
        if required == 0 {
            out.extend([0, 0]);
        } else {
            let full_range = 2 * (capacity_max / 32);
            push_integer(&mut out, 0, 8, (required % full_range + 1) as u64);
            if base >= required {
                push_integer(&mut out, 0, 7, (base - required) as u64);
            } else {
                push_integer(&mut out, 0x80, 7, (required - base - 1) as u64);
            }
        }
        out.extend(body);
        (out, lines)
    }
}

fn plain(text: &[u8], out: &mut Vec<u8>) {
    push_integer(out, 0, 7, text.len() as u64);
    out.extend_from_slice(text);
}

proptest! {
    #[test]
    fn any_encoder_is_followed_through_insertions_evictions_and_waiting(
        steps in proptest::collection::vec(
            (any::<bool>(), any::<u16>(), proptest::collection::vec(any::<u8>(), 0..30)), 1..60,
        ),
        lag in 0..3_usize,
    ) {
        let capacity_max = 300;
        let (mut model, mut decoder) = (Model::default(), QpackDecoder::new(capacity_max));
        let mut late: Vec<Vec<u8>> = Vec::new();
        let mut first = Vec::new();
        push_integer(&mut first, 0x20, 5, 300_u64);
        model.capacity = 300;
        late.push(first);
        for (is_section, pick, data) in steps {
            let pick = usize::from(pick);
            if !is_section {
                let mut out = Vec::new();
                model.insert(pick, &data, &mut out);
                late.push(out);
                continue;
            }
            let picks: Vec<usize> = data.iter().map(|&byte| usize::from(byte)).collect();
            let (section, lines) = model.section(&picks, pick, capacity_max);
            // Some instructions arrive before the section and some after it.
            let kept = late.split_off(late.len().saturating_sub(lag));
            for part in late.drain(..) {
                decoder.receive(&part).unwrap();
            }
            let (mut done, mut got) = decode(&mut decoder, &section).unwrap();
            for part in kept {
                let (one, two) = part.split_at(part.len() / 2);
                decoder.receive(one).unwrap();
                decoder.receive(two).unwrap();
            }
            if matches!(done, Section::Blocked { .. }) {
                prop_assert!(got.is_empty());
                (done, got) = decode(&mut decoder, &section).unwrap();
            }
            prop_assert!(matches!(done, Section::Complete { .. }), "still blocked");
            prop_assert_eq!(got, lines);
        }
        for part in late {
            decoder.receive(&part).unwrap();
        }
        prop_assert_eq!(decoder.table_size(), model.size());
        prop_assert_eq!(decoder.inserted(), model.entries.len() as u64);
    }

    #[test]
    fn what_is_encoded_decodes_at_once_however_late_acknowledgments_are(
        capacity in prop_oneof![Just(0_u64), 64..600_u64, Just(4096)],
        steps in proptest::collection::vec((0..9_u8, 0..12_u8), 1..120),
    ) {
        let mut encoder = QpackEncoder::default();
        encoder.allow(capacity);
        let mut decoder = QpackDecoder::new(capacity as usize);
        let (mut instructions, mut answers) = (Vec::new(), Vec::new());
        for (stream, (what, which)) in steps.into_iter().enumerate() {
            let stream = stream as u64 * 4;
            match what {
                0 => encoder.receive(&std::mem::take(&mut answers)).unwrap(),
                1 => {
                    encoder.poll_output(&mut instructions);
                    // Half of it now: reads may split instructions anywhere.
                    let now = instructions.split_off(instructions.len() / 2);
                    let now = std::mem::replace(&mut instructions, now);
                    decoder.receive(&now).unwrap();
                    decoder.poll_output(&mut answers);
                }
                _ => {
                    let value = format!("{which}{}", "v".repeat(20 + usize::from(which) * 5));
                    let (section, _) = respond(&mut encoder, stream, &value);
                    let (done, lines) = decode(&mut decoder, &section).unwrap();
                    prop_assert_eq!(lines, expected(&value));
                    let Section::Complete { required } = done else { panic!("blocked") };
                    if what == 2 {
                        decoder.cancel(stream);
                    } else {
                        decoder.acknowledge(stream, required);
                    }
                }
            }
        }
    }

    #[test]
    fn arbitrary_bytes_do_no_harm(data in proptest::collection::vec(any::<u8>(), 0..300)) {
        fuzz::decode(&data);
        fuzz::encode(&data);
    }
}
