//! Several ranges of one body as `multipart/byteranges`.

use bolide_http::range::{Boundary, ByteRange, Multipart};

use crate::answer::{BytesFrom, MultipartBody};

/// The body that holds `ranges` of `source`, and how long it is.
pub(crate) fn parts(
    source: BytesFrom,
    content_type: &[u8],
    length: u64,
    boundary: Boundary,
    ranges: &[ByteRange],
) -> (MultipartBody, u64) {
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
    let parts = MultipartBody { source, frames, ranges: ranges.to_vec(), next: 0, span: None };
    (parts, multipart.body_len(ranges))
}
