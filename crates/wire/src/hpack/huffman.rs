//! The static Huffman code of HPACK and QPACK (RFC 7541 §5.2 and appendix B).
//!
//! The code is built at compile time from its lengths: codes of one length are consecutive in
//! symbol order. The end-of-string symbol and invalid padding are refused.

/// Bits of each symbol's code; the last is the end of the string.
#[rustfmt::skip]
const LENGTHS: [u8; 257] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28,
    28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 28,
    6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6,
    5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10,
    13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7,
    7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6,
    15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5,
    6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28,
    20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23,
    24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24,
    22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23,
    21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23,
    26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25,
    19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27,
    20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23,
    26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26,
    30,
];

const END_OF_STRING: u16 = 256;
const LENGTH_MAX: usize = 30;
/// A table of 2 KB decodes codes up to this length in one lookup.
const FAST_BITS: u32 = 10;

/// The codes of one length: the first code, their number, and the index of their symbols.
#[derive(Clone, Copy)]
struct Range {
    first: u32,
    count: u32,
    symbols: u16,
}

struct Code {
    codes: [u32; 257],
    ranges: [Range; LENGTH_MAX + 1],
    /// Symbols by code.
    symbols: [u16; 257],
}

const fn assign() -> Code {
    let mut code = Code {
        codes: [0; 257],
        ranges: [Range { first: 0, count: 0, symbols: 0 }; LENGTH_MAX + 1],
        symbols: [0; 257],
    };
    let (mut next, mut placed, mut length) = (0_u32, 0, 1);
    while length <= LENGTH_MAX {
        next <<= 1;
        let range = &mut code.ranges[length];
        range.first = next;
        range.symbols = placed as u16;
        let mut symbol = 0;
        while symbol < 257 {
            if LENGTHS[symbol] as usize == length {
                code.codes[symbol] = next;
                code.symbols[placed] = symbol as u16;
                next += 1;
                placed += 1;
                range.count += 1;
            }
            symbol += 1;
        }
        length += 1;
    }
    // A complete prefix code uses its space exactly.
    assert!(placed == 257 && next == 1 << LENGTH_MAX);
    code
}

static CODE: Code = assign();

/// Symbol and length by the next [`FAST_BITS`] bits; length 0 means a longer code.
static FAST: [(u8, u8); 1 << FAST_BITS] = {
    let code = assign();
    let mut table = [(0_u8, 0_u8); 1 << FAST_BITS];
    let mut symbol = 0;
    while symbol < 256 {
        let length = LENGTHS[symbol] as u32;
        if length <= FAST_BITS {
            let shift = FAST_BITS - length;
            let mut low = 0;
            while low < 1 << shift {
                table[((code.codes[symbol] << shift) | low) as usize] =
                    (symbol as u8, length as u8);
                low += 1;
            }
        }
        symbol += 1;
    }
    table
};

/// The string has an invalid Huffman code (RFC 7541 §5.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HuffmanError;

/// The symbol and length of the code at the top bits of `acc`.
fn long_code(acc: u64) -> (u16, u32) {
    let window = (acc >> 32) as u32;
    let mut length = FAST_BITS + 1;
    loop {
        let range = &CODE.ranges[length as usize];
        let index = (window >> (32 - length)).wrapping_sub(range.first);
        if index < range.count {
            return (CODE.symbols[range.symbols as usize + index as usize], length);
        }
        length += 1;
        if length as usize > LENGTH_MAX {
            // Unreachable: the code is complete, so some length matches.
            return (END_OF_STRING, LENGTH_MAX as u32);
        }
    }
}

/// The padding that a string may end with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HuffmanPadding {
    /// At most seven bits (RFC 7541 §5.2).
    Shortest,
    /// As in nginx, any that is shorter than the end-of-string symbol.
    Any,
}

impl HuffmanPadding {
    const fn bits_max(self) -> u32 {
        match self {
            Self::Shortest => 7,
            Self::Any => LENGTH_MAX as u32 - 1,
        }
    }
}

