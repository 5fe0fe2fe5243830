//! The ESI parser and the splicer with arbitrary bytes, and their invariants.
//!
//! A fuzz target and a replay test call these; each panics if an invariant is violated.

use bolide_http::negotiate::Coding;
use bytes::Bytes;

use bolide_esi::program::{EsiLimits, EsiNode, EsiParser, Problem, Program};
use bolide_esi::source;
use bolide_esi::splice::SplicePart;

/// A program with adjacent literals joined: the same for any split of a page.
#[derive(Debug, PartialEq, Eq)]
pub struct Canonical {
    pieces: Vec<EsiNode>,
    inlines: Vec<bolide_esi::Inline>,
    problems: Vec<Problem>,
    literal_len: u64,
}

impl Canonical {
    /// The canonical form of `program`.
    #[must_use]
    pub fn of(program: Program) -> Self {
        let mut pieces: Vec<EsiNode> = Vec::new();
        for piece in program.pieces {
            match (pieces.last_mut(), piece) {
                (Some(EsiNode::Literal(last)), EsiNode::Literal(next)) => {
                    *last = [&last[..], &next[..]].concat().into();
                }
                (_, piece) => pieces.push(piece),
            }
        }
        let Program { inlines, problems, literal_len, .. } = program;
        Self { pieces, inlines, problems, literal_len }
    }
}

/// Limits small enough that small inputs reach them.
pub const SMALL: EsiLimits =
    EsiLimits { includes: 4, elements: 12, attribute: 24, tag: 96, inlined: 64, depth: 2 };

/// Parses `data` whole, byte by byte and in two halves at some places: the result is the same. The
/// first byte selects the limits.
pub fn parser(data: &[u8]) {
    let Some((&pick, page)) = data.split_first() else { return };
    let limits = if pick & 1 == 0 { EsiLimits::default() } else { SMALL };
    let whole =
        check(bolide_esi::program::parse(Bytes::copy_from_slice(page), limits), page, limits);
    let mut parser = EsiParser::new(limits);
    for byte in page {
        parser.feed(Bytes::copy_from_slice(std::slice::from_ref(byte)));
    }
    assert_eq!(check(parser.finish(), page, limits), whole, "byte by byte");
    let step = (page.len() / 24).max(1);
    for cut in (0..page.len()).step_by(step) {
        let mut parser = EsiParser::new(limits);
        parser.feed(Bytes::copy_from_slice(&page[..cut]));
        parser.feed(Bytes::copy_from_slice(&page[cut..]));
        assert_eq!(check(parser.finish(), page, limits), whole, "cut at {cut}");
    }
}

/// The invariants of every program.
fn check(program: Program, page: &[u8], limits: EsiLimits) -> Canonical {
    assert_eq!(program.source_len, page.len() as u64);
    assert!(program.literal_len <= program.source_len);
    assert!(program.includes().count() <= limits.includes as usize);
    assert!(
        program.inlines.iter().map(|inline| inline.body.len()).sum::<usize>() <= limits.inlined
    );
    for include in program.includes() {
        assert!(!include.src.is_empty() && include.src.iter().all(u8::is_ascii_graphic));
        if let Ok(target) = source::resolve(&include.src, b"/", |_| true) {
            assert!(target.iter().all(u8::is_ascii_graphic));
            assert_eq!(target.first(), Some(&b'/'));
        }
    }
    if memchr::memmem::find(page, b"esi").is_none() {
        assert!(program.is_plain());
    }
    Canonical::of(program)
}

/// Compresses the pieces between `|` of `data` separately; together they must form a complete body.
/// The first byte selects coding and level, the case of a piece's first byte its form.
pub fn splice(data: &[u8]) {
    let Some((&pick, text)) = data.split_first() else { return };
    let coding = Coding::ALL[usize::from(pick) % 3];
    let level = (pick / 3 % 10) as i8;
    let pieces: Vec<&[u8]> = text.split(|&byte| byte == b'|').collect();
    let parts: Vec<SplicePart> = pieces
        .iter()
        .filter_map(|piece| match piece.first() {
            Some(b'A'..=b'Z') => Some(SplicePart::stored(coding, piece)),
            _ => SplicePart::compress(coding, level, piece).ok(),
        })
        .collect();
    let body = bolide_esi::splice::join(coding, &parts);
    assert_eq!(body.len() as u64, bolide_esi::splice::joined_len(coding, &parts));
    assert_eq!(decode(coding, &body), pieces.concat(), "{coding:?} {level}");
}

/// Decodes a whole body.
fn decode(coding: Coding, body: &[u8]) -> Vec<u8> {
    use std::io::Read;
    let mut out = Vec::new();
    let read = match coding {
        Coding::Gzip => flate2::read::GzDecoder::new(body).read_to_end(&mut out),
        Coding::Brotli => brotli::Decompressor::new(body, 4096).read_to_end(&mut out),
        Coding::Zstd => zstd::stream::read::Decoder::new(body)
            .and_then(|mut reader| reader.read_to_end(&mut out)),
    };
    assert!(read.is_ok(), "{coding:?}: {read:?}");
    out
}
