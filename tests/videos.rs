//! Parts of videos: `mp4`.

use std::fs;

use bolide_testkit::mp4::{Mp4Track, play, video};
use bolide_testkit::{Proto, TestServer, wait_until};

use crate::site;

/// A second has ten pictures; a file of many does not stay in memory.
fn pictures(count: u32, size: u32) -> Mp4Track {
    Mp4Track {
        timescale: 1000,
        times: vec![(count, 100)],
        chunks: vec![7; count as usize / 7],
        keys: Some((1..=count).step_by(25).collect()),
        same: size,
        long: false,
        mark: b'v',
    }
}

/// Videos `small.mp4`, `large.mp4` and `late.mp4`, whose tracks are returned.
fn videos(server: &TestServer) -> [Mp4Track; 2] {
    let tracks = [pictures(140, 0), pictures(1400, 5000)];
    fs::write(server.www("small.mp4"), video(&tracks[..1], false)).unwrap();
    fs::write(server.www("large.mp4"), video(&tracks[1..], false)).unwrap();
    fs::write(server.www("late.mp4"), video(&tracks[1..], true)).unwrap();
    tracks
}

#[test]
fn a_part_of_a_video_has_the_samples_between_its_times() {
    let server = site("location / { mp4; }");
    let [small, large] = videos(&server);
    let rows = [("small.mp4", &small), ("large.mp4", &large), ("late.mp4", &large)];
    for proto in [Proto::H1, Proto::H2, Proto::H3] {
        for (name, track) in rows {
            let path = format!("/{name}?start=2.35&end=9");
            let reply = server.curl(proto).get(&server.url(proto, &path));
            let found = play(&reply.body);
            let wanted: Vec<_> = (23..89).map(|number| track.sample(number)).collect();
            assert!(found[0].samples == wanted, "{proto:?} {name}: {}", found[0].samples.len());
            let part = server.curl(proto).field("Range: bytes=200-4999");
            let part = part.get(&server.url(proto, &path));
            let end = reply.body.len().min(5000);
            assert!(part.status == 206 && part.body == reply.body[200..end], "{proto:?} {name}");
            let whole = server.curl(proto).get(&server.url(proto, &format!("/{name}")));
            assert!(whole.body == fs::read(server.www(name)).unwrap(), "{proto:?} {name}");
        }
    }
    let late = server.get("/late.mp4?start=0");
    assert!(late.body == fs::read(server.www("large.mp4")).unwrap(), "its head comes first");
}

#[test]
fn requests_for_the_same_part_share_validators_and_others_do_not() {
    let server = site("location / { mp4; }");
    videos(&server);
    let part = server.get("/large.mp4?start=3");
    let etag = part.header("etag").unwrap().to_owned();
    let asked =
        |path: &str| server.connect().get(path, &format!("If-None-Match: {etag}\r\n")).status;
    assert_eq!((asked("/large.mp4?start=3"), asked("/large.mp4?start=4")), (304, 200));
    let mut client = server.connect();
    client.send("HEAD /large.mp4?start=3 HTTP/1.1\r\nHost: localhost\r\n\r\n");
    let head = client.answer_to("HEAD");
    let length = part.body.len().to_string();
    assert_eq!(head.header("content-length").unwrap(), length);
    assert!(head.body.is_empty());
}

#[test]
fn a_damaged_video_is_an_error_and_its_file_is_not() {
    let server = site(
        "location / { mp4; }
         location /tight/ { alias @DIR@/www/; mp4; mp4_max_buffer_size 1k; mp4_buffer_size 1k; }",
    );
    videos(&server);
    fs::write(server.www("bad.mp4"), b"junk".repeat(500_000)).unwrap();
    assert_eq!((server.get("/bad.mp4?start=1").status, server.get("/bad.mp4").status), (500, 200));
    let logs = |line: &str| wait_until(line, || server.error_log().contains(line));
    logs("/www/bad.mp4\" mp4 atom too large:1786080875, client: ");
    assert_eq!(server.get("/tight/large.mp4?start=1").status, 500);
    logs("you may want to increase mp4_max_buffer_size, client: ");
}

#[test]
fn a_part_that_begins_with_a_key_frame_hides_frames_before_its_start() {
    let server = site(
        "mp4_start_key_frame on; location / { mp4; }
         location /exact/ { alias @DIR@/www/; mp4; mp4_start_key_frame off; }",
    );
    let [small, _] = videos(&server);
    let found = &play(&server.get("/small.mp4?start=3").body)[0];
    assert_eq!((found.hidden, &found.samples[0]), (500, &small.sample(25)));
    let exact = &play(&server.get("/exact/small.mp4?start=3").body)[0];
    assert_eq!((exact.hidden, &exact.samples[0]), (0, &small.sample(30)));
}

#[test]
fn many_clients_may_request_parts_of_one_video() {
    let server = site("location / { mp4; }");
    videos(&server);
    let wanted = server.get("/large.mp4?start=50&end=60").body;
    std::thread::scope(|scope| {
        let asked: Vec<_> = (0..16)
            .map(|_| scope.spawn(|| server.get("/large.mp4?start=50&end=60").body))
            .collect();
        for one in asked {
            assert!(one.join().unwrap() == wanted, "each has the same part");
        }
    });
}