/// Appends the decoded `input` to `out`; at most 8/5 of its length.
///
/// # Errors
///
/// [`HuffmanError`] on an end-of-string symbol, and on padding that is too long or not all ones
/// (RFC 7541 §5.2). `out` then has a part of the text.
pub fn decode(
    input: &[u8],
    padding: HuffmanPadding,
    out: &mut Vec<u8>,
) -> Result<(), HuffmanError> {
    let start = out.len();
    out.reserve(input.len() * 8 / 5 + 1);
    let (mut acc, mut have, mut at) = (0_u64, 0_u32, 0);
    // PERF: while eight bytes can be read at once, five short codes fit between two reads.
    while let Some(chunk) = input.get(at..at + 8).and_then(|bytes| bytes.first_chunk::<8>()) {
        acc |= u64::from_be_bytes(*chunk) >> have;
        let taken = (63 - have) >> 3;
        at += taken as usize;
        have += taken * 8;
        for _ in 0..5 {
            let (symbol, length) = FAST[(acc >> (64 - FAST_BITS)) as usize];
            let mut length = u32::from(length);
            if length == 0 {
                let (symbol, long) = long_code(acc);
                if long > have {
                    break;
                }
                length = long;
                out.push(u8::try_from(symbol).map_err(|_| HuffmanError)?);
            } else {
                out.push(symbol);
            }
            acc <<= length;
            have -= length;
            if have < FAST_BITS {
                break;
            }
        }
        // The read may have set bits below the counted ones; they are read again.
        acc &= !(u64::MAX >> have);
    }
    for &byte in &input[at..] {
        if have > 56 {
            decode_some(&mut acc, &mut have, out)?;
        }
        acc |= u64::from(byte) << (56 - have);
        have += 8;
    }
    decode_some(&mut acc, &mut have, out)?;
    let ones = !(u64::MAX.checked_shr(have).unwrap_or(0));
    debug_assert!(out.len() - start <= input.len() * 8 / 5, "the shortest code has five bits");
    if have > padding.bits_max() || acc != ones { Err(HuffmanError) } else { Ok(()) }
}

/// Decodes until `acc` has no whole code any more.
fn decode_some(acc: &mut u64, have: &mut u32, out: &mut Vec<u8>) -> Result<(), HuffmanError> {
    while *have > 0 {
        let (symbol, length) = FAST[(*acc >> (64 - FAST_BITS)) as usize];
        let (symbol, length) = match length {
            0 => long_code(*acc),
            short => (u16::from(symbol), u32::from(short)),
        };
        if length > *have {
            return Ok(());
        }
        out.push(u8::try_from(symbol).map_err(|_| HuffmanError)?);
        *acc <<= length;
        *have -= length;
    }
    Ok(())
}

/// The case of encoded letters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HuffmanCase {
    /// Unchanged.
    Keep,
    /// Lower case, as field names must be (RFC 9113 §8.2.1).
    Lower,
}

impl HuffmanCase {
    /// The byte to encode for `byte`.
    #[must_use]
    #[inline]
    pub const fn apply(self, byte: u8) -> u8 {
        match self {
            Self::Keep => byte,
            Self::Lower => byte.to_ascii_lowercase(),
        }
    }
}

/// The length of the result of [`encode`] in bytes.
#[must_use]
#[inline]
pub fn encoded_len(bytes: &[u8]) -> usize {
    encoded_len_in(bytes, HuffmanCase::Keep)
}

/// Appends the code of `bytes`, padded with ones.
#[inline]
pub fn encode(bytes: &[u8], out: &mut Vec<u8>) {
    encode_in(bytes, HuffmanCase::Keep, out);
}

/// The length of the result of [`encode_in`] in bytes.
#[must_use]
#[inline]
pub fn encoded_len_in(bytes: &[u8], case: HuffmanCase) -> usize {
    let length = |&byte: &u8| usize::from(LENGTHS[usize::from(case.apply(byte))]);
    bytes.iter().map(length).sum::<usize>().div_ceil(8)
}

/// Appends the code of `bytes` in the given case, padded with ones.
#[inline]
pub fn encode_in(bytes: &[u8], case: HuffmanCase, out: &mut Vec<u8>) {
    let start = out.len();
    let (mut acc, mut have) = (0_u64, 0_u32);
    for &byte in bytes {
        let symbol = usize::from(case.apply(byte));
        acc = (acc << LENGTHS[symbol]) | u64::from(CODE.codes[symbol]);
        have += u32::from(LENGTHS[symbol]);
        if have >= 32 {
            have -= 32;
            out.extend_from_slice(&((acc >> have) as u32).to_be_bytes());
        }
    }
    let padding = have.next_multiple_of(8) - have;
    acc = (acc << padding) | ((1 << padding) - 1);
    have += padding;
    while have > 0 {
        have -= 8;
        out.push((acc >> have) as u8);
    }
    debug_assert_eq!(
        out.len() - start,
        encoded_len_in(bytes, case),
        "the code is as long as was announced"
    );
}

