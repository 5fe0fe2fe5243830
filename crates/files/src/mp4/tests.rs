//! Parts of videos of the test kit, judged by what its player finds in them.

use bolide_testkit::mp4::{Mp4Track, play, video};
use proptest::prelude::{ProptestConfig, Strategy, any, prop, proptest};

use super::{Mp4Cut, Mp4Fault, Mp4Outcome, fuzz};

/// 100 pictures of a tenth of a second, four of which are key frames.
fn pictures() -> Mp4Track {
    Mp4Track {
        timescale: 1000,
        times: vec![(100, 100)],
        chunks: [vec![7; 14], vec![2]].concat(),
        keys: Some(vec![1, 26, 51, 76]),
        same: 0,
        long: false,
        mark: b'v',
    }
}

/// Ten seconds of sound.
fn sound() -> Mp4Track {
    Mp4Track {
        timescale: 8000,
        times: vec![(78, 1024), (1, 128)],
        chunks: [vec![10; 7], vec![9]].concat(),
        keys: None,
        same: 0,
        long: true,
        mark: b's',
    }
}

const fn cut(start: u64, length: Option<u64>) -> Mp4Cut {
    Mp4Cut { start, length, buffer: 100, buffer_max: 10_000, start_key_frame: false }
}

/// The file that a player is sent.
fn made(file: &[u8], cut: Mp4Cut) -> Result<Vec<u8>, String> {
    match cut.of_memory(file) {
        Ok(Mp4Outcome::Whole) => Ok(file.to_vec()),
        Ok(Mp4Outcome::Parts(parts)) => {
            let body = &file[parts.body.start as usize..parts.body.end as usize];
            Ok([&parts.head, body].concat())
        }
        Err(fault) => Err(text(&fault)),
    }
}

fn text(fault: &Mp4Fault) -> String {
    let mut text = Vec::new();
    fault.write(b"F", &mut text);
    String::from_utf8(text).unwrap()
}

#[test]
fn a_part_has_the_samples_between_its_times() {
    for late in [false, true] {
        let tracks = [pictures(), sound()];
        let file = video(&tracks, late);
        let part = play(&made(&file, cut(1550, Some(2000))).unwrap());
        let samples = |track: &Mp4Track, range: std::ops::Range<u32>| -> Vec<Vec<u8>> {
            range.map(|number| track.sample(number)).collect()
        };
        // Pictures 15 to 34; sound from 12400 units on, which are twelve samples and a bit.
        assert_eq!(part[0].samples, samples(&tracks[0], 15..35), "late: {late}");
        assert_eq!(part[0].keys, Some(vec![26 - 15]));
        assert_eq!((part[0].duration, part[0].hidden), (2000, 0));
        assert_eq!(part[1].samples, samples(&tracks[1], 12..27));
        assert_eq!(part[1].times, vec![1024; 15]);
        let rest = play(&made(&file, cut(9900, None)).unwrap());
        assert_eq!(rest[0].samples, samples(&tracks[0], 99..100));
        assert_eq!(rest[1].samples, samples(&tracks[1], 77..79));
        assert_eq!(rest[1].times, [1024, 128]);
    }
}

#[test]
fn a_part_may_begin_with_the_key_frame_before() {
    let file = video(&[pictures()], false);
    let wanted = Mp4Cut { start_key_frame: true, ..cut(3000, Some(1000)) };
    let part = &play(&made(&file, wanted).unwrap())[0];
    assert_eq!(part.samples.len(), 15, "five more than ten, from the 26th on");
    assert_eq!(part.samples[0], pictures().sample(25));
    assert_eq!((part.hidden, part.duration, part.keys.clone()), (500, 1500, Some(vec![1])));
    // One that begins at a key frame hides nothing.
    let exact = Mp4Cut { start_key_frame: true, ..cut(2500, None) };
    assert_eq!(play(&made(&file, exact).unwrap())[0].hidden, 0);
}

#[test]
fn what_is_whole_is_sent_as_it_is_unless_its_head_comes_last() {
    let early = video(&[pictures()], false);
    assert_eq!(cut(0, None).of_memory(&early), Ok(Mp4Outcome::Whole));
    let late = video(&[pictures()], true);
    assert_eq!(made(&late, cut(0, None)), Ok(early));
}

