//! Properties for any bytes and any split of them.

use proptest::prelude::{Strategy, any, prop_assert_eq, prop_oneof, proptest};

use super::super::fuzz;
use super::{
    Bench, END, GET, H2Settings, POST, PREFACE, block, data, frame, get, headers, post, rst,
};
use super::{settings, window, with};

/// Mostly valid frames on few streams.
fn frames() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let id = (0..12_u32).prop_map(|n| 2 * n + 1);
    let bytes = |max| proptest::collection::vec(any::<u8>(), 0..max);
    let one = prop_oneof![
        4 => id.clone().prop_map(get),
        3 => id.clone().prop_map(post),
        1 => id.clone().prop_map(|id| headers(id, 0, &with(&POST, &[("content-length", "9")]))),
        1 => id.clone().prop_map(|id| {
            let (block, half) = (block(&GET), 20);
            [frame(1, END, id, &block[..half]), frame(9, 4, id, &block[half..])].concat()
        }),
        4 => (id.clone(), any::<bool>(), bytes(300))
            .prop_map(|(id, end, bytes)| data(id, u8::from(end), &bytes)),
        1 => (id.clone(), 0..9_u8)
            .prop_map(|(id, pad)| frame(0, 8, id, &[&[pad][..], &[0; 12]].concat())),
        1 => (id.clone(), 0..12_u32).prop_map(|(id, code)| rst(id, code)),
        2 => (id.clone(), 0..99_999_u32).prop_map(|(id, n)| window(id - 1, n)),
        2 => (id.clone(), 0..99_999_u32).prop_map(|(id, n)| window(id, n)),
        1 => (id.clone(), 0..2_u32).prop_map(|(id, n)| window(id, n * 0x7fff_ffff)),
        1 => (id.clone(), 0..24_u8, 3..7_usize)
            .prop_map(|(id, other, len)| frame(2, 0, id, &[0, 0, 0, other, 1, 1][..len])),
        1 => (0..10_u16, 0..70_000_u32).prop_map(|(id, n)| settings(&[(id, n)])),
        1 => bytes(9).prop_map(|bytes| frame(6, 0, 0, &bytes)),
        1 => (id.clone(), bytes(40)).prop_map(|(id, bytes)| headers(id, END, &bytes)),
        1 => (any::<u8>(), any::<u8>(), id, bytes(20))
            .prop_map(|(kind, flags, id, bytes)| frame(kind, flags, id, &bytes)),
    ];
    proptest::collection::vec(one, 0..40)
}

/// All events and all output, with one piece of body per stream.
fn story(input: &[u8], cuts: &[usize]) -> (Vec<String>, Vec<String>, Vec<(String, usize)>) {
    let mut bench = Bench::with(H2Settings::default());
    let (mut start, mut cuts) = (0, cuts.iter().cycle());
    while start < input.len() {
        let end = (start + cuts.next().copied().unwrap_or(input.len())).min(input.len());
        bench.send(&input[start..end]);
        start = end;
    }
    let error = bench.error.map(|error| error.reason);
    let out = bench.out();
    let mut bodies = std::collections::BTreeMap::<String, usize>::new();
    let mut told = Vec::new();
    for line in bench.events() {
        match line.strip_prefix("body ").and_then(|rest| rest.split_once(' ')) {
            Some((user, bytes)) => {
                *bodies.entry(user.to_owned()).or_default() += bytes.parse::<usize>().unwrap();
            }
            None => told.push(line),
        }
    }
    // A stream that is reset before `bind` reports no body.
    let resets: Vec<_> = told.iter().filter_map(|line| line.strip_prefix("reset ")).collect();
    let ends: Vec<_> = resets.iter().map(|user| format!("end {user}")).collect();
    told.retain(|line| !ends.contains(line));
    told.sort();
    told.extend(error.map(str::to_owned));
    (told, out, bodies.into_iter().collect())
}

proptest! {
    #[test]
    fn any_bytes_keep_the_invariants(data in proptest::collection::vec(any::<u8>(), 0..900)) {
        fuzz::fuzz(&data);
    }

    #[test]
    fn any_frames_keep_the_invariants(frames in frames(), first in any::<u8>()) {
        // The first byte chooses the pieces; as a frame it begins one of unknown type.
        let mut data = frame(0xbb, 0, 0, b"");
        data[0] = 0;
        data.extend(frames.concat());
        data.push(first);
        fuzz::fuzz(&data);
    }

    #[test]
    fn any_cut_of_the_input_tells_the_same_story(
        frames in frames(),
        cuts in proptest::collection::vec(1..60_usize, 1..20),
    ) {
        let input = [PREFACE, &settings(&[]), &frames.concat()].concat();
        let (told, out, bodies) = story(&input, &[input.len()]);
        let (cut_told, cut_out, cut_bodies) = story(&input, &cuts);
        prop_assert_eq!(told, cut_told);
        prop_assert_eq!(out, cut_out);
        // A stream that is reset may have reported less of its body when it came in one piece.
        for (user, bytes) in bodies {
            let cut = cut_bodies.iter().find(|(other, _)| *other == user);
            prop_assert_eq!(cut.map_or(0, |(_, bytes)| *bytes) >= bytes, true);
        }
    }
}
