//! Packets are composed of frames, so that the tests know the padding independently.

use super::{cut, zeros};
use proptest::collection::vec;
use proptest::prelude::{Just, Strategy, any, prop_oneof, proptest};

fn varint(value: u64, wide: bool) -> Vec<u8> {
    if value < 1 << 6 && !wide {
        vec![value as u8]
    } else if value < 1 << 14 {
        (value as u16 | 0x4000).to_be_bytes().to_vec()
    } else if value < 1 << 30 {
        (value as u32 | 0x8000_0000).to_be_bytes().to_vec()
    } else {
        (value | 0xc000_0000_0000_0000).to_be_bytes().to_vec()
    }
}

fn number() -> impl Strategy<Value = Vec<u8>> {
    (prop_oneof![Just(0), 0..64_u64, 0..20_000_u64, 0..1_u64 << 62], any::<bool>())
        .prop_map(|(value, wide)| varint(value, wide))
}

fn numbers(count: usize) -> impl Strategy<Value = Vec<u8>> {
    vec(number(), count).prop_map(|all| all.concat())
}

fn data() -> impl Strategy<Value = Vec<u8>> {
    (vec(prop_oneof![Just(0), any::<u8>()], 0..40), any::<bool>())
        .prop_map(|(bytes, wide)| [varint(bytes.len() as u64, wide), bytes].concat())
}

fn kind(kinds: &'static [u8]) -> impl Strategy<Value = Vec<u8>> {
    (proptest::sample::select(kinds), any::<bool>())
        .prop_map(|(kind, wide)| varint(u64::from(kind), wide))
}

fn frame() -> impl Strategy<Value = Vec<u8>> {
    let join = |parts: (Vec<u8>, Vec<u8>)| [parts.0, parts.1].concat();
    let join3 = |parts: (Vec<u8>, Vec<u8>, Vec<u8>)| [parts.0, parts.1, parts.2].concat();
    let ack = (any::<bool>(), numbers(2), number(), 0..5_usize).prop_flat_map(
        |(ecn, front, first, ranges)| {
            let tail = numbers(ranges * 2 + if ecn { 3 } else { 0 });
            (Just((ecn, front, first, ranges)), tail)
        },
    );
    prop_oneof![
        kind(&[0x01, 0x1e, 0x1f]),
        ack.prop_map(|((ecn, front, first, ranges), tail)| {
            [vec![2 + u8::from(ecn)], front, varint(ranges as u64, false), first, tail].concat()
        }),
        (kind(&[0x04]), numbers(3)).prop_map(join),
        (kind(&[0x05, 0x11, 0x15]), numbers(2)).prop_map(join),
        (kind(&[0x06, 0x0a, 0x0b, 0x1d]), number(), data()).prop_map(join3),
        (kind(&[0x0e, 0x0f, 0x1c]), numbers(2), data()).prop_map(join3),
        (kind(&[0x07, 0x31]), data()).prop_map(join),
        (kind(&[0x10, 0x12, 0x13, 0x14, 0x16, 0x17, 0x19]), number()).prop_map(join),
        (kind(&[0x18]), numbers(2), vec(any::<u8>(), 0..21)).prop_map(|(kind, two, id)| {
            [kind, two, vec![id.len() as u8], id, vec![0; 16]].concat()
        }),
        (kind(&[0x1a, 0x1b]), vec(prop_oneof![Just(0), any::<u8>()], 8)).prop_map(join),
        (kind(&[0xaf]), numbers(4)).prop_map(join),
    ]
}

/// The end of a packet: frames that take the rest of it, and invalid frames.
fn tail() -> impl Strategy<Value = Vec<u8>> {
    let rest = || vec(prop_oneof![3 => Just(0), 1 => any::<u8>()], 0..60);
    prop_oneof![
        Just(Vec::new()),
        (kind(&[0x08, 0x09]), number(), rest()).prop_map(|(a, b, c)| [a, b, c].concat()),
        (kind(&[0x0c, 0x0d]), numbers(2), rest()).prop_map(|(a, b, c)| [a, b, c].concat()),
        (kind(&[0x30, 0x20, 0x3f]), rest()).prop_map(|(a, b)| [a, b].concat()),
        // A length beyond the end of the packet.
        rest().prop_map(|rest| [vec![0x07, 0x7f, 0xff], rest].concat()),
    ]
}

fn cut_of(mut payload: Vec<u8>) -> Vec<u8> {
    let len = cut(&mut payload);
    payload.truncate(len);
    payload
}

proptest! {
    #[test]
    fn only_padding_is_lost_and_one_byte_of_every_run_stays(
        frames in vec((frame(), 0..40_usize), 0..12), lead in 0..40_usize, tail in tail(),
    ) {
        let (mut full, mut expected) = (vec![0; lead], vec![0; lead.min(1)]);
        for (frame, run) in frames {
            full.extend_from_slice(&frame);
            expected.extend_from_slice(&frame);
            full.resize(full.len() + run, 0);
            expected.resize(expected.len() + run.min(1), 0);
        }
        full.extend_from_slice(&tail);
        expected.extend_from_slice(&tail);
        assert_eq!(cut_of(full), expected);
    }

    #[test]
    fn anything_is_cut_once_and_never_to_nothing(payload in vec(prop_oneof![
        3 => Just(0), 2 => 0..0x20_u8, 1 => any::<u8>()], 0..200)) {
        crate::fuzz::padding(&payload);
        let once = cut_of(payload.clone());
        assert_eq!(once.is_empty(), payload.is_empty());
        assert_eq!(cut_of(once.clone()), once);
    }

    #[test]
    fn zeros_are_counted_to_the_byte(run in 0..100_usize, rest in vec(1_u8.., 0..40)) {
        assert_eq!(zeros(&[vec![0; run], rest].concat()), run);
    }
}

#[test]
fn a_padded_request_becomes_short() {
    let request = [&[0x0b, 0x00, 0x05][..], b"\0\0abc"].concat();
    let full = [request.clone(), vec![0; 1400]].concat();
    assert_eq!(cut_of(full), [request, vec![0]].concat());
    assert_eq!(cut_of(vec![0; 1200]), [0]);
    assert_eq!(cut_of(Vec::new()), [0; 0]);
}

#[test]
fn a_number_of_ranges_beyond_the_packet_ends_the_walk_at_once() {
    let mut hostile = vec![0x02, 0, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0];
    hostile.extend([0; 100]);
    assert_eq!(cut_of(hostile.clone()), hostile);
}
