//! Several ranges of one body as `multipart/byteranges`.

use http::range::{Boundary, ByteRange, Multipart};

use crate::answer::{Parts, Source};

/// The body that holds `ranges` of `source`, and how long it is.
pub(crate) fn parts(
    source: Source,
    content_type: &[u8],
    length: u64,
    boundary: Boundary,
    ranges: &[ByteRange],
) -> (Parts, u64) {
    let multipart = Multipart { boundary, content_type, length };
    let mut frames: Vec<Vec<u8>> = ranges
        .iter()
        .map(|range| {
            let mut frame = Vec::new();
            multipart.push_part(&mut frame, *range);
            frame
        })
        .collect();
    let mut end = Vec::new();
    multipart.push_end(&mut end);
    frames.push(end);
    let parts = Parts { source, frames, ranges: ranges.to_vec(), next: 0, span: None };
    (parts, multipart.body_len(ranges))
}