#[test]
fn nothing_is_made_of_what_is_no_video_or_has_no_such_part() {
    let file = video(&[pictures()], false);
    let without = |name: &[u8]| {
        let at = file.windows(4).position(|part| part == name).unwrap();
        let mut file = file.clone();
        file[at..at + 4].copy_from_slice(b"none");
        file
    };
    let small = Mp4Cut { buffer_max: 500, ..cut(1000, None) };
    let moov = u64::from(u32::from_be_bytes(file[16..20].try_into().unwrap())) - 8;
    let too_large = format!(
        "\"F\" mp4 moov atom is too large:{moov}, you may want to increase mp4_max_buffer_size"
    );
    let rows: Vec<(Vec<u8>, Mp4Cut, &str)> = vec![
        (Vec::new(), cut(1000, None), "no mp4 trak atoms were found in \"F\""),
        (b"abc".to_vec(), cut(1000, None), "\"F\" mp4 file truncated"),
        (b"junk".repeat(9), cut(1000, None), "\"F\" mp4 atom too large:1786080875"),
        (vec![0, 0, 0, 7, 0, 0, 0, 0], cut(1000, None), "\"F\" mp4 atom is too small:7"),
        (file[..file.len() - 1].to_vec(), cut(1000, None), "\"F\" mp4 atom too large:"),
        (file.clone(), cut(10_000, None), "no mp4 trak atoms were found in \"F\""),
        (file.clone(), cut(10_001, None), "\"F\" mp4 start time exceeds file duration"),
        (file.clone(), cut(1000, Some(10)), "no data between start time and end time in \"F\""),
        (file.clone(), small, &too_large),
        (without(b"stts"), cut(1000, None), "no mp4 stts atoms were found in \"F\""),
        (without(b"stsc"), cut(1000, None), "no mp4 stsc atoms were found in \"F\""),
        (without(b"stsz"), cut(1000, None), "no mp4 stsz atoms were found in \"F\""),
        (without(b"stco"), cut(1000, None), "no mp4 stco atoms were found in \"F\""),
        (without(b"mdat"), cut(1000, None), "no mp4 mdat atom was found in \"F\""),
    ];
    for (file, cut, wanted) in rows {
        let fault = made(&file, cut).unwrap_err();
        assert!(fault.starts_with(wanted), "{fault}, want {wanted}");
    }
}

fn tracks() -> impl Strategy<Value = Vec<Mp4Track>> {
    let times = prop::collection::vec((1_u32..40, 1_u32..200), 1..4);
    let shape = (times, 1_u32..9, 0_u32..5, any::<bool>(), any::<bool>(), 1_u32..30);
    let track = shape.prop_map(|(times, chunk, same, long, has_keys, keys)| {
        let count: u32 = times.iter().map(|(count, _)| count).sum();
        let mut chunks = vec![chunk; (count / chunk) as usize];
        chunks.extend(Some(count % chunk).filter(|rest| *rest > 0));
        let keys = has_keys.then(|| (1..=count).step_by(keys as usize).collect());
        let same = if same > 0 { same + 3 } else { 0 };
        Mp4Track { timescale: 100, times, chunks, keys, same, long, mark: b'p' }
    });
    prop::collection::vec(track, 1..3)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn kept_samples_are_those_of_the_file(
        tracks in tracks(), late: bool, start in 0_u64..40_000, length in 0_u64..20_000, key: bool,
    ) {
        let file = video(&tracks, late);
        let wanted = Mp4Cut {
            length: Some(length).filter(|length| *length > 0),
            start_key_frame: key,
            ..cut(start, None)
        };
        let Ok(part) = made(&file, wanted) else { return Ok(()) };
        // Tracks that end before the start are left out.
        let whole = play(&file);
        let mut whole = whole.iter();
        for found in play(&part) {
            if found.samples.is_empty() {
                continue;
            }
            let at = loop {
                let all = whole.next().expect("a track of the file");
                let place = all.samples.iter().position(|sample| *sample == found.samples[0]);
                let fits = |at: usize| {
                    all.samples[at..].starts_with(&found.samples)
                        && all.times[at..].starts_with(&found.times)
                };
                if let Some(at) = place.filter(|at| fits(*at)) {
                    break (at, all);
                }
            };
            let (at, all) = at;
            let before: u64 = all.times[..at].iter().map(|time| u64::from(*time)).sum();
            // What is hidden leads from the first sample to the one of the wanted start.
            let first = before + found.hidden;
            assert!(first <= start / 10 && start / 10 - first < 200, "{first} {start}");
            let kept: u64 = found.times.iter().map(|time| u64::from(*time)).sum();
            assert!(length == 0 || kept <= found.hidden + length / 10, "no more than is wanted");
        }
    }

    #[test]
    fn no_bytes_bring_the_machine_down(
        bytes in prop::collection::vec(any::<u8>(), 0..300), at in any::<[u16; 4]>(),
        with in any::<[u8; 4]>(), late: bool,
    ) {
        fuzz::video(&bytes);
        let mut file = [vec![with[0], with[1]], video(&[pictures(), sound()], late)].concat();
        for (at, with) in at.into_iter().zip(with) {
            let at = usize::from(at) % file.len();
            file[at] = with;
        }
        fuzz::video(&file);
    }
}
