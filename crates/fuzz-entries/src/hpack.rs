//! HPACK in both directions with arbitrary bytes, and its invariants.

use bolide_wire::hpack::table::ENTRY_OVERHEAD;
use bolide_wire::hpack::{FieldToken, HpackDecoder, HpackEncoder, Sink, Traits};

/// LIMIT: decoded bytes of one input.
const SIZE_MAX: usize = 32 * 1024;

#[derive(Default)]
struct Collect {
    fields: Vec<(FieldToken, Vec<u8>, Vec<u8>)>,
    size: usize,
}

impl Sink for Collect {
    fn field(&mut self, token: FieldToken, traits: Traits, name: &[u8], value: &[u8]) {
        if !traits.has(Traits::BAD_NAME) {
            assert_eq!(token, FieldToken::parse(name), "a token belongs to its name");
        }
        assert_eq!(Traits::of_value(value).has(Traits::BAD_VALUE), traits.has(Traits::BAD_VALUE));
        self.size += name.len() + value.len() + ENTRY_OVERHEAD;
        self.fields.push((token, name.to_vec(), value.to_vec()));
    }
}

/// Decodes `data` as blocks of one connection, and passes the fields through an encoder and back.
///
/// # Panics
///
/// An invariant does not hold.
pub fn fuzz(data: &[u8]) {
    let (mut decoder, mut scratch) = (HpackDecoder::default(), Vec::new());
    let (mut encoder, mut back) = (HpackEncoder::new(), HpackDecoder::default());
    let mut rest = data;
    while let [len, size, tail @ ..] = rest {
        let (block, tail) = tail.split_at(usize::from(*len).min(tail.len()));
        rest = tail;
        let mut first = Collect::default();
        let result = decoder.decode(block, SIZE_MAX, &mut scratch, &mut first);
        assert!(first.size <= SIZE_MAX + 2 * usize::from(u8::MAX) * ENTRY_OVERHEAD + SIZE_MAX);
        assert!(decoder.table().size() <= decoder.table().size_max());
        if result.is_err() {
            return;
        }
        encoder.limit_table(u32::from(*size) * 32);
        round_trip(&first, &mut encoder, &mut back);
    }
}

/// Checks that the encoded fields of `sent` decode to the same fields, and leave both tables equal.
fn round_trip(sent: &Collect, encoder: &mut HpackEncoder, back: &mut HpackDecoder) {
    let (mut block, mut expected) = (Vec::new(), Vec::new());
    encoder.begin(&mut block);
    for (token, name, value) in &sent.fields {
        let FieldToken::Field(known) = *token else { continue };
        let before = block.len();
        encoder.field(known, name, value, &mut block);
        if block.len() > before {
            expected.push((known, name.to_ascii_lowercase(), value));
        }
    }
    let (mut arrived, mut scratch) = (Collect::default(), Vec::new());
    let result = back.decode(&block, usize::MAX, &mut scratch, &mut arrived);
    assert_eq!(result, Ok(()), "what we encode decodes");
    assert_eq!(arrived.fields.len(), expected.len(), "no field is lost");
    for ((token, name, value), (sent_name, sent_text, sent_value)) in
        arrived.fields.iter().zip(expected)
    {
        if let FieldToken::Field(known) = *token {
            assert_eq!(known, sent_name);
        }
        assert_eq!((name, value), (&sent_text, sent_value));
    }
    let (ours, theirs) = (encoder.table(), back.table());
    assert_eq!((ours.len(), ours.size()), (theirs.len(), theirs.size()), "tables are in step");
}