#[cfg(test)]
mod tests {
    use super::{HuffmanError, HuffmanPadding, decode, encode, encoded_len};
    use proptest::prelude::{any, prop_assert_eq, proptest};

    fn decoded(input: &[u8]) -> Result<Vec<u8>, HuffmanError> {
        let mut out = Vec::new();
        decode(input, HuffmanPadding::Shortest, &mut out).map(|()| out)
    }

    #[test]
    fn padding_may_have_whole_bytes_where_that_is_allowed() {
        let lenient = |input: &[u8]| {
            let mut out = Vec::new();
            decode(input, HuffmanPadding::Any, &mut out).map(|()| out)
        };
        // `a` is 00011: 3, 11, 19, 27 bits of padding; the end symbol has 30.
        for more in 0..4 {
            let input = [&[0b0001_1111][..], &vec![0xff; more]].concat();
            assert_eq!(lenient(&input), Ok(b"a".to_vec()), "{more}");
            // The same behind what is read eight bytes at a time.
            let input = [&[0x18, 0xc6, 0x31, 0x8c, 0x63][..], &input].concat();
            assert_eq!(lenient(&input), Ok(b"aaaaaaaaa".to_vec()), "{more}");
        }
        for wrong in [&[0x1f, 0xff, 0xff, 0xff, 0xff][..], &[0x1f, 0xfe], &[0xff; 4]] {
            assert_eq!(lenient(wrong), Err(HuffmanError), "{wrong:x?}");
        }
        assert_eq!(lenient(&[0xff; 3]), Ok(Vec::new()));
    }

    #[test]
    fn the_strings_of_rfc_7541_c_4_and_c_6_hold() {
        for (text, code) in [
            ("www.example.com", "f1e3c2e5f23a6ba0ab90f4ff"),
            ("no-cache", "a8eb10649cbf"),
            ("custom-value", "25a849e95bb8e8b4bf"),
            ("302", "6402"),
            ("private", "aec3771a4b"),
            ("Mon, 21 Oct 2013 20:13:21 GMT", "d07abe941054d444a8200595040b8166e082a62d1bff"),
            ("https://www.example.com", "9d29ad171863c78f0b97c8e9ae82ae43d3"),
        ] {
            let code = super::super::tests::hex(code);
            let mut out = Vec::new();
            encode(text.as_bytes(), &mut out);
            assert_eq!(out, code, "{text}");
            assert_eq!(decoded(&code).unwrap(), text.as_bytes());
        }
    }

    #[test]
    fn wrong_padding_and_the_end_symbol_are_refused() {
        // `a` is 00011: padded with ones, with a zero, with eight bits too many.
        assert_eq!(decoded(&[0b0001_1111]), Ok(b"a".to_vec()));
        assert_eq!(decoded(&[0b0001_1110]), Err(HuffmanError));
        assert_eq!(decoded(&[0b0001_1111, 0xff]), Err(HuffmanError));
        assert_eq!(decoded(&[0xff; 4]), Err(HuffmanError));
        assert_eq!(decoded(&[0xff; 20]), Err(HuffmanError));
        assert_eq!(decoded(&[0xff]), Err(HuffmanError));
        assert_eq!(decoded(&[]), Ok(Vec::new()));
    }

    proptest! {
        #[test]
        fn any_bytes_survive(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let mut out = Vec::new();
            encode(&bytes, &mut out);
            prop_assert_eq!(out.len(), encoded_len(&bytes));
            prop_assert_eq!(decoded(&out).unwrap(), bytes);
        }

        #[test]
        fn what_decodes_encodes_to_the_same(code in proptest::collection::vec(any::<u8>(), 0..60)) {
            if let Ok(text) = decoded(&code) {
                let mut out = Vec::new();
                encode(&text, &mut out);
                prop_assert_eq!(out, code);
            }
        }
    }
}
