//! Joined pages, read by decoders that share no code with the encoders where such decoders exist.

use super::{BROTLI_HEAD, SplicePart, crc32_combine, join, joined_len};
use bolide_http::negotiate::Coding;
use std::io::{Read, Write};
use std::process::{Command, Stdio};

/// Decodes with the decoder of the same library.
fn decode(coding: Coding, body: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    match coding {
        Coding::Gzip => flate2::read::GzDecoder::new(body).read_to_end(&mut out).unwrap(),
        Coding::Brotli => brotli::Decompressor::new(body, 4096).read_to_end(&mut out).unwrap(),
        Coding::Zstd => {
            zstd::stream::read::Decoder::new(body).unwrap().read_to_end(&mut out).unwrap()
        }
    };
    out
}

fn page() -> Vec<Vec<u8>> {
    let text = "<p>a line of a page that repeats itself, the static dictionary knows it</p>\n";
    let mut random = 1_u32;
    let noise = (0..200_000).map(|_| {
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (random >> 24) as u8
    });
    vec![
        text.repeat(3).into_bytes(),
        b"".to_vec(),
        b"x".to_vec(),
        text.repeat(4000).into_bytes(),
        b"xy".to_vec(),
        noise.collect(),
        text.repeat(3).into_bytes(),
    ]
}

#[test]
fn parts_in_any_form_and_order_make_one_page() {
    let pieces = page();
    for coding in Coding::ALL {
        for level in [-1, 0, 1, 2, 4, 5, 6, 9, 11] {
            for stored in 0..3 {
                let make = |(index, piece): (usize, &Vec<u8>)| match (index + stored) % 3 {
                    0 => SplicePart::stored(coding, piece),
                    _ => SplicePart::compress(coding, level, piece).unwrap(),
                };
                let mut parts: Vec<SplicePart> = pieces.iter().enumerate().map(make).collect();
                let body = join(coding, &parts);
                assert_eq!(body.len() as u64, joined_len(coding, &parts));
                assert!(decode(coding, &body) == pieces.concat(), "{coding:?} {level} {stored}");
                parts.reverse();
                let reversed: Vec<u8> = pieces.iter().rev().flatten().copied().collect();
                let body = join(coding, &parts);
                assert!(decode(coding, &body) == reversed, "{coding:?} {level} {stored}");
            }
            if level > 9 {
                continue;
            }
            let text = SplicePart::compress(coding, level, &pieces[3]).unwrap();
            assert!(text.bytes().len() < pieces[3].len() / 10, "{coding:?} {level}");
        }
        assert_eq!(decode(coding, &join(coding, &[])), b"", "{coding:?}");
    }
}

#[test]
fn the_windows_header_is_the_one_that_the_coder_writes() {
    let params = brotli::enc::BrotliEncoderParams {
        lgwin: super::BROTLI_WINDOW,
        ..brotli::enc::BrotliEncoderParams::default()
    };
    let mut whole = Vec::new();
    brotli::BrotliCompress(&mut &b"some text, some text"[..], &mut whole, &params).unwrap();
    assert_eq!(whole[0] & 0x0f, BROTLI_HEAD[0] & 0x0f);
}

#[test]
fn the_checksum_of_the_whole_comes_from_those_of_the_parts() {
    let pieces = page();
    let crc = |data: &[u8]| {
        let mut crc = flate2::Crc::new();
        crc.update(data);
        crc.sum()
    };
    let combined =
        pieces.iter().fold(0, |sum, piece| crc32_combine(sum, crc(piece), piece.len() as u64));
    assert_eq!(combined, crc(&pieces.concat()));
    // The CRC-32 of "123456789", as RFC 3720 and all published tables give it.
    assert_eq!(crc32_combine(crc(b"1234"), crc(b"56789"), 5), 0xcbf4_3926);
}

/// The output of a system program for `body`, or `None` if the program is missing.
fn foreign(program: &str, body: &[u8]) -> Option<Vec<u8>> {
    let mut child = Command::new(program)
        .arg("-dc")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    let mut stdin = child.stdin.take().unwrap();
    let body = body.to_vec();
    let writer = std::thread::spawn(move || stdin.write_all(&body));
    let mut out = Vec::new();
    child.stdout.take().unwrap().read_to_end(&mut out).unwrap();
    writer.join().unwrap().unwrap();
    assert!(child.wait().unwrap().success(), "{program} takes it");
    Some(out)
}

#[test]
fn programs_of_the_system_read_joined_pages() {
    let pieces = page();
    let programs = [("gzip", Coding::Gzip), ("brotli", Coding::Brotli), ("zstd", Coding::Zstd)];
    for (program, coding) in programs {
        let make = |(index, piece): (usize, &Vec<u8>)| match index % 2 {
            0 => SplicePart::compress(coding, 4, piece).unwrap(),
            _ => SplicePart::stored(coding, piece),
        };
        let parts: Vec<SplicePart> = pieces.iter().enumerate().map(make).collect();
        // Every system that builds this has gzip.
        match foreign(program, &join(coding, &parts)) {
            Some(out) => assert!(out == pieces.concat(), "{program}"),
            None => assert_ne!(program, "gzip"),
        }
    }
}
